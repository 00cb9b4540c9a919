//! What differs from one run of a test to the next, replaced by what does not.

use std::collections::BTreeMap;

use regex::{Captures, Regex};
use serde_json::{Map, Value};

use super::home::Home;

/// A text with ids numbered by kind as they appear, and times, spans, ports and the home's path by name.
pub(super) fn text(text: &str, home: &Home) -> String {
    let directory = home.path();
    let text = text.replace(directory.to_str().unwrap(), "[home]");
    let text = text.replace(env!("CARGO_BIN_EXE_open-conduit"), "open-conduit");
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let ids = Regex::new(r"\b(ev|work|run|session)_[0-9a-z]{13}\b").unwrap();
    let text = ids.replace_all(&text, |found: &Captures<'_>| {
        let kind = found[1].to_owned();
        let number = *known.entry(found[0].to_owned()).or_insert_with(|| {
            let count = counts.entry(kind.clone()).or_default();
            *count += 1;
            *count
        });
        format!("{kind}_{number}")
    });
    let mut text = text.into_owned();
    for (pattern, name) in [
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "[time]"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "[time]"),
        (r"\((just now|\d+ s ago)\)", "([ago])"),
        (r"\b\d+ ms\b|\b\d+(\.\d)? s\b", "[span]"),
        (r"127\.0\.0\.1:\d+", "[address]"),
        (r"conduit-[0-9a-z]{16}\.localhost:\d+", "[page]"),
        (r"code=[0-9a-z]{52}", "code=[code]"),
    ] {
        text = Regex::new(pattern).unwrap().replace_all(&text, name).into_owned();
    }
    text
}

/// An object with the kind of each value in the value's place. Nothing that is absent here may be absent later.
pub(super) fn shape(value: &Value) -> Value {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => "boolean".into(),
        Value::Number(_) => "number".into(),
        Value::String(_) => "text".into(),
        Value::Array(items) => items.iter().take(1).map(shape).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), shape(value))).collect::<Map<_, _>>().into()
        }
    }
}

/// The shape as lines.
pub(super) fn shape_text(value: &Value) -> String {
    serde_json::to_string_pretty(&shape(value)).unwrap()
}
