//! What is in a store, as the records that the cases look at.

use std::collections::{BTreeMap, BTreeSet};

use domain::causal::minute_of;
use domain::event::Event;
use domain::execution::{Execution, ExecutionState};
use domain::id::{EventId, ExecutionId, Generation, Sequence};
use domain::intent::{self, Intent};
use domain::retry::Eligibility;
use domain::store::kv::{CAUSAL_REJECTIONS, KvRow};
use domain::store::{EventFilter, ExecutionFilter, Snapshot as Tx, StoreError, WaitFilter, WorkFilter};
use domain::text::{DeliveryId, SourceName};
use domain::timer::{Timer, TimerKind};
use domain::wait::{Wait, WaitState};
use domain::work::{Work, WorkState};
use serde_json::Value;
use spec::driver::{
    AttemptRecord, AttemptState, CheckpointRecord, EligibilityRecord, EventRecord, IntentKind, IntentRecord,
    IntentState, RejectionRecord, Snapshot, Subscription, TimerRecord, WaitRecord, WorkRecord, WorkWord,
};

/// More than any case makes of anything.
const MANY: u32 = 1000;

/// Reads everything but what only the extensions of the cases know.
pub(super) fn read(tx: &mut dyn Tx) -> Result<Snapshot, StoreError> {
    let mut events = tx.events(&EventFilter::default(), MANY)?;
    events.reverse();
    let mut works = tx.works(&WorkFilter::default(), MANY)?;
    works.reverse();
    let mut executions = tx.executions(&ExecutionFilter::default(), MANY)?;
    executions.reverse();
    let mut waits = tx.waits(&WaitFilter::default(), MANY)?;
    waits.reverse();
    let timers = tx.timers(None, MANY)?;
    let rejections = tx.kv_after(CAUSAL_REJECTIONS, "", MANY)?;
    let mut charged = BTreeMap::new();
    // Only what is derived is charged, to its root and in its minute.
    let derived = events.iter().filter(|event| event.causation.parent.is_some());
    let buckets: BTreeSet<(EventId, i64)> =
        derived.map(|event| (event.causation.root, minute_of(event.accepted_at))).collect();
    for (root, minute) in buckets {
        charged.insert((root, minute), tx.derived_in_minute(root, minute)?);
    }
    let mut intents = Vec::new();
    for execution in &executions {
        let ended = execution.state.is_terminal();
        intents.extend(
            tx.intents_of(execution.id, MANY)?.into_iter().map(|intent| intent_record(&intent, ended)),
        );
    }
    let mut snapshot = Snapshot {
        now: tx.now(),
        events: Vec::new(),
        works: Vec::new(),
        attempts: Vec::new(),
        timers: timers.iter().map(timer_record).collect(),
        waits: waits.into_iter().map(wait_record).collect(),
        intents,
        rejections: rejections.iter().map(rejection_record).collect(),
        charged,
        generation: tx.current_generation_number()?.unwrap_or(Generation::from_number(0)),
        paused: tx.pauses()?.into_iter().map(|pause| pause.scope).collect(),
        subscriptions: BTreeMap::new(),
        asked: BTreeMap::new(),
    };
    if tx.is_subscribed()? {
        for work in &works {
            let of = tx.subscriptions_of(work.id, MANY)?.into_iter().map(subscription_record);
            snapshot.subscriptions.extend(of.map(|it| (it.id.clone(), it)));
        }
    }
    for work in works {
        snapshot.works.push(work_record(tx, work, &events)?);
    }
    for execution in executions {
        snapshot.attempts.push(attempt_record(tx, execution)?);
    }
    for event in events {
        snapshot.events.push(event_record(tx, event)?);
    }
    Ok(snapshot)
}

/// An order that is not settled is never sent again once its attempt has ended, so it is stale whoever wrote that down.
fn intent_record(intent: &Intent, ended: bool) -> IntentRecord {
    IntentRecord {
        event: intent.event,
        execution: intent.execution,
        epoch: intent.epoch,
        kind: match intent.kind {
            intent::IntentKind::Inject => IntentKind::Inject,
            intent::IntentKind::Interrupt => IntentKind::Interrupt,
        },
        attempted: intent.tries > 0,
        state: match intent.state {
            intent::IntentState::Pending { .. }
            | intent::IntentState::Dispatched { .. }
            | intent::IntentState::Ambiguous { .. }
                if ended =>
            {
                IntentState::Stale
            }
            intent::IntentState::Pending { .. }
            | intent::IntentState::Dispatched { .. }
            | intent::IntentState::Ambiguous { .. } => IntentState::Pending,
            intent::IntentState::Accepted | intent::IntentState::Delivered => IntentState::Accepted,
            intent::IntentState::NotAccepting | intent::IntentState::FellBack => IntentState::NotAccepting,
            intent::IntentState::Consumed => IntentState::Consumed,
            intent::IntentState::Stale => IntentState::Stale,
        },
    }
}

fn event_record(tx: &mut dyn Tx, event: Event) -> Result<EventRecord, StoreError> {
    let checkpoint = tx.checkpoint(event.sequence)?.map(|checkpoint| CheckpointRecord {
        outcome: checkpoint.outcome,
        route: checkpoint.route,
        policy: checkpoint.policy.map(|policy| policy.as_str().to_owned()),
        work: checkpoint.work,
        generation: checkpoint.generation,
        code: checkpoint.code.map(|code| code.to_string()),
    });
    Ok(EventRecord {
        id: event.id,
        sequence: event.sequence,
        source: event.source,
        delivery: event.delivery_id,
        event_type: event.event_type,
        scope: event.scope,
        key: event.key,
        work: event.work,
        parent: event.causation.parent,
        root: event.causation.root,
        depth: event.causation.depth,
        emitted_by: event.emitted_by,
        redelivered: tx.redelivery(event.sequence)?.map_or(0, |redelivery| redelivery.count),
        checkpoint,
    })
}

