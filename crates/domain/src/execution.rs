//! An Execution: one numbered attempt at a Work, under one lease at a time.
//!
//! Every transition but cancellation presents a [`Grant`], so what comes from a process that lost its lease
//! has no effect, whatever it believes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::id::{Attempt, Epoch, EventId, ExecutionId, Generation, Sequence, WorkId};
use crate::intent::Controls;
use crate::lease::{Fenced, Grant, Lease};
use crate::outcome::Outcome;
use crate::retention::Content;
use crate::text::{BindingName, CredentialName, ExecutorName, ScopeName};
use crate::time::Timestamp;
use crate::toolbelt::{Declared, Toolbelt};
use crate::workspace::Workspace;

/// Where an Execution is in its life. Terminal states have no way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExecutionState {
    /// Claimed, and handed to its executor; nothing it started is recorded yet.
    Launching,
    /// Its executor has recorded what it started, or its outcome waits to be settled.
    Running,
    /// Its turn ended in a Wait. Nothing of it runs; it is resumed when the Wait is woken.
    Parked,
    /// It ended well.
    Completed,
    /// It ended and hands the Work back.
    Handoff,
    /// It ended in a Wait that its executor cannot resume from: the next attempt goes on.
    Waiting,
    /// It ended badly.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl ExecutionState {
    /// Every state.
    pub const ALL: [Self; 8] = [
        Self::Launching,
        Self::Running,
        Self::Parked,
        Self::Completed,
        Self::Handoff,
        Self::Waiting,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Whether the state is final.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Launching | Self::Running | Self::Parked => false,
            Self::Completed | Self::Handoff | Self::Waiting | Self::Failed | Self::Cancelled => true,
        }
    }

    /// Whether it runs or is about to. What is parked has not ended, and does neither.
    pub const fn is_going_on(self) -> bool {
        match self {
            Self::Launching | Self::Running => true,
            Self::Parked
            | Self::Completed
            | Self::Handoff
            | Self::Waiting
            | Self::Failed
            | Self::Cancelled => false,
        }
    }

    /// Whether an operator may have it repeated: it did not end well. One that is live is refused by its Work, in
    /// better words.
    pub const fn may_be_repeated(self) -> bool {
        match self {
            Self::Launching | Self::Running | Self::Failed | Self::Cancelled => true,
            Self::Parked | Self::Completed | Self::Handoff | Self::Waiting => false,
        }
    }

    /// The word in API and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Launching => "launching",
            Self::Running => "running",
            Self::Parked => "parked",
            Self::Completed => "completed",
            Self::Handoff => "handoff",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What an executor needs to find again what it started. Opaque here; at most [`Handle::BYTES_MAX`] bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Handle(Arc<[u8]>);

impl Handle {
    /// The most bytes a handle may have.
    pub const BYTES_MAX: usize = 16 << 10;

    /// Wraps an executor's bytes; none when there are too many.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Option<Self> {
        let bytes = bytes.into();
        (bytes.len() <= Self::BYTES_MAX).then_some(Self(bytes))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({} bytes)", self.0.len())
    }
}

/// One active stretch of an attempt: from its launch, or from a resume, to its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Its number within the attempt, from 1.
    pub number: i64,
    /// The Event that the attempt publishes on the chain of: its trigger, and after a wake what bridges to it.
    pub cause: EventId,
    /// What the attempt's earlier turns took of [`Execution::timeout`].
    pub used: Duration,
    /// The Event that woke the attempt for this turn; none in the first.
    pub resumed_by: Option<EventId>,
    /// What the executor had recorded when the turn before ended, to go on from.
    pub session: Option<Handle>,
    /// Whether an operator let it start in spite of a budget, which then does not end it either.
    pub let_through: bool,
    /// How often it has reported what it uses.
    pub reports: i64,
}

impl Turn {
    /// The first turn of an attempt.
    pub const fn first(cause: EventId) -> Self {
        Self {
            number: 1,
            cause,
            used: Duration::ZERO,
            resumed_by: None,
            session: None,
            let_through: false,
            reports: 0,
        }
    }
}

/// What begins an attempt's next turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resumption {
    /// The Event that woke its Work.
    pub winner: EventId,
    /// The Event on whose chain the attempt goes on.
    pub cause: EventId,
    /// Whether an operator let the turn start in spite of a budget.
    pub let_through: bool,
}

