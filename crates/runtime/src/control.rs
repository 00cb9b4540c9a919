//! What operators do: cancel a Work, apply a configuration.
//!
//! A control commits first and acts afterwards; what it has to stop outside is marked in the row, so a crash
//! in between only delays it.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::capacity::Blocker;
use domain::causal::Origin;
use domain::delivery::{self, AcceptFacts, Acceptance, Delivery, MANUAL_SOURCE};
use domain::execution::{Execution, ExecutionState};
use domain::id::{EventId, ExecutionId, Generation, TimerId, WorkId};
use domain::intent::IntentKind;
use domain::lane;
use domain::retry::{Eligibility, RETRY_REQUESTED};
use domain::store::{ExecutionFilter, Priority, Snapshot, StoreError, Tx};
use domain::text::{DeliveryId, EventType, ExecutorName, ScopeName, SourceName};
use domain::timer::TimerKind;
use domain::work::{HoldReason, Queue, Work, WorkRefusal, WorkState};
use extension::Stopped;
use thiserror::Error;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::alias;
use crate::budget::{self, Proposed};
use crate::caught::{Panicked, caught};
use crate::execute::Unequipped;
use crate::generation::{ActiveGeneration, ApplyError};
use crate::meter;
use crate::node::Runtime;
use crate::order;
use crate::pause;
use crate::retain;
use crate::schedule;
use crate::stage::{self, BATCH, Chain};
use crate::wake::{self, fact};

/// How long a run that could not be stopped is left alone before the next try.
pub(crate) const STOP_AGAIN: Duration = Duration::from_secs(30);

