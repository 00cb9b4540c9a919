//! A scope as the stages see it: inheritance resolved, every name bound.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::budget::Budget;
use crate::retry::OwnRetry;
use crate::route::{ActivePolicy, Fallbacks};
use crate::text::{BindingName, CredentialName, EntryName, ExecutorName, HandlerName, RouteName, ScopeName};

/// Settings that a scope inherits from above. Each has a bound; `crate::config` checks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The longest an attempt's active segments may take together, in seconds.
    pub timeout_seconds: u32,
    /// The longest an attempt may go without a sign of life, in seconds. Off when none.
    pub inactivity_seconds: Option<u32>,
    /// How many attempts of one Work may run in this scope at once, all Works together.
    pub concurrency: u32,
    /// How many of a Work's newest attempts keep their content.
    pub kept_executions: u32,
    /// How many days finished Work keeps its content. For ever when none.
    pub kept_finished_days: Option<u32>,
    /// The deepest a derived Event may stand in its chain.
    pub causal_max_depth: u32,
    /// The most derived Events one root may have in a UTC minute.
    pub causal_per_minute: u32,
    /// How many failures in a row automatic retry allows, the first included.
    pub failure_budget: u32,
    /// Whether a Work that used up its failure budget becomes failed for good.
    pub terminal_on_exhaustion: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            timeout_seconds: 3600,
            inactivity_seconds: None,
            concurrency: 16,
            kept_executions: 20,
            kept_finished_days: None,
            causal_max_depth: 32,
            causal_per_minute: 128,
            failure_budget: 3,
            terminal_on_exhaustion: false,
        }
    }
}

/// A route that holds in a scope.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// Its name, unique within the scope.
    pub name: RouteName,
    /// The handler that is asked.
    pub handler: HandlerName,
    /// The binding that runs what it matches. A route that only drops needs none.
    pub binding: Option<BindingName>,
    /// What happens to a match while the Work runs.
    pub active_policy: ActivePolicy,
    /// What takes its place.
    pub fallbacks: Fallbacks,
    /// The handler's own configuration, opaque here.
    pub config: Value,
    /// The scope that declared it, which may be an ancestor.
    pub declared_in: ScopeName,
}

/// A binding that holds in a scope: which executor runs a Work, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Binding {
    /// Its name, unique within the scope.
    pub name: BindingName,
    /// The executor.
    pub executor: ExecutorName,
    /// The executor's own configuration, opaque here.
    pub config: Value,
    /// The workspace it needs, opaque here.
    pub resource: Option<Value>,
    /// The longest an attempt may take, in seconds; the scope's setting when none.
    pub timeout_seconds: Option<u32>,
    /// The longest an attempt may go without a sign of life, in seconds: its own, or the scope's setting. Off when
    /// none.
    pub inactivity_seconds: Option<u32>,
    /// What it says itself about trying again after a failure.
    pub retry: Option<OwnRetry>,
    /// What it calls the account that its executor uses.
    pub credential: Option<CredentialName>,
    /// Names of secrets its attempts get in their environment, with the variable for each.
    pub secrets: BTreeMap<String, SecretRef>,
    /// The scope that declared it, which may be an ancestor.
    pub declared_in: ScopeName,
}

impl Binding {
    /// The deadline of an attempt, counted over its active segments.
    pub fn timeout(&self, settings: &Settings) -> Duration {
        Duration::from_secs(u64::from(self.timeout_seconds.unwrap_or(settings.timeout_seconds)))
    }
}

/// Where a secret is found: `env:NAME`, `file:PATH` or `cmd:...`. The value is never kept.
#[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct SecretRef(pub String);

impl std::fmt::Debug for SecretRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Someone may have put the value where the reference belongs.
        f.write_str("SecretRef(…)")
    }
}

/// An extension entry that holds in a scope.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its name, unique within the scope.
    pub name: EntryName,
    /// The registered type of the extension.
    pub entry_type: String,
    /// The secrets it may read, by name.
    pub secrets: BTreeMap<String, SecretRef>,
    /// The extension's own configuration, opaque here.
    pub config: Value,
    /// The scope that declared it, which may be an ancestor.
    pub declared_in: ScopeName,
}

/// A scope with everything it inherits.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectiveScope {
    /// Its name.
    pub name: ScopeName,
    /// Its ancestors, root first, itself last.
    pub lineage: Vec<ScopeName>,
    /// Whether it, or an ancestor, is disabled: nothing of it routes or starts.
    pub disabled: bool,
    /// Its settings.
    pub settings: Settings,
    /// Its routes, in the order they are asked.
    pub routes: Vec<Route>,
    /// Its bindings.
    pub bindings: BTreeMap<BindingName, Binding>,
    /// Its extension entries.
    pub extensions: BTreeMap<EntryName, Entry>,
    /// Scopes its Waits and aliases may read. It never gives write authority.
    pub read_scopes: Vec<ScopeName>,
    /// Scopes in which its runs may create Works. It gives no right to read there.
    pub write_scopes: Vec<ScopeName>,
    /// The budgets that its turns are under.
    pub budgets: Vec<Budget>,
}

impl EffectiveScope {
    /// Whether its runs may create Works in a scope: in itself, and where it was given the right. (TOO-7)
    pub fn may_write(&self, scope: &ScopeName) -> bool {
        *scope == self.name || self.write_scopes.contains(scope)
    }
}
