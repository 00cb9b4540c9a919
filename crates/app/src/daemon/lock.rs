//! One daemon per home: a lock that ends with its process, and the socket that only its holder may replace.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;

/// The claim on a home. It ends when this is dropped, or with the process.
#[derive(Debug)]
pub(super) struct HomeLock {
    _file: File,
}

impl HomeLock {
    /// Claims a home. None when a daemon that lives has it.
    pub(super) fn take(root: &Path) -> io::Result<Option<Self>> {
        let path = root.join("daemon.lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// A socket in the home, removed when the daemon stops.
#[derive(Debug)]
pub(super) struct SocketFile(PathBuf);

impl SocketFile {
    /// Listens at a path. What a dead daemon left there is removed, which only the holder of the lock may do.
    pub(super) fn bind(path: PathBuf, _claim: &HomeLock) -> io::Result<(UnixListener, Self)> {
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let listener = UnixListener::bind(&path)?;
        // The home's own mode keeps others away meanwhile.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        Ok((listener, Self(path)))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            tracing::debug!(%error, "the socket was gone already");
        }
    }
}
