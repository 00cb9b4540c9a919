//! Input that reaches an attempt while it runs: what was offered to it, and what it says it took in.

use domain::event::{Event, Payload};
use domain::execution::Execution;
use domain::id::EventId;
use domain::intent::{IntentKind, IntentState};
use domain::outcome::TurnResult;
use domain::store::{Snapshot, Tx};
use domain::toolbelt::{CallRefusal, Presented};

use super::{CallError, caller, declare, json};
use crate::node::Runtime;
use crate::replay;

/// Orders of an attempt that are looked at.
const ORDERS_MAX: u32 = 1000;
/// Bytes of bodies in one answer. Later Events come without theirs.
const BODIES_BYTES_MAX: usize = 4 << 20;

/// An Event that was injected into an attempt.
#[derive(Debug, Clone)]
pub struct Offered {
    /// The Event, as the attempt sees it.
    pub event: Event,
    /// Its body; none when it was released, or would make the answer too large.
    pub payload: Option<Payload>,
    /// How far the order has come.
    pub state: IntentState,
    /// Whether the attempt acknowledged it.
    pub acknowledged: bool,
}

impl Runtime {
    /// What was injected into an attempt, in order of acceptance.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn offered(&self, by: Presented) -> Result<Vec<Offered>, CallError> {
        self.store().read("call.read", move |tx| offered(tx, by)).await
    }
}

fn offered(tx: &mut dyn Snapshot, by: Presented) -> Result<Vec<Offered>, CallError> {
    let execution = caller(tx, by)?;
    let acknowledged = tx.acknowledged_by(execution.id, most())?;
    let (mut offered, mut bytes) = (Vec::new(), 0);
    for intent in tx.intents_of(execution.id, ORDERS_MAX)? {
        if !is_offered(intent.kind, intent.tries, intent.state) {
            continue;
        }
        let Some(event) = tx.event_at(intent.sequence)? else { continue };
        let mut payload = None;
        if bytes < BODIES_BYTES_MAX {
            payload = tx.payload(intent.sequence)?;
            bytes += payload.as_ref().map_or(0, |payload| payload.as_bytes().len());
        }
        let is_acknowledged = acknowledged.contains(&event.id);
        let event = replay::seen(tx, event)?;
        offered.push(Offered { event, payload, state: intent.state, acknowledged: is_acknowledged });
    }
    Ok(offered)
}

/// Whether an order is an injection that may have reached the attempt. Only such a one can be proved.
fn is_offered(kind: IntentKind, tries: u32, state: IntentState) -> bool {
    let open = match state {
        IntentState::Pending { .. }
        | IntentState::Dispatched { .. }
        | IntentState::Ambiguous { .. }
        | IntentState::Accepted
        | IntentState::FellBack => true,
        IntentState::NotAccepting | IntentState::Consumed | IntentState::Delivered | IntentState::Stale => {
            false
        }
    };
    kind == IntentKind::Inject && tries > 0 && open
}

/// Takes note that an attempt took an injected Event in. It is part of its result's proof, and consumed with it.
/// (TOO-8)
pub(super) fn acknowledge(tx: &mut dyn Tx, execution: &Execution, id: EventId) -> Result<Vec<u8>, CallError> {
    let event = tx.event(id)?.ok_or(CallRefusal::UnknownEvent(id))?;
    let intent = tx.intent(execution.id, event.sequence)?;
    if !intent.is_some_and(|intent| is_offered(intent.kind, intent.tries, intent.state)) {
        return Err(CallRefusal::NotInjected(id).into());
    }
    tx.put_acknowledgement(execution.id, event.sequence, id)?;
    declare(tx, execution, |next| next.toolbelt.declared.acknowledged = true)?;
    Ok(json(&serde_json::json!({ "event": id, "acknowledged": true })))
}

fn most() -> u32 {
    u32::try_from(TurnResult::CONSUMED_MAX).unwrap_or(u32::MAX)
}
