//! Orders to one running attempt: what an interruption does to it, and what an operator may order.
//!
//! An operator's order is an accepted Event like any other, with its checkpoint and its intent in one transaction;
//! the dispatching stage carries it out. It is refused where the attempt's executor cannot do it, and takes no
//! fallback.

use domain::causal::Origin;
use domain::delivery::{self, AcceptFacts, Acceptance, Delivery, MANUAL_SOURCE};
use domain::event::{Event, Payload};
use domain::execution::{Execution, ExecutionState};
use domain::id::{EventId, ExecutionId, IdMaker, Sequence, WorkId};
use domain::input::Input;
use domain::intent::{Answer, ErrorFallback, Intent, IntentKind, IntentState, MANUAL_INTERRUPT};
use domain::route::{ActivePolicy, Checkpoint, CheckpointOutcome};
use domain::store::{StoreError, Tx};
use domain::text::{Code, DeliveryId, EventType, SourceName};
use domain::work::{Queue, Work, WorkRefusal, WorkState};
use serde::Serialize;

use crate::budget::{self, Proposed};
use crate::control::ControlError;
use crate::generation::ActiveGeneration;
use crate::meter;
use crate::node::Runtime;
use crate::schedule;

/// Orders the live attempt of a Work to do something about an Event.
pub(crate) fn commit(
    tx: &mut dyn Tx,
    execution: ExecutionId,
    event: &Event,
    kind: IntentKind,
    on_error: Option<ErrorFallback>,
) -> Result<(), StoreError> {
    let Some(execution) = tx.execution(execution)? else {
        return Err(StoreError::Corrupt { table: "work", reason: "names no run".to_owned() });
    };
    let now = tx.now();
    tx.insert_intent(&Intent {
        execution: execution.id,
        sequence: event.sequence,
        event: event.id,
        work: execution.work,
        kind,
        epoch: execution.epoch,
        on_error,
        state: IntentState::Pending { due_at: now },
        tries: 0,
        created_at: now,
        reason: None,
    })
}

/// What came of trying to fence an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fence {
    /// It has no authority any more, and its Work is ready.
    Fenced,
    /// It had ended.
    Over,
}

/// Takes an attempt's authority for an interruption that was sent, and leaves its Work ready with its input.
pub(crate) fn fence(
    tx: &mut dyn Tx,
    execution: ExecutionId,
    sequence: Sequence,
    active: &ActiveGeneration,
    proposed: &mut Proposed<'_>,
) -> Result<Fence, StoreError> {
    let now = tx.now();
    let corrupt = |reason: &str| StoreError::Corrupt { table: "intent", reason: reason.to_owned() };
    let intent = tx.intent(execution, sequence)?.ok_or_else(|| corrupt("is gone"))?;
    let read = tx.execution(execution)?.ok_or_else(|| corrupt("names no run"))?;
    let Ok(ended) = read.clone().interrupt(intent.event, now) else {
        if let Ok(stale) = intent.clone().stale() {
            tx.update_intent(&stale.because("the run ended before it was interrupted"), &intent)?;
        }
        return Ok(Fence::Over);
    };
    let work = tx.work(read.work)?.ok_or_else(|| corrupt("names no Work"))?;
    let pending = !tx.pending_inputs(work.id, 1)?.is_empty();
    let next = work.clone().interrupt(read.id, pending, now).expect("the live attempt is its Work's own");
    let accepted = intent.clone().answered(Answer::Accepted, now).expect("it was sent a moment ago");
    tx.update_execution(&ended, &read)?;
    meter::cut_off(tx, active, (&work, &read), proposed)?;
    tx.update_work(&next, &work)?;
    tx.update_intent(&accepted, &intent)?;
    schedule::room_freed(tx, &work.scope, 1)?;
    budget::offer(tx, active, &work.scope)?;
    Ok(Fence::Fenced)
}

/// Lets the Work of an interrupted attempt go on: nothing of the attempt runs any more. True when the Work may
/// start.
pub(crate) fn stopped(tx: &mut dyn Tx, ended: &Execution) -> Result<bool, StoreError> {
    let Some(event) = ended.interrupted_by else { return Ok(false) };
    if let Some(event) = tx.event(event)?
        && let Some(read) = tx.intent(ended.id, event.sequence)?
        && let Ok(next) = read.clone().delivered()
    {
        tx.update_intent(&next, &read)?;
    }
    let Some(work) = tx.work(ended.work)? else { return Ok(false) };
    let Ok(next) = work.clone().stopped(ended.id, tx.now()) else { return Ok(false) };
    tx.update_work(&next, &work)?;
    Ok(next.queue == Queue::Runnable)
}

/// Retires the orders to a turn that ended in a Wait and were not carried out: its attempt may go on, and they are
/// for no later turn. (INJ-4)
pub(crate) fn turn_over(tx: &mut dyn Tx, parked: &Execution) -> Result<(), StoreError> {
    if parked.state != ExecutionState::Parked {
        return Ok(());
    }
    for read in tx.intents_of(parked.id, u32::MAX)? {
        if let Ok(stale) = read.clone().stale() {
            tx.update_intent(&stale.because("the run was parked before it was delivered"), &read)?;
        }
    }
    Ok(())
}

/// What an operator gives to a running attempt.
#[derive(Debug, Clone)]
pub struct Message {
    /// The type of the Event that it becomes.
    pub event_type: EventType,
    /// Its body.
    pub payload: Payload,
}

/// What an operator's order came to.
#[derive(Debug, Clone, Copy)]
pub struct Ordered {
    /// The Event that it was accepted as.
    pub acceptance: Acceptance,
    /// The attempt that it is for; of an order that was given before, the one it was for then.
    pub execution: Option<ExecutionId>,
}

