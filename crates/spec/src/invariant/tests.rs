//! Each invariant is seen to notice what breaks it.

use std::time::Duration;

use domain::id::{Epoch, Sequence};
use domain::route::CheckpointOutcome;

use super::check;
use crate::driver::{
    AttemptState, Capability, Command, Driver, InjectAnswer, IntentState, Registration, Snapshot, TimerKind,
    TurnEnd, TurnOutcome, WaitState, WorkWord, delivery, key, scope,
};
use crate::reference::{Order, Reference};

/// Some of everything: a Work that runs with an order, one that waits, one that waits out a failure, one that is done.
fn some_of_everything() -> Snapshot {
    let mut reference = Reference::new(Order::Listed);
    let driver: &mut dyn Driver = &mut reference;
    driver.configure(scope("main").policy("inject").can(&[Capability::Inject]));
    let (_work, done) = driver.running("done");
    driver.end(done, TurnEnd::of(TurnOutcome::Completed));
    let (_work, failed) = driver.running("failed");
    driver.end(failed, TurnEnd::failed());
    let (_work, waits) = driver.running("waits");
    let (keys, after) = (vec![key("waits")], driver.last());
    let timeout = Some(Duration::from_mins(1));
    driver.wait(waits, Registration { keys, types: Vec::new(), after, timeout });
    let (_work, runs) = driver.running("runs");
    let trigger = driver.attempt(runs).trigger;
    driver.deliver(delivery("given").key("runs").because(trigger));
    driver.must(Command::Dispatch(InjectAnswer::Accepted));
    driver.snapshot()
}

type Break = fn(&mut Snapshot);

/// What is done to what was there, or to what is there now, and what the invariants say of it.
const CONTROLS: [(&str, Break); 20] = [
    ("an accepted Event is gone", |seen| drop(seen.events.pop())),
    ("has another checkpoint", |seen| {
        seen.events[0].checkpoint.as_mut().unwrap().outcome = CheckpointOutcome::Terminal;
    }),
    ("has changed", |seen| seen.events[0].depth = 3),
    ("what a chain used is forgotten", |seen| seen.charged.clear()),
    ("has lost a key", |seen| seen.works[0].keys.clear()),
    ("had ended and goes on", |seen| seen.works[0].state = WorkWord::Ready),
    ("has an earlier epoch", |seen| running(seen).epoch = Epoch::from_number(0)),
    ("has not taken in any more what it had", |seen| running(seen).consumed.clear()),
    ("had ended and has changed", |seen| seen.attempts[0].recovering = true),
    ("a Wait is gone", |seen| seen.waits.clear()),
    ("an order about", |seen| seen.intents[0].attempted = false),
    ("was accepted twice", |seen| {
        let mut again = seen.events.last().unwrap().clone();
        again.sequence = Sequence::from_number(1_000_000);
        seen.events.push(again);
    }),
    ("is input twice", |seen| {
        let event = seen.attempts[0].consumed[0];
        running(seen).consumed.push(event);
    }),
    ("is lost", |seen| {
        let work = seen.works.iter_mut().find(|work| !work.pending.is_empty()).unwrap();
        work.pending.clear();
    }),
    ("leads to two Works", |seen| {
        let keys = seen.works[0].keys.clone();
        seen.works[1].keys.extend(keys);
    }),
    ("live attempts", |seen| running(seen).state = AttemptState::Parked),
    ("with 0 Waits", |seen| seen.waits[0].state = WaitState::Cancelled),
    ("for nothing", |seen| seen.timers.retain(|timer| timer.kind != TimerKind::Retry)),
    ("does not wait for its timer", |seen| {
        let runs = seen.works[3].id;
        seen.timers[0].work = runs;
    }),
    ("is proved and not taken in", |seen| seen.intents[0].state = IntentState::Consumed),
];

fn running(seen: &mut Snapshot) -> &mut crate::driver::AttemptRecord {
    seen.attempts.iter_mut().find(|attempt| attempt.state == AttemptState::Running).unwrap()
}

#[test]
fn each_invariant_notices_what_breaks_it() {
    let before = some_of_everything();
    assert_eq!(check(&before, &before), Ok(()));
    for (says, breaks) in CONTROLS {
        let mut after = before.clone();
        breaks(&mut after);
        let said = check(&before, &after).expect_err(says);
        assert!(said.contains(says), "{says}: {said}");
    }
}

#[test]
fn an_outcome_that_waits_has_no_authority_again() {
    let now = some_of_everything();
    let mut before = now.clone();
    running(&mut before).lease_until = None;
    assert_eq!(check(&before, &before), Ok(()));
    let said = check(&before, &now).expect_err("it had reported");
    assert!(said.contains("has authority again"), "{said}");
    running(&mut before).recovering = true;
    let said = check(&before, &before).expect_err("nobody recovers what has reported");
    assert!(said.contains("is recovered without authority"), "{said}");
}
