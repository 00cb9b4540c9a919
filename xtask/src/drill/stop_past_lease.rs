//! `stop-past-lease`: the daemon is suspended until every lease it has is over, with launches held, jobs
//! running, jobs that make calls, and jobs ending meanwhile, some of them to wait. When it goes on, what it knew and
//! what it had handed out has no effect: each delivery still has one line and one outcome, under an authority that
//! was taken anew.
//!
//! On PostgreSQL another daemon goes on meanwhile: it takes the loops over, runs what arrives, accepts what a
//! Work of the suspended one is about to wait for, and cancels another of its Works.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use super::Counts;
use super::api::{Api, has_ended};
use super::config::{self, Parts};
use super::daemon::Daemon;
use super::job::{CALLED, STALE};
use super::parked::{self, GO, PARKS};
use super::process;
use super::site::{SOON, Site, check};
use crate::error::Error;

/// The type that opens a Work whose job makes calls.
const CALLS: &str = "drill.calls";
/// Longer than the thirty seconds of a lease, however late it was renewed.
const PAST_LEASE: Duration = Duration::from_secs(33);
/// Launches that are under way when the daemon is suspended.
const LAUNCHES: usize = 6;

/// The deliveries of one round.
struct Round {
    /// Whose jobs go on.
    running: Vec<String>,
    /// Whose jobs end while the daemon is suspended.
    ending: Vec<String>,
    /// Whose jobs end meanwhile, to wait.
    parking: Vec<String>,
    /// Whose jobs make calls under what they began with: while the daemon is suspended, and when it has gone on.
    calling: Vec<String>,
    /// Whose launches are under way.
    launching: Vec<String>,
    /// Whose job ends meanwhile, after its Work was cancelled.
    cancelled: String,
    /// What another daemon is given.
    elsewhere: String,
}

impl Round {
    fn new(round: u32) -> Self {
        let names = |part: &str, count| (0..count).map(|number| format!("{part}-{round}-{number}")).collect();
        Self {
            running: names("goes-on", 2),
            ending: names("ends", 2),
            parking: names("parks", 3),
            calling: names("calls", 2),
            launching: names("launch", LAUNCHES),
            cancelled: format!("cancelled-{round}"),
            elsewhere: format!("elsewhere-{round}"),
        }
    }

    /// What runs when the daemon is suspended.
    fn begun(&self) -> BTreeSet<String> {
        let plain = self.running.iter().chain(&self.ending).chain([&self.cancelled]);
        plain.chain(&self.parking).chain(&self.calling).cloned().collect()
    }
}

pub(super) fn run(site: &Site) -> Result<Counts, Error> {
    let [parks, go] = parked::routes();
    let gate = site.gate().to_string_lossy().into_owned();
    let parts = Parts {
        concurrency: 32,
        bindings: vec![
            config::gated_job(site, "wait"),
            config::job(site, "calls", &["--gate", &gate, "--calls"]),
            parked::binding(site, &["--gate", &gate]),
        ],
        routes: vec![config::fresh("drill.wait", "wait"), config::fresh(CALLS, "calls"), parks, go],
        webhooks: false,
    };
    site.configure(&parts.config())?;
    let (mut daemon, api) = Daemon::start(site)?;
    let mut expected = BTreeSet::new();
    let mut held = 0;
    for round in 0..site.rounds {
        let round = Round::new(round);
        let (launches, other) = suspend_and_go_on(site, &daemon, &api, &round, &mut expected)?;
        held += launches;
        settle(site, &api, &round, &mut expected)?;
        // It may have runs of its own, which nobody else can look after.
        other.map(Daemon::stop).transpose()?;
        site.ledger().check(&expected)?;
    }
    let taken_over = api.counter("runs_recovered", "")?;
    check(taken_over > 0, || "no lease was found to be over, so nothing was drilled".to_owned())?;
    check(daemon.is_running(), || "the daemon did not survive its suspension".to_owned())?;
    site.wait("nothing is left running", SOON, || process::of_home(&site.home()).is_empty().then_some(()))?;
    Ok(vec![
        ("deliveries", expected.len() as u64),
        ("held while suspended", held as u64),
        ("taken over", taken_over),
        ("stale reports", api.counter("reports_stale", "")?),
    ])
}

/// Suspends the daemon over the end of its leases. Returns how many launches it held meanwhile, and the daemon that
/// went on.
fn suspend_and_go_on<'s>(
    site: &'s Site,
    daemon: &Daemon<'_>,
    api: &Api,
    round: &Round,
    expected: &mut BTreeSet<String>,
) -> Result<(usize, Option<Daemon<'s>>), Error> {
    for delivery in round.running.iter().chain(&round.ending).chain([&round.cancelled]) {
        api.accept("drill.wait", delivery)?;
    }
    for delivery in &round.parking {
        api.accept(PARKS, delivery)?;
    }
    for delivery in &round.calling {
        api.accept(CALLS, delivery)?;
    }
    let begun = round.begun();
    site.wait("the jobs have begun", SOON, || site.ledger().has_all(&begun).then_some(()))?;

    let before = site.run_folders();
    for delivery in &round.launching {
        api.accept("drill.wait", delivery)?;
    }
    let is_new = |folder: &std::path::PathBuf| !before.contains(folder);
    site.watch("a launch begins", || site.run_folders().iter().any(is_new).then_some(()))?;
    daemon.suspend()?;
    let told = |folder: &std::path::PathBuf| folder.join("e1").join("verdict").exists();
    let held = site.run_folders().iter().filter(|folder| is_new(folder) && !told(folder)).count();
    expected.extend(begun);
    expected.extend(round.launching.iter().cloned());

    for delivery in round.ending.iter().chain(&round.parking).chain(&round.calling[..1]) {
        site.open_gate(delivery)?;
    }
    let other = if site.database.is_some() {
        Some(meanwhile(site, round, expected)?)
    } else {
        site.pass(PAST_LEASE);
        None
    };
    daemon.resume()?;
    Ok((held, other))
}

