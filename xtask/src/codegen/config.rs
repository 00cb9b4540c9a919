//! The reference of the configuration file, from its JSON Schema: a section for each table of the file, under
//! the heading that the table has in TOML.

use serde_json::{Map, Value};

use super::{MARK, add, cell, unreadable};
use crate::error::Error;

const INTRODUCTION: &str = "\
`conduit.toml` or `conduit.json` in the home, with the same keys; JSON may have comments. A key that is not
listed here is an error. What stands under `config` belongs to a handler, an executor or an entry and is
described in [extensions](extensions.md). [`conduit.schema.json`](conduit.schema.json) is the same for editors.

Editing the file changes nothing until `open-conduit config apply`.
";

/// The page.
pub(super) fn page(schema: &Value) -> Result<String, Error> {
    let mut text = format!("# Configuration\n\n{MARK}\n\n{INTRODUCTION}");
    let root = Table { heading: String::new(), path: String::new(), schema };
    let mut tables = vec![root];
    while !tables.is_empty() {
        let table = tables.remove(0);
        if !table.heading.is_empty() {
            add(&mut text, format_args!("\n## `{}`\n\n{}\n", table.heading, description(table.schema)));
        }
        let below = table.write(schema, &mut text)?;
        tables.splice(0..0, below);
    }
    Ok(text)
}

/// A table of the file.
struct Table<'a> {
    /// As TOML has it.
    heading: String,
    /// The same without brackets.
    path: String,
    schema: &'a Value,
}

impl Table<'_> {
    /// Writes the table's keys, and returns the tables that stand below it.
    fn write<'a>(&self, root: &'a Value, text: &mut String) -> Result<Vec<Table<'a>>, Error> {
        let keys = self.schema["properties"].as_object();
        let keys = keys.ok_or_else(|| unreadable("the schema", format!("`{}` has no keys", self.path)))?;
        let mut below = Vec::new();
        text.push_str("\n| key | value | meaning |\n| --- | --- | --- |\n");
        for (name, schema) in keys {
            let path = if self.path.is_empty() { name.clone() } else { format!("{}.{name}", self.path) };
            let value = if let Some(target) = referred(root, schema) {
                let heading = format!("[{path}]");
                below.push(Table { heading: heading.clone(), path, schema: target });
                format!("table `{heading}`")
            } else if let Some(target) = referred(root, &schema["items"]) {
                let heading = format!("[[{path}]]");
                below.push(Table { heading: heading.clone(), path, schema: target });
                format!("tables `{heading}`")
            } else {
                value(schema)?
            };
            let required =
                self.schema["required"].as_array().is_some_and(|all| all.contains(&name.as_str().into()));
            let required = if required { " Required." } else { "" };
            let meaning = cell(&description(schema));
            add(text, format_args!("| `{name}` | {value} | {meaning}{required} |\n"));
        }
        Ok(below)
    }
}

/// The definition that a schema refers to.
fn referred<'a>(root: &'a Value, schema: &Value) -> Option<&'a Value> {
    root.pointer(schema["$ref"].as_str()?.strip_prefix('#')?)
}

/// What a key may hold, in words.
fn value(schema: &Value) -> Result<String, Error> {
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> =
            words.iter().filter_map(Value::as_str).map(|word| format!("`{word}`")).collect();
        return Ok(words.join(" or "));
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        Value::String(kind) => Some(kind.as_str()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    };
    let words = match kind {
        None => "any".to_owned(),
        Some("string") => "text".to_owned(),
        Some("boolean") => "`true` or `false`".to_owned(),
        Some("integer" | "number") => number(schema.as_object()),
        Some("array") => format!("list, each {}", value(&schema["items"])?),
        Some("object") => format!("table, each {}", value(&schema["additionalProperties"])?),
        Some(other) => return Err(unreadable("the schema", format!("it has the type `{other}`"))),
    };
    Ok(words)
}

fn number(schema: Option<&Map<String, Value>>) -> String {
    let bound = |name: &str| schema.and_then(|schema| schema.get(name)).and_then(Value::as_u64);
    match (bound("minimum"), bound("maximum")) {
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (least, most) => {
            let least = least.map(|least| format!(" from {least}")).unwrap_or_default();
            let most = most.map(|most| format!(" up to {most}")).unwrap_or_default();
            format!("number{least}{most}")
        }
    }
}

fn description(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn page_has_a_section_for_each_table() {
        let schema = json!({
            "properties": { "scopes": { "type": "array", "items": { "$ref": "#/$defs/Scope" }, "description": "All." } },
            "$defs": {
                "Scope": {
                    "description": "A scope.",
                    "required": ["name"],
                    "properties": {
                        "name": { "type": "string", "description": "Its\nname." },
                        "settings": { "$ref": "#/$defs/Settings", "description": "How." },
                        "policy": { "type": ["string", "null"], "enum": ["queue", "drop", null] },
                    },
                },
                "Settings": { "properties": { "limit": { "type": ["integer", "null"], "minimum": 1, "maximum": 9 } } },
            },
        });
        let page = page(&schema).unwrap();
        for line in [
            "| `scopes` | tables `[[scopes]]` | All. |",
            "## `[[scopes]]`",
            "| `name` | text | Its name. Required. |",
            "| `settings` | table `[scopes.settings]` | How. |",
            "| `policy` | `queue` or `drop` |  |",
            "## `[scopes.settings]`",
            "| `limit` | 1 to 9 |  |",
        ] {
            assert!(page.lines().any(|other| other == line), "{line}\n{page}");
        }
    }

    #[test]
    fn value_refuses_what_it_has_no_words_for() {
        assert!(value(&json!({ "type": "tuple" })).is_err());
        assert_eq!(
            value(&json!({ "type": "array", "items": { "type": "string" } })).unwrap(),
            "list, each text"
        );
    }
}
