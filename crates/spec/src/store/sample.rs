//! Records for the cases, written out as what they are: no rule made them, so no rule can be wrong in them.

use std::time::Duration;

use domain::causal::Bounds;
use domain::event::{Causation, Event, Key, Payload};
use domain::execution::{Execution, ExecutionState, Turn};
use domain::id::{Attempt, Epoch, EventId, ExecutionId, Generation, Incarnation, Revision, Sequence, WorkId};
use domain::input::Input;
use domain::intent::Controls;
use domain::lane::LaneId;
use domain::lease::Lease;
use domain::outcome::Outcome;
use domain::retry::Eligibility;
use domain::route::{ActivePolicy, Checkpoint, CheckpointOutcome};
use domain::store::{Snapshot, Store, StoreError, Tx, Unrouted};
use domain::text::{
    BindingName, DeliveryId, EventType, ExecutorName, ExternalId, RouteName, ScopeName, SourceName, WorkKind,
};
use domain::time::Timestamp;
use domain::toolbelt::Toolbelt;
use domain::work::{Lifecycle, Queue, Work, WorkState};

/// Why a body of a case wants its writes undone.
#[derive(Debug)]
pub(super) enum Refused {
    /// The case wants it so.
    OnPurpose,
    /// The store could not do it.
    Store(StoreError),
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Runs a body that must commit.
pub(super) async fn write<T: Send + 'static>(
    store: &Store,
    body: impl FnMut(&mut dyn Tx) -> Result<T, StoreError> + Send + 'static,
) -> T {
    store.transact("case", body).await.expect("the write commits")
}

/// Runs a read that must succeed.
pub(super) async fn read<T: Send + 'static>(
    store: &Store,
    body: impl FnOnce(&mut dyn Snapshot) -> Result<T, StoreError> + Send + 'static,
) -> T {
    store.read("case", body).await.expect("the read succeeds")
}

/// Asserts that a request was refused because a record was not as it had been read.
#[track_caller]
pub(super) fn assert_conflict<T: std::fmt::Debug>(answer: Result<T, StoreError>) {
    let error = answer.expect_err("the write is refused");
    assert_eq!(error.code(), "conflict", "{error:?}");
}

/// Runs a body that must be refused with a conflict.
pub(super) async fn conflicts<T: std::fmt::Debug + Send + 'static>(
    store: &Store,
    body: impl FnMut(&mut dyn Tx) -> Result<T, StoreError> + Send + 'static,
) {
    assert_conflict(store.transact("case", body).await);
}

/// A moment that many whole seconds after the start of time.
pub(super) const fn second(number: i64) -> Timestamp {
    Timestamp::from_micros(number * 1_000_000)
}

/// The scope of every record that does not say another.
pub(super) fn main_scope() -> ScopeName {
    ScopeName::known("main")
}

/// A key of the source that every sample Event has.
pub(super) fn key(external_id: &str) -> Key {
    Key { source: SourceName::known("hook/ci"), external_id: ExternalId::known(external_id) }
}

/// How far the chains of the samples may go.
pub(super) const BOUNDS: Bounds = Bounds { max_depth: 32, per_minute: 128 };

/// The `number`-th Event, a root. Its sequence and its time are those of [`accept`].
pub(super) fn event(number: i64) -> Event {
    let id = EventId::from_number(number);
    Event {
        id,
        sequence: Sequence::ZERO,
        source: SourceName::known("hook/ci"),
        delivery_id: DeliveryId::known(&format!("delivery-{number}")),
        event_type: EventType::known("build.finished"),
        scope: main_scope(),
        key: None,
        work: None,
        causation: Causation::root(id, BOUNDS),
        emitted_by: None,
        occurred_at: None,
        accepted_at: Timestamp::EPOCH,
    }
}

/// Takes the next sequence for an Event and writes it. None when its delivery was accepted before.
pub(super) fn offer(tx: &mut dyn Tx, event: &Event) -> Result<Option<Event>, StoreError> {
    let event = Event { sequence: tx.next_sequence(), accepted_at: tx.now(), ..event.clone() };
    Ok(tx.insert_event(&event, &Payload::null())?.then_some(event))
}

/// Writes an Event that must be new.
pub(super) fn accept(tx: &mut dyn Tx, event: &Event) -> Result<Event, StoreError> {
    Ok(offer(tx, event)?.expect("the delivery is new"))
}

/// Writes an Event that must be new, and puts it in the queue of a lane.
pub(super) fn accept_in_lane(tx: &mut dyn Tx, number: i64, lane: LaneId) -> Result<Event, StoreError> {
    let event = accept(tx, &event(number))?;
    tx.insert_unrouted(Unrouted { sequence: event.sequence, lane })?;
    Ok(event)
}

/// The checkpoint of an Event that became input of a Work, or of none.
pub(super) fn checkpoint(event: &Event, outcome: CheckpointOutcome, work: Option<WorkId>) -> Checkpoint {
    Checkpoint {
        sequence: event.sequence,
        event: event.id,
        outcome,
        route: Some(RouteName::known("ci")),
        policy: Some(ActivePolicy::Queue),
        work,
        generation: Generation::FIRST,
        code: None,
        reason: None,
        at: second(9),
    }
}

