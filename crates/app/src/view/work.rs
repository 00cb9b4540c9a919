//! A Work: what it is about, where it is, and what moves it next.

use domain::time::Timestamp;

use super::{Field, Tone, Word, time, word};
use crate::api::wire::WorkBody;

/// A line of a list of Works.
#[derive(Debug, Clone)]
pub(crate) struct WorkRow {
    pub(crate) id: String,
    pub(crate) state: Word,
    pub(crate) kind: String,
    pub(crate) keys: String,
    pub(crate) runs: String,
    pub(crate) created: String,
}

impl WorkRow {
    pub(crate) fn new(work: &WorkBody, now: Timestamp) -> Self {
        Self {
            id: work.id.clone(),
            state: state(work),
            kind: work.kind.clone(),
            keys: super::keys(&work.keys),
            runs: work.attempts.to_string(),
            created: time::ago(&work.created_at, now),
        }
    }
}

/// Its state, and for a ready one whether anything stands against its next run.
fn state(work: &WorkBody) -> Word {
    match (work.state.as_str(), work.queue.as_str()) {
        ("ready", "runnable") => Word::new("ready, queued", Tone::Active),
        ("ready", "blocked") => Word::new("ready, blocked", Tone::Bad),
        ("ready", _idle) => Word::quiet("ready, idle"),
        (state, _) => word::state(state),
    }
}

/// Everything there is to say about a Work.
pub(crate) fn fields(work: &WorkBody, now: Timestamp) -> Vec<Field> {
    let mut fields = vec![
        Field::new("work", work.id.as_str()),
        Field::new("state", state(work)),
        Field::new("next", mover(work)),
        Field::new("kind", format!("{}, {}", work.kind, lifecycle(&work.lifecycle))),
        Field::new("scope", work.scope.as_str()),
    ];
    fields.extend(work.keys.iter().map(|key| Field::new("key", super::key(key))));
    fields.push(Field::new("runs", work.attempts.to_string()));
    let created = format!("{} ({})", time::absolute(&work.created_at), time::ago(&work.created_at, now));
    fields.push(Field::new("created", created));
    if let Some(at) = &work.ended_at {
        fields.push(Field::new("ended", format!("{} ({})", time::absolute(at), time::ago(at, now))));
    }
    fields
}

/// What a Work of this lifecycle does with the end of a run.
fn lifecycle(word: &str) -> &str {
    match word {
        "once" => "ends when it completes",
        "run_once" => "ends with its run",
        "standing" => "stands until it is cancelled",
        other => other,
    }
}

/// What will move the Work, in one sentence.
pub(crate) fn mover(work: &WorkBody) -> String {
    match (work.state.as_str(), work.queue.as_str()) {
        ("running", _) => match &work.run {
            Some(run) => format!("{run} is at it."),
            None => "A run is at it.".to_owned(),
        },
        ("ready", "runnable") => "Its next run starts by itself.".to_owned(),
        ("ready", "blocked") => blocked(work.blocked_by.as_deref().unwrap_or("?")),
        ("ready", _idle) => "Its next input starts a run.".to_owned(),
        (_ended, _) => "Nothing: it has ended.".to_owned(),
    }
}

/// What a blocked Work waits for, in one sentence.
pub(crate) fn blocked(reason: &str) -> String {
    match reason.split_once(':') {
        Some(("scope_full", scope)) => {
            format!("It starts when scope `{scope}` runs less than its `concurrency` allows.")
        }
        Some(("scope_disabled", scope)) => format!("It starts when scope `{scope}` is enabled again."),
        Some(("unconfigured", scope)) => {
            format!("It starts when the configuration has its scope `{scope}` and its binding again.")
        }
        // A later daemon may know more reasons.
        Some(_) | None => format!("It waits for `{reason}`."),
    }
}

/// Whether only an operator can clear what a blocked Work waits for.
pub(crate) fn is_held(work: &WorkBody) -> bool {
    work.queue == "blocked"
        && work.blocked_by.as_deref().is_some_and(|reason| !reason.starts_with("scope_full:"))
}
