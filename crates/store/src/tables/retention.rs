//! What is kept of runs.

use domain::execution::Execution;
use domain::id::{ExecutionId, WorkId};
use domain::store::retention::{Ended, Retained};
use domain::store::{RetentionReads, RetentionWrites, StoreError};
use domain::time::Timestamp;

use super::execution;
use crate::db::{self, Columns, Sql, int, limit, maybe_int, maybe_time, time};
use crate::tx::Transaction;

static BY_WORK: Sql = Sql::new(
    "read what is kept of a Work",
    "retention",
    "SELECT work, released, run, look_at FROM retention WHERE work = $1",
);
static DUE: Sql = Sql::new(
    "find Works to look at for what is kept",
    "retention",
    "SELECT work FROM retention WHERE look_at IS NOT NULL AND look_at <= $1 ORDER BY look_at, work LIMIT $2",
);
static NEXT: Sql = Sql::new(
    "find when a Work is to be looked at next",
    "retention",
    "SELECT look_at FROM retention WHERE look_at IS NOT NULL ORDER BY look_at LIMIT 1",
);
static ENDED: Sql = Sql::new(
    "follow the Executions that end",
    "execution",
    "SELECT id, work, attempt, ended_at, unstopped FROM execution
     WHERE ended_at IS NOT NULL AND ended_at >= $1 AND ended_at <= $3 AND (ended_at > $1 OR id > $2)
     ORDER BY ended_at, id LIMIT $4",
);
static ENDED_OF: Sql = Sql::new(
    "list what ended of a Work",
    "execution",
    "SELECT id, work, attempt, ended_at, unstopped FROM execution
     WHERE work = $1 AND id > $2 AND attempt <= $3 AND ended_at IS NOT NULL ORDER BY id LIMIT $4",
);
static PUT: Sql = Sql::new(
    "note what is kept of a Work",
    "retention",
    "INSERT INTO retention (work, released, run, look_at) VALUES ($1, $2, $3, $4)
     ON CONFLICT (work) DO UPDATE
     SET released = excluded.released, run = excluded.run, look_at = excluded.look_at",
);
static RELEASE: Sql = Sql::new(
    "begin to release content",
    "execution",
    "UPDATE execution SET content = 1 WHERE id = $1 AND content = 0 AND ended_at IS NOT NULL",
);
static RELEASED: Sql = Sql::new(
    "note that content is released",
    "execution",
    "UPDATE execution SET content = 2 WHERE id = $1 AND content = 1",
);
static DROP_BODIES: Sql = Sql::new(
    "drop the bodies of what an Execution took in",
    "payload",
    "DELETE FROM payload WHERE sequence IN (
        SELECT input.sequence FROM input JOIN payload AS held ON held.sequence = input.sequence
        WHERE input.consumed_by = $1 LIMIT $2)",
);
static DROP_CALLS: Sql = Sql::new(
    "forget the calls of an Execution",
    "tool_call",
    "DELETE FROM tool_call WHERE execution = $1 AND number IN (
        SELECT number FROM tool_call WHERE execution = $1 ORDER BY number LIMIT $2)",
);

fn retained(columns: &mut Columns<'_>) -> Result<Retained, StoreError> {
    Ok(Retained {
        work: WorkId::from_number(columns.int()?),
        released: columns.int()?,
        run: columns.maybe_int()?.map(ExecutionId::from_number),
        look_at: columns.maybe_time()?,
    })
}

fn ended(columns: &mut Columns<'_>) -> Result<Ended, StoreError> {
    Ok(Ended {
        id: ExecutionId::from_number(columns.int()?),
        work: WorkId::from_number(columns.int()?),
        attempt: columns.int()?,
        ended_at: columns.time()?,
        unstopped: columns.flag()?,
    })
}

impl RetentionReads for Transaction<'_> {
    fn retained(&mut self, work: WorkId) -> Result<Option<Retained>, StoreError> {
        self.db.one(&BY_WORK, &[int(work.number())], retained)
    }

    fn retention_due(&mut self, now: Timestamp, rows: u32) -> Result<Vec<WorkId>, StoreError> {
        self.db.many(&DUE, &[time(now), limit(rows)], |columns| columns.int().map(WorkId::from_number))
    }

    fn next_retention_due(&mut self) -> Result<Option<Timestamp>, StoreError> {
        self.db.one(&NEXT, &[], db::moment)
    }

    fn ended_after(
        &mut self,
        (at, id): (Timestamp, ExecutionId),
        until: Timestamp,
        rows: u32,
    ) -> Result<Vec<Ended>, StoreError> {
        self.db.many(&ENDED, &[time(at), int(id.number()), time(until), limit(rows)], ended)
    }

    fn ended_of(
        &mut self,
        work: WorkId,
        after: Option<ExecutionId>,
        until: i64,
        rows: u32,
    ) -> Result<Vec<Ended>, StoreError> {
        let after = after.map_or(i64::MIN, ExecutionId::number);
        self.db.many(&ENDED_OF, &[int(work.number()), int(after), int(until), limit(rows)], ended)
    }

    fn releasing(&mut self, after: Option<ExecutionId>, rows: u32) -> Result<Vec<Execution>, StoreError> {
        execution::releasing(self, after, rows)
    }
}

impl RetentionWrites for Transaction<'_> {
    fn put_retained(&mut self, retained: &Retained) -> Result<(), StoreError> {
        let values = [
            int(retained.work.number()),
            int(retained.released),
            maybe_int(retained.run.map(ExecutionId::number)),
            maybe_time(retained.look_at),
        ];
        self.db.write(&PUT, &values, 1)
    }

    fn release_content(&mut self, id: ExecutionId) -> Result<bool, StoreError> {
        Ok(self.db.count(&RELEASE, &[int(id.number())])? > 0)
    }

    fn drop_bodies(&mut self, id: ExecutionId, rows: u32) -> Result<u64, StoreError> {
        self.db.count(&DROP_BODIES, &[int(id.number()), limit(rows)])
    }

    fn drop_calls(&mut self, id: ExecutionId, rows: u32) -> Result<u64, StoreError> {
        self.db.count(&DROP_CALLS, &[int(id.number()), limit(rows)])
    }

    fn content_released(&mut self, id: ExecutionId) -> Result<bool, StoreError> {
        Ok(self.db.count(&RELEASED, &[int(id.number())])? > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::{DROP_BODIES, DROP_CALLS, DUE, ENDED, ENDED_OF, NEXT};
    use crate::tables::plan::assert_uses;

    #[test]
    fn what_is_kept_costs_nothing() {
        assert_uses(&DUE, "retention_look");
        assert_uses(&NEXT, "retention_look");
        assert_uses(&ENDED, "execution_ended");
        assert_uses(&ENDED_OF, "execution_work");
        assert_uses(&DROP_BODIES, "input_consumer");
        assert_uses(&DROP_CALLS, "tool_call_number");
    }
}
