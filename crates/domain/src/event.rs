//! An Event: an accepted delivery, never changed again.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::budget;
use crate::causal::Bounds;
use crate::id::{EventId, ExecutionId, Sequence, WorkId};
use crate::succession::WORK_CREATED;
use crate::text::{DeliveryId, EventType, ExternalId, ScopeName, SourceName};
use crate::time::Timestamp;

/// A correlation key: what the outside calls the thing a Work is about. It belongs to one Work for ever.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The namespace the identifier is unique in. It need not be the source of the Event.
    pub source: SourceName,
    /// The identifier.
    pub external_id: ExternalId,
}

/// Where an Event stands in its causal chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Causation {
    /// The Event that caused it; none for a root.
    pub parent: Option<EventId>,
    /// The first Event of the chain; itself for a root.
    pub root: EventId,
    /// How many Events lie between it and the root, itself included; zero for a root.
    pub depth: i64,
    /// How far the chain may go, as it was when the root was accepted.
    pub bounds: Bounds,
}

/// An accepted envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its id, proposed before acceptance.
    pub id: EventId,
    /// Its place in the order of acceptance.
    pub sequence: Sequence,
    /// The namespace that delivered it.
    pub source: SourceName,
    /// The source's name for the delivery.
    pub delivery_id: DeliveryId,
    /// What happened.
    pub event_type: EventType,
    /// The one scope it targets.
    pub scope: ScopeName,
    /// The key it correlates by.
    pub key: Option<Key>,
    /// The Work it was addressed to. Routing does not change this; the checkpoint names the Work it reached.
    pub work: Option<WorkId>,
    /// Its chain.
    pub causation: Causation,
    /// The Execution that published it. A Work is never news to itself.
    pub emitted_by: Option<ExecutionId>,
    /// When the source says it happened. It orders nothing.
    pub occurred_at: Option<Timestamp>,
    /// When it was accepted.
    pub accepted_at: Timestamp,
}

impl Event {
    /// Whether the runtime itself says it about an Execution, a new Work or a budget. It names a Work, and is addressed
    /// to none.
    pub fn is_announcement(&self) -> bool {
        let is_said = self.emitted_by.is_some()
            || self.event_type.as_str() == WORK_CREATED
            || budget::is_event_of(&self.event_type);
        self.event_type.is_core() && is_said
    }
}

/// The most bytes a payload may have: 1 MiB.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// The body of an Event: JSON text, opaque to the runtime. Its `Debug` shows only its length.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload(Arc<[u8]>);

/// Why a payload was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PayloadError {
    /// It has more than [`PAYLOAD_BYTES_MAX`] bytes.
    #[error("the payload is larger than {PAYLOAD_BYTES_MAX} bytes")]
    TooLarge,
    /// It is not JSON.
    #[error("the payload is not JSON")]
    NotJson,
}

impl Payload {
    /// Checks and wraps JSON text.
    ///
    /// # Errors
    /// [`PayloadError`] when the text is too large or not JSON.
    pub fn new(json: impl Into<Arc<[u8]>>) -> Result<Self, PayloadError> {
        let json = json.into();
        if json.len() > PAYLOAD_BYTES_MAX {
            return Err(PayloadError::TooLarge);
        }
        // Skipping over a JSON text does not look at its encoding, so that is checked first.
        let text = std::str::from_utf8(&json).map_err(|_source| PayloadError::NotJson)?;
        serde_json::from_str::<serde::de::IgnoredAny>(text).map_err(|_source| PayloadError::NotJson)?;
        Ok(Self(json))
    }

    /// Wraps text that was checked when it was stored.
    pub fn stored(json: impl Into<Arc<[u8]>>) -> Self {
        Self(json.into())
    }

    /// The payload that says nothing: `null`.
    pub fn null() -> Self {
        Self(Arc::from(&b"null"[..]))
    }

    /// The JSON text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::{PAYLOAD_BYTES_MAX, Payload, PayloadError};

    #[test]
    fn payload_takes_a_mebibyte_and_not_a_byte_more() {
        let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2)).into_bytes();
        assert!(Payload::new(text(PAYLOAD_BYTES_MAX)).is_ok());
        assert_eq!(Payload::new(text(PAYLOAD_BYTES_MAX + 1)), Err(PayloadError::TooLarge));
        assert_eq!(Payload::new(&b"{"[..]), Err(PayloadError::NotJson));
        assert_eq!(Payload::new(&b"\"\xff\""[..]), Err(PayloadError::NotJson));
    }

    #[test]
    fn debug_does_not_show_the_payload() {
        let payload = Payload::new(&br#"{"token":"hunter2"}"#[..]).unwrap();
        assert_eq!(format!("{payload:?}"), "Payload(19 bytes)");
    }
}
