//! `disk-full`: the disk of the home is full while deliveries arrive, jobs print and runs end. What is refused
//! leaves nothing behind, and when there is room again everything that was accepted has run once.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use super::Counts;
use super::api::{Api, code, is_accepted};
use super::config::{self, Parts};
use super::daemon::Daemon;
use super::process;
use super::site::{SOON, Site, check};
use crate::error::Error;
use crate::machine;

/// The size of the home's file system: more than the database's log and what is accepted into it may take, or they
/// alone would fill it.
const SIZE: &str = "size=384m,mode=0700";
/// Runs at once.
const CONCURRENCY: u32 = 3;
/// Deliveries that wait when the disk becomes full, and that come after.
const DELIVERIES: u32 = 6;
/// Long enough for a daemon to be idle.
const IDLE: Duration = Duration::from_millis(400);
/// How long the disk stays full once the jobs have ended.
const FULL: Duration = Duration::from_secs(1);
/// Bytes of a payload, so that no room that the database has left over takes many.
const PAYLOAD_BYTES: usize = 200_000;
/// How many may still be accepted into that room before something must be wrong.
const TRIES_MAX: u32 = 300;

pub(super) fn run(site: &Site) -> Result<Counts, Error> {
    let _mount = Mount::new(&site.home())?;
    let mut flood = config::gated_job(site, "flood");
    // The job's own end does not depend on whether what it prints finds room.
    let argv = flood["config"]["argv"].take();
    let script = "\"$@\"; status=$?; head -c 200000 /dev/zero; exit $status";
    let mut whole = vec![json!("/bin/sh"), json!("-c"), json!(script), json!("flood")];
    whole.extend(argv.as_array().cloned().unwrap_or_default());
    flood["config"]["argv"] = whole.into();
    let parts = Parts {
        concurrency: CONCURRENCY,
        bindings: vec![config::job(site, "append", &[]), flood],
        routes: vec![config::fresh("drill.append", "append"), config::fresh("drill.flood", "flood")],
        webhooks: false,
    };
    site.configure(&parts.config())?;
    let (mut daemon, api) = Daemon::start(site)?;
    let mut drill = Drill { site, api: &api, accepted: BTreeSet::new(), refused: BTreeSet::new() };
    for round in 0..site.rounds {
        drill.fill_and_free(round)?;
        check(daemon.is_running(), || {
            format!("the full disk ended the daemon\n    {}", site.last_log_lines())
        })?;
    }
    let Drill { accepted, refused, .. } = drill;
    // Once more from the disk: what was promised is in the database, and what was refused is not.
    daemon.stop()?;
    let (_daemon, api) = Daemon::start(site)?;
    for delivery in &refused {
        let runs = api.runs_of(delivery)?.len();
        check(runs == 0, || format!("{delivery} was refused and has {runs} runs"))?;
    }
    site.ledger().check(&accepted)?;
    let runs = api.list("/v1/runs")?;
    let unfinished: Vec<_> = runs.iter().filter(|run| run["state"] != "completed").collect();
    // How a job ended may have found no room. Then its run says that this is not known, and nothing else.
    let unexpected = unfinished.iter().find(|run| run["code"] != "interrupted" || run["binding"] != "flood");
    check(unexpected.is_none(), || format!("a run ended so: {unexpected:?}"))?;
    Ok(vec![
        ("accepted", accepted.len() as u64),
        ("refused", refused.len() as u64),
        ("end not known", unfinished.len() as u64),
    ])
}

struct Drill<'s> {
    site: &'s Site,
    api: &'s Api,
    accepted: BTreeSet<String>,
    refused: BTreeSet<String>,
}

