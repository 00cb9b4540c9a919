//! An imported crontab as a part of a configuration: a `schedule` entry, a binding and a route for each job.

use std::fmt::Write as _;

use extension::ScopeName;
use serde_json::{Map, Value, json};

use super::{Imported, ImportedJob};
use crate::job::ENTRY_TYPE;
use crate::route::HANDLER;

/// The name of the entry.
const ENTRY: &str = "jobs";

/// The part of a scope, as JSON has it.
pub fn value(imported: &Imported, scope: &ScopeName) -> Value {
    let jobs: Vec<Value> = imported.jobs.iter().map(job).collect();
    let bindings: Vec<Value> = imported
        .jobs
        .iter()
        .map(|job| json!({ "name": job.name.as_str(), "executor": "shell", "config": binding(job) }))
        .collect();
    let routes: Vec<Value> = imported
        .jobs
        .iter()
        .map(|job| {
            json!({
                "name": format!("{ENTRY}-{}", job.name), "handler": HANDLER, "binding": job.name.as_str(),
                "active_policy": "queue", "config": { "jobs": [job.name.as_str()] }
            })
        })
        .collect();
    let entry = json!({
        "name": ENTRY, "type": ENTRY_TYPE,
        "config": { "namespace": format!("schedule/{scope}"), "jobs": jobs }
    });
    json!({ "bindings": bindings, "extensions": [entry], "routes": routes })
}

fn job(job: &ImportedJob) -> Value {
    let mut table = Map::new();
    table.insert("name".to_owned(), job.name.as_str().into());
    table.insert("cron".to_owned(), job.cron.as_str().into());
    if job.zone != crate::zone::Zone::utc() {
        table.insert("time_zone".to_owned(), job.zone.name().into());
    }
    Value::Object(table)
}

fn binding(job: &ImportedJob) -> Value {
    let mut table = Map::new();
    match &job.shell {
        Some(shell) => table.insert("argv".to_owned(), json!([shell, "-c", job.command])),
        None => table.insert("command".to_owned(), job.command.as_str().into()),
    };
    if !job.env.is_empty() {
        table.insert("env".to_owned(), json!(job.env));
    }
    Value::Object(table)
}

/// The same as TOML, to stand below `[[scopes]]` of a `conduit.toml`.
pub fn toml(imported: &Imported, scope: &ScopeName) -> String {
    let value = value(imported, scope);
    let mut text = String::new();
    for (list, items) in value.as_object().expect("it was made as an object") {
        for item in items.as_array().expect("each of its parts is a list") {
            add(&mut text, format_args!("[[scopes.{list}]]\n"));
            let table = item.as_object().expect("a part is an object");
            for (key, value) in table.iter().filter(|(key, _value)| list != "extensions" || *key != "config")
            {
                add(&mut text, format_args!("{key} = {}\n", inline(value)));
            }
            if list == "extensions" {
                entry(&table["config"], &mut text);
            }
            text.push('\n');
        }
    }
    text
}

/// The entry's own part, a job on each line.
fn entry(config: &Value, text: &mut String) {
    add(
        text,
        format_args!(
            "\n[scopes.extensions.config]\nnamespace = {}\njobs = [\n",
            inline(&config["namespace"])
        ),
    );
    for job in config["jobs"].as_array().into_iter().flatten() {
        add(text, format_args!("  {},\n", inline(job)));
    }
    text.push_str("]\n");
}

/// A value on one line. A JSON text is a TOML text, but for a delete character.
fn inline(value: &Value) -> String {
    match value {
        Value::Object(table) => {
            let entries: Vec<String> =
                table.iter().map(|(key, value)| format!("{} = {}", bare(key), inline(value))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        Value::Array(list) => format!("[{}]", list.iter().map(inline).collect::<Vec<_>>().join(", ")),
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            plain.to_string().replace('\u{7f}', "\\u007f")
        }
    }
}

/// A key without quotes where it may go without.
fn bare(key: &str) -> String {
    let is_bare = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if is_bare { key.to_owned() } else { Value::from(key).to_string() }
}

fn add(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("a string takes whatever is written");
}
