//! Inheritance: from what each scope declares to what holds in it.
//!
//! Scopes are resolved parents first, each from its parent's result. A route keeps the slot in which its name
//! first appeared, so that a descendant replaces a rule without changing the order in which rules are asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::limits::{self, BINDINGS_MAX, BOUNDED, ENTRIES_MAX, ROUTES_MAX, SCOPES_MAX, SECRETS_MAX};
use super::lineage::{Tree, tree};
use super::{
    BindingConfig, BindingItem, Ceilings, Configuration, EntryConfig, EntryItem, Item, Problem, ProblemCode,
    RouteItem, ScopeConfig, SettingsPatch, budget, secret,
};
use crate::budget::Budget;
use crate::scope::{Binding, EffectiveScope, Entry, Route, SecretRef, Settings};
use crate::text::{BindingName, EntryName, ScopeName};

/// Resolves a configuration: one effective scope for each declared one.
///
/// # Errors
/// Every [`Problem`] found, in the order of their places. It is never empty.
pub fn resolve(
    configuration: &Configuration,
) -> Result<BTreeMap<ScopeName, Arc<EffectiveScope>>, Vec<Problem>> {
    let mut problems = Vec::new();
    limits::count("scopes".to_owned(), configuration.scopes.len(), SCOPES_MAX, &mut problems);
    let tree = tree(configuration, &mut problems);
    let mut layers: BTreeMap<usize, Layer> = BTreeMap::new();
    for (index, scope) in configuration.scopes.iter().enumerate() {
        check_alone(index, scope, &tree, &mut problems);
    }
    for &index in &tree.order {
        let scope = &configuration.scopes[index];
        let parent = tree.parents[index].and_then(|parent| layers.get(&parent));
        let layer = Layer::below(parent, index, scope, &mut problems);
        layers.insert(index, layer);
    }
    let scopes = layers
        .into_iter()
        .map(|(index, layer)| {
            let scope = layer.bind(index, &configuration.scopes[index], &mut problems);
            (scope.name.clone(), Arc::new(scope))
        })
        .collect();
    if problems.is_empty() {
        Ok(scopes)
    } else {
        problems.sort_by_cached_key(|problem| (reading_order(&problem.path), problem.code));
        Err(problems)
    }
}

/// A path that sorts as one reads: `scopes[9]` before `scopes[10]`.
fn reading_order(path: &str) -> Vec<(usize, String)> {
    path.split(['[', ']', '.'])
        .map(|part| part.parse().map_or_else(|_word| (0, part.to_owned()), |index| (index, String::new())))
        .collect()
}

/// Checks what needs no other scope's content.
fn check_alone(index: usize, scope: &ScopeConfig, tree: &Tree, problems: &mut Vec<Problem>) {
    let path = format!("scopes[{index}]");
    limits::check(&path, scope, problems);
    secret::check_declared(&format!("{path}.secrets"), &scope.secrets, problems);
    for (at, item) in scope.bindings.iter().enumerate() {
        if let Item::Define(binding) = item {
            secret::check_variables(&format!("{path}.bindings[{at}].secrets"), &binding.secrets, problems);
        }
    }
    for (list, names) in [("read_scopes", &scope.read_scopes), ("write_scopes", &scope.write_scopes)] {
        for (at, name) in names.iter().enumerate() {
            if !tree.by_name.contains_key(name) {
                let message = "no scope of that name is declared";
                let at = format!("{path}.{list}[{at}]");
                problems.push(Problem::new(at, ProblemCode::UnknownScope, message));
            }
        }
    }
}

/// A number that a binding may say itself, with the ceiling that it obeys.
#[derive(Clone, Copy)]
struct OwnBound {
    key: &'static str,
    setting: &'static str,
    what: &'static str,
    own: fn(&BindingConfig) -> Option<u32>,
    ceiling: fn(&Ceilings) -> Option<u32>,
}

const TIMEOUT: OwnBound = OwnBound {
    key: "timeout_seconds",
    setting: "timeout_seconds",
    what: "a higher timeout",
    own: |binding| binding.timeout_seconds,
    ceiling: |ceilings| ceilings.timeout_seconds,
};
const ATTEMPTS: OwnBound = OwnBound {
    key: "retry.attempts",
    setting: "failure_budget",
    what: "more attempts",
    own: |binding| binding.retry.map(|retry| retry.attempts),
    ceiling: |ceilings| ceilings.failure_budget,
};

/// Something inherited by name, with where it was declared.
#[derive(Clone)]
struct Held<D> {
    declared: D,
    declared_in: ScopeName,
    /// Its place in that scope's list.
    index: usize,
}

