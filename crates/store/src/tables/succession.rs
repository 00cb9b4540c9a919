//! Lines of successors, and who holds a concurrency key.

use domain::id::WorkId;
use domain::store::{StoreError, SuccessionReads, SuccessionWrites};
use domain::succession::Succession;
use domain::text::{ConcurrencyKey, ScopeName};

use crate::db::{Columns, Sql, int, text};
use crate::tx::Transaction;

macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT work, predecessor, first, generation FROM succession", $rest)
    };
}

static OF_WORK: Sql = Sql::new("read a Work's place in its line", "succession", select!(" WHERE work = $1"));
static AFTER: Sql = Sql::new("find a successor", "succession", select!(" WHERE predecessor = $1"));
static NEWEST: Sql = Sql::new(
    "find the newest of a line",
    "succession",
    select!(" WHERE first = $1 ORDER BY generation DESC LIMIT 1"),
);
static INSERT: Sql = Sql::new(
    "note a successor",
    "succession",
    "INSERT INTO succession (work, predecessor, first, generation) VALUES ($1, $2, $3, $4)
     ON CONFLICT DO NOTHING",
);
static RUNNING: Sql = Sql::new(
    "find who runs under a concurrency key",
    "work",
    "SELECT id FROM work WHERE concurrency = $1 AND scope = $2 AND state = 1 AND concurrency IS NOT NULL LIMIT 1",
);
// What is being stopped is little, and found by its own index.
static STOPPING: Sql = Sql::new(
    "find who may still run under a concurrency key",
    "execution",
    "SELECT work FROM execution WHERE unstopped = 1 AND work IN
     (SELECT id FROM work WHERE work.id = execution.work AND concurrency = $1 AND scope = $2) LIMIT 1",
);

fn decode(columns: &mut Columns<'_>) -> Result<Succession, StoreError> {
    Ok(Succession {
        work: WorkId::from_number(columns.int()?),
        predecessor: WorkId::from_number(columns.int()?),
        first: WorkId::from_number(columns.int()?),
        generation: columns.int()?,
    })
}

impl SuccessionReads for Transaction<'_> {
    fn succession_of(&mut self, work: WorkId) -> Result<Option<Succession>, StoreError> {
        self.db.one(&OF_WORK, &[int(work.number())], decode)
    }

    fn successor_of(&mut self, predecessor: WorkId) -> Result<Option<Succession>, StoreError> {
        self.db.one(&AFTER, &[int(predecessor.number())], decode)
    }

    fn newest_of_line(&mut self, first: WorkId) -> Result<Option<Succession>, StoreError> {
        self.db.one(&NEWEST, &[int(first.number())], decode)
    }

    fn concurrency_holder(
        &mut self,
        scope: &ScopeName,
        key: &ConcurrencyKey,
    ) -> Result<Option<WorkId>, StoreError> {
        let values = [text(key.as_str()), text(scope.as_str())];
        let id = |columns: &mut Columns<'_>| columns.int().map(WorkId::from_number);
        match self.db.one(&RUNNING, &values, id)? {
            Some(running) => Ok(Some(running)),
            None => self.db.one(&STOPPING, &values, id),
        }
    }
}

impl SuccessionWrites for Transaction<'_> {
    fn insert_succession(&mut self, succession: &Succession) -> Result<(), StoreError> {
        let Succession { work, predecessor, first, generation } = *succession;
        let values = [int(work.number()), int(predecessor.number()), int(first.number()), int(generation)];
        self.db.write(&INSERT, &values, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::{NEWEST, RUNNING, STOPPING};
    use crate::tables::plan::assert_uses;

    #[test]
    fn lines_and_holders_are_found_by_index() {
        assert_uses(&NEWEST, "succession_line");
        assert_uses(&RUNNING, "work_concurrency");
        assert_uses(&STOPPING, "execution_unstopped");
    }
}
