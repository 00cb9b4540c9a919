//! A configuration in words: what each scope's routes, bindings and entries do, and where its settings come from.

use std::time::Duration;

use serde_json::Value;

use super::{budget, count, time};
use crate::api::wire::{BindingBody, EntryBody, PauseBody, RemovedBody, RouteBody, ScopeBody, SettingBody};

/// A scope in words.
#[derive(Debug, Clone)]
pub(crate) struct ScopeWords {
    pub(crate) name: String,
    /// Where it stands, in one sentence.
    pub(crate) place: String,
    /// Why nothing of it starts, when it is disabled.
    pub(crate) disabled: Option<String>,
    /// Why nothing of it starts, when it is paused.
    pub(crate) paused: Option<String>,
    /// In the order in which they are asked.
    pub(crate) routes: Vec<Part>,
    pub(crate) bindings: Vec<Part>,
    pub(crate) entries: Vec<Part>,
    /// What it inherits and takes away, a sentence each.
    pub(crate) removed: Vec<String>,
    pub(crate) settings: Vec<SettingRow>,
    pub(crate) ceilings: Vec<SettingRow>,
    /// Names only.
    pub(crate) secrets: Vec<Part>,
    pub(crate) read_scopes: Vec<String>,
    pub(crate) write_scopes: Vec<String>,
    /// Each with how it stands.
    pub(crate) budgets: Vec<(String, String)>,
}

/// A named part of a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) name: String,
    /// What it does.
    pub(crate) sentences: Vec<String>,
    /// The scope it is inherited from; none for the scope's own.
    pub(crate) inherited: Option<String>,
}

/// A setting or a ceiling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SettingRow {
    pub(crate) name: String,
    /// What it means, in a few words.
    pub(crate) meaning: &'static str,
    pub(crate) value: String,
    /// `set here`, `from main`, or `default`.
    pub(crate) origin: String,
    /// What is to be known about it besides.
    pub(crate) note: &'static str,
}

impl ScopeWords {
    /// A scope in words.
    pub(crate) fn new(scope: &ScopeBody) -> Self {
        let name = scope.name.as_str();
        let inherited = |declared_in: &str| (declared_in != name).then(|| declared_in.to_owned());
        Self {
            name: scope.name.clone(),
            place: match &scope.parent {
                Some(parent) => format!("It inherits from `{parent}` what it doesn't say itself."),
                None => "It inherits from no other scope.".to_owned(),
            },
            paused: scope.paused.as_ref().map(|pause| paused(name, pause)),
            disabled: scope.disabled_by.as_deref().map(|by| disabled(name, by)),
            routes: parts(&scope.routes, |one| {
                (&one.name, route(one, &scope.bindings), inherited(&one.declared_in))
            }),
            bindings: parts(&scope.bindings, |one| (&one.name, binding(one), inherited(&one.declared_in))),
            entries: parts(&scope.entries, |one| {
                let from = inherited(&one.declared_in);
                (&one.name, entry(one, from.as_deref()), from)
            }),
            removed: scope.removed.iter().map(removed).collect(),
            settings: scope.settings.iter().map(|setting| SettingRow::new(setting, name)).collect(),
            ceilings: scope.ceilings.iter().map(|ceiling| SettingRow::new(ceiling, name)).collect(),
            secrets: parts(&scope.secrets, |one| (&one.name, Vec::new(), inherited(&one.declared_in))),
            read_scopes: scope.read_scopes.clone(),
            write_scopes: scope.write_scopes.clone(),
            budgets: budget::all(&scope.budgets),
        }
    }
}

fn parts<'b, B>(
    bodies: &'b [B],
    say: impl Fn(&'b B) -> (&'b String, Vec<String>, Option<String>),
) -> Vec<Part> {
    let part = |body| {
        let (name, sentences, inherited) = say(body);
        Part { name: name.clone(), sentences, inherited }
    };
    bodies.iter().map(part).collect()
}

