//! How the lines of a scope's lists differ, in words. Opaque configuration is only said to differ.

use serde::Serialize;
use serde_json::{Map, Value};

use super::{Binding, Entry, Route};
use crate::config::model::Retry;

/// A line of a list that is inherited by name.
pub(super) trait Part {
    fn name(&self) -> &str;
    fn is_disabled(&self) -> bool;
    /// What to say when it is new.
    fn appears(&self) -> String;
    /// What to say about each difference from an earlier line of the same name.
    fn differs(&self, before: &Self) -> Vec<String>;
}

/// The words for a line that is new, disables, or replaces a disabling one; none for two definitions.
fn toggled(
    before_disabled: bool,
    after_disabled: bool,
    appears: impl FnOnce() -> String,
) -> Option<Vec<String>> {
    match (before_disabled, after_disabled) {
        (true, true) => Some(Vec::new()),
        (false, true) => Some(vec![DISABLES.to_owned()]),
        (true, false) => Some(vec![appears()]),
        (false, false) => None,
    }
}

const DISABLES: &str = "is disabled here";

fn or_nothing(name: Option<&String>, noun: &str) -> String {
    name.map_or_else(|| format!("no {noun}"), |name| format!("{noun} `{name}`"))
}

impl Part for Route {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_disabled(&self) -> bool {
        self.disabled
    }

    fn appears(&self) -> String {
        if self.disabled {
            return DISABLES.to_owned();
        }
        format!("is new and runs {}", or_nothing(self.binding.as_ref(), "binding"))
    }

    fn differs(&self, before: &Self) -> Vec<String> {
        if let Some(words) = toggled(before.disabled, self.disabled, || self.appears()) {
            return words;
        }
        let mut words = Vec::new();
        if before.handler != self.handler {
            words.push(format!("now asks {}", or_nothing(self.handler.as_ref(), "handler")));
        }
        if before.binding != self.binding {
            words.push(format!("now runs {}", or_nothing(self.binding.as_ref(), "binding")));
        }
        let policy = |route: &Self| route.active_policy.clone().unwrap_or_else(|| "queue".to_owned());
        if policy(before) != policy(self) {
            words.push(format!("now has the policy {}", policy(self)));
        }
        for (key, before, now) in [
            ("fallback", &before.fallback, &self.fallback),
            ("fallback after an error", &before.on_error, &self.on_error),
        ] {
            if before != now {
                words.push(format!("now has {} as its {key}", now.as_deref().unwrap_or("nothing")));
            }
        }
        if before.config != self.config {
            words.push("has another configuration".to_owned());
        }
        words
    }
}

impl Part for Binding {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_disabled(&self) -> bool {
        self.disabled
    }

    fn appears(&self) -> String {
        if self.disabled {
            return DISABLES.to_owned();
        }
        format!("is new and uses {}", or_nothing(self.executor.as_ref(), "executor"))
    }

    fn differs(&self, before: &Self) -> Vec<String> {
        if let Some(words) = toggled(before.disabled, self.disabled, || self.appears()) {
            return words;
        }
        let mut words = Vec::new();
        if before.executor != self.executor {
            words.push(format!("now uses {}", or_nothing(self.executor.as_ref(), "executor")));
        }
        if before.config != self.config {
            words.push("has another configuration".to_owned());
        }
        if before.resource != self.resource {
            words.push("has another workspace".to_owned());
        }
        if before.timeout_seconds != self.timeout_seconds {
            words.push(match self.timeout_seconds {
                Some(seconds) => format!("now has a timeout of {seconds} s"),
                None => "now has the scope's timeout".to_owned(),
            });
        }
        if before.inactivity_seconds != self.inactivity_seconds {
            words.push(match self.inactivity_seconds {
                Some(0) => "may now be quiet for as long as it runs".to_owned(),
                Some(seconds) => format!("may now be quiet for {seconds} s"),
                None => "may now be quiet for as long as the scope allows".to_owned(),
            });
        }
        if before.retry != self.retry {
            words.push(match &self.retry {
                Some(Retry { attempts, backoff: Some(backoff) }) => {
                    format!("is now tried {attempts} times in a row, with a wait of {backoff} at first")
                }
                Some(Retry { attempts, backoff: None }) => format!("is now tried {attempts} times in a row"),
                None => "is now tried again as the scope says".to_owned(),
            });
        }
        if before.secrets != self.secrets {
            words.push("gets other secrets".to_owned());
        }
        words
    }
}

impl Part for Entry {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_disabled(&self) -> bool {
        self.disabled
    }

    fn appears(&self) -> String {
        if self.disabled {
            return DISABLES.to_owned();
        }
        format!("is new, {}", or_nothing(self.kind.as_ref(), "type"))
    }

    fn differs(&self, before: &Self) -> Vec<String> {
        if let Some(words) = toggled(before.disabled, self.disabled, || self.appears()) {
            return words;
        }
        let mut words = Vec::new();
        if before.kind != self.kind {
            words.push(format!("is now of {}", or_nothing(self.kind.as_ref(), "type")));
        }
        if before.secret_names != self.secret_names {
            words.push("may read other secrets".to_owned());
        }
        if before.config != self.config {
            words.push("has another configuration".to_owned());
        }
        words
    }
}

/// The fields of a table of numbers that differ, with what they are now.
pub(super) fn difference<T: Serialize>(before: &T, after: &T) -> Vec<(String, Option<Value>)> {
    let (mut before, after) = (fields(before), fields(after));
    let mut differing = Vec::new();
    for (field, value) in after {
        if before.shift_remove(&field).as_ref() != Some(&value) {
            differing.push((field, Some(value)));
        }
    }
    differing.extend(before.into_iter().map(|(field, _value)| (field, None)));
    differing
}

fn fields<T: Serialize>(table: &T) -> Map<String, Value> {
    match serde_json::to_value(table) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => unreachable!("settings and ceilings are tables of numbers"),
    }
}

pub(super) fn in_words(value: Option<Value>) -> String {
    value.map_or_else(|| "inherited".to_owned(), |value| value.to_string())
}
