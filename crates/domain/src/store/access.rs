//! Tokens and sessions, of which only digests are kept.

use crate::id::SessionId;
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

/// A browser that is logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its id, which is no secret.
    pub id: SessionId,
    /// SHA-256 of the cookie, in hex. The cookie itself is never stored.
    pub digest: String,
    /// What people call it: the browser in words.
    pub label: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was used, to within [`crate::session::SEEN_EVERY`].
    pub last_seen_at: Timestamp,
    /// When it stops being valid, exclusive, unless it is used before.
    pub expires_at: Timestamp,
}

/// Reading tokens and sessions.
pub trait AccessReads {
    /// The token with this digest.
    fn token(&mut self, digest: &str) -> Result<Option<Token>, StoreError>;

    /// Every token, oldest first, at most `limit`.
    fn tokens(&mut self, limit: u32) -> Result<Vec<Token>, StoreError>;

    /// Every session, oldest first, at most `limit`; expired ones stand among them until they are removed.
    fn sessions(&mut self, limit: u32) -> Result<Vec<Session>, StoreError>;
}

/// Writing tokens and sessions.
pub trait AccessWrites {
    /// Adds a token.
    fn insert_token(&mut self, token: &Token) -> Result<(), StoreError>;

    /// Revokes a token. False when there is none with this digest.
    fn delete_token(&mut self, digest: &str) -> Result<bool, StoreError>;

    /// Adds a session.
    fn insert_session(&mut self, session: &Session) -> Result<(), StoreError>;

    /// Writes when a session was seen and when it expires. False when it is gone.
    fn update_session(&mut self, session: &Session) -> Result<bool, StoreError>;

    /// Ends a session. False when there is none with this id.
    fn delete_session(&mut self, id: SessionId) -> Result<bool, StoreError>;
}
