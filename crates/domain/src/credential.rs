//! Credentials: accounts that several bindings use, and the usage limits that hold every start by them.
//!
//! An executor whose account is used up says so with its result, whatever the outcome. From then until the account's
//! reset no turn starts by a binding that names the same credential; that clears by itself and needs nobody.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::execution::Execution;
use crate::id::{ExecutionId, WorkId};
use crate::retry::HINT_MAX;
use crate::text::CredentialName;
use crate::time::Timestamp;

/// How long after a reset that is known the next turn starts: clocks differ, and so do limits.
pub const AFTER_RESET: Duration = Duration::from_mins(2);
/// How long a limit holds whose reset is not known.
pub const UNKNOWN_RESET: Duration = Duration::from_mins(30);

/// An executor's word that the account it uses is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UsageLimit {
    /// In how many seconds it is reset, as far as that is known. What is longer than [`HINT_MAX`] is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_in_seconds: Option<u64>,
}

impl UsageLimit {
    /// How long nothing starts by the account: until its reset and a little longer, or a while.
    pub fn wait(self) -> Duration {
        match self.resets_in_seconds.map(Duration::from_secs) {
            Some(reset) if reset <= HINT_MAX.saturating_sub(AFTER_RESET) => reset + AFTER_RESET,
            Some(_) | None => UNKNOWN_RESET,
        }
    }
}

/// What holds every start by a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialHold {
    /// The credential.
    pub credential: CredentialName,
    /// Until when, exclusive.
    pub until: Timestamp,
    /// Since when.
    pub since: Timestamp,
    /// The attempt that said so last.
    pub reported_by: ExecutionId,
}

impl CredentialHold {
    /// Whether it still holds at `now`.
    pub fn is_live(&self, now: Timestamp) -> bool {
        now < self.until
    }
}

/// A start that had to wait for a credential: of an attempt, or of a later turn of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialWait {
    /// The Work.
    pub work: WorkId,
    /// The number of the attempt.
    pub attempt: i64,
    /// The number of the turn.
    pub turn: i64,
    /// The credential.
    pub credential: CredentialName,
    /// Since when.
    pub since: Timestamp,
    /// When it was let go by the reset; none while it waits, and where something else let it go.
    pub until: Option<Timestamp>,
}

impl CredentialWait {
    /// Whether the start waits no longer: it was let go, or the turn has begun.
    pub const fn is_over(&self, execution: &Execution) -> bool {
        self.until.is_some() || self.turn <= execution.turn.number
    }

    /// When it stopped waiting, as far as that is known: where a configuration let a later turn go, it is not.
    pub fn ended(&self, execution: &Execution) -> Option<Timestamp> {
        let began = (self.turn == 1).then_some(execution.claimed_at);
        [self.until, began].into_iter().flatten().min()
    }
}

/// What holds a credential after an attempt has met its limit. Of two resets the later one counts: an account may
/// have several limits.
pub fn limited(
    before: Option<&CredentialHold>,
    credential: &CredentialName,
    limit: UsageLimit,
    (reported_by, now): (ExecutionId, Timestamp),
) -> CredentialHold {
    let before = before.filter(|hold| hold.is_live(now));
    let until = now.after(limit.wait());
    CredentialHold {
        credential: credential.clone(),
        until: before.map_or(until, |hold| hold.until.max(until)),
        since: before.map_or(now, |hold| hold.since),
        reported_by,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{CredentialHold, UNKNOWN_RESET, UsageLimit, limited};
    use crate::id::ExecutionId;
    use crate::text::CredentialName;
    use crate::time::Timestamp;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn limit(seconds: u64) -> UsageLimit {
        UsageLimit { resets_in_seconds: Some(seconds) }
    }

    fn after(before: Option<&CredentialHold>, limit: UsageLimit, now: i64) -> CredentialHold {
        limited(before, &CredentialName::known("claude"), limit, (ExecutionId::from_number(now), at(now)))
    }

    #[test]
    fn a_limit_holds_until_two_minutes_after_its_reset_or_for_half_an_hour() {
        assert_eq!(limit(600).wait(), Duration::from_mins(12));
        assert_eq!(limit(0).wait(), Duration::from_mins(2));
        assert_eq!(UsageLimit::default().wait(), UNKNOWN_RESET);
        assert_eq!(limit(7 * 24 * 3600 - 120).wait(), Duration::from_hours(7 * 24));
        assert_eq!(limit(7 * 24 * 3600).wait(), UNKNOWN_RESET, "nobody is held for longer than that");
        assert_eq!(limit(u64::MAX).wait(), UNKNOWN_RESET);
    }

    #[test]
    fn the_later_of_two_resets_counts_and_a_hold_that_is_over_counts_for_nothing() {
        let first = after(None, limit(600), 1000);
        assert_eq!((first.until, first.since), (at(1720), at(1000)));
        assert!(first.is_live(at(1719)) && !first.is_live(at(1720)), "until is exclusive");
        let sooner = after(Some(&first), limit(0), 1001);
        assert_eq!((sooner.until, sooner.since), (at(1720), at(1000)));
        assert_eq!(sooner.reported_by, ExecutionId::from_number(1001));
        let later = after(Some(&first), limit(900), 1001);
        assert_eq!((later.until, later.since), (at(2021), at(1000)));
        let anew = after(Some(&first), limit(0), 1720);
        assert_eq!((anew.until, anew.since), (at(1840), at(1720)));
    }
}
