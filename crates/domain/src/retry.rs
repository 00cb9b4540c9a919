//! Retry: what a failed attempt means for the next one.
//!
//! A failure counts against its Work's budget and arms a [`crate::timer::Timer`]. When that is due the runtime
//! accepts a `core.retry.due` Event, and only that Event, routed while the failure is still the newest, makes
//! the Work eligible again. Input that arrives meanwhile waits; it clears nothing.
//!
//! The failure count is policy and is reset by a success or by an operator. The number of an attempt never is.

use std::time::Duration;

use crate::id::{ExecutionId, Sequence, WaitId};
use crate::time::Timestamp;
use crate::work::Lifecycle;

/// The type of the Event that a retry's timer becomes.
pub const RETRY_DUE: &str = "core.retry.due";
/// The type of the Event by which an operator asks for the next attempt.
pub const RETRY_REQUESTED: &str = "core.retry.requested";

/// The wait after the first failure in a row; the second waits twice as long, the third three times.
const STEP: Duration = Duration::from_mins(5);
/// The longest wait that is not a hint's.
const DELAY_MAX: Duration = Duration::from_hours(1);
/// The longest wait that an executor may ask for: seven days.
pub const HINT_MAX: Duration = Duration::from_hours(7 * 24);

/// What earlier turns mean for the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Eligibility {
    /// Nothing: input starts it.
    #[default]
    Clear,
    /// It waits out a failure. Input queues.
    Backoff {
        /// The attempt that failed. A retry of any earlier one is stale.
        failed: ExecutionId,
        /// When its timer is due.
        due_at: Timestamp,
    },
    /// The wait is over: the next attempt is a retry.
    Due {
        /// The attempt that failed.
        failed: ExecutionId,
        /// The Event that ended the wait. It triggers the next attempt, whatever else is pending.
        event: Sequence,
    },
    /// A Wait has ended: the next turn goes on from there.
    Woken {
        /// The Wait.
        wait: WaitId,
        /// The Event that won. It triggers the next turn, whatever else is pending.
        event: Sequence,
        /// The parked attempt that goes on; none where the next attempt does.
        resumes: Option<ExecutionId>,
    },
    /// It is not tried again by itself. Input queues until an operator asks for the next attempt.
    Exhausted {
        /// The attempt that failed last.
        failed: ExecutionId,
        /// Why there is no further try.
        because: Exhaustion,
    },
    /// Its last attempt was interrupted, and what that had started may still run. Input queues until it is
    /// established that it does not, for nothing may start beside it.
    Stopping {
        /// The attempt that was interrupted.
        interrupted: ExecutionId,
        /// The Event that triggered it, where the next attempt repeats it; none where new input begins that.
        repeats: Option<Sequence>,
    },
}

/// Why a Work is not tried again by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exhaustion {
    /// The failure budget is used up.
    Budget,
    /// The Event that would have ended the wait was refused by its chain's bounds.
    Causal,
}

impl Exhaustion {
    /// The stable word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Budget => "failure_budget",
            Self::Causal => "causal_bounds",
        }
    }
}

impl Eligibility {
    /// Whether input may start an attempt.
    pub const fn admits(self) -> bool {
        match self {
            Self::Clear | Self::Due { .. } | Self::Woken { .. } => true,
            Self::Backoff { .. } | Self::Exhausted { .. } | Self::Stopping { .. } => false,
        }
    }

    /// The attempt that the next one repeats.
    pub const fn failed(self) -> Option<ExecutionId> {
        match self {
            Self::Clear | Self::Woken { .. } | Self::Stopping { .. } => None,
            Self::Backoff { failed, .. } | Self::Due { failed, .. } | Self::Exhausted { failed, .. } => {
                Some(failed)
            }
        }
    }
}

/// What comes after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    /// Nothing by itself, and nothing stands against the next input: standing Work.
    NextInput,
    /// Another try, after a wait.
    Again(Duration),
    /// No further try by itself.
    Exhausted,
    /// The Work fails for good, if nothing else is on its way to it.
    Terminal,
}

/// What a binding says itself about trying again. It holds for standing Work, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnRetry {
    /// How many attempts there may be in a row, the first included.
    pub attempts: u32,
    /// The wait after the first failure, from a second to [`HINT_MAX`]; the second waits twice as long, the third
    /// three times, and none more than an hour unless this is.
    pub backoff: Duration,
}

impl OwnRetry {
    /// The wait after the first failure where a binding names none.
    pub const BACKOFF: Duration = STEP;

    fn delay(self, failures: u32) -> Duration {
        self.backoff.saturating_mul(failures.max(1)).min(self.backoff.max(DELAY_MAX))
    }
}

/// The policy of a scope, with what the binding of the failed attempt says itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// How many failures in a row there may be, the first included.
    pub budget: u32,
    /// Whether using them up fails the Work for good.
    pub terminal: bool,
    /// What the binding says itself.
    pub own: Option<OwnRetry>,
}

