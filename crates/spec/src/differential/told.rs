//! What can be told of an implementation without the ids that it made up.

use std::collections::BTreeSet;

use domain::id::{EventId, ExecutionId, Sequence, WorkId};
use domain::route::CheckpointOutcome;

use crate::driver::{AttemptRecord, EligibilityRecord, EventRecord, Snapshot, WaitState};

/// Works in the order of their first input, which no implementation chooses.
pub(super) fn works_in_order(seen: &Snapshot) -> Vec<WorkId> {
    let mut works: Vec<WorkId> = Vec::new();
    for event in &seen.events {
        let Some(checkpoint) = &event.checkpoint else { continue };
        if let (CheckpointOutcome::Routed, Some(work)) = (checkpoint.outcome, checkpoint.work)
            && !works.contains(&work)
        {
            works.push(work);
        }
    }
    works
}

/// Attempts in the order of their Works and numbers.
pub(crate) fn attempts_in_order(seen: &Snapshot) -> Vec<&AttemptRecord> {
    let works = works_in_order(seen);
    let mut attempts: Vec<&AttemptRecord> = seen.attempts.iter().collect();
    attempts.sort_by_key(|attempt| (works.iter().position(|work| *work == attempt.work), attempt.number));
    attempts
}

/// The places of things, by which they are called.
struct Places<'s> {
    seen: &'s Snapshot,
    works: Vec<WorkId>,
    attempts: Vec<&'s AttemptRecord>,
}

impl<'s> Places<'s> {
    fn of(seen: &'s Snapshot) -> Self {
        Self { seen, works: works_in_order(seen), attempts: attempts_in_order(seen) }
    }

    fn event(&self, id: EventId) -> Option<usize> {
        self.seen.events.iter().position(|event| event.id == id)
    }

    fn work(&self, id: WorkId) -> Option<usize> {
        self.works.iter().position(|work| *work == id)
    }

    fn attempt(&self, id: ExecutionId) -> Option<usize> {
        self.attempts.iter().position(|attempt| attempt.id == id)
    }

    fn list(&self, ids: &[EventId]) -> Vec<Option<usize>> {
        ids.iter().map(|id| self.event(*id)).collect()
    }

    /// How many Events are not behind a place.
    fn up_to(&self, sequence: Sequence) -> usize {
        self.seen.events.iter().filter(|event| event.sequence <= sequence).count()
    }
}

/// One line for each thing.
pub(super) fn told(seen: &Snapshot) -> BTreeSet<String> {
    let places = Places::of(seen);
    let mut lines = BTreeSet::new();
    tell_events(&places, &mut lines);
    tell_works(&places, &mut lines);
    tell_attempts(&places, &mut lines);
    tell_waits(&places, &mut lines);
    for it in &seen.timers {
        lines.insert(format!("timer of {:?}: {:?} at {}", places.work(it.work), it.kind, it.due_at));
    }
    for it in &seen.rejections {
        let kind = it.delivery.as_str().split('/').next().unwrap_or_default();
        let (parent, root, depth) = (places.event(it.parent), places.event(it.root), it.depth);
        lines.insert(format!("rejected {kind}: of {parent:?} in {root:?} at {depth}, {}", it.code));
    }
    lines.insert(format!("configuration {}, paused {:?}", seen.generation, seen.paused));
    for (id, it) in &seen.subscriptions {
        let (work, after) = (places.work(it.work), places.up_to(it.after));
        let (watched, own) = (&it.watched, &it.own);
        lines.insert(format!(
            "subscription {id} of {work:?}: {watched:?} {:?} as {} for {own:?} after {after}",
            it.types, it.becomes,
        ));
    }
    for ((root, minute), count) in &seen.charged {
        lines.insert(format!("charged {:?} in {minute}: {count}", places.event(*root)));
    }
    lines
}

fn tell_events(places: &Places<'_>, lines: &mut BTreeSet<String>) {
    for (at, it) in places.seen.events.iter().enumerate() {
        let checkpoint = it.checkpoint.as_ref().map(|it| {
            let work = it.work.map(|work| places.work(work));
            (it.outcome, it.route.clone(), it.policy.clone(), work, it.generation)
        });
        lines.insert(format!(
            "event {at}: {} {} for {:?} {:?}, of {:?} at {} by {:?}, again {}, {checkpoint:?}",
            it.event_type,
            name(it),
            it.key,
            it.work.map(|work| places.work(work)),
            it.parent.map(|parent| places.event(parent)),
            it.depth,
            it.emitted_by.map(|by| places.attempt(by)),
            it.redelivered,
        ));
    }
}

fn tell_works(places: &Places<'_>, lines: &mut BTreeSet<String>) {
    for it in &places.seen.works {
        let eligibility = match it.eligibility {
            EligibilityRecord::Due(id) => format!("due by {:?}", places.event(id)),
            other @ (EligibilityRecord::Clear
            | EligibilityRecord::Backoff(_)
            | EligibilityRecord::Exhausted) => format!("{other:?}"),
        };
        // How often it failed and why it was held matter no more once it has ended.
        let failures = if it.state.is_terminal() { 0 } else { it.failures };
        let held = it.held.is_some() && !it.state.is_terminal();
        lines.insert(format!(
            "work {:?}: {:?}, keys {:?}, pending {:?}, failed {failures}, {eligibility}, held {held}",
            places.work(it.id),
            it.state,
            it.keys,
            places.list(&it.pending),
        ));
    }
}

fn tell_attempts(places: &Places<'_>, lines: &mut BTreeSet<String>) {
    for (at, it) in places.attempts.iter().enumerate() {
        // In order of acceptance, whichever turn took them.
        let mut taken = places.list(&it.consumed);
        taken.sort_unstable();
        lines.insert(format!(
            "attempt {at} of {:?}, number {}: {:?} at {} until {:?}, recovering {}, by {:?} and {:?} after {:?}, took \
             {:?}, ended for {:?}",
            places.work(it.work),
            it.number,
            it.state,
            it.epoch,
            it.lease_until,
            it.recovering,
            places.event(it.trigger),
            it.resumed_by.map(|event| places.event(event)),
            it.retry_of.map(|attempt| places.attempt(attempt)),
            taken,
            it.interrupted_by.map(|event| places.event(event)),
        ));
    }
}

fn tell_waits(places: &Places<'_>, lines: &mut BTreeSet<String>) {
    let mut before: Vec<WorkId> = Vec::new();
    for it in &places.seen.waits {
        let number = before.iter().filter(|work| **work == it.work).count();
        before.push(it.work);
        let state = match it.state {
            WaitState::Active => "active".to_owned(),
            WaitState::Woken(winner) => format!("woken by {:?}", places.event(winner)),
            WaitState::Cancelled => "cancelled".to_owned(),
        };
        let keys: BTreeSet<_> = it.keys.iter().collect();
        lines.insert(format!(
            "wait {number} of {:?} by {:?}: for {keys:?} {:?} after {}, {state}",
            places.work(it.work),
            places.attempt(it.execution),
            it.types,
            places.up_to(it.after),
        ));
    }
    for it in &places.seen.intents {
        lines.insert(format!(
            "order {:?} of {:?} to {:?} at {}: sent {}, {:?}",
            it.kind,
            places.event(it.event),
            places.attempt(it.execution),
            it.epoch,
            it.attempted,
            it.state,
        ));
    }
}

/// What a delivery is called, without the ids in what the runtime itself says.
fn name(event: &EventRecord) -> &str {
    let delivery = event.delivery.as_str();
    if event.source.as_str() == "test" { delivery } else { delivery.split('/').next().unwrap_or_default() }
}
