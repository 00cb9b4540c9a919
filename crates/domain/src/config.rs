//! A configuration as it is declared, and what it resolves to.
//!
//! What is declared is a list of scopes, each saying only what it adds to its parent. The stages never see
//! that: [`resolve`] turns it into one
//! [`EffectiveScope`](crate::scope::EffectiveScope) for each scope, with inheritance done and every name
//! bound, or into the whole list of what is wrong. No problem ever repeats a configured value, as a secret may
//! stand in the wrong field.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::budget::Budget;
use crate::retry::OwnRetry;
use crate::route::{ActivePolicy, Fallbacks};
use crate::scope::SecretRef;
use crate::text::{BindingName, CredentialName, EntryName, ExecutorName, HandlerName, RouteName, ScopeName};

pub mod limits;
mod secret;
mod budget;
mod lineage;
mod resolve;
#[cfg(test)]
mod tests;

pub use resolve::resolve;

/// Everything that is configured about scopes, in the order of declaration.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Configuration {
    /// The scopes. A parent may be declared after its children.
    pub scopes: Vec<ScopeConfig>,
}

/// What one scope declares.
#[derive(Debug, Clone, PartialEq)]
pub struct ScopeConfig {
    /// Its name, unique in the configuration.
    pub name: ScopeName,
    /// The scope it inherits from. A scope without one is a root.
    pub parent: Option<ScopeName>,
    /// Whether it, and everything below it, neither routes nor starts anything.
    pub disabled: bool,
    /// The settings it sets itself.
    pub settings: SettingsPatch,
    /// Upper bounds on settings, for itself and everything below it.
    pub ceilings: Ceilings,
    /// Its routes, in the order they are asked.
    pub routes: Vec<RouteItem>,
    /// Its bindings.
    pub bindings: Vec<BindingItem>,
    /// Its extension entries.
    pub extensions: Vec<EntryItem>,
    /// Its secrets, by the name that entries and bindings select them by. They are inherited.
    pub secrets: BTreeMap<String, SecretRef>,
    /// Scopes that its Waits and aliases may read. Not inherited: each scope is given its own.
    pub read_scopes: Vec<ScopeName>,
    /// Scopes in which its runs may create Works. Not inherited either.
    pub write_scopes: Vec<ScopeName>,
    /// Its budgets. They are inherited, and below it a limit can only be lowered.
    pub budgets: Vec<Budget>,
}

impl ScopeConfig {
    /// A scope that declares nothing.
    pub const fn new(name: ScopeName, parent: Option<ScopeName>) -> Self {
        Self {
            name,
            parent,
            disabled: false,
            settings: SettingsPatch::NONE,
            ceilings: Ceilings::NONE,
            routes: Vec::new(),
            bindings: Vec::new(),
            extensions: Vec::new(),
            secrets: BTreeMap::new(),
            read_scopes: Vec::new(),
            write_scopes: Vec::new(),
            budgets: Vec::new(),
        }
    }
}

/// The settings a scope sets itself; the others are inherited. Bounds are in [`limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SettingsPatch {
    /// The longest an attempt's active segments may take together, in seconds.
    pub timeout_seconds: Option<u32>,
    /// The longest an attempt may go without a sign of life, in seconds. Zero turns it off.
    pub inactivity_seconds: Option<u32>,
    /// How many attempts may run in the scope at once.
    pub concurrency: Option<u32>,
    /// How many of a Work's newest attempts keep their content.
    pub kept_executions: Option<u32>,
    /// How many days finished Work keeps its content. Zero keeps it for ever.
    pub kept_finished_days: Option<u32>,
    /// The deepest a derived Event may stand in its chain.
    pub causal_max_depth: Option<u32>,
    /// The most derived Events one root may have in a UTC minute.
    pub causal_per_minute: Option<u32>,
    /// How many failures in a row automatic retry allows, the first included.
    pub failure_budget: Option<u32>,
    /// Whether a Work that used up its failure budget becomes failed for good.
    pub terminal_on_exhaustion: Option<bool>,
}

impl SettingsPatch {
    /// Nothing set.
    pub const NONE: Self = Self {
        timeout_seconds: None,
        inactivity_seconds: None,
        concurrency: None,
        kept_executions: None,
        kept_finished_days: None,
        causal_max_depth: None,
        causal_per_minute: None,
        failure_budget: None,
        terminal_on_exhaustion: None,
    };
}

/// Upper bounds on settings. They hold for the scope that declares them and everything below it, and a scope
/// below can only lower them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ceilings {
    /// The most `timeout_seconds` may be, in a setting or a binding.
    pub timeout_seconds: Option<u32>,
    /// The most `concurrency` may be.
    pub concurrency: Option<u32>,
    /// The most `causal_max_depth` may be.
    pub causal_max_depth: Option<u32>,
    /// The most `causal_per_minute` may be.
    pub causal_per_minute: Option<u32>,
    /// The most `failure_budget` may be.
    pub failure_budget: Option<u32>,
}

