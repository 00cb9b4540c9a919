//! Slots: the moments that a pattern of wall-clock times has in a zone.
//!
//! A time that the clocks skip has no slot. One that they repeat has two moments with one name. A slot's identity
//! is its moment; its name is what the wall clock shows, with the zone that the clock is in.

use std::fmt;

use extension::Timestamp;
use serde::{Deserialize, Serialize};

use crate::calendar::{DAY_MINUTES, date};
use crate::cron::{Cron, Today};
use crate::zone::{Stretch, Zone};

/// How far a slot is looked for, in seconds: 20 years.
const FAR: i64 = 20 * 366 * 24 * 60 * 60;

/// What the wall clock shows at a slot, to the minute, and where.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SlotName {
    /// `2026-10-25 01:30`.
    pub time: String,
    /// The IANA name of the zone.
    pub zone: String,
}

impl fmt::Display for SlotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.time, self.zone)
    }
}

/// A moment of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// The moment, a whole minute of the wall clock.
    pub at: Timestamp,
    /// The wall clock's minute, counted from 1970 on that clock. Two slots of one zone have one name when these
    /// are equal.
    pub minute: i64,
}

impl Slot {
    /// What the wall clock shows, such as `2026-10-25 01:30`.
    pub fn time(&self) -> String {
        let (month, day) = date(self.minute.div_euclid(DAY_MINUTES));
        let minute = self.minute.rem_euclid(DAY_MINUTES);
        let (hour, minute) = (minute / 60, minute % 60);
        format!("{:04}-{:02}-{day:02} {hour:02}:{minute:02}", month.year, month.month)
    }

    /// Its name in the zone it was found in.
    pub fn name(&self, zone: &Zone) -> SlotName {
        SlotName { time: self.time(), zone: zone.name().to_owned() }
    }
}

/// Wall-clock times that come again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// Those of a cron expression.
    Cron(Cron),
    /// The same minutes of every day, ascending, each from 0 to 1439.
    Daily(Vec<u16>),
}

impl Pattern {
    fn first_from(&self, from: i64, today: &mut Today) -> Option<i64> {
        match self {
            Self::Cron(cron) => cron.first_from(from, today),
            Self::Daily(minutes) => {
                let (day, minute) = (from.div_euclid(DAY_MINUTES), from.rem_euclid(DAY_MINUTES));
                let of_day = minutes.iter().map(|minute| i64::from(*minute)).find(|found| *found >= minute);
                match of_day {
                    Some(found) => Some(day * DAY_MINUTES + found),
                    None => minutes.first().map(|first| (day + 1) * DAY_MINUTES + i64::from(*first)),
                }
            }
        }
    }

    fn last_until(&self, from: i64) -> Option<i64> {
        match self {
            Self::Cron(cron) => cron.last_until(from),
            Self::Daily(minutes) => {
                let (day, minute) = (from.div_euclid(DAY_MINUTES), from.rem_euclid(DAY_MINUTES));
                let of_day =
                    minutes.iter().rev().map(|minute| i64::from(*minute)).find(|found| *found <= minute);
                match of_day {
                    Some(found) => Some(day * DAY_MINUTES + found),
                    None => minutes.last().map(|last| (day - 1) * DAY_MINUTES + i64::from(*last)),
                }
            }
        }
    }

    /// Its slots in a zone, strictly after a moment and ascending. It ends where there is none for 20 years.
    pub fn slots<'a>(&'a self, zone: &'a Zone, after: Timestamp) -> Slots<'a> {
        let stretch = zone.stretch_at(after.as_seconds());
        let second = after.as_seconds().clamp(stretch.start, stretch.end);
        let minute = (second + stretch.offset).div_euclid(60) + 1;
        Slots {
            pattern: self,
            zone,
            stretch,
            minute,
            far: second.saturating_add(FAR),
            today: Today::default(),
        }
    }

    /// Its first slot in a zone strictly after a moment; none when there is none for 20 years.
    pub fn next(&self, zone: &Zone, after: Timestamp) -> Option<Slot> {
        self.slots(zone, after).next()
    }

    /// Its last slot in a zone at or before a moment; none when there is none for 20 years.
    pub fn latest(&self, zone: &Zone, until: Timestamp) -> Option<Slot> {
        let mut stretch = zone.stretch_at(until.as_seconds());
        let second = until.as_seconds().clamp(stretch.start, stretch.end);
        let far = second.saturating_sub(FAR);
        let mut from = (second + stretch.offset).div_euclid(60);
        loop {
            let found = self.last_until(from).map(|minute| slot(minute, stretch));
            if let Some(found) = found.filter(|found| found.at.as_seconds() >= stretch.start) {
                return Some(found);
            }
            if stretch.is_first() || stretch.start <= far {
                return None;
            }
            stretch = zone.stretch_at(stretch.start - 1);
            from = (stretch.end - 1 + stretch.offset).div_euclid(60);
        }
    }
}

/// See [`Pattern::slots`].
#[derive(Debug, Clone)]
pub struct Slots<'a> {
    pattern: &'a Pattern,
    zone: &'a Zone,
    stretch: Stretch,
    /// The wall clock's minute to look from.
    minute: i64,
    /// The second after which it is not looked any further.
    far: i64,
    today: Today,
}

impl Iterator for Slots<'_> {
    type Item = Slot;

    fn next(&mut self) -> Option<Slot> {
        let mut found = self.pattern.first_from(self.minute, &mut self.today);
        loop {
            let here = found.map(|minute| slot(minute, self.stretch));
            if let Some(here) = here.filter(|here| here.at.as_seconds() < self.stretch.end) {
                self.minute = here.minute + 1;
                self.far = here.at.as_seconds().saturating_add(FAR);
                return Some(here);
            }
            if self.stretch.is_last() || self.stretch.end >= self.far {
                return None;
            }
            self.stretch = self.zone.stretch_at(self.stretch.end);
            // The first whole minute that the clock shows in the new stretch.
            let first = (self.stretch.start + self.stretch.offset + 59).div_euclid(60);
            if first < self.minute || found.is_some_and(|found| found < first) {
                self.minute = first;
                found = self.pattern.first_from(first, &mut self.today);
            }
        }
    }
}

fn slot(minute: i64, stretch: Stretch) -> Slot {
    let second = minute.saturating_mul(60).saturating_sub(stretch.offset);
    Slot { at: Timestamp::from_micros(second.saturating_mul(1_000_000)), minute }
}
