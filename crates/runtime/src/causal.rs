//! Causal bounds: what a chain may publish is counted in the transaction that publishes it, and what it may
//! not leaves a record instead.
//!
//! The record is no Event and costs the chain nothing. It has no payload, and stands under what would have
//! been the delivery's identity, so that a refusal that is repeated is one record.

use domain::causal::{CausalRefusal, minute_of};
use domain::delivery::{self, AcceptFacts, AcceptRefusal, Delivery};
use domain::event::Event;
use domain::id::{EventId, ExecutionId, WorkId};
use domain::store::kv::CAUSAL_REJECTIONS;
use domain::store::{KvRow, StoreError, Tx};
use serde::Serialize;

/// What became of a delivery that an Event caused.
#[derive(Debug)]
pub(crate) enum Derived {
    /// It is an Event now. Its routing is for whoever asked.
    Accepted(Event),
    /// It was accepted before.
    Duplicate,
    /// It was not accepted, and the record of that is written.
    Refused(AcceptRefusal),
}

/// What is kept of a refusal.
#[derive(Debug, Serialize)]
struct Rejection<'a> {
    code: &'static str,
    reason: String,
    #[serde(rename = "type")]
    event_type: &'a str,
    scope: &'a str,
    parent: EventId,
    root: EventId,
    depth: i64,
    work: Option<WorkId>,
    execution: Option<ExecutionId>,
}

/// Accepts what `facts.parent` caused, within the bounds of its chain. A repeat is found before anything is
/// counted. A refusal undoes nothing else of the transaction.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn derive(
    tx: &mut dyn Tx,
    delivery: &Delivery,
    facts: &AcceptFacts,
) -> Result<Derived, StoreError> {
    if tx.event_of_delivery(&delivery.source, &delivery.delivery_id)?.is_some() {
        return Ok(Derived::Duplicate);
    }
    derive_first(tx, delivery, facts)
}

/// Does what [`derive`] does to a delivery that cannot have been accepted before, since its id is made by what happens
/// once. Nobody looks for an earlier one.
///
/// # Errors
/// [`StoreError`], of which [`StoreError::Conflict`] says that there is one after all.
pub(crate) fn derive_first(
    tx: &mut dyn Tx,
    delivery: &Delivery,
    facts: &AcceptFacts,
) -> Result<Derived, StoreError> {
    let (sequence, now) = (tx.next_sequence(), tx.now());
    let event = match delivery::admit(delivery, facts, sequence, now) {
        Ok(event) => event,
        Err(refusal) => {
            if let AcceptRefusal::Causal(causal) = refusal {
                reject(tx, delivery, facts, causal)?;
            }
            return Ok(Derived::Refused(refusal));
        }
    };
    if let Some(refusal) = charge(tx, &event, facts.floor.as_ref(), minute_of(now))? {
        reject(tx, delivery, facts, refusal)?;
        return Ok(Derived::Refused(AcceptRefusal::Causal(refusal)));
    }
    tx.insert_new_event(&event, &delivery.payload)?;
    Ok(Derived::Accepted(event))
}

/// Counts an Event against its root and, when it cites another chain than that of `floor`, against that one's root
/// too. When either has had its share nothing is counted. (CAU-12)
fn charge(
    tx: &mut dyn Tx,
    event: &Event,
    floor: Option<&Event>,
    minute: i64,
) -> Result<Option<CausalRefusal>, StoreError> {
    let (root, per_minute) = (event.causation.root, event.causation.bounds.per_minute);
    let other = floor.map(|floor| floor.causation).filter(|other| other.root != root);
    if let Some(other) = other
        && tx.derived_in_minute(other.root, minute)? >= i64::from(other.bounds.per_minute)
    {
        return Ok(Some(CausalRefusal::Rate { per_minute: other.bounds.per_minute }));
    }
    if !tx.charge_root(root, minute, per_minute)? {
        return Ok(Some(CausalRefusal::Rate { per_minute }));
    }
    match other {
        Some(other) if !tx.charge_root(other.root, minute, other.bounds.per_minute)? => {
            Err(StoreError::Conflict { what: "a chain that has room and has none" })
        }
        Some(_) | None => Ok(None),
    }
}

fn reject(
    tx: &mut dyn Tx,
    delivery: &Delivery,
    facts: &AcceptFacts,
    refusal: CausalRefusal,
) -> Result<(), StoreError> {
    let Some(parent) = &facts.parent else { return Ok(()) };
    let rejection = Rejection {
        code: refusal.code(),
        reason: refusal.to_string(),
        event_type: delivery.event_type.as_str(),
        scope: delivery.scope.as_str(),
        parent: parent.id,
        root: parent.causation.root,
        depth: parent.causation.depth.saturating_add(1),
        work: delivery.work,
        execution: match delivery.origin {
            domain::causal::Origin::Root => None,
            domain::causal::Origin::Derived { emitted_by, .. } => emitted_by,
        },
    };
    let body = serde_json::to_vec(&rejection).expect("a struct of plain values is JSON");
    let row = KvRow { key: format!("{}/{}", delivery.source, delivery.delivery_id), body, at: tx.now() };
    tx.put_kv(CAUSAL_REJECTIONS, &row)
}
