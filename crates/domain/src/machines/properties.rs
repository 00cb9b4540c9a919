//! What no sequence of commands can break, whoever gives them, in whatever order.

use std::time::Duration;

use proptest::prelude::*;

use super::{LIVE, NOW, OWNER, RESUMPTION, execution, handle, hold, spent, work};
use crate::capacity::Blocker;
use crate::execution::Execution;
use crate::id::{Epoch, EventId, ExecutionId, Incarnation, Sequence, WaitId};
use crate::lease::{Grant, LEASE};
use crate::outcome::Outcome;
use crate::retry::{Eligibility, Exhaustion};
use crate::text::ScopeName;
use crate::time::Timestamp;
use crate::work::{AfterAttempt, HoldReason, Queue, Work, WorkState};

/// Something that may be asked of a Work.
#[derive(Debug, Clone, Copy)]
enum WorkCommand {
    Enqueue,
    Claim(i64),
    Block,
    Unblock,
    Finish(i64, AfterAttempt),
    RetryDue(i64),
    RetryRequested(i64),
    RetryRefused(i64),
    StopAndHold(i64),
    Interrupt(i64, bool),
    Stopped(i64),
    Wake(i64, Option<i64>),
    Resume,
    Hold,
    HoldForBudget,
    Lift,
    Release,
    Cancel,
}

fn work_command() -> impl Strategy<Value = WorkCommand> {
    let after = prop_oneof![
        4 => any::<bool>().prop_map(|pending| AfterAttempt::Ready { pending }),
        4 => (any::<bool>(), eligibility())
            .prop_map(|(pending, eligibility)| AfterAttempt::Failing { pending, eligibility }),
        1 => Just(AfterAttempt::Completed),
        1 => Just(AfterAttempt::Failed),
        4 => wait().prop_map(|wait| AfterAttempt::Waiting { wait: WaitId::from_number(wait) }),
    ];
    let attempt = LIVE.number()..LIVE.number() + 2;
    prop_oneof![
        4 => Just(WorkCommand::Enqueue),
        4 => attempt.clone().prop_map(WorkCommand::Claim),
        2 => Just(WorkCommand::Block),
        2 => Just(WorkCommand::Unblock),
        6 => (attempt.clone(), after).prop_map(|(attempt, after)| WorkCommand::Finish(attempt, after)),
        4 => attempt.clone().prop_map(WorkCommand::RetryDue),
        1 => attempt.clone().prop_map(WorkCommand::RetryRequested),
        1 => attempt.clone().prop_map(WorkCommand::RetryRefused),
        2 => (attempt.clone(), any::<bool>())
            .prop_map(|(attempt, pending)| WorkCommand::Interrupt(attempt, pending)),
        2 => attempt.clone().prop_map(WorkCommand::StopAndHold),
        2 => attempt.clone().prop_map(WorkCommand::Stopped),
        6 => (wait(), prop::option::of(attempt)).prop_map(|(wait, resumes)| WorkCommand::Wake(wait, resumes)),
        4 => Just(WorkCommand::Resume),
        1 => Just(WorkCommand::Hold),
        2 => Just(WorkCommand::HoldForBudget),
        1 => Just(WorkCommand::Lift),
        2 => Just(WorkCommand::Release),
        1 => Just(WorkCommand::Cancel),
    ]
}

/// One of two Waits.
fn wait() -> std::ops::Range<i64> {
    6..8
}

/// What a failure of one of two attempts may mean.
fn eligibility() -> impl Strategy<Value = Eligibility> {
    let failed = (LIVE.number()..LIVE.number() + 2).prop_map(ExecutionId::from_number);
    prop_oneof![
        1 => Just(Eligibility::Clear),
        4 => failed.clone().prop_map(|failed| Eligibility::Backoff { failed, due_at: NOW }),
        2 => failed.prop_map(|failed| Eligibility::Exhausted { failed, because: Exhaustion::Budget }),
    ]
}