/// What holds in a scope before names are bound.
#[derive(Clone)]
struct Layer {
    lineage: Vec<ScopeName>,
    disabled: bool,
    settings: Settings,
    ceilings: Ceilings,
    routes: Vec<Held<super::RouteConfig>>,
    bindings: BTreeMap<BindingName, Held<BindingConfig>>,
    entries: BTreeMap<EntryName, Held<EntryConfig>>,
    secrets: BTreeMap<String, SecretRef>,
    budgets: Vec<Budget>,
}

impl Layer {
    /// What holds in a root scope that declares nothing.
    fn above_every_root() -> Self {
        Self {
            lineage: Vec::new(),
            disabled: false,
            settings: Settings::default(),
            ceilings: Ceilings::NONE,
            routes: Vec::new(),
            bindings: BTreeMap::new(),
            entries: BTreeMap::new(),
            secrets: BTreeMap::new(),
            budgets: Vec::new(),
        }
    }

    /// What holds in `scope`, given what holds in its parent.
    fn below(parent: Option<&Self>, index: usize, scope: &ScopeConfig, problems: &mut Vec<Problem>) -> Self {
        let mut layer = parent.cloned().unwrap_or_else(Self::above_every_root);
        layer.lineage.push(scope.name.clone());
        layer.disabled |= scope.disabled;
        apply_settings(&mut layer.settings, &scope.settings);
        let path = format!("scopes[{index}]");
        layer.lower_ceilings(&path, scope, problems);
        budget::apply(&mut layer.budgets, &scope.budgets, &format!("{path}.budgets"), problems);
        layer.secrets.extend(scope.secrets.iter().map(|(name, secret)| (name.clone(), secret.clone())));
        let routes = format!("{path}.routes");
        apply_routes(&mut layer.routes, &scope.routes, &scope.name, &routes, problems);
        let bindings = scope.bindings.iter().map(named_binding);
        apply_named(&mut layer.bindings, bindings, &scope.name, &format!("{path}.bindings"), problems);
        let entries = scope.extensions.iter().map(named_entry);
        apply_named(&mut layer.entries, entries, &scope.name, &format!("{path}.extensions"), problems);
        limits::count(routes, layer.routes.len(), ROUTES_MAX, problems);
        limits::count(format!("{path}.bindings"), layer.bindings.len(), BINDINGS_MAX, problems);
        limits::count(format!("{path}.extensions"), layer.entries.len(), ENTRIES_MAX, problems);
        limits::count(format!("{path}.secrets"), layer.secrets.len(), SECRETS_MAX, problems);
        layer
    }

    /// Takes over the scope's ceilings and compares settings with them. What is too high is reported where it
    /// begins to be: at the scope that declares the setting, or the ceiling.
    fn lower_ceilings(&mut self, path: &str, scope: &ScopeConfig, problems: &mut Vec<Problem>) {
        for setting in BOUNDED {
            let own = (setting.ceiling)(&scope.ceilings);
            let effective = (setting.ceiling_mut)(&mut self.ceilings);
            if let (Some(own), Some(inherited)) = (own, *effective)
                && own > inherited
            {
                let message = format!("must not be above the inherited ceiling of {inherited}");
                let at = format!("{path}.ceilings.{}", setting.name);
                problems.push(Problem::new(at, ProblemCode::CeilingRaised, message));
            }
            *effective = own.into_iter().chain(*effective).min();
            let Some(ceiling) = *effective else { continue };
            if (setting.effective)(&self.settings) <= ceiling {
                continue;
            }
            let name = setting.name;
            if (setting.declared)(&scope.settings).is_some() {
                let message = format!("must not be above the ceiling of {ceiling}");
                let at = format!("{path}.settings.{name}");
                problems.push(Problem::new(at, ProblemCode::AboveCeiling, message));
            } else if own.is_some() {
                let message = format!("the scope's {name} is above this ceiling; set `settings.{name}` too");
                let at = format!("{path}.ceilings.{name}");
                problems.push(Problem::new(at, ProblemCode::AboveCeiling, message));
            }
        }
    }

    /// Binds names: what routes run and which secrets are selected.
    fn bind(&self, index: usize, scope: &ScopeConfig, problems: &mut Vec<Problem>) -> EffectiveScope {
        let binder = Binder { layer: self, path: format!("scopes[{index}]"), scope };
        EffectiveScope {
            name: scope.name.clone(),
            lineage: self.lineage.clone(),
            disabled: self.disabled,
            settings: self.settings.clone(),
            routes: binder.routes(problems),
            bindings: binder.bindings(problems),
            extensions: binder.entries(problems),
            read_scopes: unique(&scope.read_scopes),
            write_scopes: unique(&scope.write_scopes),
            budgets: self.budgets.clone(),
        }
    }
}

/// Binds the names of one scope.
struct Binder<'a> {
    layer: &'a Layer,
    path: String,
    scope: &'a ScopeConfig,
}

