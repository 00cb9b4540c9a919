//! `random-kill`: the daemon is killed again and again at random moments while deliveries arrive. What was
//! accepted runs once, whatever was under way; what got no answer is sent again under its id and exists once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::Counts;
use super::api::{Api, is_accepted};
use super::config::{self, Parts};
use super::daemon::Daemon;
use super::delivery::{SECRET, send_github, send_hook};
use super::signature::sign;
use super::site::{SOON, Site, check};
use crate::error::Error;
use crate::machine;

/// Threads that send deliveries.
pub(super) const CLIENTS: u64 = 4;
/// Deliveries that may be accepted and not yet in the ledger before the clients wait.
const AHEAD_MAX: usize = 40;
/// The longest life of a daemon once it answers.
const LIFE_MAX: Duration = Duration::from_millis(300);
/// The longest life of a daemon that is killed while it starts.
const START_MAX: Duration = Duration::from_millis(120);
/// What the daemon logs when it launches again what had not started.
const RELAUNCHED: &str = "\"found\":\"relaunched\"";
/// How long everything may take to run once nobody kills any more.
const DRAIN_TIME_MAX: Duration = Duration::from_mins(2);

pub(super) fn run(site: &Site) -> Result<Counts, Error> {
    site.configure(&parts(site).config())?;
    let (daemon, api) = Daemon::start(site)?;
    let load = Load::new(site, api.clone());
    load.direct_webhooks()?;
    let killed = thread::scope(|scope| {
        for client in 0..CLIENTS {
            let load = &load;
            scope.spawn(move || load.send_until_stopped(client));
        }
        let killed = kill_again_and_again(site, &load, daemon);
        load.stop.store(true, Ordering::Relaxed);
        if killed.is_err() {
            load.give_up.store(true, Ordering::Relaxed);
        }
        killed
    });
    let (daemon, mut counts) = killed?;
    load.check()?;
    let accepted = load.accepted.into_inner().unwrap_or_else(PoisonError::into_inner);
    counts.push(("sent again", load.sent_again.into_inner()));
    counts.extend(settle(site, &api, &accepted)?);
    daemon.stop()?;
    Ok(counts)
}

/// Kills daemon after daemon; the last one lives.
fn kill_again_and_again<'s>(
    site: &'s Site,
    load: &Load<'_>,
    mut daemon: Daemon<'s>,
) -> Result<(Daemon<'s>, Counts), Error> {
    let mut random = site.random();
    let (mut kills, mut while_starting) = (0, 0);
    for _ in 0..site.rounds {
        load.check()?;
        if random.below(5) == 0 {
            site.pass(random.up_to(START_MAX));
            while_starting += 1;
        } else {
            daemon.wait_until_ready()?;
            load.direct_webhooks()?;
            site.pass(random.up_to(LIFE_MAX));
        }
        daemon.kill()?;
        daemon = Daemon::spawn(site)?;
        kills += 1;
    }
    daemon.wait_until_ready()?;
    load.direct_webhooks()?;
    Ok((daemon, vec![("kills", kills), ("while starting", while_starting)]))
}

/// One part of the load makes a Work for each Event, the other gives its Events to a few standing Works, whose
/// attempts take in several at once.
pub(super) fn parts(site: &Site) -> Parts {
    Parts {
        concurrency: 6,
        bindings: vec![config::job(site, "append", &[])],
        routes: vec![
            config::fresh("drill.fresh", "append"),
            config::keyed("drill.keyed", "append"),
            config::fresh("drill.hook", "append"),
            config::keyless("github.delivery", "append"),
        ],
        webhooks: true,
    }
}

/// The deliveries of one drill and what is known about them.
pub(super) struct Load<'s> {
    site: &'s Site,
    api: Api,
    /// Where the present daemon takes webhooks.
    webhooks: Mutex<Option<SocketAddr>>,
    pub(super) accepted: Mutex<BTreeSet<String>>,
    pub(super) sent_again: AtomicU64,
    /// Nothing new is sent any more.
    pub(super) stop: AtomicBool,
    /// Not even what was begun is finished.
    pub(super) give_up: AtomicBool,
    /// Answers that must not be.
    wrong: Mutex<Vec<String>>,
}

impl<'s> Load<'s> {
    pub(super) fn new(site: &'s Site, api: Api) -> Self {
        Self {
            site,
            api,
            webhooks: Mutex::default(),
            accepted: Mutex::default(),
            sent_again: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            give_up: AtomicBool::new(false),
            wrong: Mutex::default(),
        }
    }

    /// Sends webhooks to the daemon that answers now.
    pub(super) fn direct_webhooks(&self) -> Result<(), Error> {
        let address = self.api.webhooks()?;
        *self.webhooks.lock().unwrap_or_else(PoisonError::into_inner) = Some(address);
        Ok(())
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        check(wrong.is_empty(), || format!("answers that must not be: {:?}", *wrong))
    }

