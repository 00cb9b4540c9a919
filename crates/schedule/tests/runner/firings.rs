//! What a firing does, as the examples have it.

use extension::Timestamp;
use schedule::cron::Cron;
use schedule::firing::{Armed, Fired, Firing, LastSlot, ScopeState, Stored, fire};
use schedule::slot::{Pattern, SlotName};
use schedule::timing::{CatchUp, Timing, clock};
use schedule::zone::Zone;
use serde_json::Value;

use super::vectors::{at, groups, text};

/// The timing of an example: an expression, or the time of day that it stands for.
fn timing(row: &Value) -> Timing {
    let expression = text(row, "expr");
    if text(row, "kind") == "at" {
        let fields: Vec<&str> = expression.split(' ').collect();
        let minute = clock(&format!("{:0>2}:{:0>2}", fields[1], fields[0])).unwrap();
        return Timing::Slots(Pattern::Daily(vec![minute]), Zone::utc());
    }
    Timing::Slots(Pattern::Cron(Cron::parse(expression).unwrap()), Zone::named(text(row, "zone")).unwrap())
}

fn fired(row: &Value) -> (Fired, Timestamp) {
    let timing = timing(row);
    let Timing::Slots(_, zone) = &timing else { panic!("{row}") };
    let zone = zone.name().to_owned();
    let last = row["last_name"]
        .as_str()
        .map(|time| LastSlot { at: Timestamp::EPOCH, name: SlotName { time: time.to_owned(), zone } });
    let now = at(text(row, "now"));
    let stored = Stored { last, ..Stored::new(timing, CatchUp::default()) };
    match fire(&Armed { stored, due_at: now }, ScopeState::Enabled, now) {
        Firing::Fires(fired) => (*fired, now),
        Firing::Rests => panic!("it is due: {row}"),
    }
}

#[test]
fn a_firing_publishes_and_rearms_as_the_examples_say() {
    let groups = groups();
    let rows = groups["catch_up"].as_array().unwrap();
    assert_eq!(rows.len(), 24);
    for row in rows {
        let (fired, now) = fired(row);
        let published = fired.publishes.as_ref();
        assert_eq!(published.map(|slot| slot.at.to_string()).as_deref(), row["publish"].as_str(), "{row}");
        let name = published.and_then(|slot| slot.name.as_ref()).map(|name| name.time.as_str());
        assert_eq!(name, row["publish_name"].as_str(), "{row}");
        let due = fired.rearmed.as_ref().map(|armed| armed.due_at.to_string());
        assert_eq!(due.as_deref(), row["rearm"].as_str(), "{row}");
        assert!(fired.valid_until.is_none_or(|until| until > now), "{row}");
    }
}

/// What runs if every firing comes on time, from a moment on.
fn runs(timing: &Timing, from: Timestamp, count: usize) -> Vec<String> {
    let Some(due_at) = timing.next(from) else { return Vec::new() };
    let mut armed = Some(Armed { stored: Stored::new(timing.clone(), CatchUp::default()), due_at });
    let mut runs = Vec::new();
    while let Some(next) = armed.filter(|_armed| runs.len() < count) {
        let Firing::Fires(fired) = fire(&next, ScopeState::Enabled, next.due_at) else { panic!("it is due") };
        assert!(fired.missed.is_empty(), "{:?}", fired.missed);
        runs.extend(fired.publishes.map(|slot| slot.at.to_string()));
        armed = fired.rearmed;
    }
    runs
}

#[test]
fn a_job_whose_firings_come_on_time_runs_at_each_name_once() {
    let groups = groups();
    for row in groups["next"].as_array().unwrap().iter().filter(|row| row.get("by_zone_data").is_none()) {
        let cron = Pattern::Cron(Cron::parse(text(row, "expr")).unwrap());
        let timing = Timing::Slots(cron, Zone::named(text(row, "zone")).unwrap());
        let expected: Vec<&str> =
            row["runs"].as_array().unwrap().iter().map(|moment| moment.as_str().unwrap()).collect();
        assert_eq!(runs(&timing, at(text(row, "from")), 3), expected, "{row}");
    }
}
