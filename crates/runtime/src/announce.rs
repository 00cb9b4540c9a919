//! Announcements: what the runtime itself publishes about an attempt.
//!
//! They are Events like any other, derived from the attempt's trigger, and ride along in the transaction
//! they report. They are never input of their own Work and never hold anything up. Where no route asks for
//! the type by name, the checkpoint rides along too, and the routing stage never sees them.

use domain::causal::Origin;
use domain::delivery::{AcceptFacts, AcceptRefusal, CORE_SOURCE, Delivery};
use domain::event::{Event, Payload};
use domain::execution::Execution;
use domain::id::{EventId, WaitId};
use domain::lane::LaneId;
use domain::outcome::TurnResult;
use domain::route::{Checkpoint, CheckpointOutcome};
use domain::store::{Snapshot, StoreError, Tx, Unrouted};
use domain::succession::{Succession, WORK_CREATED};
use domain::text::{DeliveryId, EventType, SourceName};
use domain::wait::{self, WAIT_WOKEN, Wait};
use domain::work::Work;
use serde::Serialize;

use crate::causal::{self, Derived};
use crate::generation::ActiveGeneration;

/// The type of the Event that says a turn has ended.
pub const TURN_ENDED: &str = "core.turn.ended";

/// The body of a `core.turn.ended` Event.
#[derive(Debug, Serialize)]
struct TurnEnded<'a> {
    work: domain::id::WorkId,
    execution: domain::id::ExecutionId,
    attempt: domain::id::Attempt,
    outcome: domain::outcome::Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a str>,
}

/// The delivery of what is published when a turn of this attempt ends under this epoch.
fn delivery_of(execution: &Execution) -> DeliveryId {
    DeliveryId::known(&format!("turn/{}/{}", execution.id, execution.epoch))
}

/// What was published when the last turn of an attempt ended; none while it goes on.
///
/// # Errors
/// [`StoreError`] when the store fails.
pub(crate) fn of(tx: &mut dyn Snapshot, execution: &Execution) -> Result<Option<Event>, StoreError> {
    tx.event_of_delivery(&SourceName::known(CORE_SOURCE), &delivery_of(execution))
}

/// What became of an announcement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Announced {
    /// A route asks for it, so the routing stage has something to do.
    Heard,
    /// No route asks for it.
    Unheard,
    /// It was not accepted.
    Refused(AcceptRefusal),
}

/// Publishes that a turn has ended. True when the routing stage has something to do about it.
///
/// # Errors
/// [`StoreError`] undoes the completion with it. A refusal of the announcement does not: it is left out.
pub(crate) fn turn_ended(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    proposed: EventId,
    work: &Work,
    execution: &Execution,
    result: &TurnResult,
) -> Result<bool, StoreError> {
    let body = TurnEnded {
        work: execution.work,
        execution: execution.id,
        attempt: execution.attempt,
        outcome: result.outcome,
        status: result.status.as_deref(),
        code: result.code.as_deref(),
        summary: result.summary.as_deref(),
    };
    let json = serde_json::to_vec(&body).expect("a struct of plain values is JSON");
    let delivery = Delivery {
        id: proposed,
        source: SourceName::known(CORE_SOURCE),
        delivery_id: delivery_of(execution),
        event_type: EventType::known(TURN_ENDED),
        scope: execution.scope.clone(),
        key: None,
        work: Some(execution.work),
        occurred_at: None,
        payload: Payload::stored(json),
        origin: Origin::Derived { parent: execution.turn.cause, emitted_by: Some(execution.id) },
    };
    let facts = AcceptFacts {
        target: Some(work.clone()),
        parent: tx.event(execution.turn.cause)?,
        ..AcceptFacts::new(active.bounds(&execution.scope))
    };
    // An attempt ends once under an epoch, and whoever says so again is refused before.
    let derived = causal::derive_first(tx, &delivery, &facts)?;
    Ok(publish(tx, active, derived)? == Announced::Heard)
}

/// The body of a `core.work.created` Event.
#[derive(Debug, Serialize)]
struct WorkCreated<'a> {
    work: domain::id::WorkId,
    predecessor: domain::id::WorkId,
    successor: domain::id::WorkId,
    first: domain::id::WorkId,
    generation: i64,
    kind: &'a str,
}

