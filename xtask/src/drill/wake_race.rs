//! `wake-race`: what a Work waits for arrives as its time is up. Each Wait ends once; of everything that was
//! accepted the first won, the timeout among it, and the history says which.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::Counts;
use super::api::Api;
use super::config::Parts;
use super::daemon::Daemon;
use super::parked::{self, GO, PARKS, Woken};
use super::site::{SOON, Site, check};
use super::time::{Moment, moment};
use crate::error::Error;
use crate::machine;

/// Works that wait in each round.
const WORKS: usize = 16;
/// How long each waits, in seconds.
const WAIT_SECONDS: &str = "2";
/// How far from [`LATE`] an Event is sent, before or after, in microseconds.
const SPREAD: i64 = 40_000;
/// How long after the end of its time an Event is sent in the middle, since its way is shorter than the timer's.
const LATE: i64 = 20_000;

pub(super) fn run(site: &Site) -> Result<Counts, Error> {
    let parts = Parts {
        concurrency: 16,
        bindings: vec![parked::binding(site, &["--timeout", WAIT_SECONDS])],
        routes: parked::routes().into(),
        webhooks: false,
    };
    site.configure(&parts.config())?;
    let (mut daemon, api) = Daemon::start(site)?;
    let mut random = site.random();
    let mut told: BTreeMap<String, usize> = BTreeMap::new();
    let (mut by_match, mut by_timeout, mut late) = (0, 0, 0);
    for round in 0..site.rounds {
        let keys: Vec<String> = (0..WORKS).map(|number| format!("race-{round}-{number}")).collect();
        for key in &keys {
            api.accept(PARKS, key)?;
        }
        let offsets: Vec<Moment> = (0..2 * WORKS).map(|_| LATE + random.around(SPREAD)).collect();
        let matches: Result<Vec<[String; 2]>, Error> = thread::scope(|scope| {
            let racing = keys.iter().zip(offsets.chunks(2));
            let racing: Vec<_> = racing
                .map(|(key, offsets)| {
                    let api = &api;
                    scope.spawn(move || race(site, api, key, offsets))
                })
                .collect();
            racing.into_iter().map(|racer| racer.join().expect("a racer does not panic")).collect()
        });
        for (key, matches) in keys.iter().zip(&matches?) {
            let woken = parked::woken_once(site, &api, key)?;
            let outcome = first_won(&api, key, &woken, matches)?;
            by_match += u64::from(!outcome.by_timeout);
            by_timeout += u64::from(outcome.by_timeout);
            late += outcome.late;
            told.insert(key.clone(), 1);
            told.extend(outcome.told);
        }
    }
    site.wait("everything that was routed runs", SOON, || site.ledger().has_all(told.keys()).then_some(()))?;
    let counts = site.ledger().counts();
    check(counts == told, || format!("the ledger has {counts:?} and not {told:?}"))?;
    check(by_match > 0 && by_timeout > 0, || {
        format!("{by_match} Waits ended by a match and {by_timeout} by their time: that is no race")
    })?;
    check(daemon.is_running(), || "the daemon ended".to_owned())?;
    Ok(vec![
        ("Waits", by_match + by_timeout),
        ("ended by a match", by_match),
        ("by their time", by_timeout),
        ("matches after the Work's end", late),
    ])
}

/// Sends two Events that match, each at its offset from the end of the Wait's time.
fn race(site: &Site, api: &Api, key: &str, offsets: &[Moment]) -> Result<[String; 2], Error> {
    let wait = site.wait(&format!("{key} waits"), SOON, || api.waits_of(key).ok()?.pop())?;
    let due = moment(&wait["timeout_at"])?;
    let send = |name: &str, offset: Moment| {
        let until = (due + offset).saturating_sub(machine::wall_micros());
        site.pass(Duration::from_micros(u64::try_from(until).unwrap_or(0)));
        api.tell(GO, &format!("{name}-{key}"), key)
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| send("other", offsets[1]));
        let one = send("one", offsets[0]);
        Ok([one?, other.join().expect("a sender does not panic")?])
    })
}

/// How a race ended.
struct Outcome {
    by_timeout: bool,
    /// Matches that came after the end of the Work.
    late: u64,
    /// What jobs were told, by delivery, and how often.
    told: BTreeMap<String, usize>,
}

/// Checks that the first of what was accepted for a Wait has ended it.
fn first_won(api: &Api, key: &str, woken: &Woken, matches: &[String; 2]) -> Result<Outcome, Error> {
    let sequence = |event: &Value| event["sequence"].as_i64().unwrap_or(i64::MAX);
    let mut outcome = Outcome { by_timeout: false, late: 0, told: BTreeMap::new() };
    let winner = api.event(woken.winner())?;
    let mut events = vec![winner.clone()];
    for id in matches {
        events.push(api.event(id)?);
    }
    let first = events.iter().map(sequence).min();
    check(first == Some(sequence(&winner)), || format!("{key} was woken by {winner}, and not by the first"))?;
    outcome.by_timeout = winner["type"] == "core.wait.timeout";
    check(outcome.by_timeout || matches.iter().any(|id| id == woken.winner()), || {
        format!("{key} was woken by {winner}, which nobody sent")
    })?;
    if outcome.by_timeout {
        check(
            sequence(&winner) > 0 && moment(&winner["accepted_at"])? >= moment(&woken.wait["timeout_at"])?,
            || format!("{key} was woken before its time, by {winner}"),
        )?;
    }
    let work = woken.wait["work"].as_str().unwrap_or_default();
    let timeouts = api.list(&format!("/v1/events?type=core.wait.timeout&work={work}"))?.len();
    check(timeouts == usize::from(outcome.by_timeout), || format!("{key} has {timeouts} timeouts"))?;
    let mut distinct = events;
    distinct.sort_by_key(sequence);
    distinct.dedup_by_key(|event| sequence(event));
    for event in &distinct {
        let delivery = event["delivery_id"].as_str().unwrap_or_default().to_owned();
        match event["checkpoint"]["outcome"].as_str() {
            Some("routed") => drop(outcome.told.insert(delivery, 1)),
            // The Work had ended already. Nothing that wakes comes too late.
            Some("terminal") if event["id"] != woken.winner() => outcome.late += 1,
            other => return Err(Error::Drill(format!("{delivery} came to {other:?}"))),
        }
    }
    Ok(outcome)
}
