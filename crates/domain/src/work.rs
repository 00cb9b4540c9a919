//! A Work: the unit of ownership, with keys, input and a life that ends once.
//!
//! Each transition takes the Work and returns the next value, or says why it may not happen. The caller
//! writes what it gets back, with the revision it read.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::capacity::Blocker;
use crate::id::{Attempt, ExecutionId, Revision, Sequence, WorkId};
use crate::retry::{Eligibility, Exhaustion};
use crate::text::{ScopeName, WorkKind};
use crate::time::Timestamp;

mod interrupt;

/// Where a Work is in its life. Terminal states have no way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkState {
    /// No attempt is live; its [`Queue`] says what starts the next one.
    Ready,
    /// One attempt is live.
    Running {
        /// The attempt.
        execution: ExecutionId,
    },
    /// It ended well.
    Completed,
    /// It ended badly.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl WorkState {
    /// Whether the state is final.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Ready | Self::Running { .. } => false,
            Self::Completed | Self::Failed | Self::Cancelled => true,
        }
    }

    /// Whether an attempt is live.
    pub const fn is_running(self) -> bool {
        match self {
            Self::Running { .. } => true,
            Self::Ready | Self::Completed | Self::Failed | Self::Cancelled => false,
        }
    }

    /// The word in API and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Running { .. } => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What a Work does with the end of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifecycle {
    /// A completed attempt completes it, unless input is pending; a handoff leaves it ready and idle.
    Once,
    /// As [`Self::Once`], and a handoff completes it too: nothing would come to continue it.
    RunOnce,
    /// It outlives its attempts and waits idle for its next input. Only cancellation ends it.
    Standing,
}

impl Lifecycle {
    /// The word in configuration, API and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::RunOnce => "run_once",
            Self::Standing => "standing",
        }
    }
}

/// What starts a ready Work's next attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Queue {
    /// Its next input: none is pending.
    Idle,
    /// The scheduler: input is pending and nothing stands against it.
    Runnable,
    /// Room: input is pending, and this is missing.
    Blocked(Blocker),
}

/// A durable objective.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// Its id.
    pub id: WorkId,
    /// Its scope, for ever.
    pub scope: ScopeName,
    /// Its kind.
    pub kind: WorkKind,
    /// What the end of an attempt does to it.
    pub lifecycle: Lifecycle,
    /// Where it is in its life.
    pub state: WorkState,
    /// What starts its next attempt while it is ready.
    pub queue: Queue,
    /// Since when it stands in that queue; the order of starts.
    pub queued_at: Timestamp,
    /// How many of its attempts have failed in a row.
    pub failures: u32,
    /// What those failures mean for the next attempt.
    pub eligibility: Eligibility,
    /// How often it was written.
    pub revision: Revision,
    /// How many attempts it has had; the number of its newest one.
    pub attempts: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// Why a Work may not do what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum WorkRefusal {
    /// It has ended, and stays as it is.
    #[error("the Work has ended ({state}) and cannot change")]
    Terminal {
        /// Its final state.
        state: &'static str,
    },
    /// An attempt is live.
    #[error("an attempt of the Work is running")]
    Running,
    /// The attempt that was named is not its live one.
    #[error("the run is not the live attempt of the Work")]
    NotLive,
    /// No input is pending.
    #[error("the Work has no pending input")]
    Idle,
    /// It waits out a failure, or failed too often.
    #[error("the Work failed and waits; `open-conduit work retry` starts its next run")]
    Ineligible,
    /// What its interrupted attempt had started may still run.
    #[error("the Work's last run was interrupted and is still being stopped; ask again once it has stopped")]
    Stopping,
    /// The failure that was named is not the one it waits out.
    #[error("the Work does not wait to be tried again after that run")]
    StaleRetry,
    /// Its newest attempt did not fail.
    #[error("the Work's last run did not fail, so there is nothing to try again")]
    NothingToRetry,
}

