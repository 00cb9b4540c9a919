//! `poison`: Events on which a route's condition fails, as it would again. Each is set aside, once and in its turn, and
//! neither other lanes nor what stands behind it is lost, although the daemon is killed on the way.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::Counts;
use super::config::{self, Parts};
use super::daemon::Daemon;
use super::site::{SOON, Site, check};
use super::time::{Moment, moment};
use crate::error::Error;

/// Poisoned lanes.
const LANES: usize = 3;
/// How long setting them aside may take on a slow machine.
const QUARANTINE_TIME_MAX: Duration = Duration::from_mins(1);
/// The longest time from the last acceptance to the kill.
const MOMENT_MAX: Duration = Duration::from_millis(12);

pub(super) fn run(site: &Site) -> Result<Counts, Error> {
    let condition = json!({ "types": ["drill.count"], "when": "payload.number > 0", "work": "keyed" });
    let parts = Parts {
        concurrency: 8,
        bindings: vec![config::job(site, "append", &[])],
        routes: vec![config::route("drill.count", "append", &condition)],
        webhooks: false,
    };
    site.configure(&parts.config())?;
    let (daemon, api) = Daemon::start(site)?;
    let lanes: Vec<String> = (0..LANES).map(|lane| format!("lane-{lane}")).collect();
    let accept = |delivery: &str, key: &str, payload| {
        super::api::accepted(api.emit_with("drill.count", delivery, key, &payload))
    };
    let mut behind = BTreeSet::new();
    for lane in &lanes {
        accept(&format!("poison-{lane}"), lane, json!({}))?;
        let delivery = format!("behind-{lane}");
        accept(&delivery, lane, json!({ "number": 1 }))?;
        behind.insert(delivery);
    }
    let beside: BTreeSet<String> = (0..20).map(|number| format!("beside-{number}")).collect();
    for delivery in &beside {
        accept(delivery, delivery, json!({ "number": 2 }))?;
    }
    site.pass(site.random().up_to(MOMENT_MAX));
    daemon.kill()?;
    let (daemon, api) = Daemon::start(site)?;
    let quarantined = site.wait("the poison is set aside", QUARANTINE_TIME_MAX, || {
        let events = api.list("/v1/events?outcome=quarantined").ok()?;
        (events.len() >= LANES).then_some(events)
    })?;
    let names: BTreeSet<&str> =
        quarantined.iter().filter_map(|event| event["delivery_id"].as_str()).collect();
    let expected: BTreeSet<String> = lanes.iter().map(|lane| format!("poison-{lane}")).collect();
    check(names.iter().copied().eq(expected.iter().map(String::as_str)), || format!("set aside: {names:?}"))?;
    for event in &quarantined {
        let is_told = event["checkpoint"]["code"].is_string() && event["checkpoint"]["reason"].is_string();
        check(is_told, || format!("nothing says why it was set aside: {event}"))?;
    }
    site.wait("what stood behind goes on", SOON, || site.ledger().has_all(&behind).then_some(()))?;
    site.wait("other lanes go on", SOON, || site.ledger().has_all(&beside).then_some(()))?;
    for lane in &lanes {
        let at = |delivery: String| -> Result<Moment, Error> {
            let events = api.list("/v1/events?type=drill.count")?;
            let event = events.iter().find(|event| event["delivery_id"] == delivery.as_str());
            moment(event.map_or(&Value::Null, |event| &event["checkpoint"]["at"]))
        };
        let (poison, next) = (at(format!("poison-{lane}"))?, at(format!("behind-{lane}"))?);
        check(poison <= next, || "an Event overtook a poisoned one of its lane".to_owned())?;
    }
    let expected = behind.into_iter().chain(beside).collect();
    site.ledger().check(&expected)?;
    daemon.stop()?;
    Ok(vec![("set aside", quarantined.len() as u64), ("ran", expected.len() as u64)])
}
