//! What is registered in a daemon: the extensions that come with the binary, or a test's own.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bundled::shell::{LauncherBinary, ShellExecutor, ShellOptions, Toolbelt};
use extension::{Executor, Handler, Ingress};
use runtime::Registry;

use crate::config::Registered;
use crate::home::Home;

/// Handlers, executors and kinds of entries that take webhooks. Fixed when the daemon starts.
#[derive(Debug, Clone)]
pub(crate) struct Extensions {
    /// Every handler.
    pub(crate) handlers: Vec<Arc<dyn Handler>>,
    /// Every executor.
    pub(crate) executors: Vec<Arc<dyn Executor>>,
    /// Every kind of entry that takes webhooks.
    pub(crate) ingresses: Vec<Arc<dyn Ingress>>,
}

impl Extensions {
    /// What comes with the binary, its runs in the home.
    ///
    /// # Errors
    /// When the directory of the runs cannot be made.
    pub(crate) fn bundled(home: &Home, launcher: PathBuf) -> io::Result<Self> {
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
            handlers: bundled::handlers(),
            executors: vec![Arc::new(shell)],
            ingresses: bundled::ingresses(),
        })
    }

    /// As the runtime knows them.
    pub(crate) fn registry(&self) -> Registry {
        Registry::new(self.handlers.iter().cloned(), self.executors.iter().cloned())
    }
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
}
