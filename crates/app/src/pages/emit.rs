//! Sending an Event by a form, and what such a form holds.

use std::borrow::Cow;
use std::fmt::Write as _;

use askama::Template;
use domain::event::Payload;
use domain::id::IdMaker;
use hyper::StatusCode;
use serde_json::value::RawValue;

use super::Visit;
use super::form::Form;
use super::frame::{Frame, Place};
use super::html;
use crate::api::events::{self, Emit};
use crate::api::failure::Failure;
use crate::api::query::Query;
use crate::api::server::Answer;
use crate::api::wire::{EventBody, KeyBody};
use crate::view::payload::{escaped, quoted};

/// What a form begins with.
pub(super) const QUERY: [&str; 6] = ["event", "scope", "type", "key_source", "key_external_id", "work"];
/// What it sends.
const FIELDS: [&str; 7] =
    ["delivery_id", "scope", "type", "key_source", "key_external_id", "work", "payload"];
/// The largest payload that a form begins with. A form sends at most 64 KiB, and what is not plain text takes three
/// bytes for one.
const PREFILL_BYTES_MAX: usize = 20 << 10;

#[derive(Debug, Template)]
#[template(path = "emit.html")]
struct Page {
    frame: Frame,
    wrong: Option<Wrong>,
    event: Described,
    delivery_id: String,
    command: Option<String>,
}

/// An Event as a form describes it.
#[derive(Debug, Default)]
pub(super) struct Described {
    pub(super) scope: String,
    pub(super) event_type: String,
    pub(super) key_source: String,
    pub(super) key_external_id: String,
    pub(super) work: String,
    pub(super) payload: String,
    /// Whether a payload was left out, since it is too large for a form.
    pub(super) is_cut: bool,
}

/// Why a form was not taken.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) detail: String,
    pub(super) code: &'static str,
    /// What is wrong with a configuration: where, and what.
    pub(super) problems: Vec<(String, String)>,
}

/// Shows the form.
pub(super) async fn form(visit: &Visit) -> Answer {
    let query = &visit.asked.query;
    let event = match query.text("event") {
        Some(id) => {
            let (event, payload) = events::one(&visit.daemon, id).await?;
            Described::like(&event, payload.as_ref())
        }
        None => Described::asked(query),
    };
    let delivery_id = events::fresh_delivery_id(visit.daemon.store().ids(IdMaker::event)).to_string();
    page(visit, event, delivery_id, None).await
}

/// Sends what the form holds. Sending it twice sends it once.
pub(super) async fn send(visit: &Visit) -> Answer {
    let form = Form::read(visit, &FIELDS)?;
    let delivery_id = form.need("delivery_id")?.to_owned();
    let event = Described::sent(&form);
    match accept(visit, &event, &delivery_id).await {
        Ok(id) => Ok(html::see(&format!("/events/{id}"))),
        Err(failure) => page(visit, event, delivery_id, Some(failure)).await,
    }
}

async fn accept(visit: &Visit, event: &Described, delivery_id: &str) -> Result<String, Failure> {
    let emit = Emit {
        scope: Cow::Borrowed(event.scope.trim()),
        event_type: Cow::Borrowed(event.event_type.trim()),
        delivery_id: Some(Cow::Borrowed(delivery_id)),
        key: event.key()?,
        work: event.work().map(Cow::Borrowed),
        occurred_at: None,
        payload: event.payload()?,
    };
    let delivery = events::delivery(&visit.daemon, emit, None).await?;
    Ok(events::accept(&visit.daemon, delivery).await?.event)
}

async fn page(visit: &Visit, event: Described, delivery_id: String, failure: Option<Failure>) -> Answer {
    let status = failure.as_ref().map_or(StatusCode::OK, |failure| failure.code().status());
    let command = event.command("emit", &[("--delivery-id", &delivery_id)]);
    let page = Page {
        frame: Frame::read(visit, Place::Events).await?,
        wrong: failure.as_ref().map(Wrong::of),
        event,
        delivery_id,
        command,
    };
    html::with_status(status, &page)
}

