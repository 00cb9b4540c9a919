//! What extensions say about their part of a configuration.
//!
//! Names of handlers, executors and entry types, and everything below a `config`, mean nothing to the core;
//! this asks whoever registered them.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::text::{EntryName, ScopeName, SourceName};
use extension::{ConfigProblem, Executor, Handler, Ingress, IngressEntry, Recurrence, WorkspaceProvider};

use super::model::{self, Model, or_empty};
use super::outside;
use super::problem::{Problem, is_showable, suggestion};

/// The extensions that configurations may name.
pub(crate) trait Registered {
    /// Every handler.
    fn handlers(&self) -> &[Arc<dyn Handler>];
    /// Every executor.
    fn executors(&self) -> &[Arc<dyn Executor>];
    /// Every kind of entry that takes webhooks.
    fn ingresses(&self) -> &[Arc<dyn Ingress>];
    /// Every kind of entry whose parts recur.
    fn recurrences(&self) -> &[Arc<dyn Recurrence>];
    /// Every provider of workspaces.
    fn workspaces(&self) -> &[Arc<dyn WorkspaceProvider>];
}

/// The namespace that each entry delivers in.
pub(crate) type Namespaces = BTreeMap<(ScopeName, EntryName), SourceName>;

/// Every name that is not registered and everything an extension refuses.
pub(crate) fn check(model: &Model, registry: &dyn Registered) -> Vec<Problem> {
    let declared = &model.extensions;
    let mut checking = Checking { registry, declared, problems: Vec::new(), namespaces: BTreeMap::new() };
    for (index, scope) in model.scopes.iter().enumerate() {
        checking.scope(&format!("scopes[{index}]"), scope);
    }
    checking.problems
}

/// The namespaces of the entries that an ingress accepts. Entries that are refused are left out.
pub(crate) fn namespaces(model: &Model, registry: &dyn Registered) -> Namespaces {
    let mut namespaces = Namespaces::new();
    for scope in &model.scopes {
        for entry in scope.extensions.iter().filter(|entry| !entry.disabled) {
            let Some(asked) = ingress_entry(scope, entry) else { continue };
            let kind = entry.kind.as_deref().unwrap_or_default();
            if outside::owner(&model.extensions, kind).is_some() {
                if let Ok(namespace) = protocol::host::namespace(&asked) {
                    namespaces.insert((asked.scope, asked.name), namespace);
                }
                continue;
            }
            let Some(ingress) = registry.ingresses().iter().find(|known| known.entry_type() == kind) else {
                continue;
            };
            if let Ok(prepared) = ingress.prepare(&asked) {
                namespaces.insert((asked.scope, asked.name), prepared.namespace().clone());
            }
        }
    }
    namespaces
}

fn recurrence<'a>(registry: &'a dyn Registered, kind: &str) -> Option<&'a Arc<dyn Recurrence>> {
    registry.recurrences().iter().find(|known| known.entry_type() == kind)
}

/// The entry as an ingress sees it; none when its names are not valid, which is reported elsewhere.
pub(crate) fn ingress_entry(scope: &model::Scope, entry: &model::Entry) -> Option<IngressEntry> {
    Some(IngressEntry {
        name: entry.name.parse().ok()?,
        scope: scope.name.parse().ok()?,
        secret_names: entry.secret_names.clone(),
        config: or_empty(entry.config.as_ref()),
    })
}

struct Checking<'a> {
    registry: &'a dyn Registered,
    /// Extensions in processes of their own. What they say about their parts is asked by an apply.
    declared: &'a [model::Extension],
    problems: Vec<Problem>,
    /// Namespaces that are taken, with the path of the entry that did.
    namespaces: BTreeMap<SourceName, String>,
}