/// The Work after the command; as it was when the command is refused.
fn apply_to_work(work: &Work, command: WorkCommand, now: Timestamp) -> Work {
    let work = work.clone();
    let before = work.clone();
    let next = match command {
        WorkCommand::Enqueue => work.enqueue(now),
        WorkCommand::Claim(attempt) => {
            work.claim(ExecutionId::from_number(attempt)).map(|(work, attempt)| {
                assert_eq!(attempt.number(), before.attempts + 1, "attempts are numbered without a gap");
                work
            })
        }
        WorkCommand::Block => work.block(Blocker::ScopeFull(ScopeName::known("main"))),
        WorkCommand::Unblock => Ok(work.unblock()),
        WorkCommand::Finish(attempt, after) => work.finish(ExecutionId::from_number(attempt), after, now),
        WorkCommand::RetryDue(attempt) => {
            work.retry_due(ExecutionId::from_number(attempt), Sequence::FIRST, now).inspect(|_next| {
                let newest = before.eligibility.failed();
                assert_eq!(newest, Some(ExecutionId::from_number(attempt)), "a stale retry clears nothing");
            })
        }
        WorkCommand::RetryRequested(attempt) => {
            work.retry_requested(Some(ExecutionId::from_number(attempt)), Sequence::FIRST, now)
        }
        WorkCommand::RetryRefused(attempt) => work.retry_refused(ExecutionId::from_number(attempt), now),
        WorkCommand::Interrupt(attempt, pending) => {
            work.interrupt(ExecutionId::from_number(attempt), pending, now)
        }
        WorkCommand::StopAndHold(attempt) => {
            work.stop_and_hold(ExecutionId::from_number(attempt), Sequence::FIRST, spent(), now)
        }
        WorkCommand::Stopped(attempt) => work.stopped(ExecutionId::from_number(attempt), now),
        WorkCommand::Wake(wait, resumes) => {
            let (wait, resumes) = (WaitId::from_number(wait), resumes.map(ExecutionId::from_number));
            work.wake(wait, Sequence::FIRST, resumes, now).inspect(|_next| {
                assert_eq!(before.state, WorkState::Waiting { wait }, "only what is waited for wakes");
            })
        }
        WorkCommand::Resume => work.resume().map(|(work, execution)| {
            let woken = matches!(before.eligibility, Eligibility::Woken { resumes, .. } if resumes == Some(execution));
            assert!(woken && work.attempts == before.attempts, "a resumed attempt is no new one");
            work
        }),
        WorkCommand::Hold => work.hold(hold()),
        WorkCommand::HoldForBudget => work.hold(spent()),
        WorkCommand::Lift => work.lift(HoldReason::Budget, now),
        WorkCommand::Release => work.release(now),
        WorkCommand::Cancel => work.cancel(now),
    };
    next.unwrap_or(before)
}

/// Something that may be asked of an Execution, by one of two processes at one of a few epochs.
#[derive(Debug, Clone, Copy)]
enum ExecutionCommand {
    Pin(Grant),
    Renew(Grant),
    Record(Grant, Outcome),
    Adopt(Grant),
    Relaunch(Grant),
    Settle,
    Park,
    Resume(Incarnation),
    Recover(Incarnation),
    Interrupt,
    Cancel,
}

fn execution_command() -> impl Strategy<Value = ExecutionCommand> {
    let owner = || (OWNER.number()..OWNER.number() + 2).prop_map(Incarnation::from_number);
    let epoch = (Epoch::FIRST.number()..Epoch::FIRST.number() + 3).prop_map(Epoch::from_number);
    let grant = (owner(), epoch).prop_map(|(owner, epoch)| Grant { owner, epoch });
    let outcome = prop_oneof![
        Just(Outcome::Completed),
        Just(Outcome::Handoff),
        Just(Outcome::Waiting),
        Just(Outcome::Failed),
    ];
    prop_oneof![
        4 => grant.clone().prop_map(ExecutionCommand::Pin),
        4 => grant.clone().prop_map(ExecutionCommand::Renew),
        2 => (grant.clone(), outcome).prop_map(|(grant, outcome)| ExecutionCommand::Record(grant, outcome)),
        2 => grant.clone().prop_map(ExecutionCommand::Adopt),
        2 => grant.prop_map(ExecutionCommand::Relaunch),
        2 => Just(ExecutionCommand::Settle),
        3 => Just(ExecutionCommand::Park),
        3 => owner().prop_map(ExecutionCommand::Resume),
        6 => owner().prop_map(ExecutionCommand::Recover),
        1 => Just(ExecutionCommand::Interrupt),
        1 => Just(ExecutionCommand::Cancel),
    ]
}

