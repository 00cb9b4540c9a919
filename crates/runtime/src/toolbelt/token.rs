//! Tokens of attempts: made outside every transaction, shown to nobody but the process they are for.

use std::fmt;

use domain::execution::Execution;
use domain::toolbelt::TokenDigest;
use extension::Secret;

use crate::node::Runtime;

/// Makes the secret parts of tokens.
pub trait TokenSource: fmt::Debug + Send + Sync {
    /// A text that nobody can guess, and its SHA-256. None where attempts get no token: nothing serves their calls,
    /// or the system has no randomness to give.
    fn make(&self) -> Option<(String, TokenDigest)>;
}

/// Attempts get no token.
#[derive(Debug, Clone, Copy)]
pub struct NoTokens;

impl TokenSource for NoTokens {
    fn make(&self) -> Option<(String, TokenDigest)> {
        None
    }
}

/// A token for the epoch in force of an attempt, and what is kept of it. Its text says whose it is, so that nothing
/// has to be searched for it.
pub(crate) fn new_token(runtime: &Runtime, execution: &Execution) -> Option<(Secret, TokenDigest)> {
    let (secret, digest) = runtime.tokens().make()?;
    let token = format!("{}.{}.{secret}", execution.id, execution.epoch);
    Some((Secret::new(token), digest))
}
