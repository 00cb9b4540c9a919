//! A Work: what it is about, where it is, and what moves it next.

use domain::time::Timestamp;

use super::look::{self, Family, Look};
use super::{Field, budget, time};
use crate::api::wire::{LastRunBody, PendingInputBody, WorkBody};

/// A line of a list of Works.
#[derive(Debug, Clone)]
pub(crate) struct WorkRow {
    pub(crate) id: String,
    pub(crate) look: Look,
    /// What moves it next, in one sentence.
    pub(crate) mover: String,
    pub(crate) scope: String,
    pub(crate) kind: String,
    pub(crate) keys: String,
    pub(crate) runs: String,
    pub(crate) created: String,
}

impl WorkRow {
    pub(crate) fn new(work: &WorkBody, now: Timestamp) -> Self {
        Self {
            id: work.id.clone(),
            look: look(work),
            mover: mover(work),
            scope: work.scope.clone(),
            kind: work.kind.clone(),
            keys: super::keys(&work.keys),
            runs: work.attempts.to_string(),
            created: time::ago(&work.created_at, now),
        }
    }
}

/// Its state, and for a ready one whether anything stands against its next run.
pub(crate) fn look(work: &WorkBody) -> Look {
    let look = look::state(&work.state);
    match (work.state.as_str(), work.queue.as_str()) {
        ("ready" | "waiting", _) if work.hold.is_some() => look.but("held").of(Family::Need, "i-held"),
        ("ready", _) if waits(work, "backoff") => look.but("retrying").of(Family::Wait, "i-retry"),
        ("ready", _) if waits(work, "exhausted") => look.but("failed too often").of(Family::Need, "i-held"),
        ("ready", "runnable") => look.but("queued"),
        ("ready", "blocked") if is_held(work) => look.but("blocked").of(Family::Need, "i-held"),
        ("ready", "blocked") => look.but("blocked").of(Family::Idle, "i-wait"),
        ("ready", _idle) => look.but("idle"),
        _other => look,
    }
}

/// Whether its failures mean this for its next run.
fn waits(work: &WorkBody, state: &str) -> bool {
    work.retry.as_ref().is_some_and(|retry| retry.state == state)
}

/// Whether an operator may ask for its next run: the last one failed, and nothing runs or is queued.
pub(crate) fn can_retry(work: &WorkBody) -> bool {
    let failed =
        work.last_run.as_ref().is_some_and(|run| matches!(run.state.as_str(), "failed" | "cancelled"));
    work.state == "ready" && work.queue != "runnable" && failed
}

/// Whether an operator may release it.
pub(crate) fn can_release(work: &WorkBody) -> bool {
    work.hold.is_some() && work.ended_at.is_none()
}

/// Everything there is to say about a Work.
pub(crate) fn fields(work: &WorkBody, now: Timestamp) -> Vec<Field> {
    let mut fields = vec![
        Field::new("work", work.id.as_str()),
        Field::new("state", look(work).word()),
        Field::new("next", mover(work)),
        Field::new("kind", format!("{}, {}", work.kind, lifecycle(&work.lifecycle))),
        Field::new("scope", work.scope.as_str()),
    ];
    fields.extend(work.keys.iter().map(|key| Field::new("key", super::key(key))));
    let place = [("goes on from", &work.predecessor), ("goes on in", &work.successor)];
    fields.extend(place.into_iter().filter_map(|(name, id)| Some(Field::new(name, id.as_deref()?))));
    fields.extend(work.parent.as_deref().map(|id| Field::new("created by a run of", id)));
    fields.extend(work.children.iter().map(|id| Field::new("created", id.as_str())));
    fields.extend(work.concurrency.as_deref().map(|key| Field::new("runs alone under", key)));
    fields.push(Field::new("runs", work.attempts.to_string()));
    let created = format!("{} ({})", time::absolute(&work.created_at), time::ago(&work.created_at, now));
    fields.push(Field::new("created", created));
    for (name, standing) in budget::all(work.budgets.as_deref().unwrap_or_default()) {
        fields.push(Field::new("budget", format!("{name}: {standing}")));
    }
    if let Some(last) = &work.last_run {
        let state = look::state(&last.state).word;
        fields.push(Field::new("last run", format!("{}, attempt {}, {state}", last.run, last.attempt)));
    }
    if let Some(at) = &work.ended_at {
        fields.push(Field::new("ended", format!("{} ({})", time::absolute(at), time::ago(at, now))));
    }
    fields
}

/// What a Work of this lifecycle does with the end of a run.
pub(crate) fn lifecycle(word: &str) -> &str {
    match word {
        "once" => "ends when it completes",
        "run_once" => "ends with its run",
        "standing" => "stands until it is cancelled",
        other => other,
    }
}

/// Input that waits for the next run, on one line.
pub(crate) fn input(input: &PendingInputBody) -> String {
    format!("{} {} from {}", input.event, input.event_type, input.source)
}

