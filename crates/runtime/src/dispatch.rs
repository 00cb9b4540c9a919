//! Dispatching: from an order that a routed Event left to the attempt that it is for.
//!
//! *Reads* intents that are due, of this host. *Decides* in `domain::intent` whether one is still to be carried
//! out; one whose attempt has ended is stale and goes to no other. *Writes* that it is sent, then calls the
//! executor outside, then writes the answer; or, of an interruption, fences the attempt and leaves its Work ready.
//! *Afterwards* hints whoever stops processes. A crash in between sends the same order again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::event::{Event, Payload};
use domain::execution::{Execution, ExecutionState};
use domain::id::{ExecutionId, Incarnation, Sequence};
use domain::intent::{ANSWER_TIME_MAX, Answer, Intent, IntentKind};
use domain::store::{Priority, StoreError, Tx};
use domain::time::Timestamp;
use extension::{EventView, Injected, Injection, InputView};

use crate::budget::Proposed;
use crate::caught::{Panicked, caught};
use crate::execute::Unequipped;
use crate::generation::ActiveGeneration;
use crate::node::Runtime;
use crate::order::{self, Fence};
use crate::stage::{self, BATCH, Chain, Progress, Stage, StageError};

/// How soon a step looks again at orders whose attempts are being asked about others.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The dispatching stage.
#[derive(Debug)]
pub struct Dispatch {
    runtime: Runtime,
    /// Attempts that are being asked. Each is asked about one Event at a time, in order.
    asked: Asked,
}

impl Dispatch {
    pub(crate) fn new(runtime: Runtime) -> Self {
        Self { runtime, asked: Asked::default() }
    }
}

impl Stage for Dispatch {
    fn name(&self) -> &'static str {
        "dispatch"
    }

    async fn step(&mut self) -> Result<Progress, StageError> {
        let runtime = &self.runtime;
        let read = runtime.store().read("dispatch.read", |tx| {
            let now = tx.now();
            let next = tx.next_intent_due()?;
            let due =
                if next.is_some_and(|next| next <= now) { tx.due_intents(now, BATCH)? } else { Vec::new() };
            Ok::<_, StoreError>((now, next, due))
        });
        let (now, next, due) = read.await?;
        let mut orders: BTreeMap<ExecutionId, BTreeSet<Sequence>> = BTreeMap::new();
        for intent in due {
            orders.entry(intent.execution).or_default().insert(intent.sequence);
        }
        let mut begun = false;
        for (execution, sequences) in orders {
            let Some(asking) = self.asked.begin(execution) else { continue };
            begun = true;
            let runtime = self.runtime.clone();
            self.runtime.spawn(async move {
                tokio::select! {
                    biased;
                    () = runtime.ending().cancelled() => {}
                    () = carry_out(&runtime, execution, sequences) => {}
                }
                drop(asking);
                runtime.hints().dispatch.notify_one();
            });
        }
        if begun {
            return Ok(Progress::Advanced);
        }
        // What is due and not begun is being asked about, and rings when it is answered.
        Ok(Progress::Idle { due_at: next.map(|due| if due > now { due } else { now.after(LOOK_AGAIN) }) })
    }
}

/// The attempts that are being asked.
#[derive(Debug, Clone, Default)]
struct Asked(Arc<Mutex<BTreeSet<ExecutionId>>>);

impl Asked {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<ExecutionId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that an attempt is being asked, until what this returns is dropped. None when it is already.
    fn begin(&self, execution: ExecutionId) -> Option<Asking> {
        self.lock().insert(execution).then(|| Asking { asked: self.clone(), execution })
    }
}

#[derive(Debug)]
struct Asking {
    asked: Asked,
    execution: ExecutionId,
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.asked.lock().remove(&self.execution);
    }
}

/// Carries out the orders to one attempt, one after the other.
async fn carry_out(runtime: &Runtime, execution: ExecutionId, sequences: BTreeSet<Sequence>) {
    for sequence in sequences {
        match carry_out_one(runtime, execution, sequence).await {
            Ok(()) => {}
            // It becomes due again by itself.
            Err(error) => {
                tracing::warn!(%execution, error = %Chain(&error), "an order to a run was given up, and becomes due again");
                return;
            }
        }
    }
}