impl Drill<'_> {
    fn fill_and_free(&mut self, round: u32) -> Result<(), Error> {
        let site = self.site;
        let flooding: BTreeSet<String> =
            (0..CONCURRENCY).map(|number| format!("flood-{round}-{number}")).collect();
        for delivery in &flooding {
            self.api.accept("drill.flood", delivery)?;
        }
        self.accepted.extend(flooding.iter().cloned());
        site.wait("the jobs have begun", SOON, || site.ledger().has_all(&self.accepted).then_some(()))?;
        // These wait until the flooding jobs make room, which they do when the disk is full.
        self.accept_some(&format!("waiting-{round}"))?;

        // An idle daemon folds its database's log in; the log then has room inside, however full the disk is.
        site.pass(IDLE);
        let filler = Filler::fill(&site.home())?;
        // That is enough to record that a job has ended and to claim what waits, which then can't be launched.
        let jobs = || process::of_home(&site.home()).len();
        let running = jobs();
        site.open_gate(flooding.first().expect("jobs are running"))?;
        site.wait("a flooding job ends", SOON, || (jobs() < running).then_some(()))?;
        site.pass(IDLE);
        self.post_until_refused(round)?;
        check(self.api.is_healthy(), || "the daemon does not answer while the disk is full".to_owned())?;
        for delivery in &flooding {
            site.open_gate(delivery)?;
        }
        // Their jobs end while neither their output nor how they ended finds room.
        site.wait("the flooding jobs end", SOON, || (jobs() == 0).then_some(()))?;
        // As long as there is no room, whatever the daemon tries next must fail without harm.
        site.pass(FULL);
        check(self.api.is_healthy(), || "the daemon does not answer while the disk is full".to_owned())?;
        filler.free()?;

        site.wait("a delivery is accepted again", SOON, || {
            let delivery = format!("after-{round}");
            let accepted = self.api.emit("drill.append", &delivery).is_ok_and(|answer| is_accepted(&answer));
            accepted.then(|| self.accepted.insert(delivery))
        })?;
        self.accept_some(&format!("later-{round}"))?;
        site.wait("everything that was accepted runs", SOON * 3, || {
            site.ledger().has_all(&self.accepted).then_some(())
        })?;
        site.wait("every run ends", SOON * 3, || {
            let live = |state| {
                let page = self.api.get(&format!("/v1/runs?state={state}")).ok()?;
                Some(page["items"] != json!([]))
            };
            (!live("running")? && !live("launching")?).then_some(())
        })?;
        site.ledger().check(&self.accepted)
    }

    fn accept_some(&mut self, name: &str) -> Result<(), Error> {
        for number in 0..DELIVERIES {
            let delivery = format!("{name}-{number}");
            self.api.accept("drill.append", &delivery)?;
            self.accepted.insert(delivery);
        }
        Ok(())
    }

    /// A full disk may still have room inside the database's own files, so a few more may be accepted. They too
    /// must run, although nothing can be launched before there is room.
    fn post_until_refused(&mut self, round: u32) -> Result<(), Error> {
        let large = json!({ "text": "x".repeat(PAYLOAD_BYTES) });
        for number in 0..TRIES_MAX {
            let payload = if number < DELIVERIES { &json!({}) } else { &large };
            let delivery = format!("full-{round}-{number}");
            let answer = self
                .api
                .emit_with("drill.append", &delivery, &delivery, payload)
                .map_err(|error| Error::Drill(format!("no answer while the disk is full: {error}")))?;
            if is_accepted(&answer) {
                self.accepted.insert(delivery);
                continue;
            }
            self.refused.insert(delivery);
            let code = code(&answer).unwrap_or_default();
            return check(answer.status == 503 && code == "disk_full", || {
                format!("on a full disk the answer is {} {code}, instead of 503 disk_full", answer.status)
            });
        }
        Err(Error::Drill(format!("{TRIES_MAX} deliveries were accepted on a full disk")))
    }
}

/// A file that takes all the room there is.
struct Filler {
    path: PathBuf,
}

impl Filler {
    fn fill(home: &Path) -> Result<Self, Error> {
        let path = home.join("filler");
        let failed = |error: io::Error| Error::Drill(format!("cannot fill the disk: {error}"));
        let mut file = File::create(&path).map_err(failed)?;
        // By pages in the end, so that not even a small one is left.
        for bytes in [1 << 20, 4096] {
            loop {
                match file.write_all(&vec![0; bytes]) {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::StorageFull => break,
                    Err(error) => return Err(failed(error)),
                }
            }
        }
        Ok(Self { path })
    }

    fn free(self) -> Result<(), Error> {
        fs::remove_file(&self.path).map_err(|error| Error::Drill(format!("cannot free the disk: {error}")))
    }
}

/// A small file system, mounted as long as this lives. What is in it is gone then; the daemon's log and the
/// ledger lie elsewhere.
struct Mount {
    path: PathBuf,
}

impl Mount {
    fn new(path: &Path) -> Result<Self, Error> {
        let mounted =
            machine::run(machine::command("mount").args(["-t", "tmpfs", "-o", SIZE, "tmpfs"]).arg(path));
        mounted.map_err(|error| {
            Error::Drill(format!(
                "a small file system cannot be mounted ({error}); run this as root, or type `--without mount`"
            ))
        })?;
        Ok(Self { path: path.to_owned() })
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily, because a job that was left over may still have a file open there.
        machine::run(machine::command("umount").arg("--lazy").arg(&self.path)).ok();
    }
}
