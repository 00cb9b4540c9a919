//! Scheduling: from a ready Work with input to a claimed attempt.
//!
//! *Reads* runnable Works in the order they were queued. *Decides* eligibility and capacity, counted from the
//! rows of live attempts. *Writes* the attempt with its lease and the inputs it consumes, or moves the Work to
//! the list of what it waits for. *Afterwards* hands the claims to the executing stage.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::budget::Amount;
use domain::capacity::Blocker;
use domain::execution::{Execution, ExecutionState, Resumption, Turn};
use domain::id::{Attempt, Epoch, EventId, ExecutionId, Generation, Incarnation, WorkId};
use domain::input::Input;
use domain::lease::{Grant, Lease};
use domain::ownership::Tenure;
use domain::pause::paused_by;
use domain::retention::Content;
use domain::retry::Eligibility;
use domain::scope::{Binding, EffectiveScope};
use domain::store::{StoreError, Tx};
use domain::text::{CredentialName, ScopeName, Unit};
use domain::time::Timestamp;
use domain::toolbelt::Toolbelt;
use domain::work::{Hold, HoldReason, Queue, Work, WorkState};
use extension::{StartGate, TriggerView};

use crate::announce;
use crate::budget::{self, Verdict};
use crate::credential;
use crate::execute::Claimed;
use crate::gate::{self, Answers, Passage};
use crate::generation::ActiveGeneration;
use crate::node::Runtime;
use crate::pause;
use crate::registry::Registry;
use crate::stage::{self, Chain, Progress, Stage, StageError};

/// The most Works of a full or paused scope that move to their list in one step.
const MOVED_AT_ONCE: u32 = 1000;

/// From how many inputs, the oldest first, the trigger of a run is chosen where somebody chooses.
const CHOSEN_FROM_MAX: u32 = 1000;

/// The scheduling stage.
#[derive(Debug)]
pub struct Schedule {
    runtime: Runtime,
    answers: Answers,
    /// The tenure in which what was being asked about has been brought back.
    tenure: Option<Tenure>,
}

impl Schedule {
    pub(crate) fn new(runtime: Runtime) -> Self {
        Self { runtime, answers: Answers::default(), tenure: None }
    }
}

/// What a step did.
#[derive(Debug, Default)]
struct Scheduled {
    claimed: Vec<Claimed>,
    blocked: u64,
    held: u64,
    deferred: u64,
    asked: Vec<WorkId>,
    stale: bool,
}

impl Stage for Schedule {
    fn name(&self) -> &'static str {
        "schedule"
    }

    async fn step(&mut self) -> Result<Progress, StageError> {
        let runtime = &self.runtime;
        let Some(tenure) = runtime.tenure() else { return Ok(Progress::Idle { due_at: None }) };
        if self.tenure != Some(tenure) && !runtime.registry().gates().is_empty() {
            gate::ask_again(runtime, tenure).await?;
            self.tenure = Some(tenure);
        }
        let batch = runtime.batch();
        let works = runtime.store().read("schedule.read", move |tx| tx.runnable(batch)).await?;
        if works.is_empty() {
            return Ok(Progress::Idle { due_at: None });
        }
        let seen = works.clone();
        let scheduled = match self.claim(tenure, works.clone()).await {
            Err(error) if stage::is_of_an_item(&error) => self.claim_each(tenure, works).await,
            scheduled => scheduled,
        };
        let scheduled = match scheduled {
            Ok(scheduled) => scheduled,
            Err(error) => {
                // Claims may have been committed that nobody will launch; recovery has to see their leases end.
                runtime.hints().recover.notify_one();
                return Err(error.into());
            }
        };
        let mut moved = !scheduled.claimed.is_empty() || scheduled.blocked > 0;
        if scheduled.stale {
            let before = runtime.generations().active().number;
            if let Err(error) = runtime.generations().load(runtime.store()).await {
                tracing::warn!(error = %Chain(&error), "the newest generation cannot be used");
            }
            // Whoever applied it may have rung before it was in force here.
            moved |= runtime.generations().active().number != before;
        }
        if !runtime.registry().gates().is_empty() {
            self.answers.forget(&seen);
            gate::ask(runtime, &self.answers, scheduled.asked);
        }
        let metrics = runtime.metrics();
        metrics.claimed.inc_by(scheduled.claimed.len() as u64);
        metrics.budget_holds.inc_by(scheduled.held);
        metrics.budget_deferrals.inc_by(scheduled.deferred);
        if scheduled.held > 0 {
            // It may have been published that a budget is used up.
            runtime.hints().route.notify_one();
            // And it may be looked at again when the window is over.
            runtime.hints().wake.notify_one();
        }
        for claimed in scheduled.claimed {
            runtime.launch(claimed);
        }
        runtime.hints().committed();
        Ok(if moved { Progress::Advanced } else { Progress::Idle { due_at: None } })
    }
}

