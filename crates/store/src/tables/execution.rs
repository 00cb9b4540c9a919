//! Executions, their leases and their results.

use std::sync::Arc;
use std::time::Duration;

use domain::execution::{Execution, Handle, Turn};
use domain::feed::Change;
use domain::id::{Attempt, Epoch, EventId, ExecutionId, Generation, Incarnation, Sequence, WorkId};
use domain::lease::Lease;
use domain::outcome::TurnResult;
use domain::retention::Content;
use domain::store::{ExecutionFilter, ExecutionReads, ExecutionWrites, Outline, StoreError, Stranded};
use domain::text::{CredentialName, ScopeName};
use domain::time::Timestamp;
use domain::toolbelt::{Declared, TokenDigest, Toolbelt};
use domain::workspace::Workspace;

use super::code;
use super::list::List;
use super::outline;
use crate::db::{
    self, Columns, Sql, Value, blob, int, limit, maybe_blob, maybe_int, maybe_text, maybe_time, text, time,
};
use crate::tx::Transaction;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, work, scope, attempt, state, epoch, lease_owner, lease_until, recovering, trigger, ",
            "trigger_sequence, retry_of, binding, executor, generation, timeout, deadline_at, handle, turn, ",
            "cause, used, resumed_by, session, outcome, claimed_at, started_at, ended_at, unstopped, controls, ",
            "interrupted_by, token, declared, let_through, reports, credential, content, workspace FROM execution",
            $rest
        )
    };
}

static BY_ID: Sql = Sql::new("read an Execution", "execution", select!(" WHERE id = $1"));
static LIST: Sql = Sql::new("list Executions", "execution", select!(""));
static IDS: Sql = Sql::new(
    "list ids of Executions",
    "execution",
    "SELECT id FROM execution WHERE id >= $1 AND id <= $2 ORDER BY id LIMIT $3",
);
static COUNT_LIVE: Sql = Sql::new(
    "count live Executions",
    "execution",
    "SELECT CAST(COUNT(*) AS BIGINT)
     FROM (SELECT 1 FROM execution WHERE scope = $1 AND state < 3 LIMIT $2) AS counted",
);
static EXPIRED: Sql = Sql::new(
    "find expired leases",
    "execution",
    select!(
        " WHERE host = $1 AND state < 3 AND outcome IS NULL AND lease_until <= $2
         ORDER BY lease_until, id LIMIT $3"
    ),
);
static NEXT_EXPIRY: Sql = Sql::new(
    "find the next lease to expire",
    "execution",
    "SELECT lease_until FROM execution
     WHERE host = $1 AND state < 3 AND outcome IS NULL AND lease_until IS NOT NULL
     ORDER BY lease_until LIMIT 1",
);
static STRANDED: Sql = Sql::new(
    "find Executions of silent hosts",
    "execution",
    "SELECT execution.id, COALESCE(host.label, 'a host without a name'), lease_until
     FROM execution LEFT JOIN host ON host.number = execution.host
     WHERE execution.host <> $1 AND state < 3 AND outcome IS NULL AND lease_until <= $2
     ORDER BY execution.host, lease_until, execution.id LIMIT $3",
);
static UNSETTLED: Sql = Sql::new(
    "find Executions to settle",
    "execution",
    select!(" WHERE state < 4 AND outcome IS NOT NULL AND id > $1 ORDER BY id LIMIT $2"),
);
static UNSTOPPED: Sql = Sql::new(
    "find Executions to stop",
    "execution",
    select!(" WHERE host = $1 AND unstopped = 1 AND id > $2 ORDER BY id LIMIT $3"),
);
static RELEASING: Sql = Sql::new(
    "find content to remove",
    "execution",
    select!(" WHERE host = $1 AND content = 1 AND id > $2 ORDER BY id LIMIT $3"),
);
static ENDED_SINCE: Sql = Sql::new(
    "find Executions that ended lately",
    "execution",
    select!(" WHERE ended_at IS NOT NULL AND ended_at >= $1 ORDER BY ended_at DESC, id DESC LIMIT $2"),
);
static INSERT: Sql = Sql::new(
    "claim an Execution",
    "execution",
    "INSERT INTO execution (id, work, scope, attempt, state, epoch, lease_owner, lease_until, recovering,
        trigger, trigger_sequence, retry_of, binding, executor, generation, timeout, deadline_at, handle,
        turn, cause, used, resumed_by, session, outcome, claimed_at, started_at, ended_at, unstopped, host,
        controls, interrupted_by, token, declared, let_through, reports, credential, workspace)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
        $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37)
     ON CONFLICT DO NOTHING",
);
static UPDATE: Sql = Sql::new(
    "change an Execution",
    "execution",
    "UPDATE execution SET state = $3, epoch = $4, lease_owner = $5, lease_until = $6, recovering = $7,
        deadline_at = $8, handle = $9, outcome = $10, started_at = $11, ended_at = $12,
        unstopped = $13, interrupted_by = $14, token = $15, declared = $16, workspace = $17
     WHERE id = $1 AND epoch = $2 AND state < 4",
);
// The end of a turn in a Wait, and the beginning of the next, which may be on another host.
static TURN: Sql = Sql::new(
    "change the turn of an Execution",
    "execution",
    "UPDATE execution SET turn = $3, cause = $4, used = $5, resumed_by = $6, session = $7, host = $8,
        let_through = $9, reports = $10
     WHERE id = $1 AND epoch = $2 AND state < 4",
);
// A renewal, the most frequent change of all: it touches one index.
static RENEW: Sql = Sql::new(
    "renew a lease",
    "execution",
    "UPDATE execution SET lease_owner = $3, lease_until = $4 WHERE id = $1 AND epoch = $2 AND state < 4",
);
static STOPPED: Sql = Sql::new(
    "note that an Execution stopped",
    "execution",
    "UPDATE execution SET unstopped = 0 WHERE id = $1 AND unstopped = 1",
);
static RESULT: Sql =
    Sql::new("read a result", "turn_result", "SELECT body FROM turn_result WHERE execution = $1");
