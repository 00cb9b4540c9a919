//! Tokens, of which only digests are kept.

use crate::store::StoreError;
use crate::time::Timestamp;

/// A bearer token's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// SHA-256 of the token, in hex. The token itself is never stored.
    pub digest: String,
    /// What people call it.
    pub label: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it stops being valid, exclusive.
    pub expires_at: Option<Timestamp>,
}

/// Reading tokens.
pub trait AccessReads {
    /// The token with this digest.
    fn token(&mut self, digest: &str) -> Result<Option<Token>, StoreError>;

    /// Every token, oldest first, at most `limit`.
    fn tokens(&mut self, limit: u32) -> Result<Vec<Token>, StoreError>;
}

/// Writing tokens.
pub trait AccessWrites {
    /// Adds a token.
    fn insert_token(&mut self, token: &Token) -> Result<(), StoreError>;

    /// Revokes a token. False when there is none with this digest.
    fn delete_token(&mut self, digest: &str) -> Result<bool, StoreError>;
}
