//! The end of a Wait: which accepted Event wins, and what that makes of its Work.
//!
//! Three things look for a winner, each in the transaction that makes it possible: the registration, behind what
//! its attempt had seen; routing, as it routes a match; and the timeout, when it is due. What is accepted and not
//! yet routed is left to routing, in its turn, and keeps the timeout out meanwhile: of what is accepted the lowest
//! sequence wins. So a Wait ends once, whatever is repeated, late or doubled.

use domain::causal::Origin;
use domain::delivery::{self, AcceptFacts, CORE_SOURCE, Delivery};
use domain::event::{Event, Key, Payload};
use domain::execution::{Execution, ExecutionState};
use domain::id::{EventId, ExecutionId, Sequence, WaitId, WorkId};
use domain::input::Input;
use domain::lane::{BEHIND_PAUSE, LaneId};
use domain::route::{Checkpoint, CheckpointOutcome};
use domain::store::{Snapshot, StoreError, Tx};
use domain::text::{Code, EventType, SourceName};
use domain::time::Timestamp;
use domain::timer::Timer;
use domain::wait::{Arbitration, Candidates, WAIT_TIMEOUT, Wait};
use domain::work::{Hold, HoldReason, Work};
use serde::Serialize;

use crate::announce::{self, Announced};
use crate::causal::{self, Derived};
use crate::generation::ActiveGeneration;
use crate::replay;
use crate::route::reopen::newest_after;

/// How many Events are read at a time.
const PAGE: u32 = 64;

/// The code of an Event that no route matched and that a Work waits for.
pub(crate) const WAITED_FOR: &str = "waited_for";

/// The same in words.
pub(crate) fn waited_for_in_words() -> String {
    "no route matched it, and the Work waits for it".to_owned()
}

/// What looking for a winner came to.
#[derive(Debug, Default)]
pub(crate) struct Woken {
    /// The Work may go on.
    pub(crate) ready: bool,
    /// The routing stage has something to do.
    pub(crate) announced: bool,
    /// A chain refused what it needs, and the Work is held.
    pub(crate) refused: bool,
}

/// The ids that the end of a Wait may need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Proposed {
    /// Of its timeout.
    pub(crate) timeout: EventId,
    /// Of what bridges to the next turn.
    pub(crate) woken: EventId,
}

fn corrupt(reason: &str) -> StoreError {
    StoreError::Corrupt { table: "wait", reason: reason.to_owned() }
}

/// Ends a Wait with its winner: the Work becomes ready with that Event as its next trigger.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn end(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    wait: &Wait,
    winner: &Event,
    proposed: EventId,
) -> Result<Woken, StoreError> {
    let work = tx.work(wait.work)?.ok_or_else(|| corrupt("names no Work"))?;
    let execution = tx.execution(wait.execution)?.ok_or_else(|| corrupt("names no run"))?;
    let now = tx.now();
    let resumes = (execution.state == ExecutionState::Parked).then_some(execution.id);
    let woken = wait.wake(winner, now);
    let next = work.clone().wake(wait.id, winner.sequence, resumes, now);
    let (Some(woken), Ok(next)) = (woken, next) else { return Ok(Woken::default()) };
    if tx.input(work.id, winner.sequence)?.is_none() {
        let (sequence, event, binding) = (winner.sequence, winner.id, execution.binding);
        tx.insert_input(&Input { work: work.id, sequence, event, binding, consumed_by: None })?;
    }
    tx.end_wait(&woken)?;
    if let Some(timeout) = wait.timeout {
        tx.delete_timer(timeout.timer)?;
    }
    let announced = announce::woken(tx, active, proposed, &work, (wait, winner))?;
    let (next, refused) = match &announced {
        Announced::Heard | Announced::Unheard => (next, false),
        Announced::Refused(refusal) => (hold(next, refusal.to_string(), tx), true),
    };
    tx.update_work(&next, &work)?;
    Ok(Woken { ready: !refused, announced: announced == Announced::Heard, refused })
}

fn hold(work: Work, reason: String, tx: &dyn Tx) -> Work {
    let hold = Hold { because: HoldReason::WakeRefused, reason, since: tx.now() };
    work.hold(hold).expect("a Work that has not ended can be held")
}

