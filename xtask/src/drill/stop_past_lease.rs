//! `stop-past-lease`: the daemon is suspended until every lease it has is over, with launches held, jobs
//! running and jobs ending meanwhile. When it goes on, each delivery still has one line and one outcome.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Counts;
use super::api::has_ended;
use super::config::{self, Parts};
use super::daemon::Daemon;
use super::process;
use super::site::{SOON, Site, check};
use crate::error::Error;

/// Longer than the thirty seconds of a lease, however late it was renewed.
const PAST_LEASE: Duration = Duration::from_secs(33);
/// Launches that are under way when the daemon is suspended.
const LAUNCHES: usize = 6;

pub(super) fn run(site: &Site) -> Result<Counts, Error> {
    let parts = Parts {
        concurrency: 32,
        bindings: vec![config::gated_job(site, "wait")],
        routes: vec![config::fresh("drill.wait", "wait")],
        webhooks: false,
    };
    site.configure(&parts.config())?;
    let (mut daemon, api) = Daemon::start(site)?;
    let mut expected = BTreeSet::new();
    let mut held = 0;
    for round in 0..site.rounds {
        let name = |part: &str, number: usize| format!("{part}-{round}-{number}");
        let running: BTreeSet<String> =
            (0..4).map(|number| name(if number < 2 { "ends" } else { "goes-on" }, number)).collect();
        for delivery in &running {
            api.accept("drill.wait", delivery)?;
        }
        site.wait("the jobs have begun", SOON, || site.ledger().has_all(&running).then_some(()))?;

        let launching: Vec<String> = (0..LAUNCHES).map(|number| name("launch", number)).collect();
        let before = site.run_folders();
        for delivery in &launching {
            api.accept("drill.wait", delivery)?;
        }
        let is_new = |folder: &std::path::PathBuf| !before.contains(folder);
        site.watch("a launch begins", || site.run_folders().iter().any(is_new).then_some(()))?;
        daemon.suspend()?;
        let told = |folder: &std::path::PathBuf| folder.join("e1").join("verdict").exists();
        held += site.run_folders().iter().filter(|folder| is_new(folder) && !told(folder)).count();

        for delivery in running.iter().filter(|delivery| delivery.starts_with("ends")) {
            site.open_gate(delivery)?;
        }
        site.pass(PAST_LEASE);
        daemon.resume()?;
        expected.extend(running.into_iter().chain(launching));
        site.wait("every job has begun", SOON, || site.ledger().has_all(&expected).then_some(()))?;
        for delivery in &expected {
            site.open_gate(delivery)?;
        }
        for delivery in &expected {
            let run = site.wait("a run ends", SOON, || api.run_of(delivery).filter(has_ended))?;
            check(run["state"] == "completed", || format!("{delivery} ended so: {run}"))?;
            let runs = api.runs_of(delivery)?.len();
            check(runs == 1, || format!("{delivery} has {runs} runs"))?;
        }
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
