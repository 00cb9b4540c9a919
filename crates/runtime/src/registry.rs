//! What extensions have registered, by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use domain::scope::SecretRef;
use domain::text::{ExecutorName, HandlerName, WorkKind};
use extension::{
    BoxFuture, CallGate, Executor, Handler, Recurrence, Secret, SecretError, StartGate, TriggerChoice,
    WorkspaceProvider,
};

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
    recurrences: Vec<Arc<dyn Recurrence>>,
    choices: BTreeMap<WorkKind, Arc<dyn TriggerChoice>>,
    workspaces: Vec<Arc<dyn WorkspaceProvider>>,
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
            recurrences: Vec::new(),
            choices: BTreeMap::new(),
            workspaces: Vec::new(),
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

    /// The same with kinds of entries whose parts recur.
    #[must_use]
    pub fn with_recurrences(mut self, recurrences: impl IntoIterator<Item = Arc<dyn Recurrence>>) -> Self {
        self.recurrences.extend(recurrences);
        self
    }

    /// The same with choices of the trigger of a run, one for each kind of Work.
    #[must_use]
    pub fn with_choices(mut self, choices: impl IntoIterator<Item = Arc<dyn TriggerChoice>>) -> Self {
        self.choices.extend(choices.into_iter().map(|choice| (choice.work_kind(), choice)));
        self
    }

    /// The recurrence of a type of entries.
    pub fn recurrence(&self, entry_type: &str) -> Option<&Arc<dyn Recurrence>> {
        self.recurrences.iter().find(|known| known.entry_type() == entry_type)
    }

    /// Whether any kind of entry recurs.
    pub fn recurs(&self) -> bool {
        !self.recurrences.is_empty()
    }

    /// Who chooses the triggers of Works of a kind; nobody, where the first input is the trigger.
    pub fn choice(&self, kind: &WorkKind) -> Option<&Arc<dyn TriggerChoice>> {
        self.choices.get(kind)
    }

    /// The same with providers of workspaces.
    #[must_use]
    pub fn with_workspaces(
        mut self,
        workspaces: impl IntoIterator<Item = Arc<dyn WorkspaceProvider>>,
    ) -> Self {
        self.workspaces.extend(workspaces);
        self
    }

    /// Every provider of workspaces.
    pub fn workspaces(&self) -> &[Arc<dyn WorkspaceProvider>] {
        &self.workspaces
    }

    /// The provider of workspaces of that name.
    pub fn workspace(&self, name: &str) -> Option<&Arc<dyn WorkspaceProvider>> {
        self.workspaces.iter().find(|provider| provider.name() == name)
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
