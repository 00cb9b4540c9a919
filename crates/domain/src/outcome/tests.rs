//! What each end of an attempt makes of its Work.

use std::convert::Infallible;
use std::time::Duration;

use super::{Artifact, Ending, Outcome, Settlement, TurnResult, Usage};
use crate::machines::{LIVE, NOW, work};
use crate::retry::{Eligibility, Exhaustion, Policy};
use crate::work::{AfterAttempt, Lifecycle, Queue, Work, WorkState};

const POLICY: Policy = Policy { budget: 3, terminal: false, own: None };
const COMPLETED: Settlement = Settlement::Now(AfterAttempt::Completed);
const IDLE: Settlement = Settlement::Now(AfterAttempt::Ready { pending: false });
const NEXT: Settlement = Settlement::Now(AfterAttempt::Ready { pending: true });

fn running(lifecycle: Lifecycle, failures: u32) -> Work {
    let state = WorkState::Running { execution: LIVE };
    Work { lifecycle, failures, ..work(state, Queue::Idle) }
}

fn settle(work: &Work, result: &TurnResult, policy: Policy, pending: bool, unrouted: bool) -> Settlement {
    let wait = Some(crate::machines::WAIT);
    let ending = Ending { work, execution: LIVE, result, policy, pending, wait };
    ending.settle(NOW, || Ok::<_, Infallible>(unrouted)).unwrap()
}

#[track_caller]
fn check(lifecycle: Lifecycle, outcome: Outcome, pending: bool, unrouted: bool, expect: Settlement) {
    let work = running(lifecycle, 0);
    assert_eq!(settle(&work, &TurnResult::of(outcome), POLICY, pending, unrouted), expect);
}

fn failing(pending: bool, eligibility: Eligibility) -> Settlement {
    Settlement::Now(AfterAttempt::Failing { pending, eligibility })
}

#[test]
fn a_work_completes_only_without_pending_or_unrouted_input() {
    check(Lifecycle::Once, Outcome::Completed, false, false, COMPLETED);
    check(Lifecycle::Once, Outcome::Completed, true, false, NEXT);
    check(Lifecycle::Once, Outcome::Completed, true, true, NEXT);
    check(Lifecycle::Once, Outcome::Completed, false, true, Settlement::AwaitLane);
    check(Lifecycle::RunOnce, Outcome::Handoff, false, true, Settlement::AwaitLane);
}

#[test]
fn a_handoff_completes_only_what_runs_once() {
    check(Lifecycle::Once, Outcome::Handoff, false, false, IDLE);
    check(Lifecycle::RunOnce, Outcome::Handoff, false, false, COMPLETED);
    check(Lifecycle::Standing, Outcome::Handoff, false, false, IDLE);
}

#[test]
fn standing_work_outlives_its_attempts() {
    for outcome in [Outcome::Completed, Outcome::Handoff] {
        check(Lifecycle::Standing, outcome, false, true, IDLE);
        check(Lifecycle::Standing, outcome, true, false, NEXT);
    }
    for pending in [false, true] {
        check(Lifecycle::Standing, Outcome::Failed, pending, true, failing(pending, Eligibility::Clear));
    }
}

#[test]
fn a_failure_waits_before_the_next_try_until_the_budget_is_used_up() {
    for lifecycle in [Lifecycle::Once, Lifecycle::RunOnce] {
        let after = |failures| {
            settle(&running(lifecycle, failures), &TurnResult::of(Outcome::Failed), POLICY, true, true)
        };
        let backoff = |minutes| {
            failing(
                true,
                Eligibility::Backoff { failed: LIVE, due_at: NOW.after(Duration::from_mins(minutes)) },
            )
        };
        assert_eq!([after(0), after(1)], [backoff(5), backoff(10)]);
        let exhausted = Eligibility::Exhausted { failed: LIVE, because: Exhaustion::Budget };
        assert_eq!(after(2), failing(true, exhausted));
    }
}

#[test]
fn a_hint_of_the_executor_is_waited_for() {
    let result = TurnResult { retry_after_seconds: Some(90), ..TurnResult::of(Outcome::Failed) };
    let due_at = NOW.after(Duration::from_secs(90));
    for lifecycle in [Lifecycle::Once, Lifecycle::RunOnce, Lifecycle::Standing] {
        let expect = failing(false, Eligibility::Backoff { failed: LIVE, due_at });
        assert_eq!(settle(&running(lifecycle, 0), &result, POLICY, false, false), expect);
    }
}

#[test]
fn a_work_fails_for_good_only_when_nothing_is_passed_over() {
    let policy = Policy { budget: 1, terminal: true, own: None };
    let work = running(Lifecycle::Once, 0);
    let after =
        |pending, unrouted| settle(&work, &TurnResult::of(Outcome::Failed), policy, pending, unrouted);
    assert_eq!(after(false, false), Settlement::Now(AfterAttempt::Failed));
    assert_eq!(after(false, true), Settlement::AwaitLane);
    let exhausted = Eligibility::Exhausted { failed: LIVE, because: Exhaustion::Budget };
    assert_eq!(after(true, false), failing(true, exhausted));
}

#[test]
fn a_turn_that_waits_leaves_its_work_waiting_whatever_is_pending() {
    for lifecycle in [Lifecycle::Once, Lifecycle::RunOnce, Lifecycle::Standing] {
        for (pending, unrouted) in [(false, false), (true, false), (false, true)] {
            let waits = Settlement::Now(AfterAttempt::Waiting { wait: crate::machines::WAIT });
            check(lifecycle, Outcome::Waiting, pending, unrouted, waits);
        }
    }
}

#[test]
fn what_earlier_turns_used_is_added_up() {
    let used = |unit: &str, thousandths| Usage { unit: unit.to_owned(), thousandths };
    let left = |path: &str, bytes| Artifact { path: path.to_owned(), bytes };
    let first = TurnResult {
        usage: vec![used("usd", 5), used("tokens", 7)],
        artifacts: vec![left("a", 1), left("b", 2)],
        ..TurnResult::of(Outcome::Waiting)
    };
    let second = TurnResult {
        usage: vec![used("usd", 1)],
        artifacts: vec![left("b", 3)],
        ..TurnResult::of(Outcome::Completed)
    };
    let whole = second.after(first);
    assert_eq!(whole.usage, [used("usd", 6), used("tokens", 7)]);
    assert_eq!(whole.artifacts, [left("b", 3), left("a", 1)], "the newer of two of one path");
    assert_eq!((whole.outcome, whole.wait), (Outcome::Completed, None));
}