/// One attempt at a Work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    /// Its id.
    pub id: ExecutionId,
    /// Its Work.
    pub work: WorkId,
    /// The Work's scope.
    pub scope: ScopeName,
    /// Its number among the Work's attempts.
    pub attempt: Attempt,
    /// Where it is in its life.
    pub state: ExecutionState,
    /// The epoch of the newest claim.
    pub epoch: Epoch,
    /// The authority over it; none once it ended, or while a stored outcome waits to be settled.
    pub lease: Option<Lease>,
    /// Whether the newest claim is a recovery that has not yet found out what became of it.
    pub recovering: bool,
    /// The Event that triggered it, for ever.
    pub trigger: EventId,
    /// The trigger's place in the order of acceptance.
    pub trigger_sequence: Sequence,
    /// The attempt that it repeats after a failure.
    pub retry_of: Option<ExecutionId>,
    /// The binding it runs by.
    pub binding: BindingName,
    /// The executor of that binding.
    pub executor: ExecutorName,
    /// What of an account its binding named, whose usage limit it may meet.
    pub credential: Option<CredentialName>,
    /// The configuration it is pinned to.
    pub generation: Generation,
    /// What its active segments may take together.
    pub timeout: Duration,
    /// What its executor can do to it while it runs.
    pub controls: Controls,
    /// When that time is over, once it runs.
    pub deadline_at: Option<Timestamp>,
    /// What the executor started.
    pub handle: Option<Handle>,
    /// Its current turn; the last one, when it has ended or is parked.
    pub turn: Turn,
    /// The outcome, once it is known. In a nonterminal state it waits to be settled.
    pub outcome: Option<Outcome>,
    /// When it was first claimed.
    pub claimed_at: Timestamp,
    /// When its executor recorded what it started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Whether it ended while what it had started may still run; the executor has yet to confirm that it
    /// stopped. Nothing it used may be used again before that.
    pub unstopped: bool,
    /// The Event whose interruption ended it.
    pub interrupted_by: Option<EventId>,
    /// What its process has to make calls with, and has said by them.
    pub toolbelt: Toolbelt,
    /// The directory that was made ready for it, once it has begun in it.
    pub workspace: Option<Arc<Workspace>>,
    /// What has become of what it was given and left behind.
    pub content: Content,
}

/// Why an Execution cannot be recovered now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RecoverRefusal {
    /// Its lease is live, and a live lease cannot be stolen.
    #[error("the lease on the run is live")]
    Live,
    /// It has ended.
    #[error("the run has ended")]
    Ended,
    /// Its outcome is stored; it only has to be settled.
    #[error("the run's outcome is known and waits to be settled")]
    Settling,
    /// It is parked, so nothing of it can have been lost.
    #[error("the run is parked")]
    Parked,
}

impl Execution {
    /// Checks that `grant` speaks for this Execution at `now`.
    ///
    /// # Errors
    /// [`Fenced`] says why it does not.
    pub fn authorize(&self, grant: Grant, now: Timestamp) -> Result<(), Fenced> {
        if self.state.is_terminal() {
            return Err(Fenced::Ended);
        }
        if grant.epoch != self.epoch {
            return Err(Fenced::Epoch { presented: grant.epoch, current: self.epoch });
        }
        match self.lease {
            None => Err(Fenced::Expired),
            Some(lease) if !lease.is_live(now) => Err(Fenced::Expired),
            Some(lease) if lease.owner != grant.owner => Err(Fenced::Owner),
            Some(_) => Ok(()),
        }
    }

    /// Checks that a call of the attempt itself counts at `now`, whichever process serves it: the attempt goes on, at
    /// the epoch that the call was given for.
    ///
    /// # Errors
    /// [`Fenced`] says why it does not.
    pub fn authorize_call(&self, epoch: Epoch, now: Timestamp) -> Result<(), Fenced> {
        // Without a lease nobody has authority, whoever asks.
        let owner = self.lease.map_or(crate::id::Incarnation::FIRST, |lease| lease.owner);
        self.authorize(Grant { owner, epoch }, now)
    }

    /// Records what the executor started. From here on it may let it run.
    ///
    /// # Errors
    /// [`Fenced`] when the grant has no authority.
    pub fn pin(mut self, grant: Grant, handle: Handle, now: Timestamp) -> Result<Self, Fenced> {
        self.authorize(grant, now)?;
        self.state = ExecutionState::Running;
        self.recovering = false;
        self.handle = Some(handle);
        self.started_at = Some(self.started_at.unwrap_or(now));
        self.deadline_at = Some(self.deadline_at.unwrap_or(now.after(self.remaining(now))));
        self.lease = Some(Lease::taken(grant.owner, now));
        Ok(self)
    }

