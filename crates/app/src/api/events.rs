//! Events: accepting one, showing them, and saying what one would do.

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

use domain::causal::Origin;
use domain::delivery::{Acceptance, Authority, Delivery, MANUAL_SOURCE};
use domain::event::{Key, PAYLOAD_BYTES_MAX, Payload};
use domain::id::{EventId, Generation, IdMaker};
use domain::route::CheckpointOutcome;
use domain::store::EventFilter;
use domain::text::{DeliveryId, EventType, SourceName};
use domain::time::Timestamp;
use hyper::StatusCode;
use runtime::ActiveGeneration;
use runtime::explain::{Answered, Explanation, Fate, Subject};
use runtime::why;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::body;
use super::failure::Failure;
use super::query::{self, Cursor};
use super::resolve;
use super::server::{Answer, Asked, json, not_that, read, require_json};
use super::story;
use super::wire::{AcceptedBody, AskedBody, EventBody, ExplainBody, ExplanationBody, KeyBody, Page};
use crate::daemon::Daemon;
use crate::error_code::ErrorCode;

/// Bytes of a request beside the payload: names, keys and ids.
const ENVELOPE_BYTES_MAX: usize = 16 << 10;
/// The deepest nesting of a payload. Handlers parse it, and their parser has a bound of its own.
const PAYLOAD_DEPTH_MAX: usize = 120;

/// A posted Event, its texts borrowed from the request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Emit<'a> {
    #[serde(borrow)]
    scope: Cow<'a, str>,
    #[serde(borrow, rename = "type")]
    event_type: Cow<'a, str>,
    #[serde(borrow, default)]
    delivery_id: Option<Cow<'a, str>>,
    #[serde(default)]
    key: Option<KeyBody>,
    #[serde(borrow, default)]
    work: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    occurred_at: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    payload: Option<&'a RawValue>,
}

/// Accepts an Event. It is durable when this answers: 202 for a new one, 200 for one that was accepted before.
pub(crate) async fn emit(daemon: &Arc<Daemon>, asked: Asked) -> Answer {
    require_json(&asked.parts)?;
    let header = match asked.parts.headers.get("idempotency-key") {
        Some(value) => {
            let text =
                value.to_str().map_err(|_source| Failure::bad("`Idempotency-Key` is not plain text"))?;
            Some(DeliveryId::new(text)?)
        }
        None => None,
    };
    let bytes = body::read(asked.body, PAYLOAD_BYTES_MAX + ENVELOPE_BYTES_MAX).await?;
    let emit: Emit<'_> = serde_json::from_slice(&bytes).map_err(|error| not_that(&error))?;
    let id = daemon.store().ids(IdMaker::event);
    let delivery_id = match (&emit.delivery_id, header) {
        (Some(text), _) => DeliveryId::new(text)?,
        (None, Some(header)) => header,
        (None, None) => fresh_delivery_id(id),
    };
    let work = match emit.work {
        Some(text) => {
            let text = text.into_owned();
            Some(read(daemon, "work", move |tx| resolve::work(tx, &text)).await?)
        }
        None => None,
    };
    let delivery = Delivery {
        id,
        source: SourceName::known(MANUAL_SOURCE),
        delivery_id,
        event_type: EventType::new(&emit.event_type)?,
        scope: emit.scope.parse()?,
        key: emit.key.as_ref().map(key).transpose()?,
        work,
        occurred_at: emit.occurred_at.map(|text| moment(&text)).transpose()?,
        payload: payload(emit.payload)?,
        origin: Origin::Root,
    };
    let acceptance = daemon.runtime().accept(delivery, Authority::Operator).await?;
    let duplicate = matches!(acceptance, Acceptance::Duplicate { .. });
    let mut response = json(&AcceptedBody {
        event: acceptance.event().to_string(),
        sequence: acceptance.sequence().number(),
        duplicate,
    });
    *response.status_mut() = if duplicate { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok(response)
}

/// A delivery id that nobody else has: an Event's id is never made twice on one database.
fn fresh_delivery_id(event: EventId) -> DeliveryId {
    DeliveryId::known(&format!("fresh/{event}"))
}

fn key(body: &KeyBody) -> Result<Key, Failure> {
    Ok(Key { source: body.source.parse()?, external_id: body.external_id.parse()? })
}

fn moment(text: &str) -> Result<Timestamp, Failure> {
    Timestamp::parse(text).map_err(|error| Failure::bad(format!("`occurred_at`: {error}")))
}

/// The payload as it was written: key order, number texts and repeated keys are the sender's.
fn payload(raw: Option<&RawValue>) -> Result<Payload, Failure> {
    let Some(raw) = raw else { return Ok(Payload::null()) };
    let bytes = raw.get().as_bytes();
    if bytes.len() > PAYLOAD_BYTES_MAX {
        let detail = format!("the payload may have at most {PAYLOAD_BYTES_MAX} bytes; nothing was stored");
        return Err(Failure::new(ErrorCode::PayloadTooLarge, detail));
    }
    if depth(bytes) > PAYLOAD_DEPTH_MAX {
        return Err(Failure::bad(format!("the payload is nested more than {PAYLOAD_DEPTH_MAX} levels deep")));
    }
    Ok(Payload::stored(bytes))
}

/// How deep valid JSON is nested.
fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_text, mut escaped) = (false, false);
    for byte in json {
        if in_text {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_text = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_text = true,
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth -= 1,
            _ => {}
        }
    }
    deepest
}

