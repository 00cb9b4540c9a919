//! A Work: the unit of ownership, with keys, input and a life that ends once.
//!
//! Each transition takes the Work and returns the next value, or says why it may not happen. The caller
//! writes what it gets back, with the revision it read.

use serde::{Deserialize, Serialize};

use crate::capacity::Blocker;
use crate::id::{Attempt, ExecutionId, Revision, Sequence, WaitId, WorkId};
use crate::retry::{Eligibility, Exhaustion};
use crate::text::{ConcurrencyKey, ScopeName, WorkKind};
use crate::time::Timestamp;

mod interrupt;
mod refusal;
mod wait;

pub use refusal::WorkRefusal;
pub use wait::{Hold, HoldReason};

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
    /// Its last turn ended in a Wait. Input queues, and only what the Wait is for starts the next turn.
    Waiting {
        /// The Wait.
        wait: WaitId,
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
            Self::Ready | Self::Running { .. } | Self::Waiting { .. } => false,
            Self::Completed | Self::Failed | Self::Cancelled => true,
        }
    }

    /// Whether an attempt is live.
    pub const fn is_running(self) -> bool {
        match self {
            Self::Running { .. } => true,
            Self::Ready | Self::Waiting { .. } | Self::Completed | Self::Failed | Self::Cancelled => false,
        }
    }

    /// What it waits for.
    pub const fn waits_for(self) -> Option<WaitId> {
        match self {
            Self::Waiting { wait } => Some(wait),
            Self::Ready | Self::Running { .. } | Self::Completed | Self::Failed | Self::Cancelled => None,
        }
    }

    /// The word in API and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Running { .. } => "running",
            Self::Waiting { .. } => "waiting",
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
    /// What its earlier turns mean for the next one.
    pub eligibility: Eligibility,
    /// Why it does not start, when something else than its queue keeps it.
    pub hold: Option<Hold>,
    /// Whether its next turn starts whatever a budget or a gate says: its hold was released.
    pub let_through: bool,
    /// How often it was written.
    pub revision: Revision,
    /// How many attempts it has had; the number of its newest one.
    pub attempts: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// What no other Work of its scope may run under while it does, for ever.
    pub concurrency: Option<ConcurrencyKey>,
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
    /// Nonterminal, and it waits.
    Waiting {
        /// The Wait.
        wait: WaitId,
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
            hold: None,
            let_through: false,
            revision: Revision::FIRST,
            attempts: 0,
            created_at: now,
            ended_at: None,
            concurrency: None,
        }
    }

    /// Whether whoever looks at it sees something else than at `read`, and has to be told: another state, or
    /// something else that keeps it there. What only ends its waiting for room is told by the start that follows,
    /// and new input by the Event's own row.
    pub fn shows_more_than(&self, read: &Self) -> bool {
        self.state != read.state
            || self.hold != read.hold
            || self.let_through != read.let_through
            || self.failures != read.failures
            || self.eligibility != read.eligibility
            || (self.queue != read.queue && matches!(self.queue, Queue::Blocked(_)))
    }

    /// The list on which it waits while another Work runs under its concurrency key; none without a key.
    pub fn concurrency_blocker(&self) -> Option<Blocker> {
        self.concurrency.clone().map(|key| Blocker::Concurrency(self.scope.clone(), key))
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
            WorkState::Running { .. } | WorkState::Waiting { .. } => {}
            WorkState::Completed | WorkState::Failed | WorkState::Cancelled => {
                return Err(self.terminal());
            }
        }
        Ok(self.bumped())
    }

    /// Starts the next attempt. What it repeats is [`Eligibility::failed`] of the Work before.
    ///
    /// # Errors
    /// [`WorkRefusal`] when the Work has ended, runs or waits, has nothing to run for, is held, waits out a
    /// failure, or has a parked attempt that goes on first.
    pub fn claim(mut self, execution: ExecutionId) -> Result<(Self, Attempt), WorkRefusal> {
        self.require_startable()?;
        if let Eligibility::Woken { resumes: Some(_), .. } = self.eligibility {
            return Err(WorkRefusal::Parked);
        }
        self.state = WorkState::Running { execution };
        self.queue = Queue::Idle;
        self.eligibility = Eligibility::Clear;
        self.let_through = false;
        self.attempts += 1;
        let attempt = Attempt::from_number(self.attempts);
        Ok((self.bumped(), attempt))
    }

    fn require_startable(&self) -> Result<(), WorkRefusal> {
        self.require_ready()?;
        match self.queue {
            Queue::Idle => return Err(WorkRefusal::Idle),
            Queue::Runnable | Queue::Blocked(_) => {}
        }
        if self.hold.is_some() {
            return Err(WorkRefusal::Held);
        }
        self.ineligible().map_or(Ok(()), Err)
    }

    /// Moves a ready Work with input to the list of what it waits for. It keeps its place in time.
    ///
    /// # Errors
    /// [`WorkRefusal`] when the Work is not ready, has no input, or is held or waits out a failure, which comes
    /// first.
    pub fn block(mut self, blocker: Blocker) -> Result<Self, WorkRefusal> {
        match (self.state, &self.queue) {
            (WorkState::Ready, Queue::Runnable | Queue::Blocked(_)) if self.hold.is_some() => {
                Err(WorkRefusal::Held)
            }
            (WorkState::Ready, Queue::Runnable | Queue::Blocked(_)) => {
                if let Some(refusal) = self.ineligible() {
                    return Err(refusal);
                }
                self.queue = Queue::Blocked(blocker);
                Ok(self.bumped())
            }
            (WorkState::Ready, Queue::Idle) => Err(WorkRefusal::Idle),
            (WorkState::Running { .. }, _) => Err(WorkRefusal::Running),
            (WorkState::Waiting { .. }, _) => Err(WorkRefusal::Waiting),
            (WorkState::Completed | WorkState::Failed | WorkState::Cancelled, _) => Err(self.terminal()),
        }
    }

    /// Takes a Work off the list it waited on, so that the scheduler looks at it again. One that is held or waits
    /// out a failure stays: room changes nothing about that.
    #[must_use]
    pub fn unblock(mut self) -> Self {
        match self.queue {
            Queue::Blocked(_) if self.hold.is_none() && self.eligibility.admits() => {
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

    /// Asks for the next attempt after `last`, its newest one if that may be repeated, on an operator's word:
    /// whatever stands against it is cleared, and the failures are forgotten. The Event at `event` is the trigger.
    ///
    /// # Errors
    /// [`WorkRefusal`] when it has ended, or runs, there is nothing to repeat, or its attempt is still being stopped.
    pub fn retry_requested(
        mut self,
        last: Option<ExecutionId>,
        event: Sequence,
        now: Timestamp,
    ) -> Result<Self, WorkRefusal> {
        self.require_ready()?;
        if let Eligibility::Stopping { .. } = self.eligibility {
            return Err(WorkRefusal::Stopping);
        }
        let failed = last.ok_or(WorkRefusal::NothingToRetry)?;
        self.failures = 0;
        self.eligibility = Eligibility::Due { failed, event };
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
            | Eligibility::Woken { .. }
            | Eligibility::Exhausted { .. }
            | Eligibility::Stopping { .. } => Err(WorkRefusal::StaleRetry),
        }
    }

    /// Why its earlier attempts keep it from the next one.
    const fn ineligible(&self) -> Option<WorkRefusal> {
        match self.eligibility {
            Eligibility::Clear | Eligibility::Due { .. } | Eligibility::Woken { .. } => None,
            Eligibility::Backoff { .. } | Eligibility::Exhausted { .. } => Some(WorkRefusal::Ineligible),
            Eligibility::Stopping { .. } => Some(WorkRefusal::Stopping),
        }
    }

    const fn require_ready(&self) -> Result<(), WorkRefusal> {
        match self.state {
            WorkState::Ready => Ok(()),
            WorkState::Running { .. } => Err(WorkRefusal::Running),
            WorkState::Waiting { .. } => Err(WorkRefusal::Waiting),
            WorkState::Completed | WorkState::Failed | WorkState::Cancelled => Err(self.terminal()),
        }
    }

    /// Whether an attempt is the one that runs.
    fn require_live(&self, execution: ExecutionId) -> Result<(), WorkRefusal> {
        match self.state {
            WorkState::Running { execution: live } if live == execution => Ok(()),
            WorkState::Running { .. } | WorkState::Waiting { .. } | WorkState::Ready => {
                Err(WorkRefusal::NotLive)
            }
            WorkState::Completed | WorkState::Failed | WorkState::Cancelled => Err(self.terminal()),
        }
    }

    fn runnable(mut self, now: Timestamp) -> Self {
        self.queue = self.queue_for_input();
        self.queued_at = now;
        self
    }

    /// Where a ready Work with pending input stands.
    fn queue_for_input(&self) -> Queue {
        if self.hold.is_some() {
            return Queue::Blocked(Blocker::Held(self.scope.clone()));
        }
        match self.eligibility {
            Eligibility::Clear | Eligibility::Due { .. } | Eligibility::Woken { .. } => Queue::Runnable,
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
        self.require_live(execution)?;
        match after {
            AfterAttempt::Ready { pending } => {
                self.failures = 0;
                self.rest(pending, Eligibility::Clear, now);
            }
            AfterAttempt::Failing { pending, eligibility } => {
                self.failures = self.failures.saturating_add(1);
                self.rest(pending, eligibility, now);
            }
            AfterAttempt::Waiting { wait } => {
                self.failures = 0;
                self.state = WorkState::Waiting { wait };
                self.queued_at = now;
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
            WorkState::Ready | WorkState::Running { .. } | WorkState::Waiting { .. } => {
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
        self.hold = None;
        self.let_through = false;
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
            "{}: only a ready Work has something to go on from",
            self.id
        );
        assert!(
            (self.hold.is_none() && self.eligibility.admits()) || self.queue != Queue::Runnable,
            "{}: what is held or waits out an attempt is not runnable",
            self.id
        );
        assert!(
            !matches!(self.eligibility, Eligibility::Woken { .. }) || self.queue != Queue::Idle,
            "{}: a wake brings input",
            self.id
        );
        assert!(
            !self.let_through || (self.hold.is_none() && !self.state.is_terminal()),
            "{}: what is let through is neither held nor ended",
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
