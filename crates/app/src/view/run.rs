//! A run: what started it, how long it took, how it ended.

pub(crate) mod line;

use std::time::Duration;

use domain::time::Timestamp;

use super::look::{self, Family, Look};
use super::{Field, time};
use crate::api::wire::RunBody;

/// A line of a list of runs.
#[derive(Debug, Clone)]
pub(crate) struct RunRow {
    pub(crate) id: String,
    pub(crate) look: Look,
    pub(crate) trigger: String,
    pub(crate) keys: String,
    pub(crate) took: String,
    pub(crate) started: String,
}

impl RunRow {
    pub(crate) fn new(run: &RunBody, now: Timestamp) -> Self {
        Self {
            id: run.id.clone(),
            look: look(run),
            trigger: run.trigger.event_type.clone(),
            keys: super::keys(&run.keys),
            took: took(run, now).map(time::span).unwrap_or_default(),
            started: time::ago(run.started_at.as_deref().unwrap_or(&run.claimed_at), now),
        }
    }
}

/// Its state; one that is being found out about, or whose processes may live on, says so.
pub(crate) fn look(run: &RunBody) -> Look {
    let look = look::state(&run.state);
    if run.unstopped {
        look.but("not stopped").of(Family::Need, "i-need")
    } else if run.recovering {
        look.but("recovering")
    } else if run.settling {
        look.but("settling")
    } else {
        look
    }
}

/// What it is about, in a few words: the first key of its Work, else what triggered it.
pub(crate) fn title(run: &RunBody) -> String {
    run.keys.first().map_or_else(|| run.trigger.event_type.clone(), super::key)
}

/// How long it ran, or has run so far.
pub(crate) fn took(run: &RunBody, now: Timestamp) -> Option<Duration> {
    let until = run.ended_at.clone().unwrap_or_else(|| now.to_string());
    time::between(run.started_at.as_deref(), Some(&until))
}

/// Everything there is to say about a run.
pub(crate) fn fields(run: &RunBody, now: Timestamp) -> Vec<Field> {
    let mut fields = vec![Field::new("run", run.id.as_str()), Field::new("state", look(run).word())];
    if let Some(summary) = &run.summary {
        fields.push(Field::new("summary", summary.as_str()));
    }
    if let Some(line) = progress(run) {
        fields.push(Field::new("progress", line));
    }
    if let Some(code) = &run.code {
        fields.push(Field::new("code", code.as_str()));
    }
    if let Some(status) = run.exit_status {
        fields.push(Field::new("exit status", status.to_string()));
    }
    fields.push(Field::new("work", format!("{} ({}), attempt {}", run.work, run.work_kind, run.attempt)));
    if let Some(event) = &run.woken_by {
        fields.push(Field::new("turn", format!("{}, begun by {event}", run.turn)));
    }
    fields.push(Field::new("scope", run.scope.as_str()));
    fields.extend(run.keys.iter().map(|key| Field::new("key", super::key(key))));
    let trigger = &run.trigger;
    fields.push(Field::new(
        "trigger",
        format!("{} {} from {}", trigger.event, trigger.event_type, trigger.source),
    ));
    let binding = format!("{} on {}, generation {}", run.binding, run.executor, run.generation);
    fields.push(Field::new("binding", binding));
    fields.extend(run.workspace.as_ref().map(|it| Field::new("workspace", it.summary.as_str())));
    fields.extend(run.directory.as_deref().map(|path| Field::new("directory", path)));
    times(run, now, &mut fields);
    if !run.usage.is_empty() {
        fields.push(Field::new("usage", usage(run)));
    }
    for artifact in &run.artifacts {
        fields.push(Field::new("artifact", format!("{} ({})", artifact.path, bytes(artifact.bytes))));
    }
    if is_released(run) {
        fields.push(Field::new("content", "released: its log, artifacts and input bodies are gone"));
    }
    fields
}

/// How far it says that it has come, in a line.
pub(crate) fn progress(run: &RunBody) -> Option<String> {
    let progress = run.progress.as_ref()?;
    let percent = progress.percent.map(|percent| format!(" ({percent} %)")).unwrap_or_default();
    Some(format!("{}{percent}", progress.text))
}

/// Whether its content is gone.
pub(crate) fn is_released(run: &RunBody) -> bool {
    run.retention == "released"
}

