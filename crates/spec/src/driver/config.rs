//! Configurations as cases write them.

use domain::text::{BindingName, EventType, RouteName, ScopeName};

/// What a scope declares.
#[derive(Debug, Clone)]
pub struct ScopeText {
    /// Its name.
    pub name: ScopeName,
    /// The scope it inherits from.
    pub parent: Option<ScopeName>,
    /// Its routes, in the order they are asked.
    pub routes: Vec<RouteText>,
    /// Its bindings.
    pub bindings: Vec<BindingText>,
    /// Scopes that it may read.
    pub reads: Vec<ScopeName>,
    /// How many attempts run at once.
    pub concurrency: u32,
    /// How many failures in a row there may be.
    pub failure_budget: u32,
    /// Whether using them up is the end.
    pub terminal_on_exhaustion: bool,
    /// How deep a chain may get.
    pub causal_max_depth: u32,
    /// How many derived Events a root may have in a minute.
    pub causal_per_minute: u32,
}

/// A declared route. Its handler takes Events of its types, and answers what the delivery says.
#[derive(Debug, Clone)]
pub struct RouteText {
    /// Its name.
    pub name: RouteName,
    /// The types it takes; any at all when there are none.
    pub takes: Vec<EventType>,
    /// Whether its handler drops what it takes.
    pub drops: bool,
    /// What runs a match.
    pub binding: BindingName,
    /// The policy, by its word.
    pub policy: String,
    /// The policy in place of one that the binding cannot do, by its word.
    pub fallback: Option<String>,
}

/// A declared binding.
#[derive(Debug, Clone)]
pub struct BindingText {
    /// Its name.
    pub name: BindingName,
    /// What its executor can do.
    pub can: Vec<Capability>,
    /// What tells it from others of its name: it is handed to the executor.
    pub label: String,
}

/// Something that not every executor can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// Take in an Event while it runs.
    Inject,
    /// Stop when it is told to, with its Work staying ready.
    Interrupt,
    /// Continue an attempt that was parked.
    Resume,
}

/// A scope with one route, `told`, to one binding, `double`, and the usual settings.
pub fn scope(name: &str) -> ScopeText {
    ScopeText {
        name: ScopeName::known(name),
        parent: None,
        routes: vec![route("told")],
        bindings: vec![binding("double")],
        reads: Vec::new(),
        concurrency: 16,
        failure_budget: 3,
        terminal_on_exhaustion: false,
        causal_max_depth: 32,
        causal_per_minute: 128,
    }
}

/// A route to the binding `double` that takes everything and queues.
pub fn route(name: &str) -> RouteText {
    RouteText {
        name: RouteName::known(name),
        takes: Vec::new(),
        drops: false,
        binding: BindingName::known("double"),
        policy: "queue".to_owned(),
        fallback: None,
    }
}

/// A binding to an executor that can run, and nothing else.
pub fn binding(name: &str) -> BindingText {
    BindingText { name: BindingName::known(name), can: Vec::new(), label: name.to_owned() }
}

impl ScopeText {
    /// Below another scope.
    #[must_use]
    pub fn below(self, parent: &str) -> Self {
        Self { parent: Some(ScopeName::known(parent)), ..self }
    }

    /// With these routes.
    #[must_use]
    pub fn routes(self, routes: Vec<RouteText>) -> Self {
        Self { routes, ..self }
    }

    /// With these bindings.
    #[must_use]
    pub fn bindings(self, bindings: Vec<BindingText>) -> Self {
        Self { bindings, ..self }
    }

    /// With the route `told` under a policy.
    #[must_use]
    pub fn policy(self, policy: &str) -> Self {
        self.routes(vec![route("told").policy(policy)])
    }

    /// With the binding `double` to an executor that can do these.
    #[must_use]
    pub fn can(self, can: &[Capability]) -> Self {
        self.bindings(vec![BindingText { can: can.to_vec(), ..binding("double") }])
    }
}

impl RouteText {
    /// That takes only this type.
    #[must_use]
    pub fn takes(mut self, event_type: &str) -> Self {
        self.takes.push(EventType::known(event_type));
        self
    }

    /// Whose handler drops.
    #[must_use]
    pub fn drops(self) -> Self {
        Self { drops: true, ..self }
    }

    /// Under a policy.
    #[must_use]
    pub fn policy(self, policy: &str) -> Self {
        Self { policy: policy.to_owned(), ..self }
    }

    /// With a policy in place of one that the binding cannot do.
    #[must_use]
    pub fn fallback(self, policy: &str) -> Self {
        Self { fallback: Some(policy.to_owned()), ..self }
    }

    /// To another binding.
    #[must_use]
    pub fn to(self, binding: &str) -> Self {
        Self { binding: BindingName::known(binding), ..self }
    }
}

impl BindingText {
    /// Told from others of its name by this.
    #[must_use]
    pub fn label(self, label: &str) -> Self {
        Self { label: label.to_owned(), ..self }
    }
}