impl Binder<'_> {
    /// The place to report something at: the declaration, when it is this scope's, else the scope.
    fn place<D>(&self, held: &Held<D>, list: &str) -> String {
        if self.is_own(held) { format!("{}.{list}[{}]", self.path, held.index) } else { self.path.clone() }
    }

    fn is_own<D>(&self, held: &Held<D>) -> bool {
        held.declared_in == self.scope.name
    }

    /// Whether this scope is the one that takes an inherited binding away.
    fn disables(&self, binding: &BindingName) -> bool {
        let disables = |item: &BindingItem| matches!(item, Item::Disable(name) if name == binding);
        self.scope.bindings.iter().any(disables)
    }

    fn routes(&self, problems: &mut Vec<Problem>) -> Vec<Route> {
        let mut routes = Vec::with_capacity(self.layer.routes.len());
        for held in &self.layer.routes {
            let route = &held.declared;
            let missing = route.binding.as_ref().filter(|name| !self.layer.bindings.contains_key(*name));
            if missing.is_some_and(|binding| self.is_own(held) || self.disables(binding)) {
                let (name, scope) = (&route.name, &self.scope.name);
                let (at, message) = if self.is_own(held) {
                    let at = format!("{}.binding", self.place(held, "routes"));
                    (at, format!("scope `{scope}` has no binding of the name that route `{name}` runs"))
                } else {
                    let from = &held.declared_in;
                    let message = format!(
                        "scope `{scope}` has no binding of the name that route `{name}`, inherited from \
                         `{from}`, runs; declare the binding or disable the route"
                    );
                    (self.place(held, "routes"), message)
                };
                problems.push(Problem::new(at, ProblemCode::UnknownBinding, message));
            }
            routes.push(Route {
                name: route.name.clone(),
                handler: route.handler.clone(),
                binding: route.binding.clone(),
                active_policy: route.active_policy,
                fallbacks: route.fallbacks,
                config: route.config.clone(),
                declared_in: held.declared_in.clone(),
            });
        }
        routes
    }

    fn bindings(&self, problems: &mut Vec<Problem>) -> BTreeMap<BindingName, Binding> {
        let mut bindings = BTreeMap::new();
        for (name, held) in &self.layer.bindings {
            let binding = &held.declared;
            let place = self.place(held, "bindings");
            self.check_ceiling(held, &place, TIMEOUT, problems);
            self.check_ceiling(held, &place, ATTEMPTS, problems);
            let mut secrets = BTreeMap::new();
            for (at, (variable, secret_name)) in binding.secrets.iter().enumerate() {
                if let Some(reference) = self.layer.secrets.get(secret_name) {
                    secrets.insert(variable.clone(), reference.clone());
                } else if self.is_own(held) {
                    let at = secret::place(&format!("{place}.secrets"), at, variable);
                    let message = format!("binding `{name}` selects a secret that its scope does not have");
                    problems.push(Problem::new(at, ProblemCode::UnknownSecret, message));
                }
            }
            let binding = Binding {
                name: name.clone(),
                executor: binding.executor.clone(),
                config: binding.config.clone(),
                resource: binding.resource.clone(),
                timeout_seconds: binding.timeout_seconds,
                inactivity_seconds: match binding.inactivity_seconds {
                    Some(own) => (own > 0).then_some(own),
                    None => self.layer.settings.inactivity_seconds,
                },
                retry: binding.retry,
                credential: binding.credential.clone(),
                secrets,
                declared_in: held.declared_in.clone(),
            };
            bindings.insert(name.clone(), binding);
        }
        bindings
    }

    /// What a binding says itself obeys the ceiling of every scope it is inherited into, and is reported where it
    /// first does not.
    fn check_ceiling(
        &self,
        held: &Held<BindingConfig>,
        place: &str,
        bound: OwnBound,
        problems: &mut Vec<Problem>,
    ) {
        let ceiling = (bound.ceiling)(&self.layer.ceilings);
        let (Some(own), Some(ceiling)) = ((bound.own)(&held.declared), ceiling) else { return };
        let begins_here = self.is_own(held) || (bound.ceiling)(&self.scope.ceilings).is_some();
        if own > ceiling && begins_here {
            let name = &held.declared.name;
            let (at, message) = if self.is_own(held) {
                (format!("{place}.{}", bound.key), format!("must not be above the ceiling of {ceiling}"))
            } else {
                let what = bound.what;
                let message =
                    format!("the inherited binding `{name}` has {what}; declare it again or disable it");
                (format!("{}.ceilings.{}", self.path, bound.setting), message)
            };
            problems.push(Problem::new(at, ProblemCode::AboveCeiling, message));
        }
    }

    fn entries(&self, problems: &mut Vec<Problem>) -> BTreeMap<EntryName, Entry> {
        let mut entries = BTreeMap::new();
        for (name, held) in &self.layer.entries {
            let place = self.place(held, "extensions");
            let mut secrets = BTreeMap::new();
            for (at, secret_name) in held.declared.secret_names.iter().enumerate() {
                if let Some(reference) = self.layer.secrets.get(secret_name) {
                    secrets.insert(secret_name.clone(), reference.clone());
                } else if self.is_own(held) {
                    let at = format!("{place}.secret_names[{at}]");
                    let message = format!("entry `{name}` selects a secret that its scope does not have");
                    problems.push(Problem::new(at, ProblemCode::UnknownSecret, message));
                }
            }
            let entry = Entry {
                name: name.clone(),
                entry_type: held.declared.entry_type.clone(),
                secrets,
                config: held.declared.config.clone(),
                declared_in: held.declared_in.clone(),
            };
            entries.insert(name.clone(), entry);
        }
        entries
    }
}