/// What will move the Work, in one sentence.
pub(crate) fn mover(work: &WorkBody) -> String {
    if let Some(hold) = &work.hold {
        return format!("It is held: {}; {}.", hold.reason, lifts(&hold.because));
    }
    match (work.state.as_str(), work.queue.as_str()) {
        ("ready", _) if waits(work, "backoff") || waits(work, "exhausted") => failing(work),
        ("waiting", _) => match &work.wait {
            Some(wait) => super::wait::sentence(wait, work.pending_inputs.as_deref().unwrap_or_default()),
            None => "It waits for a fact or a time.".to_owned(),
        },
        ("running", _) => match &work.run {
            Some(run) => format!("{run} is at it."),
            None => "A run is at it.".to_owned(),
        },
        ("ready", "runnable") => "Its next run starts by itself.".to_owned(),
        ("ready", "blocked") => blocked(work.blocked_by.as_deref().unwrap_or("?")),
        ("ready", _idle) => "Its next input starts a run.".to_owned(),
        (_ended, _) => match &work.successor {
            Some(successor) => format!("Nothing: it has ended, and {successor} goes on with its keys."),
            None => "Nothing: it has ended.".to_owned(),
        },
    }
}

/// What ends a hold.
fn lifts(because: &str) -> &'static str {
    match because {
        "budget" => "`work release` lets one more turn through, and a raised limit lets it go on",
        "gate" => "its gate settles that, and `work release` lets it start",
        // A later daemon may know more reasons.
        _other => "`work release` lets it go on",
    }
}

/// What becomes of a Work whose last run failed.
fn failing(work: &WorkBody) -> String {
    let times = super::count(i64::from(work.failures), "time", "times");
    let due = work.retry.as_ref().and_then(|retry| retry.due_at.as_deref());
    match due {
        Some(due) => {
            let due = time::absolute(due);
            format!("It failed {times} in a row and is tried again at {due}; `work retry` does it now.")
        }
        None => format!(
            "It failed {times} in a row and is not tried again by itself; `work retry` starts its next run."
        ),
    }
}

/// How it ended, in one sentence; none while it lives.
pub(crate) fn end(work: &WorkBody) -> Option<String> {
    let at = time::absolute(work.ended_at.as_deref()?);
    let by = |run: &LastRunBody| format!(" by attempt {} ({})", run.attempt, run.run);
    let last = work.last_run.as_ref().map(by).unwrap_or_default();
    Some(match work.state.as_str() {
        "completed" => format!("It was completed{last} at {at}."),
        "failed" => format!("It failed{last} at {at}."),
        "cancelled" => format!("It was cancelled at {at}, for good."),
        // A later daemon may know more words.
        other => format!("It ended as `{other}` at {at}."),
    })
}

/// What a blocked Work waits for, in one sentence.
pub(crate) fn blocked(reason: &str) -> String {
    match reason.split_once(':') {
        Some(("scope_full", scope)) => {
            format!("It starts when scope `{scope}` runs less than its `concurrency` allows.")
        }
        Some(("concurrency", scope_and_key)) => {
            let (scope, key) = scope_and_key.split_once(':').unwrap_or(("?", scope_and_key));
            format!("It starts when no other Work of scope `{scope}` runs under its concurrency key `{key}`.")
        }
        Some(("scope_disabled", scope)) => format!("It starts when scope `{scope}` is enabled again."),
        Some(("scope_paused", scope)) => {
            format!("It starts when scope `{scope}` goes on, which is paused; `scope resume` lets it.")
        }
        Some(("unconfigured", scope)) => {
            format!("It starts when the configuration has its scope `{scope}` and its binding again.")
        }
        Some(("backoff", _scope)) => "It is tried again when its wait after a failure is over.".to_owned(),
        Some(("exhausted", _scope)) => {
            "It failed too often in a row; `work retry` starts its next run.".to_owned()
        }
        Some(("stopping", _scope)) => {
            "It starts once everything that its interrupted run had started has stopped.".to_owned()
        }
        Some(("asked", _scope)) => "It starts when its gate has nothing against it.".to_owned(),
        Some(("reserved", "*")) => {
            "It starts when runs give back what they have reserved of a budget over all scopes.".to_owned()
        }
        Some(("reserved", scope)) => {
            format!("It starts when runs of scope `{scope}` give back what they have reserved of its budget.")
        }
        Some(("credential", credential)) => {
            format!("It starts when the usage limit of credential `{credential}` is reset.")
        }
        Some(("held", _scope)) => "It starts when it is released; `work release` does that.".to_owned(),
        // A later daemon may know more reasons.
        Some(_) | None => format!("It waits for `{reason}`."),
    }
}

/// Whether only an operator can clear what a blocked Work waits for.
pub(crate) fn is_held(work: &WorkBody) -> bool {
    const BY_ITSELF: [&str; 4] = ["scope_full:", "concurrency:", "backoff:", "stopping:"];
    let moves_by_itself = |reason: &str| BY_ITSELF.iter().any(|word| reason.starts_with(word));
    work.queue == "blocked" && work.blocked_by.as_deref().is_some_and(|reason| !moves_by_itself(reason))
}
