//! The state machines as tables: every state and every command, with what comes of it.
//!
//! The tables are snapshots, so that a change of a rule shows as a change of its line, and a state or a
//! command that is new shows as lines to be judged. What a line means in detail is tested beside its rule.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::capacity::Blocker;
use crate::execution::{Execution, ExecutionState, Handle, Resumption, Turn};
use crate::id::{
    Attempt, Epoch, EventId, ExecutionId, Generation, Incarnation, Revision, Sequence, WaitId, WorkId,
};
use crate::intent::{self, Controls, Intent, IntentKind, IntentState};
use crate::lease::{Grant, Lease};
use crate::outcome::Outcome;
use crate::retry::{Eligibility, Exhaustion};
use crate::text::{BindingName, ExecutorName, ScopeName, WorkKind};
use crate::time::Timestamp;
use crate::toolbelt::Toolbelt;
use crate::work::{AfterAttempt, Hold, HoldReason, Lifecycle, Queue, Work, WorkState};

mod properties;

/// When every command of the tables happens.
pub(crate) const NOW: Timestamp = Timestamp::from_micros(1_000_000_000);
/// The process that holds the leases.
pub(crate) const OWNER: Incarnation = Incarnation::from_number(1);
/// Its grant at the first epoch.
pub(crate) const GRANT: Grant = Grant { owner: OWNER, epoch: Epoch::FIRST };
/// The live attempt of a Work that runs.
pub(crate) const LIVE: ExecutionId = ExecutionId::from_number(5);

/// A Work in a state, as it was ten seconds ago.
pub(crate) fn work(state: WorkState, queue: Queue) -> Work {
    let before = Timestamp::from_micros(990_000_000);
    Work {
        id: WorkId::from_number(1),
        scope: ScopeName::known("main"),
        kind: WorkKind::known("manual.work"),
        lifecycle: Lifecycle::Standing,
        state,
        queue,
        queued_at: before,
        failures: 0,
        eligibility: Eligibility::Clear,
        hold: None,
        let_through: false,
        revision: Revision::from_number(3),
        attempts: 1,
        created_at: before,
        ended_at: state.is_terminal().then_some(before),
        concurrency: None,
    }
}

/// An Execution that was claimed ten seconds ago.
pub(crate) fn execution() -> Execution {
    let before = Timestamp::from_micros(990_000_000);
    Execution {
        id: LIVE,
        work: WorkId::from_number(1),
        scope: ScopeName::known("main"),
        attempt: Attempt::FIRST,
        state: ExecutionState::Launching,
        epoch: Epoch::FIRST,
        lease: Some(Lease::taken(OWNER, before)),
        recovering: false,
        trigger: EventId::from_number(1),
        trigger_sequence: Sequence::FIRST,
        retry_of: None,
        credential: None,
        content: crate::retention::Content::Kept,
        binding: BindingName::known("shell"),
        executor: ExecutorName::known("shell"),
        generation: Generation::FIRST,
        timeout: Duration::from_mins(1),
        controls: Controls { inject: true, interrupt: true },
        deadline_at: None,
        handle: None,
        turn: Turn::first(EventId::from_number(1)),
        outcome: None,
        claimed_at: before,
        started_at: None,
        ended_at: None,
        unstopped: false,
        interrupted_by: None,
        toolbelt: Toolbelt::default(),
        workspace: None,
    }
}

/// An order to the live attempt, sent once unless it is pending.
pub(crate) fn intent(kind: IntentKind, state: IntentState) -> Intent {
    let pending = matches!(state, IntentState::Pending { .. });
    Intent {
        execution: LIVE,
        sequence: Sequence::FIRST,
        event: EventId::from_number(1),
        work: WorkId::from_number(1),
        kind,
        epoch: Epoch::FIRST,
        on_error: None,
        state,
        tries: u32::from(!pending),
        created_at: Timestamp::from_micros(990_000_000),
        reason: None,
    }
}

/// What an executor started.
pub(crate) fn handle() -> Handle {
    Handle::new(&b"pid 7"[..]).expect("it is small")
}

/// What a command makes of a record, or why it may not; a bug of the caller is one answer of three.
type Answer<T> = Result<T, String>;

struct Command<T> {
    name: &'static str,
    apply: fn(T) -> Answer<T>,
}