/// Looks behind what the attempt had seen, as its Wait is registered.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn registered(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    wait: &Wait,
    proposed: EventId,
) -> Result<Woken, StoreError> {
    let mut first: Option<(Event, bool)> = None;
    for key in &wait.keys {
        let before = first.as_ref().map(|(event, _routed)| event.sequence);
        first = first_match(tx, wait, key, before)?.or(first);
    }
    // What is not routed yet ends it in its turn.
    let Some((event, true)) = first else { return Ok(Woken::default()) };
    match wait.arbitrate(Candidates { matched: Some(event.sequence), timeout: None }, tx.now()) {
        Arbitration::Won(_) => end(tx, active, wait, &event, proposed),
        Arbitration::Goes | Arbitration::TimedOut => Ok(Woken::default()),
    }
}

/// The first Event of a key that the Wait is for, before another one, and whether it has been routed.
fn first_match(
    tx: &mut dyn Snapshot,
    wait: &Wait,
    key: &Key,
    before: Option<Sequence>,
) -> Result<Option<(Event, bool)>, StoreError> {
    let mut after = wait.after;
    loop {
        let page = tx.events_of_key(key, after, PAGE)?;
        let full = page.len() == PAGE as usize;
        for event in page {
            after = event.sequence;
            if before.is_some_and(|before| before <= event.sequence) {
                return Ok(None);
            }
            let event = replay::seen(tx, event)?;
            if !is_for(tx, wait, &event)? {
                continue;
            }
            match tx.checkpoint(event.sequence)? {
                None => return Ok(Some((event, false))),
                Some(checkpoint) if is_news(tx, wait, &checkpoint)? => return Ok(Some((event, true))),
                Some(_without_effect) => {}
            }
        }
        if !full {
            return Ok(None);
        }
    }
}

/// Whether a Wait is for an Event. Who published it is looked up only where somebody did.
fn is_for(tx: &mut dyn Snapshot, wait: &Wait, event: &Event) -> Result<bool, StoreError> {
    if !wait.matches(event) {
        return Ok(false);
    }
    let Some(publisher) = event.emitted_by else { return Ok(true) };
    Ok(tx.execution(publisher)?.is_none_or(|publisher| !wait.is_of(&publisher)))
}

/// Whether what became of a routed Event leaves it news for a Wait: it reached the Work, or nobody, and the Work
/// has not taken it in already.
fn is_news(tx: &mut dyn Snapshot, wait: &Wait, checkpoint: &Checkpoint) -> Result<bool, StoreError> {
    let reached = match checkpoint.outcome {
        CheckpointOutcome::Routed => checkpoint.work == Some(wait.work),
        CheckpointOutcome::Unmatched => true,
        CheckpointOutcome::Dropped | CheckpointOutcome::Terminal | CheckpointOutcome::Quarantined => false,
    };
    if !reached {
        return Ok(false);
    }
    let input = tx.input(wait.work, checkpoint.sequence)?;
    Ok(input.is_none_or(|input| input.consumed_by.is_none()))
}

/// Ends the Wait of a Work with an Event that has just become its input, if the Wait is for it.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn routed(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    wait: WaitId,
    event: &Event,
    proposed: EventId,
) -> Result<Woken, StoreError> {
    let wait = tx.wait(wait)?.ok_or_else(|| corrupt("a Work waits for none"))?;
    if !is_for(tx, &wait, event)? {
        return Ok(Woken::default());
    }
    let timeout = accepted_timeout(tx, &wait)?;
    let candidates = Candidates {
        matched: Some(event.sequence),
        timeout: timeout.as_ref().map(|timeout| timeout.sequence),
    };
    let winner = match (wait.arbitrate(candidates, tx.now()), &timeout) {
        (Arbitration::Won(sequence), Some(timeout)) if timeout.sequence == sequence => timeout,
        (Arbitration::Won(_), _) => event,
        (Arbitration::Goes | Arbitration::TimedOut, _) => return Ok(Woken::default()),
    };
    end(tx, active, &wait, winner, proposed)
}

