//! Replay: an operator's word that an Event which was routed once is to be looked at again.
//!
//! What was decided stays decided: a checkpoint is never rewritten or revived. A replay is a new Event,
//! `core.replay.requested`, that the old one caused, with an identity, a place in the order and a checkpoint of its
//! own. It carries what the old one said, so routes, Waits and attempts see the type, the source, the key, the Work
//! and the payload of the Event that it repeats. What that comes to is decided by the configuration and the Works of
//! today, and may be nothing again.

use thiserror::Error;

use crate::causal::Origin;
use crate::delivery::{Delivery, MANUAL_SOURCE};
use crate::event::{Event, Payload};
use crate::id::EventId;
use crate::retry::{RETRY_DUE, RETRY_REQUESTED};
use crate::text::{DeliveryId, EventType, SourceName};
use crate::wait::WAIT_TIMEOUT;

/// The type of the Event by which an operator has another one looked at again.
pub const REPLAY_REQUESTED: &str = "core.replay.requested";
/// The type of the Event by which an operator interrupts an attempt.
const MANUAL_INTERRUPT: &str = "core.manual.interrupt";

/// Why an Event cannot be replayed. Nothing is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ReplayRefusal {
    /// It has no checkpoint yet.
    #[error(
        "the Event waits to be routed, so there is nothing to replay; `events show` says what it waits for"
    )]
    Unrouted,
    /// It is a control of the runtime, which was meant for one moment.
    #[error("the Event steered a run of its Work once; `work retry` starts the next run")]
    Control,
    /// What it said is gone.
    #[error("the Event's payload is no longer kept; send a new Event with `events emit`")]
    Released,
}

/// Whether an Event repeats another one.
pub fn is_replay(event: &Event) -> bool {
    event.event_type.as_str() == REPLAY_REQUESTED
}

/// The delivery that replays `original`, which said `payload` and has been routed or not.
///
/// # Errors
/// [`ReplayRefusal`].
// Spec: ROU-21
pub fn delivery(
    original: &Event,
    is_routed: bool,
    payload: Option<Payload>,
    id: EventId,
    delivery_id: DeliveryId,
) -> Result<Delivery, ReplayRefusal> {
    if matches!(original.event_type.as_str(), RETRY_DUE | RETRY_REQUESTED | WAIT_TIMEOUT | MANUAL_INTERRUPT) {
        return Err(ReplayRefusal::Control);
    }
    if !is_routed {
        return Err(ReplayRefusal::Unrouted);
    }
    let payload = payload.ok_or(ReplayRefusal::Released)?;
    Ok(Delivery {
        id,
        source: SourceName::known(MANUAL_SOURCE),
        delivery_id,
        event_type: EventType::known(REPLAY_REQUESTED),
        scope: original.scope.clone(),
        key: original.key.clone(),
        work: original.work,
        occurred_at: original.occurred_at,
        payload,
        origin: Origin::Derived { parent: original.id, emitted_by: None },
    })
}

/// A replay as routes, Waits and attempts see it: what `original` said, at the replay's own place and in its own
/// chain.
#[must_use]
pub fn seen(replay: Event, original: &Event) -> Event {
    Event {
        source: original.source.clone(),
        event_type: original.event_type.clone(),
        emitted_by: original.emitted_by,
        ..replay
    }
}

#[cfg(test)]
#[path = "replay/tests.rs"]
mod tests;
