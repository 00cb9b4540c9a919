//! What the daemon takes of its machine, and whether there is room for more.

use super::Checks;
use crate::api::wire::FiguresBody;
use crate::daemon::Daemon;
use crate::daemon::footprint::{Disk, Footprint};
use crate::view::run::bytes;

/// Less than this is left of a disk that is almost full.
const FREE_BYTES_MIN: u64 = 256 << 20;
/// So is less than this part of it: a twentieth.
const FREE_PARTS: u64 = 20;
/// The store empties a write-ahead log of 64 MiB, and tries again each 16 MiB when somebody reads. A larger one
/// has defeated a try.
const LOG_BYTES_MAX: u64 = (64 + 16) << 20;

/// Measures, and checks what was measured.
pub(super) fn measure(daemon: &Daemon, checks: &mut Checks) -> FiguresBody {
    let found = Footprint::look(daemon.home().root(), daemon.store().backend());
    check_disk(found.disk, checks);
    if let Some(log) = found.log {
        check_log(log, checks);
    }
    FiguresBody {
        memory_bytes: found.memory,
        database_bytes: found.database,
        wal_bytes: found.log,
        disk_free_bytes: found.disk.map(|disk| disk.free),
        disk_size_bytes: found.disk.map(|disk| disk.size),
        streams_open: daemon.streams_open(),
        ..FiguresBody::default()
    }
}

fn check_disk(disk: Option<Disk>, checks: &mut Checks) {
    let Some(disk) = disk else {
        let sentence = "how much room is left on the disk cannot be found out";
        return checks.add("disk", "note", sentence);
    };
    let left = format!("{} of {} are free", bytes(disk.free), bytes(disk.size));
    if disk.free < FREE_BYTES_MIN || disk.free < disk.size / FREE_PARTS {
        let sentence =
            format!("the disk is almost full, {left}; free some space, as nothing is accepted without any");
        checks.add("disk", "warning", sentence);
    } else {
        checks.add("disk", "ok", left);
    }
}

fn check_log(log: u64, checks: &mut Checks) {
    if log >= LOG_BYTES_MAX {
        let sentence = format!(
            "the write-ahead log has {} and could not be emptied; end whatever has been reading the database for \
             long, such as a backup, or start the daemon again",
            bytes(log)
        );
        checks.add("log", "warning", sentence);
    } else {
        checks.add("log", "ok", format!("the write-ahead log has {}", bytes(log)));
    }
}

#[cfg(test)]
mod tests {
    use super::{Checks, Disk, check_disk, check_log};

    #[track_caller]
    fn disk(free: u64, size: u64, level: &str) {
        let mut checks = Checks(Vec::new());
        check_disk(Some(Disk { free, size }), &mut checks);
        assert_eq!(checks.0[0].level, level, "{free} of {size}: {}", checks.0[0].sentence);
    }

    #[test]
    fn a_disk_is_almost_full_below_a_twentieth_or_256_mib() {
        const MIB: u64 = 1 << 20;
        disk(256 * MIB, 1000 * MIB, "ok");
        disk(256 * MIB - 1, 1000 * MIB, "warning");
        disk(5000 * MIB, 100_000 * MIB, "ok");
        disk(5000 * MIB - 1, 100_000 * MIB, "warning");
        let mut checks = Checks(Vec::new());
        check_disk(None, &mut checks);
        assert_eq!(checks.0[0].level, "note");
    }

    #[test]
    fn a_log_that_could_not_be_emptied_is_told() {
        for (log, level) in [(0, "ok"), ((80 << 20) - 1, "ok"), (80 << 20, "warning")] {
            let mut checks = Checks(Vec::new());
            check_log(log, &mut checks);
            assert_eq!(checks.0[0].level, level, "{log}");
        }
    }
}
