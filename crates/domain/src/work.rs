//! A Work: the unit of ownership, with keys, input and a life that ends once.
//!
//! Each transition takes the Work and returns the next value, or says why it may not happen. The caller
//! writes what it gets back, with the revision it read.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::capacity::Blocker;
use crate::id::{Attempt, ExecutionId, Revision, WorkId};
use crate::text::{ScopeName, WorkKind};
use crate::time::Timestamp;

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
}

/// How an attempt's end leaves its Work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterAttempt {
    /// Nonterminal: runnable when input is pending, else idle.
    Ready {
        /// Whether input is pending.
        pending: bool,
    },
    /// Completed for good.
    Completed,
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
                    self.queue = Queue::Runnable;
                    self.queued_at = now;
                }
            }
            WorkState::Running { .. } => {}
            WorkState::Completed | WorkState::Failed | WorkState::Cancelled => {
                return Err(self.terminal());
            }
        }
        Ok(self.bumped())
    }

    /// Starts the next attempt.
    ///
    /// # Errors
    /// [`WorkRefusal`] when the Work has ended, runs, or has nothing to run for.
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
        self.state = WorkState::Running { execution };
        self.queue = Queue::Idle;
        self.attempts += 1;
        let attempt = Attempt::from_number(self.attempts);
        Ok((self.bumped(), attempt))
    }

    /// Moves a ready Work with input to the list of what it waits for. It keeps its place in time.
    ///
    /// # Errors
    /// [`WorkRefusal`] when the Work is not ready, or has no input.
    pub fn block(mut self, blocker: Blocker) -> Result<Self, WorkRefusal> {
        match (self.state, &self.queue) {
            (WorkState::Ready, Queue::Runnable | Queue::Blocked(_)) => {
                self.queue = Queue::Blocked(blocker);
                Ok(self.bumped())
            }
            (WorkState::Ready, Queue::Idle) => Err(WorkRefusal::Idle),
            (WorkState::Running { .. }, _) => Err(WorkRefusal::Running),
            (WorkState::Completed | WorkState::Failed | WorkState::Cancelled, _) => Err(self.terminal()),
        }
    }

    /// Takes a Work off the list it waited on, so that the scheduler looks at it again.
    #[must_use]
    pub fn unblock(mut self) -> Self {
        match self.queue {
            Queue::Blocked(_) => {
                self.queue = Queue::Runnable;
                self.bumped()
            }
            Queue::Idle | Queue::Runnable => self,
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
                self.state = WorkState::Ready;
                self.queue = if pending { Queue::Runnable } else { Queue::Idle };
                self.queued_at = now;
            }
            AfterAttempt::Completed => {
                self.state = WorkState::Completed;
                self.queue = Queue::Idle;
                self.ended_at = Some(now);
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
                self.state = WorkState::Cancelled;
                self.queue = Queue::Idle;
                self.ended_at = Some(now);
                Ok(self.bumped())
            }
            WorkState::Completed | WorkState::Failed | WorkState::Cancelled => Err(self.terminal()),
        }
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