static INSERT_RESULT: Sql = Sql::new(
    "keep a result",
    "turn_result",
    "INSERT INTO turn_result (execution, body) VALUES ($1, $2) ON CONFLICT (execution) DO NOTHING",
);

static REPLACE_RESULT: Sql =
    Sql::new("replace a result", "turn_result", "UPDATE turn_result SET body = $2 WHERE execution = $1");

fn decode(columns: &mut Columns<'_>) -> Result<Execution, StoreError> {
    let mut execution = Execution {
        id: ExecutionId::from_number(columns.int()?),
        work: WorkId::from_number(columns.int()?),
        scope: columns.text()?,
        attempt: Attempt::from_number(columns.int()?),
        state: columns.word(code::execution_state_of)?,
        epoch: Epoch::from_number(columns.int()?),
        lease: match (columns.maybe_int()?, columns.maybe_time()?) {
            (Some(owner), Some(until)) => Some(Lease { owner: Incarnation::from_number(owner), until }),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => return Err(columns.corrupt("half a lease")),
        },
        recovering: columns.flag()?,
        trigger: EventId::from_number(columns.int()?),
        trigger_sequence: Sequence::from_number(columns.int()?),
        retry_of: columns.maybe_int()?.map(ExecutionId::from_number),
        binding: columns.text()?,
        executor: columns.text()?,
        generation: Generation::from_number(columns.int()?),
        timeout: match u64::try_from(columns.int()?) {
            Ok(micros) => Duration::from_micros(micros),
            Err(_negative) => return Err(columns.corrupt("a negative timeout")),
        },
        deadline_at: columns.maybe_time()?,
        handle: match columns.maybe_blob()? {
            None => None,
            Some(bytes) => Some(Handle::new(bytes).ok_or_else(|| columns.corrupt("a handle too long"))?),
        },
        turn: Turn {
            number: columns.int()?,
            cause: EventId::from_number(columns.int()?),
            used: match u64::try_from(columns.int()?) {
                Ok(micros) => Duration::from_micros(micros),
                Err(_negative) => return Err(columns.corrupt("a negative time")),
            },
            resumed_by: columns.maybe_int()?.map(EventId::from_number),
            session: match columns.maybe_blob()? {
                None => None,
                Some(bytes) => Some(Handle::new(bytes).ok_or_else(|| columns.corrupt("a session too long"))?),
            },
            let_through: false,
            reports: 0,
        },
        credential: None,
        content: Content::Kept,
        workspace: None,
        outcome: columns.maybe_word(code::outcome_of)?,
        claimed_at: columns.time()?,
        started_at: columns.maybe_time()?,
        ended_at: columns.maybe_time()?,
        unstopped: columns.flag()?,
        controls: columns.word(code::controls_of)?,
        interrupted_by: columns.maybe_int()?.map(EventId::from_number),
        toolbelt: toolbelt(columns)?,
    };
    execution.turn.let_through = columns.flag()?;
    execution.turn.reports = columns.int()?;
    execution.credential = columns.maybe_text()?;
    execution.content = columns.word(code::content_of)?;
    execution.workspace = match columns.maybe_text::<String>()? {
        None => None,
        Some(json) => Some(
            serde_json::from_str(&json)
                .map(Arc::new)
                .map_err(|_source| columns.corrupt("a workspace that is not one of ours"))?,
        ),
    };
    execution.check();
    Ok(execution)
}

