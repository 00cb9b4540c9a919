//! `cancel-race`: a Work is cancelled while it starts, wakes, tries again, is recovered or completes. Either the
//! cancellation ended it or it came too late; whoever cancelled is told which, and nothing of it starts later.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::Counts;
use super::api::{Api, code};
use super::config::{self, Parts};
use super::daemon::Daemon;
use super::parked::{self, GO, PARKS};
use super::process;
use super::random::Random;
use super::site::{SOON, Site, check};
use super::time::{Moment, moment};
use crate::error::Error;
use crate::machine;

/// Works for each thing that a cancellation races with, in each round.
const WORKS: usize = 4;
/// How far from the effect of what it races with a cancellation is sent, before or after, in microseconds.
const SPREAD: i64 = 30_000;
/// After which nothing more may happen: longer than the retries that are armed take.
const QUIET: Duration = Duration::from_millis(1500);

/// What a cancellation races with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Race {
    Start,
    Wake,
    Retry,
    Completion,
    Recovery,
}

impl Race {
    const ALL: [Self; 5] = [Self::Start, Self::Wake, Self::Retry, Self::Completion, Self::Recovery];

    /// The type of the Event that begins it.
    const fn opens(self) -> &'static str {
        match self {
            Self::Start => "drill.append",
            Self::Wake => PARKS,
            Self::Retry => "drill.fails",
            Self::Completion | Self::Recovery => "drill.wait",
        }
    }

    /// How long after what it races with a cancellation is sent in the middle, in microseconds: as long as that
    /// takes to have its effect.
    const fn takes(self) -> Moment {
        match self {
            Self::Start | Self::Wake | Self::Recovery => 15_000,
            Self::Retry => 5_000,
            // A job looks at its gate about so often.
            Self::Completion => 40_000,
        }
    }

    /// What is counted of it.
    const fn counted(self) -> &'static str {
        match self {
            Self::Start => "cancelled at start",
            Self::Wake => "at wake",
            Self::Retry => "at retry",
            Self::Completion => "at completion",
            Self::Recovery => "at recovery",
        }
    }
}

/// A Work whose cancellation was answered.
struct Cancelled {
    race: Race,
    key: String,
    /// Whether the cancellation ended it; else it had ended.
    by_us: bool,
}

pub(super) fn run(site: &Site) -> Result<Counts, Error> {
    let [parks, go] = parked::routes();
    let parts = Parts {
        concurrency: 64,
        bindings: vec![
            config::job(site, "append", &[]),
            config::job(site, "fails", &["--fails", "1"]),
            config::gated_job(site, "wait"),
            parked::binding(site, &[]),
        ],
        routes: vec![
            config::fresh("drill.append", "append"),
            config::fresh("drill.fails", "fails"),
            config::fresh("drill.wait", "wait"),
            parks,
            go,
        ],
        webhooks: false,
    };
    site.configure(&parts.config())?;
    let mut random = site.random();
    let (mut daemon, mut api) = Daemon::start(site)?;
    let mut cancelled = Vec::new();
    for round in 0..site.rounds {
        for race in Race::ALL {
            let keys: Vec<String> = (0..WORKS).map(|n| format!("{race:?}-{round}-{n}")).collect();
            prepare(site, &api, race, &keys)?;
            if race == Race::Recovery {
                daemon.kill()?;
                (daemon, api) = Daemon::start(site)?;
            }
            cancelled.extend(race_all(site, &api, race, keys, &mut random)?);
        }
    }
    let counts = nothing_goes_on(site, &api, &cancelled)?;
    check(daemon.is_running(), || "the daemon ended".to_owned())?;
    Ok(counts)
}

/// Brings Works to where a race begins.
fn prepare(site: &Site, api: &Api, race: Race, keys: &[String]) -> Result<(), Error> {
    if race == Race::Start {
        return Ok(());
    }
    for key in keys {
        api.accept(race.opens(), key)?;
    }
    let is_there = |key: &String| match race {
        Race::Start => true,
        Race::Wake => api.work_of(key).is_some_and(|work| work["state"] == "waiting"),
        Race::Retry => api.work_of(key).is_some_and(|work| work["failures"] == 1),
        Race::Completion | Race::Recovery => {
            site.ledger().has(key) && api.run_of(key).is_some_and(|run| run["state"] == "running")
        }
    };
    site.wait(&format!("the Works of {race:?} are there"), SOON, || keys.iter().all(is_there).then_some(()))
}

