//! From one matching wall-clock minute to the next or the one before, as if the clock never changed.

use super::Cron;
use crate::calendar::{DAY_MINUTES, Month, date, weekday};

/// How far is looked for a minute, in months: 20 years. The rarest date there is, 29 February, is never more than
/// eight years away, so an expression without a minute in that time has none.
const MONTHS_MAX: u32 = 20 * 12 + 1;

/// The day that was looked at last, which most often holds the next minute, too.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Today(Option<i64>);

impl Cron {
    /// The first matching minute at or after `from`, both as wall-clock minutes since 1970.
    pub(crate) fn first_from(&self, from: i64, today: &mut Today) -> Option<i64> {
        let (day, minute) = (from.div_euclid(DAY_MINUTES), from.rem_euclid(DAY_MINUTES));
        if today.0 == Some(day)
            && let Some(minute) = self.minute_from(minute)
        {
            return Some(day * DAY_MINUTES + minute);
        }
        let first = self.minute_from(0)?;
        let (mut month, mut of_month) = date(day);
        for _month in 0..MONTHS_MAX {
            let mut days = self.days_of(month) & (u32::MAX << of_month);
            while days != 0 {
                let found = month.first_day() + i64::from(days.trailing_zeros()) - 1;
                let minute = if found == day { self.minute_from(minute) } else { Some(first) };
                if let Some(minute) = minute {
                    *today = Today(Some(found));
                    return Some(found * DAY_MINUTES + minute);
                }
                days &= days - 1;
            }
            (month, of_month) = (month.next(), 1);
        }
        None
    }

    /// The last matching minute at or before `from`, both as wall-clock minutes since 1970.
    pub(crate) fn last_until(&self, from: i64) -> Option<i64> {
        let (day, minute) = (from.div_euclid(DAY_MINUTES), from.rem_euclid(DAY_MINUTES));
        let last = self.minute_until(DAY_MINUTES - 1)?;
        let (mut month, mut of_month) = date(day);
        for _month in 0..MONTHS_MAX {
            let mut days = self.days_of(month) & (u32::MAX >> (31 - of_month));
            while days != 0 {
                let highest = days.ilog2();
                let found = month.first_day() + i64::from(highest) - 1;
                let minute = if found == day { self.minute_until(minute) } else { Some(last) };
                if let Some(minute) = minute {
                    return Some(found * DAY_MINUTES + minute);
                }
                days &= !(1 << highest);
            }
            month = month.previous();
            of_month = month.days();
        }
        None
    }

    /// The days of a month that match; bit 1 is the first.
    fn days_of(&self, month: Month) -> u32 {
        let fields = &self.fields;
        if fields.months >> month.month & 1 == 0 {
            return 0;
        }
        let all = u32::MAX >> (31 - month.days()) & !1;
        let first = weekday(month.first_day());
        let week = u64::from(fields.weekdays);
        // The week turned so that its lowest bit is the month's first day, and then repeated.
        let turned = (week >> first | week << (7 - first)) & 0x7f;
        let repeated = turned | turned << 7 | turned << 14 | turned << 21 | turned << 28;
        let by_weekday = u32::try_from(repeated << 1 & u64::from(u32::MAX)).expect("it was cut to 32 bits");
        let matching = if fields.both { fields.days & by_weekday } else { fields.days | by_weekday };
        matching & all
    }

    /// The first matching minute of a day at or after one.
    fn minute_from(&self, minute: i64) -> Option<i64> {
        let fields = &self.fields;
        let (hour, minute) = split(minute);
        if fields.minutes == 0 {
            return None;
        }
        let rest = fields.minutes >> minute;
        if fields.hours >> hour & 1 == 1 && rest != 0 {
            return Some(join(hour, minute + rest.trailing_zeros()));
        }
        let later = fields.hours & (u32::MAX << hour << 1);
        (later != 0).then(|| join(later.trailing_zeros(), fields.minutes.trailing_zeros()))
    }

    /// The last matching minute of a day at or before one.
    fn minute_until(&self, minute: i64) -> Option<i64> {
        let fields = &self.fields;
        let (hour, minute) = split(minute);
        if fields.minutes == 0 {
            return None;
        }
        let rest = fields.minutes & (u64::MAX >> (63 - minute));
        if fields.hours >> hour & 1 == 1 && rest != 0 {
            return Some(join(hour, rest.ilog2()));
        }
        let earlier = fields.hours & !(u32::MAX << hour);
        (earlier != 0).then(|| join(earlier.ilog2(), fields.minutes.ilog2()))
    }
}

fn split(minute: i64) -> (u32, u32) {
    let minute = u32::try_from(minute).expect("a minute of a day is not negative");
    (minute / 60, minute % 60)
}

fn join(hour: u32, minute: u32) -> i64 {
    i64::from(hour * 60 + minute)
}
