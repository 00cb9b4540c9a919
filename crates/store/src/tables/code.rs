//! The numbers that stand for words in the tables. They are stored, so they never change; gaps are kept for
//! states that the product has words for.

use domain::execution::ExecutionState;
use domain::intent::{Controls, ErrorFallback, IntentKind, IntentState};
use domain::outcome::Outcome;
use domain::retention::Content;
use domain::route::{ActivePolicy, CheckpointOutcome};
use domain::time::Timestamp;
use domain::toolbelt::Operation;
use domain::work::{HoldReason, Lifecycle, WorkState};

/// A Work's state, without the Execution that a running one has.
pub(crate) const fn work_state(state: WorkState) -> i64 {
    match state {
        WorkState::Ready => 0,
        WorkState::Running { .. } => RUNNING,
        WorkState::Waiting { .. } => WAITING,
        WorkState::Completed => 3,
        WorkState::Failed => 4,
        WorkState::Cancelled => 5,
    }
}

/// The state of a Work that names an Execution.
pub(crate) const RUNNING: i64 = 1;
/// The state of a Work that names a Wait.
pub(crate) const WAITING: i64 = 2;

/// The state behind a number, of those that name nothing.
pub(crate) const fn plain_work_state(number: i64) -> Option<WorkState> {
    match number {
        0 => Some(WorkState::Ready),
        3 => Some(WorkState::Completed),
        4 => Some(WorkState::Failed),
        5 => Some(WorkState::Cancelled),
        _ => None,
    }
}

/// The number behind a state's word.
pub(crate) fn work_state_word(word: &str) -> Option<i64> {
    match word {
        "ready" => Some(0),
        "running" => Some(RUNNING),
        "waiting" => Some(WAITING),
        "completed" => Some(3),
        "failed" => Some(4),
        "cancelled" => Some(5),
        _ => None,
    }
}

pub(crate) const fn execution_state(state: ExecutionState) -> i64 {
    match state {
        ExecutionState::Launching => 1,
        ExecutionState::Running => 2,
        ExecutionState::Parked => 3,
        ExecutionState::Completed => 4,
        ExecutionState::Handoff => 5,
        ExecutionState::Waiting => 6,
        ExecutionState::Failed => 7,
        ExecutionState::Cancelled => 8,
    }
}

pub(crate) fn execution_state_of(number: i64) -> Option<ExecutionState> {
    ExecutionState::ALL.into_iter().find(|state| execution_state(*state) == number)
}

pub(crate) const fn outcome(outcome: Outcome) -> i64 {
    match outcome {
        Outcome::Completed => 0,
        Outcome::Handoff => 1,
        Outcome::Waiting => 2,
        Outcome::Failed => 3,
    }
}

pub(crate) const fn outcome_of(number: i64) -> Option<Outcome> {
    match number {
        0 => Some(Outcome::Completed),
        1 => Some(Outcome::Handoff),
        2 => Some(Outcome::Waiting),
        3 => Some(Outcome::Failed),
        _ => None,
    }
}

pub(crate) const fn lifecycle(lifecycle: Lifecycle) -> i64 {
    match lifecycle {
        Lifecycle::Once => 0,
        Lifecycle::RunOnce => 1,
        Lifecycle::Standing => 2,
    }
}

pub(crate) const fn lifecycle_of(number: i64) -> Option<Lifecycle> {
    match number {
        0 => Some(Lifecycle::Once),
        1 => Some(Lifecycle::RunOnce),
        2 => Some(Lifecycle::Standing),
        _ => None,
    }
}

/// What has become of content.
pub(crate) const fn content_of(code: i64) -> Option<Content> {
    Some(match code {
        0 => Content::Kept,
        1 => Content::Releasing,
        2 => Content::Released,
        _ => return None,
    })
}

pub(crate) const fn hold_reason(reason: HoldReason) -> i64 {
    match reason {
        HoldReason::WakeRefused => 0,
        HoldReason::Budget => 1,
        HoldReason::Gate => 2,
    }
}

pub(crate) fn hold_reason_of(number: i64) -> Option<HoldReason> {
    HoldReason::ALL.into_iter().find(|reason| hold_reason(*reason) == number)
}

pub(crate) const fn policy(policy: ActivePolicy) -> i64 {
    match policy {
        ActivePolicy::Queue => 0,
        ActivePolicy::Inject => 1,
        ActivePolicy::Interrupt => 2,
        ActivePolicy::Drop => 3,
    }
}

pub(crate) const fn policy_of(number: i64) -> Option<ActivePolicy> {
    match number {
        0 => Some(ActivePolicy::Queue),
        1 => Some(ActivePolicy::Inject),
        2 => Some(ActivePolicy::Interrupt),
        3 => Some(ActivePolicy::Drop),
        _ => None,
    }
}

pub(crate) const fn checkpoint_outcome(outcome: CheckpointOutcome) -> i64 {
    match outcome {
        CheckpointOutcome::Routed => 0,
        CheckpointOutcome::Unmatched => 1,
        CheckpointOutcome::Dropped => 2,
        CheckpointOutcome::Terminal => 3,
        CheckpointOutcome::Quarantined => 4,
    }
}

pub(crate) fn checkpoint_outcome_of(number: i64) -> Option<CheckpointOutcome> {
    CheckpointOutcome::ALL.into_iter().find(|outcome| checkpoint_outcome(*outcome) == number)
}