/// Lists Events, newest first.
pub(crate) async fn list(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    let query = &asked.query;
    let limit = query.limit()?;
    let mut filter = EventFilter {
        scope: query.parsed("scope")?,
        event_type: query.parsed("type")?,
        source: query.parsed("source")?,
        key: query.key()?,
        work: None,
        outcome: query.text("outcome").map(outcome).transpose()?,
        before: query.cursor(Cursor::Events)?.map(domain::id::Sequence::from_number),
    };
    let work = query.text("work").map(str::to_owned);
    let page = read(daemon, "events", move |tx| {
        if let Some(work) = work {
            filter.work = Some(resolve::work(tx, &work)?);
        }
        let events = tx.events(&filter, limit)?;
        let next = events.last().filter(|_| events.len() == limit as usize);
        let next = next.map(|event| query::cursor(Cursor::Events, event.sequence.number()));
        let mut items = Vec::with_capacity(events.len());
        for event in events {
            items.push(EventBody::from(&why::link(tx, event)?));
        }
        Ok(Page { items, next })
    })
    .await?;
    Ok(json(&page))
}

fn outcome(word: &str) -> Result<CheckpointOutcome, Failure> {
    let found = CheckpointOutcome::ALL.into_iter().find(|outcome| outcome.as_str() == word);
    found.ok_or_else(|| {
        let known: Vec<&str> = CheckpointOutcome::ALL.iter().map(|outcome| outcome.as_str()).collect();
        Failure::bad(format!("`outcome` is one of {}", known.join(", ")))
    })
}

/// An Event with its payload as it was written.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    event: EventBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a RawValue>,
}

/// Shows an Event with its payload.
pub(crate) async fn show(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    let id = asked.id().to_owned();
    let (event, payload) = read(daemon, "event", move |tx| {
        let id = resolve::event(tx, &id)?;
        let event = tx.event(id)?.ok_or_else(|| Failure::not_found("no such Event"))?;
        let payload = tx.payload(event.sequence)?;
        Ok((EventBody::from(&why::link(tx, event)?), payload))
    })
    .await?;
    let payload: Option<&RawValue> =
        payload.as_ref().and_then(|payload| serde_json::from_slice(payload.as_bytes()).ok());
    Ok(json(&Shown { event, payload }))
}

/// Says what an Event would do, against the generation in force or a proposed configuration. No effect.
pub(crate) async fn explain(daemon: &Arc<Daemon>, asked: Asked) -> Answer {
    let body: ExplainBody = asked.json().await?;
    let (active, generation) = match &body.config {
        None => {
            let active = daemon.runtime().generations().active();
            let number = active.number.number();
            (active, Some(number))
        }
        Some(text) => (Arc::new(proposed(daemon, text, body.format.as_deref())?), None),
    };
    let subject = subject(daemon, body).await?;
    let explanation = daemon.runtime().explain(&active, subject).await?;
    let explanation = explanation.ok_or_else(|| Failure::not_found("no such Event"))?;
    Ok(json(&explained(&explanation, generation)))
}

