//! What the tables do not show of a Work: places in time, ids, and records that contradict themselves.

use super::{AfterAttempt, Hold, HoldReason, Lifecycle, Queue, Work, WorkRefusal, WorkState};
use crate::capacity::Blocker;
use crate::id::{Attempt, ExecutionId, Revision, WorkId};
use crate::machines::{LIVE, NOW, work};
use crate::retry::Eligibility;
use crate::text::{ScopeName, WorkKind};
use crate::time::Timestamp;

const LATER: Timestamp = Timestamp::from_micros(2_000_000_000);

fn full() -> Blocker {
    Blocker::ScopeFull(ScopeName::known("main"))
}

#[test]
fn create_makes_a_work_that_is_runnable_at_once() {
    let id = WorkId::from_number(7);
    let kind = WorkKind::known("manual.work");
    let made = Work::create(id, ScopeName::known("main"), kind, Lifecycle::Once, NOW);
    made.check();
    assert_eq!((made.state, &made.queue), (WorkState::Ready, &Queue::Runnable));
    assert_eq!((made.queued_at, made.created_at, made.ended_at), (NOW, NOW, None));
    assert_eq!((made.revision, made.attempts), (Revision::FIRST, 0));
}

#[test]
fn enqueue_keeps_the_place_of_a_work_that_waits_already() {
    for queue in [Queue::Runnable, Queue::Blocked(full())] {
        let before = work(WorkState::Ready, queue.clone());
        let next = before.clone().enqueue(NOW).unwrap();
        assert_eq!((next.queue, next.queued_at), (queue, before.queued_at));
    }
    let woken = work(WorkState::Ready, Queue::Idle).enqueue(NOW).unwrap();
    assert_eq!((woken.queue, woken.queued_at), (Queue::Runnable, NOW));
}

#[test]
fn enqueue_leaves_a_running_work_running() {
    let before = work(WorkState::Running { execution: LIVE }, Queue::Idle);
    let next = before.clone().enqueue(NOW).unwrap();
    assert_eq!(next, Work { revision: before.revision.next(), ..before });
}

#[test]
fn claim_numbers_attempts_without_a_gap() {
    let mut work = work(WorkState::Ready, Queue::Runnable);
    for number in 2..5 {
        let execution = ExecutionId::from_number(number);
        let (running, attempt) = work.claim(execution).unwrap();
        assert_eq!(attempt, Attempt::from_number(number));
        assert_eq!(running.state, WorkState::Running { execution });
        work = running.finish(execution, AfterAttempt::Ready { pending: true }, NOW).unwrap();
    }
}

#[test]
fn block_and_unblock_keep_the_place_in_time() {
    let before = work(WorkState::Ready, Queue::Runnable);
    let blocked = before.clone().block(full()).unwrap();
    assert_eq!((&blocked.queue, blocked.queued_at), (&Queue::Blocked(full()), before.queued_at));
    let elsewhere = Blocker::Unconfigured(ScopeName::known("main"));
    let moved = blocked.block(elsewhere.clone()).unwrap();
    assert_eq!((&moved.queue, moved.queued_at), (&Queue::Blocked(elsewhere), before.queued_at));
    let free = moved.unblock();
    assert_eq!((&free.queue, free.queued_at), (&Queue::Runnable, before.queued_at));
    assert_eq!(free.revision.number(), before.revision.number() + 3);
}

#[test]
fn unblock_writes_nothing_when_nothing_is_blocked() {
    for (state, queue) in [
        (WorkState::Ready, Queue::Idle),
        (WorkState::Ready, Queue::Runnable),
        (WorkState::Running { execution: LIVE }, Queue::Idle),
        (WorkState::Cancelled, Queue::Idle),
    ] {
        let before = work(state, queue);
        assert_eq!(before.clone().unblock(), before);
    }
}

#[test]
fn finish_stands_the_work_at_the_end_of_the_queue() {
    let running = work(WorkState::Running { execution: LIVE }, Queue::Idle);
    let next = running.finish(LIVE, AfterAttempt::Ready { pending: true }, LATER).unwrap();
    assert_eq!((next.queue, next.queued_at, next.ended_at), (Queue::Runnable, LATER, None));
}

#[test]
fn finish_refuses_any_attempt_but_the_live_one() {
    let running = work(WorkState::Running { execution: LIVE }, Queue::Idle);
    let other = ExecutionId::from_number(LIVE.number() + 1);
    assert_eq!(running.finish(other, AfterAttempt::Completed, NOW), Err(WorkRefusal::NotLive));
    let ready = work(WorkState::Ready, Queue::Runnable);
    assert_eq!(ready.finish(LIVE, AfterAttempt::Completed, NOW), Err(WorkRefusal::NotLive));
}

#[test]
fn cancel_never_rewrites_an_end() {
    for state in [WorkState::Completed, WorkState::Failed, WorkState::Cancelled] {
        let ended = work(state, Queue::Idle);
        let refusal = WorkRefusal::Terminal { state: state.as_str() };
        assert_eq!(ended.clone().cancel(NOW), Err(refusal));
        assert_eq!(ended.clone().enqueue(NOW), Err(refusal));
        assert_eq!(ended.claim(LIVE), Err(refusal));
    }
}

#[test]
#[should_panic(expected = "an end has a time")]
fn check_wants_a_time_for_an_end() {
    Work { ended_at: None, ..work(WorkState::Completed, Queue::Idle) }.check();
}

#[test]
#[should_panic(expected = "an end has a time")]
fn check_wants_no_end_for_a_live_work() {
    Work { ended_at: Some(NOW), ..work(WorkState::Ready, Queue::Idle) }.check();
}

#[test]
#[should_panic(expected = "only a ready Work stands in a queue")]
fn check_wants_a_running_work_out_of_the_queues() {
    work(WorkState::Running { execution: LIVE }, Queue::Runnable).check();
}

#[test]
#[should_panic(expected = "only a ready Work stands in a queue")]
fn check_wants_an_ended_work_out_of_the_queues() {
    work(WorkState::Failed, Queue::Blocked(full())).check();
}

#[test]
#[should_panic(expected = "attempts count up from zero")]
fn check_wants_a_count_of_attempts() {
    Work { attempts: -1, ..work(WorkState::Ready, Queue::Idle) }.check();
}

#[test]
fn what_a_reader_sees_is_more_than_a_state() {
    let read = work(WorkState::Ready, Queue::Runnable);
    let hold = Hold { because: HoldReason::Gate, reason: "asked".to_owned(), since: NOW };
    let failed = ExecutionId::from_number(9);
    let shown = [
        Work { state: WorkState::Cancelled, ..read.clone() },
        Work { hold: Some(hold), ..read.clone() },
        Work { let_through: true, ..read.clone() },
        Work { failures: 1, ..read.clone() },
        Work { eligibility: Eligibility::Backoff { failed, due_at: NOW }, ..read.clone() },
        Work { queue: Queue::Blocked(Blocker::ScopeFull(read.scope.clone())), ..read.clone() },
    ];
    for work in shown {
        assert!(work.shows_more_than(&read), "{work:?}");
    }
    let same = [
        Work { revision: read.revision.next(), ..read.clone() },
        Work { queue: Queue::Idle, ..read.clone() },
        Work { queued_at: LATER, attempts: 4, ..read.clone() },
    ];
    for work in same {
        assert!(!work.shows_more_than(&read), "{work:?}");
    }
}
