//! `start-record`: the daemon is killed at named points between the launch of a job and the record of it, and
//! the launcher is killed while it holds and while the job runs. Nothing runs twice, nothing is lost.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::Counts;
use super::api::{Api, has_ended};
use super::config::{self, Parts};
use super::daemon::Daemon;
use super::process;
use super::site::{SOON, Site, check};
use crate::error::Error;

/// Chance moves each point by up to this.
const SHIFT_MAX: Duration = Duration::from_millis(5);

/// Where a launch is when the daemon is killed.
#[derive(Debug, Clone, Copy)]
enum Point {
    /// Its folder is there; its launcher is about to be.
    Folder,
    /// Its launcher is there and holds, or is about to.
    Launcher,
    /// It was told to go.
    Verdict,
    /// Its job has done what it had to do.
    Line,
    /// Its end was written down.
    Status,
}

const POINTS: [Point; 5] = [Point::Folder, Point::Launcher, Point::Verdict, Point::Line, Point::Status];

pub(super) fn run(site: &Site) -> Result<Counts, Error> {
    let parts = Parts {
        concurrency: 4,
        bindings: vec![config::job(site, "append", &[]), config::gated_job(site, "wait")],
        routes: vec![config::fresh("drill.append", "append"), config::fresh("drill.wait", "wait")],
        webhooks: false,
    };
    site.configure(&parts.config())?;
    let mut ran = BTreeSet::new();
    let mut random = site.random();
    let mut taken_over = 0;
    let (mut daemon, mut api) = Daemon::start(site)?;
    for round in 0..site.rounds {
        let delivery = format!("daemon-{round}");
        let before = site.run_folders();
        let point = POINTS[round as usize % POINTS.len()];
        api.accept("drill.append", &delivery)?;
        let folder = site.watch("a launch makes its folder", || new_folder(site, &before))?;
        site.watch(&format!("a launch comes to {point:?}"), || {
            // Whoever is past the point has passed it.
            (is_at(site, point, &folder, &delivery) || folder.join("status").exists()).then_some(())
        })?;
        site.pass(random.up_to(SHIFT_MAX));
        daemon.kill()?;
        (daemon, api) = Daemon::start(site)?;
        let run = ended(site, &api, &delivery)?;
        check(run["state"] == "completed", || format!("killed at {point:?}, the run ended so: {run}"))?;
        taken_over += u64::from(run["epoch"].as_i64() > Some(1));
        ran.insert(delivery);
        site.ledger().check(&ran)?;
    }
    let launchers = site.rounds.div_ceil(4);
    let held = kill_holding_launchers(site, &daemon, &api, launchers, &mut ran)?;
    kill_running_launchers(site, &api, launchers, &mut ran)?;
    site.ledger().check(&ran)?;
    check(daemon.is_running(), || "the daemon did not survive the death of its launchers".to_owned())?;
    Ok(vec![
        ("daemons killed", u64::from(site.rounds)),
        ("taken over", taken_over),
        ("launchers killed holding", held),
        ("launchers killed running", u64::from(launchers)),
    ])
}

fn new_folder(site: &Site, before: &[PathBuf]) -> Option<PathBuf> {
    let folder = site.run_folders().into_iter().find(|folder| !before.contains(folder))?;
    Some(folder.join("e1"))
}

fn is_at(site: &Site, point: Point, folder: &Path, delivery: &str) -> bool {
    match point {
        Point::Folder => true,
        Point::Launcher => process::of_home(&site.home()).iter().any(process::Process::is_launcher),
        Point::Verdict => folder.join("verdict").exists(),
        Point::Line => site.ledger().has(delivery),
        Point::Status => folder.join("status").exists(),
    }
}

/// Waits until the one run of a delivery has ended.
fn ended(site: &Site, api: &Api, delivery: &str) -> Result<Value, Error> {
    let run = site.wait("the run of a delivery ends", SOON, || api.run_of(delivery).filter(has_ended))?;
    let runs = api.runs_of(delivery)?.len();
    check(runs == 1, || format!("{delivery} has {runs} runs"))?;
    Ok(run)
}

/// The daemon stands still while the launcher is killed, so that it can't say go in between.
fn kill_holding_launchers(
    site: &Site,
    daemon: &Daemon<'_>,
    api: &Api,
    rounds: u32,
    ran: &mut BTreeSet<String>,
) -> Result<u64, Error> {
    let mut held = 0;
    for round in 0..rounds {
        let delivery = format!("holding-{round}");
        let before = site.run_folders();
        api.accept("drill.append", &delivery)?;
        let folder = site.watch("a launch makes its folder", || new_folder(site, &before))?;
        let launcher = site.watch("a launcher starts, or is done already", || {
            let found = process::of_home(&site.home()).into_iter().find(process::Process::is_launcher);
            found.map(Some).or_else(|| folder.join("status").exists().then_some(None))
        })?;
        daemon.suspend()?;
        if let Some(launcher) = launcher {
            process::kill_if_there(launcher.pid);
            site.watch("the launcher is gone", || {
                let there = process::of_home(&site.home()).iter().any(|other| other.pid == launcher.pid);
                (!there).then_some(())
            })?;
        }
        // The word to go may have been on its way already, so what it was told is known once it is gone.
        let was_told = folder.join("verdict").exists();
        daemon.resume()?;
        let run = ended(site, api, &delivery)?;
        let code = run["code"].as_str().unwrap_or_default();
        if was_told {
            check(run["state"] == "completed" || code == "interrupted", || {
                format!("the run ended so: {run}")
            })?;
        } else {
            held += 1;
            let is_right = run["state"] == "failed" && ["spawn_failed", "interrupted"].contains(&code);
            check(is_right, || {
                format!("its launcher was killed while it held, and the run ended so: {run}")
            })?;
            check(!site.ledger().has(&delivery), || format!("{delivery} ran although its launcher held it"))?;
        }
        if site.ledger().has(&delivery) {
            ran.insert(delivery);
        }
    }
    Ok(held)
}

fn kill_running_launchers(
    site: &Site,
    api: &Api,
    rounds: u32,
    ran: &mut BTreeSet<String>,
) -> Result<(), Error> {
    for round in 0..rounds {
        let delivery = format!("running-{round}");
        api.accept("drill.wait", &delivery)?;
        site.wait("the job has begun", SOON, || site.ledger().has(&delivery).then_some(()))?;
        let launchers: Vec<_> =
            process::of_home(&site.home()).into_iter().filter(process::Process::is_launcher).collect();
        check(launchers.len() == 1, || format!("one job runs under {} launchers", launchers.len()))?;
        process::signal(launchers[0].pid, "KILL")?;
        let run = ended(site, api, &delivery)?;
        check(run["state"] == "failed" && run["code"] == "interrupted", || {
            format!("its launcher was killed while the job ran, and the run ended so: {run}")
        })?;
        site.wait("the job dies with its launcher", SOON, || {
            process::of_home(&site.home()).is_empty().then_some(())
        })?;
        ran.insert(delivery);
    }
    Ok(())
}