fn times(run: &RunBody, now: Timestamp, fields: &mut Vec<Field>) {
    let when = |at: &str| format!("{} ({})", time::absolute(at), time::ago(at, now));
    fields.push(Field::new("claimed", when(&run.claimed_at)));
    if let Some(at) = &run.started_at {
        fields.push(Field::new("started", when(at)));
    }
    if let Some(at) = &run.ended_at {
        fields.push(Field::new("ended", when(at)));
    }
    if let Some(took) = took(run, now) {
        fields.push(Field::new("took", time::span(took)));
    }
    let timeout = time::span(Duration::from_secs(run.timeout_seconds));
    fields.push(match run.remaining_seconds {
        Some(left) => {
            Field::new("deadline", format!("{timeout}, {} left", time::span(Duration::from_secs(left))))
        }
        None => Field::new("deadline", timeout),
    });
}

fn usage(run: &RunBody) -> String {
    let amounts = run.usage.iter().map(|usage| format!("{} {}", thousandths(usage.thousandths), usage.unit));
    amounts.collect::<Vec<_>>().join(", ")
}

/// An amount in thousandths, without zeros that say nothing.
pub(crate) fn thousandths(amount: i64) -> String {
    let sign = if amount < 0 { "-" } else { "" };
    let (whole, part) = (amount.unsigned_abs() / 1000, amount.unsigned_abs() % 1000);
    let text = format!("{sign}{whole}.{part:03}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A size: `812 bytes`, `3.4 KiB`, `12.0 MiB`, `1.5 GiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    const KIB: u64 = 1024;
    const MIB: u64 = 1024 * KIB;
    const GIB: u64 = 1024 * MIB;
    match bytes {
        1 => "1 byte".to_owned(),
        0..KIB => format!("{bytes} bytes"),
        KIB..MIB => format!("{}.{} KiB", bytes / KIB, bytes % KIB * 10 / KIB),
        MIB..GIB => format!("{}.{} MiB", bytes / MIB, bytes % MIB * 10 / MIB),
        GIB.. => format!("{}.{} GiB", bytes / GIB, bytes % GIB * 10 / GIB),
    }
}

/// How it ended, or where it is, in one sentence.
pub(crate) fn ending(run: &RunBody) -> String {
    let at = run.ended_at.as_deref().map(|at| format!(" at {}", time::absolute(at))).unwrap_or_default();
    let status = run.exit_status.map(|status| format!(" with exit status {status}")).unwrap_or_default();
    let because = super::event::because(run.summary.as_deref(), run.code.as_deref());
    match run.state.as_str() {
        "completed" => format!("It completed{at}{status}."),
        "handoff" => format!("It handed its Work back{at}{status}."),
        "parked" => "It is parked until what it waits for comes; then the same run goes on.".to_owned(),
        "waiting" => format!("It ended{at} to wait; the next run goes on when what it waits for comes."),
        "failed" => format!("It failed{at}{because}."),
        "cancelled" => match &run.interrupt_event_id {
            Some(event) => format!("It was interrupted for {event}{at}; its Work goes on."),
            None => format!("It was cancelled{at}."),
        },
        _live if run.recovering => "The daemon is finding out what became of it.".to_owned(),
        _live if run.settling => {
            "Its outcome is known; it ends when input on its way has arrived.".to_owned()
        }
        "launching" => "It is being launched.".to_owned(),
        _running => match &run.deadline_at {
            Some(at) => format!("It is running; its time is over at {}.", time::absolute(at)),
            None => "It is running.".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::{RunBody, Timestamp, bytes, fields, thousandths};

    #[test]
    fn fields_say_where_a_run_works() {
        let run = RunBody {
            workspace: Some(domain::workspace::Workspace {
                kind: "git".to_owned(),
                reference: None,
                dir: "/x".to_owned(),
                summary: "fresh worktree at origin/main 1a2b3c4".to_owned(),
                data: serde_json::Value::Null,
            }),
            ..sample::run()
        };
        let said = fields(&run, Timestamp::EPOCH);
        let one = said.iter().find(|field| field.name == "workspace").map(|field| field.value.text.as_str());
        assert_eq!(one, Some("fresh worktree at origin/main 1a2b3c4"));
        assert!(fields(&sample::run(), Timestamp::EPOCH).iter().all(|field| field.name != "workspace"));
    }

    #[test]
    fn amounts_and_sizes_are_short() {
        assert_eq!(thousandths(1500), "1.5");
        assert_eq!(thousandths(-20), "-0.02");
        assert_eq!(thousandths(12_000), "12");
        assert_eq!(bytes(812), "812 bytes");
        assert_eq!(bytes(3500), "3.4 KiB");
        assert_eq!(bytes(12 << 20), "12.0 MiB");
        assert_eq!(bytes(3 << 29), "1.5 GiB");
    }
}