/// Why a control had no effect.
#[derive(Debug, Error)]
pub enum ControlError {
    /// There is no such Work.
    #[error("no Work {0} exists; `work list` shows those that do")]
    UnknownWork(WorkId),
    /// No attempt of the Work runs.
    #[error("no run of {0} is going on, so there is none to {order}; `work show` says what moves it next", order = .1.as_str())]
    NoRun(WorkId, IntentKind),
    /// The attempt's executor cannot do it.
    #[error("{run} runs by the executor `{executor}`, which cannot {} a run; wait for it to end, or cancel its Work", .order.as_str())]
    Unsupported {
        /// The attempt.
        run: ExecutionId,
        /// Its executor.
        executor: ExecutorName,
        /// What was ordered.
        order: IntentKind,
    },
    /// The Work does not allow it.
    #[error(transparent)]
    Refused(#[from] WorkRefusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a cancellation did.
#[derive(Debug, Clone)]
pub struct Cancelled {
    /// The attempt that was live, as it ended.
    pub execution: Option<Execution>,
}

impl Runtime {
    /// Cancels a Work and its live attempt. When this answers well, neither has any authority left; the
    /// process is stopped afterwards.
    ///
    /// # Errors
    /// [`ControlError`]; then nothing has changed. A Work that has ended stays as it ended.
    pub async fn cancel(&self, id: WorkId) -> Result<Cancelled, ControlError> {
        let body = move |tx: &mut dyn Tx, active: &ActiveGeneration, proposed: &mut Proposed<'_>| {
            cancel(tx, active, id, proposed)
        };
        let cancelled = self.under_newest((Priority::High, "cancel"), 1, body).await?;
        if let Some(execution) = &cancelled {
            self.held().lose(execution.id);
            self.hints().recover.notify_one();
        }
        self.hints().schedule.notify_one();
        self.hints().stop.notify_one();
        // A budget may have been crossed.
        self.hints().route.notify_one();
        self.hints().retain.notify_one();
        self.hints().committed();
        Ok(Cancelled { execution: cancelled })
    }

    /// Asks for the next attempt of a Work that has failed, on an operator's word: it is accepted as a
    /// `core.retry.requested` Event under `delivery_id`, clears whatever wait or exhaustion there is, and begins
    /// the failure budget anew.
    ///
    /// # Errors
    /// [`ControlError`]; then nothing has changed.
    pub async fn retry(&self, id: WorkId, delivery_id: DeliveryId) -> Result<Acceptance, ControlError> {
        let proposed = self.store().ids(domain::id::IdMaker::event);
        let active = self.generations().active();
        let acceptance =
            self.store().transact("retry", move |tx| retry(tx, &active, id, &delivery_id, proposed)).await?;
        self.hints().schedule.notify_one();
        self.hints().committed();
        Ok(acceptance)
    }

    /// Lets a held Work go on. What its hold kept back is accepted on the operator's word, and needs no room in a
    /// chain.
    ///
    /// # Errors
    /// [`ControlError`]; then nothing has changed.
    pub async fn release(&self, id: WorkId) -> Result<Work, ControlError> {
        let proposed = self
            .store()
            .ids(|maker, now| fact::Proposed { timeout: maker.event(now), woken: maker.event(now) });
        let active = self.generations().active();
        let released = self
            .store()
            .transact("work_release", move |tx| {
                let work = tx.work(id)?.ok_or(ControlError::UnknownWork(id))?;
                let next = work.clone().release(tx.now())?;
                tx.update_work(&next, &work)?;
                budget::disarm_lift(tx, id)?;
                if let Some(wait) = next.state.waits_for() {
                    fact::released(tx, &active, wait, proposed)?;
                }
                Ok::<_, ControlError>(tx.work(id)?.unwrap_or(next))
            })
            .await?;
        self.hints().route.notify_one();
        self.hints().schedule.notify_one();
        self.hints().committed();
        Ok(released)
    }

    /// Applies a configuration text as the next generation.
    ///
    /// # Errors
    /// [`ApplyError`]; then the one in force stays.
    pub async fn apply(&self, body: String, digest: String) -> Result<Generation, ApplyError> {
        let number = self.generations().apply(self.store(), body, digest).await?;
        self.reconsider().await?;
        Ok(number)
    }

    /// Looks again at everything that the configuration kept from going on.
    pub(crate) async fn reconsider(&self) -> Result<(), StoreError> {
        let read = |tx: &mut dyn Snapshot| Ok::<_, StoreError>((tx.blockers(u32::MAX)?, pause::scopes(tx)?));
        let (blockers, paused) = self.store().read("reconsider", read).await?;
        for (blocker, count) in blockers.into_iter().filter(|(blocker, _count)| blocker.is_of_configuration())
        {
            let active = self.generations().active();
            let concurrency =
                |scope: &ScopeName| active.scope(scope).map(|active| active.scope.settings.concurrency);
            let room = blocker.comes_back(concurrency, |scope| self.is_paused(scope, &paused));
            self.bring_back(&blocker, count.min(room)).await?;
        }
        self.lift_raised().await?;
        self.store()
            .transact("reconsider", |tx| {
                let now = tx.now();
                for mut block in tx.lane_blocks(1000)? {
                    if matches!(block.code.as_str(), "unknown_scope" | "scope_disabled") {
                        block.blocked_until = now;
                        tx.put_lane_block(&block)?;
                    }
                }
                Ok::<_, StoreError>(())
            })
            .await?;
        self.hints().route.notify_one();
        self.hints().schedule.notify_one();
        self.hints().wake.notify_one();
        self.hints().retain.notify_one();
        self.hints().committed();
        Ok(())
    }

    /// Looks again at every Event that a handler held because it could not answer anything. One of them does again.
    ///
    /// # Errors
    /// [`StoreError`]; then they are looked at again within a minute.
    // Spec: EXT-9
    pub async fn reconsider_unanswered(&self) -> Result<(), StoreError> {
        self.store()
            .transact("reconsider", |tx| {
                let now = tx.now();
                for mut block in tx.lane_blocks(u32::MAX)? {
                    if !lane::counts(&block.code) {
                        block.blocked_until = now;
                        tx.put_lane_block(&block)?;
                    }
                }
                Ok::<_, StoreError>(())
            })
            .await?;
        self.hints().route.notify_one();
        Ok(())
    }

    /// Brings Works back that wait for something, as many as there are now: the scheduler may put them back as fast
    /// as they come.
    pub(crate) async fn bring_back(&self, blocker: &Blocker, mut left: u32) -> Result<(), StoreError> {
        while left > 0 {
            let (list, part) = (blocker.clone(), left.min(BATCH));
            let bring = move |tx: &mut dyn Tx| schedule::bring_back(tx, &list, part);
            if !self.store().transact("reconsider", bring).await? {
                break;
            }
            left -= part;
        }
        Ok(())
    }

    /// Ends the holds of budgets whose limit was raised, or that are gone.
    async fn lift_raised(&self) -> Result<(), StoreError> {
        let held: Vec<WorkId> = self
            .store()
            .read("reconsider", |tx| {
                let held = tx.held(u32::MAX)?.into_iter();
                let of_budgets = held
                    .filter(|work| work.hold.as_ref().is_some_and(|hold| hold.because == HoldReason::Budget));
                Ok::<_, StoreError>(of_budgets.map(|work| work.id).collect())
            })
            .await?;
        for part in held.chunks(BATCH as usize) {
            let (part, active) = (part.to_vec(), self.generations().active());
            let timers: Vec<TimerId> =
                self.store().ids(|maker, now| part.iter().map(|_work| maker.timer(now)).collect());
            let lift = move |tx: &mut dyn Tx| {
                for (id, timer) in part.iter().zip(&timers) {
                    if let Some(work) = tx.work(*id)? {
                        budget::look_again(tx, &active, &work, *timer)?;
                    }
                }
                Ok::<_, StoreError>(())
            };
            self.store().transact("reconsider", lift).await?;
        }
        Ok(())
    }
}

fn cancel(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    id: WorkId,
    proposed: &mut Proposed<'_>,
) -> Result<Option<Execution>, ControlError> {
    let now = tx.now();
    let work = tx.work(id)?.ok_or(ControlError::UnknownWork(id))?;
    let next = work.clone().cancel(now)?;
    let mut ended = None;
    let mut had_room = work.queue == Queue::Runnable;
    if let Some(execution) = live_of(tx, &work)?
        && let Some(read) = tx.execution(execution)?
        && let Ok(execution) = read.clone().cancel(now)
    {
        tx.update_execution(&execution, &read)?;
        if read.outcome.is_none() && read.state.is_going_on() {
            meter::cut_off(tx, active, (&work, &read), proposed)?;
        }
        had_room |= read.state != ExecutionState::Parked;
        ended = Some(execution);
    }
    tx.update_work(&next, &work)?;
    tx.delete_timers_of(id)?;
    alias::end_of(tx, id)?;
    if let Some(wait) = work.state.waits_for()
        && let Some(wait) = tx.wait(wait)?.and_then(|wait| wait.cancel(now))
    {
        tx.end_wait(&wait)?;
    }
    // A Work in the queue may have been offered the only room there is.
    if had_room {
        schedule::room_freed(tx, &work.scope, 1)?;
        budget::offer(tx, active, &work.scope)?;
    }
    schedule::key_freed(tx, &next)?;
    retain::cancelled(tx, active, &next)?;
    Ok(ended)
}

/// The attempt of a Work that has not ended: the one that runs, or the one that is parked.
fn live_of(tx: &mut dyn Tx, work: &Work) -> Result<Option<ExecutionId>, StoreError> {
    Ok(match (work.state, work.eligibility) {
        (WorkState::Running { execution }, _) => Some(execution),
        (WorkState::Waiting { wait }, _) => tx.wait(wait)?.map(|wait| wait.execution),
        (_, Eligibility::Woken { resumes, .. }) => resumes,
        (WorkState::Ready | WorkState::Completed | WorkState::Failed | WorkState::Cancelled, _) => None,
    })
}

fn retry(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    id: WorkId,
    delivery_id: &DeliveryId,
    proposed: EventId,
) -> Result<Acceptance, ControlError> {
    let source = SourceName::known(MANUAL_SOURCE);
    if let Some(known) = tx.event_of_delivery(&source, delivery_id)? {
        let now = tx.now();
        tx.count_redelivery(known.sequence, now)?;
        return Ok(Acceptance::Duplicate { event: known.id, sequence: known.sequence });
    }
    let work = tx.work(id)?.ok_or(ControlError::UnknownWork(id))?;
    let newest = ExecutionFilter { work: Some(id), ..ExecutionFilter::default() };
    let last = tx.executions(&newest, 1)?.into_iter().next();
    let last = last.filter(|last| last.state.may_be_repeated());
    let (sequence, now) = (tx.next_sequence(), tx.now());
    let next = work.clone().retry_requested(last.as_ref().map(|last| last.id), sequence, now)?;
    let last = last.expect("a Work without a run to repeat is refused");
    let delivery = Delivery {
        id: proposed,
        source,
        delivery_id: delivery_id.clone(),
        event_type: EventType::known(RETRY_REQUESTED),
        scope: work.scope.clone(),
        key: None,
        work: Some(id),
        occurred_at: None,
        payload: wake::retry_payload(&work, &last),
        origin: Origin::Root,
    };
    let facts = AcceptFacts { target: Some(work.clone()), ..AcceptFacts::new(active.bounds(&work.scope)) };
    let event = delivery::admit(&delivery, &facts, sequence, now)
        .expect("an operator's root that names a Work of its own scope");
    tx.insert_new_event(&event, &delivery.payload)?;
    // What looks again at a hold stays: the hold does, too.
    for timer in tx.timers_of(id, BATCH)? {
        if let TimerKind::Retry { .. } = timer.kind {
            tx.delete_timer(timer.id)?;
        }
    }
    wake::begin_retry(tx, &work, &next, &last, (sequence, event.id), "retry_requested", active)?;
    Ok(Acceptance::New { event: event.id, sequence })
}

/// Stops what ended while it still ran, until the end. Each is tried until it is established that it stopped.
///
/// `look_again` is how often another process may have cancelled something that runs here.
pub(crate) async fn stop_loop(runtime: Runtime, look_again: Option<Duration>, end: CancellationToken) {
    let mut stops = Stops::default();
    loop {
        let mut left = match stops.begin(&runtime).await {
            Ok(()) => false,
            Err(error) => {
                tracing::warn!(error = %Chain(&error), "what was cancelled could not be looked for");
                true
            }
        };
        loop {
            let again = if left { Some(STOP_AGAIN) } else { look_again };
            tokio::select! {
                biased;
                () = end.cancelled() => return,
                () = runtime.hints().stop.notified() => break,
                Some(stopped) = stops.next() => left |= !stopped,
                () = stage::pause(again.unwrap_or_default()), if again.is_some() => break,
            }
        }
    }
}

/// Stops that are under way. They go on beside one another, so that one that takes long holds up none.
#[derive(Debug, Default)]
struct Stops {
    going: BTreeSet<ExecutionId>,
    tasks: JoinSet<(ExecutionId, bool)>,
}

impl Stops {
    /// Begins to stop whatever is marked and not being stopped yet.
    async fn begin(&mut self, runtime: &Runtime) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let marked = runtime.store().read("stop.read", move |tx| tx.unstopped(after, BATCH)).await?;
            after = marked.last().map(|execution| execution.id);
            let full = marked.len() == BATCH as usize;
            for execution in marked {
                if !self.going.insert(execution.id) {
                    continue;
                }
                let runtime = runtime.clone();
                self.tasks.spawn(async move {
                    let id = execution.id;
                    let stopped = caught(stop(&runtime, &execution)).await.unwrap_or_else(|Panicked| {
                        tracing::error!(execution = %id, "an executor failed by a bug at stopping a run");
                        false
                    });
                    (id, stopped)
                });
            }
            if !full {
                return Ok(());
            }
        }
    }

    /// Whether the next of them that is done was stopped for certain; none when nothing is under way.
    async fn next(&mut self) -> Option<bool> {
        let (id, stopped) = self.tasks.join_next().await?.ok()?;
        self.going.remove(&id);
        Some(stopped)
    }
}

