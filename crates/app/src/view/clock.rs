//! Moments as a reader in a time zone sees them: to the second today, with the day before that.

use domain::time::Timestamp;
use jiff::tz::TimeZone;
use jiff::{Timestamp as Instant, ZonedDateTime};

use super::time;

/// Says moments in one zone, at one now.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    zone: TimeZone,
    now: Timestamp,
}

/// A moment in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Moment {
    /// For a machine: RFC 3339.
    pub(crate) iso: String,
    /// `14:12:09` today, `Wed 16:20` within a week, else `12 Oct 16:20`, with the year when it is another.
    pub(crate) at: String,
    /// `20 min ago`.
    pub(crate) ago: String,
    /// Everything: `2026-10-22 14:12:09 Europe/Berlin`.
    pub(crate) full: String,
}

impl Clock {
    /// A clock of a zone.
    pub(crate) const fn new(zone: TimeZone, now: Timestamp) -> Self {
        Self { zone, now }
    }

    /// Now.
    pub(crate) const fn now(&self) -> Timestamp {
        self.now
    }

    /// The zone in words: `Europe/Berlin, UTC+2`.
    pub(crate) fn zone(&self) -> String {
        let name = self.zone.iana_name().unwrap_or("UTC");
        if name == "UTC" {
            return name.to_owned();
        }
        let offset = self.zoned(self.now).map_or(0, |now| now.offset().seconds());
        let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs() / 60);
        match minutes % 60 {
            0 => format!("{name}, UTC{sign}{}", minutes / 60),
            odd => format!("{name}, UTC{sign}{}:{odd:02}", minutes / 60),
        }
    }

    /// A moment that the wire wrote. A text that is no moment stays as it is.
    pub(crate) fn moment(&self, iso: &str) -> Moment {
        let parsed = Timestamp::parse(iso).ok();
        let at = parsed.and_then(|at| self.zoned(at)).zip(self.zoned(self.now));
        let (at, full) = match at {
            Some((at, now)) => (short(&at, &now), at.strftime("%Y-%m-%d %H:%M:%S %Z").to_string()),
            None => (iso.to_owned(), iso.to_owned()),
        };
        Moment { iso: iso.to_owned(), at, ago: time::ago(iso, self.now), full }
    }

    /// A moment in the zone; none when it lies outside the calendar.
    pub(crate) fn zoned(&self, at: Timestamp) -> Option<ZonedDateTime> {
        Some(Instant::from_microsecond(at.as_micros()).ok()?.to_zoned_datetime(self.zone.clone()))
    }
}

fn short(at: &ZonedDateTime, now: &ZonedDateTime) -> String {
    let days = at.date().until(now.date()).map_or(i32::MAX, |span| span.get_days());
    let format = match days {
        0 => "%H:%M:%S",
        1..7 => "%a %H:%M",
        _other if at.year() == now.year() => "%-d %b %H:%M",
        _other => "%-d %b %Y, %H:%M",
    };
    at.strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use domain::time::Timestamp;
    use jiff::tz::TimeZone;

    use super::Clock;

    fn clock(zone: &str) -> Clock {
        let now = Timestamp::parse("2026-10-22T12:32:00Z").unwrap();
        Clock::new(TimeZone::get(zone).unwrap(), now)
    }

    #[test]
    fn a_moment_says_as_much_as_is_needed() {
        let clock = clock("Europe/Berlin");
        for (iso, at) in [
            ("2026-10-22T12:12:09.5Z", "14:12:09"),
            ("2026-10-21T14:20:31Z", "Wed 16:20"),
            ("2026-10-21T22:30:00Z", "00:30:00"),
            ("2026-10-12T14:20:31Z", "12 Oct 16:20"),
            ("2025-12-31T23:30:00Z", "1 Jan 00:30"),
            ("2025-12-31T22:30:00Z", "31 Dec 2025, 23:30"),
            ("2026-10-23T14:20:31Z", "23 Oct 16:20"),
            ("soon", "soon"),
        ] {
            assert_eq!(clock.moment(iso).at, at, "{iso}");
        }
        assert_eq!(clock.moment("2026-10-22T12:12:09Z").full, "2026-10-22 14:12:09 CEST");
    }

    #[test]
    fn a_zone_is_named_with_what_it_is_off_by() {
        assert_eq!(clock("Europe/Berlin").zone(), "Europe/Berlin, UTC+2");
        assert_eq!(clock("Asia/Kolkata").zone(), "Asia/Kolkata, UTC+5:30");
        assert_eq!(clock("America/New_York").zone(), "America/New_York, UTC-4");
        assert_eq!(clock("UTC").zone(), "UTC");
    }
}
