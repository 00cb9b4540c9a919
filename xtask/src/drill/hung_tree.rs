//! `hung-tree`: a job that hangs, whose grandchildren have left its session and ignore every request to end.
//! Its deadline or a cancellation ends all of them, also when the daemon was killed in between.

use serde_json::json;

use super::Counts;
use super::api::{Api, has_ended};
use super::config::{self, Parts};
use super::daemon::Daemon;
use super::process;
use super::site::{SOON, Site, check};
use crate::error::Error;

/// Processes of one tree besides its launcher: the job, a grandchild in a session of its own, one that was
/// forked twice, and one that has no environment.
const TREE: usize = 4;

pub(super) fn run(site: &Site) -> Result<Counts, Error> {
    // By this argument the processes are found even where their environment names no run.
    let token = format!("hung-{:016x}", site.seed);
    let parts = Parts {
        concurrency: 8,
        bindings: vec![hung(&token, "overdue", 2), hung(&token, "endless", 600)],
        routes: vec![config::fresh("drill.overdue", "overdue"), config::fresh("drill.endless", "endless")],
        webhooks: false,
    };
    site.configure(&parts.config())?;
    let (mut daemon, mut api) = Daemon::start(site)?;
    let trees = || process::with_argument(&token);
    for round in 0..site.rounds {
        let overdue = [format!("overdue-{round}-a"), format!("overdue-{round}-b")];
        for delivery in &overdue {
            api.accept("drill.overdue", delivery)?;
        }
        wait_for_trees(site, &token, overdue.len())?;
        if round % 2 == 1 {
            daemon.kill()?;
            (daemon, api) = Daemon::start(site)?;
        }
        for delivery in &overdue {
            let run = site.wait("a hung run ends", SOON, || api.run_of(delivery).filter(has_ended))?;
            let code = run["code"].as_str().unwrap_or_default();
            let is_right = run["state"] == "failed" && ["deadline", "timeout"].contains(&code);
            check(is_right && run["unstopped"] == false, || format!("a hung run ended so: {run}"))?;
        }
        check(trees().is_empty(), || format!("after the deadline there still are {:?}", trees()))?;

        let cancelled = format!("endless-{round}");
        api.accept("drill.endless", &cancelled)?;
        wait_for_trees(site, &token, 1)?;
        cancel(site, &api, &cancelled)?;
        site.wait("a cancelled tree is gone", SOON, || trees().is_empty().then_some(()))?;
        let left = process::of_home(&site.home());
        site.wait("its launcher is gone", SOON, || process::of_home(&site.home()).is_empty().then_some(()))
            .map_err(|error| Error::Drill(format!("{error}; at first there were {left:?}")))?;
    }
    check(daemon.is_running(), || "the daemon ended".to_owned())?;
    let rounds = u64::from(site.rounds);
    Ok(vec![("deadlines", 2 * rounds), ("cancellations", rounds)])
}

/// A binding whose job starts a tree that has to be killed.
fn hung(token: &str, name: &str, timeout_seconds: u32) -> serde_json::Value {
    let hang = "trap \"\" TERM HUP INT; while :; do sleep 3600; done";
    let script = format!(
        "trap '' TERM HUP INT\n\
         setsid sh -c '{hang}' {token} &\n\
         (setsid sh -c '(setsid sh -c \"$1\" \"$2\" &)' fork '{hang}' {token} &)\n\
         env -i PATH=\"$PATH\" sh -c '{hang}' {token} &\n\
         while :; do sleep 3600; done\n"
    );
    json!({
        "name": name,
        "executor": "shell",
        "timeout_seconds": timeout_seconds,
        "config": { "argv": ["/bin/sh", "-c", script, token], "stop_grace_seconds": 1 },
    })
}

fn wait_for_trees(site: &Site, token: &str, trees: usize) -> Result<(), Error> {
    let whole = || process::with_argument(token).len() >= trees * TREE;
    site.wait("the trees are whole", SOON, || whole().then_some(()))
        .map_err(|error| Error::Drill(format!("{error}\n    {:?}", process::with_argument(token))))
}

fn cancel(site: &Site, api: &Api, delivery: &str) -> Result<(), Error> {
    let run = site.wait("the run is there", SOON, || api.run_of(delivery))?;
    let work = run["work"].as_str().unwrap_or_default();
    let answer = api
        .post(&format!("/v1/work/{work}/cancel"), &json!({}))
        .map_err(|error| Error::Drill(format!("cancel: {error}")))?;
    check(answer.status == 200, || {
        format!("cancel: {} {}", answer.status, String::from_utf8_lossy(&answer.body))
    })?;
    let run = site.wait("the run is cancelled", SOON, || api.run_of(delivery).filter(has_ended))?;
    check(run["state"] == "cancelled", || format!("a cancelled run ended so: {run}"))
}