fn toolbelt(columns: &mut Columns<'_>) -> Result<Toolbelt, StoreError> {
    Ok(Toolbelt {
        token: match columns.maybe_blob()?.map(<[u8; 32]>::try_from) {
            None => None,
            Some(Ok(digest)) => Some(TokenDigest::new(digest)),
            Some(Err(_length)) => return Err(columns.corrupt("a digest of another length")),
        },
        declared: match columns.maybe_text::<String>()? {
            None => Declared::default(),
            // The error of the decoder would repeat what it read.
            Some(json) => serde_json::from_str(&json)
                .map_err(|_source| columns.corrupt("a declaration that is not one of ours"))?,
        },
    })
}

/// What calls said about a turn, as it is stored.
fn declared(execution: &Execution) -> Option<String> {
    let declared = &execution.toolbelt.declared;
    let json = || serde_json::to_string(declared).expect("a declaration is plain data");
    (!declared.is_empty()).then(json)
}

/// Where it works, as it is stored.
fn workspace(execution: &Execution) -> Option<String> {
    let json = |it: &Arc<Workspace>| serde_json::to_string(&**it).expect("a workspace is plain data");
    execution.workspace.as_ref().map(json)
}

fn token(execution: &Execution) -> Option<&[u8]> {
    execution.toolbelt.token.as_ref().map(|digest| &digest.as_bytes()[..])
}

/// Whether nothing but the lease differs.
fn only_renewed(execution: &Execution, read: &Execution) -> bool {
    execution.lease.is_some()
        && read.lease.is_some()
        && execution.epoch == read.epoch
        && execution.state == read.state
        && execution.recovering == read.recovering
        && execution.deadline_at == read.deadline_at
        && execution.handle == read.handle
        && execution.turn == read.turn
        && execution.outcome == read.outcome
        && execution.started_at == read.started_at
        && execution.ended_at == read.ended_at
        && execution.unstopped == read.unstopped
        && execution.interrupted_by == read.interrupted_by
        && execution.toolbelt == read.toolbelt
        && execution.workspace == read.workspace
}

/// Executions of this host whose content is on its way out.
pub(super) fn releasing(
    tx: &mut Transaction<'_>,
    after: Option<ExecutionId>,
    rows: u32,
) -> Result<Vec<Execution>, StoreError> {
    tx.db.many(&RELEASING, &[int(tx.place.host), behind(after), limit(rows)], decode)
}

/// Where a list begins: behind an id, or before them all.
fn behind(after: Option<ExecutionId>) -> Value<'static> {
    int(after.map_or(i64::MIN, ExecutionId::number))
}

