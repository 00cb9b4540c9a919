//! The daemon's interface, as far as drills use it.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};

use super::http::{self, Endpoint, Request, Response};
use super::site::{SOON, Site, check};
use super::time::{Moment, moment};
use crate::error::Error;

/// The namespace of keys that drills give.
const KEY_SOURCE: &str = "drill";

/// A way to the daemon of one home. It outlives the daemon's process.
#[derive(Debug, Clone)]
pub(super) struct Api {
    socket: Endpoint,
    authorization: String,
}

impl Api {
    /// The way to a home's daemon; `None` before the first daemon has made its token.
    pub(super) fn at(home: &Path) -> Option<Self> {
        let token = fs::read_to_string(home.join("token")).ok()?;
        let authorization = format!("Bearer {}", token.trim());
        Some(Self { socket: Endpoint::Unix(home.join("conduit.sock")), authorization })
    }

    /// What its requests are let in by.
    pub(super) fn authorization(&self) -> &str {
        &self.authorization
    }

    /// Whether the daemon answers.
    pub(super) fn is_healthy(&self) -> bool {
        let request = Request { method: "GET", path: "/healthz", headers: &[], body: b"" };
        http::exchange(&self.socket, request).is_ok_and(|response| response.status == 200)
    }

    fn send(&self, method: &str, path: &str, body: &[u8]) -> io::Result<Response> {
        let headers = [("Authorization", self.authorization.as_str()), ("Content-Type", "application/json")];
        let headers = if body.is_empty() { &headers[..1] } else { &headers[..] };
        http::exchange(&self.socket, Request { method, path, headers, body })
    }

    /// What a path shows, as text.
    pub(super) fn text(&self, path: &str) -> Result<String, Error> {
        let response = self.send("GET", path, b"");
        let response = response.map_err(|error| Error::Drill(format!("GET {path}: {error}")))?;
        let text = String::from_utf8_lossy(&response.body).into_owned();
        check(response.status == 200, || format!("GET {path}: {} {text}", response.status))?;
        Ok(text)
    }

    /// What a path shows.
    pub(super) fn get(&self, path: &str) -> Result<Value, Error> {
        let text = self.text(path)?;
        serde_json::from_str(&text).map_err(|error| Error::Drill(format!("GET {path}: {error}: {text}")))
    }

    /// All rows of a list.
    pub(super) fn list(&self, path: &str) -> Result<Vec<Value>, Error> {
        let mut rows = Vec::new();
        let mut cursor = None;
        let separator = if path.contains('?') { '&' } else { '?' };
        loop {
            let next = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
            let mut page = self.get(&format!("{path}{separator}limit=200{next}"))?;
            let Value::Array(items) = page["items"].take() else {
                return Err(Error::Drill(format!("GET {path} is no list: {page}")));
            };
            rows.extend(items);
            cursor = page["next"].as_str().map(str::to_owned);
            if cursor.is_none() {
                return Ok(rows);
            }
        }
    }

    /// Posts something. An error means that what became of it is not known.
    pub(super) fn post(&self, path: &str, body: &Value) -> io::Result<Response> {
        self.send("POST", path, body.to_string().as_bytes())
    }

    /// Posts an Event of a type under a delivery id, with the id as its key.
    pub(super) fn emit(&self, event_type: &str, delivery: &str) -> io::Result<Response> {
        self.emit_with(event_type, delivery, delivery, &json!({}))
    }

    /// Posts an Event with a key and a payload.
    pub(super) fn emit_with(
        &self,
        event_type: &str,
        delivery: &str,
        key: &str,
        payload: &Value,
    ) -> io::Result<Response> {
        let event = json!({
            "scope": "main",
            "type": event_type,
            "delivery_id": delivery,
            "key": { "source": KEY_SOURCE, "external_id": key },
            "payload": payload,
        });
        self.post("/v1/events", &event)
    }

    /// Posts an Event that must be accepted.
    pub(super) fn accept(&self, event_type: &str, delivery: &str) -> Result<(), Error> {
        accepted(self.emit(event_type, delivery))
    }

    /// Posts an Event for the Work of a key, which must be accepted. Returns its id.
    pub(super) fn tell(&self, event_type: &str, delivery: &str, key: &str) -> Result<String, Error> {
        let response = self.emit_with(event_type, delivery, key, &json!({}));
        let response =
            response.map_err(|error| Error::Drill(format!("a delivery got no answer: {error}")))?;
        let answer: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        let event = answer["event"].as_str().filter(|_event| is_accepted(&response)).map(str::to_owned);
        event.ok_or_else(|| Error::Drill(format!("{delivery} was refused: {} {answer}", response.status)))
    }