/// The Wait that is for an Event which no route matched.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn waited_for(tx: &mut dyn Snapshot, event: &Event) -> Result<Option<Wait>, StoreError> {
    let Some(key) = &event.key else { return Ok(None) };
    let Some(owner) = tx.key_owner(key)? else { return Ok(None) };
    let newest = match tx.active_wait(owner)? {
        // The owner of a plain key has ended when another Work goes on with it.
        None => newest_after(tx, owner)?,
        Some(_waits) => None,
    };
    let work = newest.map_or(owner, |newest| newest.work);
    let Some(wait) = tx.active_wait(work)? else { return Ok(None) };
    Ok(is_for(tx, &wait, event)?.then_some(wait))
}

/// The timeout of a Wait, when it was accepted. The timer that it came from may be long gone.
fn accepted_timeout(tx: &mut dyn Snapshot, wait: &Wait) -> Result<Option<Event>, StoreError> {
    if wait.timeout.is_none() {
        return Ok(None);
    }
    tx.event_of_delivery(&SourceName::known(CORE_SOURCE), &wait.timeout_delivery())
}

/// The first accepted Event that a Wait is for and that waits to be routed, with its lane.
fn first_unrouted(tx: &mut dyn Snapshot, wait: &Wait) -> Result<Option<(Sequence, LaneId)>, StoreError> {
    let mut first: Option<(Sequence, LaneId)> = None;
    for key in &wait.keys {
        let lane = LaneId::of_key(key);
        // What stands in a lane is live, and bounded by what arrives while nobody routes.
        let until = first.map_or(Sequence::from_number(i64::MAX), |(sequence, _lane)| sequence);
        for sequence in tx.unrouted_in_lane(lane, until, u32::MAX)? {
            let Some(event) = tx.event_at(sequence)? else { continue };
            let event = replay::seen(tx, event)?;
            if is_for(tx, wait, &event)? {
                first = Some((sequence, lane));
                break;
            }
        }
    }
    Ok(first)
}

/// When to look again at a timeout that something accepted comes before: a lane that stands still is not asked
/// before it is tried again itself.
fn look_again(tx: &mut dyn Snapshot, lane: Option<LaneId>) -> Result<Timestamp, StoreError> {
    let soon = tx.now().after(BEHIND_PAUSE);
    let block = lane.map(|lane| tx.lane_block(lane)).transpose()?.flatten();
    Ok(block.map_or(soon, |block| block.blocked_until.max(soon)))
}

/// What became of a Wait's timer.
#[derive(Debug)]
pub(crate) enum Due {
    /// It ended the Wait, or its chain refused that.
    Fired(Woken),
    /// Something accepted comes first, and has to be routed.
    Behind,
    /// It is waited for no more.
    Stale,
}

/// Accepts the timeout of a Wait and ends the Wait with it, unless something that was accepted comes first. The
/// timer is gone already.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn due(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    timer: &Timer,
    wait: WaitId,
    proposed: Proposed,
) -> Result<Due, StoreError> {
    let mut wait = tx
        .wait(wait)?
        .ok_or_else(|| StoreError::Corrupt { table: "timer", reason: "names no Wait".to_owned() })?;
    if let Some(timeout) = &mut wait.timeout {
        // It may have been rearmed, after the clock stepped back.
        timeout.due_at = timeout.due_at.min(timer.due_at);
    }
    if !wait.state.is_active() {
        return Ok(Due::Stale);
    }
    let accepted = accepted_timeout(tx, &wait)?;
    let timeout = accepted.as_ref().map(|timeout| timeout.sequence);
    let first = first_unrouted(tx, &wait)?;
    let candidates = Candidates { matched: first.map(|(sequence, _lane)| sequence), timeout };
    match (wait.arbitrate(candidates, tx.now()), accepted) {
        (Arbitration::Won(sequence), Some(accepted)) if accepted.sequence == sequence => {
            Ok(Due::Fired(end(tx, active, &wait, &accepted, proposed.woken)?))
        }
        (Arbitration::Won(_) | Arbitration::Goes, _) => {
            let (armed_at, due_at) = (tx.now(), look_again(tx, first.map(|(_sequence, lane)| lane))?);
            tx.insert_timer(&Timer { armed_at, due_at, ..timer.clone() })?;
            Ok(Due::Behind)
        }
        (Arbitration::TimedOut, _) => Ok(Due::Fired(time_out(tx, active, &wait, proposed)?)),
    }
}

