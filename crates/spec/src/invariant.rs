//! What holds after every step, whatever the steps were: nothing that was accepted is lost or done twice, and what
//! has not ended has something that moves it.
//!
//! These are read off snapshots, and know nothing of how one came from the other.

use std::collections::{BTreeMap, BTreeSet};

use domain::id::{EventId, ExecutionId, WorkId};
use domain::route::CheckpointOutcome;

use crate::driver::{
    AttemptRecord, AttemptState, EligibilityRecord, EventRecord, IntentState, Snapshot, TimerKind,
    WaitRecord, WaitState, WorkRecord, WorkWord,
};

/// What does not hold.
type Broken = Result<(), String>;

/// Says that something does not hold, unless it does.
fn hold(holds: bool, what: impl FnOnce() -> String) -> Broken {
    if holds { Ok(()) } else { Err(what()) }
}

/// Looks at one step, from what was there before it to what is there after it.
///
/// # Errors
/// The first thing that does not hold, in words.
pub fn check(before: &Snapshot, after: &Snapshot) -> Result<(), String> {
    events_stay(before, after)?;
    works_stay(before, after)?;
    attempts_stay(before, after)?;
    waits_and_orders_stay(before, after)?;
    events_are_accepted_once(after)?;
    chains_are_kept(after)?;
    input_is_taken_once(after)?;
    works_have_one_owner_and_one_attempt(after)?;
    after.works.iter().try_for_each(|work| has_a_mover(after, work))?;
    after.attempts.iter().try_for_each(has_its_authority)?;
    timers_are_for_somebody(after)?;
    orders_are_for_whoever_may_take_them(after)
}

/// Looks at what is there once everything has gone on as far as it goes by itself.
///
/// # Errors
/// The first thing that is left, in words.
pub fn check_rest(seen: &Snapshot) -> Result<(), String> {
    for event in &seen.events {
        hold(event.checkpoint.is_some(), || format!("{} is accepted and never routed", event.id))?;
    }
    for attempt in &seen.attempts {
        let ended = attempt.state.is_terminal() || attempt.state == AttemptState::Parked;
        hold(ended, || format!("{} of {} never ends", attempt.id, attempt.work))?;
    }
    for work in seen.works.iter().filter(|work| work.state == WorkWord::Ready) {
        let waits_for_an_operator = work.eligibility == EligibilityRecord::Exhausted;
        hold(work.pending.is_empty() || waits_for_an_operator, || format!("{} never starts", work.id))?;
        hold(work.held.is_none(), || format!("{} is held whatever an operator does", work.id))?;
    }
    hold(seen.timers.is_empty(), || "a timer is never fired".to_owned())?;
    for intent in &seen.intents {
        hold(intent.state != IntentState::Pending, || format!("an order about {} is left", intent.event))?;
    }
    Ok(())
}

/// What was accepted stays, as it was, and what routing did with it stays done.
fn events_stay(before: &Snapshot, after: &Snapshot) -> Broken {
    hold(before.events.len() <= after.events.len(), || "an accepted Event is gone".to_owned())?;
    for (old, new) in before.events.iter().zip(&after.events) {
        let routed = old.checkpoint.is_none() || old.checkpoint == new.checkpoint;
        hold(routed, || format!("{} has another checkpoint", old.id))?;
        hold(old.redelivered <= new.redelivered, || format!("{} was redelivered less often", old.id))?;
        let same =
            EventRecord { checkpoint: new.checkpoint.clone(), redelivered: new.redelivered, ..old.clone() };
        hold(same == *new, || format!("{} has changed", old.id))?;
    }
    let charged = before.charged.iter().all(|(bucket, count)| after.charged.get(bucket) >= Some(count));
    hold(charged, || "what a chain used is forgotten".to_owned())
}

/// What has ended stays ended, and keys stay where they are.
fn works_stay(before: &Snapshot, after: &Snapshot) -> Broken {
    let now: BTreeMap<WorkId, &WorkRecord> = after.works.iter().map(|work| (work.id, work)).collect();
    for old in &before.works {
        let new = now.get(&old.id).ok_or_else(|| format!("{} is gone", old.id))?;
        hold(old.keys.is_subset(&new.keys), || format!("{} has lost a key", old.id))?;
        let ended = old.state.is_terminal();
        hold(!ended || old.state == new.state, || format!("{} had ended and goes on", old.id))?;
    }
    Ok(())
}

