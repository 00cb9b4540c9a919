//! Waits, to come and past.

use domain::event::Key;
use domain::id::{EventId, ExecutionId, Sequence, TimerId, WaitId, WorkId};
use domain::store::{StoreError, WaitFilter, WaitReads, WaitWrites};
use domain::text::EventType;
use domain::wait::{Timeout, Wait, WaitState};

use super::list::List;
use crate::db::{Columns, Sql, Value, int, limit, maybe_int, maybe_time, text, time};
use crate::tx::Transaction;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, work, scope, execution, keys, types, after_sequence, timer, timeout_at, registered_at, ",
            "state, winner, winner_sequence, ended_at FROM wait",
            $rest
        )
    };
}

static BY_ID: Sql = Sql::new("read a Wait", "wait", select!(" WHERE id = $1"));
static ACTIVE: Sql =
    Sql::new("read what a Work waits for", "wait", select!(" WHERE work = $1 AND state = 0"));
static LIST: Sql = Sql::new("list Waits", "wait", select!(""));
static COUNT: Sql = Sql::new(
    "count Waits",
    "wait",
    "SELECT CAST(COUNT(*) AS BIGINT) FROM (SELECT 1 FROM wait WHERE state = 0 LIMIT $1) AS counted",
);
static INSERT: Sql = Sql::new(
    "register a Wait",
    "wait",
    "INSERT INTO wait (id, work, scope, execution, keys, types, after_sequence, timer, timeout_at,
        registered_at, state, winner, winner_sequence, ended_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) ON CONFLICT DO NOTHING",
);
static END: Sql = Sql::new(
    "end a Wait",
    "wait",
    "UPDATE wait SET state = $2, winner = $3, winner_sequence = $4, ended_at = $5 WHERE id = $1 AND state = 0",
);

const ACTIVE_STATE: i64 = 0;
const WOKEN: i64 = 1;
const CANCELLED: i64 = 2;

fn keys(columns: &mut Columns<'_>) -> Result<Vec<Key>, StoreError> {
    let json: String = columns.text()?;
    // The error of the decoder would repeat what it read.
    serde_json::from_str(&json).map_err(|_source| columns.corrupt("keys that are none"))
}

fn types(columns: &mut Columns<'_>) -> Result<Vec<EventType>, StoreError> {
    let json: String = columns.text()?;
    serde_json::from_str(&json).map_err(|_source| columns.corrupt("types that are none"))
}

fn decode(columns: &mut Columns<'_>) -> Result<Wait, StoreError> {
    Ok(Wait {
        id: WaitId::from_number(columns.int()?),
        work: WorkId::from_number(columns.int()?),
        scope: columns.text()?,
        execution: ExecutionId::from_number(columns.int()?),
        keys: keys(columns)?,
        types: types(columns)?,
        after: Sequence::from_number(columns.int()?),
        timeout: match (columns.maybe_int()?, columns.maybe_time()?) {
            (Some(timer), Some(due_at)) => Some(Timeout { timer: TimerId::from_number(timer), due_at }),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => return Err(columns.corrupt("half a timeout")),
        },
        registered_at: columns.time()?,
        state: state(columns)?,
    })
}

fn state(columns: &mut Columns<'_>) -> Result<WaitState, StoreError> {
    let word = columns.int()?;
    let winner = columns.maybe_int()?.map(EventId::from_number);
    let sequence = columns.maybe_int()?.map(Sequence::from_number);
    match (word, winner, sequence, columns.maybe_time()?) {
        (ACTIVE_STATE, None, None, None) => Ok(WaitState::Active),
        (WOKEN, Some(winner), Some(sequence), Some(at)) => Ok(WaitState::Woken { winner, sequence, at }),
        (CANCELLED, None, None, Some(at)) => Ok(WaitState::Cancelled { at }),
        _ => Err(columns.corrupt("an unknown state")),
    }
}

