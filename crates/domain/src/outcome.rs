//! Outcomes: how an attempt ended, and what that makes of its Work.

use serde::{Deserialize, Serialize};

use crate::execution::ExecutionState;
use crate::id::EventId;
use crate::work::{AfterAttempt, Lifecycle};

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It did what it was started for.
    Completed,
    /// It ended its turn and hands the Work back.
    Handoff,
    /// It did not.
    Failed,
}

impl Outcome {
    /// The final state it leads to.
    pub const fn state(self) -> ExecutionState {
        match self {
            Self::Completed => ExecutionState::Completed,
            Self::Handoff => ExecutionState::Handoff,
            Self::Failed => ExecutionState::Failed,
        }
    }

    /// The word in API and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Handoff => "handoff",
            Self::Failed => "failed",
        }
    }
}

/// An amount of something an attempt used, in thousandths of its unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The unit: `usd`, `tokens`, `minutes`, or the executor's own.
    pub unit: String,
    /// The amount, in thousandths.
    pub thousandths: i64,
}

/// A file that an attempt left behind. The content lies with the executor; this is its description.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Its path below the attempt's output directory.
    pub path: String,
    /// Its size in bytes.
    pub bytes: u64,
}

/// What an executor reports when a turn ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnResult {
    /// How it ended.
    pub outcome: Outcome,
    /// One line for people; at most [`TurnResult::SUMMARY_BYTES_MAX`] bytes are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Why it failed, as a stable word: `exit_status`, `deadline`, `interrupted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The exit status of its process, when it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<i32>,
    /// A status the turn declares, announced as it is. The runtime knows none of the words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// What it used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<Usage>,
    /// What it left behind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// Events that it proves to have taken in besides those it was started with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consumed_inputs: Vec<EventId>,
}

impl TurnResult {
    /// The most bytes of a summary that are kept.
    pub const SUMMARY_BYTES_MAX: usize = 2000;

    /// A result that says only how the turn ended.
    pub const fn of(outcome: Outcome) -> Self {
        Self {
            outcome,
            summary: None,
            code: None,
            exit_status: None,
            status: None,
            usage: Vec::new(),
            artifacts: Vec::new(),
            consumed_inputs: Vec::new(),
        }
    }

    /// A failure with a stable word and a line for people.
    pub fn failed(code: &str, summary: impl Into<String>) -> Self {
        Self { code: Some(code.to_owned()), summary: Some(summary.into()), ..Self::of(Outcome::Failed) }
    }
}

/// What ending an attempt needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// Accepted input that already leads to this Work is not routed yet; the Work may not end before it is.
    AwaitLane,
    /// The attempt ends now and leaves its Work like this.
    Now(AfterAttempt),
}

/// What the end of an attempt makes of its Work.
///
/// A Work completes only when no input is pending and none is on its way. A failed attempt leaves it ready;
/// its next input, or an operator, starts the next one.
pub const fn settlement(lifecycle: Lifecycle, outcome: Outcome, pending: bool, unrouted: bool) -> Settlement {
    let completes = match (lifecycle, outcome) {
        (Lifecycle::Once | Lifecycle::RunOnce, Outcome::Completed)
        | (Lifecycle::RunOnce, Outcome::Handoff) => true,
        (Lifecycle::Standing, Outcome::Completed | Outcome::Handoff | Outcome::Failed)
        | (Lifecycle::Once, Outcome::Handoff | Outcome::Failed)
        | (Lifecycle::RunOnce, Outcome::Failed) => false,
    };
    if !completes || pending {
        Settlement::Now(AfterAttempt::Ready { pending })
    } else if unrouted {
        Settlement::AwaitLane
    } else {
        Settlement::Now(AfterAttempt::Completed)
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, Settlement, settlement};
    use crate::work::{AfterAttempt, Lifecycle};

    #[track_caller]
    fn check(lifecycle: Lifecycle, outcome: Outcome, pending: bool, unrouted: bool, expect: Settlement) {
        assert_eq!(settlement(lifecycle, outcome, pending, unrouted), expect);
    }

    const COMPLETED: Settlement = Settlement::Now(AfterAttempt::Completed);
    const IDLE: Settlement = Settlement::Now(AfterAttempt::Ready { pending: false });
    const NEXT: Settlement = Settlement::Now(AfterAttempt::Ready { pending: true });

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
        for outcome in [Outcome::Completed, Outcome::Handoff, Outcome::Failed] {
            check(Lifecycle::Standing, outcome, false, true, IDLE);
            check(Lifecycle::Standing, outcome, true, false, NEXT);
        }
    }

    #[test]
    fn a_failure_ends_no_work() {
        for lifecycle in [Lifecycle::Once, Lifecycle::RunOnce, Lifecycle::Standing] {
            check(lifecycle, Outcome::Failed, false, false, IDLE);
        }
    }
}
