//! Days of the proleptic Gregorian calendar as numbers, with day 0 on 1970-01-01.
//!
//! Only what an evaluator of slots asks millions of times is here; everything else is left to the time library.

/// Minutes of a day.
pub(crate) const DAY_MINUTES: i64 = 24 * 60;

/// A month of a year.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Month {
    pub(crate) year: i64,
    /// 1 is January.
    pub(crate) month: u32,
}

impl Month {
    /// How many days it has.
    pub(crate) const fn days(self) -> u32 {
        match self.month {
            2 if self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _other => 31,
        }
    }

    /// The day number of its first day.
    pub(crate) const fn first_day(self) -> i64 {
        // Years that begin in March have the leap day at their end.
        let year = if self.month <= 2 { self.year - 1 } else { self.year };
        let month = (self.month as i64 + 9) % 12;
        let day_of_year = (153 * month + 2) / 5;
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
    }

    pub(crate) const fn next(self) -> Self {
        if self.month == 12 {
            Self { year: self.year + 1, month: 1 }
        } else {
            Self { year: self.year, month: self.month + 1 }
        }
    }

    pub(crate) const fn previous(self) -> Self {
        if self.month == 1 {
            Self { year: self.year - 1, month: 12 }
        } else {
            Self { year: self.year, month: self.month - 1 }
        }
    }
}

/// The month of a day number, and the day of that month from 1.
pub(crate) const fn date(day: i64) -> (Month, u32) {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + (month <= 2) as i64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a month and a day of one are small"
    )]
    let (month, day_of_month) = (month as u32, day_of_month as u32);
    (Month { year, month }, day_of_month)
}

/// The weekday of a day number; 0 is Sunday.
pub(crate) const fn weekday(day: i64) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "a remainder of seven is small")]
    let weekday = (day + 4).rem_euclid(7) as u32;
    weekday
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan as _;
    use jiff::civil::Date;

    use super::{date, weekday};

    #[test]
    fn days_are_those_of_the_calendar() {
        let epoch = Date::constant(1970, 1, 1);
        for day in (-800_000_i64..2_000_000).step_by(97).chain(19_000..21_000) {
            let expected = epoch.checked_add(day.days()).unwrap();
            let (month, of_month) = date(day);
            assert_eq!(
                (month.year, i64::from(month.month), i64::from(of_month)),
                (i64::from(expected.year()), i64::from(expected.month()), i64::from(expected.day()))
            );
            assert_eq!(month.first_day() + i64::from(of_month) - 1, day);
            assert_eq!(month.days(), u32::try_from(expected.days_in_month()).unwrap());
            assert_eq!(weekday(day), u32::try_from(expected.weekday().to_sunday_zero_offset()).unwrap());
            assert_eq!(month.next().previous(), month);
            assert_eq!(month.next().first_day(), month.first_day() + i64::from(month.days()));
        }
    }
}