impl Checking<'_> {
    fn scope(&mut self, path: &str, scope: &model::Scope) {
        for (index, binding) in
            scope.bindings.iter().enumerate().filter(|(_index, binding)| !binding.disabled)
        {
            self.binding(&format!("{path}.bindings[{index}]"), binding);
        }
        for (index, route) in scope.routes.iter().enumerate().filter(|(_index, route)| !route.disabled) {
            self.route(&format!("{path}.routes[{index}]"), route);
        }
        for (index, entry) in scope.extensions.iter().enumerate().filter(|(_index, entry)| !entry.disabled) {
            self.entry(&format!("{path}.extensions[{index}]"), scope, entry);
        }
    }

    fn binding(&mut self, path: &str, binding: &model::Binding) {
        if let Some(resource) = &binding.resource {
            self.resource(&format!("{path}.resource"), resource);
        }
        let Some(name) = &binding.executor else { return };
        let executors = self.registry.executors();
        let Some(executor) = executors.iter().find(|known| known.name().as_str() == name) else {
            let names: Vec<String> = executors.iter().map(|known| known.name().to_string()).collect();
            return self.unknown(format!("{path}.executor"), "unknown_executor", "executor", name, &names);
        };
        let resource = binding.resource.as_ref().map(model::Resource::to_value);
        if let Err(found) = executor.validate(&or_empty(binding.config.as_ref()), resource.as_ref()) {
            self.problems.extend(below(&format!("{path}.config"), found));
        }
    }

    fn resource(&mut self, path: &str, resource: &model::Resource) {
        let providers = self.registry.workspaces();
        let Some(provider) = providers.iter().find(|known| known.name() == resource.provider) else {
            let names: Vec<String> = providers.iter().map(|known| known.name().to_owned()).collect();
            let (at, what) = (format!("{path}.provider"), "provider of workspaces");
            return self.unknown(at, "unknown_provider", what, &resource.provider, &names);
        };
        if let Err(found) = provider.validate(&or_empty(resource.config.as_ref())) {
            self.problems.extend(below(&format!("{path}.config"), found));
        }
    }

    fn route(&mut self, path: &str, route: &model::Route) {
        let Some(name) = &route.handler else { return };
        if outside::owner(self.declared, name).is_some() {
            return;
        }
        let handlers = self.registry.handlers();
        let Some(handler) = handlers.iter().find(|known| known.name().as_str() == name) else {
            let names: Vec<String> = handlers.iter().map(|known| known.name().to_string()).collect();
            return self.unknown(format!("{path}.handler"), "unknown_handler", "handler", name, &names);
        };
        if let Err(found) = handler.prepare(&or_empty(route.config.as_ref())) {
            self.problems.extend(below(&format!("{path}.config"), found));
        }
    }

    fn entry(&mut self, path: &str, scope: &model::Scope, entry: &model::Entry) {
        let Some(kind) = &entry.kind else { return };
        if outside::owner(self.declared, kind).is_some() {
            let Some(asked) = ingress_entry(scope, entry) else { return };
            return match protocol::host::namespace(&asked) {
                Ok(namespace) => self.namespace(path, namespace),
                Err(found) => self.problems.extend(below(&format!("{path}.config"), found)),
            };
        }
        if let Some(recurrence) = recurrence(self.registry, kind) {
            let Some(asked) = ingress_entry(scope, entry) else { return };
            return match recurrence.prepare(&asked) {
                Ok(declared) => self.namespace(path, declared.namespace),
                Err(found) => self.problems.extend(below(&format!("{path}.config"), found)),
            };
        }
        let ingresses = self.registry.ingresses();
        let Some(ingress) = ingresses.iter().find(|known| known.entry_type() == kind) else {
            let recurring = self.registry.recurrences().iter().map(|known| known.entry_type().to_owned());
            let names: Vec<String> =
                ingresses.iter().map(|known| known.entry_type().to_owned()).chain(recurring).collect();
            return self.unknown(format!("{path}.type"), "unknown_entry_type", "type of entry", kind, &names);
        };
        let Some(asked) = ingress_entry(scope, entry) else { return };
        let namespace = match ingress.prepare(&asked) {
            Ok(prepared) => prepared.namespace().clone(),
            Err(found) => return self.problems.extend(below(&format!("{path}.config"), found)),
        };
        self.namespace(path, namespace);
    }

    /// Each namespace is one entry's, and none the runtime's.
    fn namespace(&mut self, path: &str, namespace: SourceName) {
        if namespace.is_core() || namespace.is_of_cloud_events() {
            let message = "the entry delivers in a namespace of the runtime or of CloudEvents; choose one that does \
                           not begin with `core.` or `cloudevents:`";
            self.problems.push(Problem::new(path, "namespace_reserved", message));
        } else if let Some(first) = self.namespaces.get(&namespace) {
            let message =
                format!("the entry delivers in the namespace of {first}; each needs one of its own");
            self.problems.push(Problem::new(path, "namespace_taken", message));
        } else {
            self.namespaces.insert(namespace, path.to_owned());
        }
    }

    fn unknown(&mut self, path: String, code: &'static str, what: &str, written: &str, known: &[String]) {
        self.problems.push(unknown(path, code, what, written, known));
    }
}

/// A name that nobody offers.
pub(crate) fn unknown(
    path: String,
    code: &'static str,
    what: &str,
    written: &str,
    known: &[String],
) -> Problem {
    let hint = match suggestion(written, known.iter().map(String::as_str)) {
        hint if hint.is_empty() && known.is_empty() => String::new(),
        hint if hint.is_empty() => {
            let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
            format!("; known are {}", known.join(", "))
        }
        hint => hint,
    };
    Problem::new(path, code, format!("there is no {what} of that name{hint}"))
}

/// What an extension refuses below a path of the file.
pub(crate) fn below(path: &str, found: Vec<ConfigProblem>) -> Vec<Problem> {
    let placed = |problem: ConfigProblem| {
        let at = match showable_path(&problem.path) {
            "" => path.to_owned(),
            inner if inner.starts_with('[') => format!("{path}{inner}"),
            inner => format!("{path}.{inner}"),
        };
        Problem::new(at, "extension_config", problem.message)
    };
    found.into_iter().map(placed).collect()
}

/// As much of an extension's path as looks like one: a key that does not may be a value in the wrong place.
fn showable_path(path: &str) -> &str {
    let is_index =
        |text: &str| text.len() <= 7 && text.chars().all(|c| c.is_ascii_digit() || matches!(c, '[' | ']'));
    let mut end = 0;
    for part in path.split_inclusive('.') {
        let part_end = end + part.len();
        let part = part.strip_suffix('.').unwrap_or(part);
        let (key, index) = part.split_at(part.find('[').unwrap_or(part.len()));
        if !(is_showable(key) || (key.is_empty() && end == 0)) || !is_index(index) {
            break;
        }
        end = part_end;
    }
    path[..end].trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::showable_path;

    #[test]
    fn showable_path_stops_at_what_is_no_key() {
        for whole in ["", "jobs[2].cron", "[0].x", "env.PATH_1"] {
            assert_eq!(showable_path(whole), whole);
        }
        assert_eq!(showable_path("env.my secret.x"), "env");
        assert_eq!(showable_path("my secret"), "");
        assert_eq!(showable_path("jobs[secret].x"), "");
    }
}