/// The `number`-th Work: new, runnable, and queued that many seconds after the start of time.
pub(super) fn work(number: i64) -> Work {
    Work {
        id: WorkId::from_number(number),
        scope: main_scope(),
        kind: WorkKind::known("manual.work"),
        lifecycle: Lifecycle::Standing,
        state: WorkState::Ready,
        queue: Queue::Runnable,
        queued_at: second(number),
        failures: 0,
        eligibility: Eligibility::Clear,
        hold: None,
        let_through: false,
        revision: Revision::FIRST,
        attempts: 0,
        created_at: second(number),
        ended_at: None,
        concurrency: None,
    }
}

/// `work` at its next revision, running `execution`.
pub(super) fn running(work: &Work, execution: ExecutionId) -> Work {
    Work {
        state: WorkState::Running { execution },
        queue: Queue::Idle,
        attempts: work.attempts + 1,
        revision: work.revision.next(),
        ..work.clone()
    }
}

/// `work` at its next revision, ready again without input.
pub(super) fn idle(work: &Work) -> Work {
    Work { state: WorkState::Ready, queue: Queue::Idle, revision: work.revision.next(), ..work.clone() }
}

/// `work` at its next revision, ended in `state`.
pub(super) fn ended(work: &Work, state: WorkState) -> Work {
    Work {
        state,
        queue: Queue::Idle,
        revision: work.revision.next(),
        ended_at: Some(second(1_000)),
        ..work.clone()
    }
}

/// The input that `event` is to `work`, pending.
pub(super) fn input(work: &Work, event: &Event) -> Input {
    Input {
        work: work.id,
        sequence: event.sequence,
        event: event.id,
        binding: BindingName::known("shell"),
        consumed_by: None,
    }
}

/// The `number`-th Execution: the first attempt at `work`, launching, its lease good for 30 s from `number`
/// seconds after the start of time.
pub(super) fn execution(number: i64, work: &Work, trigger: &Event) -> Execution {
    Execution {
        id: ExecutionId::from_number(number),
        work: work.id,
        scope: work.scope.clone(),
        attempt: Attempt::FIRST,
        state: ExecutionState::Launching,
        epoch: Epoch::FIRST,
        lease: Some(Lease { owner: Incarnation::FIRST, until: second(number + 30) }),
        recovering: false,
        trigger: trigger.id,
        trigger_sequence: trigger.sequence,
        retry_of: None,
        credential: None,
        content: domain::retention::Content::Kept,
        binding: BindingName::known("shell"),
        executor: ExecutorName::known("shell"),
        generation: Generation::FIRST,
        timeout: Duration::from_hours(1),
        deadline_at: None,
        handle: None,
        turn: Turn {
            number: 1,
            cause: trigger.id,
            used: Duration::ZERO,
            resumed_by: None,
            session: None,
            let_through: false,
            reports: 0,
        },
        outcome: None,
        claimed_at: second(number),
        started_at: None,
        ended_at: None,
        unstopped: false,
        controls: Controls::NONE,
        interrupted_by: None,
        toolbelt: Toolbelt::default(),
        workspace: None,
    }
}

/// `execution`, its outcome known and its lease released.
pub(super) fn recorded(execution: &Execution, outcome: Outcome) -> Execution {
    Execution { state: ExecutionState::Running, lease: None, outcome: Some(outcome), ..execution.clone() }
}

/// `execution`, ended.
pub(super) fn completed(execution: &Execution) -> Execution {
    Execution {
        state: ExecutionState::Completed,
        lease: None,
        outcome: Some(Outcome::Completed),
        ended_at: Some(second(1_000)),
        ..execution.clone()
    }
}

/// An Event, the Work it triggered, and the Work's live Execution, all with one number.
#[derive(Debug, Clone)]
pub(super) struct Running {
    pub(super) event: Event,
    pub(super) work: Work,
    pub(super) execution: Execution,
}

/// Writes the `number`-th Event, Work and Execution, live.
pub(super) fn start(tx: &mut dyn Tx, number: i64) -> Result<Running, StoreError> {
    start_with(tx, &work(number), |_execution| ())
}

/// Writes an Event and a live Execution for a new Work, all with its number, the Execution as `change` has it.
pub(super) fn start_with(
    tx: &mut dyn Tx,
    ready: &Work,
    change: impl Fn(&mut Execution),
) -> Result<Running, StoreError> {
    let number = ready.id.number();
    let event = accept(tx, &event(number))?;
    tx.insert_work(ready)?;
    tx.insert_input(&input(ready, &event))?;
    let mut execution = execution(number, ready, &event);
    change(&mut execution);
    tx.insert_execution(&execution)?;
    let work = running(ready, execution.id);
    tx.update_work(&work, ready)?;
    tx.consume_inputs(work.id, event.sequence, execution.id)?;
    Ok(Running { event, work, execution })
}
