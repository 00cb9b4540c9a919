//! When a job runs by time: at wall-clock times, or every so many minutes; and how late it may still run.

use std::fmt;
use std::time::Duration;

use extension::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::cron::{Cron, CronError};
use crate::slot::Pattern;
use crate::zone::{Zone, ZoneError};

/// The most minutes between two runs of an interval: a year.
pub const EVERY_MINUTES_MAX: u32 = 366 * 24 * 60;
/// How late a slot may still run when a job says nothing. A slot that is exactly that late does not.
pub const CATCH_UP: Duration = Duration::from_hours(6);
/// How late a slot may be when nothing is caught up: a firing never comes at the very moment.
pub const CATCH_UP_NONE: Duration = Duration::from_mins(1);
/// The longest that a job may set.
pub const CATCH_UP_MAX: Duration = Duration::from_hours(31 * 24);

/// When a job runs by time. Two are the same when they mean the same, however they are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub enum Timing {
    /// At the slots of a pattern, read in a zone. Times of day are read in UTC.
    Slots(Pattern, Zone),
    /// Every so many minutes, on a grid that the first run sets.
    Every(u32),
}

impl Timing {
    /// The first moment after `now` at which it would run if it ran at `now`; none when it never does.
    pub fn next(&self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Slots(pattern, zone) => pattern.next(zone, now).map(|slot| slot.at),
            Self::Every(minutes) => Some(now.after(interval(*minutes))),
        }
    }
}

/// The time between two runs of an interval.
pub(crate) fn interval(minutes: u32) -> Duration {
    Duration::from_mins(u64::from(minutes))
}

/// In words: `every hour`, `daily at 05:17 UTC`, `0 9 * * * in Europe/London`.
impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slots(Pattern::Cron(cron), zone) => write!(f, "{cron} in {}", zone.name()),
            Self::Slots(Pattern::Daily(minutes), zone) => {
                write!(f, "daily at {} {}", clocks(minutes).join(", "), zone.name())
            }
            Self::Every(1) => f.write_str("every minute"),
            Self::Every(60) => f.write_str("every hour"),
            Self::Every(minutes) if minutes % 60 == 0 => write!(f, "every {} hours", minutes / 60),
            Self::Every(minutes) => write!(f, "every {minutes} minutes"),
        }
    }
}

/// How late a slot may still run: strictly less than this after its moment, in real elapsed time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatchUp(Duration);

impl CatchUp {
    /// Reads `none`, or a number with `s`, `m`, `h` or `d`, from a minute to 31 days.
    ///
    /// # Errors
    /// [`CatchUpError`].
    pub fn parse(text: &str) -> Result<Self, CatchUpError> {
        if text == "none" {
            return Ok(Self(CATCH_UP_NONE));
        }
        let (digits, unit) = text.split_at(text.len() - text.chars().next_back().map_or(0, char::len_utf8));
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 60 * 60,
            "d" => 24 * 60 * 60,
            _other => return Err(CatchUpError),
        };
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = is_number.then(|| digits.parse::<u64>().ok()).flatten().ok_or(CatchUpError)?;
        let length = Duration::from_secs(number.checked_mul(seconds).ok_or(CatchUpError)?);
        if length < CATCH_UP_NONE || length > CATCH_UP_MAX { Err(CatchUpError) } else { Ok(Self(length)) }
    }

    /// The end of the time in which a slot may run, exclusive.
    pub fn until(self, slot: Timestamp) -> Timestamp {
        slot.after(self.0)
    }

    /// Whether a slot may run at a moment at or after it.
    pub fn reaches(self, slot: Timestamp, now: Timestamp) -> bool {
        now < self.until(slot)
    }
}

impl Default for CatchUp {
    fn default() -> Self {
        Self(CATCH_UP)
    }
}

/// The text is no time to catch up in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("must be `none`, or a time such as `30m`, `6h` or `2d`, from one minute to 31 days")]
pub struct CatchUpError;

/// Reads a time of day as `HH:MM`, as a minute from 0 to 1439.
pub fn clock(text: &str) -> Option<u16> {
    let (hour, minute) = text.split_once(':')?;
    let two = |digits: &str| {
        let is_two = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_two.then(|| digits.parse::<u16>().ok()).flatten()
    };
    let (hour, minute) = (two(hour)?, two(minute)?);
    (hour < 24 && minute < 60).then_some(hour * 60 + minute)
}

fn clocks(minutes: &[u16]) -> Vec<String> {
    minutes.iter().map(|minute| format!("{:02}:{:02}", minute / 60, minute % 60)).collect()
}

/// A timing as it is stored and configured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    every_minutes: Option<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    at: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cron: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    time_zone: Option<String>,
}

impl From<Timing> for Written {
    fn from(timing: Timing) -> Self {
        match timing {
            Timing::Every(minutes) => Self { every_minutes: Some(minutes), ..Self::default() },
            Timing::Slots(Pattern::Daily(minutes), _utc) => Self { at: clocks(&minutes), ..Self::default() },
            Timing::Slots(Pattern::Cron(cron), zone) => Self {
                cron: Some(cron.as_str().to_owned()),
                time_zone: Some(zone.name().to_owned()),
                ..Self::default()
            },
        }
    }
}

/// What is stored is no timing: another version wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WrittenError {
    /// The expression is wrong.
    #[error("the stored expression is not right")]
    Cron(#[source] CronError),
    /// The zone is not known.
    #[error("the stored time zone is not known")]
    Zone(#[source] ZoneError),
    /// Something else is.
    #[error("the stored timing is none of an expression, times of day and an interval")]
    Form,
}

impl TryFrom<Written> for Timing {
    type Error = WrittenError;

    fn try_from(written: Written) -> Result<Self, WrittenError> {
        match (written.every_minutes, written.at.as_slice(), written.cron) {
            (Some(minutes @ 1..=EVERY_MINUTES_MAX), [], None) => Ok(Self::Every(minutes)),
            (None, [], Some(cron)) => {
                let zone = written.time_zone.as_deref().unwrap_or_default();
                let cron = Cron::parse(&cron).map_err(WrittenError::Cron)?;
                Ok(Self::Slots(Pattern::Cron(cron), Zone::named(zone).map_err(WrittenError::Zone)?))
            }
            (None, [_, ..], None) => {
                let minutes: Option<Vec<u16>> = written.at.iter().map(|text| clock(text)).collect();
                Ok(Self::Slots(Pattern::Daily(minutes.ok_or(WrittenError::Form)?), Zone::utc()))
            }
            _other => Err(WrittenError::Form),
        }
    }
}
