//! `adopt`: the daemon stops, by request or by force, while a job prints. The next one takes the run over: it
//! is the same run, was started once, and its output has every line once and in order.

use std::collections::BTreeSet;
use std::fs;

use super::Counts;
use super::api::{Api, has_ended};
use super::config::{self, Parts};
use super::daemon::Daemon;
use super::job;
use super::site::{SOON, Site, check};
use crate::error::Error;

/// Lines that the job prints.
const LINES: u32 = 24;
/// Lines after which the daemon is stopped.
const LINES_BEFORE: usize = 5;

pub(super) fn run(site: &Site) -> Result<Counts, Error> {
    let parts = Parts {
        concurrency: 4,
        bindings: vec![config::job(site, "print", &["--lines", &LINES.to_string()])],
        routes: vec![config::fresh("drill.print", "print")],
        webhooks: false,
    };
    site.configure(&parts.config())?;
    let whole: String = (0..LINES).flat_map(|number| [job::line(number), "\n".to_owned()]).collect();
    let (mut daemon, mut api) = Daemon::start(site)?;
    let mut ran = BTreeSet::new();
    let mut stops = 0;
    for round in 0..site.rounds {
        let delivery = format!("d{round}");
        api.accept("drill.print", &delivery)?;
        ran.insert(delivery.clone());
        let id =
            site.wait("the run is there", SOON, || Some(api.run_of(&delivery)?["id"].as_str()?.to_owned()))?;
        let output = site.launch_folder(&id).join("output.log");
        let printed = || fs::read_to_string(&output).unwrap_or_default();
        site.wait("the job prints", SOON, || (printed().lines().count() >= LINES_BEFORE).then_some(()))?;
        if round % 2 == 0 {
            daemon.stop()?;
            stops += 1;
        } else {
            daemon.kill()?;
        }
        check(printed().lines().count() < LINES as usize, || {
            "the job was done before the daemon was; nothing was drilled".to_owned()
        })?;
        (daemon, api) = Daemon::start(site)?;
        let run = site.wait("the run ends", SOON, || api.run_of(&delivery).filter(has_ended))?;
        let is_right =
            run["state"] == "completed" && run["id"] == id.as_str() && run["epoch"].as_i64() > Some(1);
        check(is_right, || format!("run {id} ended so: {run}"))?;
        let adopted = api.counter("recoveries", "adopted")?;
        check(adopted == 1, || format!("{adopted} runs were adopted instead of one"))?;
        check(log(&api, &id)? == whole, || format!("the output of {id} is not whole: {}", printed()))?;
        site.ledger().check(&ran)?;
    }
    check(daemon.is_running(), || "the daemon ended".to_owned())?;
    Ok(vec![("stopped", stops), ("killed", u64::from(site.rounds) - stops)])
}

/// A run's output, as the interface shows it.
fn log(api: &Api, run: &str) -> Result<String, Error> {
    api.text(&format!("/v1/runs/{run}/log?from=0"))
}