/// One line for each state and command, grouped by state.
fn table<T: Clone>(
    states: &[(&str, T)],
    commands: &[Command<T>],
    check: fn(&T),
    show: fn(&T) -> String,
) -> String {
    let mut text = String::new();
    for (name, state) in states {
        check(state);
        writeln!(text, "{name}: {}", show(state)).expect("a string takes every line");
        for command in commands {
            let answer = catch_unwind(AssertUnwindSafe(|| (command.apply)(state.clone())));
            let line = match answer {
                Ok(Ok(next)) => {
                    check(&next);
                    show(&next)
                }
                Ok(Err(refusal)) => format!("refused: {refusal}"),
                Err(_panic) => "a bug of the caller".to_owned(),
            };
            writeln!(text, "  {:<24} {line}", command.name).expect("a string takes every line");
        }
    }
    text
}

fn show_work(work: &Work) -> String {
    let queue = match &work.queue {
        Queue::Idle => "idle".to_owned(),
        Queue::Runnable => "runnable".to_owned(),
        Queue::Blocked(blocker) => blocker.to_string(),
    };
    let queued = if work.queued_at == NOW { ", queued now" } else { "" };
    let ended = if work.ended_at == Some(NOW) { ", ended now" } else { "" };
    let state = work.state.as_str();
    let waits = match work.eligibility {
        Eligibility::Clear => "",
        Eligibility::Backoff { .. } => ", waits to be tried again",
        Eligibility::Due { .. } => ", to be tried again",
        Eligibility::Woken { resumes: None, .. } => ", woken",
        Eligibility::Woken { resumes: Some(_), .. } => ", woken to resume",
        Eligibility::Exhausted { .. } => ", exhausted",
        Eligibility::Stopping { repeats: None, .. } => ", its last attempt is being stopped",
        Eligibility::Stopping { repeats: Some(_), .. } => {
            ", its last attempt is being stopped, to be repeated"
        }
    };
    let held = match (&work.hold, work.let_through) {
        (Some(_), _) => ", held",
        (None, true) => ", let through",
        (None, false) => "",
    };
    let failures = if work.failures == 0 { String::new() } else { format!(", failures {}", work.failures) };
    format!(
        "{state} {queue}, revision {}, attempts {}{failures}{waits}{held}{queued}{ended}",
        work.revision, work.attempts
    )
}

fn words<T, E: std::error::Error>(result: Result<T, E>) -> Answer<T> {
    result.map_err(|refusal| refusal.to_string())
}

fn finish(work: Work, execution: ExecutionId, after: AfterAttempt) -> Answer<Work> {
    words(work.finish(execution, after, NOW))
}

/// The wait after the live attempt's failure.
const BACKOFF: Eligibility = Eligibility::Backoff { failed: LIVE, due_at: NOW };
/// The Event that ends it.
const RETRY: Sequence = Sequence::from_number(9);
/// No further try.
const EXHAUSTED: Eligibility = Eligibility::Exhausted { failed: LIVE, because: Exhaustion::Budget };

/// The Wait of a Work that waits.
pub(crate) const WAIT: WaitId = WaitId::from_number(6);

/// A reason to hold a Work.
pub(crate) fn hold() -> Hold {
    Hold { because: HoldReason::WakeRefused, reason: "its chain is too deep".to_owned(), since: NOW }
}

/// A reason that is asked about at every start.
pub(crate) fn spent() -> Hold {
    Hold { because: HoldReason::Budget, reason: "its budget is used up".to_owned(), since: NOW }
}

const fn woken(resumes: Option<ExecutionId>) -> Eligibility {
    Eligibility::Woken { wait: WAIT, event: RETRY, resumes }
}