/// Races for every Work at once.
fn race_all(
    site: &Site,
    api: &Api,
    race: Race,
    keys: Vec<String>,
    random: &mut Random,
) -> Result<Vec<Cancelled>, Error> {
    let offsets: Vec<Moment> = keys.iter().map(|_| race.takes() + random.around(SPREAD)).collect();
    thread::scope(|scope| {
        let racers: Vec<_> = keys
            .into_iter()
            .zip(offsets)
            .map(|(key, offset)| scope.spawn(move || race_one(site, api, race, &key, offset)))
            .collect();
        racers.into_iter().map(|racer| racer.join().expect("a racer does not panic")).collect()
    })
}

fn race_one(site: &Site, api: &Api, race: Race, key: &str, offset: Moment) -> Result<Cancelled, Error> {
    let at = match race {
        // The daemon tries again by itself, at a time of its own.
        Race::Retry => {
            let due = |timer: &Value| {
                api.work_of(key).filter(|work| work["id"] == timer["work"]).map(|_| timer["due_at"].clone())
            };
            let timers = api.list("/v1/timers")?;
            timers.iter().find_map(due).map_or_else(|| Ok(machine::wall_micros()), |due| moment(&due))?
        }
        Race::Start | Race::Wake | Race::Completion | Race::Recovery => machine::wall_micros() + SPREAD,
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            until(site, at);
            match race {
                Race::Start => api.accept(race.opens(), key),
                Race::Wake => api.tell(GO, &format!("go-{key}"), key).map(drop),
                Race::Completion => site.open_gate(key),
                Race::Retry | Race::Recovery => Ok(()),
            }
        });
        until(site, at + offset);
        let by_us = cancel(site, api, key);
        other.join().expect("a sender does not panic")?;
        Ok(Cancelled { race, by_us: by_us?, key: key.to_owned() })
    })
}

/// Lets time pass until a moment.
fn until(site: &Site, at: Moment) {
    let left = u64::try_from(at - machine::wall_micros()).unwrap_or(0);
    site.pass(Duration::from_micros(left));
}

/// Cancels the Work of a key as soon as there is one. Whether that ended it; else it had ended.
fn cancel(site: &Site, api: &Api, key: &str) -> Result<bool, Error> {
    let work = site.watch(&format!("{key} has a Work"), || api.work_of(key))?;
    let path = format!("/v1/work/{}/cancel", work["id"].as_str().unwrap_or_default());
    let response = api.post(&path, &json!({}));
    let response = response.map_err(|error| Error::Drill(format!("POST {path}: {error}")))?;
    match (response.status, code(&response).as_deref()) {
        (200, None) => Ok(true),
        (409, Some("terminal_work")) => Ok(false),
        (status, other) => {
            Err(Error::Drill(format!("{key}: a cancellation was answered {status} {other:?}")))
        }
    }
}

/// Lets time pass in which nothing may happen any more, and checks what became of each Work.
fn nothing_goes_on(site: &Site, api: &Api, cancelled: &[Cancelled]) -> Result<Counts, Error> {
    site.wait("no run is left", SOON, || process::of_home(&site.home()).is_empty().then_some(()))?;
    let before = site.ledger().counts();
    site.pass(QUIET);
    let after = site.ledger().counts();
    check(before == after, || format!("something ran after everything was cancelled: {after:?}"))?;
    check(api.waiting()? == 0, || "somebody still waits".to_owned())?;
    let timers = api.list("/v1/timers")?;
    check(timers.is_empty(), || format!("timers outlived their Works: {timers:?}"))?;
    let mut counts: BTreeMap<Race, u64> = BTreeMap::new();
    let mut too_late = 0;
    for Cancelled { race, key, by_us } in cancelled {
        let work = api.work_of(key).unwrap_or_default();
        let expected = if *by_us { "cancelled" } else { "completed" };
        check(work["state"] == expected, || format!("{key} was to be {expected}, and is {work}"))?;
        let ended = moment(&work["ended_at"])?;
        for run in api.runs_of(key)? {
            let is_over = run["ended_at"].is_string() && run["unstopped"] == false;
            check(is_over && moment(&run["claimed_at"])? <= ended, || format!("{key} went on: {run}"))?;
            let is_right = *by_us || run["state"] != "cancelled";
            check(is_right, || format!("{key} completed, and this run was cancelled: {run}"))?;
        }
        for wait in api.waits_of(key)? {
            check(wait["state"] != "active", || format!("{key} still waits: {wait}"))?;
        }
        check(after.get(key).copied().unwrap_or(0) <= 1, || format!("{key} ran more than once"))?;
        *counts.entry(*race).or_default() += u64::from(*by_us);
        too_late += u64::from(!by_us);
    }
    let mut counts: Counts = counts.into_iter().map(|(race, count)| (race.counted(), count)).collect();
    counts.push(("too late", too_late));
    Ok(counts)
}