fn state_columns(state: WaitState) -> [Value<'static>; 4] {
    let (word, winner, at) = match state {
        WaitState::Active => (ACTIVE_STATE, None, None),
        WaitState::Woken { winner, sequence, at } => (WOKEN, Some((winner, sequence)), Some(at)),
        WaitState::Cancelled { at } => (CANCELLED, None, Some(at)),
    };
    [
        int(word),
        maybe_int(winner.map(|(winner, _sequence)| winner.number())),
        maybe_int(winner.map(|(_winner, sequence)| sequence.number())),
        maybe_time(at),
    ]
}

/// A list of Waits, newest first, as a filter narrows it.
fn narrowed<'f>(select: &str, filter: &'f WaitFilter, rows: u32) -> (String, Vec<Value<'f>>) {
    let mut list = List::new(select);
    list.fixed(filter.active.then_some("state = 0"));
    list.only("scope = $n", filter.scope.as_ref().map(|scope| text(scope.as_str())));
    list.only("work = $n", filter.work.map(|work| int(work.number())));
    list.only_pair(
        "work IN (SELECT work FROM work_key WHERE source = $m AND external_id = $n)",
        filter.key.as_ref().map(|key| (text(key.source.as_str()), text(key.external_id.as_str()))),
    );
    list.only("id < $n", filter.before.map(|before| int(before.number())));
    list.ordered("id DESC", rows)
}

impl WaitReads for Transaction<'_> {
    fn wait(&mut self, id: WaitId) -> Result<Option<Wait>, StoreError> {
        self.db.one(&BY_ID, &[int(id.number())], decode)
    }

    fn active_wait(&mut self, work: WorkId) -> Result<Option<Wait>, StoreError> {
        self.db.one(&ACTIVE, &[int(work.number())], decode)
    }

    fn waits(&mut self, filter: &WaitFilter, limit: u32) -> Result<Vec<Wait>, StoreError> {
        let (query, values) = narrowed(LIST.text, filter, limit);
        self.db.listed(&LIST, &query, &values, decode)
    }

    fn count_waits(&mut self, rows: u32) -> Result<u32, StoreError> {
        self.counted(&COUNT, &[limit(rows)])
    }
}

impl WaitWrites for Transaction<'_> {
    fn insert_wait(&mut self, wait: &Wait) -> Result<(), StoreError> {
        let [state, winner, sequence, ended_at] = state_columns(wait.state);
        let keys = serde_json::to_string(&wait.keys).expect("keys are plain text");
        let types = serde_json::to_string(&wait.types).expect("types are plain text");
        self.db.write(
            &INSERT,
            &[
                int(wait.id.number()),
                int(wait.work.number()),
                text(wait.scope.as_str()),
                int(wait.execution.number()),
                text(&keys),
                text(&types),
                int(wait.after.number()),
                maybe_int(wait.timeout.map(|timeout| timeout.timer.number())),
                maybe_time(wait.timeout.map(|timeout| timeout.due_at)),
                time(wait.registered_at),
                state,
                winner,
                sequence,
                ended_at,
            ],
            1,
        )
    }

    fn end_wait(&mut self, wait: &Wait) -> Result<(), StoreError> {
        let [state, winner, sequence, ended_at] = state_columns(wait.state);
        self.db.write(&END, &[int(wait.id.number()), state, winner, sequence, ended_at], 1)
    }
}

#[cfg(test)]
mod tests {
    use domain::id::WorkId;
    use domain::store::WaitFilter;

    use super::{ACTIVE, COUNT, narrowed};
    use crate::tables::plan::{assert_text_uses, assert_uses};

    #[test]
    fn waits_that_ended_cost_nothing() {
        assert_uses(&ACTIVE, "wait_active");
        assert_uses(&COUNT, "wait_open");
        let active = WaitFilter { active: true, ..WaitFilter::default() };
        assert_text_uses(&narrowed("SELECT id FROM wait", &active, 9).0, "wait_open");
        let of_work = WaitFilter { work: Some(WorkId::from_number(1)), ..WaitFilter::default() };
        assert_text_uses(&narrowed("SELECT id FROM wait", &of_work, 9).0, "wait_work");
    }
}
