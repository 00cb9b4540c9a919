//! What an apply would change, in sentences for people, without any effect.

use std::collections::BTreeMap;
use std::fmt;

use super::model::{Binding, Entry, Model, Route, Scope};
use super::problem::is_showable;
use super::registry::{Registered, namespaces};

mod budget;
mod outside;
mod part;
mod recurring;

use part::{difference, in_words};

/// What an apply would do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Plan {
    /// Each change, in the order of the proposed file; removals come last in their list.
    pub(crate) changes: Vec<Change>,
    /// What takes effect only when the daemon starts again, in sentences.
    pub(crate) restart_required: Vec<String>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// Where, by names: `scopes.eng.routes.ci`.
    pub(crate) path: String,
    /// What kind of change it is.
    pub(crate) what: ChangeKind,
    /// The change in a sentence, without configured secrets or opaque values.
    pub(crate) sentence: String,
}

/// A kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It is different.
    Changed,
}

impl ChangeKind {
    /// The stable word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed => "changed",
        }
    }
}

impl fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Compares the configuration in force, if any, with a proposed one. Both are taken to be valid.
pub(crate) fn plan(current: Option<&Model>, proposed: &Model, registry: &dyn Registered) -> Plan {
    let nothing = Model::default();
    let before = current.unwrap_or(&nothing);
    let mut plan = Plan::default();
    plan.daemon(before, proposed, current.is_some());
    plan.extensions(&before.extensions, &proposed.extensions);
    plan.scopes(&before.scopes, &proposed.scopes);
    recurring::due_at_once(&mut plan, before, proposed, registry);
    let taken = namespaces(before, registry);
    for (key, namespace) in namespaces(proposed, registry) {
        if taken.get(&key).is_some_and(|before| *before != namespace) {
            let (scope, entry) = key;
            let sentence = format!("scope `{scope}`: entry `{entry}` delivers in another namespace");
            plan.restart_required.push(sentence);
        }
    }
    plan
}

impl Plan {
    fn add(&mut self, path: String, what: ChangeKind, sentence: String) {
        self.changes.push(Change { path, what, sentence });
    }

    fn daemon(&mut self, before: &Model, after: &Model, is_running: bool) {
        let (before, after) = (&before.daemon, &after.daemon);
        let address = |written: &Option<String>| written.clone().unwrap_or_else(|| "its default".to_owned());
        let fields = [
            ("api_listen", before.api_listen != after.api_listen, {
                format!("the API moves to {}", address(&after.api_listen))
            }),
            ("webhook_listen", before.webhook_listen != after.webhook_listen, {
                format!("the webhook listener moves to {}", address(&after.webhook_listen))
            }),
            ("public_hosts", before.public_hosts != after.public_hosts, {
                if after.behind_proxy {
                    "webhooks and the page may be addressed to other hosts"
                } else {
                    "webhooks may be addressed to other hosts"
                }
                .to_owned()
            }),
            ("behind_proxy", before.behind_proxy != after.behind_proxy, {
                let stands = if after.behind_proxy { "stands" } else { "no longer stands" };
                format!("a proxy {stands} before the listeners")
            }),
        ];
        for (name, differs, sentence) in fields {
            if differs {
                if is_running {
                    self.restart_required.push(sentence.clone());
                }
                self.add(format!("daemon.{name}"), ChangeKind::Changed, sentence);
            }
        }
    }

    fn scopes(&mut self, before: &[Scope], after: &[Scope]) {
        let known: BTreeMap<&str, &Scope> = before.iter().map(|scope| (scope.name.as_str(), scope)).collect();
        for scope in after {
            let name = &scope.name;
            if let Some(before) = known.get(name.as_str()) {
                self.scope(before, scope);
            } else {
                let below =
                    scope.parent.as_ref().map_or_else(String::new, |parent| format!(" below `{parent}`"));
                let sentence = format!("scope `{name}` is new{below}");
                self.add(format!("scopes.{name}"), ChangeKind::Added, sentence);
                let empty = Scope { name: name.clone(), parent: scope.parent.clone(), ..Scope::default() };
                self.scope(&empty, scope);
            }
        }
        for gone in before.iter().filter(|scope| after.iter().all(|kept| kept.name != scope.name)) {
            let sentence = format!("scope `{}` is removed", gone.name);
            self.add(format!("scopes.{}", gone.name), ChangeKind::Removed, sentence);
        }
    }

