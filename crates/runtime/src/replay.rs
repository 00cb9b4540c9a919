//! Replays: an operator has an Event looked at again.
//!
//! *Reads* the Event, its payload and whether it was routed. *Decides* in `domain::replay` and, as for everything
//! that an Event caused, in `domain::causal`. *Writes* the new Event and its place in the routing queue, or the
//! record of its chain's refusal. *Afterwards* hints routing, which sees what the original said.

use domain::delivery::{AcceptFacts, AcceptRefusal, Acceptance, MANUAL_SOURCE};
use domain::event::Event;
use domain::id::{EventId, IdMaker};
use domain::lane::LaneId;
use domain::replay::{self, ReplayRefusal, is_replay};
use domain::store::{Snapshot, StoreError, Tx, Unrouted};
use domain::text::{DeliveryId, ScopeName, SourceName};
use thiserror::Error;

use crate::accept;
use crate::causal::{self, Derived};
use crate::generation::ActiveGeneration;
use crate::node::Runtime;

/// Why an Event was not replayed. No Event was accepted.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// There is no such Event.
    #[error("no Event {0} exists; `events list` shows those that do")]
    UnknownEvent(EventId),
    /// The Event's scope is not in the configuration.
    #[error("no scope is called `{0}` any more, so nothing would look at the Event")]
    UnknownScope(ScopeName),
    /// It cannot be replayed.
    #[error(transparent)]
    Refused(#[from] ReplayRefusal),
    /// Its chain, or what it names, does not allow it. A refusal of the chain is on record.
    #[error(transparent)]
    Unaccepted(#[from] AcceptRefusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Runtime {
    /// Accepts a `core.replay.requested` Event under `delivery_id`, caused by the Event it repeats. Asked twice
    /// under one id, it is accepted once.
    ///
    /// # Errors
    /// [`ReplayError`]; then nothing has changed but what is kept of a causal refusal.
    pub async fn replay(&self, id: EventId, delivery_id: DeliveryId) -> Result<Acceptance, ReplayError> {
        let proposed = self.store().ids(IdMaker::event);
        let active = self.generations().active();
        // A causal refusal is an answer and no error, so that its record is committed.
        let answer = self
            .store()
            .transact("replay", move |tx| accept(tx, &active, id, (proposed, &delivery_id)))
            .await?;
        match &answer {
            Ok(Acceptance::New { .. }) => {
                self.metrics().accepted.inc();
                self.hints().route.notify_one();
            }
            Ok(Acceptance::Duplicate { .. }) => {
                self.metrics().duplicates.inc();
            }
            Err(_refused) => {}
        }
        self.hints().committed();
        Ok(answer?)
    }
}

fn accept(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    id: EventId,
    (proposed, delivery_id): (EventId, &DeliveryId),
) -> Result<Result<Acceptance, AcceptRefusal>, ReplayError> {
    let source = SourceName::known(MANUAL_SOURCE);
    if let Some(known) = tx.event_of_delivery(&source, delivery_id)? {
        let now = tx.now();
        tx.count_redelivery(known.sequence, now)?;
        return Ok(Ok(Acceptance::Duplicate { event: known.id, sequence: known.sequence }));
    }
    let original = tx.event(id)?.ok_or(ReplayError::UnknownEvent(id))?;
    if active.scope(&original.scope).is_none() {
        return Err(ReplayError::UnknownScope(original.scope));
    }
    let is_routed = tx.checkpoint(original.sequence)?.is_some();
    let payload = tx.payload(original.sequence)?;
    let delivery = replay::delivery(&original, is_routed, payload, proposed, delivery_id.clone())?;
    let facts = accept::facts(tx, &delivery, active.bounds(&original.scope))?;
    let facts = AcceptFacts { parent: Some(original), ..facts };
    match causal::derive(tx, &delivery, &facts)? {
        Derived::Accepted(event) => {
            let (event, sequence) = (event.id, event.sequence);
            let lane = lane(tx, event)?;
            tx.insert_unrouted(Unrouted { sequence, lane })?;
            Ok(Ok(Acceptance::New { event, sequence }))
        }
        Derived::Refused(refusal) => Ok(Err(refusal)),
        Derived::Duplicate => {
            Err(StoreError::Conflict { what: "a replay that is both there and not" }.into())
        }
    }
}

/// The lane of what the replay says. An announcement is addressed to no Work, and holds none up.
fn lane(tx: &mut dyn Snapshot, replay: EventId) -> Result<LaneId, StoreError> {
    let Some(event) = tx.event(replay)? else { return Ok(LaneId::NONE) };
    let seen = seen(tx, event)?;
    Ok(if seen.is_announcement() { LaneId::NONE } else { LaneId::of_event(&seen) })
}

/// An Event as routes, Waits and attempts see it: a replay says what the Event at the head of its repeats said.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn seen(tx: &mut dyn Snapshot, event: Event) -> Result<Event, StoreError> {
    let mut replay = event;
    let mut at = if is_replay(&replay) { replay.causation.parent } else { None };
    // It ends: each is an Event before the other, and their depth is bounded.
    while let Some(id) = at {
        let original = tx
            .event(id)?
            .ok_or_else(|| StoreError::Corrupt { table: "event", reason: "replays no event".to_owned() })?;
        at = if is_replay(&original) { original.causation.parent } else { None };
        if at.is_none() {
            replay = replay::seen(replay, &original);
        }
    }
    Ok(replay)
}
