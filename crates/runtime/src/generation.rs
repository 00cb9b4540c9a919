//! Configuration generations: the one in force, prepared, and older ones that attempts are pinned to.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use domain::budget::{Budget, Per};
use domain::causal::Bounds;
use domain::id::Generation;
use domain::intent::Controls;
use domain::retention::Keeping;
use domain::retry::Policy;
use domain::scope::Settings;
use domain::scope::{Binding, EffectiveScope, Route};
use domain::store::{GenerationRow, Store, StoreError, Tx};
use domain::text::{BindingName, EntryName, ExecutorName, ScopeName};
use extension::{EntryView, IngressEntry, PreparedRoute, Recurrence, Recurrences};
use thiserror::Error;

use crate::registry::Registry;

/// Every scope of a configuration, resolved.
pub type Scopes = BTreeMap<ScopeName, Arc<EffectiveScope>>;

/// Turns the stored text of a generation into its scopes. It was validated when it was applied.
pub type ReadScopes = Arc<dyn Fn(&str) -> Result<Scopes, String> + Send + Sync>;

/// A route with its handler prepared.
#[derive(Debug)]
pub struct ActiveRoute {
    /// The route.
    pub route: Route,
    /// Its handler.
    pub prepared: Box<dyn PreparedRoute>,
}

/// A scope with its handlers prepared.
#[derive(Debug)]
pub struct ActiveScope {
    /// The scope.
    pub scope: Arc<EffectiveScope>,
    /// Its routes, in the order they are asked.
    pub routes: Vec<ActiveRoute>,
    /// What recurs in it, for each entry that it declares itself.
    pub recurrences: Vec<Arc<ActiveRecurrences>>,
}

/// An entry whose parts recur.
#[derive(Debug)]
pub struct ActiveRecurrences {
    /// The entry.
    pub entry: EntryName,
    /// Who is asked about its timers.
    pub kind: Arc<dyn Recurrence>,
    /// What it declares.
    pub declared: Recurrences,
}

/// A configuration that decides.
#[derive(Debug)]
pub struct ActiveGeneration {
    /// Its number.
    pub number: Generation,
    /// Its scopes.
    pub scopes: BTreeMap<ScopeName, ActiveScope>,
    /// What each executor can do to an attempt that runs.
    pub controls: BTreeMap<ExecutorName, Controls>,
    /// Every budget over all scopes, whichever scope declares it: each turn of any scope counts in it.
    overall: Vec<Budget>,
    /// How many Events about budgets one turn may lead to at most.
    crossings_max: usize,
}