/// What another daemon does while the first one is suspended.
fn meanwhile<'s>(
    site: &'s Site,
    round: &Round,
    expected: &mut BTreeSet<String>,
) -> Result<Daemon<'s>, Error> {
    let (other, api) = Daemon::start_in(site, site.other_home())?;
    api.accept("drill.wait", &round.elsewhere)?;
    site.wait("another daemon takes the loops and runs what arrives", SOON, || {
        site.ledger().has(&round.elsewhere).then_some(())
    })?;
    site.open_gate(&round.elsewhere)?;
    site.wait("its run ends", SOON, || api.run_of(&round.elsewhere).filter(has_ended))?;
    let work = api.work_of(&round.cancelled).unwrap_or_default();
    let path = format!("/v1/work/{}/cancel", work["id"].as_str().unwrap_or_default());
    let answer = api.post(&path, &json!({}));
    check(answer.as_ref().is_ok_and(|answer| answer.status == 200), || {
        format!("a Work of a suspended daemon could not be cancelled: {answer:?}")
    })?;
    site.open_gate(&round.cancelled)?;
    let parked = &round.parking[0];
    let go = format!("go-{parked}");
    // Its job has ended to wait, and nobody has written that down yet.
    api.tell(GO, &go, parked)?;
    expected.extend([round.elsewhere.clone(), go]);
    site.pass(PAST_LEASE);
    Ok(other)
}

/// Checks that a call under an authority that was over has had no effect, and the one under the next authority one.
fn calls_were_fenced(site: &Site, api: &Api, calling: &[String]) -> Result<(), Error> {
    for delivery in calling {
        // One that makes its calls later makes them once its run was taken over.
        site.wait(&format!("{delivery} is taken over"), SOON, || {
            api.run_of(delivery).filter(|run| run["epoch"].as_i64() > Some(1) && run["recovering"] == false)
        })?;
        site.open_gate(delivery)?;
        let run = site
            .wait(&format!("the run of {delivery} ends"), SOON, || api.run_of(delivery).filter(has_ended))?;
        check(run["state"] == "completed", || format!("{delivery} ended so: {run}"))?;
        for (event_type, expected) in [(STALE, 0), (CALLED, 1)] {
            let events = api.list(&format!("/v1/events?type={event_type}"))?;
            let emitted = events.iter().filter(|event| event["emitted_by"] == run["id"]).count();
            check(emitted == expected, || format!("{delivery} has emitted {emitted} of {event_type}"))?;
        }
    }
    Ok(())
}

/// Lets everything come to its end and checks what became of it.
fn settle(site: &Site, api: &Api, round: &Round, expected: &mut BTreeSet<String>) -> Result<(), Error> {
    let shared = site.database.is_some();
    site.wait("every job has begun", SOON, || site.ledger().has_all(&*expected).then_some(()))?;
    for delivery in round.running.iter().chain(&round.launching).chain([&round.cancelled]) {
        site.open_gate(delivery)?;
    }
    calls_were_fenced(site, api, &round.calling)?;
    for delivery in round.running.iter().chain(&round.ending).chain(&round.launching) {
        let what = format!("the run of {delivery} ends");
        let run = site.wait(&what, SOON, || api.run_of(delivery).filter(has_ended))?;
        check(run["state"] == "completed", || format!("{delivery} ended so: {run}"))?;
        let runs = api.runs_of(delivery)?.len();
        check(runs == 1, || format!("{delivery} has {runs} runs"))?;
        // Whatever began before was under a lease that is over.
        let renewed = round.launching.contains(delivery) || run["epoch"].as_i64() > Some(1);
        check(renewed, || format!("{delivery} ended by an authority that was over: {run}"))?;
    }
    let run = site.wait("a run ends", SOON, || api.run_of(&round.cancelled).filter(has_ended))?;
    let end = if shared { "cancelled" } else { "completed" };
    let work = api.work_of(&round.cancelled).unwrap_or_default();
    check(run["state"] == end && work["state"] == end, || {
        format!("{} was to be {end}: {run} {work}", round.cancelled)
    })?;
    for (number, key) in round.parking.iter().enumerate() {
        let go = format!("go-{key}");
        if number > 0 || !shared {
            site.wait(&format!("{key} waits"), SOON, || {
                api.work_of(key).filter(|work| work["state"] == "waiting")
            })?;
            api.tell(GO, &go, key)?;
            expected.insert(go.clone());
        }
        let woken = parked::woken_once(site, api, key)?;
        let winner = api.event(woken.winner())?;
        check(winner["delivery_id"] == go.as_str(), || format!("{key} was woken by {winner}"))?;
        let first = api.runs_of(key)?.pop().unwrap_or_default();
        let renewed = first["epoch"].as_i64() > Some(1);
        check(renewed, || format!("{key} parked by an authority that was over: {first}"))?;
    }
    Ok(())
}