/// The controls of an attempt, a bit each.
pub(crate) const fn controls(controls: Controls) -> i64 {
    (if controls.inject { 1 } else { 0 }) | (if controls.interrupt { 2 } else { 0 })
}

pub(crate) const fn controls_of(number: i64) -> Option<Controls> {
    match number {
        0..=3 => Some(Controls { inject: number & 1 != 0, interrupt: number & 2 != 0 }),
        _ => None,
    }
}

pub(crate) const fn intent_kind(kind: IntentKind) -> i64 {
    match kind {
        IntentKind::Inject => 0,
        IntentKind::Interrupt => 1,
    }
}

pub(crate) const fn intent_kind_of(number: i64) -> Option<IntentKind> {
    match number {
        0 => Some(IntentKind::Inject),
        1 => Some(IntentKind::Interrupt),
        _ => None,
    }
}

pub(crate) const fn error_fallback(fallback: ErrorFallback) -> i64 {
    match fallback {
        ErrorFallback::Queue => 0,
    }
}

pub(crate) const fn error_fallback_of(number: i64) -> Option<ErrorFallback> {
    match number {
        0 => Some(ErrorFallback::Queue),
        _ => None,
    }
}

/// An intent's state, without the time that it is due.
pub(crate) const fn intent_state(state: IntentState) -> i64 {
    match state {
        IntentState::Pending { .. } => 0,
        IntentState::Dispatched { .. } => 1,
        IntentState::Ambiguous { .. } => 2,
        IntentState::Accepted => 3,
        IntentState::NotAccepting => 4,
        IntentState::FellBack => 5,
        IntentState::Consumed => 6,
        IntentState::Delivered => 7,
        IntentState::Stale => 8,
    }
}

pub(crate) const fn intent_state_of(number: i64, due_at: Option<Timestamp>) -> Option<IntentState> {
    match (number, due_at) {
        (0, Some(due_at)) => Some(IntentState::Pending { due_at }),
        (1, Some(due_at)) => Some(IntentState::Dispatched { due_at }),
        (2, Some(due_at)) => Some(IntentState::Ambiguous { due_at }),
        (3, None) => Some(IntentState::Accepted),
        (4, None) => Some(IntentState::NotAccepting),
        (5, None) => Some(IntentState::FellBack),
        (6, None) => Some(IntentState::Consumed),
        (7, None) => Some(IntentState::Delivered),
        (8, None) => Some(IntentState::Stale),
        _ => None,
    }
}

pub(crate) const fn operation(operation: Operation) -> i64 {
    match operation {
        Operation::Emit => 0,
        Operation::Wait => 1,
        Operation::Child => 2,
        Operation::Progress => 3,
        Operation::Usage => 4,
        Operation::Acknowledge => 5,
    }
}

pub(crate) const fn operation_of(number: i64) -> Option<Operation> {
    match number {
        0 => Some(Operation::Emit),
        1 => Some(Operation::Wait),
        2 => Some(Operation::Child),
        3 => Some(Operation::Progress),
        4 => Some(Operation::Usage),
        5 => Some(Operation::Acknowledge),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::id::{ExecutionId, WaitId};

    #[test]
    fn every_word_comes_back_from_its_number() {
        for state in ExecutionState::ALL {
            assert_eq!(execution_state_of(execution_state(state)), Some(state));
        }
        for state in [WorkState::Ready, WorkState::Completed, WorkState::Failed, WorkState::Cancelled] {
            assert_eq!(plain_work_state(work_state(state)), Some(state));
            assert_eq!(work_state_word(state.as_str()), Some(work_state(state)));
        }
        let running = WorkState::Running { execution: ExecutionId::from_number(1) };
        assert_eq!(work_state_word(running.as_str()), Some(work_state(running)));
        let waiting = WorkState::Waiting { wait: WaitId::from_number(1) };
        assert_eq!(work_state_word(waiting.as_str()), Some(work_state(waiting)));
        assert_eq!((plain_work_state(RUNNING), plain_work_state(WAITING)), (None, None));
        for word in [Outcome::Completed, Outcome::Handoff, Outcome::Waiting, Outcome::Failed] {
            assert_eq!(outcome_of(outcome(word)), Some(word));
        }
        for word in [Lifecycle::Once, Lifecycle::RunOnce, Lifecycle::Standing] {
            assert_eq!(lifecycle_of(lifecycle(word)), Some(word));
        }
        let policies =
            [ActivePolicy::Queue, ActivePolicy::Inject, ActivePolicy::Interrupt, ActivePolicy::Drop];
        for word in policies {
            assert_eq!(policy_of(policy(word)), Some(word));
        }
        for word in HoldReason::ALL {
            assert_eq!(hold_reason_of(hold_reason(word)), Some(word));
        }
        for word in CheckpointOutcome::ALL {
            assert_eq!(checkpoint_outcome_of(checkpoint_outcome(word)), Some(word));
        }
        for number in 0..4 {
            assert_eq!(controls_of(number).map(controls), Some(number));
        }
        for word in Operation::ALL {
            assert_eq!(operation_of(operation(word)), Some(word));
        }
        for word in [IntentKind::Inject, IntentKind::Interrupt] {
            assert_eq!(intent_kind_of(intent_kind(word)), Some(word));
        }
        assert_eq!(error_fallback_of(error_fallback(ErrorFallback::Queue)), Some(ErrorFallback::Queue));
        for number in 0..9 {
            let due_at = (number < 3).then_some(Timestamp::EPOCH);
            assert_eq!(intent_state_of(number, due_at).map(intent_state), Some(number));
        }
    }
}