/// How an attempt's end leaves its Work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterAttempt {
    /// Nonterminal: runnable when input is pending, else idle.
    Ready {
        /// Whether input is pending.
        pending: bool,
    },
    /// Nonterminal, after a failure.
    Failing {
        /// Whether input is pending.
        pending: bool,
        /// What the failure means for the next attempt.
        eligibility: Eligibility,
    },
    /// Completed for good.
    Completed,
    /// Failed for good.
    Failed,
}

impl Work {
    /// A new Work, which has its first input at once.
    pub fn create(
        id: WorkId,
        scope: ScopeName,
        kind: WorkKind,
        lifecycle: Lifecycle,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            scope,
            kind,
            lifecycle,
            state: WorkState::Ready,
            queue: Queue::Runnable,
            queued_at: now,
            failures: 0,
            eligibility: Eligibility::Clear,
            revision: Revision::FIRST,
            attempts: 0,
            created_at: now,
            ended_at: None,
        }
    }

    /// Takes note of a new pending input.
    ///
    /// # Errors
    /// [`WorkRefusal::Terminal`] when the Work has ended.
    pub fn enqueue(mut self, now: Timestamp) -> Result<Self, WorkRefusal> {
        match self.state {
            WorkState::Ready => {
                if self.queue == Queue::Idle {
                    self.queue = self.queue_for_input();
                    // One that waits out a failure has waited since then, whatever arrives meanwhile.
                    if self.queue == Queue::Runnable {
                        self.queued_at = now;
                    }
                }
            }
            WorkState::Running { .. } => {}
            WorkState::Completed | WorkState::Failed | WorkState::Cancelled => {
                return Err(self.terminal());
            }
        }
        Ok(self.bumped())
    }

    /// Starts the next attempt. What it repeats is [`Eligibility::failed`] of the Work before.
    ///
    /// # Errors
    /// [`WorkRefusal`] when the Work has ended, runs, has nothing to run for, or waits out a failure.
    pub fn claim(mut self, execution: ExecutionId) -> Result<(Self, Attempt), WorkRefusal> {
        match self.state {
            WorkState::Ready => {}
            WorkState::Running { .. } => return Err(WorkRefusal::Running),
            WorkState::Completed | WorkState::Failed | WorkState::Cancelled => {
                return Err(self.terminal());
            }
        }
        match self.queue {
            Queue::Idle => return Err(WorkRefusal::Idle),
            Queue::Runnable | Queue::Blocked(_) => {}
        }
        if let Some(refusal) = self.ineligible() {
            return Err(refusal);
        }
        self.state = WorkState::Running { execution };
        self.queue = Queue::Idle;
        self.eligibility = Eligibility::Clear;
        self.attempts += 1;
        let attempt = Attempt::from_number(self.attempts);
        Ok((self.bumped(), attempt))
    }

    /// Moves a ready Work with input to the list of what it waits for. It keeps its place in time.
    ///
    /// # Errors
    /// [`WorkRefusal`] when the Work is not ready, has no input, or waits out a failure, which comes first.
    pub fn block(mut self, blocker: Blocker) -> Result<Self, WorkRefusal> {
        match (self.state, &self.queue) {
            (WorkState::Ready, Queue::Runnable | Queue::Blocked(_)) => {
                if let Some(refusal) = self.ineligible() {
                    return Err(refusal);
                }
                self.queue = Queue::Blocked(blocker);
                Ok(self.bumped())
            }
            (WorkState::Ready, Queue::Idle) => Err(WorkRefusal::Idle),
            (WorkState::Running { .. }, _) => Err(WorkRefusal::Running),
            (WorkState::Completed | WorkState::Failed | WorkState::Cancelled, _) => Err(self.terminal()),
        }
    }

    /// Takes a Work off the list it waited on, so that the scheduler looks at it again. One that waits out a
    /// failure stays: room changes nothing about that.
    #[must_use]
    pub fn unblock(mut self) -> Self {
        match self.queue {
            Queue::Blocked(_) if self.eligibility.admits() => {
                self.queue = Queue::Runnable;
                self.bumped()
            }
            Queue::Idle | Queue::Runnable | Queue::Blocked(_) => self,
        }
    }

    /// Ends the wait after the failure of `failed`: the Event at `event` is the next attempt's trigger.
    ///
    /// # Errors
    /// [`WorkRefusal::StaleRetry`] when it waits out no failure or another one, and what else keeps it from
    /// being tried again.
    pub fn retry_due(
        mut self,
        failed: ExecutionId,
        event: Sequence,
        now: Timestamp,
    ) -> Result<Self, WorkRefusal> {
        self.require_waiting_out(failed)?;
        self.eligibility = Eligibility::Due { failed, event };
        Ok(self.runnable(now).bumped())
    }

    /// Asks for the next attempt after `last`, its newest one, on an operator's word: whatever stands against it
    /// is cleared, and the failures are forgotten. The Event at `event` is the trigger.
    ///
    /// # Errors
    /// [`WorkRefusal`] when it has ended, runs, or has an attempt that is still being stopped.
    pub fn retry_requested(
        mut self,
        last: ExecutionId,
        event: Sequence,
        now: Timestamp,
    ) -> Result<Self, WorkRefusal> {
        self.require_ready()?;
        if let Eligibility::Stopping { .. } = self.eligibility {
            return Err(WorkRefusal::Stopping);
        }
        self.failures = 0;
        self.eligibility = Eligibility::Due { failed: last, event };
        Ok(self.runnable(now).bumped())
    }

    /// Gives the wait after the failure of `failed` up, as the Event that would have ended it was refused.
    ///
    /// # Errors
    /// [`WorkRefusal::StaleRetry`] when it does not wait that failure out.
    pub fn retry_refused(mut self, failed: ExecutionId, now: Timestamp) -> Result<Self, WorkRefusal> {
        self.require_waiting_out(failed)?;
        self.eligibility = Eligibility::Exhausted { failed, because: Exhaustion::Causal };
        if self.queue != Queue::Idle {
            self.queue = self.queue_for_input();
            self.queued_at = now;
        }
        Ok(self.bumped())
    }

    fn require_waiting_out(&self, failed: ExecutionId) -> Result<(), WorkRefusal> {
        self.require_ready()?;
        match self.eligibility {
            Eligibility::Backoff { failed: newest, .. } if newest == failed => Ok(()),
            Eligibility::Clear
            | Eligibility::Backoff { .. }
            | Eligibility::Due { .. }
            | Eligibility::Exhausted { .. }
            | Eligibility::Stopping { .. } => Err(WorkRefusal::StaleRetry),
        }
    }

    /// Why its earlier attempts keep it from the next one.
    const fn ineligible(&self) -> Option<WorkRefusal> {
        match self.eligibility {
            Eligibility::Clear | Eligibility::Due { .. } => None,
            Eligibility::Backoff { .. } | Eligibility::Exhausted { .. } => Some(WorkRefusal::Ineligible),
            Eligibility::Stopping { .. } => Some(WorkRefusal::Stopping),
        }
    }

    const fn require_ready(&self) -> Result<(), WorkRefusal> {
        match self.state {
            WorkState::Ready => Ok(()),
            WorkState::Running { .. } => Err(WorkRefusal::Running),
            WorkState::Completed | WorkState::Failed | WorkState::Cancelled => Err(self.terminal()),
        }
    }

    fn runnable(mut self, now: Timestamp) -> Self {
        self.queue = Queue::Runnable;
        self.queued_at = now;
        self
    }

    /// Where a ready Work with pending input stands.
    fn queue_for_input(&self) -> Queue {
        match self.eligibility {
            Eligibility::Clear | Eligibility::Due { .. } => Queue::Runnable,
            Eligibility::Backoff { .. } => Queue::Blocked(Blocker::Backoff(self.scope.clone())),
            Eligibility::Exhausted { .. } => Queue::Blocked(Blocker::Exhausted(self.scope.clone())),
            Eligibility::Stopping { .. } => Queue::Blocked(Blocker::Stopping(self.scope.clone())),
        }
    }

    /// Ends the live attempt.
    ///
    /// # Errors
    /// [`WorkRefusal`] when the Work has ended or `execution` is not its live attempt.
    pub fn finish(
        mut self,
        execution: ExecutionId,
        after: AfterAttempt,
        now: Timestamp,
    ) -> Result<Self, WorkRefusal> {
        match self.state {
            WorkState::Running { execution: live } if live == execution => {}
            WorkState::Running { .. } | WorkState::Ready => return Err(WorkRefusal::NotLive),
            WorkState::Completed | WorkState::Failed | WorkState::Cancelled => {
                return Err(self.terminal());
            }
        }
        match after {
            AfterAttempt::Ready { pending } => {
                self.failures = 0;
                self.rest(pending, Eligibility::Clear, now);
            }
            AfterAttempt::Failing { pending, eligibility } => {
                self.failures = self.failures.saturating_add(1);
                self.rest(pending, eligibility, now);
            }
            AfterAttempt::Completed => self.end(WorkState::Completed, now),
            AfterAttempt::Failed => {
                self.failures = self.failures.saturating_add(1);
                self.end(WorkState::Failed, now);
            }
        }
        Ok(self.bumped())
    }

    /// Ends the Work without completing it. A live attempt must be cancelled in the same transaction.
    ///
    /// # Errors
    /// [`WorkRefusal::Terminal`] when it has ended: cancellation never rewrites an end.
    pub fn cancel(mut self, now: Timestamp) -> Result<Self, WorkRefusal> {
        match self.state {
            WorkState::Ready | WorkState::Running { .. } => {
                self.end(WorkState::Cancelled, now);
                Ok(self.bumped())
            }
            WorkState::Completed | WorkState::Failed | WorkState::Cancelled => Err(self.terminal()),
        }
    }

    fn rest(&mut self, pending: bool, eligibility: Eligibility, now: Timestamp) {
        self.state = WorkState::Ready;
        self.eligibility = eligibility;
        self.queue = if pending { self.queue_for_input() } else { Queue::Idle };
        self.queued_at = now;
    }

    fn end(&mut self, state: WorkState, now: Timestamp) {
        self.state = state;
        self.queue = Queue::Idle;
        self.eligibility = Eligibility::Clear;
        self.ended_at = Some(now);
    }

    /// Holds what must be true of every Work, before it is written and after it is read.
    ///
    /// # Panics
    /// When the record contradicts itself.
    pub fn check(&self) {
        assert!(self.attempts >= 0, "{}: attempts count up from zero", self.id);
        assert_eq!(self.state.is_terminal(), self.ended_at.is_some(), "{}: an end has a time", self.id);
        match (self.state, &self.queue) {
            (WorkState::Ready, _) | (_, Queue::Idle) => {}
            (_, Queue::Runnable | Queue::Blocked(_)) => {
                panic!("{}: only a ready Work stands in a queue", self.id)
            }
        }
        let waits = self.eligibility != Eligibility::Clear;
        assert!(
            !waits || self.state == WorkState::Ready,
            "{}: only a ready Work waits out an attempt",
            self.id
        );
        assert!(
            self.eligibility.admits() || self.queue != Queue::Runnable,
            "{}: what waits out an attempt is not runnable",
            self.id
        );
    }

    const fn terminal(&self) -> WorkRefusal {
        WorkRefusal::Terminal { state: self.state.as_str() }
    }

    fn bumped(mut self) -> Self {
        self.revision = self.revision.next();
        self
    }
}

#[cfg(test)]
mod tests;
