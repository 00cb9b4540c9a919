//! `workspace`: a run has a fresh checkout while the daemon is killed. The next daemon takes the run over in the same
//! checkout; it is removed after a run that ended well, and kept for its time after one that failed.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Counts;
use super::api::{Api, has_ended};
use super::config::{self, Parts};
use super::daemon::Daemon;
use super::site::{SOON, Site, check};
use crate::error::Error;
use crate::machine;

/// How long a checkout is kept after a failure. Longer than a daemon takes to start.
const RETAIN_SECONDS: u32 = 12;

pub(super) fn run(site: &Site) -> Result<Counts, Error> {
    let checkout = cloned(site)?;
    let resource = json!({
        "provider": "git",
        "config": { "checkout": checkout, "mode": "fresh", "retain_failed_seconds": RETAIN_SECONDS },
    });
    let gate = site.gate();
    let fails = "os context > \"$GATE/told\"; while [ ! -e \"$GATE/failing\" ]; do sleep 0.05; done; exit 3";
    let failing = json!({
        "name": "fails",
        "executor": "shell",
        "config": { "command": fails, "env": { "GATE": gate } },
    });
    let placed = |mut binding: Value| {
        binding["resource"] = resource.clone();
        binding
    };
    let parts = Parts {
        concurrency: 4,
        bindings: vec![placed(config::gated_job(site, "works")), placed(failing)],
        routes: vec![config::fresh("drill.works", "works"), config::fresh("drill.fails", "fails")],
        webhooks: false,
    };
    site.configure(&parts.config())?;
    let (mut daemon, mut api) = Daemon::start(site)?;
    for round in 0..site.rounds {
        let (good, bad) = (format!("good{round}"), format!("bad{round}"));
        api.accept("drill.works", &good)?;
        api.accept("drill.fails", &bad)?;
        let (good_place, bad_place) = (place(site, &api, &good)?, place(site, &api, &bad)?);
        daemon.kill()?;
        (daemon, api) = Daemon::start(site)?;
        site.open_gate(&good)?;
        site.open_gate("failing")?;
        let good_run = ended(site, &api, &good, "completed", &good_place)?;
        site.wait("the checkout of the good run is removed", SOON, || (!good_place.exists()).then_some(()))?;
        ended(site, &api, &bad, "failed", &bad_place)?;
        told(&gate.join("told"), &bad_place)?;
        check(bad_place.is_dir(), || format!("{} is gone", bad_place.display()))?;
        // What was kept is known to the next daemon, too.
        daemon.kill()?;
        check(bad_place.is_dir(), || format!("{} is gone too early", bad_place.display()))?;
        (daemon, api) = Daemon::start(site)?;
        site.wait("the checkout of the failed run is removed in its time", SOON * 2, || {
            (!bad_place.exists()).then_some(())
        })?;
        check(good_run["epoch"].as_i64() > Some(1), || format!("nobody took {good_run} over"))?;
        let gate = gate.join("failing");
        std::fs::remove_file(&gate).map_err(machine::file_error("remove", &gate))?;
    }
    check(daemon.is_running(), || "the daemon ended".to_owned())?;
    Ok(vec![("removed", u64::from(site.rounds)), ("kept", u64::from(site.rounds))])
}

/// A remote with one commit, and a main checkout of it.
fn cloned(site: &Site) -> Result<PathBuf, Error> {
    let folder = &site.folder;
    let git = |dir: &Path, words: &[&str]| {
        machine::read(machine::command("git").current_dir(dir).args(words)).map(drop)
    };
    git(folder, &["init", "--quiet", "--bare", "--initial-branch=main", "remote.git"])?;
    git(folder, &["clone", "--quiet", "remote.git", "main"])?;
    let main = folder.join("main");
    let by = ["-c", "user.name=drill", "-c", "user.email=drill@example.org"];
    git(&main, &[&by[..], &["commit", "--quiet", "--allow-empty", "-m", "first"]].concat())?;
    git(&main, &["push", "--quiet", "origin", "HEAD:main"])?;
    git(&main, &["remote", "set-head", "origin", "main"])?;
    Ok(main)
}

/// The checkout of a run that goes on.
fn place(site: &Site, api: &Api, delivery: &str) -> Result<PathBuf, Error> {
    let dir = site.wait(&format!("the run of {delivery} has a checkout"), SOON, || {
        let run = api.run_of(delivery)?;
        (run["state"] == "running").then_some(())?;
        Some(PathBuf::from(run["workspace"]["dir"].as_str()?))
    })?;
    check(dir.join(".git").exists(), || format!("{} is no checkout", dir.display()))?;
    Ok(dir)
}

/// That a run was told by `os context` where it works.
fn told(file: &Path, place: &Path) -> Result<(), Error> {
    let text = std::fs::read_to_string(file).map_err(machine::file_error("read", file))?;
    let context: Value = serde_json::from_str(&text).unwrap_or_default();
    let is_right = context["workspace"]["dir"] == place.to_string_lossy().as_ref();
    check(is_right, || format!("a run was told by `os context`: {text}"))
}

/// The end of a run, which was told of the same checkout to the last.
fn ended(site: &Site, api: &Api, delivery: &str, state: &str, place: &Path) -> Result<Value, Error> {
    let what = format!("the run of {delivery} ends");
    let run = site.wait(&what, SOON, || api.run_of(delivery).filter(has_ended))?;
    let is_right = run["state"] == state && run["workspace"]["dir"] == place.to_string_lossy().as_ref();
    check(is_right, || format!("the run of {delivery} ended so: {run}"))?;
    Ok(run)
}