const WORK_COMMANDS: [Command<Work>; 28] = [
    Command { name: "enqueue", apply: |work| words(work.enqueue(NOW)) },
    Command { name: "claim", apply: |work| words(work.claim(LIVE)).map(|(work, _attempt)| work) },
    Command {
        name: "block",
        apply: |work| words(work.block(Blocker::ScopeDisabled(ScopeName::known("main")))),
    },
    Command { name: "unblock", apply: |work| Ok(work.unblock()) },
    Command {
        name: "finish, input pending",
        apply: |work| finish(work, LIVE, AfterAttempt::Ready { pending: true }),
    },
    Command {
        name: "finish, no input",
        apply: |work| finish(work, LIVE, AfterAttempt::Ready { pending: false }),
    },
    Command {
        name: "finish, failing, input",
        apply: |work| finish(work, LIVE, AfterAttempt::Failing { pending: true, eligibility: BACKOFF }),
    },
    Command {
        name: "finish, failing",
        apply: |work| finish(work, LIVE, AfterAttempt::Failing { pending: false, eligibility: EXHAUSTED }),
    },
    Command { name: "finish, failed", apply: |work| finish(work, LIVE, AfterAttempt::Failed) },
    Command { name: "retry due", apply: |work| words(work.retry_due(LIVE, RETRY, NOW)) },
    Command {
        name: "retry due, other run",
        apply: |work| words(work.retry_due(ExecutionId::from_number(4), RETRY, NOW)),
    },
    Command { name: "retry requested", apply: |work| words(work.retry_requested(Some(LIVE), RETRY, NOW)) },
    Command { name: "finish, completed", apply: |work| finish(work, LIVE, AfterAttempt::Completed) },
    Command {
        name: "finish, other attempt",
        apply: |work| finish(work, ExecutionId::from_number(4), AfterAttempt::Completed),
    },
    Command {
        name: "finish, waiting",
        apply: |work| finish(work, LIVE, AfterAttempt::Waiting { wait: WAIT }),
    },
    Command { name: "wake", apply: |work| words(work.wake(WAIT, RETRY, None, NOW)) },
    Command { name: "wake, parked run", apply: |work| words(work.wake(WAIT, RETRY, Some(LIVE), NOW)) },
    Command {
        name: "wake, other wait",
        apply: |work| words(work.wake(WaitId::from_number(7), RETRY, None, NOW)),
    },
    Command { name: "resume", apply: |work| words(work.resume()).map(|(work, _execution)| work) },
    Command { name: "hold", apply: |work| words(work.hold(hold())) },
    Command { name: "hold, budget", apply: |work| words(work.hold(spent())) },
    Command { name: "lift, budget", apply: |work| words(work.lift(HoldReason::Budget, NOW)) },
    Command { name: "release", apply: |work| words(work.release(NOW)) },
    Command { name: "interrupt, input", apply: |work| words(work.interrupt(LIVE, true, NOW)) },
    Command { name: "interrupt, no input", apply: |work| words(work.interrupt(LIVE, false, NOW)) },
    Command {
        name: "stop and hold, budget",
        apply: |work| words(work.stop_and_hold(LIVE, RETRY, spent(), NOW)),
    },
    Command { name: "stopped", apply: |work| words(work.stopped(LIVE, NOW)) },
    Command { name: "cancel", apply: |work| words(work.cancel(NOW)) },
];

#[test]
fn every_state_and_command_of_a_work() {
    let full = Queue::Blocked(Blocker::ScopeFull(ScopeName::known("main")));
    let held = Queue::Blocked(Blocker::Held(ScopeName::known("main")));
    let states = [
        ("idle", work(WorkState::Ready, Queue::Idle)),
        ("runnable", work(WorkState::Ready, Queue::Runnable)),
        ("blocked", work(WorkState::Ready, full)),
        (
            "waits to be tried again",
            Work { eligibility: BACKOFF, failures: 1, ..work(WorkState::Ready, Queue::Idle) },
        ),
        (
            "waits, with input",
            Work {
                eligibility: BACKOFF,
                failures: 1,
                ..work(WorkState::Ready, Queue::Blocked(Blocker::Backoff(ScopeName::known("main"))))
            },
        ),
        (
            "to be tried again",
            Work {
                eligibility: Eligibility::Due { failed: LIVE, event: RETRY },
                failures: 1,
                ..work(WorkState::Ready, Queue::Runnable)
            },
        ),
        (
            "exhausted, with input",
            Work {
                eligibility: EXHAUSTED,
                failures: 3,
                ..work(WorkState::Ready, Queue::Blocked(Blocker::Exhausted(ScopeName::known("main"))))
            },
        ),
        (
            "being stopped",
            Work {
                eligibility: Eligibility::Stopping { interrupted: LIVE, repeats: None },
                ..work(WorkState::Ready, Queue::Idle)
            },
        ),
        (
            "being stopped, with input",
            Work {
                eligibility: Eligibility::Stopping { interrupted: LIVE, repeats: None },
                ..work(WorkState::Ready, Queue::Blocked(Blocker::Stopping(ScopeName::known("main"))))
            },
        ),
        ("running", work(WorkState::Running { execution: LIVE }, Queue::Idle)),
        ("waiting", work(WorkState::Waiting { wait: WAIT }, Queue::Idle)),
        (
            "waiting, held",
            Work { hold: Some(hold()), ..work(WorkState::Waiting { wait: WAIT }, Queue::Idle) },
        ),
        ("woken", Work { eligibility: woken(None), ..work(WorkState::Ready, Queue::Runnable) }),
        (
            "woken to resume",
            Work { eligibility: woken(Some(LIVE)), ..work(WorkState::Ready, Queue::Runnable) },
        ),
        (
            "woken, held",
            Work { eligibility: woken(None), hold: Some(hold()), ..work(WorkState::Ready, held.clone()) },
        ),
        ("held by a budget", Work { hold: Some(spent()), ..work(WorkState::Ready, held) }),
        ("let through", Work { let_through: true, ..work(WorkState::Ready, Queue::Runnable) }),
        ("completed", work(WorkState::Completed, Queue::Idle)),
        ("failed", work(WorkState::Failed, Queue::Idle)),
        ("cancelled", work(WorkState::Cancelled, Queue::Idle)),
    ];
    insta::assert_snapshot!("work", table(&states, &WORK_COMMANDS, Work::check, show_work));
}

