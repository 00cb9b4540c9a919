//! How far a chain may go.

use std::time::Duration;

use domain::id::EventId;

use crate::driver::{
    Answer, Command, Delivery, Driver, EligibilityRecord, ScopeText, TurnEnd, delivery, scope,
};

const MOMENT: Duration = Duration::from_micros(1);

fn because(id: &str, parent: EventId, event_type: &str) -> Delivery {
    delivery(id).because(parent).of(event_type)
}

/// Everything a root causes shares its depth and its rate; repeats are free, restarts forget nothing, and a new
/// minute restores the rate alone.
pub fn causal_depth_rate_replay_and_clock(driver: &mut dyn Driver) {
    let bounded = ScopeText { causal_max_depth: 3, causal_per_minute: 5, ..scope("main") };
    driver.configure(bounded.clone());
    let root = driver.accept(delivery("root"));
    let child = driver.accept(because("c-1", root, "core.work.created"));
    let timed = driver.accept(because("c-2", child, "core.schedule.due"));
    let last = driver.accept(because("c-3", timed, "test.emitted"));
    let events = driver.snapshot().events.len();
    assert_eq!(driver.refused(Command::Accept(because("c-4", last, "test.emitted"))), "depth_limit");
    let seen = driver.snapshot();
    assert_eq!(seen.events.len(), events, "what is refused is no Event");
    assert_eq!(seen.event(last).depth, 3);
    let minute = seen.now.as_seconds().div_euclid(60);
    assert_eq!(seen.charged.get(&(root, minute)), Some(&3), "and costs nothing");
    let record = seen.rejections.last().expect("a refusal is recorded");
    assert_eq!((record.root, record.parent, record.depth), (root, last, 4));
    assert_eq!((record.code.as_str(), record.delivery.as_str()), ("depth_limit", "c-4"));

    driver.accept(because("c-5", root, "test.emitted"));
    driver.accept(because("c-6", child, "test.emitted"));
    let full = because("c-7", root, "core.schedule.due");
    assert_eq!(driver.refused(Command::Accept(full.clone())), "rate_limit", "whatever its type");
    assert_eq!(driver.accept_again(because("c-3", timed, "test.emitted")), last, "a repeat is found first");
    driver.accept(delivery("another root"));

    driver.must(Command::Reopen);
    // A larger bound is for chains that begin under it.
    driver.configure(ScopeText { causal_max_depth: 9, causal_per_minute: 99, ..bounded });
    assert_eq!(driver.refused(Command::Accept(full.clone())), "rate_limit", "a restart forgets nothing");
    let seen = driver.snapshot();
    let left = Duration::from_mins(1).saturating_sub(Duration::from_micros(
        u64::try_from(seen.now.as_micros().rem_euclid(60_000_000)).expect("a remainder is not negative"),
    ));
    driver.advance(left.saturating_sub(MOMENT));
    assert_eq!(driver.refused(Command::Accept(full.clone())), "rate_limit");
    driver.advance(MOMENT);
    driver.accept(full);
    assert_eq!(driver.refused(Command::Accept(because("c-8", last, "test.emitted"))), "depth_limit");

    driver.deliver(delivery("deep").key("k").because(timed));
    let run = driver.start_one();
    let work = driver.owner("k");
    driver.end(run, TurnEnd::failed());
    driver.advance(Duration::from_mins(5));
    driver.fire();
    let seen = driver.snapshot();
    assert!(seen.events_of("core.retry.due").is_empty(), "a timer's Event is bounded, too");
    assert!(seen.timers.is_empty(), "and the timer is not tried again and again");
    assert_eq!(seen.work(work).eligibility, EligibilityRecord::Exhausted, "an operator is left with it");
    let rejected = seen.rejections.len();
    driver.fire();
    assert_eq!(driver.snapshot().rejections.len(), rejected);
    driver.retry(work, "r-1");
    assert_eq!(driver.start().len(), 1, "a control needs no room in a chain");
}

/// However many begin at the same time, a root gets its share of the minute and no more.
pub fn concurrent_chain_budget(driver: &mut dyn Driver) {
    driver.configure(ScopeText { causal_per_minute: 4, ..scope("main") });
    let busy = driver.accept(delivery("busy"));
    let calm = driver.accept(delivery("calm"));
    let mut commands = Vec::new();
    for number in 0..8 {
        commands.push(Command::Accept(because(&format!("busy-{number}"), busy, "test.emitted")));
        if number % 2 == 0 {
            commands.push(Command::Accept(because(&format!("calm-{number}"), calm, "test.emitted")));
        }
    }
    let answers = driver.together(commands);
    let refused =
        answers.iter().filter(|answer| **answer == Answer::Refused("rate_limit".to_owned())).count();
    let accepted = answers.iter().filter(|answer| matches!(answer, Answer::Accepted(_))).count();
    assert_eq!((accepted, refused), (8, 4), "{answers:?}");
    let seen = driver.snapshot();
    let minute = seen.now.as_seconds().div_euclid(60);
    for root in [busy, calm] {
        let derived = seen.events.iter().filter(|event| event.root == root && event.id != root).count();
        assert_eq!(derived, 4, "each root has its own share");
        assert_eq!(seen.charged.get(&(root, minute)), Some(&4));
    }
    assert_eq!(seen.rejections.len(), 4, "each refusal is recorded");
    assert!(seen.rejections.iter().all(|record| record.root == busy));
}
