//! Works, their keys, and their places in the queues.

use domain::capacity::Blocker;
use domain::event::Key;
use domain::feed::Change;
use domain::id::{ExecutionId, Revision, Sequence, WorkId};
use domain::input::Input;
use domain::store::{StoreError, WorkFilter, WorkReads, WorkWrites};
use domain::text::ConcurrencyKey;
use domain::work::{Queue, Work, WorkState};

use super::code;
use super::list::List;
use super::standing::{Stored, hold, hold_columns};
use crate::db::{Columns, Sql, Value, int, limit, maybe_text, maybe_time, text, time};
use crate::tx::Transaction;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, scope, kind, lifecycle, state, execution, queue, blocker, queued_at, failures, ",
            "eligibility, failed, retry_at, next_trigger, wait, resumes, hold, hold_reason, held_at, let_through, ",
            "revision, attempts, created_at, ended_at, concurrency FROM work",
            $rest
        )
    };
}

static BY_ID: Sql = Sql::new("read a Work", "work", select!(" WHERE id = $1"));
static LIST: Sql = Sql::new("list Works", "work", select!(""));
static IDS: Sql = Sql::new(
    "list ids of Works",
    "work",
    "SELECT id FROM work WHERE id >= $1 AND id <= $2 ORDER BY id LIMIT $3",
);
static RUNNABLE: Sql = Sql::new(
    "find runnable Works",
    "work",
    "SELECT id FROM work WHERE queue = 1 ORDER BY queued_at, id LIMIT $1",
);
static COUNT_RUNNABLE: Sql = Sql::new(
    "count runnable Works",
    "work",
    "SELECT CAST(COUNT(*) AS BIGINT) FROM (SELECT 1 FROM work WHERE queue = 1 LIMIT $1) AS counted",
);
static BLOCKED: Sql = Sql::new(
    "find blocked Works",
    "work",
    "SELECT id FROM work WHERE queue = 2 AND blocker = $1 ORDER BY queued_at, id LIMIT $2",
);
// The scope is compared as an expression, so that the index of a scope's whole history is no candidate: what
// may have to be walked is what is runnable.
static BLOCK_RUNNABLE: Sql = Sql::new(
    "move runnable Works to what they wait for",
    "work",
    "UPDATE work SET queue = 2, blocker = $1, revision = revision + 1 WHERE id IN
     (SELECT id FROM work WHERE queue = 1 AND scope || '' = $2 ORDER BY queued_at, id LIMIT $3)",
);
static COUNT_BLOCKED: Sql = Sql::new(
    "count blocked Works",
    "work",
    "SELECT CAST(COUNT(*) AS BIGINT)
     FROM (SELECT 1 FROM work WHERE queue = 2 AND blocker = $1 LIMIT $2) AS counted",
);
// One step from reason to reason: a distinct list would walk every blocked Work.
static NEXT_BLOCKER: Sql = Sql::new(
    "find what Works wait for",
    "work",
    "SELECT blocker FROM work WHERE queue = 2 AND blocker > $1 ORDER BY blocker LIMIT 1",
);
static FAILED_TOO_OFTEN: Sql = Sql::new(
    "find Works that failed too often",
    "work",
    select!(" WHERE eligibility IN (4, 5) ORDER BY queued_at, id LIMIT $1"),
);
static HELD: Sql = Sql::new(
    "find Works that are held",
    "work",
    select!(" WHERE held_at IS NOT NULL ORDER BY held_at, id LIMIT $1"),
);
static INSERT: Sql = Sql::new(
    "create a Work",
    "work",
    "INSERT INTO work (id, scope, kind, lifecycle, state, execution, queue, blocker, queued_at, failures,
        eligibility, failed, retry_at, next_trigger, wait, resumes, hold, hold_reason, held_at, revision,
        attempts, created_at, ended_at, concurrency, let_through)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
        $22, $23, $24, $25)
     ON CONFLICT (id) DO NOTHING",
);
static UPDATE: Sql = Sql::new(
    "change a Work",
    "work",
    "UPDATE work SET state = $3, execution = $4, queue = $5, blocker = $6, queued_at = $7, revision = $8,
        attempts = $9, ended_at = $10, failures = $11, eligibility = $12, failed = $13, retry_at = $14,
        next_trigger = $15, wait = $16, resumes = $17, hold = $18, hold_reason = $19, held_at = $20,
        let_through = $21
     WHERE id = $1 AND revision = $2 AND state < 3",
);
// New input for a Work that runs or stands in a queue already: no index is touched.
static TOUCH: Sql = Sql::new(
    "change a Work's revision",
    "work",
    "UPDATE work SET revision = $3 WHERE id = $1 AND revision = $2 AND state < 3",
);
static KEY_OWNER: Sql = Sql::new(
    "find the owner of a key",
    "work_key",
    "SELECT work FROM work_key WHERE source = $1 AND external_id = $2",
);
static KEYS: Sql = Sql::new(
    "read the keys of a Work",
    "work_key",
    "SELECT source, external_id FROM work_key WHERE work = $1 ORDER BY source, external_id",
);
static ATTACH_KEY: Sql = Sql::new(
    "attach a key",
    "work_key",
    "INSERT INTO work_key (source, external_id, work) VALUES ($1, $2, $3)
     ON CONFLICT (source, external_id) DO NOTHING",
);

