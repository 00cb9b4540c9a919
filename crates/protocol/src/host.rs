//! The runtime's side: a process that is started, asked, ended when it misbehaves, and started again.
//!
//! [`Process::handler`] and [`Process::ingress`] stand in for what the process offers. They can be prepared while it is
//! away, since a configuration in force stays in force; what they are asked meanwhile is held, not failed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use extension::{ConfigProblem, Handler, HandlerName, Ingress, IngressEntry};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

mod backoff;
mod connection;
mod handler;
mod ingress;
mod launch;
mod said;
mod supervise;
#[cfg(test)]
mod tests;

pub use ingress::namespace;
pub use launch::{ReadSurroundings, Surroundings};

use connection::{CallError, Connection};
use launch::{Launch, Program};

use crate::convert;
use crate::wire::{
    CALL_SECONDS_MAX, Capabilities, ErrorCode, PrepareEntryParams, PrepareEntryResult, PrepareRouteParams,
    PrepareRouteResult, ReleaseEntryParams, ReleaseRouteParams, Software, method,
};

/// How long a request may take.
pub(crate) const CALL_WITHIN: Duration = Duration::from_secs(CALL_SECONDS_MAX);
/// Answers about configurations that are kept for what stands in. Above this they are asked for again.
const KNOWN_MAX: usize = 4096;

/// An extension that runs in a process of its own.
pub struct Declaration {
    /// Its name. What it offers is called that, or begins with it and a full stop.
    pub name: String,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Where it runs.
    pub dir: PathBuf,
    /// Our own binary, whose `main` begins with [`crate::stage::entry`].
    pub stage: PathBuf,
    /// Its environment, read at each start.
    pub surroundings: ReadSurroundings,
    /// The types of Events by which the runtime speaks.
    pub announcements: Vec<String>,
    /// The runtime, as it introduces itself.
    pub runtime: Software,
    /// Called each time the process answers `initialize`.
    pub on_ready: Arc<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Declaration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Declaration").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A process that answers.
#[derive(Debug)]
struct Ready {
    connection: Arc<Connection>,
    pid: u32,
    software: Software,
    offers: Capabilities,
}

/// How a process is.
#[derive(Debug, Clone)]
enum State {
    /// It has yet to answer for the first time.
    Starting,
    /// It answers.
    Ready(Arc<Ready>),
    /// It does not, and is started again.
    Down { reason: String, ends: u32 },
    /// It was stopped for good.
    Stopped,
}

/// How a process is, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It has yet to answer for the first time.
    Starting,
    /// It answers.
    Ready {
        /// Its pid.
        pid: u32,
        /// What it says it is.
        software: Software,
    },
    /// It does not answer, and is started again.
    Down {
        /// Why, in words.
        reason: String,
        /// How often in a row it has ended.
        ends: u32,
    },
    /// It was stopped.
    Stopped,
}

/// Why an extension did not take a part of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// It does not answer.
    Unavailable {
        /// Why, in words.
        reason: String,
    },
    /// It offers nothing of that name.
    NotOffered {
        /// What it offers.
        offered: Vec<String>,
    },
    /// It says what is wrong.
    Problems(Vec<ConfigProblem>),
}

/// A process that is looked after until [`Process::stop`].
#[derive(Debug)]
pub struct Process {
    name: String,
    announcements: Vec<String>,
    state: watch::Sender<State>,
    handles: AtomicU64,
    /// What was answered about a configuration last, by the name of the handler and the configuration's text.
    routes: Mutex<BTreeMap<(String, String), PrepareRouteResult>>,
    entries: Mutex<BTreeMap<(String, String), PrepareEntryResult>>,
    ending: CancellationToken,
    tasks: TaskTracker,
}