fn disabled(scope: &str, by: &str) -> String {
    let nothing = "Events are accepted and wait, and nothing of it starts";
    if scope == by {
        format!("It is disabled: {nothing}.")
    } else {
        format!("It is disabled, as `{by}` is: {nothing}.")
    }
}

fn paused(scope: &str, pause: &PauseBody) -> String {
    let (by, since) = (&pause.scope, time::absolute(&pause.since));
    let nothing = "Events are accepted, routed and queued, what runs ends, and nothing of it starts";
    if scope == by {
        format!("It is paused since {since}: {nothing}.")
    } else {
        format!("It is paused, as `{by}` is since {since}: {nothing}.")
    }
}

fn route(route: &RouteBody, bindings: &[BindingBody]) -> Vec<String> {
    let busy = match route.policy.as_str() {
        "queue" => "waits for its next run",
        "inject" => "is given to that run, where its executor can",
        "interrupt" => "ends that run and starts the next",
        "drop" => "is recorded and has no effect",
        // A later daemon may know more policies.
        _other => "is left to the policy of the route",
    };
    let binding = route.binding.as_ref().map_or_else(
        || "It has no binding, so it starts nothing.".to_owned(),
        |name| match bindings.iter().find(|known| known.name == *name) {
            Some(known) => format!("Binding `{name}` {}.", does(known)),
            None => format!("It runs binding `{name}`."),
        },
    );
    vec![
        format!("Takes {}.", route.takes),
        format!("Leads to {}. What reaches a Work while it runs {busy}.", route.leads_to),
        binding,
    ]
}

/// What a binding does, and for how long: `runs x, executor shell, 1 h at most`.
fn does(binding: &BindingBody) -> String {
    format!("{}, executor `{}`, {} at most", binding.does, binding.executor, seconds(binding.timeout_seconds))
}

fn binding(binding: &BindingBody) -> Vec<String> {
    let whose = if binding.own_timeout { "its own limit" } else { "the scope's limit" };
    let mut sentences = vec![
        format!("Executor `{}`: {}.", binding.executor, binding.does),
        format!("{} at most, which is {whose}.", seconds(binding.timeout_seconds)),
    ];
    if let Some(quiet) = binding.inactivity_seconds {
        sentences.push(format!("A run that writes nothing for {} is stopped.", seconds(quiet)));
    }
    if let Some(retry) = &binding.retry {
        let times = count(i64::from(retry.attempts), "attempt", "attempts");
        let wait = time::span(Duration::from_secs(retry.backoff_seconds));
        sentences.push(format!("{times} in a row at most, with a wait of {wait} after the first failure."));
    }
    if !binding.secrets.is_empty() {
        let held = binding.secrets.iter().map(|one| format!("secret `{}` as `{}`", one.secret, one.variable));
        sentences.push(format!("Its runs get {}.", list(held)));
    }
    sentences
}

fn entry(entry: &EntryBody, inherited: Option<&str>) -> Vec<String> {
    let source = entry.namespace.as_ref().map(|name| format!(", as Events of source `{name}`"));
    let mut sentences =
        vec![format!("Type `{}`: takes {}{}.", entry.entry_type, entry.takes, source.unwrap_or_default())];
    if !entry.secrets.is_empty() {
        let names = entry.secrets.iter().map(|name| format!("`{name}`"));
        let noun = if entry.secrets.len() == 1 { "secret" } else { "secrets" };
        sentences.push(format!("It may read {noun} {}.", list(names)));
    }
    if let Some(scope) = inherited {
        sentences.push(format!("What it takes belongs to scope `{scope}`."));
    }
    sentences
}

fn removed(removed: &RemovedBody) -> String {
    format!("The inherited {} `{}` is disabled here.", removed.what, removed.name)
}

