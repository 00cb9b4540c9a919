//! The signals that end a daemon.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM and SIGINT. The first asks for a stop, a second one for the end at once.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Begins to listen. From now on neither ends the process by itself.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _received = self.terminate.recv() => {}
            _received = self.interrupt.recv() => {}
        }
    }
}