impl Schedule {
    /// Starts what can be started of some Works, in one transaction.
    async fn claim(&self, tenure: Tenure, works: Vec<WorkId>) -> Result<Scheduled, StoreError> {
        let runtime = &self.runtime;
        let active = runtime.generations().active();
        let ids = works.len();
        let proposed: Vec<ExecutionId> =
            runtime.store().ids(|maker, now| (0..ids).map(|_| maker.execution(now)).collect());
        let crossings = runtime.propose_events(if active.crossings_max() > 0 { 2 * ids } else { 0 });
        let owner = runtime.store().incarnation();
        let (gates, answers) = (runtime.registry().clone(), self.answers.clone());
        runtime
            .transact_owned("schedule", tenure, move |tx| {
                let mut step = Step {
                    active: &active,
                    owner,
                    gates: gates.gates(),
                    registry: &gates,
                    answers: &answers,
                    crossings: budget::Proposed::new(&crossings),
                    room: BTreeMap::new(),
                    paused: BTreeSet::new(),
                    done: Scheduled::default(),
                };
                step.run(tx, &works, &proposed)?;
                Ok(step.done)
            })
            .await
    }

    /// The same in a transaction for each, so that a Work whose record is damaged keeps no other from starting.
    async fn claim_each(&self, tenure: Tenure, works: Vec<WorkId>) -> Result<Scheduled, StoreError> {
        let mut done = Scheduled::default();
        for work in works {
            match self.claim(tenure, vec![work]).await {
                Ok(one) => {
                    done.claimed.extend(one.claimed);
                    done.blocked += one.blocked;
                    done.held += one.held;
                    done.deferred += one.deferred;
                    done.asked.extend(one.asked);
                    done.stale |= one.stale;
                }
                Err(error) if stage::is_of_an_item(&error) => {
                    tracing::error!(%work, error = %Chain(&error), "a Work cannot be started");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }
}

/// One transaction of the stage.
struct Step<'a> {
    active: &'a ActiveGeneration,
    owner: Incarnation,
    gates: &'a [Arc<dyn StartGate>],
    registry: &'a Registry,
    answers: &'a Answers,
    /// Ids for Events about budgets.
    crossings: budget::Proposed<'a>,
    /// How many more attempts each scope may run.
    room: BTreeMap<ScopeName, u32>,
    /// The scopes that an operator has paused.
    paused: BTreeSet<ScopeName>,
    done: Scheduled,
}

impl Step<'_> {
    fn run(&mut self, tx: &mut dyn Tx, works: &[WorkId], proposed: &[ExecutionId]) -> Result<(), StoreError> {
        let in_force = tx.in_force()?;
        if in_force.generation.unwrap_or(Generation::from_number(0)) != self.active.number {
            self.done.stale = true;
            return Ok(());
        }
        if in_force.any_pause {
            self.paused = pause::scopes(tx)?;
        }
        for (id, execution) in works.iter().zip(proposed) {
            let Some(work) = tx.work(*id)? else { continue };
            if self.room.get(&work.scope) == Some(&0) {
                // It has moved with the others of its scope.
                continue;
            }
            match (work.state, &work.queue) {
                (WorkState::Ready, Queue::Runnable) => self.one(tx, work, *execution)?,
                (WorkState::Ready, Queue::Idle | Queue::Blocked(_))
                | (
                    WorkState::Running { .. }
                    | WorkState::Waiting { .. }
                    | WorkState::Completed
                    | WorkState::Failed
                    | WorkState::Cancelled,
                    _,
                ) => {}
            }
        }
        Ok(())
    }

    /// Whether its scope has room for a Work, and nothing is against it. One that may not start has been moved.
    fn may_start(
        &mut self,
        tx: &mut dyn Tx,
        scope: &EffectiveScope,
        work: &Work,
    ) -> Result<bool, StoreError> {
        if paused_by(&scope.lineage, &self.paused).is_some() {
            self.block_scope(tx, &Blocker::ScopePaused(work.scope.clone()), work)?;
            return Ok(false);
        }
        if self.room(tx, scope)? == 0 {
            self.block_scope(tx, &Blocker::ScopeFull(work.scope.clone()), work)?;
            return Ok(false);
        }
        if let (Some(key), Some(busy)) = (&work.concurrency, work.concurrency_blocker())
            && tx.concurrency_holder(&work.scope, key)?.is_some()
        {
            self.block(tx, work, busy)?;
            return Ok(false);
        }
        match self.answers.passage(self.gates, work, self.active.number, tx) {
            Passage::Open => return Ok(true),
            Passage::Held(hold) => self.hold(tx, work, hold)?,
            Passage::Ask => {
                self.done.asked.push(work.id);
                self.block(tx, work, Blocker::Asked(work.scope.clone()))?;
            }
        }
        Ok(false)
    }

    fn one(&mut self, tx: &mut dyn Tx, work: Work, execution: ExecutionId) -> Result<(), StoreError> {
        let active = self.active;
        let Some(scope) = active.scope(&work.scope).map(|active| &active.scope) else {
            return self.block(tx, &work, Blocker::Unconfigured(work.scope.clone()));
        };
        if scope.disabled {
            return self.block(tx, &work, Blocker::ScopeDisabled(work.scope.clone()));
        }
        if !self.may_start(tx, scope, &work)? {
            return Ok(());
        }
        let (trigger, cause) = trigger_of(tx, self.registry, &work)?;
        let parked = parked_of(tx, &work)?;
        if let Some(used_up) = credential::blocker(tx, named(scope, &trigger, parked.as_ref()))? {
            credential::waits(tx, &work, parked.as_ref(), &used_up)?;
            return self.block(tx, &work, used_up);
        }
        let reserved = match budget::admit(tx, active, scope, &work, &mut self.crossings)? {
            Verdict::Admitted(reserved) => reserved,
            Verdict::Deferred(blocker) => {
                self.done.deferred += 1;
                return self.block(tx, &work, blocker);
            }
            Verdict::Held(hold) => return self.hold(tx, &work, hold),
        };
        if let Some(parked) = parked {
            let by = Resumption { winner: trigger.event, cause, let_through: work.let_through };
            return self.resume(tx, &work, (parked, by), &reserved);
        }
        let Some(binding) = scope.bindings.get(&trigger.binding) else {
            return self.block(tx, &work, Blocker::Unconfigured(work.scope.clone()));
        };
        let (next, attempt) = work.clone().claim(execution).expect("a runnable Work can be claimed");
        let claimed =
            self.attempt(&work, (execution, attempt), (scope, binding), (&trigger, cause), tx.now());
        tx.insert_execution(&claimed)?;
        let last = tx.last_sequence();
        tx.consume_inputs(work.id, last, execution)?;
        tx.update_work(&next, &work)?;
        budget::reserve(tx, active, &claimed, &reserved)?;
        self.started(work, claimed);
        Ok(())
    }

    /// The attempt that a claim begins.
    fn attempt(
        &self,
        work: &Work,
        (id, attempt): (ExecutionId, Attempt),
        (scope, binding): (&EffectiveScope, &Binding),
        (trigger, cause): (&Input, EventId),
        now: Timestamp,
    ) -> Execution {
        Execution {
            id,
            work: work.id,
            scope: work.scope.clone(),
            attempt,
            state: ExecutionState::Launching,
            epoch: Epoch::FIRST,
            lease: Some(Lease::taken(self.owner, now)),
            recovering: false,
            trigger: trigger.event,
            trigger_sequence: trigger.sequence,
            retry_of: work.eligibility.failed(),
            binding: binding.name.clone(),
            executor: binding.executor.clone(),
            credential: binding.credential.clone(),
            generation: self.active.number,
            timeout: binding.timeout(&scope.settings),
            controls: self.active.controls(&binding.executor),
            deadline_at: None,
            handle: None,
            turn: Turn { let_through: work.let_through, ..Turn::first(cause) },
            outcome: None,
            claimed_at: now,
            started_at: None,
            ended_at: None,
            unstopped: false,
            interrupted_by: None,
            toolbelt: Toolbelt::default(),
            workspace: None,
            content: Content::Kept,
        }
    }

    /// Claims a parked attempt for its next turn, under the configuration that it is pinned to.
    fn resume(
        &mut self,
        tx: &mut dyn Tx,
        work: &Work,
        (read, by): (Execution, Resumption),
        reserved: &BTreeMap<Unit, Amount>,
    ) -> Result<(), StoreError> {
        let corrupt = |reason: &str| StoreError::Corrupt { table: "work", reason: reason.to_owned() };
        let next = read.clone().resume(self.owner, by, tx.now());
        let next = next.map_err(|_fenced| corrupt("goes on with a run that is not parked"))?;
        let (woken, _execution) = work.clone().resume().expect("a woken Work can go on");
        tx.update_execution(&next, &read)?;
        let last = tx.last_sequence();
        tx.consume_batch(work.id, last, read.id, next.turn.number)?;
        tx.update_work(&woken, work)?;
        budget::reserve(tx, self.active, &next, reserved)?;
        self.started(work.clone(), next);
        Ok(())
    }

    /// Takes the room of an attempt that was claimed, and hands the claim on.
    fn started(&mut self, work: Work, claimed: Execution) {
        if let Some(room) = self.room.get_mut(&work.scope) {
            *room = room.saturating_sub(1);
        }
        let grant = Grant { owner: self.owner, epoch: claimed.epoch };
        self.done.claimed.push(Claimed { execution: Arc::new(claimed), kind: work.kind, grant });
    }

    fn room(&mut self, tx: &mut dyn Tx, scope: &EffectiveScope) -> Result<u32, StoreError> {
        if let Some(room) = self.room.get(&scope.name) {
            return Ok(*room);
        }
        let limit = scope.settings.concurrency;
        let live = tx.count_live(&scope.name, limit)?;
        let room = limit.saturating_sub(live);
        self.room.insert(scope.name.clone(), room);
        Ok(room)
    }

    /// Moves the runnable Works of the scope of `first`, of which none can start, many at a time, so that nobody walks
    /// past them.
    fn block_scope(&mut self, tx: &mut dyn Tx, blocker: &Blocker, first: &Work) -> Result<(), StoreError> {
        self.room.insert(first.scope.clone(), 0);
        self.done.blocked += tx.block_runnable(first, blocker, MOVED_AT_ONCE)?;
        Ok(())
    }

    /// Takes a Work out of the queue until its hold is over, and offers what it was offered to the next.
    fn hold(&mut self, tx: &mut dyn Tx, work: &Work, hold: Hold) -> Result<(), StoreError> {
        let next = work.clone().hold(hold).expect("a runnable Work can be held");
        tx.update_work(&next, work)?;
        self.done.held += u64::from(next.hold.is_some_and(|hold| hold.because == HoldReason::Budget));
        self.done.blocked += 1;
        room_freed(tx, &work.scope, 1)?;
        key_freed(tx, work)?;
        budget::offer(tx, self.active, &work.scope)?;
        Ok(())
    }

    fn block(&mut self, tx: &mut dyn Tx, work: &Work, blocker: Blocker) -> Result<(), StoreError> {
        let waits_for_others = matches!(blocker, Blocker::Reserved(_) | Blocker::ReservedOverall);
        let next = work.clone().block(blocker).expect("a runnable Work can be blocked");
        tx.update_work(&next, work)?;
        self.done.blocked += 1;
        // What it was offered is still there; whoever waits for it may take it.
        room_freed(tx, &work.scope, 1)?;
        match next.queue {
            Queue::Blocked(Blocker::Concurrency(..)) => {}
            // It may have been brought back for its key, which another can have.
            Queue::Idle | Queue::Runnable | Queue::Blocked(_) => drop(key_freed(tx, work)?),
        }
        if !waits_for_others {
            budget::offer(tx, self.active, &work.scope)?;
        }
        Ok(())
    }
}

/// Brings back the next Work that waits for the concurrency key of a Work which runs under it no more, or did not
/// come to it.
///
/// # Errors
/// [`StoreError`] undoes what freed the key with it.
pub(crate) fn key_freed(tx: &mut dyn Tx, work: &Work) -> Result<bool, StoreError> {
    match work.concurrency_blocker() {
        Some(blocker) => bring_back(tx, &blocker, 1),
        None => Ok(false),
    }
}

/// The credential that a turn would use: that of the attempt that goes on, else its binding's.
fn named<'a>(
    scope: &'a EffectiveScope,
    trigger: &Input,
    parked: Option<&'a Execution>,
) -> Option<&'a CredentialName> {
    match parked {
        Some(run) => run.credential.as_ref(),
        None => scope.bindings.get(&trigger.binding)?.credential.as_ref(),
    }
}

