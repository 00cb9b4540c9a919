//! Telling the service manager how far the daemon is, in systemd's way: a datagram to a socket it names.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A service manager that wants to know, or none.
#[derive(Debug, Clone)]
pub(super) struct ServiceManager(Option<OsString>);

impl ServiceManager {
    /// The one that the environment names.
    pub(super) fn of(environment: &[(OsString, OsString)]) -> Self {
        let named = environment.iter().find(|(name, _value)| name == "NOTIFY_SOCKET");
        Self(named.map(|(_name, value)| value.clone()).filter(|value| !value.is_empty()))
    }

    /// It has started.
    pub(super) fn ready(&self) {
        self.tell("READY=1");
    }

    /// It is stopping.
    pub(super) fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    fn tell(&self, state: &str) {
        let Some(socket) = &self.0 else { return };
        if let Err(error) = send(socket, state) {
            tracing::warn!(%error, state, "the service manager could not be told");
        }
    }
}

fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes() {
        // An at sign stands for the zero byte that begins an abstract name.
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _path => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::net::UnixDatagram;

    use super::ServiceManager;

    #[test]
    fn a_service_manager_hears_ready_and_stopping() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let manager = ServiceManager::of(&[(OsString::from("NOTIFY_SOCKET"), path.into_os_string())]);
        let heard = || {
            let mut buffer = [0; 64];
            let length = socket.recv(&mut buffer).unwrap();
            String::from_utf8(buffer[..length].to_vec()).unwrap()
        };
        manager.ready();
        assert_eq!(heard(), "READY=1");
        manager.stopping();
        assert_eq!(heard(), "STOPPING=1");
    }

    #[test]
    fn without_a_service_manager_nobody_is_told() {
        ServiceManager::of(&[]).ready();
        ServiceManager::of(&[(OsString::from("NOTIFY_SOCKET"), OsString::new())]).ready();
        ServiceManager::of(&[(OsString::from("NOTIFY_SOCKET"), OsString::from("/nowhere/at/all"))]).ready();
    }
}