const IDLE: i64 = 0;
const RUNNABLE_QUEUE: i64 = 1;
const BLOCKED_QUEUE: i64 = 2;

fn decode(columns: &mut Columns<'_>) -> Result<Work, StoreError> {
    let id = WorkId::from_number(columns.int()?);
    let scope = columns.text()?;
    let kind = columns.text()?;
    let lifecycle = columns.word(code::lifecycle_of)?;
    let state = columns.int()?;
    let execution = columns.maybe_int()?.map(ExecutionId::from_number);
    let queue = columns.int()?;
    let blocker: Option<String> = columns.maybe_text()?;
    let queue = match (queue, blocker) {
        (IDLE, None) => Queue::Idle,
        (RUNNABLE_QUEUE, None) => Queue::Runnable,
        (BLOCKED_QUEUE, Some(blocker)) => {
            Queue::Blocked(Blocker::parse(&blocker).map_err(|error| columns.corrupt(error.to_string()))?)
        }
        _ => return Err(columns.corrupt("an unknown queue")),
    };
    let queued_at = columns.time()?;
    let failures = failures(columns)?;
    let mut stored = Stored::decode(columns)?;
    let state = match (state, execution, stored.wait) {
        (code::RUNNING, Some(execution), None) => WorkState::Running { execution },
        (code::WAITING, None, Some(wait)) => {
            stored.wait = None;
            WorkState::Waiting { wait }
        }
        (state, None, _) => {
            code::plain_work_state(state).ok_or_else(|| columns.corrupt("an unknown state"))?
        }
        (_, Some(_), _) => return Err(columns.corrupt("an Execution that is not running")),
    };
    let work = Work {
        id,
        scope,
        kind,
        lifecycle,
        state,
        queue,
        queued_at,
        failures,
        eligibility: stored.eligibility().ok_or_else(|| columns.corrupt("an unknown eligibility"))?,
        hold: hold(columns)?,
        let_through: columns.flag()?,
        revision: Revision::from_number(columns.int()?),
        attempts: columns.int()?,
        created_at: columns.time()?,
        ended_at: columns.maybe_time()?,
        concurrency: columns.maybe_text()?,
    };
    work.check();
    Ok(work)
}

fn failures(columns: &mut Columns<'_>) -> Result<u32, StoreError> {
    let number = columns.int()?;
    u32::try_from(number).map_err(|_large| columns.corrupt("a count of failures that is none"))
}

fn id(columns: &mut Columns<'_>) -> Result<WorkId, StoreError> {
    columns.int().map(WorkId::from_number)
}

/// The number and the blocker of a queue.
fn queue_columns(queue: &Queue) -> (i64, Option<String>) {
    match queue {
        Queue::Idle => (IDLE, None),
        Queue::Runnable => (RUNNABLE_QUEUE, None),
        Queue::Blocked(blocker) => (BLOCKED_QUEUE, Some(blocker.to_string())),
    }
}

fn execution_of(state: WorkState) -> Value<'static> {
    match state {
        WorkState::Running { execution } => int(execution.number()),
        WorkState::Ready
        | WorkState::Waiting { .. }
        | WorkState::Completed
        | WorkState::Failed
        | WorkState::Cancelled => Value::NullInt,
    }
}

/// Whether nothing but the revision differs.
fn only_touched(work: &Work, read: &Work) -> bool {
    work.state == read.state
        && work.queue == read.queue
        && work.queued_at == read.queued_at
        && work.failures == read.failures
        && work.eligibility == read.eligibility
        && work.hold == read.hold
        && work.let_through == read.let_through
        && work.attempts == read.attempts
        && work.ended_at == read.ended_at
}

