//! The JSON Schema of the configuration, and the check of a file against it.
//!
//! The check walks the generated schema itself, so what an editor underlines and what the daemon refuses cannot
//! drift apart. It looks at keys and types; what values mean is checked afterwards, with better words than a
//! schema has.

use serde_json::{Map, Value, json};

use super::model::Model;
use super::problem::{Problem, is_showable, suggestion};
use super::source::member;

/// The JSON Schema of the configuration, draft 2020-12.
pub(crate) fn schema() -> Value {
    let generator = schemars::generate::SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<Model>().to_value();
    schema["properties"][REFERENCE] = json!({ "description": "Where an editor finds this schema. It means nothing else.", "type": "string" });
    schema
}

/// The key by which a JSON file names its schema. Editors want it, and it is no part of a configuration.
const REFERENCE: &str = "$schema";

/// A file's content without the key that names its schema.
pub(crate) fn without_reference(mut value: Value) -> Value {
    if let Some(members) = value.as_object_mut() {
        members.shift_remove(REFERENCE);
    }
    value
}

/// Every key and type of `value` that the schema does not allow.
pub(crate) fn check(value: &Value) -> Vec<Problem> {
    let root = schema();
    let mut walk = Walk { root: &root, problems: Vec::new() };
    walk.check("", value, &root);
    walk.problems
}

struct Walk<'a> {
    root: &'a Value,
    problems: Vec<Problem>,
}

impl<'a> Walk<'a> {
    fn check(&mut self, path: &str, value: &Value, schema: &'a Value) {
        let schema = self.resolve(value, schema);
        let Some(schema) = schema.as_object() else { return };
        if let Some(expected) = mismatch(value, schema) {
            let message = format!("expected {expected}, found {}", kind(value));
            self.problems.push(Problem::new(path, "wrong_type", message));
            return;
        }
        match value {
            Value::Object(members) => self.check_object(path, members, schema),
            Value::Array(elements) => {
                let Some(items) = schema.get("items") else { return };
                for (index, element) in elements.iter().enumerate() {
                    self.check(&format!("{path}[{index}]"), element, items);
                }
            }
            Value::Number(number) => {
                let is_count = schema.get("format").is_some_and(|format| format == "uint32");
                if is_count && number.as_u64().and_then(|number| u32::try_from(number).ok()).is_none() {
                    let message = "expected a whole number that is not negative and fits 32 bits";
                    self.problems.push(Problem::new(path, "out_of_bounds", message));
                }
            }
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
    }

    /// Follows references, and picks the branch of an optional table that is not `null`.
    fn resolve(&self, value: &Value, schema: &'a Value) -> &'a Value {
        let mut schema = schema;
        loop {
            if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
                schema = name
                    .strip_prefix('#')
                    .and_then(|pointer| self.root.pointer(pointer))
                    .expect("a generated schema refers to its own definitions");
            } else if let Some(branches) = schema.get("anyOf").and_then(Value::as_array) {
                let is_null = |branch: &&Value| branch.get("type").is_some_and(|kind| kind == "null");
                schema = branches
                    .iter()
                    .find(|branch| is_null(branch) == value.is_null())
                    .expect("a generated choice is between null and a table");
            } else {
                return schema;
            }
        }
    }

    fn check_object(&mut self, path: &str, members: &Map<String, Value>, schema: &'a Map<String, Value>) {
        let known = schema.get("properties").and_then(Value::as_object);
        let others = schema.get("additionalProperties");
        for (key, value) in members {
            if let Some(schema) = known.and_then(|known| known.get(key)) {
                self.check(&member(path, key), value, schema);
            } else if others == Some(&Value::Bool(false)) {
                let names = known.into_iter().flat_map(|known| known.keys().map(String::as_str));
                self.problems.push(unknown_key(path, key, names));
            } else if let Some(schema) = others {
                let at = if is_showable(key) { member(path, key) } else { path.to_owned() };
                self.check(&at, value, schema);
            }
        }
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        for name in required.filter_map(Value::as_str).filter(|name| !members.contains_key(*name)) {
            self.problems.push(Problem::new(path, "missing_key", format!("the key `{name}` is missing")));
        }
    }
}

fn unknown_key<'k>(path: &str, key: &str, known: impl Iterator<Item = &'k str>) -> Problem {
    let names: Vec<&str> = known.collect();
    let hint = match suggestion(key, names.iter().copied()) {
        hint if hint.is_empty() => format!("; known are {}", listed(&names)),
        hint => hint,
    };
    if is_showable(key) {
        Problem::new(member(path, key), "unknown_key", format!("unknown key `{key}`{hint}"))
    } else {
        Problem::new(
            path,
            "unknown_key",
            format!("unknown key, not shown as it does not look like one{hint}"),
        )
    }
}

/// Names in a sentence.
fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// What the schema wants, when the value is of another type.
fn mismatch(value: &Value, schema: &Map<String, Value>) -> Option<String> {
    let kinds: Vec<&str> = match schema.get("type")? {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    if kinds.iter().any(|kind| is_of(value, kind)) {
        return None;
    }
    let words: Vec<&str> = kinds.iter().filter(|kind| **kind != "null").map(|kind| in_words(kind)).collect();
    Some(words.join(" or "))
}

fn is_of(value: &Value, kind: &str) -> bool {
    match value {
        Value::Null => kind == "null",
        Value::Bool(_) => kind == "boolean",
        Value::Number(number) => kind == "number" || (kind == "integer" && !number.is_f64()),
        Value::String(_) => kind == "string",
        Value::Array(_) => kind == "array",
        Value::Object(_) => kind == "object",
    }
}

fn in_words(kind: &str) -> &str {
    match kind {
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        "string" => "a text",
        "array" => "a list",
        "object" => "a table",
        other => other,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}
