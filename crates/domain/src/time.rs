//! Time as a value. Nothing here reads a clock: a transaction carries its own admission time.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A moment, in microseconds since 1970-01-01T00:00:00Z. Arithmetic saturates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Self = Self(0);
    /// Later than any moment that occurs.
    pub const MAX: Self = Self(i64::MAX);

    /// A moment from microseconds since 1970-01-01T00:00:00Z.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970-01-01T00:00:00Z.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Whole seconds since 1970-01-01T00:00:00Z, rounded down.
    pub const fn as_seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// This moment and `after`, or the latest moment when that overflows.
    #[must_use]
    pub fn after(self, after: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(after.as_micros()).unwrap_or(i64::MAX)))
    }

    /// How long it is from `earlier` to this moment; zero when `earlier` is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Reads an RFC 3339 moment.
    ///
    /// # Errors
    /// A message without the text when it is not RFC 3339.
    pub fn parse(text: &str) -> Result<Self, TimestampError> {
        let moment: jiff::Timestamp = text.parse().map_err(|_source| TimestampError)?;
        Ok(Self(moment.as_microsecond()))
    }
}

/// The text is not an RFC 3339 moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a time as RFC 3339 writes it, such as 2026-01-31T09:30:00Z")]
pub struct TimestampError;

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(moment) => write!(f, "{moment}"),
            Err(_out_of_range) => write!(f, "{}us", self.0),
        }
    }
}

/// A source of time. The runtime takes it as an argument, so that a test can be one.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The wall clock. It may step.
    fn wall(&self) -> Timestamp;

    /// Time since some fixed start. It never steps and counts suspended time.
    fn boot(&self) -> Duration;
}

/// How far the wall clock may step back over a restart before the step is recorded instead of clamped.
pub const CLOCK_STEP_CLAMPED_MAX: Duration = Duration::from_secs(5);

/// The moment a store's clock starts at, given the wall clock and the highest moment the store has seen.
///
/// A small step back is clamped, so that order and leases stay sane; a larger one is taken as real and
/// returned as such, because clamping it would stop every timer until the old time comes round again.
pub fn clock_start(wall: Timestamp, highest: Timestamp) -> ClockStart {
    let back = highest.since(wall);
    if back == Duration::ZERO {
        ClockStart { at: wall, stepped_back: None }
    } else if back <= CLOCK_STEP_CLAMPED_MAX {
        ClockStart { at: highest, stepped_back: None }
    } else {
        ClockStart { at: wall, stepped_back: Some(back) }
    }
}

/// See [`clock_start`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockStart {
    /// Where the store's clock begins.
    pub at: Timestamp,
    /// How far the wall clock stands behind the store's highest moment, when that is too far to clamp.
    pub stepped_back: Option<Duration>,
}

#[cfg(test)]
mod tests {
    use super::{Timestamp, clock_start};
    use std::time::Duration;

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Timestamp::MAX.after(Duration::from_secs(1)), Timestamp::MAX);
        assert_eq!(Timestamp::EPOCH.since(Timestamp::MAX), Duration::ZERO);
    }

    #[test]
    fn display_and_parse_agree() {
        let text = "2026-03-29T01:30:00.000001Z";
        assert_eq!(Timestamp::parse(text).unwrap().to_string(), text);
        assert!(Timestamp::parse("yesterday").is_err());
    }

    #[test]
    fn clock_start_clamps_five_seconds_and_no_more() {
        let highest = Timestamp::from_micros(100_000_000);
        let at = |micros| clock_start(Timestamp::from_micros(micros), highest);
        assert_eq!(at(101_000_000).at.as_micros(), 101_000_000);
        assert_eq!(at(95_000_000).at, highest);
        assert_eq!(at(95_000_000).stepped_back, None);
        assert_eq!(at(94_999_999).at.as_micros(), 94_999_999);
        assert_eq!(at(94_999_999).stepped_back, Some(Duration::from_micros(5_000_001)));
    }
}
