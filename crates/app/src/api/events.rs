//! Events: accepting one, and showing them.

use std::borrow::Cow;
use std::sync::Arc;

use domain::causal::Origin;
use domain::delivery::{Acceptance, Authority, Delivery, MANUAL_SOURCE};
use domain::event::{Key, PAYLOAD_BYTES_MAX, Payload};
use domain::id::{EventId, IdMaker};
use domain::route::CheckpointOutcome;
use domain::store::EventFilter;
use domain::text::{DeliveryId, EventType, SourceName};
use domain::time::Timestamp;
use hyper::StatusCode;
use hyper::http::request::Parts;
use runtime::why;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::body;
use super::cloudevents;
use super::failure::Failure;
use super::query::{self, Cursor, Query};
use super::resolve;
use super::server::{Answer, Asked, json, not_that, read, require_json};
use super::wire::{AcceptedBody, EventBody, KeyBody, Page};
use crate::daemon::Daemon;
use crate::error_code::ErrorCode;

/// Bytes of a request beside the payload: names, keys and ids.
const ENVELOPE_BYTES_MAX: usize = 16 << 10;
/// The deepest nesting of a payload. Handlers parse it, and their parser has a bound of its own.
const PAYLOAD_DEPTH_MAX: usize = 120;

/// A posted Event, its texts borrowed from the request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Emit<'a> {
    #[serde(borrow)]
    pub(crate) scope: Cow<'a, str>,
    #[serde(borrow, rename = "type")]
    pub(crate) event_type: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) delivery_id: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(crate) key: Option<KeyBody>,
    #[serde(borrow, default)]
    pub(crate) work: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) occurred_at: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) payload: Option<&'a RawValue>,
}

/// Accepts an Event. It is durable when this answers: 202 for a new one, 200 for one that was accepted before.
pub(crate) async fn emit(daemon: &Arc<Daemon>, asked: Asked) -> Answer {
    let delivery = match cloudevents::mode(&asked.parts)? {
        Some(mode) => cloudevents::delivery(daemon, asked, mode).await?,
        None => posted(daemon, asked).await?,
    };
    let accepted = accept(daemon, delivery).await?;
    let mut response = json(&accepted);
    *response.status_mut() = if accepted.duplicate { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok(response)
}

/// Accepts an operator's Event. It is durable when this answers.
///
/// # Errors
/// Why it was refused, and what writing to the store answers.
pub(crate) async fn accept(daemon: &Daemon, delivery: Delivery) -> Result<AcceptedBody, Failure> {
    let acceptance = daemon.runtime().accept(delivery, Authority::Operator).await?;
    Ok(AcceptedBody {
        event: acceptance.event().to_string(),
        sequence: acceptance.sequence().number(),
        duplicate: matches!(acceptance, Acceptance::Duplicate { .. }),
    })
}

/// Reads an Event in the form of this interface.
async fn posted(daemon: &Arc<Daemon>, asked: Asked) -> Result<Delivery, Failure> {
    require_json(&asked.parts)?;
    if asked.query.text("scope").is_some() {
        return Err(Failure::bad(
            "the query parameter `scope` is for CloudEvents; put `scope` into the body",
        ));
    }
    let header = idempotency_key(&asked.parts)?;
    let bytes = body::read(asked.body, PAYLOAD_BYTES_MAX + ENVELOPE_BYTES_MAX).await?;
    let emit: Emit<'_> = serde_json::from_slice(&bytes).map_err(|error| not_that(&error))?;
    delivery(daemon, emit, header).await
}

/// The delivery id that the header of a request names.
///
/// # Errors
/// `bad_request` when it is no delivery id.
pub(crate) fn idempotency_key(parts: &Parts) -> Result<Option<DeliveryId>, Failure> {
    let Some(value) = parts.headers.get("idempotency-key") else { return Ok(None) };
    let text = value.to_str().map_err(|_source| Failure::bad("`Idempotency-Key` is not plain text"))?;
    Ok(Some(DeliveryId::new(text)?))
}

/// An Event of this interface as what an operator hands over.
///
/// # Errors
/// `bad_request`, `payload_too_large`, and `not_found` for a Work that there is not.
pub(crate) async fn delivery(
    daemon: &Daemon,
    emit: Emit<'_>,
    header: Option<DeliveryId>,
) -> Result<Delivery, Failure> {
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
    Ok(Delivery {
        id,
        source: SourceName::known(MANUAL_SOURCE),
        delivery_id,
        event_type: EventType::new(&emit.event_type)?,
        scope: emit.scope.parse()?,
        key: emit.key.as_ref().map(key).transpose()?,
        work,
        occurred_at: emit.occurred_at.map(|text| moment(&text)).transpose()?,
        payload: emit.payload.map_or_else(|| Ok(Payload::null()), |raw| checked(raw.get().as_bytes()))?,
        origin: Origin::Root,
    })
}

/// A delivery id that nobody else has: an Event's id is never made twice on one database.
pub(crate) fn fresh_delivery_id(event: EventId) -> DeliveryId {
    DeliveryId::known(&format!("fresh/{event}"))
}

pub(crate) fn key(body: &KeyBody) -> Result<Key, Failure> {
    Ok(Key { source: body.source.parse()?, external_id: body.external_id.parse()? })
}

fn moment(text: &str) -> Result<Timestamp, Failure> {
    Timestamp::parse(text).map_err(|error| Failure::bad(format!("`occurred_at`: {error}")))
}

/// JSON as a payload, as it was written: key order, number texts and repeated keys are the sender's.
///
/// # Errors
/// `payload_too_large`, and `bad_request` when it is nested too deeply.
pub(crate) fn checked(bytes: &[u8]) -> Result<Payload, Failure> {
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
    Ok(json(&find(daemon, &asked.query).await?))
}

/// The Events that a query asks for, newest first.
///
/// # Errors
/// `bad_request` when the query cannot be read, and what reading the store answers.
pub(crate) async fn find(daemon: &Daemon, query: &Query) -> Result<Page<EventBody>, Failure> {
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
    read(daemon, "events", move |tx| {
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
    .await
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
    let (event, payload) = one(daemon, asked.id()).await?;
    let payload: Option<&RawValue> =
        payload.as_ref().and_then(|payload| serde_json::from_slice(payload.as_bytes()).ok());
    Ok(json(&Shown { event, payload }))
}

/// An Event with what it led to, and its payload beside it; none when the payload was released.
///
/// # Errors
/// `not_found`, `ambiguous_id`, and what reading the store answers.
pub(crate) async fn one(daemon: &Daemon, text: &str) -> Result<(EventBody, Option<Payload>), Failure> {
    let text = text.to_owned();
    read(daemon, "event", move |tx| {
        let id = resolve::event(tx, &text)?;
        let event = tx.event(id)?.ok_or_else(|| Failure::not_found("no such Event"))?;
        let payload = tx.payload(event.sequence)?;
        let link = why::link(tx, event)?;
        let led_to = Some(why::led_to(tx, &link)?.into());
        Ok((EventBody { led_to, ..EventBody::from(&link) }, payload))
    })
    .await
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