fn time_out(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    wait: &Wait,
    proposed: Proposed,
) -> Result<Woken, StoreError> {
    let work = tx.work(wait.work)?.ok_or_else(|| corrupt("names no Work"))?;
    let execution = tx.execution(wait.execution)?.ok_or_else(|| corrupt("names no run"))?;
    let parent = execution.turn.cause;
    let origin = Origin::Derived { parent, emitted_by: None };
    let delivery = timeout_delivery(wait, &execution, proposed.timeout, origin);
    let facts = AcceptFacts {
        target: Some(work.clone()),
        parent: tx.event(parent)?,
        ..AcceptFacts::new(active.bounds(&work.scope))
    };
    match causal::derive(tx, &delivery, &facts)? {
        Derived::Accepted(event) => {
            check_off(tx, active, &event, wait)?;
            end(tx, active, wait, &event, proposed.woken)
        }
        Derived::Refused(refusal) => {
            let next = hold(work.clone(), refusal.to_string(), tx);
            tx.update_work(&next, &work)?;
            Ok(Woken { refused: true, ..Woken::default() })
        }
        Derived::Duplicate => Err(corrupt("its timeout is both there and not")),
    }
}

/// Ends a Wait whose timeout was refused, on an operator's word: the same timeout, at the root of a chain.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn released(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    wait: WaitId,
    proposed: Proposed,
) -> Result<Woken, StoreError> {
    let wait = tx.wait(wait)?.ok_or_else(|| corrupt("a Work waits for none"))?;
    let work = tx.work(wait.work)?.ok_or_else(|| corrupt("names no Work"))?;
    let execution = tx.execution(wait.execution)?.ok_or_else(|| corrupt("names no run"))?;
    let delivery = timeout_delivery(&wait, &execution, proposed.timeout, Origin::Root);
    let facts = AcceptFacts { target: Some(work.clone()), ..AcceptFacts::new(active.bounds(&work.scope)) };
    let (sequence, now) = (tx.next_sequence(), tx.now());
    let event =
        delivery::admit(&delivery, &facts, sequence, now).expect("a root that names a Work of its own scope");
    // Its delivery id is that of the Wait, which goes on: there is no other.
    tx.insert_new_event(&event, &delivery.payload)?;
    check_off(tx, active, &event, &wait)?;
    end(tx, active, &wait, &event, proposed.woken)
}

/// The body of a `core.wait.timeout` Event.
#[derive(Debug, Serialize)]
struct TimeoutBody {
    work: WorkId,
    wait: WaitId,
    execution: ExecutionId,
}

fn timeout_delivery(wait: &Wait, execution: &Execution, id: EventId, origin: Origin) -> Delivery {
    let body = TimeoutBody { work: wait.work, wait: wait.id, execution: execution.id };
    Delivery {
        id,
        source: SourceName::known(CORE_SOURCE),
        delivery_id: wait.timeout_delivery(),
        event_type: EventType::known(WAIT_TIMEOUT),
        scope: wait.scope.clone(),
        key: None,
        work: Some(wait.work),
        occurred_at: None,
        payload: Payload::stored(serde_json::to_vec(&body).expect("a struct of plain values is JSON")),
        origin,
    }
}

/// An accepted timeout is routed as it is accepted.
fn check_off(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    event: &Event,
    wait: &Wait,
) -> Result<(), StoreError> {
    let at = tx.now();
    tx.insert_checkpoint(&Checkpoint {
        sequence: event.sequence,
        event: event.id,
        outcome: CheckpointOutcome::Routed,
        route: None,
        policy: None,
        work: Some(wait.work),
        generation: active.number,
        code: Some(Code::known("wait_timeout")),
        reason: Some(format!("{} waited as long as it was to", wait.work)),
        at,
    })
}
