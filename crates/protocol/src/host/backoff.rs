//! How long to wait before a process is started again.

use std::time::Duration;

/// The wait after the first end in a row.
const FIRST: Duration = Duration::from_millis(500);
/// The longest wait.
const LONGEST: Duration = Duration::from_mins(1);
/// A process that answered for this long has started well, and its end is the first one again.
pub(super) const STEADY: Duration = Duration::from_mins(1);

/// The ends of a process that followed one another without a steady time between.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Backoff {
    ends: u32,
}

impl Backoff {
    /// A process has ended after it had answered for `answered`. Says how long to wait: half a second, then twice as
    /// long each time, up to a minute.
    pub(super) fn ended(&mut self, answered: Duration) -> Duration {
        if answered >= STEADY {
            self.ends = 0;
        }
        self.ends = self.ends.saturating_add(1);
        // Seven doublings are past the longest.
        (FIRST * (1 << (self.ends - 1).min(7))).min(LONGEST)
    }

    /// How many ends followed one another.
    pub(super) const fn ends(self) -> u32 {
        self.ends
    }
}

#[cfg(test)]
mod tests {
    use super::{Backoff, Duration, LONGEST, STEADY};

    #[test]
    fn ended_waits_longer_each_time_and_begins_again_after_a_steady_time() {
        let mut backoff = Backoff::default();
        let at_once: Vec<u128> = (0..5).map(|_| backoff.ended(Duration::ZERO).as_millis()).collect();
        assert_eq!(at_once, [500, 1000, 2000, 4000, 8000]);
        for _more in 0..100 {
            assert!(backoff.ended(STEADY.checked_sub(Duration::from_micros(1)).unwrap()) <= LONGEST);
        }
        assert_eq!(backoff.ended(Duration::ZERO), LONGEST);
        assert_eq!(backoff.ended(STEADY), Duration::from_millis(500));
        assert_eq!(backoff.ends(), 1);
    }
}
