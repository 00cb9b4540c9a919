//! Acceptance: a delivery becomes a durable Event before anyone is told so.
//!
//! *Reads* the delivery's identity and what it names. *Decides* in `domain::delivery`. *Writes* the Event,
//! its payload, its chain's count and its place in the routing queue, or counts a redelivery. *Afterwards*
//! hints routing.

use domain::causal::{Bounds, Origin};
use domain::delivery::{self, AcceptFacts, AcceptRefusal, Acceptance, Authority, Delivery};
use domain::lane::LaneId;
use domain::route::{Checkpoint, CheckpointOutcome};
use domain::store::{Snapshot, StoreError, Tx, Unrouted};
use domain::text::{Code, ScopeName};
use thiserror::Error;

use crate::causal::{self, Derived};
use crate::node::Runtime;

/// Why a delivery was not accepted. Nothing was stored.
#[derive(Debug, Error)]
pub enum AcceptError {
    /// What it claims does not hold.
    #[error(transparent)]
    Refused(#[from] AcceptRefusal),
    /// The scope is not in the configuration.
    #[error("no scope is called `{0}`; `open-conduit scope list` lists them")]
    UnknownScope(ScopeName),
    /// The store failed. The sender may send it again under the same id.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AcceptError {
    /// The stable word for this error.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.code(),
            Self::UnknownScope(_) => "unknown_scope",
            Self::Store(error) => error.code(),
        }
    }
}

/// Where an accepted Event goes first.
#[derive(Debug, Clone)]
pub enum Fate {
    /// To the routes.
    Route,
    /// Nowhere: it is recorded as dropped, with a code and a reason.
    Drop(Code, String),
}

impl Runtime {
    /// Accepts a delivery. Once this answers well, it is durable.
    ///
    /// # Errors
    /// [`AcceptError`] says what to change, or that the store failed.
    pub async fn accept(&self, delivery: Delivery, authority: Authority) -> Result<Acceptance, AcceptError> {
        self.accept_with(delivery, authority, Fate::Route).await
    }

    /// Accepts a delivery and decides where it goes first.
    ///
    /// # Errors
    /// As [`Self::accept`].
    pub async fn accept_with(
        &self,
        delivery: Delivery,
        authority: Authority,
        fate: Fate,
    ) -> Result<Acceptance, AcceptError> {
        delivery::authorize(&delivery, authority)?;
        let active = self.generations().active();
        if active.scope(&delivery.scope).is_none() {
            // What was accepted once stays accepted, whatever has changed since.
            let (scope, again) = (delivery.scope.clone(), delivery);
            let known = self.store().transact("accept", move |tx| duplicate(tx, &again)).await?;
            if known.is_some() {
                self.metrics().duplicates.inc();
                self.hints().committed();
            }
            return known.ok_or(AcceptError::UnknownScope(scope));
        }
        let (generation, bounds) = (active.number, active.bounds(&delivery.scope));
        let acceptance = self
            .store()
            .transact("accept", move |tx| {
                let acceptance = match accept(tx, &delivery, bounds) {
                    Ok(acceptance) => acceptance,
                    // What is kept of such a refusal is committed, and nothing else was written.
                    Err(AcceptError::Refused(refusal @ AcceptRefusal::Causal(_))) => {
                        return Ok(Err(refusal));
                    }
                    Err(error) => return Err(error),
                };
                if let (Acceptance::New { event, sequence }, Fate::Drop(code, reason)) = (acceptance, &fate) {
                    tx.route_off(&Checkpoint {
                        sequence,
                        event,
                        outcome: CheckpointOutcome::Dropped,
                        route: None,
                        policy: None,
                        work: None,
                        generation,
                        code: Some(code.clone()),
                        reason: Some(reason.clone()),
                        at: tx.now(),
                    })?;
                }
                Ok::<_, AcceptError>(Ok(acceptance))
            })
            .await?;
        if acceptance.is_err() {
            self.hints().committed();
        }
        let acceptance = acceptance?;
        match acceptance {
            Acceptance::New { .. } => {
                self.metrics().accepted.inc();
                self.hints().accepted();
            }
            Acceptance::Duplicate { .. } => {
                self.metrics().duplicates.inc();
            }
        }
        self.hints().committed();
        Ok(acceptance)
    }
}

/// Accepts a delivery inside a transaction that may do more.
///
/// # Errors
/// [`AcceptError`]; the caller undoes its transaction.
pub(crate) fn accept(
    tx: &mut dyn Tx,
    delivery: &Delivery,
    bounds: Bounds,
) -> Result<Acceptance, AcceptError> {
    let facts = facts(tx, delivery, bounds)?;
    if delivery.origin != Origin::Root {
        return accept_derived(tx, delivery, &facts);
    }
    let now = tx.now();
    let sequence = tx.next_sequence();
    let event = match delivery::admit(delivery, &facts, sequence, now) {
        Ok(event) => event,
        // What was accepted once stays accepted, whatever has changed since.
        Err(refusal) => return duplicate(tx, delivery)?.ok_or(AcceptError::Refused(refusal)),
    };
    if !tx.insert_event(&event, &delivery.payload)? {
        let conflict = StoreError::Conflict { what: "a delivery that is both there and not" };
        return duplicate(tx, delivery)?.ok_or(AcceptError::Store(conflict));
    }
    tx.insert_unrouted(Unrouted { sequence, lane: LaneId::of_event(&event) })?;
    Ok(Acceptance::New { event: event.id, sequence })
}

fn accept_derived(
    tx: &mut dyn Tx,
    delivery: &Delivery,
    facts: &AcceptFacts,
) -> Result<Acceptance, AcceptError> {
    match causal::derive(tx, delivery, facts)? {
        Derived::Accepted(event) => {
            let sequence = event.sequence;
            tx.insert_unrouted(Unrouted { sequence, lane: LaneId::of_event(&event) })?;
            Ok(Acceptance::New { event: event.id, sequence })
        }
        Derived::Duplicate => {
            let conflict = StoreError::Conflict { what: "a delivery that is both there and not" };
            duplicate(tx, delivery)?.ok_or(AcceptError::Store(conflict))
        }
        Derived::Refused(refusal) => Err(AcceptError::Refused(refusal)),
    }
}

/// What the store knows that bears on a delivery; `bounds` are those of its scope.
pub(crate) fn facts(
    tx: &mut dyn Snapshot,
    delivery: &Delivery,
    bounds: Bounds,
) -> Result<AcceptFacts, StoreError> {
    let mut facts = AcceptFacts::new(bounds);
    if let Some(work) = delivery.work {
        facts.target = tx.work(work)?;
        if let Some(key) = &delivery.key {
            facts.key_owner = tx.key_owner(key)?;
        }
    }
    match delivery.origin {
        Origin::Root => {}
        Origin::Derived { parent, .. } => facts.parent = tx.event(parent)?,
    }
    Ok(facts)
}

fn duplicate(tx: &mut dyn Tx, delivery: &Delivery) -> Result<Option<Acceptance>, StoreError> {
    let Some(original) = tx.event_of_delivery(&delivery.source, &delivery.delivery_id)? else {
        return Ok(None);
    };
    let now = tx.now();
    tx.count_redelivery(original.sequence, now)?;
    Ok(Some(Acceptance::Duplicate { event: original.id, sequence: original.sequence }))
}
