//! `slow-reader`: clients open the change feed and never read, while Events go on arriving. They cost the daemon
//! little memory, and the write-ahead log is emptied as if they were not there.
//!
//! A round is ten seconds of load, so `--rounds 60` is ten minutes of it.

use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::Counts;
use super::api::Api;
use super::config::Parts;
use super::daemon::Daemon;
use super::site::{Site, check};
use crate::error::Error;
use crate::machine::file_error;

/// How long the load of a round goes on.
const ROUND: Duration = Duration::from_secs(10);
/// Rounds before anybody listens: what the daemon keeps anyway is in memory by then.
const ROUNDS_BEFORE: u32 = 2;
/// Clients that never read.
const READERS: u64 = 8;
/// What one of them may cost, in KiB.
const READER_KIB_MAX: u64 = 5 << 10;
/// What the database's page cache (`cache_size`) may still take while Events arrive, in KiB; it fills up with
/// nobody listening as well.
const CACHE_KIB: u64 = 64 << 10;
/// The most KiB of the write-ahead log: its bound of 64 MiB and what may be written while it is being emptied.
const LOG_KIB_MAX: u64 = 80 << 10;
/// Connections that send Events.
const SENDERS: u64 = 2;

pub(super) fn run(site: &Site) -> Result<Counts, Error> {
    let parts = Parts { concurrency: 1, bindings: Vec::new(), routes: Vec::new(), webhooks: false };
    site.configure(&parts.config())?;
    let (mut daemon, api) = Daemon::start(site)?;
    let sent = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let grown = thread::scope(|scope| {
        for sender in 0..SENDERS {
            let (api, sent, stop) = (&api, &sent, &stop);
            scope.spawn(move || load(api, sender, sent, stop));
        }
        let grown = watch(site, &daemon, &api);
        stop.store(true, Ordering::Release);
        grown
    });
    let (grown, log) = grown?;
    check(daemon.is_running(), || "the daemon ended".to_owned())?;
    let sent = sent.into_inner();
    check(sent > u64::from(site.rounds) * 1000, || {
        format!("only {sent} Events were accepted; that is no load")
    })?;
    Ok(vec![("events", sent), ("readers", READERS), ("KiB grown", grown), ("KiB of log at most", log)])
}

/// Sends Events until it is told to stop.
fn load(api: &Api, sender: u64, sent: &AtomicU64, stop: &AtomicBool) {
    let mut number: u64 = 0;
    while !stop.load(Ordering::Acquire) {
        number += 1;
        if api.emit("drill.unread", &format!("{sender}-{number}")).is_ok_and(|answer| answer.status == 202) {
            sent.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Lets clients in that never read, and looks at what that costs. How much memory grew, and the largest log.
fn watch(site: &Site, daemon: &Daemon<'_>, api: &Api) -> Result<(u64, u64), Error> {
    for _round in 0..ROUNDS_BEFORE {
        site.pass(ROUND);
    }
    let before = resident_kib(daemon.pid())?;
    let readers = (0..READERS).map(|_reader| listen(site, api)).collect::<Result<Vec<_>, _>>()?;
    let (mut grown, mut log) = (0, 0);
    for round in 1..=site.rounds {
        site.pass(ROUND);
        grown = grown.max(resident_kib(daemon.pid())?.saturating_sub(before));
        log = log.max(log_kib(site)?);
        check(grown < CACHE_KIB + READERS * READER_KIB_MAX, || {
            format!("after {round} rounds, {READERS} clients that never read cost {grown} KiB")
        })?;
        check(log < LOG_KIB_MAX, || format!("after {round} rounds the write-ahead log has {log} KiB"))?;
    }
    drop(readers);
    Ok((grown, log))
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
