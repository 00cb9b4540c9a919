//! The numbers that stand for words in the tables. They are stored, so they never change; gaps are kept for
//! states that the product has words for.

use domain::execution::ExecutionState;
use domain::outcome::Outcome;
use domain::route::{ActivePolicy, CheckpointOutcome};
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
        ActivePolicy::Drop => 3,
    }
}

pub(crate) const fn policy_of(number: i64) -> Option<ActivePolicy> {
    match number {
        0 => Some(ActivePolicy::Queue),
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
        for word in [ActivePolicy::Queue, ActivePolicy::Drop] {
            assert_eq!(policy_of(policy(word)), Some(word));
        }
        for word in HoldReason::ALL {
            assert_eq!(hold_reason_of(hold_reason(word)), Some(word));
        }
        for word in CheckpointOutcome::ALL {
            assert_eq!(checkpoint_outcome_of(checkpoint_outcome(word)), Some(word));
        }
    }
}
