//! The daemon: one home's store, runtime and listeners, from start to stop.
//!
//! It is an ordinary value, so that a test can start several in one process. Everything it is given by its
//! surroundings comes in through [`Options`].

use std::ffi::OsString;
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use domain::store::Store;
use domain::time::Timestamp;
use runtime::Runtime;
use store::Location;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::Tokens;
use crate::auth::code::Codes;
use crate::auth::page_name::PageName;
use crate::auth::session::Sessions;
use crate::config::secrets::SecretReader;
use crate::home::Home;
use crate::listener::ingress::Table;

pub(crate) mod extensions;
pub(crate) mod outside;
pub(crate) mod applied;
pub(crate) mod log;
pub(crate) mod signal;
pub(crate) mod host;
pub(crate) mod footprint;
mod follow;
mod lock;
mod notify;
mod start;
mod stop;
mod upkeep;
mod alive;

pub(crate) use start::{DaemonError, start};
pub(crate) use stop::Running;

use applied::Applied;
use extensions::Extensions;

/// The most clients that follow the change feed at once.
const STREAMS_MAX: usize = 128;

/// What a daemon is given.
#[derive(Debug)]
pub(crate) struct Options {
    /// The database; the home's own when none. Several daemons, each in a home of its own, may share one on
    /// PostgreSQL.
    pub(crate) location: Option<Location>,
    /// How the database is opened.
    pub(crate) store: store::Options,
    /// What is registered.
    pub(crate) extensions: Extensions,
    /// The environment, for secrets and for the service manager's socket.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Whether it listens for webhooks.
    pub(crate) takes_webhooks: bool,
}

impl Options {
    /// The usual ones: everything that comes with the binary. `launcher` is a binary that begins with the
    /// shell executor's entry; the daemon's own is `/proc/self/exe`.
    ///
    /// # Errors
    /// When the directory of the runs cannot be made.
    pub(crate) fn bundled(
        home: &Home,
        launcher: PathBuf,
        environment: Vec<(OsString, OsString)>,
    ) -> std::io::Result<Self> {
        Ok(Self {
            location: None,
            store: store::Options::default(),
            extensions: Extensions::bundled(home, launcher)?,
            environment,
            takes_webhooks: true,
        })
    }
}

/// A daemon, as its listeners see it.
#[derive(Debug)]
pub(crate) struct Daemon {
    home: Home,
    runtime: Runtime,
    extensions: Extensions,
    tokens: Tokens,
    sessions: Sessions,
    codes: Codes,
    page: PageName,
    secrets: Arc<SecretReader>,
    applied: RwLock<Arc<Applied>>,
    applying: tokio::sync::Mutex<()>,
    ingress: RwLock<Arc<Table>>,
    streams: Arc<Semaphore>,
    started_at: Timestamp,
    addresses: RwLock<Addresses>,
    /// Connections, streams and whatever else ends before the runtime does.
    tasks: TaskTracker,
    stopping: CancellationToken,
}

/// Where a daemon listens.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Addresses {
    /// The API.
    pub(crate) api: Option<SocketAddr>,
    /// Webhooks.
    pub(crate) webhooks: Option<SocketAddr>,
}

impl Daemon {
    /// Its home.
    pub(crate) const fn home(&self) -> &Home {
        &self.home
    }

    /// Its runtime.
    pub(crate) const fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Its store.
    pub(crate) fn store(&self) -> &Store {
        self.runtime.store()
    }

    /// What is registered.
    pub(crate) const fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// The tokens that are valid.
    pub(crate) const fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// The sessions that are valid.
    pub(crate) const fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// The one-time codes that wait to be used.
    pub(crate) const fn codes(&self) -> &Codes {
        &self.codes
    }

    /// Where a browser finds the page, without a path; none before it listens.
    pub(crate) fn page_origin(&self) -> Option<&str> {
        self.page.origin()
    }

    /// Reads secrets.
    pub(crate) const fn secrets(&self) -> &Arc<SecretReader> {
        &self.secrets
    }

    /// The configuration in force.
    pub(crate) fn applied(&self) -> Arc<Applied> {
        Arc::clone(&self.applied.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The entries that take webhooks.
    pub(crate) fn ingress(&self) -> Arc<Table> {
        Arc::clone(&self.ingress.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// When it started.
    pub(crate) const fn started_at(&self) -> Timestamp {
        self.started_at
    }

    /// Where it listens.
    pub(crate) fn addresses(&self) -> Addresses {
        *self.addresses.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancelled when the daemon begins to stop.
    pub(crate) const fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }

    /// Room for one more client of the change feed, until the permit is dropped.
    pub(crate) fn take_stream(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.streams).try_acquire_owned().ok()
    }

    /// How many clients follow the change feed.
    pub(crate) fn streams_open(&self) -> i64 {
        i64::try_from(STREAMS_MAX.saturating_sub(self.streams.available_permits())).unwrap_or(i64::MAX)
    }

    /// Runs a task that the stop waits for.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }
}