    /// The Work with that key; `None` while there is none.
    pub(super) fn work_of(&self, key: &str) -> Option<Value> {
        self.list(&format!("/v1/work?key_source={KEY_SOURCE}&key_external_id={key}")).ok()?.pop()
    }

    /// Every Wait for that key, past ones too, newest first.
    pub(super) fn waits_of(&self, key: &str) -> Result<Vec<Value>, Error> {
        self.list(&format!("/v1/waits?state=all&key_source={KEY_SOURCE}&key_external_id={key}"))
    }

    /// An Event with its checkpoint.
    pub(super) fn event(&self, id: &str) -> Result<Value, Error> {
        self.get(&format!("/v1/events/{id}"))
    }

    /// How many Works wait.
    pub(super) fn waiting(&self) -> Result<usize, Error> {
        Ok(self.list("/v1/waits")?.len())
    }

    /// Waits until so many Works wait.
    pub(super) fn until_waiting(&self, site: &Site, count: usize) -> Result<(), Error> {
        site.wait(&format!("{count} Works wait"), SOON, || (self.waiting().ok()? == count).then_some(()))
    }

    /// Pauses the scope, or lets it go on.
    pub(super) fn pause_scope(&self, verb: &str) -> Result<(), Error> {
        let path = format!("/v1/scopes/main/{verb}");
        let response = self.post(&path, &json!({}));
        let response = response.map_err(|error| Error::Drill(format!("POST {path}: {error}")))?;
        check(response.status == 200, || {
            format!("POST {path}: {} {}", response.status, String::from_utf8_lossy(&response.body))
        })
    }

    /// When the daemon that answers started.
    pub(super) fn started_at(&self) -> Result<Moment, Error> {
        let starts = self.list("/v1/daemon/starts")?;
        moment(&starts.first().cloned().unwrap_or_default()["started_at"])
    }

    /// The runs of Works with that key, newest first.
    pub(super) fn runs_of(&self, key: &str) -> Result<Vec<Value>, Error> {
        self.list(&format!("/v1/runs?key_source={KEY_SOURCE}&key_external_id={key}"))
    }

    /// The one run of the Work with that key; `None` while there is none.
    pub(super) fn run_of(&self, key: &str) -> Option<Value> {
        self.runs_of(key).ok()?.pop()
    }

    /// Where webhooks are sent now.
    pub(super) fn webhooks(&self) -> Result<SocketAddr, Error> {
        let status = self.get("/v1/status")?;
        let address = status["webhook_address"].as_str().and_then(|address| address.parse().ok());
        address.ok_or_else(|| Error::Drill(format!("no webhook address: {status}")))
    }

    /// The sum of a counter over its labels, or over those that have the text `label`.
    pub(super) fn counter(&self, name: &str, label: &str) -> Result<u64, Error> {
        let text = self.text("/metrics")?;
        let prefix = format!("open_conduit_{name}_total");
        let values = text.lines().filter_map(|line| {
            let rest = line.strip_prefix(prefix.as_str())?;
            let (labels, value) = rest.rsplit_once(' ')?;
            labels.contains(label).then(|| value.parse::<u64>().ok())?
        });
        Ok(values.sum())
    }
}

/// Fails unless a delivery was accepted.
pub(super) fn accepted(response: io::Result<Response>) -> Result<(), Error> {
    let response = response.map_err(|error| Error::Drill(format!("a delivery got no answer: {error}")))?;
    check(is_accepted(&response), || {
        format!("a delivery was refused: {} {}", response.status, String::from_utf8_lossy(&response.body))
    })
}

/// Whether an answer says that a delivery is durable.
pub(super) const fn is_accepted(response: &Response) -> bool {
    matches!(response.status, 200..=299)
}

/// The code of a refusal.
pub(super) fn code(response: &Response) -> Option<String> {
    let problem: Value = serde_json::from_slice(&response.body).ok()?;
    problem["code"].as_str().map(str::to_owned)
}

/// Whether a run has ended.
pub(super) fn has_ended(run: &Value) -> bool {
    matches!(run["state"].as_str(), Some("completed" | "handoff" | "failed" | "cancelled" | "waiting"))
}
