//! Timers: only those to come.

use domain::id::{ExecutionId, TimerId, WaitId, WorkId};
use domain::store::{StoreError, TimerReads, TimerWrites};
use domain::time::Timestamp;
use domain::timer::{Timer, TimerKind};

use crate::db::{self, Columns, Sql, Value, int, limit, text, time};
use crate::tx::Transaction;

macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT id, kind, scope, work, execution, wait, armed_at, due_at FROM timer", $rest)
    };
}

static DUE: Sql = Sql::new(
    "find timers that are due",
    "timer",
    select!(" WHERE due_at <= $1 ORDER BY due_at, id LIMIT $2"),
);
static NEXT: Sql =
    Sql::new("find when the next timer is due", "timer", "SELECT due_at FROM timer ORDER BY due_at LIMIT 1");
static OF_WORK: Sql =
    Sql::new("read the timers of a Work", "timer", select!(" WHERE work = $1 ORDER BY due_at, id LIMIT $2"));
static LIST: Sql = Sql::new(
    "list timers",
    "timer",
    select!(" WHERE due_at >= $1 AND (due_at > $1 OR id > $2) ORDER BY due_at, id LIMIT $3"),
);
static INSERT: Sql = Sql::new(
    "arm a timer",
    "timer",
    "INSERT INTO timer (id, kind, scope, work, execution, wait, armed_at, due_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (id) DO NOTHING",
);
static REARM: Sql =
    Sql::new("move a timer", "timer", "UPDATE timer SET armed_at = $2, due_at = $3 WHERE id = $1");
static DELETE: Sql = Sql::new("remove a timer", "timer", "DELETE FROM timer WHERE id = $1");
static DELETE_OF: Sql = Sql::new("remove the timers of a Work", "timer", "DELETE FROM timer WHERE work = $1");

const RETRY: i64 = 0;
const WAIT: i64 = 1;
const BUDGET_WINDOW: i64 = 2;

fn decode(columns: &mut Columns<'_>) -> Result<Timer, StoreError> {
    let id = TimerId::from_number(columns.int()?);
    let kind = columns.int()?;
    let scope = columns.text()?;
    let work = WorkId::from_number(columns.int()?);
    let execution = columns.maybe_int()?.map(ExecutionId::from_number);
    let wait = columns.maybe_int()?.map(WaitId::from_number);
    let kind = match (kind, execution, wait) {
        (RETRY, Some(failed), None) => TimerKind::Retry { failed },
        (WAIT, None, Some(wait)) => TimerKind::Wait { wait },
        (BUDGET_WINDOW, None, None) => TimerKind::BudgetWindow,
        _ => return Err(columns.corrupt("an unknown kind")),
    };
    Ok(Timer { id, kind, scope, work, armed_at: columns.time()?, due_at: columns.time()? })
}

fn kind_columns(kind: TimerKind) -> (Value<'static>, Value<'static>, Value<'static>) {
    match kind {
        TimerKind::Retry { failed } => (int(RETRY), int(failed.number()), Value::NullInt),
        TimerKind::Wait { wait } => (int(WAIT), Value::NullInt, int(wait.number())),
        TimerKind::BudgetWindow => (int(BUDGET_WINDOW), Value::NullInt, Value::NullInt),
    }
}

impl TimerReads for Transaction<'_> {
    fn due_timers(&mut self, now: Timestamp, rows: u32) -> Result<Vec<Timer>, StoreError> {
        self.db.many(&DUE, &[time(now), limit(rows)], decode)
    }

    fn next_timer_due(&mut self) -> Result<Option<Timestamp>, StoreError> {
        self.db.one(&NEXT, &[], db::moment)
    }

    fn timers_of(&mut self, work: WorkId, rows: u32) -> Result<Vec<Timer>, StoreError> {
        self.db.many(&OF_WORK, &[int(work.number()), limit(rows)], decode)
    }

    fn timers(&mut self, after: Option<(Timestamp, TimerId)>, rows: u32) -> Result<Vec<Timer>, StoreError> {
        let (due_at, id) =
            after.unwrap_or((Timestamp::from_micros(i64::MIN), TimerId::from_number(i64::MIN)));
        self.db.many(&LIST, &[time(due_at), int(id.number()), limit(rows)], decode)
    }
}

impl TimerWrites for Transaction<'_> {
    fn insert_timer(&mut self, timer: &Timer) -> Result<(), StoreError> {
        let (kind, execution, wait) = kind_columns(timer.kind);
        let values = [
            int(timer.id.number()),
            kind,
            text(timer.scope.as_str()),
            int(timer.work.number()),
            execution,
            wait,
            time(timer.armed_at),
            time(timer.due_at),
        ];
        self.db.write(&INSERT, &values, 1)
    }

    fn rearm_timer(&mut self, timer: &Timer) -> Result<bool, StoreError> {
        let values = [int(timer.id.number()), time(timer.armed_at), time(timer.due_at)];
        Ok(self.db.count(&REARM, &values)? > 0)
    }

    fn delete_timer(&mut self, id: TimerId) -> Result<bool, StoreError> {
        Ok(self.db.count(&DELETE, &[int(id.number())])? > 0)
    }

    fn delete_timers_of(&mut self, work: WorkId) -> Result<u64, StoreError> {
        self.db.count(&DELETE_OF, &[int(work.number())])
    }
}

#[cfg(test)]
mod tests {
    use super::{DELETE_OF, DUE, LIST, NEXT, OF_WORK};
    use crate::tables::plan::assert_uses;

    #[test]
    fn timers_to_come_cost_nothing() {
        assert_uses(&DUE, "timer_due");
        assert_uses(&NEXT, "timer_due");
        assert_uses(&LIST, "timer_due");
        assert_uses(&OF_WORK, "timer_work");
        assert_uses(&DELETE_OF, "timer_work");
    }
}
