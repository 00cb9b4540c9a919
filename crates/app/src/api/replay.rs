//! Replaying: an operator has an Event looked at again.

use std::sync::Arc;

use domain::delivery::Acceptance;
use domain::id::IdMaker;
use domain::text::DeliveryId;
use hyper::StatusCode;
use runtime::ReplayError;

use super::events;
use super::failure::Failure;
use super::resolve;
use super::server::{Answer, Asked, json, read};
use super::wire::{AcceptedBody, AgainBody, EventBody};
use crate::daemon::Daemon;
use crate::error_code::ErrorCode;

/// Accepts an Event that repeats another one: 202 for a new one, 200 for one that was accepted before.
pub(crate) async fn replay(daemon: &Arc<Daemon>, asked: Asked) -> Answer {
    let id = asked.id().to_owned();
    let header = events::idempotency_key(&asked.parts)?;
    let body: AgainBody = asked.json_or_empty().await?;
    let named = body.delivery_id.as_deref().map(DeliveryId::new).transpose()?.or(header);
    let accepted = look_again(daemon, &id, named).await?;
    let mut response = json(&accepted);
    *response.status_mut() = if accepted.duplicate { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok(response)
}

/// Has an Event looked at again, as a new one. The same delivery id does that once.
///
/// # Errors
/// `not_replayable`, `unknown_scope`, `causal_rejected`, `not_found`, `ambiguous_id`, and what writing to the store
/// answers.
pub(crate) async fn look_again(
    daemon: &Daemon,
    text: &str,
    delivery_id: Option<DeliveryId>,
) -> Result<AcceptedBody, Failure> {
    let text = text.to_owned();
    let id = read(daemon, "event", move |tx| resolve::event(tx, &text)).await?;
    let delivery_id =
        delivery_id.unwrap_or_else(|| events::fresh_delivery_id(daemon.store().ids(IdMaker::event)));
    let acceptance = daemon.runtime().replay(id, delivery_id).await?;
    let duplicate = matches!(acceptance, Acceptance::Duplicate { .. });
    if !duplicate {
        tracing::info!(event = %id, replay = %acceptance.event(), "an operator replayed an Event");
    }
    Ok(AcceptedBody {
        event: acceptance.event().to_string(),
        sequence: acceptance.sequence().number(),
        duplicate,
    })
}

/// Whether a page offers it: the Event was routed, its payload is there, and it steered no run.
pub(crate) fn is_offered(event: &EventBody, has_payload: bool) -> bool {
    let is_control = event.event_type.starts_with("core.")
        && !matches!(
            event.event_type.as_str(),
            "core.replay.requested" | "core.turn.ended" | "core.work.created"
        );
    event.checkpoint.is_some() && has_payload && !is_control
}

impl From<ReplayError> for Failure {
    fn from(error: ReplayError) -> Self {
        let code = match &error {
            ReplayError::Store(store) => return Self::from(store.clone()),
            ReplayError::Unaccepted(refusal) => {
                return Self::from(runtime::AcceptError::Refused(refusal.clone()));
            }
            ReplayError::UnknownEvent(_) => ErrorCode::NotFound,
            ReplayError::UnknownScope(_) => ErrorCode::UnknownScope,
            ReplayError::Refused(_) => ErrorCode::NotReplayable,
        };
        Self::new(code, error.to_string())
    }
}