fn work_record(tx: &mut dyn Tx, work: Work, events: &[Event]) -> Result<WorkRecord, StoreError> {
    let at = |sequence: Sequence| {
        events.iter().find(|event| event.sequence == sequence).expect("a Work names accepted Events").id
    };
    Ok(WorkRecord {
        id: work.id,
        state: match work.state {
            WorkState::Ready => WorkWord::Ready,
            WorkState::Running { .. } => WorkWord::Running,
            WorkState::Waiting { .. } => WorkWord::Waiting,
            WorkState::Completed => WorkWord::Completed,
            WorkState::Failed => WorkWord::Failed,
            WorkState::Cancelled => WorkWord::Cancelled,
        },
        keys: tx.keys_of(work.id)?.into_iter().collect(),
        pending: tx.pending_inputs(work.id, MANY)?.into_iter().map(|input| input.event).collect(),
        eligibility: match work.eligibility {
            Eligibility::Clear | Eligibility::Woken { .. } | Eligibility::Stopping { .. } => {
                EligibilityRecord::Clear
            }
            Eligibility::Backoff { due_at, .. } => EligibilityRecord::Backoff(due_at),
            Eligibility::Due { event, .. } => EligibilityRecord::Due(at(event)),
            Eligibility::Exhausted { .. } => EligibilityRecord::Exhausted,
        },
        failures: work.failures,
        held: work.hold.map(|hold| hold.reason.as_str().to_owned()),
        scope: work.scope,
    })
}

fn attempt_record(tx: &mut dyn Tx, execution: Execution) -> Result<AttemptRecord, StoreError> {
    let consumed = tx.inputs_of(execution.id, Sequence::ZERO, MANY)?;
    Ok(AttemptRecord {
        id: execution.id,
        work: execution.work,
        number: execution.attempt.number(),
        state: match execution.state {
            ExecutionState::Launching => AttemptState::Launching,
            ExecutionState::Running => AttemptState::Running,
            ExecutionState::Parked => AttemptState::Parked,
            ExecutionState::Completed => AttemptState::Completed,
            ExecutionState::Handoff => AttemptState::Handoff,
            ExecutionState::Waiting => AttemptState::Waiting,
            ExecutionState::Failed => AttemptState::Failed,
            ExecutionState::Cancelled => AttemptState::Cancelled,
        },
        epoch: execution.epoch,
        lease_until: execution.lease.map(|lease| lease.until),
        recovering: execution.recovering,
        trigger: execution.trigger,
        resumed_by: execution.turn.resumed_by,
        retry_of: execution.retry_of,
        interrupted_by: execution.interrupted_by,
        consumed: consumed.into_iter().map(|input| input.event).collect(),
        binding: execution.binding,
        label: None,
    })
}

fn timer_record(timer: &Timer) -> TimerRecord {
    let kind = match timer.kind {
        TimerKind::Retry { .. } => spec::driver::TimerKind::Retry,
        TimerKind::Wait { .. } => spec::driver::TimerKind::Wait,
        TimerKind::BudgetWindow => panic!("no case has a budget"),
    };
    TimerRecord { due_at: timer.due_at, work: timer.work, kind }
}

fn wait_record(wait: Wait) -> WaitRecord {
    let state = match wait.state {
        WaitState::Active => spec::driver::WaitState::Active,
        WaitState::Woken { winner, .. } => spec::driver::WaitState::Woken(winner),
        WaitState::Cancelled { .. } => spec::driver::WaitState::Cancelled,
    };
    let Wait { work, execution, keys, types, after, .. } = wait;
    WaitRecord { work, execution, keys, types, after, state }
}

fn subscription_record(it: domain::alias::Subscription) -> Subscription {
    let domain::alias::Subscription { id, work, watched, types, own, becomes, after, .. } = it;
    Subscription { id: id.as_str().to_owned(), work, watched, types, own, becomes, after }
}

fn rejection_record(row: &KvRow) -> RejectionRecord {
    let body: Value = serde_json::from_slice(&row.body).unwrap();
    let (source, delivery) = row.key.split_once('/').expect("a refusal is kept under source and delivery");
    let event = |name: &str| body[name].as_str().and_then(|id| id.parse::<EventId>().ok()).unwrap();
    RejectionRecord {
        source: SourceName::known(source),
        delivery: DeliveryId::known(delivery),
        parent: event("parent"),
        root: event("root"),
        depth: body["depth"].as_i64().unwrap(),
        code: body["code"].as_str().unwrap().to_owned(),
    }
}

/// Attempts that were claimed between two moments: at a first or at a higher epoch.
pub(super) fn claimed(before: &Snapshot, after: &Snapshot) -> Vec<ExecutionId> {
    let known: BTreeMap<_, _> = before.attempts.iter().map(|attempt| (attempt.id, attempt.epoch)).collect();
    let is_new = |attempt: &&AttemptRecord| known.get(&attempt.id) != Some(&attempt.epoch);
    after.attempts.iter().filter(is_new).map(|attempt| attempt.id).collect()
}