/// Publishes that a Work was created to succeed another one, on the chain of the Event that brought it about. It
/// comes before the Work is written: where its chain refuses it there is no successor.
///
/// # Errors
/// [`StoreError`] undoes the creation with it.
pub(crate) fn created(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    proposed: EventId,
    work: &Work,
    (place, cause): (&Succession, &Event),
) -> Result<Announced, StoreError> {
    let body = WorkCreated {
        work: work.id,
        predecessor: place.predecessor,
        successor: work.id,
        first: place.first,
        generation: place.generation,
        kind: work.kind.as_str(),
    };
    let json = serde_json::to_vec(&body).expect("a struct of plain values is JSON");
    let delivery = Delivery {
        id: proposed,
        source: SourceName::known(CORE_SOURCE),
        delivery_id: DeliveryId::known(&format!("created/{}", work.id)),
        event_type: EventType::known(WORK_CREATED),
        scope: work.scope.clone(),
        key: None,
        work: Some(work.id),
        occurred_at: None,
        payload: Payload::stored(json),
        origin: Origin::Derived { parent: cause.id, emitted_by: None },
    };
    let facts = AcceptFacts {
        target: Some(work.clone()),
        parent: Some(cause.clone()),
        ..AcceptFacts::new(active.bounds(&work.scope))
    };
    let derived = causal::derive(tx, &delivery, &facts)?;
    publish(tx, active, derived)
}

/// The body of a `core.wait.woken` Event.
#[derive(Debug, Serialize)]
struct WaitWoken {
    work: domain::id::WorkId,
    execution: domain::id::ExecutionId,
    wait: WaitId,
    winner: EventId,
}

/// Publishes that a Wait has ended, on the chain of the Event that ended it. What the next turn publishes follows
/// from this Event, so that a chain cannot go on for ever by waiting in between.
///
/// # Errors
/// [`StoreError`] undoes the wake with it.
pub(crate) fn woken(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    proposed: EventId,
    work: &Work,
    (wait, winner): (&Wait, &Event),
) -> Result<Announced, StoreError> {
    let body = WaitWoken { work: wait.work, execution: wait.execution, wait: wait.id, winner: winner.id };
    let json = serde_json::to_vec(&body).expect("a struct of plain values is JSON");
    let delivery = Delivery {
        id: proposed,
        source: SourceName::known(CORE_SOURCE),
        delivery_id: wait::woken_delivery(wait.id),
        event_type: EventType::known(WAIT_WOKEN),
        scope: wait.scope.clone(),
        key: None,
        work: Some(wait.work),
        occurred_at: None,
        payload: Payload::stored(json),
        origin: Origin::Derived { parent: winner.id, emitted_by: Some(wait.execution) },
    };
    let facts = AcceptFacts {
        target: Some(work.clone()),
        parent: Some(winner.clone()),
        ..AcceptFacts::new(active.bounds(&wait.scope))
    };
    let derived = causal::derive(tx, &delivery, &facts)?;
    publish(tx, active, derived)
}

/// What was published when a Wait ended; none while it goes on, or when its chain refused it.
///
/// # Errors
/// [`StoreError`] when the store fails.
pub(crate) fn of_wait(tx: &mut dyn Snapshot, wait: WaitId) -> Result<Option<Event>, StoreError> {
    tx.event_of_delivery(&SourceName::known(CORE_SOURCE), &wait::woken_delivery(wait))
}

fn publish(tx: &mut dyn Tx, active: &ActiveGeneration, derived: Derived) -> Result<Announced, StoreError> {
    let event = match derived {
        Derived::Accepted(event) => event,
        Derived::Duplicate => return Ok(Announced::Unheard),
        Derived::Refused(refusal) => return Ok(Announced::Refused(refusal)),
    };
    Ok(if leave(tx, active, &event)? { Announced::Heard } else { Announced::Unheard })
}

/// Leaves an announcement to the route that asks for its type by name. Without one its checkpoint is written here.
/// True when the routing stage has something to do.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn leave(tx: &mut dyn Tx, active: &ActiveGeneration, event: &Event) -> Result<bool, StoreError> {
    let (sequence, now) = (event.sequence, event.accepted_at);
    let wanted = active.scope(&event.scope).is_some_and(|scope| {
        scope.routes.iter().any(|route| route.prepared.takes_announcement(&event.event_type))
    });
    if wanted {
        tx.insert_unrouted(Unrouted { sequence, lane: LaneId::NONE })?;
    } else {
        tx.insert_checkpoint(&Checkpoint {
            sequence,
            event: event.id,
            outcome: CheckpointOutcome::Unmatched,
            route: None,
            policy: None,
            work: None,
            generation: active.number,
            code: None,
            reason: None,
            at: now,
        })?;
    }
    Ok(wanted)
}
