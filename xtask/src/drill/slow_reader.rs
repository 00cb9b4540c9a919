//! `slow-reader`: clients open the change feed and never read, while Events go on arriving. They cost the daemon
//! little memory, and the write-ahead log is emptied as if they were not there.
//!
//! Under load a daemon grows whoever listens, as its page cache fills. So a second daemon gets the same Events at
//! the same time and has no clients; what the first one needs beyond that is what the clients cost.
//!
//! A round is ten seconds of load, so `--rounds 60` is ten minutes of it.

use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::Counts;
use super::api::Api;
use super::config::Parts;
use super::daemon::Daemon;
use super::site::{Site, check};
use crate::error::Error;
use crate::machine::file_error;

/// How long the load of a round goes on.
const ROUND: Duration = Duration::from_secs(10);
/// The most rounds that follow until enough was written, on a slow machine.
const ROUNDS_MORE: u32 = 12;
/// Clients that never read. They are many, so that what one of them costs stands out.
const READERS: u64 = 64;
/// What one of them may cost, in KiB. In ten minutes it may be 5 MB; half a minute has to find what would come to
/// that, and such a client needs about 100 KiB.
const READER_KIB_MAX: u64 = 1 << 10;
/// The most KiB of the write-ahead log: its bound of 64 MiB and what may be written while it is being emptied.
const LOG_KIB_MAX: u64 = 80 << 10;
/// KiB of an Event's payload. It is large, so that a log that nobody empties is soon past its bound.
const PAYLOAD_KIB: u64 = 16;
/// Connections that send Events, to both daemons by turns.
const SENDERS: u64 = 2;

pub(super) fn run(site: &Site) -> Result<Counts, Error> {
    let alone = alone(site);
    alone.prepare()?;
    for site in [site, &alone] {
        let parts = Parts { concurrency: 1, bindings: Vec::new(), routes: Vec::new(), webhooks: false };
        site.configure(&parts.config())?;
    }
    let (mut heard, heard_api) = Daemon::start(site)?;
    let (mut unheard, unheard_api) = Daemon::start(&alone)?;
    let (sent, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let payload = json!({ "text": "x".repeat(usize::try_from(PAYLOAD_KIB << 10).expect("it is small")) });
    let seen = thread::scope(|scope| {
        let apis = [&heard_api, &unheard_api];
        for sender in 0..SENDERS {
            let (payload, sent, stop) = (&payload, &sent, &stop);
            scope.spawn(move || load(apis, sender, payload, sent, stop));
        }
        let seen = watch(site, &heard_api, [heard.pid(), unheard.pid()], &sent);
        stop.store(true, Ordering::Release);
        seen
    });
    let Seen { reader, log } = seen?;
    check(heard.is_running() && unheard.is_running(), || "a daemon ended".to_owned())?;
    let events = sent.into_inner();
    Ok(vec![
        ("events", events),
        ("readers", READERS),
        ("KiB each at most", reader),
        ("KiB of log at most", log),
    ])
}

/// Where the daemon without clients lives.
fn alone(site: &Site) -> Site {
    Site { folder: site.folder.join("alone"), samples: None, ..site.clone() }
}

/// Sends each Event to both daemons until it is told to stop, and counts those that both have accepted.
fn load(apis: [&Api; 2], sender: u64, payload: &Value, sent: &AtomicU64, stop: &AtomicBool) {
    let mut number: u64 = 0;
    while !stop.load(Ordering::Acquire) {
        number += 1;
        let name = format!("{sender}-{number}");
        let accepted = apis.map(|api| {
            api.emit_with("drill.unread", &name, &name, payload).is_ok_and(|answer| answer.status == 202)
        });
        if accepted == [true, true] {
            sent.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// What was seen at worst.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// KiB that one client cost.
    reader: u64,
    /// KiB of the write-ahead log.
    log: u64,
}

/// Lets clients in that never read, and looks at what that costs the first of the two daemons.
fn watch(site: &Site, api: &Api, daemons: [u32; 2], sent: &AtomicU64) -> Result<Seen, Error> {
    let readers = (0..READERS).map(|_reader| listen(site, api)).collect::<Result<Vec<_>, _>>()?;
    let mut seen = Seen::default();
    let is_enough = || sent.load(Ordering::Relaxed) * PAYLOAD_KIB > LOG_KIB_MAX;
    let mut round = 0;
    while round < site.rounds || (!is_enough() && round < site.rounds + ROUNDS_MORE) {
        round += 1;
        site.pass(ROUND);
        let [heard, unheard] = daemons.map(resident_kib);
        seen.reader = seen.reader.max(heard?.saturating_sub(unheard?) / READERS);
        seen.log = seen.log.max(log_kib(site)?);
        check(seen.reader < READER_KIB_MAX, || {
            format!(
                "after {round} rounds, each of {READERS} clients that never read cost {} KiB",
                seen.reader
            )
        })?;
        check(seen.log < LOG_KIB_MAX, || {
            format!("after {round} rounds the write-ahead log has {} KiB", seen.log)
        })?;
    }
    drop(readers);
    check(is_enough(), || {
        format!("only {} Events were accepted; that is no load", sent.load(Ordering::Relaxed))
    })?;
    Ok(seen)
}

/// Opens the change feed and leaves it at that.
fn listen(site: &Site, api: &Api) -> Result<UnixStream, Error> {
    let path = site.home().join("conduit.sock");
    let failed = file_error("connect to", &path);
    let opened = UnixStream::connect(&path).and_then(|mut stream| {
        let authorization = api.authorization();
        let head =
            format!("GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: {authorization}\r\n\r\n");
        stream.write_all(head.as_bytes())?;
        Ok(stream)
    });
    opened.map_err(failed)
}

/// How much memory of a process is resident, in KiB.
fn resident_kib(pid: u32) -> Result<u64, Error> {
    let path = std::path::PathBuf::from(format!("/proc/{pid}/status"));
    let text = fs::read_to_string(&path).map_err(file_error("read", &path))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse().ok());
    number.ok_or_else(|| Error::Drill("the daemon's memory is not told".to_owned()))
}

fn log_kib(site: &Site) -> Result<u64, Error> {
    let path = site.home().join("conduit.db-wal");
    Ok(fs::metadata(&path).map_err(file_error("look at", &path))?.len() / 1024)
}
