//! Completion: from a result to what it makes of the attempt and its Work.
//!
//! *Reads* reports, and attempts whose stored outcome waits to be settled. *Decides* in `domain::outcome`.
//! *Writes* the attempt, its result, the Work and the announcement together; or, when input is still on its
//! way to a Work that would end, the outcome alone. *Afterwards* hints scheduling.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::execution::Execution;
use domain::id::{EventId, ExecutionId, Incarnation, Sequence, TimerId, WaitId};
use domain::lease::Fenced;
use domain::outcome::{Ending, Outcome, Settlement, TurnResult};
use domain::retry::Eligibility;
use domain::store::{Priority, StoreError, Tx};
use domain::text::ScopeName;
use domain::timer::{Timer, TimerKind};
use domain::work::{Queue, Work};
use tokio::sync::mpsc;

use crate::alias::Endings;
use crate::announce;
use crate::budget::{self, Use};
use crate::credential;
use crate::execute::Report;
use crate::generation::ActiveGeneration;
use crate::meter;
use crate::node::Runtime;
use crate::order;
use crate::park;
use crate::route::reopen::lanes_of;
use crate::schedule;
use crate::stage::{self, BATCH, Chain, Progress, Stage, StageError};
use crate::toolbelt;
use crate::wake::fact;

/// The completing stage.
#[derive(Debug)]
pub struct Complete {
    runtime: Runtime,
    reports: mpsc::UnboundedReceiver<Report>,
    /// Reports whose transaction failed; they are tried again before new ones.
    kept: Arc<[Report]>,
    /// Whether an attempt may wait to be settled: at the start, and after one was left to wait.
    may_wait: bool,
    /// Behind which of the attempts that wait to be settled the next step looks.
    after: Option<ExecutionId>,
}

impl Complete {
    pub(crate) fn new(runtime: Runtime, reports: mpsc::UnboundedReceiver<Report>) -> Self {
        Self { runtime, reports, kept: Arc::new([]), may_wait: true, after: None }
    }

    /// How many reports wait for the next step.
    pub fn waiting(&self) -> usize {
        self.reports.len() + self.kept.len()
    }
}

/// The ids that ending one attempt may need.
#[derive(Debug, Clone, Copy)]
struct Proposed {
    event: EventId,
    timer: TimerId,
    wait: WaitId,
    woken: EventId,
}

/// What a step did.
#[derive(Debug, Default)]
struct Completed {
    ended: Vec<Outcome>,
    recorded: u64,
    stale: Vec<Fenced>,
    announced: bool,
    armed: u64,
    ready: bool,
    broken: bool,
    crossed: u64,
    /// How many met the usage limit of their credential.
    limited: u64,
}

impl Completed {
    fn add(&mut self, other: Self) {
        self.ended.extend(other.ended);
        self.recorded += other.recorded;
        self.stale.extend(other.stale);
        self.announced |= other.announced;
        self.armed += other.armed;
        self.ready |= other.ready;
        self.broken |= other.broken;
        self.crossed += other.crossed;
        self.limited += other.limited;
    }
}

impl Stage for Complete {
    fn name(&self) -> &'static str {
        "complete"
    }

    async fn step(&mut self) -> Result<Progress, StageError> {
        if self.kept.is_empty() {
            let mut reports = Vec::new();
            while reports.len() < self.runtime.batch() as usize
                && let Ok(report) = self.reports.try_recv()
            {
                reports.push(report);
            }
            self.kept = reports.into();
        }
        let after = self.after;
        // Another process may have left one to wait; this one knows of its own.
        let waiting = if self.may_wait || !self.runtime.store().exclusive() {
            self.runtime.store().read("complete.read", move |tx| tx.unsettled(after, BATCH)).await?
        } else {
            Vec::new()
        };
        // A page at a time, or those that cannot be settled would keep the others from being looked at.
        let full = waiting.len() == BATCH as usize;
        let uses = self.runtime.uses();
        let leaves = waiting.iter().any(|execution| execution.workspace.is_some());
        let leaves = self.kept.iter().fold(leaves, |leaves, report| uses.take(report.execution) || leaves);
        let next = if full { waiting.last().map(|execution| execution.id) } else { None };
        if waiting.is_empty() && after.is_none() {
            self.may_wait = false;
        }
        if self.kept.is_empty() && waiting.is_empty() {
            self.after = None;
            return Ok(Progress::Idle { due_at: None });
        }
        let waiting: Arc<[Execution]> = waiting.into();
        let done = match self.settle(Arc::clone(&waiting), Arc::clone(&self.kept)).await {
            Err(error) if stage::is_of_an_item(&error) => self.settle_each(&waiting).await?,
            done => done?,
        };
        for report in &*self.kept {
            self.runtime.held().drop_grant(report.execution, report.grant);
            if report.recovered.is_some() {
                self.runtime.inherited().counted(report.execution);
            }
        }
        if leaves {
            self.runtime.hints().workspace.notify_one();
        }
        self.may_wait |= done.recorded > 0;
        let had_reports = !self.kept.is_empty();
        self.kept = Arc::new([]);
        self.after = next;
        self.afterwards(&done);
        Ok(if had_reports || full || !done.ended.is_empty() {
            Progress::Advanced
        } else {
            Progress::Idle { due_at: None }
        })
    }
}

