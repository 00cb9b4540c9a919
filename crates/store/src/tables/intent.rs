//! Intents: orders to attempts, of which only those that are due cost anything to find.

use domain::id::{Epoch, EventId, ExecutionId, Sequence, WorkId};
use domain::intent::{Intent, IntentState};
use domain::store::{IntentReads, IntentWrites, StoreError};
use domain::time::Timestamp;

use super::code;
use crate::db::{self, Columns, Sql, int, limit, maybe_int, maybe_text, maybe_time, time};
use crate::tx::Transaction;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT execution, sequence, event, work, kind, epoch, on_error, state, due_at, tries, created_at, ",
            "reason FROM intent",
            $rest
        )
    };
}

static ONE: Sql = Sql::new("read an intent", "intent", select!(" WHERE execution = $1 AND sequence = $2"));
static DUE: Sql = Sql::new(
    "find intents that are due",
    "intent",
    select!(
        " WHERE host = $1 AND due_at IS NOT NULL AND due_at <= $2 ORDER BY due_at, execution, sequence LIMIT $3"
    ),
);
static NEXT: Sql = Sql::new(
    "find when the next intent is due",
    "intent",
    "SELECT due_at FROM intent WHERE host = $1 AND due_at IS NOT NULL ORDER BY due_at LIMIT 1",
);
static OF_EXECUTION: Sql = Sql::new(
    "read the intents of an Execution",
    "intent",
    select!(" WHERE execution = $1 ORDER BY sequence LIMIT $2"),
);
// The host is the attempt's: only its process can carry the order out.
static INSERT: Sql = Sql::new(
    "order an attempt",
    "intent",
    "INSERT INTO intent (execution, sequence, event, work, kind, epoch, on_error, state, due_at, tries,
        created_at, reason, host)
     SELECT execution.id, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, execution.host
     FROM execution WHERE execution.id = $1
     ON CONFLICT (execution, sequence) DO NOTHING",
);
static UPDATE: Sql = Sql::new(
    "change an intent",
    "intent",
    "UPDATE intent SET state = $5, due_at = $6, tries = $7, reason = $8
     WHERE execution = $1 AND sequence = $2 AND state = $3 AND tries = $4",
);

fn decode(columns: &mut Columns<'_>) -> Result<Intent, StoreError> {
    let intent = Intent {
        execution: ExecutionId::from_number(columns.int()?),
        sequence: Sequence::from_number(columns.int()?),
        event: EventId::from_number(columns.int()?),
        work: WorkId::from_number(columns.int()?),
        kind: columns.word(code::intent_kind_of)?,
        epoch: Epoch::from_number(columns.int()?),
        on_error: columns.maybe_word(code::error_fallback_of)?,
        state: state(columns)?,
        tries: {
            let tries = columns.int()?;
            u32::try_from(tries).map_err(|_large| columns.corrupt("a number of tries that is none"))?
        },
        created_at: columns.time()?,
        reason: columns.maybe_text()?,
    };
    intent.check();
    Ok(intent)
}

fn state(columns: &mut Columns<'_>) -> Result<IntentState, StoreError> {
    let (word, due_at) = (columns.int()?, columns.maybe_time()?);
    code::intent_state_of(word, due_at).ok_or_else(|| columns.corrupt("an unknown state"))
}

impl IntentReads for Transaction<'_> {
    fn intent(&mut self, execution: ExecutionId, sequence: Sequence) -> Result<Option<Intent>, StoreError> {
        self.db.one(&ONE, &[int(execution.number()), int(sequence.number())], decode)
    }

    fn due_intents(&mut self, now: Timestamp, rows: u32) -> Result<Vec<Intent>, StoreError> {
        self.db.many(&DUE, &[int(self.place.host), time(now), limit(rows)], decode)
    }

    fn next_intent_due(&mut self) -> Result<Option<Timestamp>, StoreError> {
        self.db.one(&NEXT, &[int(self.place.host)], db::moment)
    }

    fn intents_of(&mut self, execution: ExecutionId, rows: u32) -> Result<Vec<Intent>, StoreError> {
        self.db.many(&OF_EXECUTION, &[int(execution.number()), limit(rows)], decode)
    }
}

impl IntentWrites for Transaction<'_> {
    fn insert_intent(&mut self, intent: &Intent) -> Result<(), StoreError> {
        intent.check();
        let values = [
            int(intent.execution.number()),
            int(intent.sequence.number()),
            int(intent.event.number()),
            int(intent.work.number()),
            int(code::intent_kind(intent.kind)),
            int(intent.epoch.number()),
            maybe_int(intent.on_error.map(code::error_fallback)),
            int(code::intent_state(intent.state)),
            maybe_time(intent.state.due_at()),
            int(i64::from(intent.tries)),
            time(intent.created_at),
            maybe_text(intent.reason.as_deref()),
        ];
        self.db.write(&INSERT, &values, 1)
    }

    fn update_intent(&mut self, intent: &Intent, read: &Intent) -> Result<(), StoreError> {
        intent.check();
        let values = [
            int(read.execution.number()),
            int(read.sequence.number()),
            int(code::intent_state(read.state)),
            int(i64::from(read.tries)),
            int(code::intent_state(intent.state)),
            maybe_time(intent.state.due_at()),
            int(i64::from(intent.tries)),
            maybe_text(intent.reason.as_deref()),
        ];
        self.db.write(&UPDATE, &values, 1)?;
        if intent.state.as_str() == read.state.as_str() {
            return Ok(());
        }
        self.feed_run(read.execution)
    }
}

#[cfg(test)]
mod tests {
    use super::{DUE, NEXT};
    use crate::tables::plan::assert_uses;

    #[test]
    fn settled_intents_cost_nothing() {
        assert_uses(&DUE, "intent_due");
        assert_uses(&NEXT, "intent_due");
    }
}