/// A list of Executions, newest first, as a filter narrows it.
pub(super) fn narrowed<'f>(
    select: &str,
    filter: &'f ExecutionFilter,
    limit: u32,
) -> (String, Vec<Value<'f>>) {
    let mut list = List::new(select);
    list.only("scope = $n", filter.scope.as_ref().map(|scope| text(scope.as_str())));
    list.only(
        "EXISTS (SELECT 1 FROM work WHERE work.id = execution.work AND work.kind = $n)",
        filter.work_kind.as_ref().map(|kind| text(kind.as_str())),
    );
    list.only("work = $n", filter.work.map(|work| int(work.number())));
    list.only("state = $n", filter.state.map(|state| int(code::execution_state(state))));
    let before = filter.before.map(|before| int(before.number()));
    if filter.live == Some(true) {
        // In no order that the history has, or a planner would walk all of it to save sorting the few.
        list.fixed(Some("state < 3"));
        list.only("id + 0 < $n", before);
        return list.ordered("id + 0 DESC", limit);
    }
    list.fixed((filter.live == Some(false)).then_some("state >= 3"));
    list.only("id < $n", before);
    list.ordered("id DESC", limit)
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

impl ExecutionReads for Transaction<'_> {
    fn execution(&mut self, id: ExecutionId) -> Result<Option<Execution>, StoreError> {
        self.db.one(&BY_ID, &[int(id.number())], decode)
    }

    fn count_live(&mut self, scope: &ScopeName, rows: u32) -> Result<u32, StoreError> {
        self.counted(&COUNT_LIVE, &[text(scope.as_str()), limit(rows)])
    }

    fn expired(&mut self, now: Timestamp, rows: u32) -> Result<Vec<Execution>, StoreError> {
        self.db.many(&EXPIRED, &[int(self.place.host), time(now), limit(rows)], decode)
    }

    fn next_expiry(&mut self) -> Result<Option<Timestamp>, StoreError> {
        self.db.one(&NEXT_EXPIRY, &[int(self.place.host)], db::moment)
    }

    fn unsettled(&mut self, after: Option<ExecutionId>, rows: u32) -> Result<Vec<Execution>, StoreError> {
        self.db.many(&UNSETTLED, &[behind(after), limit(rows)], decode)
    }

    fn unstopped(&mut self, after: Option<ExecutionId>, rows: u32) -> Result<Vec<Execution>, StoreError> {
        self.db.many(&UNSTOPPED, &[int(self.place.host), behind(after), limit(rows)], decode)
    }

    fn stranded(&mut self, now: Timestamp, rows: u32) -> Result<Vec<Stranded>, StoreError> {
        self.db.many(&STRANDED, &[int(self.place.host), time(now), limit(rows)], |columns| {
            Ok(Stranded {
                execution: ExecutionId::from_number(columns.int()?),
                host: columns.text()?,
                since: columns.time()?,
            })
        })
    }

    fn executions(&mut self, filter: &ExecutionFilter, limit: u32) -> Result<Vec<Execution>, StoreError> {
        let (query, values) = narrowed(LIST.text, filter, limit);
        self.db.listed(&LIST, &query, &values, decode)
    }

    fn outlines(&mut self, filter: &ExecutionFilter, limit: u32) -> Result<Vec<Outline>, StoreError> {
        outline::read(self, filter, limit)
    }

    fn ended_since(&mut self, since: Timestamp, rows: u32) -> Result<Vec<Execution>, StoreError> {
        self.db.many(&ENDED_SINCE, &[time(since), limit(rows)], decode)
    }

    fn execution_ids(
        &mut self,
        low: ExecutionId,
        high: ExecutionId,
        rows: u32,
    ) -> Result<Vec<ExecutionId>, StoreError> {
        let values = [int(low.number()), int(high.number()), limit(rows)];
        self.db.many(&IDS, &values, |columns| columns.int().map(ExecutionId::from_number))
    }

    fn turn_result(&mut self, id: ExecutionId) -> Result<Option<TurnResult>, StoreError> {
        self.db.one(&RESULT, &[int(id.number())], |columns| {
            // The error of the decoder would repeat what it read.
            serde_json::from_slice(columns.blob()?)
                .map_err(|_source| columns.corrupt("a result that is not one of ours"))
        })
    }
}