impl Ceilings {
    /// No bound.
    pub const NONE: Self = Self {
        timeout_seconds: None,
        concurrency: None,
        causal_max_depth: None,
        causal_per_minute: None,
        failure_budget: None,
    };
}

/// One line of a list that is inherited by name.
#[derive(Debug, Clone, PartialEq)]
pub enum Item<N, D> {
    /// Declares it, in place of the inherited one of that name.
    Define(D),
    /// Takes away the inherited one of that name.
    Disable(N),
}

/// A line of a scope's routes.
pub type RouteItem = Item<RouteName, RouteConfig>;
/// A line of a scope's bindings.
pub type BindingItem = Item<BindingName, BindingConfig>;
/// A line of a scope's extension entries.
pub type EntryItem = Item<EntryName, EntryConfig>;

/// A declared route.
#[derive(Debug, Clone, PartialEq)]
pub struct RouteConfig {
    /// Its name, unique within the scope.
    pub name: RouteName,
    /// The handler that is asked.
    pub handler: HandlerName,
    /// The binding that runs what it matches, looked up in whichever scope the route is evaluated.
    pub binding: Option<BindingName>,
    /// What happens to a match while the Work runs.
    pub active_policy: ActivePolicy,
    /// What takes its place.
    pub fallbacks: Fallbacks,
    /// The handler's own configuration.
    pub config: Value,
}

/// A declared binding.
#[derive(Debug, Clone, PartialEq)]
pub struct BindingConfig {
    /// Its name, unique within the scope.
    pub name: BindingName,
    /// The executor.
    pub executor: ExecutorName,
    /// The executor's own configuration.
    pub config: Value,
    /// The workspace it needs.
    pub resource: Option<Value>,
    /// The longest an attempt may take, in seconds; the scope's setting when none.
    pub timeout_seconds: Option<u32>,
    /// The longest an attempt may go without a sign of life, in seconds; the scope's setting when none. Zero turns it
    /// off.
    pub inactivity_seconds: Option<u32>,
    /// What it says itself about trying again after a failure.
    pub retry: Option<OwnRetry>,
    /// What it calls the account that its executor uses.
    pub credential: Option<CredentialName>,
    /// The environment variables its attempts get, each with the name of a secret.
    pub secrets: BTreeMap<String, String>,
}

/// A declared extension entry.
#[derive(Debug, Clone, PartialEq)]
pub struct EntryConfig {
    /// Its name, unique within the scope.
    pub name: EntryName,
    /// The registered type of the extension.
    pub entry_type: String,
    /// The secrets it may read.
    pub secret_names: Vec<String>,
    /// The extension's own configuration.
    pub config: Value,
}

/// Something wrong with a configuration. It names places and declared names, never a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where: `scopes[1].routes[0].binding`.
    pub path: String,
    /// What kind of problem it is.
    pub code: ProblemCode,
    /// What is wrong and what would be right, for people.
    pub message: String,
}

impl Problem {
    fn new(path: impl Into<String>, code: ProblemCode, message: impl Into<String>) -> Self {
        Self { path: path.into(), code, message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Kinds of problems that resolution finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProblemCode {
    /// Two things of one kind share a name.
    DuplicateName,
    /// The parent is not declared.
    UnknownParent,
    /// A scope is its own ancestor.
    ParentCycle,
    /// A scope has too many ancestors.
    TooDeep,
    /// A list is too long.
    TooMany,
    /// Something is disabled that is not inherited.
    NothingToDisable,
    /// A route names a binding that its scope does not have.
    UnknownBinding,
    /// A secret is selected that the scope does not have.
    UnknownSecret,
    /// `read_scopes` or `write_scopes` names a scope that is not declared.
    UnknownScope,
    /// A number is outside its bounds.
    OutOfBounds,
    /// A setting is above a ceiling.
    AboveCeiling,
    /// A ceiling is above the one it inherits.
    CeilingRaised,
    /// A name that is free text elsewhere does not have its form.
    InvalidName,
    /// A secret is not a reference to one.
    NotASecretRef,
}

impl ProblemCode {
    /// The stable word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DuplicateName => "duplicate_name",
            Self::UnknownParent => "unknown_parent",
            Self::ParentCycle => "parent_cycle",
            Self::TooDeep => "too_deep",
            Self::TooMany => "too_many",
            Self::NothingToDisable => "nothing_to_disable",
            Self::UnknownBinding => "unknown_binding",
            Self::UnknownSecret => "unknown_secret",
            Self::UnknownScope => "unknown_scope",
            Self::OutOfBounds => "out_of_bounds",
            Self::AboveCeiling => "above_ceiling",
            Self::CeilingRaised => "ceiling_raised",
            Self::InvalidName => "invalid_name",
            Self::NotASecretRef => "not_a_secret_ref",
        }
    }
}
