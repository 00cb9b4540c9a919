//! The daemon inside a command: what `up` and `serve` have in common.

use std::net::SocketAddr;

use domain::store::StoreError;
use serde::Serialize;

use super::exit::Exit;
use super::failure::{Failure, Stop, chain};
use super::output::Output;
use crate::api::wire::ProblemItem;
use crate::config;
use crate::daemon::signal::Signals;
use crate::daemon::{self, DaemonError, Options, Running};
use crate::env;
use crate::error_code::ErrorCode;
use crate::home::Home;

/// A daemon that runs in this process.
#[derive(Debug)]
pub(super) struct Hosted {
    running: Running,
    signals: Signals,
}

/// Where things are.
#[derive(Debug, Serialize)]
pub(super) struct Places {
    home: String,
    socket: String,
    api_address: Option<SocketAddr>,
    webhook_address: Option<SocketAddr>,
}

/// Begins to log, to standard error, from `level` on if the environment names no other.
pub(super) fn log(level: &str) -> Result<(), Stop> {
    let filter = env::log_filter();
    daemon::log::start(Some(filter.as_deref().unwrap_or(level)), env::is_watched())
        .map_err(|error| Failure::usage(chain(&error)).into())
}

/// Whether a daemon listens for webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TakesWebhooks {
    /// As the configuration says.
    AsConfigured,
    /// Not this time.
    No,
}

impl Hosted {
    /// Starts a daemon in a home.
    pub(super) async fn start(home: &Home, webhooks: TakesWebhooks) -> Result<Self, Stop> {
        // From here on a signal asks for a stop in order, also while the daemon starts.
        let signals = Signals::listen().map_err(|error| {
            Failure::new(Exit::FAILED, ErrorCode::System, format!("cannot listen for signals: {error}"))
        })?;
        home.create()?;
        let mut options =
            Options::bundled(home, "/proc/self/exe".into(), env::variables()).map_err(|error| {
                Failure::new(
                    Exit::FAILED,
                    ErrorCode::Home,
                    format!("cannot make the runs' directory: {error}"),
                )
            })?;
        options.takes_webhooks = webhooks == TakesWebhooks::AsConfigured;
        options.location = env::database().map_err(Failure::usage)?;
        let running = daemon::start(home.clone(), options).await.map_err(not_started)?;
        Ok(Self { running, signals })
    }

    pub(super) fn places(&self) -> Places {
        let home = self.running.daemon().home();
        let addresses = self.running.addresses();
        Places {
            home: home.root().display().to_string(),
            socket: home.socket().display().to_string(),
            api_address: addresses.api,
            webhook_address: addresses.webhooks,
        }
    }

    /// Does something that a signal cuts short; none when it did.
    pub(super) async fn unless_signalled<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.signals.next() => None,
        }
    }

    /// Stops. Runs go on.
    pub(super) async fn stop(self) -> Result<Exit, Stop> {
        match self.running.stop().await {
            Ok(()) => Ok(Exit::DONE),
            Err(error) => Err(not_stopped(&error)),
        }
    }

    /// Stays until a signal, and stops. Runs go on.
    pub(super) async fn wait(self) -> Result<Exit, Stop> {
        match self.running.wait(self.signals).await {
            Ok(_stopped_or_cut_short) => Ok(Exit::DONE),
            Err(error) => Err(not_stopped(&error)),
        }
    }
}

impl Places {
    /// Prints where things are and what they are for.
    pub(super) fn print(&self, out: &Output) -> Result<(), Stop> {
        out.line("")?;
        out.line(format!("  home      {}", self.home))?;
        if let Some(address) = self.api_address {
            out.line(format!("  API       http://{address}  (token in {}/token)", self.home))?;
        }
        match self.webhook_address {
            Some(address) => {
                out.line(format!("  webhooks  http://{address}  (for a proxy or tunnel of yours)"))
            }
            None => out.line("  webhooks  off"),
        }
    }
}

fn not_stopped(error: &StoreError) -> Stop {
    Failure::new(Exit::FAILED, error.code(), format!("the daemon did not stop in order: {}", chain(error)))
        .hint("nothing that was accepted is lost; the next start puts it in order")
        .into()
}

fn not_started(error: DaemonError) -> Stop {
    let failure = match error {
        DaemonError::AlreadyRunning => {
            Failure::new(Exit::CONFLICT, error.code(), "a daemon runs in this home already")
                .hint("`open-conduit status` shows it; --home names another home")
        }
        DaemonError::Config(problems) => {
            let items = problems.into_iter().map(|problem| {
                let config::Problem { path, line, code, message } = problem;
                ProblemItem { path, line, code: code.to_owned(), message }
            });
            Failure::new(
                Exit::USAGE,
                ErrorCode::InvalidConfig,
                "the configuration file is not valid, and none is in force yet",
            )
            .problems(items.collect())
            .hint("mend it, and see what is left with `open-conduit config check`")
        }
        DaemonError::Home(error) => return error.into(),
        DaemonError::Listen { .. } => Failure::new(Exit::CONFLICT, error.code(), chain(&error)).hint(
            "another program has the address; choose another one in the [daemon] table of the configuration",
        ),
        DaemonError::Store(_) | DaemonError::Token(_) | DaemonError::Apply(_) | DaemonError::Open { .. } => {
            Failure::new(Exit::FAILED, error.code(), chain(&error))
        }
    };
    failure.into()
}
