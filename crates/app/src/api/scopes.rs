//! The scopes of the configuration in force: their tree, and what holds in each, in words.
//!
//! What holds is read from the generation that decides; where it comes from, from the text that it was made of.
//! Handlers, executors and kinds of entries say themselves what they do. Secrets are names here, never values.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::scope::{Binding, EffectiveScope, Entry};
use domain::text::ScopeName;
use extension::{IngressEntry, Recurrences, Resource};
use runtime::ActiveGeneration;
use runtime::generation::{ActiveRoute, ActiveScope};
use serde::Serialize;
use serde_json::{Map, Value};

use super::budgets;
use super::failure::Failure;
use super::pause::{self, Pauses};
use super::query::{self, Cursor, Query};
use super::server::{Answer, Asked, json, read};
use super::wire::{
    BindingBody, EntryBody, OwnRetryBody, Page, RemovedBody, RouteBody, ScopeBody, ScopeLineBody,
    SecretNameBody, SettingBody, VariableBody,
};
use crate::config::{Model, Registered, model};
use crate::daemon::Daemon;

/// Lists scopes with everything that holds in each.
pub(crate) async fn list(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    Ok(json(&find(daemon, &asked.query).await?))
}

/// The scopes that a query asks for, in the order of the tree.
///
/// # Errors
/// `bad_request` for a query that is none, `unknown_scope` for a name that no scope has, and what reading the store
/// answers.
pub(crate) async fn find(daemon: &Daemon, query: &Query) -> Result<Page<ScopeBody>, Failure> {
    if let Some(name) = query.text("name") {
        return Ok(Page { items: vec![show(daemon, name).await?], next: None });
    }
    let mut page = page(daemon, query).await?;
    counted(daemon, &mut page.items).await?;
    Ok(page)
}

async fn page(daemon: &Daemon, query: &Query) -> Result<Page<ScopeBody>, Failure> {
    let described = Described::of(daemon).await?;
    let limit = query.limit()? as usize;
    let from = query.cursor(Cursor::Scopes)?.map_or(0, |from| usize::try_from(from).unwrap_or(usize::MAX));
    let tree = tree(&described.model);
    let mut items = Vec::new();
    for line in tree.iter().skip(from).take(limit) {
        items.extend(described.scope(&line.name));
    }
    let end = from.saturating_add(limit);
    let next =
        (end < tree.len()).then(|| query::cursor(Cursor::Scopes, i64::try_from(end).unwrap_or(i64::MAX)));
    Ok(Page { items, next })
}

/// One scope with everything that holds in it.
///
/// # Errors
/// `not_found` when the configuration in force has none of that name, and what reading the store answers.
pub(crate) async fn show(daemon: &Daemon, name: &str) -> Result<ScopeBody, Failure> {
    let described = Described::of(daemon).await?.scope(name);
    let mut scope = described
        .ok_or_else(|| Failure::not_found("the configuration in force has no scope of that name"))?;
    counted(daemon, std::slice::from_mut(&mut scope)).await?;
    Ok(scope)
}

/// Adds how the budgets of some scopes stand.
async fn counted(daemon: &Daemon, bodies: &mut [ScopeBody]) -> Result<(), Failure> {
    let active = daemon.runtime().generations().active();
    let scope = |body: &ScopeBody| active.scope(&body.name.parse().ok()?).map(|it| Arc::clone(&it.scope));
    let scopes: Vec<Option<Arc<EffectiveScope>>> = bodies.iter().map(scope).collect();
    if scopes.iter().flatten().all(|scope| scope.budgets.is_empty()) {
        return Ok(());
    }
    let standing = read(daemon, "budgets", move |tx| {
        let mut standing = Vec::with_capacity(scopes.len());
        for scope in scopes {
            standing.push(match scope {
                Some(scope) => budgets::of_scope(tx, &scope.budgets, &scope.name)?,
                None => Vec::new(),
            });
        }
        Ok(standing)
    })
    .await?;
    for (body, budgets) in bodies.iter_mut().zip(standing) {
        body.budgets = budgets;
    }
    Ok(())
}

/// The scopes of a configuration, each below the one that it inherits from.
pub(crate) fn tree(model: &Model) -> Vec<ScopeLineBody> {
    let mut children: BTreeMap<Option<&str>, Vec<&model::Scope>> = BTreeMap::new();
    // What is pushed last is taken first.
    for scope in model.scopes.iter().rev() {
        children.entry(scope.parent.as_deref()).or_default().push(scope);
    }
    let mut lines = Vec::with_capacity(model.scopes.len());
    let mut open: Vec<(&model::Scope, usize, Option<&str>)> = Vec::new();
    open.extend(children.remove(&None).into_iter().flatten().map(|root| (root, 0, None)));
    while let Some((scope, depth, disabled_above)) = open.pop() {
        let disabled_by = disabled_above.or_else(|| scope.disabled.then_some(scope.name.as_str()));
        lines.push(ScopeLineBody {
            name: scope.name.clone(),
            parent: scope.parent.clone(),
            depth,
            disabled_by: disabled_by.map(str::to_owned),
            paused: None,
        });
        let below = children.remove(&Some(scope.name.as_str())).into_iter().flatten();
        open.extend(below.map(|child| (child, depth + 1, disabled_by)));
    }
    lines
}