impl Complete {
    /// Settles what waits and what was reported, in one transaction.
    async fn settle(
        &self,
        waiting: Arc<[Execution]>,
        reports: Arc<[Report]>,
    ) -> Result<Completed, StoreError> {
        let runtime = &self.runtime;
        let count = reports.len() + waiting.len();
        let proposed: Vec<Proposed> = runtime.store().ids(|maker, now| {
            let one = |_| Proposed {
                event: maker.event(now),
                timer: maker.timer(now),
                wait: maker.wait(now),
                woken: maker.event(now),
            };
            (0..count).map(one).collect()
        });
        let me = runtime.store().incarnation();
        let (own, turns) = (runtime.clone(), reports.len());
        let body = move |tx: &mut dyn Tx, active: &ActiveGeneration, crossings: &mut budget::Proposed<'_>| {
            let mut step = Step {
                active,
                runtime: &own,
                me,
                crossings,
                freed: BTreeMap::new(),
                endings: Endings::default(),
                done: Completed::default(),
            };
            let mut proposed = proposed.iter().copied();
            for execution in &*waiting {
                step.settle_stored(tx, execution, proposed.next().expect("one id for each"))?;
            }
            for report in &*reports {
                step.report(tx, report, proposed.next().expect("one id for each"))?;
            }
            for (scope, freed) in &step.freed {
                step.done.ready |= schedule::room_freed(tx, scope, *freed)?;
            }
            Ok::<_, StoreError>(step.done)
        };
        runtime.under_newest((Priority::Normal, "complete"), turns, body).await
    }

    /// The same in a transaction for each, so that one which cannot be settled keeps no other from it. Its
    /// lease runs out, or its stored outcome stays, and somebody has to look.
    async fn settle_each(&self, waiting: &[Execution]) -> Result<Completed, StoreError> {
        let mut done = Completed::default();
        let stored = waiting.iter().map(|one| (one.id, Arc::from([one.clone()]), Arc::from([])));
        let reported = self.kept.iter().map(|one| (one.execution, Arc::from([]), Arc::from([one.clone()])));
        for (id, waiting, reports) in stored.chain(reported) {
            match self.settle(waiting, reports).await {
                Ok(one) => done.add(one),
                Err(error) if stage::is_of_an_item(&error) => {
                    tracing::error!(execution = %id, error = %Chain(&error), "a run cannot be settled");
                    done.broken = true;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }
}

impl Complete {
    fn afterwards(&self, done: &Completed) {
        let runtime = &self.runtime;
        for outcome in &done.ended {
            crate::metrics::count(&runtime.metrics().ended, outcome.as_str());
        }
        for fenced in &done.stale {
            tracing::info!(code = fenced.code(), "a report without authority had no effect");
            runtime.metrics().stale.inc();
        }
        runtime.metrics().budget_crossings.inc_by(done.crossed);
        if done.announced || done.recorded > 0 {
            runtime.hints().route.notify_one();
        }
        if done.broken || !done.stale.is_empty() {
            // Whoever reported has let go, and the lease of an attempt that goes on runs out.
            runtime.hints().recover.notify_one();
        }
        runtime.metrics().usage_limits.inc_by(done.limited);
        if done.armed + done.limited > 0 {
            runtime.hints().wake.notify_one();
        }
        if done.ready {
            runtime.hints().schedule.notify_one();
        }
        if !done.ended.is_empty() {
            runtime.hints().retain.notify_one();
        }
        runtime.hints().committed();
    }
}

/// One transaction of the stage.
struct Step<'a, 'p> {
    active: &'a ActiveGeneration,
    runtime: &'a Runtime,
    /// This life, for which recovery counts.
    me: Incarnation,
    /// Ids for Events about budgets.
    crossings: &'a mut budget::Proposed<'p>,
    /// How many attempts ended in each scope, whose room goes to those that wait for it.
    freed: BTreeMap<ScopeName, u32>,
    endings: Endings,
    done: Completed,
}

impl Step<'_, '_> {
    fn report(&mut self, tx: &mut dyn Tx, report: &Report, proposed: Proposed) -> Result<(), StoreError> {
        let Some(read) = tx.execution(report.execution)? else {
            return Err(StoreError::Corrupt {
                table: "execution",
                reason: "a claimed run is gone".to_owned(),
            });
        };
        if let Err(fenced) = read.authorize(report.grant, tx.now()) {
            self.done.stale.push(fenced);
            return Ok(());
        }
        let told = toolbelt::told(tx, &read, &report.result)?;
        let recorded = read.clone().record(report.grant, told.outcome, tx.now());
        let recorded = recorded.expect("the grant was just found to speak for it");
        let mut result = clipped(&told);
        let metered = meter::settled(tx, &read, &mut result)?;
        // Before anything else of the result: whatever looks at what is pending must not see what was taken in.
        proof(tx, &read, &result.consumed_inputs)?;
        keep(tx, &read, result.clone())?;
        if let Some(found) = report.recovered {
            // False when no daemon has noted its start, and then nobody asks for the count.
            tx.count_recovered(self.me, found)?;
        }
        if let Some(limit) = result.usage_limit {
            self.done.limited += u64::from(credential::met(tx, &read, limit)?);
        }
        self.charge(tx, &read, Use::Reported { usage: &result.usage, metered: &metered })?;
        self.settle(tx, &read, recorded, &result, proposed)
    }

    /// Adds what a turn used to the ledgers, with the outcome and whatever it is.
    fn charge(&mut self, tx: &mut dyn Tx, read: &Execution, spent: Use<'_>) -> Result<(), StoreError> {
        if self.active.charged(&read.scope).is_empty() {
            return Ok(());
        }
        let Some(work) = tx.work(read.work)? else { return Ok(()) };
        let turn = (&work, read);
        let charged = budget::charge(tx, self.active, turn, spent, self.crossings)?;
        self.done.announced |= charged.announced;
        self.done.ready |= charged.ready;
        self.done.crossed += charged.crossed;
        Ok(())
    }

    fn settle_stored(
        &mut self,
        tx: &mut dyn Tx,
        waiting: &Execution,
        proposed: Proposed,
    ) -> Result<(), StoreError> {
        let Some(read) = tx.execution(waiting.id)? else { return Ok(()) };
        if read.state.is_terminal() || read.outcome.is_none() {
            return Ok(());
        }
        let Some(result) = tx.turn_result(read.id)? else {
            return Err(StoreError::Corrupt {
                table: "turn_result",
                reason: "an outcome without one".to_owned(),
            });
        };
        self.settle(tx, &read, read.clone(), &result, proposed)
    }

    /// Ends an attempt whose outcome is known, or leaves it to wait for its Work's lane.
    fn settle(
        &mut self,
        tx: &mut dyn Tx,
        read: &Execution,
        recorded: Execution,
        result: &TurnResult,
        proposed: Proposed,
    ) -> Result<(), StoreError> {
        let Some(work) = tx.work(read.work)? else {
            return Err(StoreError::Corrupt { table: "execution", reason: "names no work".to_owned() });
        };
        let admitted = park::admit(tx, &work, read, result, (proposed.wait, proposed.timer))?;
        let (wait, refused) = match admitted {
            Ok(wait) => (wait, None),
            Err(refusal) => (None, Some(park::refused(result, &refusal))),
        };
        let (recorded, result) = match &refused {
            None => (recorded, result),
            Some(failed) => {
                tx.replace_turn_result(read.id, failed)?;
                (Execution { outcome: Some(failed.outcome), ..recorded }, failed)
            }
        };
        let ending = Ending {
            work: &work,
            execution: read.id,
            result,
            policy: self.active.retry_policy(&work.scope, &read.binding),
            pending: !tx.pending_inputs(work.id, 1)?.is_empty(),
            wait: wait.as_ref().map(|wait| wait.id),
        };
        let now = tx.now();
        let after = match ending.settle(now, || unrouted(tx, &work))? {
            Settlement::Now(after) => after,
            Settlement::AwaitLane => {
                if &recorded != read {
                    tx.update_execution(&recorded, read)?;
                    self.done.recorded += 1;
                }
                return Ok(());
            }
        };
        let ended = if wait.is_some() && self.resumes(&recorded) {
            recorded.park(now)
        } else {
            recorded.settle(now).expect("a live attempt with an outcome can be settled")
        };
        let next = work.clone().finish(ended.id, after, now).expect("the live attempt is its Work's own");
        tx.update_execution(&ended, read)?;
        tx.update_work(&next, &work)?;
        self.endings.of(tx, &next)?;
        if let Eligibility::Backoff { failed, due_at } = next.eligibility {
            let (scope, kind) = (work.scope.clone(), TimerKind::Retry { failed });
            tx.insert_timer(&Timer {
                id: proposed.timer,
                kind,
                scope,
                work: work.id,
                armed_at: now,
                due_at,
            })?;
            self.done.armed += 1;
        }
        self.done.ready |= next.queue == Queue::Runnable;
        self.done.ready |= schedule::key_freed(tx, &work)?;
        *self.freed.entry(work.scope.clone()).or_default() += 1;
        self.done.announced |= announce::turn_ended(tx, self.active, proposed.event, &next, &ended, result)?;
        self.done.ended.push(result.outcome);
        if let Some(wait) = wait {
            order::turn_over(tx, &ended)?;
            self.done.armed += u64::from(park::register(tx, &wait)?);
            let woken = fact::registered(tx, self.active, &wait, proposed.woken)?;
            self.done.ready |= woken.ready;
            self.done.announced |= woken.announced;
        }
        Ok(())
    }

    /// Whether the executor of an attempt can go on from a Wait.
    fn resumes(&self, execution: &Execution) -> bool {
        let executor = self.runtime.registry().executor(&execution.executor);
        executor.is_some_and(|executor| executor.capabilities().resumes)
    }
}

/// Keeps what an attempt reported; of a resumed one, with what its earlier turns had used.
fn keep(tx: &mut dyn Tx, execution: &Execution, result: TurnResult) -> Result<(), StoreError> {
    if execution.turn.number == 1 {
        return tx.insert_turn_result(execution.id, &result);
    }
    match tx.turn_result(execution.id)? {
        Some(earlier) => tx.replace_turn_result(execution.id, &result.after(earlier)),
        None => Err(StoreError::Corrupt {
            table: "turn_result",
            reason: "an earlier turn without one".to_owned(),
        }),
    }
}

/// Consumes the input that a result proves its attempt to have taken in, as far as it was sent there. What else it
/// claims is ignored, so a proof grants nothing.
fn proof(tx: &mut dyn Tx, execution: &Execution, claimed: &[EventId]) -> Result<(), StoreError> {
    for id in claimed {
        let Some(event) = tx.event(*id)? else { continue };
        let Some(read) = tx.intent(execution.id, event.sequence)? else { continue };
        let Ok(next) = read.clone().consumed() else { continue };
        if tx.consume_input(execution.work, event.sequence, execution.id)? {
            tx.update_intent(&next, &read)?;
        }
    }
    Ok(())
}

/// Whether an accepted Event that leads to this Work is not routed yet.
fn unrouted(tx: &mut dyn Tx, work: &Work) -> Result<bool, StoreError> {
    let lanes = lanes_of(tx, work.id)?;
    Ok(tx.earlier_unrouted(&lanes, Sequence::from_number(i64::MAX))?.is_some())
}

fn clipped(result: &TurnResult) -> TurnResult {
    let mut kept = result.clone();
    kept.consumed_inputs.truncate(TurnResult::CONSUMED_MAX);
    if let Some(summary) = &mut kept.summary {
        let mut end = summary.len().min(TurnResult::SUMMARY_BYTES_MAX);
        while !summary.is_char_boundary(end) {
            end -= 1;
        }
        summary.truncate(end);
    }
    kept
}