/// What comes after the `failures`th failure in a row, this one included.
///
/// Standing Work has no budget unless its binding says so: its next input is its next attempt, and only a hint makes
/// it wait. With one it is tried again as often, and then its next input begins anew. A hint that is zero or longer
/// than [`HINT_MAX`] is no hint, so that nothing is ever tried again at once.
pub fn after_failure(
    lifecycle: Lifecycle,
    failures: u32,
    policy: Policy,
    hint: Option<Duration>,
) -> AfterFailure {
    let hint = hint.filter(|hint| !hint.is_zero() && *hint <= HINT_MAX);
    let usual = |failures| policy.own.map_or_else(|| delay(failures), |own| own.delay(failures));
    match (lifecycle, policy.own) {
        // Spec: RET-14
        (Lifecycle::Standing, Some(own)) => {
            let in_row = failures.saturating_sub(1) % own.attempts.max(1) + 1;
            if in_row < own.attempts {
                AfterFailure::Again(hint.unwrap_or_else(|| own.delay(in_row)))
            } else {
                AfterFailure::NextInput
            }
        }
        (Lifecycle::Standing, None) => hint.map_or(AfterFailure::NextInput, AfterFailure::Again),
        (Lifecycle::Once | Lifecycle::RunOnce, own)
            if failures < own.map_or(policy.budget, |own| own.attempts) =>
        {
            AfterFailure::Again(hint.unwrap_or_else(|| usual(failures)))
        }
        (Lifecycle::Once | Lifecycle::RunOnce, _) if policy.terminal => AfterFailure::Terminal,
        (Lifecycle::Once | Lifecycle::RunOnce, _) => AfterFailure::Exhausted,
    }
}

/// The wait after the `failures`th failure in a row: 5, 10, 15 minutes and so on, at most an hour.
pub fn delay(failures: u32) -> Duration {
    STEP.saturating_mul(failures.max(1)).min(DELAY_MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{AfterFailure, HINT_MAX, OwnRetry, Policy, after_failure, delay};
    use crate::work::Lifecycle;

    fn after(failures: u32, budget: u32) -> AfterFailure {
        after_failure(Lifecycle::Once, failures, Policy { budget, terminal: false, own: None }, None)
    }

    const fn minutes(number: u64) -> AfterFailure {
        AfterFailure::Again(Duration::from_mins(number))
    }

    #[test]
    fn the_usual_budget_waits_five_and_ten_minutes() {
        assert_eq!([after(1, 3), after(2, 3)], [minutes(5), minutes(10)]);
        assert_eq!(after(3, 3), AfterFailure::Exhausted);
    }

    #[test]
    fn a_budget_of_four_also_waits_fifteen() {
        assert_eq!([after(1, 4), after(2, 4), after(3, 4)], [minutes(5), minutes(10), minutes(15)]);
        assert_eq!(after(4, 4), AfterFailure::Exhausted);
        assert_eq!(after(1, 1), AfterFailure::Exhausted);
    }

    #[test]
    fn a_wait_never_grows_past_an_hour() {
        assert_eq!(delay(12), Duration::from_hours(1));
        assert_eq!(delay(u32::MAX), Duration::from_hours(1));
        assert_eq!(delay(0), Duration::from_mins(5), "nothing is tried again at once");
    }

    #[test]
    fn a_hint_is_taken_within_its_bounds() {
        let policy = Policy { budget: 3, terminal: false, own: None };
        let hinted = |seconds| after_failure(Lifecycle::Once, 1, policy, Some(Duration::from_secs(seconds)));
        assert_eq!(hinted(1), AfterFailure::Again(Duration::from_secs(1)));
        assert_eq!(hinted(HINT_MAX.as_secs()), AfterFailure::Again(HINT_MAX));
        assert_eq!(hinted(0), minutes(5));
        assert_eq!(hinted(HINT_MAX.as_secs() + 1), minutes(5));
        let exhausted = after_failure(Lifecycle::Once, 3, policy, Some(Duration::from_secs(1)));
        assert_eq!(exhausted, AfterFailure::Exhausted, "a hint is no budget");
    }

    #[test]
    fn standing_work_waits_only_for_a_hint() {
        let policy = Policy { budget: 1, terminal: true, own: None };
        let standing = |hint| after_failure(Lifecycle::Standing, 9, policy, hint);
        assert_eq!(standing(None), AfterFailure::NextInput);
        assert_eq!(standing(Some(Duration::from_mins(1))), minutes(1));
        assert_eq!(standing(Some(Duration::ZERO)), AfterFailure::NextInput);
    }

    #[test]
    fn a_binding_s_own_retries_hold_for_standing_work_and_begin_anew_with_its_next_input() {
        let own = OwnRetry { attempts: 3, backoff: Duration::from_mins(2) };
        let policy = Policy { budget: 1, terminal: true, own: Some(own) };
        let after = |failures, hint| after_failure(Lifecycle::Standing, failures, policy, hint);
        let row = [after(1, None), after(2, None), after(3, None), after(4, None)];
        assert_eq!(row, [minutes(2), minutes(4), AfterFailure::NextInput, minutes(2)]);
        assert_eq!(after(1, Some(Duration::from_mins(9))), minutes(9));
        assert_eq!(after(3, Some(Duration::from_mins(9))), AfterFailure::NextInput, "a hint is no budget");
        let once = |failures| after_failure(Lifecycle::Once, failures, policy, None);
        assert_eq!([once(2), once(3)], [minutes(4), AfterFailure::Terminal]);
        let single = Policy { own: Some(OwnRetry { attempts: 1, ..own }), ..policy };
        assert_eq!(after_failure(Lifecycle::Standing, 1, single, None), AfterFailure::NextInput);
        let long = OwnRetry { attempts: 9, backoff: Duration::from_hours(2) };
        assert_eq!([long.delay(1), long.delay(5)], [Duration::from_hours(2); 2]);
        assert_eq!(OwnRetry { backoff: Duration::from_mins(25), ..long }.delay(5), Duration::from_hours(1));
    }

    #[test]
    fn exhaustion_is_terminal_only_where_it_is_asked_for() {
        let policy = Policy { budget: 1, terminal: true, own: None };
        for lifecycle in [Lifecycle::Once, Lifecycle::RunOnce] {
            assert_eq!(after_failure(lifecycle, 1, policy, None), AfterFailure::Terminal);
        }
    }
}
