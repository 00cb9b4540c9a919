//! Outcomes: how an attempt ended, and what that makes of its Work.

use serde::{Deserialize, Serialize};

use crate::credential::UsageLimit;
use crate::execution::ExecutionState;
use std::time::Duration;

use crate::id::{EventId, ExecutionId, WaitId};
use crate::retry::{self, AfterFailure, Eligibility, Exhaustion};
use crate::time::Timestamp;
use crate::wait::Registration;
use crate::work::{AfterAttempt, Lifecycle, Work};

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It did what it was started for.
    Completed,
    /// It ended its turn and hands the Work back.
    Handoff,
    /// It ended its turn and waits for a fact or a time.
    Waiting,
    /// It did not.
    Failed,
}

impl Outcome {
    /// The final state it leads to.
    pub const fn state(self) -> ExecutionState {
        match self {
            Self::Completed => ExecutionState::Completed,
            Self::Handoff => ExecutionState::Handoff,
            Self::Waiting => ExecutionState::Waiting,
            Self::Failed => ExecutionState::Failed,
        }
    }

    /// The word in API and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Handoff => "handoff",
            Self::Waiting => "waiting",
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
    /// After how many seconds a failed attempt is worth another try, as far as the executor can tell. What lies
    /// outside the bounds of [`retry::HINT_MAX`] is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u64>,
    /// That the account it uses is used up, whatever its outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_limit: Option<UsageLimit>,
    /// What it used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<Usage>,
    /// What it left behind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// Events that it proves to have taken in besides those it was started with; at most
    /// [`TurnResult::CONSUMED_MAX`] are kept. A proof counts only for what was injected into this attempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consumed_inputs: Vec<EventId>,
    /// What it waits for. Only where the outcome is [`Outcome::Waiting`], which is refused without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Box<Registration>>,
}

impl TurnResult {
    /// The most bytes of a summary that are kept.
    pub const SUMMARY_BYTES_MAX: usize = 2000;
    /// The most Events that one result may prove to have taken in; those behind them stay pending.
    pub const CONSUMED_MAX: usize = 4096;

    /// A result that says only how the turn ended.
    pub const fn of(outcome: Outcome) -> Self {
        Self {
            outcome,
            summary: None,
            code: None,
            exit_status: None,
            status: None,
            retry_after_seconds: None,
            usage_limit: None,
            usage: Vec::new(),
            artifacts: Vec::new(),
            consumed_inputs: Vec::new(),
            wait: None,
        }
    }

    /// After how long another try is worth it: what it says itself, or when its account may be used again.
    pub fn retry_hint(&self) -> Option<Duration> {
        let own = self.retry_after_seconds.map(Duration::from_secs);
        own.or_else(|| self.usage_limit.map(UsageLimit::wait))
    }

    /// A turn that ends in a Wait.
    pub fn waiting(wait: Registration) -> Self {
        Self { wait: Some(Box::new(wait)), ..Self::of(Outcome::Waiting) }
    }

    /// This result with what the attempt's earlier turns had used and left behind added to it.
    #[must_use]
    pub fn after(mut self, earlier: Self) -> Self {
        for before in earlier.usage {
            match self.usage.iter_mut().find(|usage| usage.unit == before.unit) {
                Some(usage) => usage.thousandths = usage.thousandths.saturating_add(before.thousandths),
                None => self.usage.push(before),
            }
        }
        for before in earlier.artifacts {
            if self.artifacts.iter().all(|artifact| artifact.path != before.path) {
                self.artifacts.push(before);
            }
        }
        self
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
/// A Work completes only when no input is pending and none is on its way, and fails for good likewise: what was
/// accepted for it is never passed over. Otherwise a failure arms a retry, or leaves it to an operator.
#[derive(Debug, Clone, Copy)]
pub struct Ending<'a> {
    /// The Work.
    pub work: &'a Work,
    /// The attempt that ends.
    pub execution: ExecutionId,
    /// What it reported.
    pub result: &'a TurnResult,
    /// How its scope treats failures.
    pub policy: retry::Policy,
    /// Whether input is pending.
    pub pending: bool,
    /// The Wait that it registers, where its outcome is [`Outcome::Waiting`].
    pub wait: Option<WaitId>,
}

impl Ending<'_> {
    /// Decides at `now`. `unrouted` says whether accepted input that leads to this Work is not routed yet; it is
    /// asked only where a Work would end.
    ///
    /// # Errors
    /// What `unrouted` answers.
    pub fn settle<E>(
        &self,
        now: Timestamp,
        unrouted: impl FnOnce() -> Result<bool, E>,
    ) -> Result<Settlement, E> {
        let wanted = self.wanted(now);
        let ends = match wanted {
            AfterAttempt::Completed | AfterAttempt::Failed => true,
            AfterAttempt::Ready { .. } | AfterAttempt::Failing { .. } | AfterAttempt::Waiting { .. } => false,
        };
        Ok(if ends && unrouted()? { Settlement::AwaitLane } else { Settlement::Now(wanted) })
    }

    fn wanted(&self, now: Timestamp) -> AfterAttempt {
        let pending = self.pending;
        match (self.work.lifecycle, self.result.outcome) {
            (_, Outcome::Failed) => self.after_failure(now),
            (Lifecycle::Once | Lifecycle::RunOnce, Outcome::Completed)
            | (Lifecycle::RunOnce, Outcome::Handoff)
                if !pending =>
            {
                AfterAttempt::Completed
            }
            (_, Outcome::Completed | Outcome::Handoff) => AfterAttempt::Ready { pending },
            (_, Outcome::Waiting) => {
                let wait = self.wait.expect("a turn that waits was admitted with its Wait");
                AfterAttempt::Waiting { wait }
            }
        }
    }

    fn after_failure(&self, now: Timestamp) -> AfterAttempt {
        let (pending, failed) = (self.pending, self.execution);
        let failures = self.work.failures.saturating_add(1);
        let hint = self.result.retry_hint();
        let exhausted = Eligibility::Exhausted { failed, because: Exhaustion::Budget };
        let eligibility = match retry::after_failure(self.work.lifecycle, failures, self.policy, hint) {
            AfterFailure::NextInput => Eligibility::Clear,
            AfterFailure::Again(delay) => Eligibility::Backoff { failed, due_at: now.after(delay) },
            AfterFailure::Terminal if !pending => return AfterAttempt::Failed,
            AfterFailure::Terminal | AfterFailure::Exhausted => exhausted,
        };
        AfterAttempt::Failing { pending, eligibility }
    }
}

#[cfg(test)]
mod tests;