impl WorkReads for Transaction<'_> {
    fn work(&mut self, id: WorkId) -> Result<Option<Work>, StoreError> {
        self.db.one(&BY_ID, &[int(id.number())], decode)
    }

    fn key_owner(&mut self, key: &Key) -> Result<Option<WorkId>, StoreError> {
        self.db.one(&KEY_OWNER, &[text(key.source.as_str()), text(key.external_id.as_str())], id)
    }

    fn keys_of(&mut self, work: WorkId) -> Result<Vec<Key>, StoreError> {
        self.db.many(&KEYS, &[int(work.number())], |columns| {
            Ok(Key { source: columns.text()?, external_id: columns.text()? })
        })
    }

    fn runnable(&mut self, rows: u32) -> Result<Vec<WorkId>, StoreError> {
        self.db.many(&RUNNABLE, &[limit(rows)], id)
    }

    fn blocked(&mut self, blocker: &Blocker, rows: u32) -> Result<Vec<WorkId>, StoreError> {
        self.db.many(&BLOCKED, &[text(&blocker.to_string()), limit(rows)], id)
    }

    fn blockers(&mut self, rows: u32) -> Result<Vec<(Blocker, u32)>, StoreError> {
        let mut found: Vec<(Blocker, u32)> = Vec::new();
        let mut last = String::new();
        while let Some(blocker) = self.db.one(&NEXT_BLOCKER, &[text(&last)], |columns| {
            let blocker: String = columns.text()?;
            Blocker::parse(&blocker).map_err(|error| columns.corrupt(error.to_string()))
        })? {
            last = blocker.to_string();
            let count = self.counted(&COUNT_BLOCKED, &[text(&last), limit(rows)])?;
            found.push((blocker, count));
        }
        Ok(found)
    }

    fn exhausted(&mut self, rows: u32) -> Result<Vec<Work>, StoreError> {
        self.db.many(&FAILED_TOO_OFTEN, &[limit(rows)], decode)
    }

    fn held(&mut self, rows: u32) -> Result<Vec<Work>, StoreError> {
        self.db.many(&HELD, &[limit(rows)], decode)
    }

    fn works(&mut self, filter: &WorkFilter, limit: u32) -> Result<Vec<Work>, StoreError> {
        let state = match filter.state.as_deref().map(code::work_state_word) {
            None => None,
            Some(None) => return Ok(Vec::new()),
            Some(Some(state)) => Some(int(state)),
        };
        let mut list = List::new(LIST.text);
        list.only("scope = $n", filter.scope.as_ref().map(|scope| text(scope.as_str())));
        list.only("kind = $n", filter.kind.as_ref().map(|kind| text(kind.as_str())));
        list.only("state = $n", state);
        list.only_pair(
            "id IN (SELECT work FROM work_key WHERE source = $m AND external_id = $n)",
            filter.key.as_ref().map(|key| (text(key.source.as_str()), text(key.external_id.as_str()))),
        );
        list.only("id < $n", filter.before.map(|before| int(before.number())));
        let (query, values) = list.ordered("id DESC", limit);
        self.db.listed(&LIST, &query, &values, decode)
    }

    fn work_ids(&mut self, low: WorkId, high: WorkId, rows: u32) -> Result<Vec<WorkId>, StoreError> {
        self.db.many(&IDS, &[int(low.number()), int(high.number()), limit(rows)], id)
    }

    fn pending_inputs(&mut self, work: WorkId, rows: u32) -> Result<Vec<Input>, StoreError> {
        self.pending(work, rows)
    }

    fn inputs_of(
        &mut self,
        execution: ExecutionId,
        after: Sequence,
        rows: u32,
    ) -> Result<Vec<Input>, StoreError> {
        self.consumed(execution, after, rows)
    }

    fn batch_of(
        &mut self,
        execution: ExecutionId,
        turn: i64,
        after: Sequence,
        rows: u32,
    ) -> Result<Vec<Input>, StoreError> {
        self.batch(execution, turn, after, rows)
    }

    fn last_input_of(&mut self, execution: ExecutionId) -> Result<Option<Sequence>, StoreError> {
        self.last_consumed(execution)
    }

    fn input(&mut self, work: WorkId, sequence: Sequence) -> Result<Option<Input>, StoreError> {
        self.input_at(work, sequence)
    }

    fn count_runnable(&mut self, rows: u32) -> Result<u32, StoreError> {
        self.counted(&COUNT_RUNNABLE, &[limit(rows)])
    }
}

