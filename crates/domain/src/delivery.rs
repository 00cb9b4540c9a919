//! Acceptance: from what a source sent to an Event, or a refusal that leaves nothing behind.

use thiserror::Error;

use crate::causal::{Bounds, CausalRefusal, Origin};
use crate::event::{Causation, Event, Key, Payload};
use crate::id::{EventId, Sequence, WorkId};
use crate::text::{DeliveryId, EventType, ScopeName, SourceName};
use crate::time::Timestamp;
use crate::work::Work;

/// What a source sent, authenticated and validated, on its way to acceptance.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The id the Event will have, made before the transaction so that a re-run proposes the same one.
    pub id: EventId,
    /// The authenticated namespace.
    pub source: SourceName,
    /// With the source, the idempotency key. It never expires.
    pub delivery_id: DeliveryId,
    /// What happened.
    pub event_type: EventType,
    /// The scope that trusted configuration selected.
    pub scope: ScopeName,
    /// The key to correlate by.
    pub key: Option<Key>,
    /// The Work it is addressed to.
    pub work: Option<WorkId>,
    /// When the source says it happened.
    pub occurred_at: Option<Timestamp>,
    /// Its body.
    pub payload: Payload,
    /// Its ancestry.
    pub origin: Origin,
}

/// Who stands behind a delivery, which decides what it may claim to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authority {
    /// The runtime itself.
    Core,
    /// An operator with the API's token: source `core.manual` or a CloudEvent's, never a `core.*` type.
    Operator,
    /// A configured ingress entry, in a namespace of its own.
    Ingress,
}

/// What the store knows that bears on one delivery.
#[derive(Debug, Clone)]
pub struct AcceptFacts {
    /// The Work that the delivery names, when it exists.
    pub target: Option<Work>,
    /// The owner of the delivery's key, when it has one.
    pub key_owner: Option<WorkId>,
    /// The parent Event of a derived delivery.
    pub parent: Option<Event>,
    /// What the attempt follows from that emits the delivery and cites another Event as its parent.
    pub floor: Option<Event>,
    /// How far a chain may go that begins with this delivery.
    pub bounds: Bounds,
}

impl AcceptFacts {
    /// Nothing is known but how far a chain of its scope may go.
    pub const fn new(bounds: Bounds) -> Self {
        Self { target: None, key_owner: None, parent: None, floor: None, bounds }
    }
}

/// Why a delivery was refused. Nothing is stored.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AcceptRefusal {
    /// The type belongs to the runtime.
    #[error("types that begin with `core.` belong to the runtime; choose another type")]
    ReservedType,
    /// The namespace belongs to the runtime, or to CloudEvents.
    #[error("sources that begin with `core.` or `cloudevents:` are taken; choose another source")]
    ReservedSource,
    /// The Work does not exist.
    #[error("no Work {0} exists; `work list` shows those that do")]
    UnknownWork(WorkId),
    /// The Work lives in another scope.
    #[error("Work {work} is in scope `{scope}`; send the event to that scope")]
    ScopeMismatch {
        /// The Work that was named.
        work: WorkId,
        /// Its scope.
        scope: ScopeName,
    },
    /// The key does not belong to the named Work.
    #[error("the key does not belong to {0}; leave out the key or the Work")]
    KeyMismatch(WorkId),
    /// The parent of a derived delivery is not an accepted Event.
    #[error("the Event {0} that would be its cause was never accepted")]
    UnknownParent(EventId),
    /// Its chain may not go further.
    #[error(transparent)]
    Causal(#[from] CausalRefusal),
}

impl AcceptRefusal {
    /// The stable word for this refusal.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::ReservedType => "reserved_type",
            Self::ReservedSource => "reserved_source",
            Self::UnknownWork(_) => "unknown_work",
            Self::ScopeMismatch { .. } => "scope_mismatch",
            Self::KeyMismatch(_) => "key_mismatch",
            Self::UnknownParent(_) => "unknown_parent",
            Self::Causal(refusal) => refusal.code(),
        }
    }
}