/// Whether an extension of that name may offer what is called `offered`.
pub fn owns(extension: &str, offered: &str) -> bool {
    offered.strip_prefix(extension).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl Process {
    /// Starts to look after a process. It must be called within a tokio runtime.
    pub fn start(declaration: Declaration) -> Arc<Self> {
        let Declaration { name, argv, dir, stage, surroundings, announcements, runtime, on_ready } =
            declaration;
        let program = Program { stage, argv, dir, surroundings };
        Self::start_with(name, announcements, runtime, on_ready, Box::new(program))
    }

    fn start_with(
        name: String,
        announcements: Vec<String>,
        runtime: Software,
        on_ready: Arc<dyn Fn() + Send + Sync>,
        launch: Box<dyn Launch>,
    ) -> Arc<Self> {
        let process = Arc::new(Self {
            name,
            announcements,
            state: watch::Sender::new(State::Starting),
            handles: AtomicU64::new(1),
            routes: Mutex::default(),
            entries: Mutex::default(),
            ending: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        let supervised = Arc::clone(&process);
        process.tasks.spawn(async move { supervise::run(&supervised, &*launch, &runtime, &*on_ready).await });
        process
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it is.
    pub fn standing(&self) -> Standing {
        match &*self.state.borrow() {
            State::Starting => Standing::Starting,
            State::Ready(ready) => Standing::Ready { pid: ready.pid, software: ready.software.clone() },
            State::Down { reason, ends } => Standing::Down { reason: reason.clone(), ends: *ends },
            State::Stopped => Standing::Stopped,
        }
    }

    /// Waits until it has answered or failed for the first time, at most so long.
    pub async fn settle(&self, within: Duration) {
        let mut state = self.state.subscribe();
        let settled = state.wait_for(|state| !matches!(state, State::Starting));
        drop(tokio::time::timeout(within, settled).await);
    }

    /// Ends the process and whoever looks after it.
    pub async fn stop(&self) {
        self.ending.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// What stands in for its handler of that name, whether it answers now or not.
    pub fn handler(self: &Arc<Self>, name: HandlerName) -> Arc<dyn Handler> {
        Arc::new(handler::Outside::new(Arc::clone(self), name))
    }

    /// What stands in for its entries of that type, under `/<path_prefix>/` on the listener.
    pub fn ingress(self: &Arc<Self>, entry_type: &str, path_prefix: &str) -> Arc<dyn Ingress> {
        Arc::new(ingress::Outside::new(Arc::clone(self), entry_type, path_prefix))
    }

    /// Asks it about a route's configuration.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn check_route(&self, handler: &str, config: &Value) -> Result<(), Refused> {
        let ready = self.ready().map_err(|reason| Refused::Unavailable { reason })?;
        if !ready.offers.handlers.iter().any(|known| known == handler) {
            return Err(Refused::NotOffered { offered: ready.offers.handlers.clone() });
        }
        let handle = self.handle();
        let asked = self.prepare_route(&ready.connection, &handle, handler, config).await;
        ready.connection.notify(method::RELEASE_ROUTE, ReleaseRouteParams { route: handle });
        asked.map(drop).map_err(|error| refused(&error))
    }

    /// Asks it about an entry's configuration.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn check_entry(&self, entry_type: &str, entry: &IngressEntry) -> Result<(), Refused> {
        let ready = self.ready().map_err(|reason| Refused::Unavailable { reason })?;
        if !ready.offers.ingresses.iter().any(|known| known == entry_type) {
            return Err(Refused::NotOffered { offered: ready.offers.ingresses.clone() });
        }
        let handle = self.handle();
        let asked = self.prepare_entry(&ready.connection, &handle, entry_type, entry).await;
        ready.connection.notify(method::RELEASE_ENTRY, ReleaseEntryParams { entry: handle });
        asked.map(drop).map_err(|error| refused(&error))
    }

    /// The process, when it answers; else why it does not.
    fn ready(&self) -> Result<Arc<Ready>, String> {
        let name = &self.name;
        match &*self.state.borrow() {
            State::Ready(ready) => Ok(Arc::clone(ready)),
            State::Starting => Err(format!("extension `{name}` is being started")),
            State::Down { reason, .. } => Err(format!("extension `{name}` does not answer: {reason}")),
            State::Stopped => Err(format!("extension `{name}` was stopped")),
        }
    }

    fn handle(&self) -> String {
        format!("h{}", self.handles.fetch_add(1, Ordering::Relaxed))
    }

    async fn prepare_route(
        &self,
        connection: &Connection,
        handle: &str,
        handler: &str,
        config: &Value,
    ) -> Result<PrepareRouteResult, CallError> {
        let params = PrepareRouteParams {
            route: handle.to_owned(),
            handler: handler.to_owned(),
            config: config.clone(),
            announcements: self.announcements.clone(),
        };
        let answer: PrepareRouteResult = connection.call(method::PREPARE_ROUTE, &params, CALL_WITHIN).await?;
        remember(&self.routes, handler, config, &answer);
        Ok(answer)
    }

    async fn prepare_entry(
        &self,
        connection: &Connection,
        handle: &str,
        entry_type: &str,
        entry: &IngressEntry,
    ) -> Result<PrepareEntryResult, CallError> {
        let params = PrepareEntryParams {
            entry: handle.to_owned(),
            entry_type: entry_type.to_owned(),
            name: entry.name.to_string(),
            scope: entry.scope.to_string(),
            secret_names: entry.secret_names.clone(),
            config: entry.config.clone(),
        };
        let answer: PrepareEntryResult = connection.call(method::PREPARE_ENTRY, &params, CALL_WITHIN).await?;
        remember(&self.entries, entry_type, &entry.config, &answer);
        Ok(answer)
    }
}

type Known<T> = Mutex<BTreeMap<(String, String), T>>;

fn remember<T: Clone>(known: &Known<T>, name: &str, config: &Value, answer: &T) {
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    if known.len() >= KNOWN_MAX {
        known.clear();
    }
    known.insert((name.to_owned(), config.to_string()), answer.clone());
}

fn recall<T: Clone>(known: &Known<T>, name: &str, config: &Value) -> Option<T> {
    let known = known.lock().unwrap_or_else(PoisonError::into_inner);
    known.get(&(name.to_owned(), config.to_string())).cloned()
}

fn refused(error: &CallError) -> Refused {
    match error {
        CallError::Refused(body) if body.code == ErrorCode::UnknownName.number() => {
            Refused::NotOffered { offered: Vec::new() }
        }
        CallError::Refused(body) => match convert::faulted(body) {
            Some(problems) => Refused::Problems(problems),
            None => Refused::Unavailable { reason: body.message.clone() },
        },
        CallError::Unavailable(_) | CallError::Unreadable { .. } | CallError::TooLong => {
            Refused::Unavailable { reason: error.to_string() }
        }
    }
}
