//! What the daemon takes of its machine: memory, the size of its files, and how much room is left for them.
//!
//! Each is a look at the system at this moment. What cannot be found out is none, never zero.

use std::path::Path;

use domain::store::Backend;

/// What the daemon takes of its machine.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Footprint {
    /// The memory that is resident, in bytes.
    pub(crate) memory: Option<u64>,
    /// The size of the database's file, in bytes.
    pub(crate) database: Option<u64>,
    /// The size of its write-ahead log, in bytes.
    pub(crate) log: Option<u64>,
    /// The disk of the home, and of the database when that is a file.
    pub(crate) disk: Option<Disk>,
}

/// A file system, as a user without privileges sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Disk {
    /// Bytes that can still be written.
    pub(crate) free: u64,
    /// Bytes in all.
    pub(crate) size: u64,
}

impl Footprint {
    /// Looks at the system. It reads a few figures of the kernel and no content.
    pub(crate) fn look(home: &Path, backend: &dyn Backend) -> Self {
        let facts = backend.facts();
        let fact = |name: &str| {
            facts.iter().find(|(known, _value)| *known == name).map(|(_name, value)| value.as_str())
        };
        let file = fact("file").map(Path::new);
        let database = file.and_then(|file| std::fs::metadata(file).ok()).map(|metadata| metadata.len());
        let directory = file.and_then(Path::parent).unwrap_or(home);
        // The fuller of the two is the one that stops the daemon.
        let disks = [disk(home), disk(directory)];
        Self {
            memory: std::fs::read_to_string("/proc/self/status").ok().and_then(|status| resident(&status)),
            database,
            log: fact("wal_bytes").and_then(|bytes| bytes.parse().ok()),
            disk: disks.into_iter().flatten().min_by_key(|disk| disk.free),
        }
    }
}

fn disk(directory: &Path) -> Option<Disk> {
    let system = rustix::fs::statvfs(directory).ok()?;
    let block = system.f_frsize;
    Some(Disk { free: system.f_bavail.saturating_mul(block), size: system.f_blocks.saturating_mul(block) })
}

/// The resident memory of a process, as `/proc/self/status` says it in KiB.
fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::{disk, resident};

    #[test]
    fn resident_is_read_in_bytes_or_not_at_all() {
        let status = "Name:\tx\nVmPeak:\t  900 kB\nVmRSS:\t   12044 kB\nThreads:\t3\n";
        assert_eq!(resident(status), Some(12044 * 1024));
        assert_eq!(resident("VmRSS:\t12044 MB\n"), None);
        assert_eq!(resident("Name:\tx\n"), None);
    }

    #[test]
    fn a_disk_has_a_size_and_nothing_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let found = disk(directory.path()).unwrap();
        assert!(found.size > 0 && found.free <= found.size);
        assert_eq!(disk(&directory.path().join("nothing")), None);
    }
}