/// Why a configuration was not applied. The one in force stays.
#[derive(Debug, Error)]
pub enum ApplyError {
    /// A route's handler is missing or refuses its configuration.
    #[error("route `{route}` of scope `{scope}`: {reason}")]
    Route {
        /// The scope.
        scope: ScopeName,
        /// The route.
        route: String,
        /// Why.
        reason: String,
    },
    /// An entry's extension refuses its configuration.
    #[error("entry `{entry}` of scope `{scope}`: {reason}")]
    Entry {
        /// The scope.
        scope: ScopeName,
        /// The entry.
        entry: EntryName,
        /// Why.
        reason: String,
    },
    /// The text does not resolve.
    #[error("the configuration does not resolve: {0}")]
    Text(String),
    /// Another apply was faster.
    #[error("another configuration was applied meanwhile; look at it and apply again")]
    Conflict,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ActiveGeneration {
    /// Prepares every route.
    ///
    /// # Errors
    /// [`ApplyError::Route`] for the first that cannot be.
    pub fn prepare(number: Generation, scopes: Scopes, registry: &Registry) -> Result<Self, ApplyError> {
        let mut active = BTreeMap::new();
        for (name, scope) in scopes {
            let entries = declared(&scope);
            let recurrences = recurrences(&scope, &entries, registry)?;
            let mut routes = Vec::with_capacity(scope.routes.len());
            for route in &scope.routes {
                let problem = |reason: String| ApplyError::Route {
                    scope: name.clone(),
                    route: route.name.to_string(),
                    reason,
                };
                let handler = registry
                    .handler(&route.handler)
                    .ok_or_else(|| problem(format!("no handler is called `{}`", route.handler)))?;
                let prepared = handler
                    .prepare_in(&route.config, &entries)
                    .map_err(|problems| problem(in_words(&problems)))?;
                can(&scope, route, registry).map_err(problem)?;
                routes.push(ActiveRoute { route: route.clone(), prepared });
            }
            active.insert(name, ActiveScope { scope, routes, recurrences });
        }
        let budgets = active.values().flat_map(|active| active.scope.budgets.iter());
        let mut overall: Vec<Budget> = Vec::new();
        for budget in budgets.filter(|budget| budget.per == Per::All) {
            if !overall.contains(budget) {
                overall.push(budget.clone());
            }
        }
        let own = active.values().map(|active| active.scope.budgets.len()).max().unwrap_or(0);
        let crossings_max = 2 * (own + overall.len());
        let controls =
            registry.executors().map(|executor| (executor.name(), executor.capabilities().controls));
        Ok(Self { number, scopes: active, controls: controls.collect(), overall, crossings_max })
    }

    /// What an executor can do to an attempt that runs; nothing, when it is not there.
    pub fn controls(&self, executor: &ExecutorName) -> Controls {
        self.controls.get(executor).copied().unwrap_or(Controls::NONE)
    }

    /// Every budget in which a turn of a scope counts.
    pub(crate) fn charged(&self, scope: &ScopeName) -> Vec<&Budget> {
        let own = self.scope(scope).map(|active| active.scope.budgets.as_slice()).unwrap_or_default();
        own.iter().filter(|budget| budget.per != Per::All).chain(&self.overall).collect()
    }

    /// How many Events about budgets one turn may lead to at most; none where nothing has a budget.
    pub(crate) const fn crossings_max(&self) -> usize {
        self.crossings_max
    }

    /// How far a chain may go that begins in a scope.
    pub fn bounds(&self, scope: &ScopeName) -> Bounds {
        self.scope(scope)
            .map_or_else(|| Bounds::of(&Settings::default()), |it| Bounds::of(&it.scope.settings))
    }

    /// How a scope treats failures of attempts by a binding. What is no longer configured has the usual settings.
    pub fn retry_policy(&self, scope: &ScopeName, binding: &BindingName) -> Policy {
        let usual = Settings::default();
        let scope = self.scope(scope).map(|it| &it.scope);
        let settings = scope.map_or(&usual, |scope| &scope.settings);
        let own = scope.and_then(|scope| scope.bindings.get(binding)).and_then(|binding| binding.retry);
        Policy { budget: settings.failure_budget, terminal: settings.terminal_on_exhaustion, own }
    }

    /// Whether any handler wants to see the Work that an Event is about.
    pub(crate) fn shows_work(&self) -> bool {
        self.scopes.values().flat_map(|scope| &scope.routes).any(|route| !route.prepared.ignores_work())
    }

    /// What each scope keeps of runs.
    pub(crate) fn kept(&self) -> BTreeMap<ScopeName, Keeping> {
        let kept =
            self.scopes.iter().map(|(name, active)| (name.clone(), Keeping::from(&active.scope.settings)));
        kept.collect()
    }

    /// The scope of that name.
    pub fn scope(&self, name: &ScopeName) -> Option<&ActiveScope> {
        self.scopes.get(name)
    }
}

fn in_words(problems: &[extension::ConfigProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The entries that a scope declares itself. One that it inherits is its ancestor's, and delivers there.
fn declared(scope: &EffectiveScope) -> Vec<EntryView> {
    let own = scope.extensions.values().filter(|entry| entry.declared_in == scope.name);
    own.map(|entry| EntryView {
        entry_type: entry.entry_type.clone(),
        entry: IngressEntry {
            name: entry.name.clone(),
            scope: scope.name.clone(),
            secret_names: entry.secrets.keys().cloned().collect(),
            config: entry.config.clone(),
        },
    })
    .collect()
}

fn recurrences(
    scope: &EffectiveScope,
    entries: &[EntryView],
    registry: &Registry,
) -> Result<Vec<Arc<ActiveRecurrences>>, ApplyError> {
    let mut recurrences = Vec::new();
    for EntryView { entry_type, entry } in entries {
        let Some(kind) = registry.recurrence(entry_type) else { continue };
        let declared = kind.prepare(entry).map_err(|problems| ApplyError::Entry {
            scope: scope.name.clone(),
            entry: entry.name.clone(),
            reason: in_words(&problems),
        })?;
        recurrences.push(Arc::new(ActiveRecurrences {
            entry: entry.name.clone(),
            kind: Arc::clone(kind),
            declared,
        }));
    }
    Ok(recurrences)
}

/// Whether what a route orders of a run can be carried out by the executor that its binding runs, or has a fallback.
// Spec: unsupported_policy_explicit_fallback
fn can(scope: &EffectiveScope, route: &Route, registry: &Registry) -> Result<(), String> {
    let Some(order) = route.active_policy.order().filter(|_order| route.fallbacks.unsupported.is_none())
    else {
        return Ok(());
    };
    let binding = route.binding.as_ref().and_then(|binding| scope.bindings.get(binding));
    let executor = binding.and_then(|binding| registry.executor(&binding.executor));
    if executor.is_some_and(|executor| executor.capabilities().controls.allow(order)) {
        return Ok(());
    }
    Err(format!("the executor of its binding cannot {} a run; set a `fallback`", order.as_str()))
}

/// The generations that this process knows.
pub struct Generations {
    registry: Registry,
    read: ReadScopes,
    active: RwLock<Arc<ActiveGeneration>>,
    pinned: Mutex<BTreeMap<Generation, Arc<Scopes>>>,
}

impl fmt::Debug for Generations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generations").field("active", &self.active().number).finish_non_exhaustive()
    }
}

/// How many older generations are kept parsed.
const PINNED_MAX: usize = 16;

impl Generations {
    pub(crate) fn new(registry: Registry, read: ReadScopes) -> Self {
        let none = ActiveGeneration {
            number: Generation::from_number(0),
            scopes: BTreeMap::new(),
            controls: BTreeMap::new(),
            overall: Vec::new(),
            crossings_max: 0,
        };
        Self { registry, read, active: RwLock::new(Arc::new(none)), pinned: Mutex::default() }
    }