/// Epochs only grow, ends stay, and what was taken in stays so.
fn attempts_stay(before: &Snapshot, after: &Snapshot) -> Broken {
    let now: BTreeMap<ExecutionId, &AttemptRecord> =
        after.attempts.iter().map(|attempt| (attempt.id, attempt)).collect();
    for old in &before.attempts {
        let new = now.get(&old.id).ok_or_else(|| format!("{} is gone", old.id))?;
        hold(old.epoch <= new.epoch, || format!("{} has an earlier epoch", old.id))?;
        hold((old.work, old.number, old.trigger) == (new.work, new.number, new.trigger), || {
            format!("{} is another attempt", old.id)
        })?;
        let reported = old.state == AttemptState::Running && old.lease_until.is_none();
        hold(!reported || new.lease_until.is_none(), || {
            format!("{} had reported and has authority again", old.id)
        })?;
        let taken: BTreeSet<&EventId> = new.consumed.iter().collect();
        let stays = old.consumed.iter().all(|event| taken.contains(event));
        hold(stays, || format!("{} has not taken in any more what it had", old.id))?;
        hold(!old.state.is_terminal() || old == *new, || format!("{} had ended and has changed", old.id))?;
    }
    Ok(())
}

/// A Wait ends once, and so does an order.
fn waits_and_orders_stay(before: &Snapshot, after: &Snapshot) -> Broken {
    hold(before.waits.len() <= after.waits.len(), || "a Wait is gone".to_owned())?;
    for (old, new) in before.waits.iter().zip(&after.waits) {
        let ended = old.state != WaitState::Active;
        hold(!ended || old == new, || format!("a Wait of {} ended twice", old.work))?;
    }
    for old in &before.intents {
        let name = (old.execution, old.event);
        let new = after.intents.iter().find(|intent| (intent.execution, intent.event) == name);
        let new = new.ok_or_else(|| format!("an order about {} is gone", old.event))?;
        let goes_on = match old.state {
            IntentState::Pending => true,
            // The proof may come after the answer, and the attempt may end after both.
            IntentState::Accepted => matches!(new.state, IntentState::Accepted | IntentState::Consumed),
            // What was under way as its attempt ended may still be answered; the answer changes nothing else.
            IntentState::Stale if old.attempted => match new.state {
                IntentState::Stale | IntentState::Accepted | IntentState::NotAccepting => true,
                IntentState::Pending | IntentState::Consumed => false,
            },
            IntentState::NotAccepting | IntentState::Consumed | IntentState::Stale => old.state == new.state,
        };
        hold(goes_on && (!old.attempted || new.attempted), || {
            format!("an order about {} went from {:?} to {:?}", old.event, old.state, new.state)
        })?;
    }
    Ok(())
}

/// A delivery is one Event, and places are in the order of acceptance.
fn events_are_accepted_once(seen: &Snapshot) -> Broken {
    let mut deliveries = BTreeSet::new();
    let mut last = None;
    for event in &seen.events {
        hold(deliveries.insert((&event.source, &event.delivery)), || {
            format!("{} was accepted twice", event.delivery)
        })?;
        hold(last < Some(event.sequence), || format!("{} is out of order", event.id))?;
        last = Some(event.sequence);
    }
    Ok(())
}