/// `a`, `a and b`, `a, b and c`.
fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    match items.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A setting's name, its meaning, how its value is said, and what is to be known besides.
type Meaning = (&'static str, &'static str, fn(&Value) -> String, &'static str);

const MEANINGS: [Meaning; 9] = [
    ("timeout_seconds", "The longest a run may be active", span, ""),
    ("inactivity_seconds", "The longest a run may write nothing", span, ""),
    ("concurrency", "Runs at once", runs, ""),
    ("kept_executions", "Runs of a Work that keep their files", runs, ""),
    ("kept_finished_days", "How long finished Work keeps its files", days, ""),
    ("causal_max_depth", "How deep a chain of Events may go", plain, ""),
    ("causal_per_minute", "Derived Events of one first Event, per minute", plain, ""),
    ("failure_budget", "Failures in a row until nothing tries again by itself", plain, ""),
    ("terminal_on_exhaustion", "Work that used up its failures has failed for good", truth, ""),
];

impl SettingRow {
    fn new(setting: &SettingBody, scope: &str) -> Self {
        let known = MEANINGS.iter().find(|(name, ..)| *name == setting.name);
        let unknown: Meaning = ("", "", plain, "");
        let (_name, meaning, say, note) = *known.unwrap_or(&unknown);
        Self {
            name: setting.name.clone(),
            meaning,
            value: say(&setting.value),
            origin: match &setting.set_in {
                None => "default".to_owned(),
                Some(own) if own == scope => "set here".to_owned(),
                Some(above) => format!("from {above}"),
            },
            note,
        }
    }
}

fn seconds(number: u32) -> String {
    time::span(Duration::from_secs(u64::from(number)))
}

fn span(value: &Value) -> String {
    value.as_u64().map_or_else(|| "off".to_owned(), |number| time::span(Duration::from_secs(number)))
}

fn runs(value: &Value) -> String {
    value.as_i64().map_or_else(|| plain(value), |number| count(number, "run", "runs"))
}

fn days(value: &Value) -> String {
    value.as_i64().map_or_else(|| "for ever".to_owned(), |number| count(number, "day", "days"))
}

fn truth(value: &Value) -> String {
    match value.as_bool() {
        Some(true) => "yes".to_owned(),
        Some(false) => "no".to_owned(),
        None => plain(value),
    }
}

fn plain(value: &Value) -> String {
    value.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::ScopeWords;
    use crate::api::wire::ScopeBody;

    fn scope() -> ScopeBody {
        serde_json::from_value(json!({
            "name": "team/site",
            "parent": "main",
            "disabled_by": "main",
            "routes": [
                { "name": "demo", "handler": "match", "takes": "demo.* when payload.n > 3",
                  "leads_to": "one standing Work per key, of kind `match.keyed`", "policy": "queue",
                  "binding": "hello", "declared_in": "team/site" },
                { "name": "quiet", "handler": "match", "takes": "noise.*", "leads_to": "a new Work for each",
                  "policy": "drop", "binding": null, "declared_in": "main" },
            ],
            "bindings": [{ "name": "hello", "executor": "shell", "does": "runs `echo hi`", "timeout_seconds": 3600,
                "own_timeout": false, "secrets": [{ "variable": "TOKEN", "secret": "api" }], "declared_in": "main" }],
            "entries": [{ "name": "builds", "type": "webhook", "takes": "webhooks with a signature of the body",
                "namespace": "hook/builds", "secrets": ["a", "b", "c"], "declared_in": "main" }],
            "removed": [{ "what": "route", "name": "old" }],
            "settings": [
                { "name": "timeout_seconds", "value": 5400, "set_in": "team/site" },
                { "name": "inactivity_seconds", "value": null, "set_in": null },
                { "name": "concurrency", "value": 1, "set_in": "main" },
                { "name": "kept_finished_days", "value": null, "set_in": null },
                { "name": "terminal_on_exhaustion", "value": false, "set_in": null },
                { "name": "moonlight", "value": 3, "set_in": "main" },
            ],
            "ceilings": [],
            "secrets": [{ "name": "api", "declared_in": "main" }],
            "read_scopes": [],
        }))
        .unwrap()
    }

    #[test]
    fn a_scope_is_told_in_sentences() {
        let words = ScopeWords::new(&scope());
        insta::assert_debug_snapshot!(words);
    }
}
