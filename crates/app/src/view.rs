//! What people see of a run, a Work, an Event: plain data and sentences, made from the API's types.
//!
//! The command line prints these and a page shows them, so that both tell the same story in the same words.
//! Nothing here knows a terminal, a page or a clock: the current moment is an argument.

pub(crate) mod time;
pub(crate) mod word;
pub(crate) mod clip;
pub(crate) mod payload;
pub(crate) mod event;
pub(crate) mod order;
pub(crate) mod wait;
pub(crate) mod work;
pub(crate) mod effect;
pub(crate) mod budget;
pub(crate) mod run;
pub(crate) mod timeline;
pub(crate) mod downtime;
pub(crate) mod needs;
pub(crate) mod clock;
pub(crate) mod look;
pub(crate) mod change;
pub(crate) mod said;
pub(crate) mod why;
pub(crate) mod log;
pub(crate) mod config;
pub(crate) mod health;

#[cfg(test)]
mod sample;

pub(crate) use word::{Tone, Word};

use crate::api::wire::KeyBody;

/// A named line of a detail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    /// Its name, in lower case.
    pub(crate) name: &'static str,
    /// What it holds.
    pub(crate) value: Word,
}

impl Field {
    pub(crate) fn new(name: &'static str, value: impl Into<Word>) -> Self {
        Self { name, value: value.into() }
    }
}

/// A key as people write it: `namespace external-id`. The identifier may hold slashes and colons, a space is
/// what sets the two apart.
pub(crate) fn key(key: &KeyBody) -> String {
    format!("{} {}", key.source, key.external_id)
}

/// The first of several keys and how many more there are.
pub(crate) fn keys(keys: &[KeyBody]) -> String {
    match keys {
        [] => String::new(),
        [only] => key(only),
        [first, rest @ ..] => format!("{} +{}", key(first), rest.len()),
    }
}

/// `1 run`, `3 runs`.
pub(crate) fn count(number: i64, one: &str, more: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {more}") }
}
