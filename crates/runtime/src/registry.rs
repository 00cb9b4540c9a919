//! What extensions have registered, by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use domain::scope::SecretRef;
use domain::text::{ExecutorName, HandlerName};
use extension::{BoxFuture, CallGate, Executor, Handler, Secret, SecretError, StartGate};

/// Handlers that come and go with the configuration, such as those of other processes.
pub trait HandlerSource: fmt::Debug + Send + Sync {
    /// The handler of that name; none when there is none now.
    fn handler(&self, name: &HandlerName) -> Option<Arc<dyn Handler>>;
}

/// Handlers, executors and gates. All but those of a [`HandlerSource`] are fixed when the daemon starts.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    handlers: BTreeMap<HandlerName, Arc<dyn Handler>>,
    source: Option<Arc<dyn HandlerSource>>,
    executors: BTreeMap<ExecutorName, Arc<dyn Executor>>,
    gates: Vec<Arc<dyn StartGate>>,
    call_gates: Vec<Arc<dyn CallGate>>,
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
            source: None,
            gates: Vec::new(),
            call_gates: Vec::new(),
        }
    }

    /// The same with handlers that come and go. One of them goes before one of the same name that is fixed.
    #[must_use]
    pub fn with_source(mut self, source: Arc<dyn HandlerSource>) -> Self {
        self.source = Some(source);
        self
    }

    /// The same with start gates, which are asked in this order.
    #[must_use]
    pub fn with_gates(mut self, gates: impl IntoIterator<Item = Arc<dyn StartGate>>) -> Self {
        self.gates.extend(gates);
        self
    }

    /// The same with gates on calls, which are asked in this order.
    #[must_use]
    pub fn with_call_gates(mut self, gates: impl IntoIterator<Item = Arc<dyn CallGate>>) -> Self {
        self.call_gates.extend(gates);
        self
    }

    /// Every gate on calls.
    pub fn call_gates(&self) -> &[Arc<dyn CallGate>] {
        &self.call_gates
    }

    /// Every start gate.
    pub fn gates(&self) -> &[Arc<dyn StartGate>] {
        &self.gates
    }

    /// The handler of that name.
    pub fn handler(&self, name: &HandlerName) -> Option<Arc<dyn Handler>> {
        let outside = self.source.as_ref().and_then(|source| source.handler(name));
        outside.or_else(|| self.handlers.get(name).cloned())
    }

    /// The executor of that name.
    pub fn executor(&self, name: &ExecutorName) -> Option<&Arc<dyn Executor>> {
        self.executors.get(name)
    }

    /// Every handler that is fixed.
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
