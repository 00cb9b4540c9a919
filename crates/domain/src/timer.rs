//! Timers: durable future acceptances.
//!
//! A timer that is due becomes an Event with an identity of its own, accepted like any other. Nothing happens
//! by a clock alone: what acts is the Event. One kind only looks again at what holds a Work, which starts nothing that
//! input did not ask for, and becomes none.

use crate::id::{ExecutionId, TimerId, WaitId, WorkId};
use crate::text::ScopeName;
use crate::time::Timestamp;

/// What a timer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimerKind {
    /// The wait after a failed attempt. It becomes [`crate::retry::RETRY_DUE`].
    Retry {
        /// The attempt that failed.
        failed: ExecutionId,
    },
    /// The time that a Wait lasts at most. It becomes [`crate::wait::WAIT_TIMEOUT`].
    Wait {
        /// The Wait.
        wait: WaitId,
    },
    /// The end of the day or week whose budget holds its Work.
    BudgetWindow,
}

impl TimerKind {
    /// The word in API and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Retry { .. } => "retry",
            Self::Wait { .. } => "wait_timeout",
            Self::BudgetWindow => "budget_window",
        }
    }
}

/// An Event to accept at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timer {
    /// Its id.
    pub id: TimerId,
    /// What it is for.
    pub kind: TimerKind,
    /// The scope its Event is accepted in.
    pub scope: ScopeName,
    /// The Work it belongs to.
    pub work: WorkId,
    /// When it was armed.
    pub armed_at: Timestamp,
    /// When it is due, inclusive.
    pub due_at: Timestamp,
}

impl Timer {
    /// The same timer after the clock stepped back past what it waits: it never waits longer than it was armed
    /// for. None when it need not change, as where it is for a time of the calendar.
    #[must_use]
    pub fn rearmed(&self, now: Timestamp) -> Option<Self> {
        match self.kind {
            TimerKind::Retry { .. } | TimerKind::Wait { .. } => {}
            TimerKind::BudgetWindow => return None,
        }
        let delay = self.due_at.since(self.armed_at);
        (self.due_at.since(now) > delay).then(|| Self {
            armed_at: now,
            due_at: now.after(delay),
            ..self.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Timer, TimerKind};
    use crate::id::{ExecutionId, TimerId, WorkId};
    use crate::text::ScopeName;
    use crate::time::Timestamp;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn a_wait_is_never_longer_than_it_was_armed_for() {
        let timer = Timer {
            id: TimerId::from_number(1),
            kind: TimerKind::Retry { failed: ExecutionId::from_number(1) },
            scope: ScopeName::known("main"),
            work: WorkId::from_number(1),
            armed_at: at(1000),
            due_at: at(1300),
        };
        assert_eq!(timer.rearmed(at(1000)), None);
        assert_eq!(timer.rearmed(at(1299)), None);
        assert_eq!(timer.rearmed(at(5000)), None, "one that is overdue is simply due");
        let rearmed = timer.rearmed(at(900)).unwrap();
        assert_eq!((rearmed.armed_at, rearmed.due_at), (at(900), at(1200)));
        let midnight = Timer { kind: TimerKind::BudgetWindow, ..timer };
        assert_eq!(midnight.rearmed(at(900)), None, "a time of the calendar does not move");
    }
}
