//! Configurations of drills: one scope, with the bindings, routes and entries that a drill names.

use serde_json::{Value, json};

use super::site::Site;

/// The parts of a drill's one scope.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// How many runs there may be at once.
    pub(super) concurrency: u32,
    pub(super) bindings: Vec<Value>,
    pub(super) routes: Vec<Value>,
    /// Whether webhooks are received.
    pub(super) webhooks: bool,
}

impl Parts {
    /// The whole configuration.
    pub(super) fn config(self) -> Value {
        let entries = if self.webhooks { entries() } else { json!([]) };
        json!({
            "daemon": { "api_listen": "127.0.0.1:0", "webhook_listen": "127.0.0.1:0" },
            "scopes": [{
                "name": "main",
                "settings": { "concurrency": self.concurrency },
                "secrets": { "hook": "env:DRILL_SECRET" },
                "bindings": self.bindings,
                "routes": self.routes,
                "extensions": entries,
            }],
        })
    }
}

fn entries() -> Value {
    json!([
        {
            "name": "hook",
            "type": "webhook",
            "secret_names": ["hook"],
            "config": {
                "namespace": "hook/drill",
                "type": "drill.hook",
                "delivery_id": { "field": "/id" },
                "key": { "field": "/id" },
                "verify": { "hmac": { "header": "x-signature-256", "prefix": "sha256=", "secret": "hook" } },
            },
        },
        {
            "name": "repository",
            "type": "github",
            "secret_names": ["hook"],
            "config": { "namespace": "github/drill", "webhook_secret": "hook", "forks": "accept" },
        },
    ])
}

/// A binding that runs the job with these arguments after the ledger's path.
pub(super) fn job(site: &Site, name: &str, arguments: &[&str]) -> Value {
    let mut argv = vec![
        site.programs.job.to_string_lossy().into_owned(),
        "drill-job".to_owned(),
        site.ledger().path().to_string_lossy().into_owned(),
    ];
    argv.extend(arguments.iter().map(|argument| (*argument).to_owned()));
    json!({ "name": name, "executor": "shell", "config": { "argv": argv } })
}

/// A binding whose job waits at the gate after it has written into the ledger.
pub(super) fn gated_job(site: &Site, name: &str) -> Value {
    job(site, name, &["--gate", &site.gate().to_string_lossy()])
}

/// A route that makes a Work of its own for each Event of a type; the Work owns the Event's key.
pub(super) fn fresh(event_type: &str, binding: &str) -> Value {
    route(event_type, binding, &json!({ "types": [event_type], "work": "fresh", "key": "event" }))
}

/// As [`fresh`], for Events whose keys are missing or come again.
pub(super) fn keyless(event_type: &str, binding: &str) -> Value {
    route(event_type, binding, &json!({ "types": [event_type], "work": "fresh" }))
}

/// A route that gives Events with one key to one standing Work.
pub(super) fn keyed(event_type: &str, binding: &str) -> Value {
    route(event_type, binding, &json!({ "types": [event_type], "work": "keyed" }))
}

/// A `match` route, named after what it takes.
pub(super) fn route(event_type: &str, binding: &str, config: &Value) -> Value {
    json!({ "name": event_type.replace('.', "-"), "handler": "match", "binding": binding, "config": config })
}