    /// Says where it works, with the pin that lets it begin.
    #[must_use]
    pub fn placed(mut self, workspace: Option<Arc<Workspace>>) -> Self {
        self.workspace = workspace;
        self
    }

    /// What is left of its time at `now`: all that earlier turns left, until its own is running.
    pub fn remaining(&self, now: Timestamp) -> Duration {
        self.deadline_at.map_or(self.timeout.saturating_sub(self.turn.used), |at| at.since(now))
    }

    /// Extends the lease.
    ///
    /// # Errors
    /// [`Fenced`] when the grant has no authority; a lost lease cannot be renewed.
    pub fn renew(mut self, grant: Grant, now: Timestamp) -> Result<Self, Fenced> {
        self.authorize(grant, now)?;
        self.lease = Some(Lease::taken(grant.owner, now));
        Ok(self)
    }

    /// Stores the outcome and releases the lease. The Execution stays nonterminal until it is settled.
    ///
    /// # Errors
    /// [`Fenced`] when the grant has no authority.
    pub fn record(mut self, grant: Grant, outcome: Outcome, now: Timestamp) -> Result<Self, Fenced> {
        self.authorize(grant, now)?;
        self.state = ExecutionState::Running;
        self.recovering = false;
        self.outcome = Some(outcome);
        self.lease = None;
        // It stands in the result now.
        self.toolbelt.declared = Declared::default();
        Ok(self)
    }

    /// Ends an Execution whose outcome is stored.
    ///
    /// # Panics
    /// When no outcome is stored: [`Self::record`] comes first, in the same transaction or an earlier one.
    pub fn settle(mut self, now: Timestamp) -> Result<Self, Fenced> {
        if self.state.is_terminal() {
            return Err(Fenced::Ended);
        }
        let outcome = self.outcome.expect("an outcome is recorded before it is settled");
        self.state = outcome.state();
        self.lease = None;
        self.recovering = false;
        self.ended_at = Some(now);
        Ok(self)
    }

    /// Parks an Execution whose turn ended in a Wait. What is left of its time is kept for the next turn.
    ///
    /// # Panics
    /// When its outcome is not that: [`Self::record`] comes first, in the same transaction.
    #[must_use]
    pub fn park(mut self, now: Timestamp) -> Self {
        assert_eq!(self.outcome, Some(Outcome::Waiting), "{}: only a turn that waits is parked", self.id);
        assert!(!self.state.is_terminal(), "{}: what ended is not parked", self.id);
        self.turn.used = self.timeout.saturating_sub(self.remaining(now));
        self.turn.session = self.handle.take();
        self.state = ExecutionState::Parked;
        self.outcome = None;
        self.lease = None;
        self.deadline_at = None;
        self
    }

    /// Claims a parked Execution for its next turn, at a higher epoch.
    ///
    /// # Errors
    /// [`Fenced::Ended`] when it has ended, and [`Fenced::Owner`] when it is not parked: somebody else was first.
    pub fn resume(
        mut self,
        owner: crate::id::Incarnation,
        by: Resumption,
        now: Timestamp,
    ) -> Result<Self, Fenced> {
        match self.state {
            ExecutionState::Parked => {}
            ExecutionState::Launching | ExecutionState::Running => return Err(Fenced::Owner),
            ExecutionState::Completed
            | ExecutionState::Handoff
            | ExecutionState::Waiting
            | ExecutionState::Failed
            | ExecutionState::Cancelled => return Err(Fenced::Ended),
        }
        self.state = ExecutionState::Launching;
        self.epoch = self.epoch.next();
        self.lease = Some(Lease::taken(owner, now));
        self.toolbelt = Toolbelt::default();
        self.turn.number += 1;
        self.turn.cause = by.cause;
        self.turn.resumed_by = Some(by.winner);
        self.turn.let_through = by.let_through;
        self.turn.reports = 0;
        Ok(self)
    }

    /// Claims an Execution whose lease is over, at a higher epoch, to find out what became of it.
    ///
    /// # Errors
    /// [`RecoverRefusal`] when there is nothing to recover.
    pub fn recover(mut self, owner: crate::id::Incarnation, now: Timestamp) -> Result<Self, RecoverRefusal> {
        if self.state.is_terminal() {
            return Err(RecoverRefusal::Ended);
        }
        if self.state == ExecutionState::Parked {
            return Err(RecoverRefusal::Parked);
        }
        if self.outcome.is_some() {
            return Err(RecoverRefusal::Settling);
        }
        if self.lease.is_some_and(|lease| lease.is_live(now)) {
            return Err(RecoverRefusal::Live);
        }
        self.epoch = self.epoch.next();
        self.lease = Some(Lease::taken(owner, now));
        self.toolbelt.token = None;
        self.recovering = true;
        Ok(self)
    }

