//! A run as a line of the first page: what it is about, what started it, how it went.

use domain::delivery::{CORE_SOURCE, MANUAL_SOURCE};

use super::{look, took};
use crate::api::wire::{KeyBody, RunBody, TriggerBody};
use crate::view::clock::{Clock, Moment};
use crate::view::look::Look;
use crate::view::payload::spelled;
use crate::view::{clip, count, time};

/// Letters of a summary that a line has room for.
const OUTCOME_LETTERS: usize = 140;
/// Letters of a title that a line has room for.
const TITLE_LETTERS: usize = 120;

/// Letters of a namespace that a line has room for.
const SOURCE_LETTERS: usize = 48;

/// A line.
#[derive(Debug, Clone)]
pub(crate) struct RunLine {
    pub(crate) id: String,
    pub(crate) look: Look,
    pub(crate) title: String,
    /// `hook/ci · build · attempt 2 · main`.
    pub(crate) sub: String,
    pub(crate) trigger: Trigger,
    pub(crate) started: Moment,
    /// How long it ran, or has run so far; none when it never did.
    pub(crate) took: Option<String>,
    /// Since when it runs, when it still does.
    pub(crate) since: Option<String>,
    /// What it used, when anything was told.
    pub(crate) cost: Option<String>,
    pub(crate) outcome: String,
}

/// What started it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trigger {
    pub(crate) icon: &'static str,
    pub(crate) event_type: String,
    /// `hook/ci · depth 1`.
    pub(crate) detail: String,
}

impl RunLine {
    pub(crate) fn new(run: &RunBody, clock: &Clock) -> Self {
        let is_live = run.ended_at.is_none();
        Self {
            id: run.id.clone(),
            look: look(run),
            title: clip::middle(&spelled(name(&run.keys, &run.trigger.event_type)), TITLE_LETTERS),
            sub: sub(run),
            trigger: Trigger::new(&run.trigger),
            started: clock.moment(run.started_at.as_deref().unwrap_or(&run.claimed_at)),
            took: took(run, clock.now()).map(time::span),
            since: run.started_at.clone().filter(|_at| is_live),
            cost: cost(run),
            outcome: clip::end(&spelled(&outcome(run, clock)), OUTCOME_LETTERS),
        }
    }
}

/// What a run or its Work is called where there is little room: the first key's identifier, else what triggered
/// it.
pub(crate) fn name<'t>(keys: &'t [KeyBody], trigger_type: &'t str) -> &'t str {
    keys.first().map_or(trigger_type, |key| key.external_id.as_str())
}

fn sub(run: &RunBody) -> String {
    let attempt = format!("{} · attempt {} · {}", run.work_kind, run.attempt, run.scope);
    match run.keys.first() {
        Some(key) => format!("{} · {attempt}", clip::middle(&spelled(&key.source), SOURCE_LETTERS)),
        None => attempt,
    }
}

impl Trigger {
    fn new(trigger: &TriggerBody) -> Self {
        let source = trigger.source.as_str();
        Self {
            icon: icon(source, &trigger.event_type),
            event_type: spelled(&trigger.event_type),
            detail: format!(
                "{} · depth {}",
                clip::middle(&spelled(&source_name(source)), SOURCE_LETTERS),
                trigger.depth
            ),
        }
    }
}

/// A source as people call it.
pub(crate) fn source_name(source: &str) -> String {
    match source {
        MANUAL_SOURCE => "operator".to_owned(),
        CORE_SOURCE => "Open Conduit itself".to_owned(),
        other => other.to_owned(),
    }
}

fn icon(source: &str, event_type: &str) -> &'static str {
    if source == MANUAL_SOURCE {
        "i-user"
    } else if event_type.starts_with("schedule.") {
        "i-jobs"
    } else if source == CORE_SOURCE {
        "i-route"
    } else if event_type.starts_with("github.") {
        "i-pr"
    } else {
        "i-hook"
    }
}

/// How it went, or where it is, in a few words.
fn outcome(run: &RunBody, clock: &Clock) -> String {
    let said = || run.summary.clone().filter(|summary| !summary.trim().is_empty());
    let status = run.exit_status.map(|status| format!("Exit {status}"));
    match run.state.as_str() {
        "failed" => said().or(status).or_else(|| run.code.as_deref().map(because)).unwrap_or_default(),
        "cancelled" if run.unstopped => "It is being stopped".to_owned(),
        "completed" | "handoff" | "parked" | "waiting" | "cancelled" => {
            said().or_else(|| artifacts(run)).or(status).unwrap_or_default()
        }
        _live if run.recovering => "What became of it is being found out".to_owned(),
        _live if run.settling => "Its end waits for input that is on its way".to_owned(),
        _live => match &run.deadline_at {
            Some(at) => format!("Until {} at the latest", clock.moment(at).at),
            None => String::new(),
        },
    }
}

