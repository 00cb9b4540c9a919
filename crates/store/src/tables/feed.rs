//! The change feed: one row for each Event and each transition, written beside what it reports.

use domain::feed::{Change, FeedRow};
use domain::id::{EventId, ExecutionId, Sequence, WaitId, WorkId};
use domain::store::{ExecutionReads as _, FeedReads, FeedWrites, Snapshot, StoreError, Tx};
use domain::time::Timestamp;
use domain::work::WorkState;

use super::code;
use crate::db::{self, Columns, Sql, Value, int, limit, maybe_int, time};
use crate::tx::Transaction;

// One statement for as many rows as a request has told, up to four: each statement costs its own time.
static INSERT: [Sql; 4] = [
    Sql::new(
        "write a row of the feed",
        "feed",
        "INSERT INTO feed (sequence, at, kind, a, b, from_state, to_state) VALUES ($1, $2, $3, $4, $5, $6, $7)",
    ),
    Sql::new(
        "write two rows of the feed",
        "feed",
        "INSERT INTO feed (sequence, at, kind, a, b, from_state, to_state) VALUES ($1, $2, $3, $4, $5, $6, $7),
         ($8, $9, $10, $11, $12, $13, $14)",
    ),
    Sql::new(
        "write three rows of the feed",
        "feed",
        "INSERT INTO feed (sequence, at, kind, a, b, from_state, to_state) VALUES ($1, $2, $3, $4, $5, $6, $7),
         ($8, $9, $10, $11, $12, $13, $14), ($15, $16, $17, $18, $19, $20, $21)",
    ),
    Sql::new(
        "write four rows of the feed",
        "feed",
        "INSERT INTO feed (sequence, at, kind, a, b, from_state, to_state) VALUES ($1, $2, $3, $4, $5, $6, $7),
         ($8, $9, $10, $11, $12, $13, $14), ($15, $16, $17, $18, $19, $20, $21),
         ($22, $23, $24, $25, $26, $27, $28)",
    ),
];
static AFTER: Sql = Sql::new(
    "read the feed",
    "feed",
    "SELECT sequence, at, kind, a, b, from_state, to_state FROM feed WHERE sequence > $1
     ORDER BY sequence LIMIT $2",
);
static FIRST: Sql =
    Sql::new("find the feed's first row", "feed", "SELECT sequence FROM feed ORDER BY sequence LIMIT 1");
static LAST: Sql =
    Sql::new("find the feed's last row", "feed", "SELECT sequence FROM feed ORDER BY sequence DESC LIMIT 1");
// From the front only: rows stand in the order of time, unless the clock once stepped back.
static PRUNE: Sql = Sql::new(
    "prune the feed",
    "feed",
    "DELETE FROM feed WHERE at < $1
     AND sequence IN (SELECT sequence FROM feed ORDER BY sequence LIMIT $2)",
);

const EVENT: i64 = 0;
const CHECKPOINT: i64 = 1;
const WORK: i64 = 2;
const EXECUTION: i64 = 3;

/// A change as the row has it.
struct Columned {
    kind: i64,
    a: i64,
    b: Option<i64>,
    from: Option<i64>,
    to: Option<i64>,
}

fn encode(change: Change) -> Columned {
    match change {
        Change::Event { id } => Columned { kind: EVENT, a: id.number(), b: None, from: None, to: None },
        Change::Checkpoint { event, outcome } => Columned {
            kind: CHECKPOINT,
            a: event.number(),
            b: None,
            from: None,
            to: Some(code::checkpoint_outcome(outcome)),
        },
        Change::Work { id, state } => Columned {
            kind: WORK,
            a: id.number(),
            b: match state {
                WorkState::Running { execution } => Some(execution.number()),
                WorkState::Waiting { wait } => Some(wait.number()),
                WorkState::Ready | WorkState::Completed | WorkState::Failed | WorkState::Cancelled => None,
            },
            from: None,
            to: Some(code::work_state(state)),
        },
        Change::Execution { id, work, from, to } => Columned {
            kind: EXECUTION,
            a: id.number(),
            b: Some(work.number()),
            from: from.map(code::execution_state),
            to: Some(code::execution_state(to)),
        },
    }
}

