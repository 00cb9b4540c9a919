//! A daemon that runs, and stopping it: what was asked for is answered, jobs go on, and whoever starts next
//! need not wait.

use std::sync::Arc;
use std::time::Duration;

use domain::store::StoreError;

use super::lock::{HomeLock, SocketFile};
use super::notify::ServiceManager;
use super::signal::Signals;
use super::{Addresses, Daemon, alive};
use crate::listener::Listening;

/// How long requests may take to be answered once the daemon stops.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// A daemon that takes requests.
#[derive(Debug)]
pub(crate) struct Running {
    daemon: Arc<Daemon>,
    manager: ServiceManager,
    // The sockets are removed before the lock is given up: the fields are dropped in this order.
    sockets: [SocketFile; 2],
    lock: HomeLock,
}

/// How a daemon ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// In order.
    Stopped,
    /// A second signal cut the stop short. Nothing durable is lost; leases run out by themselves.
    CutShort,
}

impl Running {
    pub(super) const fn new(
        daemon: Arc<Daemon>,
        manager: ServiceManager,
        sockets: [SocketFile; 2],
        lock: HomeLock,
    ) -> Self {
        Self { daemon, manager, sockets, lock }
    }

    /// The daemon.
    pub(crate) const fn daemon(&self) -> &Arc<Daemon> {
        &self.daemon
    }

    /// Where it listens.
    pub(crate) fn addresses(&self) -> Addresses {
        self.daemon.addresses()
    }

    /// Waits for a signal and stops; a second signal cuts that short. The caller then ends the process without
    /// waiting for what still runs in it.
    ///
    /// # Errors
    /// As [`Self::stop`].
    pub(crate) async fn wait(self, mut signals: Signals) -> Result<Ended, StoreError> {
        signals.next().await;
        tracing::info!("the daemon stops; a second signal ends it at once");
        tokio::select! {
            stopped = self.stop() => stopped.map(|()| Ended::Stopped),
            () = signals.next() => Ok(Ended::CutShort),
        }
    }

    /// Stops: no new requests, those that are under way answered, leases released, the store closed.
    ///
    /// # Errors
    /// [`StoreError`] when leases could not be released, or the store not be closed in order. It has stopped
    /// all the same.
    pub(crate) async fn stop(self) -> Result<(), StoreError> {
        let Self { daemon, manager, sockets, lock } = self;
        manager.stopping();
        daemon.stopping.cancel();
        daemon.tasks.close();
        if tokio::time::timeout(ANSWERED_WITHIN, daemon.tasks.wait()).await.is_err() {
            tracing::warn!("requests were cut off, as they took too long to be answered");
        }
        drop(sockets);
        let released = daemon.runtime().shutdown().await;
        daemon.extensions.outside.stop().await;
        let closed = daemon.store().close().await;
        if released.is_ok() && closed.is_ok() {
            alive::stopped(&daemon);
        }
        drop(lock);
        tracing::info!("the daemon has stopped");
        released.and(closed)
    }
}

impl Daemon {
    /// What its listeners need of it.
    pub(super) fn listening(&self) -> Listening {
        Listening { tasks: self.tasks.clone(), stopping: self.stopping.clone() }
    }
}