/// Whether `authority` may send what `delivery` says it is.
///
/// # Errors
/// [`AcceptRefusal::ReservedType`] or [`AcceptRefusal::ReservedSource`].
pub fn authorize(delivery: &Delivery, authority: Authority) -> Result<(), AcceptRefusal> {
    match authority {
        Authority::Core => Ok(()),
        Authority::Operator | Authority::Ingress => {
            if delivery.event_type.is_core() {
                return Err(AcceptRefusal::ReservedType);
            }
            let operator = authority == Authority::Operator && delivery.source.as_str() == MANUAL_SOURCE;
            if delivery.source.is_core() && !operator {
                return Err(AcceptRefusal::ReservedSource);
            }
            if delivery.source.is_of_cloud_events() && authority == Authority::Ingress {
                return Err(AcceptRefusal::ReservedSource);
            }
            Ok(())
        }
    }
}

/// The source of everything an operator sends.
pub const MANUAL_SOURCE: &str = "core.manual";
/// The source of everything the runtime itself publishes.
pub const CORE_SOURCE: &str = "core";

/// The Event that `delivery` becomes, if what it claims agrees with what is known.
///
/// A delivery that names a Work fixes the scope, and any key beside it must already lead to that Work:
/// contradiction is refused rather than resolved.
///
/// # Errors
/// The [`AcceptRefusal`] that says which claim does not hold.
pub fn admit(
    delivery: &Delivery,
    facts: &AcceptFacts,
    sequence: Sequence,
    now: Timestamp,
) -> Result<Event, AcceptRefusal> {
    if let Some(id) = delivery.work {
        let work = facts.target.as_ref().ok_or(AcceptRefusal::UnknownWork(id))?;
        if work.scope != delivery.scope {
            return Err(AcceptRefusal::ScopeMismatch { work: id, scope: work.scope.clone() });
        }
        if delivery.key.is_some() && facts.key_owner != Some(id) {
            return Err(AcceptRefusal::KeyMismatch(id));
        }
    }
    let (causation, emitted_by) = match delivery.origin {
        Origin::Root => (Causation::root(delivery.id, facts.bounds), None),
        Origin::Derived { parent, emitted_by } => {
            let parent = facts.parent.as_ref().ok_or(AcceptRefusal::UnknownParent(parent))?;
            let causation = match &facts.floor {
                Some(floor) => Causation::cited(parent, floor)?,
                None => Causation::derived(parent)?,
            };
            (causation, emitted_by)
        }
    };
    Ok(Event {
        id: delivery.id,
        sequence,
        source: delivery.source.clone(),
        delivery_id: delivery.delivery_id.clone(),
        event_type: delivery.event_type.clone(),
        scope: delivery.scope.clone(),
        key: delivery.key.clone(),
        work: delivery.work,
        causation,
        emitted_by,
        occurred_at: delivery.occurred_at,
        accepted_at: now,
    })
}

/// What became of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    /// It is a new Event.
    New {
        /// The Event.
        event: EventId,
        /// Its place in the order of acceptance.
        sequence: Sequence,
    },
    /// The same source delivered the same id before; this is the Event of that time. Nothing ran again.
    Duplicate {
        /// The original Event.
        event: EventId,
        /// Its place in the order of acceptance.
        sequence: Sequence,
    },
}

impl Acceptance {
    /// The Event, new or original.
    pub const fn event(self) -> EventId {
        match self {
            Self::New { event, .. } | Self::Duplicate { event, .. } => event,
        }
    }

    /// The Event's place in the order of acceptance.
    pub const fn sequence(self) -> Sequence {
        match self {
            Self::New { sequence, .. } | Self::Duplicate { sequence, .. } => sequence,
        }
    }
}

/// How often a delivery came again after its Event was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Redelivery {
    /// How often, the first acceptance not counted.
    pub count: i64,
    /// When it came last.
    pub last_at: Timestamp,
}

#[cfg(test)]
#[path = "delivery/tests.rs"]
mod tests;