/// Every Event has its cause, and every derived one is charged.
fn chains_are_kept(seen: &Snapshot) -> Broken {
    let mut derived: BTreeMap<EventId, i64> = BTreeMap::new();
    let known: BTreeMap<EventId, &EventRecord> = seen.events.iter().map(|event| (event.id, event)).collect();
    for event in &seen.events {
        let Some(parent) = event.parent else {
            hold(event.root == event.id && event.depth == 0, || format!("{} is no root", event.id))?;
            continue;
        };
        let parent = known.get(&parent).ok_or_else(|| format!("{} has no cause", event.id))?;
        hold(event.root == parent.root && event.depth == parent.depth + 1, || {
            format!("{} has left its chain", event.id)
        })?;
        hold(parent.sequence < event.sequence, || format!("{} came before its cause", event.id))?;
        *derived.entry(event.root).or_default() += 1;
    }
    for (root, count) in derived {
        let charged: i64 =
            seen.charged.iter().filter(|((of, _minute), _count)| *of == root).map(|(_bucket, one)| one).sum();
        hold(charged == count, || format!("{root} was charged {charged} times for {count} Events"))?;
    }
    Ok(())
}

/// What reached a Work is pending there, or one attempt of it took it in; what reached none is neither.
fn input_is_taken_once(seen: &Snapshot) -> Broken {
    let mut taken: BTreeMap<EventId, Vec<WorkId>> = BTreeMap::new();
    for attempt in &seen.attempts {
        for event in &attempt.consumed {
            taken.entry(*event).or_default().push(attempt.work);
        }
    }
    for work in &seen.works {
        for event in &work.pending {
            taken.entry(*event).or_default().push(work.id);
        }
    }
    for event in &seen.events {
        let by = taken.get(&event.id).map_or(&[][..], Vec::as_slice);
        hold(by.len() <= 1, || format!("{} is input twice", event.id))?;
        let Some(checkpoint) = &event.checkpoint else {
            hold(by.is_empty(), || format!("{} is input and not routed", event.id))?;
            continue;
        };
        match checkpoint.outcome {
            CheckpointOutcome::Routed => {
                let stray = by.iter().any(|work| Some(*work) != checkpoint.work);
                hold(!stray, || format!("{} is input of another Work", event.id))?;
                hold(!by.is_empty() || is_no_input(event), || format!("{} is lost", event.id))?;
            }
            // What no route took may still have been what a Work waited for.
            CheckpointOutcome::Unmatched => {}
            CheckpointOutcome::Dropped | CheckpointOutcome::Terminal | CheckpointOutcome::Quarantined => {
                hold(by.is_empty(), || format!("{} has no effect and is input", event.id))?;
            }
        }
    }
    Ok(())
}

/// Whether a routed Event is a control, and no input.
fn is_no_input(event: &EventRecord) -> bool {
    event.event_type.as_str() == "core.manual.interrupt"
}

/// A key leads to one Work, and a Work has one attempt that has not ended.
fn works_have_one_owner_and_one_attempt(seen: &Snapshot) -> Broken {
    let mut keys = BTreeSet::new();
    for key in seen.works.iter().flat_map(|work| &work.keys) {
        hold(keys.insert(key), || format!("{key:?} leads to two Works"))?;
    }
    let mut numbers: BTreeMap<WorkId, i64> = BTreeMap::new();
    let mut live: BTreeMap<WorkId, u32> = BTreeMap::new();
    let mut attempts: Vec<&AttemptRecord> = seen.attempts.iter().collect();
    attempts.sort_by_key(|attempt| attempt.number);
    for attempt in attempts {
        let number = numbers.entry(attempt.work).or_default();
        *number += 1;
        hold(*number == attempt.number, || format!("{} has a number out of turn", attempt.id))?;
        *live.entry(attempt.work).or_default() += u32::from(!attempt.state.is_terminal());
    }
    for work in &seen.works {
        let live = live.get(&work.id).copied().unwrap_or(0);
        let parked = seen.attempts.iter().any(|it| it.work == work.id && it.state == AttemptState::Parked);
        let fits = match work.state {
            WorkWord::Running => live == 1 && !parked,
            // A parked attempt goes on when its Work is claimed again.
            WorkWord::Waiting | WorkWord::Ready => live == u32::from(parked),
            WorkWord::Completed | WorkWord::Failed | WorkWord::Cancelled => live == 0,
        };
        hold(fits, || format!("{} is {:?} with {live} live attempts", work.id, work.state))?;
    }
    Ok(())
}