async fn carry_out_one(
    runtime: &Runtime,
    execution: ExecutionId,
    sequence: Sequence,
) -> Result<(), StoreError> {
    let me = runtime.store().incarnation();
    let sent = runtime.store().transact("dispatch", move |tx| send(tx, execution, sequence, me)).await?;
    let Some(order) = sent else { return Ok(()) };
    let kind = order.intent.kind;
    let said = match kind {
        IntentKind::Inject => inject(runtime, order).await?,
        IntentKind::Interrupt => match interrupt(runtime, &order).await? {
            Some(said) => said,
            None => return Ok(()),
        },
    };
    crate::metrics::count(&runtime.metrics().orders, said.word());
    let record = move |tx: &mut dyn Tx| answered(tx, execution, sequence, &said);
    runtime.store().transact("dispatch.answer", record).await?;
    runtime.hints().committed();
    Ok(())
}

/// An order on its way to an executor.
#[derive(Debug, Clone)]
struct Order {
    intent: Intent,
    execution: Execution,
    event: Event,
    payload: Option<Payload>,
}

/// Notes that an order is sent, if it still is to be and its attempt can be asked.
fn send(
    tx: &mut dyn Tx,
    execution: ExecutionId,
    sequence: Sequence,
    me: Incarnation,
) -> Result<Option<Order>, StoreError> {
    let now = tx.now();
    let Some(read) = tx.intent(execution, sequence)? else { return Ok(None) };
    if read.state.due_at().is_none_or(|due| due > now) {
        return Ok(None);
    }
    let corrupt = |reason: &str| StoreError::Corrupt { table: "intent", reason: reason.to_owned() };
    let execution = tx.execution(execution)?.ok_or_else(|| corrupt("names no run"))?;
    let open = "what is due is neither settled nor sent";
    if let Some(why) = over(&execution, me, now) {
        tx.update_intent(&read.clone().stale().expect(open).because(why), &read)?;
        return Ok(None);
    }
    let held = execution.lease.is_some_and(|lease| lease.owner == me && lease.is_live(now));
    let runs = execution.state == ExecutionState::Running && !execution.recovering && held;
    if read.kind == IntentKind::Inject && !runs {
        tx.update_intent(&read.clone().put_off(now).expect(open), &read)?;
        return Ok(None);
    }
    let intent = read.clone().dispatch(now).expect(open);
    tx.update_intent(&intent, &read)?;
    let event = tx.event_at(sequence)?.ok_or_else(|| corrupt("names no event"))?;
    let payload = tx.payload(sequence)?;
    Ok(Some(Order { intent, execution, event, payload }))
}

/// Why an attempt is past the turn that an order was for.
fn over(execution: &Execution, me: Incarnation, now: Timestamp) -> Option<&'static str> {
    if execution.state.is_terminal() || execution.outcome.is_some() {
        return Some("the run ended before it was delivered");
    }
    if execution.state == ExecutionState::Parked {
        return Some("the run was parked before it was delivered");
    }
    // Only a later turn can be another process's while this one lives, and that one began with all there was.
    let elsewhere = execution.lease.is_some_and(|lease| lease.owner != me && lease.is_live(now));
    elsewhere.then_some("the run went on elsewhere before it was delivered")
}

/// What came of asking an executor, with the words for it.
#[derive(Debug, Clone)]
struct Said {
    answer: Answer,
    reason: Option<String>,
}

impl Said {
    fn of(answer: Answer, reason: impl Into<String>) -> Self {
        Self { answer, reason: Some(reason.into()) }
    }

    const fn word(&self) -> &'static str {
        match self.answer {
            Answer::Accepted => "accepted",
            Answer::NotAccepting => "not_accepting",
            Answer::Ambiguous => "ambiguous",
        }
    }
}

