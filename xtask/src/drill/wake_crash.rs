//! `wake-crash`: the daemon is killed between a wake and what goes on from it. The Wait ends once, and its Work
//! goes on once, whichever of the two the crash came before.
//!
//! Every other round chance chooses the moment. In the rounds between, the scope is paused, which holds the
//! window open: each Work has been woken and none goes on when the daemon is killed.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Counts;
use super::api::Api;
use super::config::Parts;
use super::daemon::Daemon;
use super::parked::{self, GO, PARKS};
use super::site::{Site, check};
use super::time::moment;
use crate::error::Error;

/// Works that wait in each round.
const WORKS: usize = 6;
/// The longest time from the last Event to the kill, where chance chooses it.
const MOMENT_MAX: Duration = Duration::from_millis(12);

pub(super) fn run(site: &Site) -> Result<Counts, Error> {
    let parts = Parts {
        concurrency: 8,
        bindings: vec![parked::binding(site, &[])],
        routes: parked::routes().into(),
        webhooks: false,
    };
    site.configure(&parts.config())?;
    let mut random = site.random();
    let mut told = BTreeSet::new();
    let (mut in_window, mut taken_over) = (0, 0);
    let (mut daemon, mut api) = Daemon::start(site)?;
    for round in 0..site.rounds {
        let keys: Vec<String> = (0..WORKS).map(|number| format!("parks-{round}-{number}")).collect();
        for key in &keys {
            api.accept(PARKS, key)?;
        }
        api.until_waiting(site, WORKS)?;
        let held = round % 2 == 1;
        if held {
            api.pause_scope("pause")?;
        }
        let mut winners = Vec::new();
        for key in &keys {
            winners.push(api.tell(GO, &format!("go-{key}"), key)?);
        }
        if held {
            api.until_waiting(site, 0)?;
        } else {
            site.pass(random.up_to(MOMENT_MAX));
        }
        daemon.kill()?;
        (daemon, api) = Daemon::start(site)?;
        if held {
            api.pause_scope("resume")?;
        }
        let hits = went_on_once(site, &api, &keys, &winners)?;
        check(!held || hits.between == WORKS as u64, || "the window was not held open".to_owned())?;
        in_window += hits.between;
        taken_over += hits.taken_over;
        told.extend(keys.iter().flat_map(|key| [key.clone(), format!("go-{key}")]));
        site.ledger().check(&told)?;
    }
    check(daemon.is_running(), || "the daemon ended".to_owned())?;
    Ok(vec![
        ("daemons killed", u64::from(site.rounds)),
        ("Works", told.len() as u64 / 2),
        ("killed between wake and start", in_window),
        ("taken over", taken_over),
    ])
}

/// Where the crash came.
#[derive(Default)]
struct Hits {
    /// After the wake, before its run was claimed.
    between: u64,
    /// After that.
    taken_over: u64,
}

fn went_on_once(site: &Site, api: &Api, keys: &[String], winners: &[String]) -> Result<Hits, Error> {
    let started = api.started_at()?;
    let mut hits = Hits::default();
    for (key, winner) in keys.iter().zip(winners) {
        let woken = parked::woken_once(site, api, key)?;
        check(woken.winner() == winner, || {
            format!("{key} was woken by {} and not {winner}", woken.winner())
        })?;
        let runs = api.runs_of(key)?.len();
        check(runs == 2, || format!("{key} has {runs} runs"))?;
        let was_woken = moment(&woken.wait["ended_at"])? < started;
        let was_claimed = moment(&woken.run["claimed_at"])? < started;
        hits.between += u64::from(was_woken && !was_claimed);
        hits.taken_over += u64::from(was_claimed && woken.run["epoch"].as_i64() > Some(1));
    }
    Ok(hits)
}