impl WorkWrites for Transaction<'_> {
    fn insert_work(&mut self, work: &Work) -> Result<(), StoreError> {
        work.check();
        let (queue, blocker) = queue_columns(&work.queue);
        let [eligibility, failed, retry_at, next_trigger, wait, resumes] = Stored::of(work).columns();
        let [hold, hold_reason, held_at] = hold_columns(work.hold.as_ref());
        self.db.write(
            &INSERT,
            &[
                int(work.id.number()),
                text(work.scope.as_str()),
                text(work.kind.as_str()),
                int(code::lifecycle(work.lifecycle)),
                int(code::work_state(work.state)),
                execution_of(work.state),
                int(queue),
                maybe_text(blocker.as_deref()),
                time(work.queued_at),
                int(i64::from(work.failures)),
                eligibility,
                failed,
                retry_at,
                next_trigger,
                wait,
                resumes,
                hold,
                hold_reason,
                held_at,
                int(work.revision.number()),
                int(work.attempts),
                time(work.created_at),
                maybe_time(work.ended_at),
                maybe_text(work.concurrency.as_ref().map(ConcurrencyKey::as_str)),
                int(i64::from(work.let_through)),
            ],
            1,
        )?;
        self.feed(Change::Work { id: work.id, state: work.state })
    }

    fn update_work(&mut self, work: &Work, read: &Work) -> Result<(), StoreError> {
        work.check();
        // The row is the one that was read; a next value for another one finds nothing.
        let (id, was) = (int(read.id.number()), int(read.revision.number()));
        let revision = int(work.revision.number());
        if only_touched(work, read) {
            return self.db.write(&TOUCH, &[id, was, revision], 1);
        }
        let (queue, blocker) = queue_columns(&work.queue);
        let [eligibility, failed, retry_at, next_trigger, wait, resumes] = Stored::of(work).columns();
        let [hold, hold_reason, held_at] = hold_columns(work.hold.as_ref());
        self.db.write(
            &UPDATE,
            &[
                id,
                was,
                int(code::work_state(work.state)),
                execution_of(work.state),
                int(queue),
                maybe_text(blocker.as_deref()),
                time(work.queued_at),
                revision,
                int(work.attempts),
                maybe_time(work.ended_at),
                int(i64::from(work.failures)),
                eligibility,
                failed,
                retry_at,
                next_trigger,
                wait,
                resumes,
                hold,
                hold_reason,
                held_at,
                int(i64::from(work.let_through)),
            ],
            1,
        )?;
        if !work.shows_more_than(read) {
            return Ok(());
        }
        self.feed(Change::Work { id: work.id, state: work.state })
    }

    fn block_runnable(&mut self, first: &Work, blocker: &Blocker, rows: u32) -> Result<u64, StoreError> {
        let blocker = blocker.to_string();
        let values = [text(&blocker), text(first.scope.as_str()), limit(rows)];
        let moved = self.db.count(&BLOCK_RUNNABLE, &values)?;
        if moved > 0 {
            self.feed(Change::Work { id: first.id, state: first.state })?;
        }
        Ok(moved)
    }

    fn attach_key(&mut self, key: &Key, work: WorkId) -> Result<(), StoreError> {
        let values = [text(key.source.as_str()), text(key.external_id.as_str()), int(work.number())];
        self.db.write(&ATTACH_KEY, &values, 1)
    }

    fn insert_input(&mut self, input: &Input) -> Result<(), StoreError> {
        self.add_input(input)
    }

    fn consume_inputs(
        &mut self,
        work: WorkId,
        until: Sequence,
        execution: ExecutionId,
    ) -> Result<u64, StoreError> {
        self.consume(work, until, execution)
    }

    fn consume_input(
        &mut self,
        work: WorkId,
        sequence: Sequence,
        execution: ExecutionId,
    ) -> Result<bool, StoreError> {
        self.consume_one(work, sequence, execution)
    }

    fn consume_batch(
        &mut self,
        work: WorkId,
        until: Sequence,
        execution: ExecutionId,
        turn: i64,
    ) -> Result<u64, StoreError> {
        self.consume_for_turn(work, until, execution, turn)
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK_RUNNABLE, BLOCKED, COUNT_RUNNABLE, FAILED_TOO_OFTEN, HELD, NEXT_BLOCKER, RUNNABLE};
    use crate::tables::plan::assert_uses;

    #[test]
    fn works_that_are_not_due_cost_nothing() {
        assert_uses(&BLOCK_RUNNABLE, "work_runnable");
        assert_uses(&RUNNABLE, "work_runnable");
        assert_uses(&COUNT_RUNNABLE, "work_runnable");
        assert_uses(&BLOCKED, "work_blocked");
        assert_uses(&NEXT_BLOCKER, "work_blocked");
        assert_uses(&FAILED_TOO_OFTEN, "work_exhausted");
        assert_uses(&HELD, "work_held");
    }
}