/// A configuration with what its parts say about themselves.
struct Described<'d> {
    daemon: &'d Daemon,
    active: Arc<ActiveGeneration>,
    model: Model,
    pauses: Pauses,
}

impl<'d> Described<'d> {
    async fn of(daemon: &'d Daemon) -> Result<Self, Failure> {
        let model = daemon.applied().model.clone().unwrap_or_default();
        let pauses = pause::standing(daemon).await?;
        Ok(Self { daemon, active: daemon.runtime().generations().active(), model, pauses })
    }

    fn declared(&self, name: &ScopeName) -> Option<&model::Scope> {
        self.model.scopes.iter().find(|scope| scope.name == name.as_str())
    }

    fn scope(&self, name: &str) -> Option<ScopeBody> {
        let ActiveScope { scope, routes, recurrences: _ } = self.active.scopes.get(&name.parse().ok()?)?;
        let declared = self.declared(&scope.name);
        // The nearest first, as what is nearer holds.
        let lineage: Vec<&model::Scope> =
            scope.lineage.iter().rev().filter_map(|name| self.declared(name)).collect();
        let disabled_by = lineage.iter().rev().find(|above| above.disabled);
        Some(ScopeBody {
            name: scope.name.to_string(),
            parent: scope.lineage.iter().rev().nth(1).map(ToString::to_string),
            disabled_by: disabled_by.map(|above| above.name.clone()),
            paused: self.pauses.of(scope.lineage.iter().map(ScopeName::as_str)),
            routes: routes.iter().map(route).collect(),
            bindings: scope.bindings.values().map(|binding| self.binding(scope, binding)).collect(),
            entries: scope.extensions.values().map(|entry| self.entry(entry)).collect(),
            removed: declared.map(removed).unwrap_or_default(),
            settings: settings(scope, &lineage),
            ceilings: ceilings(&lineage),
            secrets: secrets(&lineage),
            read_scopes: scope.read_scopes.iter().map(ToString::to_string).collect(),
            write_scopes: scope.write_scopes.iter().map(ToString::to_string).collect(),
            budgets: Vec::new(),
        })
    }

    /// Where a binding's runs work, in one phrase; none where it asks for no workspace.
    fn place(&self, binding: &Binding) -> Option<String> {
        let resource = Resource::read(binding.resource.as_ref()?)?;
        let providers = self.daemon.extensions().workspaces();
        let provider = providers.iter().find(|known| known.name() == resource.provider)?;
        provider.validate(resource.config).ok()
    }

    fn binding(&self, scope: &EffectiveScope, binding: &Binding) -> BindingBody {
        let executors = self.daemon.extensions().executors();
        let executor = executors.iter().find(|known| known.name() == binding.executor);
        let does = executor.and_then(|known| known.validate(&binding.config, binding.resource.as_ref()).ok());
        // It was valid when it was applied; the executor has become stricter since.
        let does = does.unwrap_or_else(|| "is not understood by its executor".to_owned());
        let does = match self.place(binding) {
            None => does,
            Some(place) => format!("{does} {place}"),
        };
        let written = self.declared(&binding.declared_in).and_then(|declaring| {
            declaring.bindings.iter().find(|written| written.name == binding.name.as_str())
        });
        let variables = written.into_iter().flat_map(|written| &written.secrets);
        BindingBody {
            name: binding.name.to_string(),
            executor: binding.executor.to_string(),
            does,
            timeout_seconds: binding.timeout_seconds.unwrap_or(scope.settings.timeout_seconds),
            own_timeout: binding.timeout_seconds.is_some(),
            inactivity_seconds: binding.inactivity_seconds,
            retry: binding.retry.map(|retry| OwnRetryBody {
                attempts: retry.attempts,
                backoff_seconds: retry.backoff.as_secs(),
            }),
            credential: binding.credential.as_ref().map(ToString::to_string),
            secrets: variables
                .map(|(variable, secret)| VariableBody { variable: variable.clone(), secret: secret.clone() })
                .collect(),
            declared_in: binding.declared_in.to_string(),
        }
    }

    fn entry(&self, entry: &Entry) -> EntryBody {
        let asked = IngressEntry {
            name: entry.name.clone(),
            scope: entry.declared_in.clone(),
            secret_names: entry.secrets.keys().cloned().collect(),
            config: entry.config.clone(),
        };
        let recurrences = &self.daemon.extensions().recurrences;
        if let Some(kind) = recurrences.iter().find(|known| known.entry_type() == entry.entry_type) {
            return recurring(entry, kind.prepare(&asked).ok());
        }
        let ingress = self.daemon.extensions().ingress(&asked, &entry.entry_type);
        let prepared = ingress.and_then(|known| known.prepare(&asked).ok());
        let takes = prepared.as_ref().map(|prepared| prepared.describe());
        EntryBody {
            name: entry.name.to_string(),
            entry_type: entry.entry_type.clone(),
            takes: takes.unwrap_or_else(|| "nothing, as its extension does not understand it".to_owned()),
            namespace: prepared.map(|prepared| prepared.namespace().to_string()),
            secrets: entry.secrets.keys().cloned().collect(),
            declared_in: entry.declared_in.to_string(),
        }
    }
}