/// The parked attempt that a Work goes on with; none where its next turn is a new attempt.
fn parked_of(tx: &mut dyn Tx, work: &Work) -> Result<Option<Execution>, StoreError> {
    let Eligibility::Woken { resumes: Some(parked), .. } = work.eligibility else { return Ok(None) };
    match tx.execution(parked)? {
        Some(run) => Ok(Some(run)),
        None => Err(StoreError::Corrupt { table: "work", reason: "goes on with no run".to_owned() }),
    }
}

/// The input that begins a Work's next turn, and the Event on whose chain that turn publishes.
fn trigger_of(tx: &mut dyn Tx, registry: &Registry, work: &Work) -> Result<(Input, EventId), StoreError> {
    let (trigger, woken) = match work.eligibility {
        // What ended the wait after a failure comes first, whatever arrived meanwhile.
        Eligibility::Due { event, .. } => (tx.input(work.id, event)?, None),
        Eligibility::Woken { wait, event, .. } => (tx.input(work.id, event)?, Some(wait)),
        Eligibility::Clear
        | Eligibility::Backoff { .. }
        | Eligibility::Exhausted { .. }
        | Eligibility::Stopping { .. } => (first_or_chosen(tx, registry, work)?, None),
    };
    let Some(trigger) = trigger else {
        return Err(StoreError::Corrupt { table: "work", reason: "runnable without input".to_owned() });
    };
    let cause = match woken {
        Some(wait) => announce::of_wait(tx, wait)?.map_or(trigger.event, |bridge| bridge.id),
        None => trigger.event,
    };
    Ok((trigger, cause))
}

