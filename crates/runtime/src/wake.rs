//! Waking: from a timer that is due to the Event it becomes, and what that makes of its Work.
//!
//! *Reads* timers and usage limits that are due. *Decides* in `domain::retry` and `domain::work` whether the failure that armed
//! one is still what its Work waits out, and in `domain::wait` what ends a Wait. *Writes* the Event with its checkpoint, the Work and the timer's end
//! together, so that a timer fires once; or, where its chain may not go further, the refusal's record and the
//! end of the wait. *Afterwards* hints scheduling.

use std::sync::Arc;

use domain::causal::Origin;
use domain::delivery::{AcceptFacts, CORE_SOURCE, Delivery};
use domain::event::Payload;
use domain::execution::Execution;
use domain::id::{EventId, ExecutionId, Sequence};
use domain::input::Input;
use domain::ownership::Tenure;
use domain::retry::{RETRY_DUE, RETRY_REQUESTED};
use domain::route::{Checkpoint, CheckpointOutcome};
use domain::store::{StoreError, Tx};
use domain::text::{Code, DeliveryId, EventType, SourceName};
use domain::timer::{Timer, TimerKind};
use domain::work::Work;
use serde::Serialize;

use crate::budget;
use crate::causal::{self, Derived};
use crate::credential;
use crate::generation::ActiveGeneration;
use crate::node::Runtime;
use crate::stage::{self, Chain, Progress, Stage, StageError};

pub(crate) mod fact;

use fact::{Due, Proposed};

/// The waking stage.
#[derive(Debug)]
pub struct Wake {
    runtime: Runtime,
}

impl Wake {
    pub(crate) const fn new(runtime: Runtime) -> Self {
        Self { runtime }
    }
}

/// What a step did.
#[derive(Debug, Default)]
struct Woken {
    fired: u64,
    refused: u64,
    stale: u64,
    behind: u64,
    announced: bool,
}

impl Woken {
    fn add(&mut self, other: &Self) {
        self.fired += other.fired;
        self.refused += other.refused;
        self.stale += other.stale;
        self.behind += other.behind;
        self.announced |= other.announced;
    }
}

impl Stage for Wake {
    fn name(&self) -> &'static str {
        "wake"
    }

    async fn step(&mut self) -> Result<Progress, StageError> {
        let runtime = &self.runtime;
        let Some(tenure) = runtime.tenure() else { return Ok(Progress::Idle { due_at: None }) };
        let batch = runtime.batch();
        let read = move |tx: &mut dyn domain::store::Snapshot| {
            let now = tx.now();
            let next = [tx.next_timer_due()?, tx.next_credential_due()?].into_iter().flatten().min();
            Ok::<_, StoreError>((tx.due_timers(now, batch)?, tx.due_credential_holds(now, batch)?, next))
        };
        let (due, credentials, next) = runtime.store().read("wake.read", read).await?;
        let freed = !credentials.is_empty() && credential::free(runtime, tenure, credentials).await?;
        if freed {
            runtime.hints().schedule.notify_one();
            runtime.hints().committed();
        }
        if due.is_empty() {
            return Ok(if freed { Progress::Advanced } else { Progress::Idle { due_at: next } });
        }
        let due: Arc<[Timer]> = due.into();
        let woken = match self.fire(tenure, Arc::clone(&due)).await {
            Err(error) if stage::is_of_an_item(&error) => self.fire_each(tenure, &due).await?,
            woken => woken?,
        };
        let metrics = runtime.metrics();
        metrics.timers_fired.inc_by(woken.fired);
        metrics.causal_refusals.inc_by(woken.refused);
        if woken.fired > 0 {
            runtime.hints().schedule.notify_one();
        }
        if woken.announced || woken.behind > 0 {
            runtime.hints().route.notify_one();
        }
        runtime.hints().committed();
        // One that cannot be fired is due still, and must not be asked for in a tight loop.
        let moved = freed || woken.fired + woken.refused + woken.stale + woken.behind > 0;
        Ok(if moved { Progress::Advanced } else { Progress::Idle { due_at: next } })
    }
}

impl Wake {
    async fn fire(&self, tenure: Tenure, due: Arc<[Timer]>) -> Result<Woken, StoreError> {
        let runtime = &self.runtime;
        let count = due.len();
        let proposed: Vec<Proposed> = runtime.store().ids(|maker, now| {
            let one = |_| Proposed { timeout: maker.event(now), woken: maker.event(now) };
            (0..count).map(one).collect()
        });
        let active = runtime.generations().active();
        runtime
            .transact_owned("wake", tenure, move |tx| {
                let mut woken = Woken::default();
                for (timer, proposed) in due.iter().zip(&proposed) {
                    fire(tx, &active, timer, *proposed, &mut woken)?;
                }
                Ok(woken)
            })
            .await
    }

