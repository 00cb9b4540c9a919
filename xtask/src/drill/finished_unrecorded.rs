//! `finished-unrecorded`: a job ends while the daemon stands still, and the daemon is killed before it can
//! record that. The next one takes the result from the job's files, once, and runs nothing again.

use std::collections::BTreeSet;

use super::Counts;
use super::api::has_ended;
use super::config::{self, Parts};
use super::daemon::Daemon;
use super::site::{SOON, Site, check};
use crate::error::Error;

pub(super) fn run(site: &Site) -> Result<Counts, Error> {
    let parts = Parts {
        concurrency: 4,
        bindings: vec![config::gated_job(site, "wait")],
        routes: vec![config::fresh("drill.wait", "wait")],
        webhooks: false,
    };
    site.configure(&parts.config())?;
    let (mut daemon, mut api) = Daemon::start(site)?;
    let mut ran = BTreeSet::new();
    for round in 0..site.rounds {
        let delivery = format!("d{round}");
        api.accept("drill.wait", &delivery)?;
        ran.insert(delivery.clone());
        site.wait("the job has begun", SOON, || site.ledger().has(&delivery).then_some(()))?;
        let run = site.wait("the run is running", SOON, || {
            api.run_of(&delivery).filter(|run| run["state"] == "running")
        })?;
        let id = run["id"].as_str().unwrap_or_default().to_owned();
        daemon.suspend()?;
        site.open_gate(&delivery)?;
        let status = site.launch_folder(&id).join("status");
        site.wait("the job ends", SOON, || status.exists().then_some(()))?;
        daemon.kill()?;
        (daemon, api) = Daemon::start(site)?;
        let run = site.wait("the run ends", SOON, || api.run_of(&delivery).filter(has_ended))?;
        let is_right =
            run["state"] == "completed" && run["epoch"].as_i64() > Some(1) && run["exit_status"] == 0;
        check(is_right, || format!("a finished job's run ended so: {run}"))?;
        let runs = api.runs_of(&delivery)?.len();
        check(runs == 1, || format!("{delivery} has {runs} runs"))?;
        let found = api.counter("recoveries", "finished")?;
        check(found == 1, || format!("{found} results were taken from files, instead of one"))?;
        site.ledger().check(&ran)?;
    }
    check(daemon.is_running(), || "the daemon ended".to_owned())?;
    Ok(vec![("daemons killed", u64::from(site.rounds))])
}