impl Runtime {
    /// Interrupts the live attempt of a Work on an operator's word: a `core.manual.interrupt` Event is accepted
    /// under `delivery_id`, which is a control and no input, and the attempt is ordered to end. Its Work stays, with
    /// its pending input.
    ///
    /// # Errors
    /// [`ControlError`]; then nothing has changed.
    pub async fn interrupt(&self, id: WorkId, delivery_id: DeliveryId) -> Result<Ordered, ControlError> {
        self.order(id, delivery_id, None).await
    }

    /// Gives the live attempt of a Work an Event of an operator, which is input of the Work until the attempt proves
    /// that it took it in.
    ///
    /// # Errors
    /// [`ControlError`]; then nothing has changed.
    pub async fn inject(
        &self,
        id: WorkId,
        message: Message,
        delivery_id: DeliveryId,
    ) -> Result<Ordered, ControlError> {
        self.order(id, delivery_id, Some(message)).await
    }

    async fn order(
        &self,
        id: WorkId,
        delivery_id: DeliveryId,
        message: Option<Message>,
    ) -> Result<Ordered, ControlError> {
        let proposed = self.store().ids(IdMaker::event);
        let active = self.generations().active();
        let ordered = self
            .store()
            .transact("order", move |tx| order(tx, &active, id, (&delivery_id, proposed), message.as_ref()))
            .await?;
        self.hints().dispatch.notify_one();
        self.hints().committed();
        Ok(ordered)
    }
}

/// The body of a `core.manual.interrupt` Event.
#[derive(Debug, Serialize)]
struct InterruptBody {
    work: WorkId,
    execution: ExecutionId,
    attempt: domain::id::Attempt,
}

fn order(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    id: WorkId,
    (delivery_id, proposed): (&DeliveryId, EventId),
    message: Option<&Message>,
) -> Result<Ordered, ControlError> {
    let source = SourceName::known(MANUAL_SOURCE);
    if let Some(known) = tx.event_of_delivery(&source, delivery_id)? {
        let now = tx.now();
        tx.count_redelivery(known.sequence, now)?;
        let acceptance = Acceptance::Duplicate { event: known.id, sequence: known.sequence };
        return Ok(Ordered { acceptance, execution: None });
    }
    let kind = if message.is_some() { IntentKind::Inject } else { IntentKind::Interrupt };
    let work = tx.work(id)?.ok_or(ControlError::UnknownWork(id))?;
    let run = live(tx, &work, kind)?;
    let interrupt = InterruptBody { work: id, execution: run.id, attempt: run.attempt };
    let (event_type, payload) = message.map_or_else(
        || {
            let body = serde_json::to_vec(&interrupt).expect("a struct of plain values is JSON");
            (EventType::known(MANUAL_INTERRUPT), Payload::stored(body))
        },
        |message| (message.event_type.clone(), message.payload.clone()),
    );
    let (sequence, now) = (tx.next_sequence(), tx.now());
    let delivery = Delivery {
        id: proposed,
        source,
        delivery_id: delivery_id.clone(),
        event_type,
        scope: work.scope.clone(),
        key: None,
        work: Some(id),
        occurred_at: None,
        payload,
        origin: Origin::Root,
    };
    let facts = AcceptFacts { target: Some(work.clone()), ..AcceptFacts::new(active.bounds(&work.scope)) };
    let event = delivery::admit(&delivery, &facts, sequence, now)
        .expect("an operator's root that names a Work of its own scope");
    tx.insert_new_event(&event, &delivery.payload)?;
    tx.insert_checkpoint(&checkpoint(&event, &run, kind, active))?;
    if message.is_some() {
        let binding = run.binding.clone();
        tx.insert_input(&Input { work: id, sequence, event: event.id, binding, consumed_by: None })?;
        let next = work.clone().enqueue(now)?;
        tx.update_work(&next, &work)?;
    }
    commit(tx, run.id, &event, kind, None)?;
    Ok(Ordered { acceptance: Acceptance::New { event: event.id, sequence }, execution: Some(run.id) })
}

/// The live attempt of a Work, when it can be ordered to do this.
fn live(tx: &mut dyn Tx, work: &Work, kind: IntentKind) -> Result<Execution, ControlError> {
    let WorkState::Running { execution } = work.state else {
        if work.state.is_terminal() {
            return Err(WorkRefusal::Terminal { state: work.state.as_str() }.into());
        }
        return Err(ControlError::NoRun(work.id, kind));
    };
    let run = tx.execution(execution)?.filter(|run| run.outcome.is_none());
    let run = run.ok_or(ControlError::NoRun(work.id, kind))?;
    if !run.controls.allow(kind) {
        return Err(ControlError::Unsupported { run: run.id, executor: run.executor, order: kind });
    }
    Ok(run)
}

fn checkpoint(event: &Event, run: &Execution, kind: IntentKind, active: &ActiveGeneration) -> Checkpoint {
    let (policy, code, reason) = match kind {
        IntentKind::Inject => {
            (ActivePolicy::Inject, "operator_inject", format!("an operator gave it to {}", run.id))
        }
        IntentKind::Interrupt => {
            (ActivePolicy::Interrupt, "operator_interrupt", format!("an operator interrupted {}", run.id))
        }
    };
    Checkpoint {
        sequence: event.sequence,
        event: event.id,
        outcome: CheckpointOutcome::Routed,
        route: None,
        policy: Some(policy),
        work: event.work,
        generation: active.number,
        code: Some(Code::known(code)),
        reason: Some(reason),
        at: event.accepted_at,
    }
}
