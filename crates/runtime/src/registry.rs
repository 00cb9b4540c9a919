//! What extensions have registered, by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use domain::scope::SecretRef;
use domain::text::{ExecutorName, HandlerName};
use extension::{BoxFuture, Executor, Handler, Secret, SecretError, StartGate};

/// Handlers, executors and start gates. Fixed when the daemon starts.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    handlers: BTreeMap<HandlerName, Arc<dyn Handler>>,
    executors: BTreeMap<ExecutorName, Arc<dyn Executor>>,
    gates: Vec<Arc<dyn StartGate>>,
}

impl Registry {
    /// A registry of these. A later one of the same name replaces an earlier one.
    pub fn new(
        handlers: impl IntoIterator<Item = Arc<dyn Handler>>,
        executors: impl IntoIterator<Item = Arc<dyn Executor>>,
    ) -> Self {
        Self {
            handlers: handlers.into_iter().map(|handler| (handler.name(), handler)).collect(),
            executors: executors.into_iter().map(|executor| (executor.name(), executor)).collect(),
            gates: Vec::new(),
        }
    }

    /// The same with start gates, which are asked in this order.
    #[must_use]
    pub fn with_gates(mut self, gates: impl IntoIterator<Item = Arc<dyn StartGate>>) -> Self {
        self.gates.extend(gates);
        self
    }

    /// Every start gate.
    pub fn gates(&self) -> &[Arc<dyn StartGate>] {
        &self.gates
    }

    /// The handler of that name.
    pub fn handler(&self, name: &HandlerName) -> Option<&Arc<dyn Handler>> {
        self.handlers.get(name)
    }

    /// The executor of that name.
    pub fn executor(&self, name: &ExecutorName) -> Option<&Arc<dyn Executor>> {
        self.executors.get(name)
    }

    /// Every handler.
    pub fn handlers(&self) -> impl Iterator<Item = &Arc<dyn Handler>> {
        self.handlers.values()
    }

    /// Every executor.
    pub fn executors(&self) -> impl Iterator<Item = &Arc<dyn Executor>> {
        self.executors.values()
    }
}

/// Where secret references are resolved, late and outside every transaction.
pub trait SecretSource: fmt::Debug + Send + Sync {
    /// Reads the secret called `name` behind `reference`.
    ///
    /// # Errors
    /// [`SecretError`] when it cannot be read; it never holds a value.
    fn resolve<'a>(
        &'a self,
        name: &'a str,
        reference: &'a SecretRef,
    ) -> BoxFuture<'a, Result<Secret, SecretError>>;
}