fn show_execution(execution: &Execution) -> String {
    let mut text = format!("{} at epoch {}", execution.state.as_str(), execution.epoch);
    if let Some(lease) = execution.lease {
        let until = if lease == Lease::taken(lease.owner, NOW) { "from now" } else { "as it was" };
        write!(text, ", lease of {} {until}", lease.owner).expect("a string takes every line");
    }
    if let Some(outcome) = execution.outcome {
        write!(text, ", outcome {}", outcome.as_str()).expect("a string takes every line");
    }
    if execution.turn.number > 1 {
        write!(text, ", turn {}", execution.turn.number).expect("a string takes every line");
    }
    for (is_so, words) in [
        (execution.recovering, ", recovering"),
        (execution.handle.is_some(), ", has a handle"),
        (execution.turn.session.is_some(), ", has a session"),
        (execution.deadline_at.is_some(), ", has a deadline"),
        (execution.ended_at == Some(NOW), ", ended now"),
        (execution.unstopped, ", unstopped"),
        (execution.interrupted_by.is_some(), ", interrupted"),
    ] {
        text.push_str(if is_so { words } else { "" });
    }
    text
}

/// A wake of the live attempt.
pub(crate) const RESUMPTION: Resumption =
    Resumption { winner: EventId::from_number(2), cause: EventId::from_number(3), let_through: false };

const EXECUTION_COMMANDS: [Command<Execution>; 15] = [
    Command { name: "pin", apply: |execution| words(execution.pin(GRANT, handle(), NOW)) },
    Command { name: "renew", apply: |execution| words(execution.renew(GRANT, NOW)) },
    Command { name: "record", apply: |execution| words(execution.record(GRANT, Outcome::Handoff, NOW)) },
    Command { name: "adopt", apply: |execution| words(execution.adopt(GRANT, NOW)) },
    Command { name: "relaunch", apply: |execution| words(execution.relaunch(GRANT, NOW)) },
    Command { name: "settle", apply: |execution| words(execution.settle(NOW)) },
    Command { name: "park", apply: |execution| Ok(execution.park(NOW)) },
    Command { name: "resume", apply: |execution| words(execution.resume(OWNER, RESUMPTION, NOW)) },
    Command {
        name: "recover",
        apply: |execution| words(execution.recover(Incarnation::from_number(2), NOW)),
    },
    Command { name: "cancel", apply: |execution| words(execution.cancel(NOW)) },
    Command {
        name: "interrupt",
        apply: |execution| words(execution.interrupt(EventId::from_number(9), NOW)),
    },
    Command {
        name: "renew, stale epoch",
        apply: |execution| {
            let newer = Execution { epoch: execution.epoch.next(), ..execution };
            words(newer.renew(GRANT, NOW))
        },
    },
    Command {
        name: "record, stale epoch",
        apply: |execution| {
            let newer = Execution { epoch: execution.epoch.next(), ..execution };
            words(newer.record(GRANT, Outcome::Completed, NOW))
        },
    },
    Command {
        name: "renew, other owner",
        apply: |execution| {
            let other = Grant { owner: Incarnation::from_number(2), ..GRANT };
            words(execution.renew(other, NOW))
        },
    },
    Command {
        name: "record, other owner",
        apply: |execution| {
            let other = Grant { owner: Incarnation::from_number(2), ..GRANT };
            words(execution.record(other, Outcome::Completed, NOW))
        },
    },
];