    /// Confirms an adoption: the executor found what it started, and the attempt goes on. It keeps the
    /// deadline it had; one that was lost before it could be pinned gets its deadline now.
    ///
    /// # Errors
    /// [`Fenced`] when the grant has no authority.
    pub fn adopt(mut self, grant: Grant, now: Timestamp) -> Result<Self, Fenced> {
        self.authorize(grant, now)?;
        self.state = ExecutionState::Running;
        self.recovering = false;
        self.started_at = Some(self.started_at.unwrap_or(now));
        self.deadline_at = Some(self.deadline_at.unwrap_or(now.after(self.remaining(now))));
        self.lease = Some(Lease::taken(grant.owner, now));
        Ok(self)
    }

    /// Confirms that nothing was started, so the same attempt may be launched again.
    ///
    /// # Errors
    /// [`Fenced`] when the grant has no authority.
    pub fn relaunch(mut self, grant: Grant, now: Timestamp) -> Result<Self, Fenced> {
        self.authorize(grant, now)?;
        self.state = ExecutionState::Launching;
        self.recovering = false;
        self.handle = None;
        self.deadline_at = None;
        self.started_at = self.started_at.filter(|_earlier| self.turn.number > 1);
        self.lease = Some(Lease::taken(grant.owner, now));
        Ok(self)
    }

    /// Takes all authority away and ends the Execution, whoever holds it.
    ///
    /// # Errors
    /// [`Fenced::Ended`] when it has ended.
    pub fn cancel(mut self, now: Timestamp) -> Result<Self, Fenced> {
        if self.state.is_terminal() {
            return Err(Fenced::Ended);
        }
        self.unstopped = self.outcome.is_none() && self.state != ExecutionState::Parked;
        self.state = ExecutionState::Cancelled;
        self.lease = None;
        self.recovering = false;
        self.ended_at = Some(now);
        Ok(self)
    }

    /// Takes all authority away and ends the Execution for an Event. Its Work goes on.
    ///
    /// # Errors
    /// [`Fenced::Ended`] when it has ended, or its outcome is known: that stands.
    pub fn interrupt(self, event: EventId, now: Timestamp) -> Result<Self, Fenced> {
        if self.outcome.is_some() {
            return Err(Fenced::Ended);
        }
        let mut ended = self.cancel(now)?;
        ended.interrupted_by = Some(event);
        Ok(ended)
    }

    /// The grant of the lease in force.
    pub fn grant(&self) -> Option<Grant> {
        self.lease.map(|lease| Grant { owner: lease.owner, epoch: self.epoch })
    }

    /// Holds what must be true of every Execution, before it is written and after it is read.
    ///
    /// # Panics
    /// When the record contradicts itself.
    pub fn check(&self) {
        let id = self.id;
        assert!(self.attempt >= Attempt::FIRST && self.epoch >= Epoch::FIRST, "{id}: counters begin at one");
        assert_eq!(self.state.is_terminal(), self.ended_at.is_some(), "{id}: an end has a time");
        assert!(!(self.state.is_terminal() && self.lease.is_some()), "{id}: an end releases the lease");
        match self.state {
            ExecutionState::Launching | ExecutionState::Running => {
                assert_eq!(self.lease.is_none(), self.outcome.is_some(), "{id}: a lease until an outcome");
            }
            ExecutionState::Parked => {
                let rests = self.lease.is_none() && self.outcome.is_none() && self.handle.is_none();
                assert!(rests && self.deadline_at.is_none(), "{id}: nothing of what is parked is going on");
            }
            ExecutionState::Completed
            | ExecutionState::Handoff
            | ExecutionState::Waiting
            | ExecutionState::Failed
            | ExecutionState::Cancelled => {}
        }
        assert!(self.turn.number >= 1 && self.turn.reports >= 0, "{id}: turns count from one");
        assert_eq!(self.turn.number > 1, self.turn.resumed_by.is_some(), "{id}: a wake begins a later turn");
        assert!(
            self.content == Content::Kept || self.state.is_terminal(),
            "{id}: only what ended loses content"
        );
        assert!(!self.unstopped || self.state.is_terminal(), "{id}: only what ended can be left unstopped");
        assert!(!self.recovering || self.lease.is_some(), "{id}: recovery holds a lease");
        let interrupted = self.interrupted_by.is_some();
        assert!(!interrupted || self.state == ExecutionState::Cancelled, "{id}: an interruption cancels");
    }
}

#[cfg(test)]
mod tests;