/// An entry whose parts recur: each with when it does.
fn recurring(entry: &Entry, declared: Option<Recurrences>) -> EntryBody {
    let takes = declared.as_ref().map(|declared| {
        let parts = declared.parts.iter().map(|part| format!("{}: {}", part.name, part.describe));
        parts.collect::<Vec<_>>().join("; ")
    });
    EntryBody {
        name: entry.name.to_string(),
        entry_type: entry.entry_type.clone(),
        takes: takes.unwrap_or_else(|| "nothing, as its extension does not understand it".to_owned()),
        namespace: declared.map(|declared| declared.namespace.to_string()),
        secrets: entry.secrets.keys().cloned().collect(),
        declared_in: entry.declared_in.to_string(),
    }
}

fn route(active: &ActiveRoute) -> RouteBody {
    let route = &active.route;
    RouteBody {
        name: route.name.to_string(),
        handler: route.handler.to_string(),
        takes: active.prepared.describe(),
        leads_to: active.prepared.leads_to(),
        policy: route.active_policy.as_str().to_owned(),
        binding: route.binding.as_ref().map(ToString::to_string),
        declared_in: route.declared_in.to_string(),
    }
}

fn removed(scope: &model::Scope) -> Vec<RemovedBody> {
    let routes = scope.routes.iter().filter(|route| route.disabled).map(|route| ("route", &route.name));
    let bindings = scope.bindings.iter().filter(|one| one.disabled).map(|one| ("binding", &one.name));
    let entries = scope.extensions.iter().filter(|entry| entry.disabled).map(|entry| ("entry", &entry.name));
    let all = routes.chain(bindings).chain(entries);
    all.map(|(what, name)| RemovedBody { what: what.to_owned(), name: name.clone() }).collect()
}

/// Every setting that holds, with the scope that sets it.
fn settings(scope: &EffectiveScope, lineage: &[&model::Scope]) -> Vec<SettingBody> {
    let settings = &scope.settings;
    let or_off = |value: Option<u32>| value.map_or(Value::Null, Value::from);
    let held: [(&str, Value); 9] = [
        ("timeout_seconds", settings.timeout_seconds.into()),
        ("inactivity_seconds", or_off(settings.inactivity_seconds)),
        ("concurrency", settings.concurrency.into()),
        ("kept_executions", settings.kept_executions.into()),
        ("kept_finished_days", or_off(settings.kept_finished_days)),
        ("causal_max_depth", settings.causal_max_depth.into()),
        ("causal_per_minute", settings.causal_per_minute.into()),
        ("failure_budget", settings.failure_budget.into()),
        ("terminal_on_exhaustion", settings.terminal_on_exhaustion.into()),
    ];
    let written: Vec<(&str, Map<String, Value>)> =
        lineage.iter().map(|scope| (scope.name.as_str(), fields(&scope.settings))).collect();
    let set_in = |name: &str| {
        let nearest = written.iter().find(|(_scope, fields)| fields.contains_key(name));
        nearest.map(|(scope, _fields)| (*scope).to_owned())
    };
    held.into_iter()
        .map(|(name, value)| SettingBody { name: name.to_owned(), value, set_in: set_in(name) })
        .collect()
}

/// Every ceiling that holds. A scope can only lower what it inherits, so the nearest is the lowest.
fn ceilings(lineage: &[&model::Scope]) -> Vec<SettingBody> {
    let mut held: Vec<SettingBody> = Vec::new();
    for scope in lineage {
        for (name, value) in fields(&scope.ceilings) {
            if held.iter().all(|nearer| nearer.name != name) {
                held.push(SettingBody { name, value, set_in: Some(scope.name.clone()) });
            }
        }
    }
    held
}

fn secrets(lineage: &[&model::Scope]) -> Vec<SecretNameBody> {
    let mut held: BTreeMap<&str, &str> = BTreeMap::new();
    for scope in lineage {
        for name in scope.secrets.keys() {
            held.entry(name).or_insert(&scope.name);
        }
    }
    let body = |(name, declared_in): (&str, &str)| SecretNameBody {
        name: name.to_owned(),
        declared_in: declared_in.to_owned(),
    };
    held.into_iter().map(body).collect()
}

/// The fields of a table that are written.
fn fields<T: Serialize>(table: &T) -> Map<String, Value> {
    match serde_json::to_value(table) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => unreachable!("settings and ceilings are tables of numbers"),
    }
}