#[test]
fn every_state_and_command_of_an_execution() {
    let launching = execution();
    let running = Execution {
        state: ExecutionState::Running,
        handle: Some(handle()),
        started_at: Some(launching.claimed_at),
        deadline_at: Some(launching.claimed_at.after(launching.timeout)),
        ..execution()
    };
    let expired = Some(Lease { owner: OWNER, until: NOW });
    let recorded = Execution { lease: None, outcome: Some(Outcome::Completed), ..running.clone() };
    let parked = Execution { outcome: Some(Outcome::Waiting), ..recorded.clone() }.park(recorded.claimed_at);
    let ended = |state, outcome| Execution {
        state,
        outcome,
        ended_at: Some(Timestamp::from_micros(995_000_000)),
        ..recorded.clone()
    };
    let states = [
        ("launching", launching.clone()),
        ("launching, lease over", Execution { lease: expired, ..launching.clone() }),
        ("launching, recovering", Execution { recovering: true, ..launching }),
        ("running", running.clone()),
        ("running, lease over", Execution { lease: expired, ..running.clone() }),
        ("running, recovering", Execution { recovering: true, ..running }),
        ("to be settled", recorded.clone()),
        ("to be parked", Execution { outcome: Some(Outcome::Waiting), ..recorded.clone() }),
        ("parked", parked.clone()),
        ("resumed", parked.resume(OWNER, RESUMPTION, recorded.claimed_at).expect("it is parked")),
        ("waiting", ended(ExecutionState::Waiting, Some(Outcome::Waiting))),
        ("completed", ended(ExecutionState::Completed, Some(Outcome::Completed))),
        ("handoff", ended(ExecutionState::Handoff, Some(Outcome::Handoff))),
        ("failed", ended(ExecutionState::Failed, Some(Outcome::Failed))),
        ("cancelled", ended(ExecutionState::Cancelled, None)),
    ];
    insta::assert_snapshot!(
        "execution",
        table(&states, &EXECUTION_COMMANDS, Execution::check, show_execution)
    );
}

fn show_intent(intent: &Intent) -> String {
    let mut text = format!("{} {}, tries {}", intent.kind.as_str(), intent.state.as_str(), intent.tries);
    if let Some(due_at) = intent.state.due_at() {
        write!(text, ", due in {} ms", due_at.since(NOW).as_millis()).expect("a string takes every line");
    }
    text
}

const INTENT_COMMANDS: [Command<Intent>; 8] = [
    Command { name: "dispatch", apply: |intent| words(intent.dispatch(NOW)) },
    Command { name: "put off", apply: |intent| words(intent.put_off(NOW)) },
    Command {
        name: "answered, accepted",
        apply: |intent| words(intent.answered(intent::Answer::Accepted, NOW)),
    },
    Command {
        name: "answered, not accepting",
        apply: |intent| words(intent.answered(intent::Answer::NotAccepting, NOW)),
    },
    Command {
        name: "answered, ambiguous",
        apply: |intent| words(intent.answered(intent::Answer::Ambiguous, NOW)),
    },
    Command { name: "consumed", apply: |intent| words(intent.consumed()) },
    Command { name: "delivered", apply: |intent| words(intent.delivered()) },
    Command { name: "stale", apply: |intent| words(intent.stale()) },
];

#[test]
fn every_state_and_command_of_an_intent() {
    use IntentKind::{Inject, Interrupt};
    let states = [
        ("inject, pending", intent(Inject, IntentState::Pending { due_at: NOW })),
        ("inject, dispatched", intent(Inject, IntentState::Dispatched { due_at: NOW })),
        ("inject, ambiguous", intent(Inject, IntentState::Ambiguous { due_at: NOW })),
        ("inject, accepted", intent(Inject, IntentState::Accepted)),
        ("inject, not accepting", intent(Inject, IntentState::NotAccepting)),
        ("inject, fell back", intent(Inject, IntentState::FellBack)),
        ("inject, consumed", intent(Inject, IntentState::Consumed)),
        ("inject, stale", intent(Inject, IntentState::Stale)),
        ("interrupt, pending", intent(Interrupt, IntentState::Pending { due_at: NOW })),
        ("interrupt, dispatched", intent(Interrupt, IntentState::Dispatched { due_at: NOW })),
        ("interrupt, ambiguous", intent(Interrupt, IntentState::Ambiguous { due_at: NOW })),
        ("interrupt, accepted", intent(Interrupt, IntentState::Accepted)),
        ("interrupt, not accepting", intent(Interrupt, IntentState::NotAccepting)),
        ("interrupt, delivered", intent(Interrupt, IntentState::Delivered)),
        ("interrupt, stale", intent(Interrupt, IntentState::Stale)),
    ];
    insta::assert_snapshot!("intent", table(&states, &INTENT_COMMANDS, Intent::check, show_intent));
}
