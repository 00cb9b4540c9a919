//! How the daemon is: what it checked, what it measured, and what waits.

use askama::Template;

use super::Visit;
use super::frame::{Frame, Place};
use super::html;
use crate::api::doctor::{self, Secrets};
use crate::api::server::Answer;
use crate::api::wire::{CheckBody, LaneBody, StatusBody, WebhookBody};
use crate::view::clock::{Clock, Moment};
use crate::view::health::{self, Fact};
use crate::view::look::{self, Look};
use crate::view::payload::spelled;
use crate::view::{count, said};

/// Lanes that are named.
const LANES_SHOWN: usize = 20;

#[derive(Debug, Template)]
#[template(path = "health.html")]
struct Health {
    frame: Frame,
    /// Checks that are not well come first.
    checks: Vec<Check>,
    verdict: Verdict,
    queues: Vec<Row>,
    blocked: Vec<Vec<said::Part>>,
    lanes: Vec<Lane>,
    /// How many lanes are not shown.
    further_lanes: usize,
    daemon: Vec<Row>,
    store: Vec<Row>,
    webhooks: Vec<WebhookBody>,
}

/// The whole in one sentence.
#[derive(Debug)]
struct Verdict {
    look: Look,
    sentence: String,
}

#[derive(Debug)]
struct Check {
    name: String,
    look: Look,
    sentence: Vec<said::Part>,
}

#[derive(Debug)]
struct Row {
    name: &'static str,
    value: String,
    more: Vec<said::Part>,
}

/// A lane that stands still.
#[derive(Debug)]
struct Lane {
    event: String,
    reason: Vec<said::Part>,
    code: String,
    tries: String,
    next: Moment,
}

/// Shows how the daemon is.
pub(super) async fn show(visit: &Visit) -> Answer {
    let status = doctor::glance(&visit.daemon).await?;
    let found = Box::pin(doctor::examine(&visit.daemon, Secrets::Leave)).await;
    let clock = &visit.reader.clock;
    let rows = |facts: Vec<Fact>| facts.into_iter().map(|fact| Row::new(fact, clock)).collect();
    let mut checks: Vec<&CheckBody> = found.checks.iter().collect();
    checks.sort_by_key(|check| urgency(&check.level));
    html::page(&Health {
        frame: Frame::read(visit, Place::Health).await?,
        verdict: Verdict::of(&found.checks),
        checks: checks.into_iter().map(|check| Check::new(check, clock)).collect(),
        queues: rows(health::queues(&status, &found.figures)),
        blocked: health::paused(&status)
            .into_iter()
            .chain(health::blocked(&status))
            .map(|sentence| said::parts(&spelled(&sentence), clock))
            .collect(),
        lanes: lanes(&status, clock),
        further_lanes: status.lanes.len().saturating_sub(LANES_SHOWN),
        daemon: rows(health::daemon(&status, &found.figures)),
        store: rows(health::store(&status, &found.figures)),
        webhooks: found.webhooks,
    })
}

/// Where a level stands in the list: what needs a person comes first.
fn urgency(level: &str) -> u8 {
    match level {
        "error" => 0,
        "warning" => 1,
        "note" => 2,
        "ok" => 4,
        _unknown => 3,
    }
}

impl Verdict {
    fn of(checks: &[CheckBody]) -> Self {
        let number = |level: &str| {
            i64::try_from(checks.iter().filter(|check| check.level == level).count()).unwrap_or(i64::MAX)
        };
        let (errors, warnings) = (number("error"), number("warning"));
        let (level, sentence) = match (errors, warnings) {
            (0, 0) => ("ok", "Nothing is wrong".to_owned()),
            (0, _) => ("warning", format!("{} to look at", count(warnings, "thing", "things"))),
            (_, 0) => ("error", format!("{} wrong", count(errors, "thing is", "things are"))),
            (_, _) => (
                "error",
                format!(
                    "{} wrong, and {} to look at",
                    count(errors, "thing is", "things are"),
                    count(warnings, "thing is", "things are")
                ),
            ),
        };
        Self { look: look::level(level), sentence }
    }
}

impl Check {
    fn new(check: &CheckBody, clock: &Clock) -> Self {
        Self {
            name: check.name.clone(),
            look: look::level(&check.level),
            sentence: said::parts(&spelled(&check.sentence), clock),
        }
    }
}

impl Row {
    fn new(fact: Fact, clock: &Clock) -> Self {
        Self { name: fact.name, value: fact.value, more: said::parts(&fact.more, clock) }
    }
}

fn lanes(status: &StatusBody, clock: &Clock) -> Vec<Lane> {
    let lane = |lane: &LaneBody| Lane {
        event: lane.event.clone(),
        reason: said::parts(&spelled(&lane.reason), clock),
        code: lane.code.clone(),
        tries: count(lane.tries, "try", "tries"),
        next: clock.moment(&lane.next_try_at),
    };
    status.lanes.iter().take(LANES_SHOWN).map(lane).collect()
}