impl Wrong {
    pub(super) fn of(failure: &Failure) -> Self {
        let place = |problem: &crate::api::wire::ProblemItem| match (problem.path.as_str(), problem.line) {
            ("", None) => "The text".to_owned(),
            ("", Some(line)) => format!("Line {line}"),
            (path, None) => path.to_owned(),
            (path, Some(line)) => format!("{path}, line {line}"),
        };
        let problems = failure.problems().iter();
        Self {
            detail: super::failed::sentence(failure.detail()),
            code: failure.code().as_str(),
            problems: problems.map(|problem| (place(problem), problem.message.clone())).collect(),
        }
    }
}

impl Described {
    /// One that is like an accepted Event.
    pub(super) fn like(event: &EventBody, payload: Option<&Payload>) -> Self {
        let text = payload.map(|payload| escaped(&String::from_utf8_lossy(payload.as_bytes())));
        let text = text.filter(|text| text != "null").unwrap_or_default();
        let is_cut = text.len() > PREFILL_BYTES_MAX;
        let key = event.key.clone();
        let (key_source, key_external_id) = key.map(|key| (key.source, key.external_id)).unwrap_or_default();
        Self {
            scope: event.scope.clone(),
            event_type: event.event_type.clone(),
            key_source,
            key_external_id,
            work: event.work.clone().unwrap_or_default(),
            payload: if is_cut { String::new() } else { text },
            is_cut,
        }
    }

    /// One that a link begins.
    pub(super) fn asked(query: &Query) -> Self {
        let text = |name: &str| query.text(name).unwrap_or_default().to_owned();
        Self::of(text)
    }

    /// One that a form sends. A browser ends each line with two letters, which nobody typed.
    pub(super) fn sent(form: &Form) -> Self {
        Self::of(|name: &str| form.text(name).unwrap_or_default().replace("\r\n", "\n"))
    }

    fn of(text: impl Fn(&str) -> String) -> Self {
        Self {
            scope: text("scope"),
            event_type: text("type"),
            key_source: text("key_source"),
            key_external_id: text("key_external_id"),
            work: text("work"),
            payload: text("payload"),
            is_cut: false,
        }
    }

    /// Its key, when it has one.
    ///
    /// # Errors
    /// `bad_request` for half a key.
    pub(super) fn key(&self) -> Result<Option<KeyBody>, Failure> {
        match (self.key_source.trim(), self.key_external_id.trim()) {
            ("", "") => Ok(None),
            ("", _) | (_, "") => Err(Failure::bad("a key is both its namespace and its identifier")),
            (source, external_id) => {
                Ok(Some(KeyBody { source: source.to_owned(), external_id: external_id.to_owned() }))
            }
        }
    }

    /// The Work it is addressed to.
    pub(super) fn work(&self) -> Option<&str> {
        Some(self.work.trim()).filter(|work| !work.is_empty())
    }

    /// The payload as it was typed.
    ///
    /// # Errors
    /// `bad_request` when it is not JSON. The parser's own words may quote it, so only the place is told.
    pub(super) fn payload(&self) -> Result<Option<&RawValue>, Failure> {
        if self.payload.trim().is_empty() {
            return Ok(None);
        }
        serde_json::from_str(&self.payload).map(Some).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            Failure::bad(format!(
                "the payload is not JSON, at line {line}, column {column}; a text alone needs quotes around it"
            ))
        })
    }

    /// The command that does the same, with the payload in a file. None when a part of it could not be seen.
    pub(super) fn command(&self, verb: &str, more: &[(&str, &str)]) -> Option<String> {
        let or = |text: &str, what: &str| if text.is_empty() { what.to_owned() } else { text.to_owned() };
        let (scope, event_type) = (or(self.scope.trim(), "SCOPE"), or(self.event_type.trim(), "TYPE"));
        let has_payload = self.is_cut || !self.payload.trim().is_empty();
        let options = [
            ("--scope", scope.as_str()),
            ("--type", event_type.as_str()),
            ("--key-source", self.key_source.trim()),
            ("--key-external-id", self.key_external_id.trim()),
            ("--work", self.work.trim()),
            ("--payload", if has_payload { "payload.json" } else { "" }),
        ];
        let mut command = format!("open-conduit events {verb}");
        for (name, value) in options.iter().chain(more).filter(|(_name, value)| !value.is_empty()) {
            // What begins like an option is not taken for one when it stands behind a sign.
            let sign = if value.starts_with('-') { '=' } else { ' ' };
            write!(command, " {name}{sign}{}", quoted(value)?).expect("a text can be written to");
        }
        Some(command)
    }
}