    fn scope(&mut self, before: &Scope, after: &Scope) {
        let name = &after.name;
        let path = format!("scopes.{name}");
        let mut change = |part: &str, sentence: String| {
            let path = format!("{path}.{part}");
            self.changes.push(Change { path, what: ChangeKind::Changed, sentence });
        };
        if before.parent != after.parent {
            let inherits = match &after.parent {
                Some(parent) => format!("now inherits from `{parent}`"),
                None => "no longer inherits".to_owned(),
            };
            change("parent", format!("scope `{name}` {inherits}"));
        }
        if before.disabled != after.disabled {
            let now = if after.disabled { "now disabled" } else { "enabled again" };
            change("disabled", format!("scope `{name}` is {now}"));
        }
        for (field, value) in difference(&before.settings, &after.settings) {
            change(
                &format!("settings.{field}"),
                format!("scope `{name}`: {field} is now {}", in_words(value)),
            );
        }
        for (field, value) in difference(&before.ceilings, &after.ceilings) {
            let sentence = format!("scope `{name}`: the ceiling of {field} is now {}", in_words(value));
            change(&format!("ceilings.{field}"), sentence);
        }
        if before.read_scopes != after.read_scopes {
            change("read_scopes", format!("scope `{name}` may read other scopes than before"));
        }
        if before.write_scopes != after.write_scopes {
            change(
                "write_scopes",
                format!("runs of scope `{name}` may create Works in other scopes than before"),
            );
        }
        self.budgets(before, after);
        self.secrets(before, after);
        self.list(Listed::of(after, "binding"), &before.bindings, &after.bindings);
        self.list(Listed::of(after, "route"), &before.routes, &after.routes);
        self.list(Listed::of(after, "entry"), &before.extensions, &after.extensions);
        self.order(before, after);
    }

    fn secrets(&mut self, before: &Scope, after: &Scope) {
        let mut names: Vec<&String> = before.secrets.keys().chain(after.secrets.keys()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names.into_iter().filter(|name| is_showable(name)) {
            let (what, words) = match (before.secrets.get(name), after.secrets.get(name)) {
                (None, Some(_new)) => (ChangeKind::Added, "is new"),
                (Some(_old), None) => (ChangeKind::Removed, "is removed"),
                (Some(old), Some(new)) if old != new => (ChangeKind::Changed, "is read from another place"),
                (Some(_), Some(_)) | (None, None) => continue,
            };
            let sentence = format!("scope `{}`: secret `{name}` {words}", after.name);
            self.add(format!("scopes.{}.secrets.{name}", after.name), what, sentence);
        }
    }

    fn list<T: part::Part>(&mut self, listed: Listed<'_>, before: &[T], after: &[T]) {
        for part in after {
            match before.iter().find(|old| old.name() == part.name()) {
                None => self.add(
                    listed.path(part.name()),
                    ChangeKind::Added,
                    listed.sentence(part.name(), &part.appears()),
                ),
                Some(old) => {
                    for words in part.differs(old) {
                        let sentence = listed.sentence(part.name(), &words);
                        self.add(listed.path(part.name()), ChangeKind::Changed, sentence);
                    }
                }
            }
        }
        for gone in before.iter().filter(|old| after.iter().all(|kept| kept.name() != old.name())) {
            let words = if gone.is_disabled() { "is inherited again" } else { "is removed" };
            self.add(listed.path(gone.name()), ChangeKind::Removed, listed.sentence(gone.name(), words));
        }
    }

    /// Routes are asked in order, so a different order of the same routes is a change.
    fn order(&mut self, before: &Scope, after: &Scope) {
        let kept = |of: &Scope, other: &Scope| -> Vec<String> {
            let is_kept = |route: &&Route| other.routes.iter().any(|one| one.name == route.name);
            of.routes.iter().filter(is_kept).map(|route| route.name.clone()).collect()
        };
        if kept(before, after) != kept(after, before) {
            let sentence = format!("scope `{}`: routes are asked in another order", after.name);
            self.add(format!("scopes.{}.routes", after.name), ChangeKind::Changed, sentence);
        }
    }
}

/// Which list of which scope a sentence is about.
#[derive(Clone, Copy)]
struct Listed<'a> {
    scope: &'a str,
    noun: &'static str,
}

impl<'a> Listed<'a> {
    fn of(scope: &'a Scope, noun: &'static str) -> Self {
        Self { scope: &scope.name, noun }
    }

    fn path(self, name: &str) -> String {
        let list = match self.noun {
            "entry" => "extensions",
            "binding" => "bindings",
            _route => "routes",
        };
        format!("scopes.{}.{list}.{name}", self.scope)
    }

    fn sentence(self, name: &str, words: &str) -> String {
        format!("scope `{}`: {} `{name}` {words}", self.scope, self.noun)
    }
}

#[cfg(test)]
mod tests;
