//! The database's files: the lock that keeps every other process away, and the log's size.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::store::StoreError;

/// File systems whose locks and shared memory do not hold between machines, by the number they have in
/// `statfs`: NFS, SMB, CIFS, SMB2, 9p.
const NETWORK_FILE_SYSTEMS: [i64; 5] = [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x0102_1997];

/// A database file, with the lock on it.
#[derive(Debug)]
pub(super) struct OwnedFile {
    path: PathBuf,
    /// Held for its lock: closing it releases that.
    _lock: File,
}

fn failed(operation: &'static str) -> impl Fn(io::Error) -> StoreError {
    move |error| StoreError::Database { operation, source: Arc::new(error) }
}

impl OwnedFile {
    /// Takes the lock on a database, which need not exist yet.
    pub(super) fn take(path: PathBuf) -> Result<Self, StoreError> {
        let failed = failed("lock its file");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(beside(&path, ".lock"))
            .map_err(&failed)?;
        let kind = rustix::fs::fstatfs(&lock).map_err(|error| failed(error.into()))?.f_type;
        if NETWORK_FILE_SYSTEMS.contains(&kind) {
            return Err(failed(io::Error::new(
                io::ErrorKind::Unsupported,
                "the file is on a network file system, where SQLite is not safe; use a local disk or PostgreSQL",
            )));
        }
        match lock.try_lock() {
            Ok(()) => Ok(Self { path, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Locked),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// The path of a file that belongs to the database's.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// How large the write-ahead log's file is. It is used again from the start after a checkpoint, so it says
/// how large the log has been since it was last cut.
pub(crate) fn log_bytes(path: &Path) -> u64 {
    std::fs::metadata(beside(path, "-wal")).map_or(0, |metadata| metadata.len())
}
