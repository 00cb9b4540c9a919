//! `two-daemons`: more daemons are started in a home that has one. Each refuses with a sentence, and the first
//! goes on unharmed.

use std::collections::BTreeSet;
use std::process::{Child, Stdio};

use super::Counts;
use super::config::{self, Parts};
use super::daemon::Daemon;
use super::site::{SOON, Site, check};
use crate::error::Error;
use crate::machine;

/// Daemons that are started at once.
const AT_ONCE: usize = 20;

pub(super) fn run(site: &Site) -> Result<Counts, Error> {
    let parts = Parts {
        concurrency: 8,
        bindings: vec![config::job(site, "append", &[])],
        routes: vec![config::fresh("drill.append", "append")],
        webhooks: true,
    };
    site.configure(&parts.config())?;
    let (mut daemon, api) = Daemon::start(site)?;
    let mut expected = BTreeSet::new();
    for round in 0..site.rounds {
        let others: Vec<Child> = (0..AT_ONCE).map(|_| start(site)).collect::<Result<_, _>>()?;
        for number in 0..AT_ONCE {
            let delivery = format!("d{round}-{number}");
            api.accept("drill.append", &delivery)?;
            expected.insert(delivery);
        }
        for other in others {
            check_refused(site, other)?;
        }
        check(daemon.is_running(), || "the first daemon ended".to_owned())?;
        // Its socket is still its own.
        api.get("/v1/status")?;
    }
    site.wait("the first daemon runs everything", SOON, || site.ledger().has_all(&expected).then_some(()))?;
    site.ledger().check(&expected)?;
    daemon.stop()?;
    Ok(vec![("refused", AT_ONCE as u64 * u64::from(site.rounds)), ("ran", expected.len() as u64)])
}

fn start(site: &Site) -> Result<Child, Error> {
    let mut command = Daemon::command(site);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().map_err(|source| machine::start_error(&command, source))
}

fn check_refused(site: &Site, mut other: Child) -> Result<(), Error> {
    let ended = site.wait("a second daemon refuses", SOON, || other.try_wait().ok().flatten());
    if ended.is_err() {
        other.kill().ok();
    }
    let output = other.wait_with_output();
    let status = ended?;
    let output = output.map_err(|error| Error::Drill(format!("a second daemon's output: {error}")))?;
    let said = String::from_utf8_lossy(&output.stderr);
    check(!status.success(), || "a second daemon in one home says that all is well".to_owned())?;
    check(said.contains("database_locked") || said.contains("in use") || said.contains("already"), || {
        format!("a second daemon does not say why it refuses ({status}): {said}")
    })
}
