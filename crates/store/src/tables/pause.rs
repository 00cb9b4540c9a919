//! Scopes that an operator has paused.

use domain::id::Generation;
use domain::pause::Pause;
use domain::store::{InForce, PauseReads, PauseWrites, StoreError};
use domain::text::ScopeName;

use crate::db::{Sql, text, time};
use crate::tx::Transaction;

static IN_FORCE: Sql = Sql::new(
    "read what is in force",
    "scope_pause",
    "SELECT (SELECT number FROM generation ORDER BY number DESC LIMIT 1),
        (SELECT CAST(COUNT(*) AS BIGINT) FROM (SELECT 1 FROM scope_pause LIMIT 1) AS counted)",
);
static LIST: Sql =
    Sql::new("list pauses", "scope_pause", "SELECT scope, since FROM scope_pause ORDER BY scope");
static INSERT: Sql = Sql::new(
    "pause a scope",
    "scope_pause",
    "INSERT INTO scope_pause (scope, since) VALUES ($1, $2) ON CONFLICT (scope) DO NOTHING",
);
static DELETE: Sql = Sql::new("resume a scope", "scope_pause", "DELETE FROM scope_pause WHERE scope = $1");

impl PauseReads for Transaction<'_> {
    fn in_force(&mut self) -> Result<InForce, StoreError> {
        let found = self.db.one(&IN_FORCE, &[], |columns| {
            let generation = columns.maybe_int()?.map(Generation::from_number);
            Ok(InForce { generation, any_pause: columns.int()? > 0 })
        })?;
        Ok(found.unwrap_or(InForce { generation: None, any_pause: false }))
    }

    fn pauses(&mut self) -> Result<Vec<Pause>, StoreError> {
        self.db.many(&LIST, &[], |columns| Ok(Pause { scope: columns.text()?, since: columns.time()? }))
    }
}

impl PauseWrites for Transaction<'_> {
    fn insert_pause(&mut self, pause: &Pause) -> Result<bool, StoreError> {
        Ok(self.db.count(&INSERT, &[text(pause.scope.as_str()), time(pause.since)])? > 0)
    }

    fn delete_pause(&mut self, scope: &ScopeName) -> Result<bool, StoreError> {
        Ok(self.db.count(&DELETE, &[text(scope.as_str())])? > 0)
    }
}
