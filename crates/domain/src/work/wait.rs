//! What waiting makes of a Work, and what holds one.

use super::{Queue, Work, WorkRefusal, WorkState};
use crate::id::{ExecutionId, Sequence, WaitId};
use crate::retry::Eligibility;
use crate::time::Timestamp;

/// Why a Work is kept from starting, until an operator releases it. It is no state: input queues meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// What kind of reason it is.
    pub because: HoldReason,
    /// The reason in words, without a payload.
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
}

/// What kind of reason a [`Hold`] has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HoldReason {
    /// The Event that a Wait's end needs was refused by the bounds of its chain.
    WakeRefused,
    /// A budget is used up.
    Budget,
    /// A start gate holds its first attempt.
    Gate,
}

impl HoldReason {
    /// Every reason.
    pub const ALL: [Self; 3] = [Self::WakeRefused, Self::Budget, Self::Gate];

    /// The stable word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WakeRefused => "wake_refused",
            Self::Budget => "budget",
            Self::Gate => "gate",
        }
    }

    /// Whether it is asked about again at every start, so that a release has to let one through.
    const fn is_asked_at_starts(self) -> bool {
        match self {
            Self::WakeRefused => false,
            Self::Budget | Self::Gate => true,
        }
    }
}

impl Work {
    /// Goes on with the parked attempt that a wake was for.
    ///
    /// # Errors
    /// [`WorkRefusal`] as [`Self::claim`], and where no parked attempt goes on.
    pub fn resume(mut self) -> Result<(Self, ExecutionId), WorkRefusal> {
        self.require_startable()?;
        let Eligibility::Woken { resumes: Some(execution), .. } = self.eligibility else {
            return Err(WorkRefusal::NotParked);
        };
        self.state = WorkState::Running { execution };
        self.queue = Queue::Idle;
        self.eligibility = Eligibility::Clear;
        self.let_through = false;
        Ok((self.bumped(), execution))
    }

    /// Ends its Wait: the Event at `event` won. What kept an earlier end of the same Wait from it is over.
    ///
    /// # Errors
    /// [`WorkRefusal::NotWaiting`] when it waits for nothing or for something else, so that a Wait ends once.
    pub fn wake(
        mut self,
        wait: WaitId,
        event: Sequence,
        resumes: Option<ExecutionId>,
        now: Timestamp,
    ) -> Result<Self, WorkRefusal> {
        match self.state {
            WorkState::Waiting { wait: current } if current == wait => {}
            WorkState::Waiting { .. } | WorkState::Ready | WorkState::Running { .. } => {
                return Err(WorkRefusal::NotWaiting);
            }
            WorkState::Completed | WorkState::Failed | WorkState::Cancelled => return Err(self.terminal()),
        }
        self.state = WorkState::Ready;
        self.eligibility = Eligibility::Woken { wait, event, resumes };
        self.hold = self.hold.filter(|hold| match hold.because {
            HoldReason::WakeRefused => false,
            HoldReason::Budget | HoldReason::Gate => true,
        });
        self.queue = self.queue_for_input();
        self.queued_at = now;
        Ok(self.bumped())
    }

    /// Keeps it from starting until it is released. An earlier reason is replaced.
    ///
    /// # Errors
    /// [`WorkRefusal::Terminal`] when it has ended.
    pub fn hold(mut self, hold: Hold) -> Result<Self, WorkRefusal> {
        if self.state.is_terminal() {
            return Err(self.terminal());
        }
        self.hold = Some(hold);
        self.let_through = false;
        if self.queue != Queue::Idle {
            self.queue = self.queue_for_input();
        }
        Ok(self.bumped())
    }

    /// Lets it go on, on an operator's word. Where a budget or a gate held it, one turn is let through.
    ///
    /// # Errors
    /// [`WorkRefusal`] when it has ended or is not held.
    pub fn release(mut self, now: Timestamp) -> Result<Self, WorkRefusal> {
        if self.state.is_terminal() {
            return Err(self.terminal());
        }
        let Some(hold) = self.hold.take() else { return Err(WorkRefusal::NotHeld) };
        self.let_through |= hold.because.is_asked_at_starts();
        Ok(self.unheld(now))
    }

    /// Ends its hold because what held it is over, such as a budget that was raised. No turn is let through.
    ///
    /// # Errors
    /// [`WorkRefusal::NotHeld`] when it is not held for `because`, or has ended.
    pub fn lift(mut self, because: HoldReason, now: Timestamp) -> Result<Self, WorkRefusal> {
        if self.hold.as_ref().is_none_or(|hold| hold.because != because) {
            return Err(WorkRefusal::NotHeld);
        }
        self.hold = None;
        Ok(self.unheld(now))
    }

    fn unheld(mut self, now: Timestamp) -> Self {
        if self.queue != Queue::Idle {
            self.queue = self.queue_for_input();
            self.queued_at = now;
        }
        self.bumped()
    }
}
