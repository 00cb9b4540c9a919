//! The machine: its file system, its disk, and what a commit costs on it.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use crate::figure::Report;
use crate::{Setting, raw};

/// A one-row commit this fast makes absolute figures bind.
const FAST_COMMIT_MS: f64 = 0.2;

/// Prints what is measured on, and refuses what would make every figure a lie.
pub(crate) fn describe(setting: &Setting, report: &mut Report) -> Result<(), String> {
    let file_system = file_system(setting)?;
    println!("file system of {}: {file_system}", setting.directory.display());
    if matches!(file_system.as_str(), "tmpfs" | "ramfs") {
        return Err(format!(
            "{} is on {file_system}, where a commit costs nothing; give a directory on a disk with --dir",
            setting.directory.display()
        ));
    }
    let path = setting.fresh("machine");
    report.note("machine: fdatasync of 8 KiB", syncs(&path.join("sync"), setting.seconds / 4), "/s");
    let raw = raw::Database::open(&path.join("raw.db"));
    for pragma in ["journal_mode", "synchronous", "page_size", "wal_autocheckpoint"] {
        println!("pragma {pragma}: {}", raw.pragma(pragma));
    }
    let commit = raw.one_row_commit_ms(setting.seconds / 4);
    report.note("machine: one-row commit", commit, "ms");
    report.absolute_binds = commit <= FAST_COMMIT_MS;
    if !report.absolute_binds {
        println!("a one-row commit takes more than {FAST_COMMIT_MS} ms: only ratios bind here");
    }
    Ok(())
}

/// The type of the file system that the directory is on.
fn file_system(setting: &Setting) -> Result<String, String> {
    let path = fs::canonicalize(&setting.directory).map_err(|error| error.to_string())?;
    let mounts = fs::read_to_string("/proc/self/mounts").map_err(|error| error.to_string())?;
    let mut best: Option<(usize, String)> = None;
    for line in mounts.lines() {
        let mut words = line.split(' ');
        let (Some(_device), Some(point), Some(kind)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        if path.starts_with(point) && best.as_ref().is_none_or(|(length, _kind)| point.len() >= *length) {
            best = Some((point.len(), kind.to_owned()));
        }
    }
    best.map(|(_length, kind)| kind).ok_or_else(|| "the mount of the directory is not listed".to_owned())
}

fn syncs(path: &std::path::Path, time: Duration) -> f64 {
    let file = OpenOptions::new().create(true).truncate(true).write(true).open(path).expect("a file to sync");
    let block = [7_u8; 8192];
    let start = Instant::now();
    let mut count = 0_u64;
    while start.elapsed() < time {
        file.write_all_at(&block, (count % 1024) * 8192).expect("a block is written");
        file.sync_data().expect("a block is synced");
        count += 1;
    }
    count as f64 / start.elapsed().as_secs_f64()
}
