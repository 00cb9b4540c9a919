//! `redeliver`: the same webhook comes again at once, on many connections, after a second and after a restart.
//! There is one Event and one run, and `runs why` tells how often it came.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::Counts;
use super::api::{Api, accepted, has_ended};
use super::config::{self, Parts};
use super::daemon::Daemon;
use super::delivery::{SECRET, send_github, send_hook};
use super::signature::sign;
use super::site::{SOON, Site, check};
use crate::error::Error;
use crate::machine;

/// Connections that bring the same delivery at once.
const AT_ONCE: u64 = 20;
/// The pause after which a sender is known to have sent a delivery again.
const LATER: Duration = Duration::from_millis(1100);

pub(super) fn run(site: &Site) -> Result<Counts, Error> {
    let parts = Parts {
        concurrency: 8,
        bindings: vec![config::job(site, "append", &[])],
        routes: vec![config::fresh("drill.hook", "append"), config::keyless("github.delivery", "append")],
        webhooks: true,
    };
    site.configure(&parts.config())?;
    let (mut daemon, mut api) = Daemon::start(site)?;
    let mut ran = BTreeSet::new();
    let mut duplicates = 0;
    for round in 0..site.rounds {
        let deliveries = [format!("hook-{round}"), format!("github-{round}")];
        let mut came = 0;
        send_at_once(&api, &deliveries)?;
        came += AT_ONCE;
        for delivery in &deliveries {
            accepted(send(api.webhooks()?, delivery))?;
        }
        site.pass(LATER);
        for delivery in &deliveries {
            accepted(send(api.webhooks()?, delivery))?;
        }
        daemon.kill()?;
        (daemon, api) = Daemon::start(site)?;
        send_at_once(&api, &deliveries)?;
        came += 2 + AT_ONCE;
        ran.extend(deliveries.iter().cloned());
        for delivery in &deliveries {
            check_one(site, &api, delivery, came)?;
            duplicates += came - 1;
        }
        site.ledger().check(&ran)?;
    }
    check(daemon.is_running(), || "the daemon ended".to_owned())?;
    Ok(vec![("deliveries", ran.len() as u64), ("redelivered", duplicates)])
}

fn send(address: SocketAddr, delivery: &str) -> std::io::Result<super::http::Response> {
    if delivery.starts_with("hook") {
        return send_hook(address, delivery);
    }
    let body = br#"{"zen":"Keep it logically awesome."}"#;
    send_github(address, "ping", delivery, body, &sign(SECRET, body))
}

fn send_at_once(api: &Api, deliveries: &[String]) -> Result<(), Error> {
    let address = api.webhooks()?;
    thread::scope(|scope| {
        let senders: Vec<_> = deliveries
            .iter()
            .flat_map(|delivery| (0..AT_ONCE).map(move |_| delivery))
            .map(|delivery| scope.spawn(move || accepted(send(address, delivery))))
            .collect();
        senders.into_iter().try_for_each(|sender| sender.join().expect("a sender does not panic"))
    })
}

/// Makes sure that a delivery that came that often is one Event, one Work and one run, which say so.
fn check_one(site: &Site, api: &Api, delivery: &str, came: u64) -> Result<(), Error> {
    let events: Vec<Value> =
        api.list("/v1/events")?.into_iter().filter(|event| event["delivery_id"] == delivery).collect();
    check(events.len() == 1, || format!("{delivery} is {} Events", events.len()))?;
    let event = events[0]["id"].as_str().unwrap_or_default();
    let runs_of_event = || -> Option<Vec<Value>> {
        let mut runs = api.list("/v1/runs").ok()?;
        runs.retain(|run| run["trigger"]["event"] == event);
        Some(runs)
    };
    let runs =
        site.wait("the run ends", SOON, || runs_of_event().filter(|runs| runs.iter().any(has_ended)))?;
    check(runs.len() == 1 && runs[0]["attempt"] == 1, || format!("{delivery} has these runs: {runs:?}"))?;
    let id = runs[0]["id"].as_str().unwrap_or_default();
    let why = api.get(&format!("/v1/runs/{id}/why"))?;
    let told = why["chain"][0]["redelivered"]["count"].as_u64();
    check(told == Some(came - 1), || {
        format!("{delivery} came {came} times, and `why` counts {told:?} more: {why}")
    })?;
    let shown = machine::read(
        machine::command(&site.programs.daemon).args(["runs", "why", id, "--home"]).arg(site.home()),
    )?;
    let sentence = format!("came {} more times", came - 1);
    check(shown.contains(&sentence), || format!("`runs why` does not say \"{sentence}\": {shown}"))
}
