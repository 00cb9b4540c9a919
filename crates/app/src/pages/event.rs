//! One Event: where it came from, what became of it, what it led to, and its payload.

use askama::Template;
use bytes::Bytes;
use hyper::Response;
use hyper::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};

use super::Visit;
use super::events::{List, query};
use super::frame::{Frame, Place};
use super::html;
use crate::api::body::Body;
use crate::api::failure::Failure;
use crate::api::server::Answer;
use crate::api::wire::{EventBody, ExplainBody, LastRunBody};
use crate::api::{events, explain, replay};
use crate::view;
use crate::view::clock::Moment;
use crate::view::look::{self, Look};
use crate::view::payload::{Pretty, spelled};
use crate::view::said::{self, Part};
use crate::view::{event, run};

#[derive(Debug, Template)]
#[template(path = "event.html")]
struct Shown {
    frame: Frame,
    list: List,
    id: String,
    event_type: String,
    look: Look,
    facts: Facts,
    accepted: Moment,
    /// What became of it.
    fate: Vec<Part>,
    /// Why it is not routed yet.
    held: Option<Vec<Part>>,
    /// How often its delivery came again.
    repeats: Option<Vec<Part>>,
    parent: Option<Parent>,
    /// Whether it can be replayed.
    can_replay: bool,
    /// The Event that it repeats.
    replays: Option<String>,
    work: Option<String>,
    run: Option<Run>,
    /// Whether its Work keeps it for a run to come.
    is_pending: bool,
    led: Vec<Led>,
    payload: Option<Pretty>,
    /// Bytes of the payload, in words.
    size: String,
    command: String,
}

#[derive(Debug)]
struct Facts {
    source: String,
    scope: String,
    delivery: String,
    came: Option<String>,
    sequence: i64,
    key: Option<(String, String)>,
    addressed: Option<String>,
    occurred: Option<Moment>,
}

/// What an Event was derived from.
#[derive(Debug)]
struct Parent {
    id: String,
    /// The first of the chain, when that is another one.
    root: Option<String>,
    depth: i64,
    emitted_by: Option<String>,
}

/// The run that took it in.
#[derive(Debug)]
struct Run {
    id: String,
    look: Look,
    attempt: i64,
    at: Moment,
}

/// An Event that it led to.
#[derive(Debug)]
struct Led {
    id: String,
    event_type: String,
    at: Moment,
}

/// Shows an Event.
pub(super) async fn show(visit: &Visit) -> Answer {
    let (body, payload) = events::one(&visit.daemon, visit.asked.id()).await?;
    let list = List::read(visit, Some(&body.id)).await?;
    let held = match &body.checkpoint {
        None => Some(held(visit, &body).await),
        Some(_done) => None,
    };
    let clock = &visit.reader.clock;
    let parts = |sentence: String| said::parts(&spelled(&sentence), clock);
    let led = body.led_to.clone().unwrap_or_default();
    let can_replay = replay::is_offered(&body, payload.is_some());
    let payload = payload.as_ref().map(|payload| Pretty::new(payload.as_bytes()));
    html::page(&Shown {
        frame: Frame::read(visit, Place::Events).await?,
        list,
        look: event::look(&body),
        accepted: clock.moment(&body.accepted_at),
        fate: parts(event::fate(&body)),
        held: held.map(parts),
        repeats: event::repeats(&body).map(parts),
        parent: Parent::of(&body),
        can_replay,
        replays: body.replays.clone(),
        work: body.checkpoint.as_ref().and_then(|checkpoint| checkpoint.work.clone()),
        run: led.run.as_ref().map(|led| Run::new(led, visit)),
        is_pending: led.pending,
        led: led.events.into_iter().map(|led| Led::new(led, visit)).collect(),
        size: payload.as_ref().map(|payload| run::bytes(payload.bytes as u64)).unwrap_or_default(),
        payload,
        facts: Facts::new(&body, visit),
        command: format!("open-conduit events show {}", body.id),
        id: body.id,
        event_type: body.event_type,
    })
}

/// Why an Event is not routed yet: what routing it now would come to.
async fn held(visit: &Visit, body: &EventBody) -> String {
    let asked = ExplainBody { event: Some(body.id.clone()), ..ExplainBody::default() };
    match Box::pin(explain::explanation(&visit.daemon, asked)).await {
        Ok(mut found) => format!("If it were routed now: {}", found.sentences.pop().unwrap_or_default()),
        Err(failure) => format!("What it would do now cannot be told: {}.", failure.detail()),
    }
}

/// The payload as it was sent, to keep. It is never shown as a page of its own.
pub(super) async fn payload(visit: &Visit) -> Answer {
    let (event, payload) = events::one(&visit.daemon, visit.asked.id()).await?;
    let payload = payload.ok_or_else(|| Failure::not_found("the payload of this Event was released"))?;
    let mut response = Response::new(Body::full(Bytes::copy_from_slice(payload.as_bytes())));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    let disposition = HeaderValue::from_str(&format!("attachment; filename=\"{}.json\"", event.id));
    headers.insert(CONTENT_DISPOSITION, disposition.expect("an id is plain text"));
    Ok(response)
}

impl Facts {
    fn new(body: &EventBody, visit: &Visit) -> Self {
        let key = body.key.as_ref().map(|key| {
            let pairs = [("key_source", key.source.as_str()), ("key_external_id", key.external_id.as_str())];
            (spelled(&view::key(key)), query(&pairs))
        });
        Self {
            source: spelled(&body.source),
            scope: body.scope.clone(),
            delivery: spelled(&body.delivery_id),
            came: event::came(body),
            sequence: body.sequence,
            key,
            addressed: body.work.clone(),
            occurred: body.occurred_at.as_deref().map(|at| visit.reader.clock.moment(at)),
        }
    }
}

impl Parent {
    fn of(body: &EventBody) -> Option<Self> {
        let id = body.parent.clone()?;
        let root = Some(body.root.clone()).filter(|root| *root != id);
        Some(Self { id, root, depth: body.depth, emitted_by: body.emitted_by.clone() })
    }
}

impl Run {
    fn new(led: &LastRunBody, visit: &Visit) -> Self {
        Self {
            id: led.run.clone(),
            look: look::state(&led.state),
            attempt: led.attempt,
            at: visit.reader.clock.moment(&led.claimed_at),
        }
    }
}

impl Led {
    fn new(led: crate::api::wire::LedEventBody, visit: &Visit) -> Self {
        let at = visit.reader.clock.moment(&led.accepted_at);
        Self { id: led.event, event_type: led.event_type, at }
    }
}