fn proposed(daemon: &Daemon, text: &str, format: Option<&str>) -> Result<ActiveGeneration, Failure> {
    let format = super::config::format(format)?;
    let loaded = crate::config::load(text, format, daemon.extensions()).map_err(Failure::config)?;
    let number = Generation::from_number(0);
    Ok(ActiveGeneration::prepare(number, loaded.scopes, daemon.runtime().registry())?)
}

async fn subject(daemon: &Arc<Daemon>, body: ExplainBody) -> Result<Subject, Failure> {
    if let Some(event) = body.event {
        if body.scope.is_some() || body.event_type.is_some() || body.payload.is_some() || body.key.is_some() {
            return Err(Failure::bad("give either the id of an accepted Event or the fields of one"));
        }
        let id: EventId = read(daemon, "event", move |tx| resolve::event(tx, &event)).await?;
        return Ok(Subject::Accepted(id));
    }
    let (Some(scope), Some(event_type)) = (body.scope, body.event_type) else {
        return Err(Failure::bad("give `event`, or both `scope` and `type`"));
    };
    let work = match body.work {
        Some(text) => Some(read(daemon, "work", move |tx| resolve::work(tx, &text)).await?),
        None => None,
    };
    let payload = body.payload.as_ref().map_or_else(|| "null".to_owned(), ToString::to_string);
    let payload = Payload::new(payload.into_bytes())
        .map_err(|error| Failure::new(ErrorCode::PayloadTooLarge, error.to_string()))?;
    let id = daemon.store().ids(IdMaker::event);
    Ok(Subject::Described(Box::new(Delivery {
        id,
        source: SourceName::new(body.source.as_deref().unwrap_or(MANUAL_SOURCE))?,
        delivery_id: fresh_delivery_id(id),
        event_type: EventType::from_str(&event_type)?,
        scope: scope.parse()?,
        key: body.key.as_ref().map(key).transpose()?,
        work,
        occurred_at: None,
        payload,
        origin: Origin::Root,
    })))
}

fn explained(explanation: &Explanation, generation: Option<i64>) -> ExplanationBody {
    let mut body = ExplanationBody {
        generation,
        outcome: explanation.fate.as_str().to_owned(),
        route: explanation.route.as_ref().map(|route| route.route.to_string()),
        binding: explanation.route.as_ref().and_then(|route| route.binding.as_ref()).map(ToString::to_string),
        policy: explanation.route.as_ref().map(|route| route.policy.as_str().to_owned()),
        work: None,
        creates: false,
        keys: Vec::new(),
        code: None,
        reason: None,
        asked: Vec::new(),
        sentences: story::of_explanation(explanation),
    };
    match &explanation.fate {
        Fate::Unmatched => {}
        Fate::Waits { earlier } => {
            body.reason = Some(format!("the Event with sequence {earlier} goes first"));
        }
        Fate::Held { code, reason } | Fate::Failed { code, reason } | Fate::Refused { code, reason } => {
            body.code = Some(code.to_string());
            body.reason = Some(reason.clone());
        }
        Fate::Decided { work, creates, keys, because, .. } => {
            body.work = work.filter(|_| !creates).map(|work| work.to_string());
            body.creates = *creates;
            body.keys = keys.iter().map(KeyBody::from).collect();
            if let Some((code, reason)) = because {
                body.code = Some(code.to_string());
                body.reason = Some(reason.clone());
            }
        }
    }
    body.asked = explanation.asked.iter().map(asked_body).collect();
    body
}

fn asked_body(asked: &runtime::explain::Asked) -> AskedBody {
    let answer = match asked.answer {
        Answered::NoMatch => "no_match",
        Answered::Matched => "matched",
        Answered::Failed => "failed",
        Answered::NotAsked => "not_asked",
    };
    AskedBody {
        route: asked.route.to_string(),
        handler: asked.handler.to_string(),
        takes: asked.takes.clone(),
        answer: answer.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::depth;

    #[test]
    fn depth_counts_brackets_outside_texts() {
        assert_eq!(depth(b"1"), 0);
        assert_eq!(depth(br#"{"a":[1,{"b":"[[[\"[["}]}"#), 3);
        assert_eq!(depth(br#"["\\",[]]"#), 2);
    }
}