fn decode(columns: &mut Columns<'_>) -> Result<FeedRow, StoreError> {
    let sequence = Sequence::from_number(columns.int()?);
    let at = columns.time()?;
    let kind = columns.int()?;
    let a = columns.int()?;
    let b = columns.maybe_int()?;
    let (event, execution) = (EventId::from_number(a), ExecutionId::from_number(a));
    let change = match (kind, b) {
        (EVENT, None) => Change::Event { id: event },
        (CHECKPOINT, None) => {
            columns.maybe_int()?;
            Change::Checkpoint { event, outcome: columns.word(code::checkpoint_outcome_of)? }
        }
        (WORK, named) => {
            columns.maybe_int()?;
            let state = match (columns.int()?, named) {
                (code::RUNNING, Some(id)) => WorkState::Running { execution: ExecutionId::from_number(id) },
                (code::WAITING, Some(id)) => WorkState::Waiting { wait: WaitId::from_number(id) },
                (state, None) => {
                    code::plain_work_state(state).ok_or_else(|| columns.corrupt("an unknown state"))?
                }
                (_, Some(_)) => return Err(columns.corrupt("a state that names nothing")),
            };
            Change::Work { id: WorkId::from_number(a), state }
        }
        (EXECUTION, Some(work)) => Change::Execution {
            id: execution,
            work: WorkId::from_number(work),
            from: columns.maybe_word(code::execution_state_of)?,
            to: columns.word(code::execution_state_of)?,
        },
        _ => return Err(columns.corrupt("an unknown kind of change")),
    };
    Ok(FeedRow { sequence, at, change })
}

impl Transaction<'_> {
    /// Writes a change's row at the next sequence, and notes it for observers.
    pub(super) fn feed(&mut self, change: Change) -> Result<(), StoreError> {
        let sequence = self.next_sequence();
        self.feed_as(sequence, change)
    }

    /// Writes a change's row at a sequence that was taken for it, and notes it for observers. The row is there at the
    /// end of the request, or when the feed is read within it.
    pub(super) fn feed_as(&mut self, sequence: Sequence, change: Change) -> Result<(), StoreError> {
        let Columned { kind, a, b, from, to } = encode(change);
        let at = self.now().as_micros();
        self.untold.push([Some(sequence.number()), Some(at), Some(kind), Some(a), b, from, to]);
        self.changed(change);
        if self.untold.len() < INSERT.len() { Ok(()) } else { self.tell() }
    }

    /// Writes the rows that are not written yet.
    pub(crate) fn tell(&mut self) -> Result<(), StoreError> {
        let rows = std::mem::take(&mut self.untold);
        let Some(sql) = rows.len().checked_sub(1).map(|last| &INSERT[last]) else { return Ok(()) };
        let mut values = [const { Value::NullInt }; 28];
        for (value, cell) in values.iter_mut().zip(rows.iter().flatten()) {
            *value = maybe_int(*cell);
        }
        self.db.write(sql, &values[..rows.len() * 7], rows.len() as u64)
    }

    /// Writes the row of a run of which something changed that is not its state: an intent, a step it told.
    pub(super) fn feed_run(&mut self, id: ExecutionId) -> Result<(), StoreError> {
        let Some(execution) = self.execution(id)? else { return Ok(()) };
        let (work, state) = (execution.work, execution.state);
        self.feed(Change::Execution { id, work, from: Some(state), to: state })
    }
}

impl FeedReads for Transaction<'_> {
    fn feed_after(&mut self, after: Sequence, rows: u32) -> Result<Vec<FeedRow>, StoreError> {
        self.tell()?;
        self.db.many(&AFTER, &[int(after.number()), limit(rows)], decode)
    }

    fn feed_bounds(&mut self) -> Result<Option<(Sequence, Sequence)>, StoreError> {
        self.tell()?;
        let first = self.db.one(&FIRST, &[], db::number)?;
        let last = self.db.one(&LAST, &[], db::number)?;
        let bounds = first.zip(last);
        Ok(bounds.map(|(first, last)| (Sequence::from_number(first), Sequence::from_number(last))))
    }
}

impl FeedWrites for Transaction<'_> {
    fn prune_feed(&mut self, before: Timestamp, rows: u32) -> Result<u64, StoreError> {
        self.tell()?;
        self.db.count(&PRUNE, &[time(before), limit(rows)])
    }
}