    /// The same in a transaction for each, so that one with a damaged record keeps no other from firing.
    async fn fire_each(&self, tenure: Tenure, due: &[Timer]) -> Result<Woken, StoreError> {
        let mut woken = Woken::default();
        for timer in due {
            match self.fire(tenure, Arc::from([timer.clone()])).await {
                Ok(one) => woken.add(&one),
                Err(error) if stage::is_of_an_item(&error) => {
                    tracing::error!(timer = %timer.id, error = %Chain(&error), "a timer cannot be fired");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(woken)
    }
}

fn fire(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    timer: &Timer,
    proposed: Proposed,
    woken: &mut Woken,
) -> Result<(), StoreError> {
    // Gone means fired or disarmed since it was read.
    if !tx.delete_timer(timer.id)? {
        woken.stale += 1;
        return Ok(());
    }
    match timer.kind {
        TimerKind::Retry { failed } => fire_retry(tx, active, failed, proposed.timeout, woken),
        TimerKind::Wait { wait } => {
            match fact::due(tx, active, timer, wait, proposed)? {
                Due::Fired(ended) => {
                    woken.fired += u64::from(!ended.refused);
                    woken.refused += u64::from(ended.refused);
                    woken.announced |= ended.announced;
                }
                Due::Behind => woken.behind += 1,
                Due::Stale => woken.stale += 1,
            }
            Ok(())
        }
        TimerKind::BudgetWindow => {
            let Some(work) = tx.work(timer.work)? else { return Ok(()) };
            // The next one, for another budget that holds it now, has the id of the one that is gone.
            let lifted = budget::look_again(tx, active, &work, timer.id)?;
            woken.fired += u64::from(lifted);
            woken.stale += u64::from(!lifted);
            Ok(())
        }
    }
}

fn fire_retry(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    failed: ExecutionId,
    proposed: EventId,
    woken: &mut Woken,
) -> Result<(), StoreError> {
    let corrupt = |reason: &str| StoreError::Corrupt { table: "timer", reason: reason.to_owned() };
    let failed = tx.execution(failed)?.ok_or_else(|| corrupt("names no run"))?;
    let work = tx.work(failed.work)?.ok_or_else(|| corrupt("names no Work"))?;
    let now = tx.now();
    // Whether it is still waited for is asked before an Event is made of it.
    if work.clone().retry_due(failed.id, Sequence::ZERO, now).is_err() {
        woken.stale += 1;
        return Ok(());
    }
    let delivery = due_delivery(proposed, &work, &failed);
    let facts = AcceptFacts {
        target: Some(work.clone()),
        parent: tx.event(failed.turn.cause)?,
        ..AcceptFacts::new(active.bounds(&work.scope))
    };
    match causal::derive(tx, &delivery, &facts)? {
        Derived::Accepted(event) => {
            let next = work.clone().retry_due(failed.id, event.sequence, now);
            let next = next.expect("it was asked a moment ago");
            let input = (event.sequence, event.id);
            begin_retry(tx, &work, &next, &failed, input, "retry_due", active)?;
            woken.fired += 1;
        }
        Derived::Refused(_recorded) => {
            let next = work.clone().retry_refused(failed.id, now).expect("it waits that failure out");
            tx.update_work(&next, &work)?;
            woken.refused += 1;
        }
        Derived::Duplicate => woken.stale += 1,
    }
    Ok(())
}

/// The body of a `core.retry.due` and of a `core.retry.requested` Event.
#[derive(Debug, Serialize)]
struct RetryBody {
    work: domain::id::WorkId,
    execution: ExecutionId,
    attempt: domain::id::Attempt,
    failures: u32,
}

pub(crate) fn retry_payload(work: &Work, last: &Execution) -> Payload {
    let body =
        RetryBody { work: work.id, execution: last.id, attempt: last.attempt, failures: work.failures };
    Payload::stored(serde_json::to_vec(&body).expect("a struct of plain values is JSON"))
}

fn due_delivery(id: EventId, work: &Work, failed: &Execution) -> Delivery {
    Delivery {
        id,
        source: SourceName::known(CORE_SOURCE),
        delivery_id: DeliveryId::known(&format!("retry/{}", failed.id)),
        event_type: EventType::known(RETRY_DUE),
        scope: work.scope.clone(),
        key: None,
        work: Some(work.id),
        occurred_at: None,
        payload: retry_payload(work, failed),
        origin: Origin::Derived { parent: failed.turn.cause, emitted_by: None },
    }
}

/// Whether a type asks for the next attempt after a failure. Such an Event is routed as it is accepted.
pub(crate) fn is_retry(event_type: &EventType) -> bool {
    matches!(event_type.as_str(), RETRY_DUE | RETRY_REQUESTED)
}

/// Makes an accepted retry Event the next input of its Work, by the binding that the failed attempt ran by.
pub(crate) fn begin_retry(
    tx: &mut dyn Tx,
    work: &Work,
    next: &Work,
    failed: &Execution,
    (sequence, event): (Sequence, EventId),
    code: &'static str,
    active: &ActiveGeneration,
) -> Result<(), StoreError> {
    tx.insert_checkpoint(&Checkpoint {
        sequence,
        event,
        outcome: CheckpointOutcome::Routed,
        route: None,
        policy: None,
        work: Some(work.id),
        generation: active.number,
        code: Some(Code::known(code)),
        reason: Some(format!("it starts the next run after {}", failed.id)),
        at: tx.now(),
    })?;
    let binding = failed.binding.clone();
    tx.insert_input(&Input { work: work.id, sequence, event, binding, consumed_by: None })?;
    tx.update_work(next, work)
}

/// Rearms what would wait longer than it was armed for, after the clock stepped back over a restart.
///
/// # Errors
/// [`StoreError`].
pub(crate) async fn rearm(runtime: &Runtime) -> Result<u64, StoreError> {
    let mut rearmed = 0;
    let mut after = None;
    loop {
        let page = runtime.store().read("rearm.read", move |tx| tx.timers(after, stage::BATCH)).await?;
        let Some(last) = page.last() else { return Ok(rearmed) };
        after = Some((last.due_at, last.id));
        rearmed += runtime
            .store()
            .transact("rearm", move |tx| {
                let now = tx.now();
                let mut rearmed = 0;
                for timer in page.iter().filter_map(|timer| timer.rearmed(now)) {
                    rearmed += u64::from(tx.rearm_timer(&timer)?);
                }
                Ok::<_, StoreError>(rearmed)
            })
            .await?;
    }
}