/// The Execution after the command; none when the command is refused.
fn apply_to_execution(execution: &Execution, command: ExecutionCommand, now: Timestamp) -> Option<Execution> {
    let execution = execution.clone();
    match command {
        ExecutionCommand::Pin(grant) => execution.pin(grant, handle(), now).ok(),
        ExecutionCommand::Renew(grant) => execution.renew(grant, now).ok(),
        ExecutionCommand::Record(grant, outcome) => execution.record(grant, outcome, now).ok(),
        ExecutionCommand::Adopt(grant) => execution.adopt(grant, now).ok(),
        ExecutionCommand::Relaunch(grant) => execution.relaunch(grant, now).ok(),
        // Settling what has no outcome is a bug of the caller, not a refusal.
        ExecutionCommand::Settle if execution.outcome.is_none() => None,
        ExecutionCommand::Settle => execution.settle(now).ok(),
        // So is parking what does not wait.
        ExecutionCommand::Park if execution.state.is_terminal() => None,
        ExecutionCommand::Park if execution.outcome != Some(Outcome::Waiting) => None,
        ExecutionCommand::Park => Some(execution.park(now)),
        ExecutionCommand::Resume(owner) => execution.resume(owner, RESUMPTION, now).ok(),
        ExecutionCommand::Recover(owner) => execution.recover(owner, now).ok(),
        ExecutionCommand::Interrupt => execution.interrupt(EventId::from_number(9), now).ok(),
        ExecutionCommand::Cancel => execution.cancel(now).ok(),
    }
}

/// The grant a command presents.
fn presented(command: ExecutionCommand) -> Option<Grant> {
    match command {
        ExecutionCommand::Pin(grant)
        | ExecutionCommand::Renew(grant)
        | ExecutionCommand::Record(grant, _)
        | ExecutionCommand::Adopt(grant)
        | ExecutionCommand::Relaunch(grant) => Some(grant),
        ExecutionCommand::Settle
        | ExecutionCommand::Park
        | ExecutionCommand::Resume(_)
        | ExecutionCommand::Recover(_)
        | ExecutionCommand::Interrupt
        | ExecutionCommand::Cancel => None,
    }
}

/// Pauses between commands: none, a while, and both sides of a lease's very end.
fn pause() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::from_secs(7)),
        Just(LEASE.saturating_sub(Duration::from_micros(1))),
        Just(LEASE),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_commands_break_a_work(
        commands in prop::collection::vec((work_command(), pause()), 0..40),
    ) {
        let mut now = NOW;
        let mut before = work(WorkState::Ready, Queue::Runnable);
        for (command, pause) in commands {
            now = now.after(pause);
            let next = apply_to_work(&before, command, now);
            next.check();
            prop_assert!(before.attempts <= next.attempts);
            if next != before {
                prop_assert!(!before.state.is_terminal(), "an end changed: {before:?} {command:?}");
                prop_assert_eq!(next.revision, before.revision.next());
            }
            if let Eligibility::Stopping { .. } = before.eligibility {
                prop_assert!(!next.state.is_running(), "something started beside what is being stopped");
            }
            before = next;
        }
    }

    #[test]
    fn no_commands_break_an_execution(
        commands in prop::collection::vec((execution_command(), pause()), 0..60),
    ) {
        let mut now = NOW;
        let mut before = execution();
        for (command, pause) in commands {
            now = now.after(pause);
            let Some(next) = apply_to_execution(&before, command, now) else { continue };
            next.check();
            prop_assert!(!before.state.is_terminal(), "an end changed: {before:?} {command:?}");
            let resumed = matches!(command, ExecutionCommand::Resume(_));
            let claimed = matches!(command, ExecutionCommand::Recover(_));
            let epoch = if claimed || resumed { before.epoch.next() } else { before.epoch };
            prop_assert_eq!(next.epoch, epoch, "an epoch rises with each claim and only then");
            if claimed {
                prop_assert!(before.lease.is_some_and(|lease| !lease.is_live(now)), "a live lease was stolen");
            }
            if let Some(grant) = presented(command) {
                prop_assert_eq!(Some(grant), before.grant(), "somebody acted without the grant in force");
                prop_assert!(before.lease.is_some_and(|lease| lease.is_live(now)));
            }
            let parked = matches!(command, ExecutionCommand::Park);
            prop_assert!(
                before.outcome.is_none() || parked || next.outcome == before.outcome,
                "an outcome changed"
            );
            prop_assert!(!resumed || before.lease.is_none(), "a lease was taken by a resume");
            prop_assert!(before.turn.used <= next.turn.used && next.turn.used <= next.timeout);
            prop_assert_eq!((next.id, next.attempt, next.trigger), (before.id, before.attempt, before.trigger));
            before = next;
        }
    }
}