    /// The generation in force. Number zero, without scopes, before the first apply.
    pub fn active(&self) -> Arc<ActiveGeneration> {
        Arc::clone(&self.active.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts the newest stored generation in force.
    ///
    /// # Errors
    /// [`ApplyError`] when it can no longer be prepared, for instance because an extension is gone.
    pub(crate) async fn load(&self, store: &Store) -> Result<(), ApplyError> {
        let row = store.read("config", |tx| tx.current_generation()).await?;
        if let Some(row) = row
            && row.number != self.active().number
        {
            let scopes = (self.read)(&row.body).map_err(ApplyError::Text)?;
            self.activate(ActiveGeneration::prepare(row.number, scopes, &self.registry)?);
        }
        Ok(())
    }

    /// Whether another process has applied a generation that is not in force here yet.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(crate) fn is_behind(tx: &mut dyn Tx, active: &ActiveGeneration) -> Result<bool, StoreError> {
        let newest = tx.current_generation_number()?;
        Ok(newest.is_some_and(|newest| newest > active.number))
    }

    fn activate(&self, generation: ActiveGeneration) {
        let mut active = self.active.write().unwrap_or_else(PoisonError::into_inner);
        if generation.number > active.number {
            *active = Arc::new(generation);
        }
    }

    /// Applies a text as the next generation: prepared first, then stored, then in force.
    ///
    /// # Errors
    /// [`ApplyError`]; then nothing has changed.
    pub(crate) async fn apply(
        &self,
        store: &Store,
        body: String,
        digest: String,
    ) -> Result<Generation, ApplyError> {
        let scopes = (self.read)(&body).map_err(ApplyError::Text)?;
        let number = self.active().number.next();
        let generation = ActiveGeneration::prepare(number, scopes, &self.registry)?;
        store
            .transact("apply", move |tx| {
                let current = tx.current_generation_number()?.unwrap_or(Generation::from_number(0));
                if current.next() != number {
                    return Err(ApplyError::Conflict);
                }
                let row = GenerationRow {
                    number,
                    body: body.clone(),
                    digest: digest.clone(),
                    applied_at: tx.now(),
                };
                Ok(tx.insert_generation(&row)?)
            })
            .await?;
        self.activate(generation);
        Ok(number)
    }

    /// The binding that an attempt is pinned to.
    ///
    /// # Errors
    /// [`StoreError`] when the store fails; `None` when the generation no longer has it or cannot be read.
    pub async fn binding(
        &self,
        store: &Store,
        number: Generation,
        scope: &ScopeName,
        binding: &BindingName,
    ) -> Result<Option<Binding>, StoreError> {
        let find = |scopes: &EffectiveScope| scopes.bindings.get(binding).cloned();
        let active = self.active();
        if active.number == number {
            return Ok(active.scope(scope).and_then(|active| find(&active.scope)));
        }
        let known = self.pinned.lock().unwrap_or_else(PoisonError::into_inner).get(&number).cloned();
        if let Some(scopes) = known {
            return Ok(scopes.get(scope).and_then(|scope| find(scope)));
        }
        let row = store.read("config", move |tx| tx.generation(number)).await?;
        let Some(scopes) = row.and_then(|row| (self.read)(&row.body).ok()) else {
            return Ok(None);
        };
        let scopes = Arc::new(scopes);
        let mut pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        if pinned.len() >= PINNED_MAX {
            pinned.pop_first();
        }
        pinned.insert(number, Arc::clone(&scopes));
        Ok(scopes.get(scope).and_then(|scope| find(scope)))
    }
}
