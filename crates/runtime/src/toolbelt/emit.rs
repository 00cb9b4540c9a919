//! Emitting: an attempt's Event, on the chain of what the attempt follows from or of what it cites.

use domain::causal::Origin;
use domain::delivery::{AcceptFacts, AcceptRefusal, Delivery};
use domain::event::{Key, Payload};
use domain::execution::Execution;
use domain::id::EventId;
use domain::lane::LaneId;
use domain::store::{StoreError, Tx, Unrouted};
use domain::text::{CallId, DeliveryId, EventType, SourceName};
use domain::time::Timestamp;
use domain::toolbelt::{CallRefusal, Fingerprint, RUN_SOURCE, may_cite};

use super::{CallError, json};
use crate::accept;
use crate::causal::{self, Derived};
use crate::generation::ActiveGeneration;

/// An Event to emit. Its scope is the attempt's own, and it is addressed to no Work: routes decide.
#[derive(Debug, Clone)]
pub struct Emission {
    /// What happened.
    pub event_type: EventType,
    /// The key to correlate by.
    pub key: Option<Key>,
    /// Its body.
    pub payload: Payload,
    /// The Event that it is to follow from; none for what the attempt follows from.
    pub cause: Option<EventId>,
    /// When it happened.
    pub occurred_at: Option<Timestamp>,
}

impl Emission {
    pub(super) fn fingerprint(&self, of: impl Fn(&[&[u8]]) -> Fingerprint) -> Fingerprint {
        let Self { event_type, key, payload, cause, occurred_at } = self;
        of(&[format!("{event_type} {key:?} {cause:?} {occurred_at:?}").as_bytes(), payload.as_bytes()])
    }
}

/// Accepts what an attempt emits. (TOO-6, CAU-12)
pub(super) fn emit(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    execution: &Execution,
    id: &CallId,
    (emission, proposed): (&Emission, EventId),
) -> Result<Result<Vec<u8>, AcceptRefusal>, CallError> {
    if emission.event_type.is_core() {
        return Err(CallRefusal::ReservedType.into());
    }
    if emission.key.as_ref().is_some_and(|key| key.source.is_core()) {
        return Err(CallRefusal::ReservedSource.into());
    }
    let own = execution.turn.cause;
    let cause = emission.cause.unwrap_or(own);
    let delivery = Delivery {
        id: proposed,
        source: SourceName::known(RUN_SOURCE),
        delivery_id: DeliveryId::known(&format!("{}/{id}", execution.id)),
        event_type: emission.event_type.clone(),
        scope: execution.scope.clone(),
        key: emission.key.clone(),
        work: None,
        occurred_at: emission.occurred_at,
        payload: emission.payload.clone(),
        origin: Origin::Derived { parent: cause, emitted_by: Some(execution.id) },
    };
    let mut facts: AcceptFacts = accept::facts(tx, &delivery, active.bounds(&execution.scope))?;
    if cause != own {
        let cited = facts.parent.as_ref().ok_or(CallRefusal::UnknownEvent(cause))?;
        let namespaces: Vec<SourceName> =
            tx.keys_of(execution.work)?.into_iter().map(|key| key.source).collect();
        if !may_cite(execution, cited, &namespaces) {
            return Err(CallRefusal::ForeignCause(cause).into());
        }
        facts.floor = tx.event(own)?;
        if facts.floor.is_none() {
            let reason = "follows from no event".to_owned();
            return Err(StoreError::Corrupt { table: "execution", reason }.into());
        }
    }
    let event = match causal::derive(tx, &delivery, &facts)? {
        Derived::Accepted(event) => event,
        Derived::Refused(refusal) => return Ok(Err(refusal)),
        Derived::Duplicate => {
            return Err(StoreError::Conflict { what: "an emission without its call" }.into());
        }
    };
    tx.insert_unrouted(Unrouted { sequence: event.sequence, lane: LaneId::of_event(&event) })?;
    let (root, depth) = (event.causation.root, event.causation.depth);
    Ok(Ok(json(&serde_json::json!({
        "event": event.id,
        "sequence": event.sequence,
        "cause": cause,
        "root": root,
        "depth": depth,
    }))))
}
