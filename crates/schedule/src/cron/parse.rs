//! The grammar. Its oddities are those of the parser that schedules were first written for: empty items of a list
//! are left out, what follows a star in a range is not looked at, and numbers may have a plus and leading zeros.

use thiserror::Error;

use super::Fields;

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// A short name and the five fields it stands for.
const DESCRIPTORS: &[(&str, &str)] = &[
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// Why a text is no cron expression. It never repeats the text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CronError {
    /// A zone stands in front.
    #[error("must be five fields without a zone in front; name the zone in `time_zone`")]
    Zone,
    /// It is an interval.
    #[error("`@every` has no time of day; use `every_minutes`")]
    Every,
    /// It names the start of the machine.
    #[error("`@reboot` is no time; a job runs by time, by an event, by a webhook or by hand")]
    Reboot,
    /// It begins with `@` and is none of the names.
    #[error(
        "must be one of @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly, or five fields"
    )]
    Descriptor,
    /// It has more fields or fewer.
    #[error("must be five fields (minute, hour, day of the month, month, day of the week), not {0}")]
    Count(usize),
    /// A field is wrong.
    #[error("the {field} {what}")]
    Field {
        /// Which one.
        field: &'static str,
        /// What is wrong and what would be right.
        what: String,
    },
}

/// One of the five.
struct Field {
    name: &'static str,
    min: u32,
    max: u32,
    /// Three-letter names of its values, from the first on.
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { name: "minute", min: 0, max: 59, names: &[] },
    Field { name: "hour", min: 0, max: 23, names: &[] },
    Field { name: "day of the month", min: 1, max: 31, names: &[] },
    Field { name: "month", min: 1, max: 12, names: MONTHS },
    Field { name: "day of the week", min: 0, max: 6, names: WEEKDAYS },
];

/// What one field holds.
struct Set {
    bits: u64,
    /// Whether a star without a step above one is among its items.
    star: bool,
}

pub(super) fn parse(text: &str) -> Result<Fields, CronError> {
    if text.starts_with("TZ=") || text.starts_with("CRON_TZ=") {
        return Err(CronError::Zone);
    }
    if text.starts_with('@') {
        let found = DESCRIPTORS.iter().find(|(name, _fields)| *name == text);
        return match found {
            Some((_name, fields)) => parse(fields),
            None if text.starts_with("@every") => Err(CronError::Every),
            None if text == "@reboot" => Err(CronError::Reboot),
            None => Err(CronError::Descriptor),
        };
    }
    let written: Vec<&str> = text.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = written.as_slice() else {
        return Err(CronError::Count(written.len()));
    };
    let [minutes, hours, days, months, weekdays] = &FIELDS;
    let (days, weekdays) = (days.read(day)?, weekdays.read(weekday)?);
    let narrow = "a field's bits are within its bounds";
    Ok(Fields {
        minutes: minutes.read(minute)?.bits,
        hours: u32::try_from(hours.read(hour)?.bits).expect(narrow),
        days: u32::try_from(days.bits).expect(narrow),
        months: u16::try_from(months.read(month)?.bits).expect(narrow),
        weekdays: u8::try_from(weekdays.bits).expect(narrow),
        both: days.star || weekdays.star,
    })
}

impl Field {
    fn read(&self, text: &str) -> Result<Set, CronError> {
        let mut set = Set { bits: 0, star: false };
        for item in text.split(',').filter(|item| !item.is_empty()) {
            let item = self.item(item)?;
            set.bits |= item.bits;
            set.star |= item.star;
        }
        Ok(set)
    }

    fn item(&self, text: &str) -> Result<Set, CronError> {
        let mut parts = text.split('/');
        let range = parts.next().unwrap_or_default();
        let step = parts.next();
        if parts.next().is_some() {
            return Err(self.wrong("has an item with two slashes; write `range/step`"));
        }
        let mut ends = range.split('-');
        let first = ends.next().unwrap_or_default();
        let second = ends.next();
        let is_star = first == "*" || first == "?";
        let (start, mut end) = if is_star {
            (self.min, self.max)
        } else {
            if ends.next().is_some() {
                return Err(self.wrong("has an item with two hyphens; write `first-last`"));
            }
            let start = self.value(first)?;
            (start, second.map_or(Ok(start), |second| self.value(second))?)
        };
        let step = step.map(|step| self.step(step)).transpose()?;
        if step.is_some() && second.is_none() {
            end = self.max;
        }
        if start < self.min || end > self.max {
            return Err(self.wrong(&format!("must be from {} to {}", self.min, self.max)));
        }
        if start > end {
            return Err(self.wrong("has a range that ends before it begins; write two ranges"));
        }
        let step = step.unwrap_or(1);
        let bits = (start..=end).step_by(step).fold(0, |bits, value| bits | 1 << value);
        Ok(Set { bits, star: is_star && step == 1 })
    }

    /// A value, by number or name. It may lie outside the bounds.
    fn value(&self, text: &str) -> Result<u32, CronError> {
        if let Some(at) = self.names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
            return Ok(self.min + u32::try_from(at).expect("there are twelve names at most"));
        }
        number(text).ok_or_else(|| {
            let names = if self.names.is_empty() { "" } else { " or three-letter names" };
            self.wrong(&format!(
                "must be `*`, numbers{names} from {} to {}, ranges `first-last` and steps `/n`",
                self.min, self.max
            ))
        })
    }

    fn step(&self, text: &str) -> Result<usize, CronError> {
        let step = number(text).and_then(|step| usize::try_from(step).ok()).filter(|step| *step > 0);
        step.ok_or_else(|| self.wrong("has a step that is no positive number"))
    }

    fn wrong(&self, what: &str) -> CronError {
        CronError::Field { field: self.name, what: what.to_owned() }
    }
}

/// A number with an optional plus, as digits.
fn number(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}