/// Stops one Execution; true once that is established and recorded.
async fn stop(runtime: &Runtime, execution: &Execution) -> bool {
    let id = execution.id;
    // Another process may have cancelled it.
    runtime.held().lose(id);
    let stopped = match runtime.equip(execution).await {
        Ok(equipment) => {
            let segment = Runtime::segment(execution, &equipment);
            match execution.interrupted_by {
                Some(_event) => equipment.executor.interrupt(segment).await,
                None => equipment.executor.stop(segment).await,
            }
        }
        Err(Unequipped::Store(error)) => Stopped::Unverifiable { reason: Chain(&error).to_string() },
        Err(Unequipped::Failed(result)) => Stopped::Unverifiable {
            reason: result.summary.unwrap_or_else(|| "its binding or executor is gone".to_owned()),
        },
    };
    match stopped {
        Stopped::Confirmed => {
            let ended = execution.clone();
            let marked = runtime.store().transact("stopped", move |tx| {
                let released = tx.mark_stopped(id)? && order::stopped(tx, &ended)?;
                let freed = match tx.work(ended.work)? {
                    Some(work) => schedule::key_freed(tx, &work)?,
                    None => false,
                };
                Ok::<_, StoreError>(released || freed)
            });
            let marked = marked.await;
            if matches!(marked, Ok(true)) {
                runtime.hints().schedule.notify_one();
                runtime.hints().committed();
            }
            if let Err(error) = &marked {
                tracing::warn!(execution = %id, error = %Chain(error), "a stop could not be recorded");
            }
            marked.is_ok()
        }
        Stopped::Unverifiable { reason } => {
            tracing::warn!(execution = %id, reason, "a cancelled run may still run");
            false
        }
    }
}

/// Stops what ended while it still ran, once. True when something could not be stopped for certain.
///
/// # Errors
/// [`StoreError`] when the store fails; the marks stay.
pub(crate) async fn stop_unstopped(runtime: &Runtime) -> Result<bool, StoreError> {
    let mut stops = Stops::default();
    stops.begin(runtime).await?;
    let mut left = false;
    while let Some(stopped) = stops.next().await {
        left |= !stopped;
    }
    Ok(left)
}
