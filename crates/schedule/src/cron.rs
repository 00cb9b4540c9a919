//! Cron expressions: the five fields that robfig/cron 3 reads, and no more.
//!
//! | field | values |
//! | --- | --- |
//! | minute | 0-59 |
//! | hour | 0-23 |
//! | day of the month | 1-31 |
//! | month | 1-12 or `jan` to `dec` |
//! | day of the week | 0-6 or `sun` to `sat`; 7 is not Sunday |
//!
//! An item is `*` or `?`, a value, or a range `a-b`, each with an optional `/step`; `n/step` runs to the end of the
//! field. When one of the two day fields is a star both have to match, else one of them is enough. `@yearly`,
//! `@annually`, `@monthly`, `@weekly`, `@daily`, `@midnight` and `@hourly` stand for five fields.

mod parse;
mod walk;

use std::fmt;

pub use parse::CronError;
pub(crate) use walk::Today;

/// A cron expression. Two are the same when they mean the same, however they are written.
#[derive(Debug, Clone)]
pub struct Cron {
    text: String,
    fields: Fields,
}

/// What the five fields hold, as sets of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fields {
    minutes: u64,
    hours: u32,
    /// Days of the month; bit 1 is the first.
    days: u32,
    /// Bit 1 is January.
    months: u16,
    /// Bit 0 is Sunday.
    weekdays: u8,
    /// Whether both day fields have to match.
    both: bool,
}

impl Cron {
    /// Reads an expression.
    ///
    /// # Errors
    /// [`CronError`], which says which field is wrong and what would be right, and does not repeat the text.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        Ok(Self { text: text.to_owned(), fields: parse::parse(text)? })
    }

    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether a day has to match both day fields.
    pub(crate) const fn needs_both_days(&self) -> bool {
        self.fields.both
    }

    /// Whether each of the two day fields holds every day.
    pub(crate) const fn has_every_day(&self) -> bool {
        self.fields.days == u32::MAX << 1 && self.fields.weekdays == 0x7f
    }
}

impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        self.fields == other.fields
    }
}

impl Eq for Cron {}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