/// Offers the Event to its attempt.
async fn inject(runtime: &Runtime, order: Order) -> Result<Said, StoreError> {
    let Order { execution, event, payload, .. } = order;
    let equipment = match runtime.equip(&execution).await {
        Ok(equipment) => equipment,
        Err(Unequipped::Store(error)) => return Err(error),
        Err(Unequipped::Failed(result)) => return Ok(unequipped(result)),
    };
    if !execution.controls.inject || !equipment.executor.capabilities().controls.inject {
        return Ok(cannot(&execution, IntentKind::Inject));
    }
    let input = InputView { event: EventView::from(&event), payload, is_context: false };
    let segment = Runtime::segment(&execution, &equipment);
    let asked = equipment.executor.inject(Injection { segment, input });
    let answer = tokio::select! {
        biased;
        answer = caught(asked) => answer.unwrap_or_else(|Panicked| {
            tracing::error!(execution = %execution.id, "an executor failed by a bug at taking an event in");
            Injected::Ambiguous { reason: "the executor failed by a bug".to_owned() }
        }),
        () = stage::pause(ANSWER_TIME_MAX) => {
            let seconds = ANSWER_TIME_MAX.as_secs();
            Injected::Ambiguous { reason: format!("the executor did not answer within {seconds} seconds") }
        }
    };
    Ok(match answer {
        Injected::Accepted => Said { answer: Answer::Accepted, reason: None },
        Injected::NotAccepting { reason } => Said::of(Answer::NotAccepting, reason),
        Injected::Ambiguous { reason } => Said::of(Answer::Ambiguous, reason),
    })
}

/// Fences an attempt that can be stopped. None when it was; what it had started is stopped afterwards.
async fn interrupt(runtime: &Runtime, order: &Order) -> Result<Option<Said>, StoreError> {
    let equipment = match runtime.equip(&order.execution).await {
        Ok(equipment) => equipment,
        Err(Unequipped::Store(error)) => return Err(error),
        Err(Unequipped::Failed(result)) => return Ok(Some(unequipped(result))),
    };
    if !order.execution.controls.interrupt || !equipment.executor.capabilities().controls.interrupt {
        return Ok(Some(cannot(&order.execution, IntentKind::Interrupt)));
    }
    let (id, sequence) = (order.execution.id, order.intent.sequence);
    let fence = move |tx: &mut dyn Tx, active: &ActiveGeneration, proposed: &mut Proposed<'_>| {
        order::fence(tx, id, sequence, active, proposed)
    };
    let fenced = runtime.under_newest((Priority::Normal, "interrupt"), 1, fence).await?;
    if let Fence::Fenced = fenced {
        tracing::info!(execution = %id, event = %order.event.id, "a run was interrupted");
        crate::metrics::count(&runtime.metrics().orders, "interrupted");
        runtime.held().lose(id);
        runtime.hints().recover.notify_one();
        runtime.hints().stop.notify_one();
        runtime.hints().schedule.notify_one();
    }
    runtime.hints().committed();
    Ok(None)
}

fn unequipped(result: domain::outcome::TurnResult) -> Said {
    let reason = result.summary.unwrap_or_else(|| "its binding or executor is gone".to_owned());
    Said::of(Answer::Ambiguous, reason)
}

fn cannot(execution: &Execution, kind: IntentKind) -> Said {
    let reason = format!("its executor `{}` cannot {} a run", execution.executor, kind.as_str());
    Said::of(Answer::NotAccepting, reason)
}

/// Writes down what an executor answered, unless the attempt has said more since.
fn answered(
    tx: &mut dyn Tx,
    execution: ExecutionId,
    sequence: Sequence,
    said: &Said,
) -> Result<(), StoreError> {
    let now = tx.now();
    let Some(read) = tx.intent(execution, sequence)? else { return Ok(()) };
    let Ok(next) = read.clone().answered(said.answer, now) else { return Ok(()) };
    let next = match &said.reason {
        Some(reason) => next.because(reason),
        None => Intent { reason: None, ..next },
    };
    tx.update_intent(&next, &read)
}