/// Why a run failed, by its stable word.
fn because(code: &str) -> String {
    match code {
        "deadline" => "It took longer than its deadline".to_owned(),
        "interrupted" => "Interrupted: neither it nor its result was found".to_owned(),
        other => other.to_owned(),
    }
}

fn artifacts(run: &RunBody) -> Option<String> {
    let number = i64::try_from(run.artifacts.len()).ok().filter(|number| *number > 0)?;
    Some(count(number, "artifact", "artifacts"))
}

fn cost(run: &RunBody) -> Option<String> {
    let amount = |usage: &domain::outcome::Usage| {
        if usage.unit == "usd" && usage.thousandths >= 0 {
            let cents = (usage.thousandths + 5) / 10;
            format!("${}.{:02}", cents / 100, cents % 100)
        } else {
            format!("{} {}", super::thousandths(usage.thousandths), spelled(&usage.unit))
        }
    };
    let amounts: Vec<String> = run.usage.iter().map(amount).collect();
    (!amounts.is_empty()).then(|| amounts.join(", "))
}

#[cfg(test)]
mod tests {
    use domain::outcome::{Artifact, Usage};
    use domain::time::Timestamp;
    use jiff::tz::TimeZone;

    use super::RunLine;
    use crate::api::wire::RunBody;
    use crate::view::clock::Clock;
    use crate::view::sample::run;

    fn line(run: &RunBody) -> RunLine {
        let now = Timestamp::parse("2026-03-10T13:00:00Z").unwrap();
        RunLine::new(run, &Clock::new(TimeZone::get("Europe/Berlin").unwrap(), now))
    }

    #[test]
    fn a_line_says_what_it_is_about_and_what_started_it() {
        let shown = line(&run());
        assert_eq!(shown.title, "build/7");
        assert_eq!(shown.sub, "hook/ci · ci · attempt 2 · main");
        assert_eq!((shown.trigger.icon, shown.trigger.event_type.as_str()), ("i-route", "core.turn.ended"));
        assert_eq!(shown.trigger.detail, "Open Conduit itself · depth 1");
        assert_eq!((shown.started.at.as_str(), shown.took.as_deref()), ("13:00:00", Some("1.7 s")));
        let bare = line(&RunBody { keys: Vec::new(), ..run() });
        assert_eq!(bare.title, "core.turn.ended", "without a key the trigger says most");
    }

    #[test]
    fn a_line_says_how_it_went() {
        let outcome = |run: RunBody| line(&run).outcome;
        assert_eq!(outcome(run()), "the command ended with status 3");
        let silent = RunBody { summary: None, ..run() };
        assert_eq!(outcome(silent.clone()), "Exit 3");
        let late = RunBody { exit_status: None, code: Some("deadline".to_owned()), ..silent };
        assert_eq!(outcome(late.clone()), "It took longer than its deadline");
        let artifacts = vec![Artifact { path: "a".to_owned(), bytes: 1 }; 3];
        let done = RunBody { state: "completed".to_owned(), unstopped: false, artifacts, ..late };
        assert_eq!(outcome(done.clone()), "3 artifacts");
        let live = RunBody {
            state: "running".to_owned(),
            ended_at: None,
            deadline_at: Some("2026-03-10T14:10:00Z".to_owned()),
            ..done
        };
        assert_eq!(outcome(live.clone()), "Until 15:10:00 at the latest");
        assert_eq!(line(&live).since, live.started_at);
        assert_eq!(outcome(RunBody { recovering: true, ..live }), "What became of it is being found out");
    }

    #[test]
    fn what_nothing_is_known_of_is_not_shown() {
        assert_eq!(line(&run()).cost, None);
        let usage = |unit: &str, thousandths: i64| Usage { unit: unit.to_owned(), thousandths };
        let used = RunBody { usage: vec![usage("usd", 844), usage("tokens", 12_000)], ..run() };
        assert_eq!(line(&used).cost.as_deref(), Some("$0.84, 12 tokens"));
        let never = RunBody { started_at: None, ..run() };
        assert_eq!(line(&never).took, None);
    }

    #[test]
    fn a_row_has_room_for_some_letters() {
        let long = RunBody { summary: Some("x".repeat(5000)), ..run() };
        assert_eq!(line(&long).outcome.chars().count(), 141);
    }
}