impl ExecutionWrites for Transaction<'_> {
    fn insert_execution(&mut self, execution: &Execution) -> Result<(), StoreError> {
        execution.check();
        let (declared, workspace) = (declared(execution), workspace(execution));
        self.db.write(
            &INSERT,
            &[
                int(execution.id.number()),
                int(execution.work.number()),
                text(execution.scope.as_str()),
                int(execution.attempt.number()),
                int(code::execution_state(execution.state)),
                int(execution.epoch.number()),
                maybe_int(execution.lease.map(|lease| lease.owner.number())),
                maybe_time(execution.lease.map(|lease| lease.until)),
                int(i64::from(execution.recovering)),
                int(execution.trigger.number()),
                int(execution.trigger_sequence.number()),
                maybe_int(execution.retry_of.map(ExecutionId::number)),
                text(execution.binding.as_str()),
                text(execution.executor.as_str()),
                int(execution.generation.number()),
                int(micros(execution.timeout)),
                maybe_time(execution.deadline_at),
                maybe_blob(execution.handle.as_ref().map(Handle::as_bytes)),
                int(execution.turn.number),
                int(execution.turn.cause.number()),
                int(micros(execution.turn.used)),
                maybe_int(execution.turn.resumed_by.map(EventId::number)),
                maybe_blob(execution.turn.session.as_ref().map(Handle::as_bytes)),
                maybe_int(execution.outcome.map(code::outcome)),
                time(execution.claimed_at),
                maybe_time(execution.started_at),
                maybe_time(execution.ended_at),
                int(i64::from(execution.unstopped)),
                int(self.place.host),
                int(code::controls(execution.controls)),
                maybe_int(execution.interrupted_by.map(EventId::number)),
                maybe_blob(token(execution)),
                maybe_text(declared.as_deref()),
                int(i64::from(execution.turn.let_through)),
                int(execution.turn.reports),
                maybe_text(execution.credential.as_ref().map(CredentialName::as_str)),
                maybe_text(workspace.as_deref()),
            ],
            1,
        )?;
        let (id, work, to) = (execution.id, execution.work, execution.state);
        self.feed(Change::Execution { id, work, from: None, to })
    }

    fn update_execution(&mut self, execution: &Execution, read: &Execution) -> Result<(), StoreError> {
        execution.check();
        // The row is the one that was read; a next value for another one finds nothing.
        let (id, was) = (int(read.id.number()), int(read.epoch.number()));
        let owner = maybe_int(execution.lease.map(|lease| lease.owner.number()));
        let until = maybe_time(execution.lease.map(|lease| lease.until));
        if only_renewed(execution, read) {
            return self.db.write(&RENEW, &[id, was, owner, until], 1);
        }
        if execution.turn != read.turn {
            // Before the epoch rises, which both statements are fenced by.
            let turn = &execution.turn;
            let values = [
                int(read.id.number()),
                int(read.epoch.number()),
                int(turn.number),
                int(turn.cause.number()),
                int(micros(turn.used)),
                maybe_int(turn.resumed_by.map(EventId::number)),
                maybe_blob(turn.session.as_ref().map(Handle::as_bytes)),
                int(self.place.host),
                int(i64::from(turn.let_through)),
                int(turn.reports),
            ];
            self.db.write(&TURN, &values, 1)?;
        }
        let (declared, workspace) = (declared(execution), workspace(execution));
        self.db.write(
            &UPDATE,
            &[
                id,
                was,
                int(code::execution_state(execution.state)),
                int(execution.epoch.number()),
                owner,
                until,
                int(i64::from(execution.recovering)),
                maybe_time(execution.deadline_at),
                maybe_blob(execution.handle.as_ref().map(Handle::as_bytes)),
                maybe_int(execution.outcome.map(code::outcome)),
                maybe_time(execution.started_at),
                maybe_time(execution.ended_at),
                int(i64::from(execution.unstopped)),
                maybe_int(execution.interrupted_by.map(EventId::number)),
                maybe_blob(token(execution)),
                maybe_text(declared.as_deref()),
                maybe_text(workspace.as_deref()),
            ],
            1,
        )?;
        if execution.state == read.state {
            return Ok(());
        }
        let (id, work, to) = (execution.id, execution.work, execution.state);
        self.feed(Change::Execution { id, work, from: Some(read.state), to })
    }

    fn mark_stopped(&mut self, id: ExecutionId) -> Result<bool, StoreError> {
        Ok(self.db.count(&STOPPED, &[int(id.number())])? > 0)
    }

    fn insert_turn_result(&mut self, id: ExecutionId, result: &TurnResult) -> Result<(), StoreError> {
        let body = serde_json::to_vec(result).expect("a result is plain data with text keys");
        self.db.write(&INSERT_RESULT, &[int(id.number()), blob(&body)], 1)
    }

    fn replace_turn_result(&mut self, id: ExecutionId, result: &TurnResult) -> Result<(), StoreError> {
        let body = serde_json::to_vec(result).expect("a result is plain data with text keys");
        self.db.write(&REPLACE_RESULT, &[int(id.number()), blob(&body)], 1)
    }
}

#[cfg(test)]
mod tests {
    use domain::store::ExecutionFilter;

    use super::{
        COUNT_LIVE, ENDED_SINCE, EXPIRED, NEXT_EXPIRY, RELEASING, STRANDED, UNSETTLED, UNSTOPPED, narrowed,
    };
    use crate::tables::plan::{assert_text_uses, assert_uses};

    #[test]
    fn executions_that_ended_cost_nothing() {
        assert_uses(&COUNT_LIVE, "execution_live_scope");
        assert_uses(&EXPIRED, "execution_lease");
        assert_uses(&NEXT_EXPIRY, "execution_lease");
        assert_uses(&STRANDED, "execution_lease");
        assert_uses(&UNSETTLED, "execution_unsettled");
        assert_uses(&UNSTOPPED, "execution_unstopped");
        assert_uses(&RELEASING, "execution_releasing");
        assert_uses(&ENDED_SINCE, "execution_ended");
    }

    #[test]
    fn live_executions_are_listed_without_the_history() {
        let live = ExecutionFilter { live: Some(true), ..ExecutionFilter::default() };
        let of_scope =
            ExecutionFilter { scope: Some(domain::text::ScopeName::known("main")), ..live.clone() };
        // Either index has the live rows alone.
        for filter in [live, of_scope] {
            let (query, _values) = narrowed("SELECT id FROM execution", &filter, 9);
            assert_text_uses(&query, "execution_live_scope");
        }
    }
}
