//! Secrets: references in the configuration, values only at the moment of use.

use std::fmt;

use thiserror::Error;

use crate::BoxFuture;

/// A secret's value. Neither `Debug` nor `Display` shows it, and it is wiped from no log because it is never
/// written to one.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    pub const fn new(value: String) -> Self {
        Self(value)
    }

    /// The value, for the one call that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A secret could not be read. The message names the reference's kind, never a value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the secret `{name}` cannot be read: {reason}")]
pub struct SecretError {
    /// The secret's configured name.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// The secrets that one entry or binding may read, by their configured names.
pub trait Secrets: fmt::Debug + Send + Sync {
    /// Resolves one secret now.
    ///
    /// # Errors
    /// [`SecretError`] when it is not configured for the asker, or cannot be read.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Secret, SecretError>>;
}