fn apply_settings(settings: &mut Settings, patch: &SettingsPatch) {
    let inherit = |own: Option<u32>, inherited: &mut u32| *inherited = own.unwrap_or(*inherited);
    inherit(patch.timeout_seconds, &mut settings.timeout_seconds);
    inherit(patch.concurrency, &mut settings.concurrency);
    inherit(patch.kept_executions, &mut settings.kept_executions);
    inherit(patch.causal_max_depth, &mut settings.causal_max_depth);
    inherit(patch.causal_per_minute, &mut settings.causal_per_minute);
    inherit(patch.failure_budget, &mut settings.failure_budget);
    if let Some(seconds) = patch.inactivity_seconds {
        settings.inactivity_seconds = (seconds > 0).then_some(seconds);
    }
    if let Some(days) = patch.kept_finished_days {
        settings.kept_finished_days = (days > 0).then_some(days);
    }
    if let Some(terminal) = patch.terminal_on_exhaustion {
        settings.terminal_on_exhaustion = terminal;
    }
}

// Spec: scope_route_inheritance
fn apply_routes(
    routes: &mut Vec<Held<super::RouteConfig>>,
    items: &[RouteItem],
    scope: &ScopeName,
    path: &str,
    problems: &mut Vec<Problem>,
) {
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let name = match item {
            Item::Define(route) => &route.name,
            Item::Disable(name) => name,
        };
        if !seen.insert(name) {
            problems.push(declared_twice(path, index));
            continue;
        }
        let slot = routes.iter().position(|held| held.declared.name == *name);
        match (item, slot) {
            (Item::Define(route), slot) => {
                let held = Held { declared: route.clone(), declared_in: scope.clone(), index };
                match slot {
                    Some(slot) => routes[slot] = held,
                    None => routes.push(held),
                }
            }
            (Item::Disable(_name), Some(slot)) => drop(routes.remove(slot)),
            (Item::Disable(_name), None) => problems.push(nothing_to_disable(path, index)),
        }
    }
}

fn named_binding(item: &BindingItem) -> (&BindingName, Option<&BindingConfig>) {
    match item {
        Item::Define(binding) => (&binding.name, Some(binding)),
        Item::Disable(name) => (name, None),
    }
}

fn named_entry(item: &EntryItem) -> (&EntryName, Option<&EntryConfig>) {
    match item {
        Item::Define(entry) => (&entry.name, Some(entry)),
        Item::Disable(name) => (name, None),
    }
}

/// Applies items whose order means nothing. An item without a definition disables.
fn apply_named<'a, N: Ord + Clone + 'a, D: Clone + 'a>(
    held: &mut BTreeMap<N, Held<D>>,
    items: impl Iterator<Item = (&'a N, Option<&'a D>)>,
    scope: &ScopeName,
    path: &str,
    problems: &mut Vec<Problem>,
) {
    let mut seen = BTreeSet::new();
    for (index, (name, definition)) in items.enumerate() {
        if !seen.insert(name) {
            problems.push(declared_twice(path, index));
            continue;
        }
        match definition {
            Some(declared) => {
                let own = Held { declared: declared.clone(), declared_in: scope.clone(), index };
                held.insert(name.clone(), own);
            }
            None if held.remove(name).is_none() => problems.push(nothing_to_disable(path, index)),
            None => {}
        }
    }
}

fn declared_twice(path: &str, index: usize) -> Problem {
    let message = "an earlier one in this list has the same name; a name is unique within its scope";
    Problem::new(format!("{path}[{index}].name"), ProblemCode::DuplicateName, message)
}

fn nothing_to_disable(path: &str, index: usize) -> Problem {
    let message = "nothing of that name is inherited here, so there is nothing to disable";
    Problem::new(format!("{path}[{index}].name"), ProblemCode::NothingToDisable, message)
}

fn unique(names: &[ScopeName]) -> Vec<ScopeName> {
    let mut seen = BTreeSet::new();
    names.iter().filter(|name| seen.insert(*name)).cloned().collect()
}
