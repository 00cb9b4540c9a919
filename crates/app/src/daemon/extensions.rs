//! What is registered in a daemon: the extensions that come with the binary, or a test's own.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bundled::git::GitWorkspaces;
use bundled::shell::{LauncherBinary, ShellExecutor, ShellOptions, Toolbelt};
use extension::{Executor, Handler, Ingress, IngressEntry, Recurrence, TriggerChoice, WorkspaceProvider};
use runtime::{HandlerSource, Registry};
use schedule::recurrence::{NewestDelivery, ScheduleRoutes, Schedules};

use crate::config::Registered;
use crate::daemon::outside::Outside;
use crate::home::Home;

/// Handlers, executors and kinds of entries that take webhooks. All but what runs outside is fixed when the daemon
/// starts.
#[derive(Debug, Clone)]
pub(crate) struct Extensions {
    /// Every handler.
    pub(crate) handlers: Vec<Arc<dyn Handler>>,
    /// Every executor.
    pub(crate) executors: Vec<Arc<dyn Executor>>,
    /// Every kind of entry that takes webhooks.
    pub(crate) ingresses: Vec<Arc<dyn Ingress>>,
    /// Every kind of entry whose parts recur.
    pub(crate) recurrences: Vec<Arc<dyn Recurrence>>,
    /// Every provider of workspaces.
    pub(crate) workspaces: Vec<Arc<dyn WorkspaceProvider>>,
    /// Those that run in processes of their own, and go before these.
    pub(crate) outside: Arc<Outside>,
}

impl Extensions {
    /// What comes with the binary, its runs in the home.
    ///
    /// # Errors
    /// When the directory of the runs cannot be made.
    pub(crate) fn bundled(home: &Home, launcher: PathBuf) -> io::Result<Self> {
        let outside = Outside::new(launcher.clone());
        let toolbelt = Toolbelt { socket: home.toolbelt_socket(), bin: home.bin() };
        let options = ShellOptions { toolbelt: Some(toolbelt), ..ShellOptions::from_process() };
        let shell = ShellExecutor::new(&home.runs(), launcher, options)?;
        match shell.launcher_binary() {
            LauncherBinary::Embedded => tracing::debug!("launchers are started from memory"),
            LauncherBinary::Given { reason } => {
                tracing::info!(reason, "launchers are started from the whole binary, which takes longer");
            }
        }
        Ok(Self {
            handlers: handlers(),
            executors: vec![Arc::new(shell)],
            ingresses: bundled::ingresses(),
            recurrences: recurrences(),
            workspaces: vec![Arc::new(GitWorkspaces::from_process(&home.workspaces().join("git")))],
            outside,
        })
    }

    /// As the runtime knows them.
    pub(crate) fn registry(&self) -> Registry {
        let registry = Registry::new(self.handlers.iter().cloned(), self.executors.iter().cloned());
        let choices: [Arc<dyn TriggerChoice>; 1] = [Arc::new(NewestDelivery)];
        registry
            .with_source(Arc::clone(&self.outside) as Arc<dyn HandlerSource>)
            .with_recurrences(self.recurrences.iter().cloned())
            .with_choices(choices)
            .with_workspaces(self.workspaces.iter().cloned())
    }

    /// The kind of an entry as it is configured: one that runs outside, else one of ours.
    pub(crate) fn ingress(&self, asked: &IngressEntry, entry_type: &str) -> Option<Arc<dyn Ingress>> {
        let ours = self.ingresses.iter().find(|known| known.entry_type() == entry_type);
        let prepared = ours.and_then(|ours| ours.prepare(asked).ok());
        let prefix = prepared.as_ref().map(|prepared| prepared.path_prefix());
        self.outside.ingress(entry_type, prefix).or_else(|| ours.cloned())
    }
}

/// Every kind of route that comes with the binary.
pub(crate) fn handlers() -> Vec<Arc<dyn Handler>> {
    let mut handlers = bundled::handlers();
    handlers.push(Arc::new(ScheduleRoutes));
    handlers
}

/// Every kind of entry whose parts recur that comes with the binary.
pub(crate) fn recurrences() -> Vec<Arc<dyn Recurrence>> {
    vec![Arc::new(Schedules)]
}

impl Registered for Extensions {
    fn handlers(&self) -> &[Arc<dyn Handler>] {
        &self.handlers
    }

    fn executors(&self) -> &[Arc<dyn Executor>] {
        &self.executors
    }

    fn ingresses(&self) -> &[Arc<dyn Ingress>] {
        &self.ingresses
    }

    fn recurrences(&self) -> &[Arc<dyn Recurrence>] {
        &self.recurrences
    }

    fn workspaces(&self) -> &[Arc<dyn WorkspaceProvider>] {
        &self.workspaces
    }
}