/// Every Work that has not ended has something that moves it on.
fn has_a_mover(seen: &Snapshot, work: &WorkRecord) -> Broken {
    let active: Vec<&WaitRecord> =
        seen.waits.iter().filter(|wait| wait.work == work.id && wait.state == WaitState::Active).collect();
    let has_timer = |kind| seen.timers.iter().any(|timer| timer.work == work.id && timer.kind == kind);
    let waits = active.len();
    hold(waits == usize::from(work.state == WorkWord::Waiting), || {
        format!("{} is {:?} with {waits} Waits", work.id, work.state)
    })?;
    match work.state {
        WorkWord::Ready => match work.eligibility {
            EligibilityRecord::Backoff(due_at) => {
                hold(has_timer(TimerKind::Retry), || format!("{} waits until {due_at} for nothing", work.id))
            }
            EligibilityRecord::Due(event) => {
                hold(work.pending.contains(&event), || format!("{} is due by no input", work.id))
            }
            EligibilityRecord::Clear | EligibilityRecord::Exhausted => Ok(()),
        },
        WorkWord::Waiting => {
            let moved = active.iter().any(|wait| !wait.keys.is_empty())
                || has_timer(TimerKind::Wait)
                || work.held.is_some();
            hold(moved, || format!("{} waits for nothing", work.id))
        }
        // Its attempt has a lease, or an outcome; see there.
        WorkWord::Running => Ok(()),
        WorkWord::Completed | WorkWord::Cancelled | WorkWord::Failed => {
            let timers = has_timer(TimerKind::Retry) || has_timer(TimerKind::Wait);
            hold(!timers, || format!("{} has ended and something is to fire", work.id))?;
            let passed_over = work.state == WorkWord::Completed && !work.pending.is_empty();
            hold(!passed_over, || format!("{} is completed and has input", work.id))
        }
    }
}

/// An attempt has authority while it is live, and never afterwards.
fn has_its_authority(attempt: &AttemptRecord) -> Broken {
    let leased = attempt.lease_until.is_some();
    match attempt.state {
        AttemptState::Launching => hold(leased, || format!("{} is launched by nobody", attempt.id)),
        // Without a lease its outcome waits to be settled; that it does not wait for ever is seen at rest.
        AttemptState::Running => {
            hold(leased || !attempt.recovering, || format!("{} is recovered without authority", attempt.id))
        }
        AttemptState::Parked
        | AttemptState::Completed
        | AttemptState::Handoff
        | AttemptState::Waiting
        | AttemptState::Failed
        | AttemptState::Cancelled => hold(!leased, || format!("{} has ended and has a lease", attempt.id)),
    }
}

fn timers_are_for_somebody(seen: &Snapshot) -> Broken {
    for timer in &seen.timers {
        let work = seen.works.iter().find(|work| work.id == timer.work);
        let work = work.ok_or_else(|| format!("a timer is for {}, which is not there", timer.work))?;
        let waited_for = match timer.kind {
            TimerKind::Retry => matches!(work.eligibility, EligibilityRecord::Backoff(_)),
            TimerKind::Wait => work.state == WorkWord::Waiting,
        };
        hold(waited_for, || format!("{} does not wait for its timer", work.id))?;
    }
    Ok(())
}

/// An order that can still be carried out is for a live attempt; one that was proved was taken in there.
fn orders_are_for_whoever_may_take_them(seen: &Snapshot) -> Broken {
    for intent in &seen.intents {
        let attempt = seen.attempts.iter().find(|attempt| attempt.id == intent.execution);
        let attempt =
            attempt.ok_or_else(|| format!("an order is for {}, which is not there", intent.execution))?;
        hold(intent.epoch <= attempt.epoch, || format!("an order about {} is of the future", intent.event))?;
        match intent.state {
            IntentState::Pending => {
                let live = !attempt.state.is_terminal();
                hold(live, || format!("an order about {} is for an attempt that ended", intent.event))?;
            }
            IntentState::Consumed => {
                let taken = attempt.consumed.contains(&intent.event);
                hold(taken, || format!("{} is proved and not taken in", intent.event))?;
            }
            IntentState::Accepted | IntentState::NotAccepting | IntentState::Stale => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