/// The first input that waits, or the one that is chosen for Works of that kind. Only theirs are read.
fn first_or_chosen(tx: &mut dyn Tx, registry: &Registry, work: &Work) -> Result<Option<Input>, StoreError> {
    let Some(choice) = registry.choice(&work.kind) else {
        return Ok(tx.pending_inputs(work.id, 1)?.into_iter().next());
    };
    let mut batch = tx.pending_inputs(work.id, CHOSEN_FROM_MAX)?;
    let mut views = Vec::with_capacity(batch.len());
    for input in &batch {
        let event = tx
            .event(input.event)?
            .ok_or_else(|| StoreError::Corrupt { table: "input", reason: "names no Event".to_owned() })?;
        let (event_type, source, key) = (event.event_type, event.source, event.key);
        views.push(TriggerView { event_type, source, key });
    }
    if batch.is_empty() {
        return Ok(None);
    }
    let chosen = choice.choose(&views).min(batch.len() - 1);
    Ok(Some(batch.swap_remove(chosen)))
}

/// Brings Works back that waited for room in a scope, as many as there is room for.
///
/// # Errors
/// [`StoreError`] undoes what freed the room with it.
pub(crate) fn room_freed(tx: &mut dyn Tx, scope: &ScopeName, freed: u32) -> Result<bool, StoreError> {
    bring_back(tx, &Blocker::ScopeFull(scope.clone()), freed)
}

/// Brings back the first `limit` Works that wait for `blocker`. True when there were any.
pub(crate) fn bring_back(tx: &mut dyn Tx, blocker: &Blocker, limit: u32) -> Result<bool, StoreError> {
    let works = tx.blocked(blocker, limit)?;
    for id in &works {
        if let Some(work) = tx.work(*id)? {
            let next = work.clone().unblock();
            if next != work {
                tx.update_work(&next, &work)?;
            }
        }
    }
    Ok(!works.is_empty())
}
