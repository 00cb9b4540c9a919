//! Input: which Events a Work has yet to see, and which attempt took the others.

use domain::id::{EventId, ExecutionId, Sequence, WorkId};
use domain::input::Input;
use domain::store::StoreError;

use crate::db::{self, Columns, Sql, Value, int, limit, maybe_int, text};
use crate::tx::Transaction;

macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT work, sequence, event, binding, consumed_by FROM input", $rest)
    };
}

static ONE: Sql = Sql::new("read an input", "input", select!(" WHERE work = $1 AND sequence = $2"));
// The inner query is all in the index; the rows are then found by key.
static PENDING: Sql = Sql::new(
    "read pending input",
    "input",
    select!(
        " WHERE work = $1 AND sequence IN
         (SELECT sequence FROM input WHERE work = $1 AND consumed_by IS NULL ORDER BY sequence LIMIT $2)
         ORDER BY sequence"
    ),
);
// The same of the first alone, which is what every turn asks: a single value needs no table for the inner answer.
static FIRST_PENDING: Sql = Sql::new(
    "read the first pending input",
    "input",
    select!(
        " WHERE work = $1 AND sequence =
         (SELECT sequence FROM input WHERE work = $1 AND consumed_by IS NULL ORDER BY sequence LIMIT 1)"
    ),
);
static CONSUMED: Sql = Sql::new(
    "read consumed input",
    "input",
    // An Execution has one Work, so this is the order of acceptance, and the index has it.
    select!(" WHERE consumed_by = $1 AND sequence > $2 ORDER BY work, sequence LIMIT $3"),
);
static INSERT: Sql = Sql::new(
    "queue input",
    "input",
    "INSERT INTO input (work, sequence, event, binding, consumed_by) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (work, sequence) DO NOTHING",
);
static CONSUME: Sql = Sql::new(
    "consume input",
    "input",
    // From the first that is pending on: a planner that prefers the key passes over nothing that was consumed before.
    "UPDATE input SET consumed_by = $3 WHERE work = $1 AND sequence <= $2 AND consumed_by IS NULL AND sequence >=
     (SELECT sequence FROM input WHERE work = $1 AND consumed_by IS NULL ORDER BY sequence LIMIT 1)",
);
static CONSUME_ONE: Sql = Sql::new(
    "consume one input",
    "input",
    "UPDATE input SET consumed_by = $3 WHERE work = $1 AND sequence = $2 AND consumed_by IS NULL",
);

static BATCH: Sql = Sql::new(
    "read what a turn began with",
    "input",
    select!(" WHERE consumed_by = $1 AND turn = $2 AND sequence > $3 ORDER BY work, sequence LIMIT $4"),
);
static LAST: Sql = Sql::new(
    "find the last input of an Execution",
    "input",
    "SELECT sequence FROM input WHERE consumed_by = $1 ORDER BY work DESC, sequence DESC LIMIT 1",
);
static CONSUME_BATCH: Sql = Sql::new(
    "consume input for a later turn",
    "input",
    "UPDATE input SET consumed_by = $3, turn = $4 WHERE work = $1 AND sequence <= $2 AND consumed_by IS NULL
     AND sequence >=
     (SELECT sequence FROM input WHERE work = $1 AND consumed_by IS NULL ORDER BY sequence LIMIT 1)",
);

fn decode(columns: &mut Columns<'_>) -> Result<Input, StoreError> {
    Ok(Input {
        work: WorkId::from_number(columns.int()?),
        sequence: Sequence::from_number(columns.int()?),
        event: EventId::from_number(columns.int()?),
        binding: columns.text()?,
        consumed_by: columns.maybe_int()?.map(ExecutionId::from_number),
    })
}

impl Transaction<'_> {
    pub(super) fn input_at(&mut self, work: WorkId, sequence: Sequence) -> Result<Option<Input>, StoreError> {
        self.db.one(&ONE, &[int(work.number()), int(sequence.number())], decode)
    }

    pub(super) fn pending(&mut self, work: WorkId, rows: u32) -> Result<Vec<Input>, StoreError> {
        if rows == 1 {
            return self.db.many(&FIRST_PENDING, &[int(work.number())], decode);
        }
        self.db.many(&PENDING, &[int(work.number()), limit(rows)], decode)
    }

    pub(super) fn consumed(
        &mut self,
        execution: ExecutionId,
        after: Sequence,
        rows: u32,
    ) -> Result<Vec<Input>, StoreError> {
        let values = [int(execution.number()), int(after.number()), limit(rows)];
        self.db.many(&CONSUMED, &values, decode)
    }

    pub(super) fn add_input(&mut self, input: &Input) -> Result<(), StoreError> {
        let values = [
            int(input.work.number()),
            int(input.sequence.number()),
            int(input.event.number()),
            text(input.binding.as_str()),
            maybe_int(input.consumed_by.map(ExecutionId::number)),
        ];
        self.db.write(&INSERT, &values, 1)
    }

    pub(super) fn consume(
        &mut self,
        work: WorkId,
        until: Sequence,
        execution: ExecutionId,
    ) -> Result<u64, StoreError> {
        self.db.count(&CONSUME, &[int(work.number()), int(until.number()), int(execution.number())])
    }

    pub(super) fn consume_one(
        &mut self,
        work: WorkId,
        sequence: Sequence,
        execution: ExecutionId,
    ) -> Result<bool, StoreError> {
        let values = [int(work.number()), int(sequence.number()), int(execution.number())];
        Ok(self.db.count(&CONSUME_ONE, &values)? > 0)
    }

    pub(super) fn batch(
        &mut self,
        execution: ExecutionId,
        turn: i64,
        after: Sequence,
        rows: u32,
    ) -> Result<Vec<Input>, StoreError> {
        let values = [int(execution.number()), int(turn), int(after.number()), limit(rows)];
        self.db.many(&BATCH, &values, decode)
    }

    pub(super) fn last_consumed(&mut self, execution: ExecutionId) -> Result<Option<Sequence>, StoreError> {
        let last = self.db.one(&LAST, &[int(execution.number())], db::number)?;
        Ok(last.map(Sequence::from_number))
    }

    pub(super) fn consume_for_turn(
        &mut self,
        work: WorkId,
        until: Sequence,
        execution: ExecutionId,
        turn: i64,
    ) -> Result<u64, StoreError> {
        let values = [int(work.number()), int(until.number()), int(execution.number()), int(turn)];
        self.db.count(&CONSUME_BATCH, &values)
    }

    /// The number that a counting query answers. It is bounded by the query's own limit.
    pub(super) fn counted(&mut self, sql: &'static Sql, values: &[Value<'_>]) -> Result<u32, StoreError> {
        let count = self.db.one(sql, values, db::number)?.unwrap_or(0);
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::{BATCH, CONSUME, CONSUME_BATCH, CONSUMED, FIRST_PENDING, LAST, PENDING};
    use crate::tables::plan::assert_uses;

    #[test]
    fn consumed_history_costs_the_next_attempt_nothing() {
        for sql in [&PENDING, &FIRST_PENDING, &CONSUME, &CONSUMED, &BATCH, &LAST, &CONSUME_BATCH] {
            assert_uses(sql, "input_consumer");
        }
    }
}
