//! The reference of the extension protocol, from its methods, error codes and the JSON Schema of its types.

use serde_json::Value;

use super::{MARK, add, cell, unreadable};
use crate::error::Error;

const INTRODUCTION: &str = "\
An extension in a process of its own speaks JSON-RPC 2.0 over its standard streams: each message is JSON in UTF-8 on a
line of its own, requests come on standard input, answers go to standard output in any order, and standard error goes
into the daemon's log. The runtime asks and the extension answers; it sends no requests. A reader skips what it does not
know, so fields and methods may be added within a version. How to write one is in [the guide](../guide/extensions.md),
and what both sides promise in [the specification](../spec/extensions.md).
";

/// The page.
pub(super) fn page(reference: &Value) -> Result<String, Error> {
    let version = &reference["version"];
    let mut text = format!("# Extension protocol, version {version}\n\n{MARK}\n\n{INTRODUCTION}");
    text.push_str("\n## Methods\n\n| method | parameters | result |\n| --- | --- | --- |\n");
    for method in list(&reference["methods"])? {
        let name = method["name"].as_str().unwrap_or_default();
        let result = method["result"].as_str().map_or_else(|| "none: a notification".to_owned(), link);
        let params = link(method["params"].as_str().unwrap_or_default());
        add(&mut text, format_args!("| `{name}` | {params} | {result} |\n"));
    }
    text.push_str("\n## Limits\n\n| limit | now |\n| --- | --- |\n");
    for (name, value) in reference["limits"].as_object().into_iter().flatten() {
        add(&mut text, format_args!("| `{name}` | {value} |\n"));
    }
    text.push_str("\n## Errors\n\n| code | word | when |\n| --- | --- | --- |\n");
    for code in list(&reference["codes"])? {
        let (word, meaning) = (code["word"].as_str(), code["meaning"].as_str());
        let (word, meaning) = (word.unwrap_or_default(), meaning.unwrap_or_default());
        add(&mut text, format_args!("| {} | `{word}` | {} |\n", code["number"], cell(meaning)));
    }
    text.push_str("\n## Types\n");
    let types = reference["schema"]["$defs"].as_object();
    for (name, schema) in types.ok_or_else(|| unreadable("the protocol", "it has no types"))? {
        add(&mut text, format_args!("\n### {name}\n\n{}\n", described(schema)));
        match schema["oneOf"].as_array() {
            Some(variants) => variants.iter().for_each(|variant| {
                add(&mut text, format_args!("\n{}\n", described(variant)));
                fields(variant, &mut text);
            }),
            None => fields(schema, &mut text),
        }
    }
    Ok(text)
}

fn list(value: &Value) -> Result<&Vec<Value>, Error> {
    value.as_array().ok_or_else(|| unreadable("the protocol", "a list of it is missing"))
}

/// A type with a link to its section.
fn link(name: &str) -> String {
    format!("[`{name}`](#{})", name.to_lowercase())
}

/// A table of a type's fields.
fn fields(schema: &Value, text: &mut String) {
    let Some(fields) = schema["properties"].as_object() else { return };
    text.push_str("\n| field | value | meaning |\n| --- | --- | --- |\n");
    for (name, field) in fields {
        let is_required =
            schema["required"].as_array().is_some_and(|all| all.contains(&name.as_str().into()));
        let required = if is_required { " Required." } else { "" };
        let meaning = format!("{}{required}", described(field));
        add(text, format_args!("| `{name}` | {} | {} |\n", value(field), cell(meaning.trim())));
    }
}

/// What a field holds, in words.
fn value(schema: &Value) -> String {
    if let Some(constant) = schema["const"].as_str() {
        return format!("`\"{constant}\"`");
    }
    if let Some(name) = schema["$ref"].as_str() {
        return link(name.trim_start_matches("#/$defs/"));
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let named = any.iter().find(|one| one["type"] != "null");
        return named.map_or_else(|| "any".to_owned(), |one| format!("{} or null", value(one)));
    }
    let (kind, or_null) = match &schema["type"] {
        Value::String(kind) => (kind.as_str(), ""),
        Value::Array(kinds) => (kinds.iter().find_map(Value::as_str).unwrap_or("any"), " or null"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => ("any", ""),
    };
    let words = match kind {
        "string" => "text".to_owned(),
        "integer" | "number" => "number".to_owned(),
        "boolean" => "`true` or `false`".to_owned(),
        "array" => format!("list, each {}", value(&schema["items"])),
        other => other.to_owned(),
    };
    format!("{words}{or_null}")
}

fn described(schema: &Value) -> String {
    // What links to code in its documentation is only a word here.
    schema["description"].as_str().unwrap_or_default().replace("[`", "`").replace("`]", "`")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn page_has_a_row_for_each_method_code_and_field() {
        let reference = json!({
            "version": 1,
            "limits": { "bytes_max": 9 },
            "methods": [{ "name": "a.b", "params": "Params", "result": null }],
            "codes": [{ "number": -1, "word": "no", "meaning": "It is not." }],
            "schema": { "$defs": {
                "Params": { "description": "What [`a`] takes.", "required": ["x"], "properties": {
                    "x": { "type": "string", "description": "Its x." },
                    "y": { "anyOf": [{ "$ref": "#/$defs/Other" }, { "type": "null" }], "description": "Its y." },
                } },
                "Other": { "oneOf": [{ "description": "One.", "properties": { "k": { "const": "one" } } }] },
            } },
        });
        let page = page(&reference).unwrap();
        for line in [
            "| `a.b` | [`Params`](#params) | none: a notification |",
            "| `bytes_max` | 9 |",
            "| -1 | `no` | It is not. |",
            "What `a` takes.",
            "| `x` | text | Its x. Required. |",
            "| `y` | [`Other`](#other) or null | Its y. |",
            "| `k` | `\"one\"` |  |",
        ] {
            assert!(page.lines().any(|other| other == line), "{line}\n{page}");
        }
    }
}
