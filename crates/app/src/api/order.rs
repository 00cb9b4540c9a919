//! Orders of an operator to the run of a Work: to end, or to take something in.

use std::sync::Arc;

use domain::delivery::{AcceptRefusal, Acceptance};
use domain::id::{IdMaker, WorkId};
use domain::text::{DeliveryId, EventType};
use hyper::{Response, StatusCode};
use runtime::{Message, Ordered};

use super::body::Body;
use super::events;
use super::failure::Failure;
use super::resolve;
use super::server::{Answer, Asked, json, read};
use super::wire::{AgainBody, InjectBody, OrderedBody};
use crate::daemon::Daemon;
use crate::error_code::ErrorCode;

/// Interrupts the live run of a Work: 202 for a new order, 200 for one that was given before.
pub(crate) async fn interrupt(daemon: &Arc<Daemon>, asked: Asked) -> Answer {
    let id = asked.id().to_owned();
    let header = events::idempotency_key(&asked.parts)?;
    let body: AgainBody = asked.json_or_empty().await?;
    let delivery_id = named(body.delivery_id.as_deref(), header)?;
    Ok(answered(&end(daemon, &id, delivery_id).await?))
}

/// Gives the live run of a Work something to take in: 202 for a new order, 200 for one that was given before.
pub(crate) async fn inject(daemon: &Arc<Daemon>, asked: Asked) -> Answer {
    let id = asked.id().to_owned();
    let header = events::idempotency_key(&asked.parts)?;
    let body: InjectBody = asked.json_or_empty().await?;
    let delivery_id = named(body.delivery_id.as_deref(), header)?;
    Ok(answered(&give(daemon, &id, &body, delivery_id).await?))
}

fn named(body: Option<&str>, header: Option<DeliveryId>) -> Result<Option<DeliveryId>, Failure> {
    Ok(body.map(DeliveryId::new).transpose()?.or(header))
}

fn answered(ordered: &OrderedBody) -> Response<Body> {
    let mut response = json(ordered);
    *response.status_mut() = if ordered.duplicate { StatusCode::OK } else { StatusCode::ACCEPTED };
    response
}

/// Orders the live run of a Work to end. The Work stays, with its pending input. The same delivery id orders once.
///
/// # Errors
/// `no_live_run`, `unsupported_control`, `terminal_work`, `not_found`, `ambiguous_id`, and what writing to the store
/// answers.
pub(crate) async fn end(
    daemon: &Daemon,
    text: &str,
    delivery_id: Option<DeliveryId>,
) -> Result<OrderedBody, Failure> {
    let id = work(daemon, text).await?;
    let ordered = daemon.runtime().interrupt(id, or_fresh(daemon, delivery_id)).await?;
    tracing::info!(work = %id, event = %ordered.acceptance.event(), "an operator interrupted a run");
    Ok(told(id, ordered))
}

/// Gives the live run of a Work an Event. The same delivery id gives it once.
///
/// # Errors
/// As [`end`], and `bad_request`, `reserved_type` or `payload_too_large`.
pub(crate) async fn give(
    daemon: &Daemon,
    text: &str,
    asked: &InjectBody,
    delivery_id: Option<DeliveryId>,
) -> Result<OrderedBody, Failure> {
    let event_type = EventType::new(asked.event_type.as_deref().unwrap_or(InjectBody::TYPE))?;
    if event_type.is_core() {
        return Err(Failure::new(ErrorCode::ReservedType, AcceptRefusal::ReservedType.to_string()));
    }
    let payload = asked.payload();
    let payload =
        payload.ok_or_else(|| Failure::new(ErrorCode::PayloadTooLarge, "the payload is too large"))?;
    let id = work(daemon, text).await?;
    let message = Message { event_type, payload };
    let ordered = daemon.runtime().inject(id, message, or_fresh(daemon, delivery_id)).await?;
    tracing::info!(work = %id, event = %ordered.acceptance.event(), "an operator gave a run an event");
    Ok(told(id, ordered))
}

async fn work(daemon: &Daemon, text: &str) -> Result<WorkId, Failure> {
    let text = text.to_owned();
    read(daemon, "work", move |tx| resolve::work(tx, &text)).await
}

fn or_fresh(daemon: &Daemon, delivery_id: Option<DeliveryId>) -> DeliveryId {
    delivery_id.unwrap_or_else(|| events::fresh_delivery_id(daemon.store().ids(IdMaker::event)))
}

fn told(work: WorkId, ordered: Ordered) -> OrderedBody {
    OrderedBody {
        event: ordered.acceptance.event().to_string(),
        sequence: ordered.acceptance.sequence().number(),
        duplicate: matches!(ordered.acceptance, Acceptance::Duplicate { .. }),
        work: work.to_string(),
        run: ordered.execution.map(|run| run.to_string()),
    }
}
