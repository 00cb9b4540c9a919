//! Tokens, of which only digests are kept.

use domain::store::{AccessReads, AccessWrites, StoreError, Token};

use crate::db::{Columns, Sql, limit, maybe_time, text, time};
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
}