    /// Sends delivery after delivery, each again and again until it was accepted.
    pub(super) fn send_until_stopped(&self, client: u64) {
        for number in 0_u64.. {
            let stopped = || self.stop.load(Ordering::Relaxed);
            let in_step =
                self.site.wait("the jobs keep up", SOON, || (stopped() || self.is_in_step()).then_some(()));
            if stopped() || in_step.is_err() {
                return;
            }
            let delivery = format!("c{client}-{number}");
            let accepted = machine::until_every(Duration::from_millis(3), DRAIN_TIME_MAX, || {
                if self.give_up.load(Ordering::Relaxed) {
                    return Some(false);
                }
                if self.send((client + number) % 4, number, &delivery) {
                    return Some(true);
                }
                self.sent_again.fetch_add(1, Ordering::Relaxed);
                None
            });
            match accepted {
                Some(true) => {
                    self.accepted.lock().unwrap_or_else(PoisonError::into_inner).insert(delivery);
                }
                Some(false) => return,
                None => {
                    let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
                    return wrong.push(format!("{delivery} was never accepted"));
                }
            }
        }
    }

    /// How many deliveries were accepted.
    pub(super) fn count(&self) -> usize {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn is_in_step(&self) -> bool {
        self.count() < self.site.ledger().len() + AHEAD_MAX
    }

    /// Sends a delivery once; whether it was accepted.
    fn send(&self, way: u64, number: u64, delivery: &str) -> bool {
        let webhooks = *self.webhooks.lock().unwrap_or_else(PoisonError::into_inner);
        let response = match (way, webhooks) {
            (0, Some(address)) => send_hook(address, delivery),
            (1, Some(address)) => {
                let body = json!({ "zen": delivery }).to_string().into_bytes();
                send_github(address, "ping", delivery, &body, &sign(SECRET, &body))
            }
            (2, _) => {
                let key = format!("standing-{}", number % 3);
                self.api.emit_with("drill.keyed", delivery, &key, &Value::Null)
            }
            (_, _) => self.api.emit("drill.fresh", delivery),
        };
        let Ok(response) = response else { return false };
        if matches!(response.status, 400..=500) {
            let answer =
                format!("{delivery}: {} {}", response.status, String::from_utf8_lossy(&response.body));
            self.wrong.lock().unwrap_or_else(PoisonError::into_inner).push(answer);
        }
        is_accepted(&response)
    }
}

/// Waits until everything has run and compares the ledger, the Events and the runs with what was accepted.
pub(super) fn settle(site: &Site, api: &Api, accepted: &BTreeSet<String>) -> Result<Counts, Error> {
    let ledger = site.ledger();
    site.wait("every accepted delivery runs", DRAIN_TIME_MAX, || ledger.has_all(accepted).then_some(()))?;
    site.wait("every run ends", DRAIN_TIME_MAX, || {
        let live =
            |state| api.get(&format!("/v1/runs?state={state}")).ok().map(|page| page["items"] == json!([]));
        (live("running")? && live("launching")?).then_some(())
    })?;
    ledger.check(accepted)?;

    let mut events: BTreeMap<String, u64> = BTreeMap::new();
    for event in api.list("/v1/events")? {
        if !event["type"].as_str().is_some_and(|event_type| event_type.starts_with("core.")) {
            *events.entry(event["delivery_id"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
        }
    }
    let strange: Vec<_> =
        events.iter().filter(|(id, count)| **count != 1 || !accepted.contains(*id)).collect();
    check(strange.is_empty() && events.len() == accepted.len(), || {
        format!("{} deliveries became {} Events; strange: {strange:?}", accepted.len(), events.len())
    })?;

    let runs = api.list("/v1/runs")?;
    let unfinished: Vec<&Value> = runs.iter().filter(|run| run["state"] != "completed").collect();
    check(unfinished.is_empty(), || {
        format!("runs that did not complete: {:?}", &unfinished[..unfinished.len().min(3)])
    })?;
    let mut triggers: BTreeMap<&str, u64> = BTreeMap::new();
    for run in &runs {
        *triggers.entry(run["trigger"]["event"].as_str().unwrap_or_default()).or_default() += 1;
    }
    check(triggers.values().all(|count| *count == 1), || "an Event triggered two runs".to_owned())?;
    let taken_over = runs.iter().filter(|run| run["epoch"].as_i64() > Some(1)).count();
    let log = fs::read_to_string(site.log()).unwrap_or_default();
    let relaunched = log.lines().filter(|line| line.contains(RELAUNCHED)).count();
    Ok(vec![
        ("deliveries", accepted.len() as u64),
        ("runs", runs.len() as u64),
        ("taken over", taken_over as u64),
        ("relaunched", relaunched as u64),
    ])
}
