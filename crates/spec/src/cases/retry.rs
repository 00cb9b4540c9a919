//! What a failure means for the next attempt, and what a cancellation means for both.

use std::time::Duration;

use domain::route::CheckpointOutcome;
use domain::text::DeliveryId;

use crate::driver::{
    AttemptState, Command, Driver, EligibilityRecord, ScopeText, TurnEnd, TurnOutcome, WorkWord, delivery,
    scope,
};

const MOMENT: Duration = Duration::from_micros(1);

/// Five, ten and fifteen minutes, then an operator's word; each by an accepted Event, and none by input.
pub fn retry_backoff_exhaustion_and_manual_event(driver: &mut dyn Driver) {
    driver.configure(ScopeText { failure_budget: 4, ..scope("main") });
    let (work, mut run) = driver.running("k");
    let first = driver.attempt(run).trigger;
    for (minutes, number) in [(5, 2), (10, 3), (15, 4)] {
        driver.end(run, TurnEnd::failed());
        let due_at = driver.snapshot().now.after(Duration::from_mins(minutes));
        let waiting = driver.work(work);
        assert_eq!(waiting.state, WorkWord::Ready);
        assert_eq!(waiting.eligibility, EligibilityRecord::Backoff(due_at));
        let queued = driver.deliver(delivery(&format!("during {minutes}")).key("k"));
        assert!(driver.start().is_empty(), "input does not end the wait");
        driver.advance(Duration::from_mins(minutes).saturating_sub(MOMENT));
        driver.fire();
        assert!(driver.start().is_empty(), "it is not due a moment before");
        driver.advance(MOMENT);
        assert!(driver.start().is_empty(), "a clock alone starts nothing");
        driver.fire();
        driver.route();
        let again = driver.start_one();
        let seen = driver.snapshot();
        let due =
            seen.events_of("core.retry.due").last().copied().expect("the wait ends in an Event").clone();
        let attempt = seen.attempt(again);
        assert_eq!((attempt.number, attempt.trigger, attempt.retry_of), (number, due.id, Some(run)));
        assert_eq!(attempt.consumed, [queued, due.id], "what queued is taken along");
        assert_eq!(due.root, seen.event(first).root, "it stays on the chain of what failed");
        run = again;
    }
    driver.end(run, TurnEnd::failed());
    let exhausted = driver.work(work);
    assert_eq!((exhausted.state, exhausted.failures), (WorkWord::Ready, 4), "it stays open");
    assert_eq!(exhausted.eligibility, EligibilityRecord::Exhausted);
    assert!(driver.snapshot().timers.is_empty());
    driver.advance(Duration::from_hours(10));
    driver.fire();
    assert!(driver.start().is_empty(), "nothing tries again by itself");

    let asked = driver.retry(work, "r-1");
    assert_eq!(driver.retry(work, "r-1"), asked, "asking twice asks once");
    run = driver.start_one();
    let attempt = driver.attempt(run);
    assert_eq!((attempt.number, attempt.trigger), (5, asked), "numbers are never reset");
    assert_eq!(driver.snapshot().event(asked).depth, 0, "an operator begins a chain");
    driver.end(run, TurnEnd::failed());
    assert_eq!(driver.work(work).failures, 1, "the budget begins anew");
    assert_eq!(driver.retry(work, "r-1"), asked);
    assert!(driver.start().is_empty(), "a request of before does not clear a later failure");

    // Asked for during the wait, the old timer is gone and stays gone.
    driver.advance(Duration::from_mins(4));
    driver.retry(work, "r-2");
    assert!(driver.snapshot().timers.is_empty());
    run = driver.start_one();
    driver.end(run, TurnEnd::failed());
    driver.advance(Duration::from_mins(1));
    driver.fire();
    assert!(driver.start().is_empty(), "an older failure's timer ends no later wait");
    driver.advance(Duration::from_mins(4));
    driver.fire();
    run = driver.start_one();
    driver.end(run, TurnEnd::of(TurnOutcome::Completed));
    assert_eq!(driver.work(work).state, WorkWord::Completed);
    driver.refused(Command::Retry { work, delivery: DeliveryId::known("r-3") });
}

/// Retry and cancellation, in every order.
pub fn retry_cancel_orders(driver: &mut dyn Driver) {
    driver.configure(scope("main"));
    let minutes = Duration::from_mins(5);
    // Cancelled first.
    let (work, run) = driver.running("a");
    driver.end(run, TurnEnd::failed());
    driver.must(Command::Cancel(work));
    assert!(driver.snapshot().timers.is_empty(), "what would fire is gone");
    driver.advance(minutes);
    driver.fire();
    driver.route();
    let seen = driver.snapshot();
    assert!(seen.events_of("core.retry.due").is_empty());
    assert_eq!(seen.work(work).state, WorkWord::Cancelled);
    assert!(driver.start().is_empty());
    driver.refused(Command::Retry { work, delivery: DeliveryId::known("r-1") });
    driver.refused(Command::Cancel(work));

    // Due first, then cancelled.
    let (work, run) = driver.running("b");
    driver.end(run, TurnEnd::failed());
    driver.advance(minutes);
    driver.fire();
    driver.must(Command::Cancel(work));
    driver.route();
    assert!(driver.start().is_empty(), "what was due does not start");
    let seen = driver.snapshot();
    let due = seen.events_of("core.retry.due");
    assert_eq!(due.len(), 1, "the Event stays");
    assert_eq!(seen.checkpoint(due[0].id).outcome, CheckpointOutcome::Routed);
    assert_eq!(seen.work(work).state, WorkWord::Cancelled);

    // Started again, then cancelled.
    let (work, run) = driver.running("c");
    driver.end(run, TurnEnd::failed());
    driver.retry(work, "r-2");
    let again = driver.start_one();
    let epoch = driver.attempt(again).epoch;
    driver.must(Command::Cancel(work));
    assert_eq!(driver.attempt(again).state, AttemptState::Cancelled);
    driver.stale(again, epoch, TurnEnd::of(TurnOutcome::Completed));
    assert_eq!(driver.work(work).state, WorkWord::Cancelled);

    // Completed, then cancelled.
    let (work, run) = driver.running("d");
    driver.end(run, TurnEnd::of(TurnOutcome::Completed));
    driver.refused(Command::Cancel(work));
    assert_eq!(driver.work(work).state, WorkWord::Completed, "an end is not rewritten");
}
