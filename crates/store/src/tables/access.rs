//! Tokens and sessions, of which only digests are kept.

use domain::id::SessionId;
use domain::store::{AccessReads, AccessWrites, Session, StoreError, Token};

use crate::db::{Columns, Sql, int, limit, maybe_time, text, time};
use crate::tx::Transaction;

static BY_DIGEST: Sql = Sql::new(
    "read a token",
    "token",
    "SELECT digest, label, created_at, expires_at FROM token WHERE digest = $1",
);
static LIST: Sql = Sql::new(
    "list tokens",
    "token",
    "SELECT digest, label, created_at, expires_at FROM token ORDER BY created_at, digest LIMIT $1",
);
static INSERT: Sql = Sql::new(
    "add a token",
    "token",
    "INSERT INTO token (digest, label, created_at, expires_at) VALUES ($1, $2, $3, $4)
     ON CONFLICT (digest) DO NOTHING",
);
static DELETE: Sql = Sql::new("revoke a token", "token", "DELETE FROM token WHERE digest = $1");

static SESSIONS: Sql = Sql::new(
    "list sessions",
    "session",
    "SELECT id, digest, label, created_at, last_seen_at, expires_at FROM session ORDER BY id LIMIT $1",
);
static INSERT_SESSION: Sql = Sql::new(
    "add a session",
    "session",
    "INSERT INTO session (id, digest, label, created_at, last_seen_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT DO NOTHING",
);
static SEE_SESSION: Sql = Sql::new(
    "note that a session was seen",
    "session",
    "UPDATE session SET last_seen_at = $2, expires_at = $3 WHERE id = $1",
);
static DELETE_SESSION: Sql = Sql::new("end a session", "session", "DELETE FROM session WHERE id = $1");

fn decode_session(columns: &mut Columns<'_>) -> Result<Session, StoreError> {
    Ok(Session {
        id: SessionId::from_number(columns.int()?),
        digest: columns.text()?,
        label: columns.text()?,
        created_at: columns.time()?,
        last_seen_at: columns.time()?,
        expires_at: columns.time()?,
    })
}

fn decode(columns: &mut Columns<'_>) -> Result<Token, StoreError> {
    Ok(Token {
        digest: columns.text()?,
        label: columns.text()?,
        created_at: columns.time()?,
        expires_at: columns.maybe_time()?,
    })
}

impl AccessReads for Transaction<'_> {
    fn token(&mut self, digest: &str) -> Result<Option<Token>, StoreError> {
        self.db.one(&BY_DIGEST, &[text(digest)], decode)
    }

    fn tokens(&mut self, rows: u32) -> Result<Vec<Token>, StoreError> {
        self.db.many(&LIST, &[limit(rows)], decode)
    }

    fn sessions(&mut self, rows: u32) -> Result<Vec<Session>, StoreError> {
        self.db.many(&SESSIONS, &[limit(rows)], decode_session)
    }
}

impl AccessWrites for Transaction<'_> {
    fn insert_token(&mut self, token: &Token) -> Result<(), StoreError> {
        let values =
            [text(&token.digest), text(&token.label), time(token.created_at), maybe_time(token.expires_at)];
        self.db.write(&INSERT, &values, 1)
    }

    fn delete_token(&mut self, digest: &str) -> Result<bool, StoreError> {
        Ok(self.db.count(&DELETE, &[text(digest)])? > 0)
    }

    fn insert_session(&mut self, session: &Session) -> Result<(), StoreError> {
        let values = [
            int(session.id.number()),
            text(&session.digest),
            text(&session.label),
            time(session.created_at),
            time(session.last_seen_at),
            time(session.expires_at),
        ];
        self.db.write(&INSERT_SESSION, &values, 1)
    }

    fn update_session(&mut self, session: &Session) -> Result<bool, StoreError> {
        let values = [int(session.id.number()), time(session.last_seen_at), time(session.expires_at)];
        Ok(self.db.count(&SEE_SESSION, &values)? > 0)
    }

    fn delete_session(&mut self, session: SessionId) -> Result<bool, StoreError> {
        Ok(self.db.count(&DELETE_SESSION, &[int(session.number())])? > 0)
    }
}
