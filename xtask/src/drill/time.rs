//! Moments, as the interface writes them: RFC 3339 in UTC.

use serde_json::Value;

use crate::error::Error;

/// Microseconds since 1970.
pub(super) type Moment = i64;

/// Reads a moment out of an answer.
pub(super) fn moment(text: &Value) -> Result<Moment, Error> {
    let read = text.as_str().and_then(micros);
    read.ok_or_else(|| Error::Drill(format!("{text} is not a moment")))
}

fn micros(text: &str) -> Option<Moment> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let (clock, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut parts = clock.splitn(3, ':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let fraction: i64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    let seconds = ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    Some(seconds * 1_000_000 + fraction)
}

/// Days from 1970 to a date. The year begins in March here, so that a leap day is its last.
const fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let leap_days = year / 4 - year / 100 + year / 400;
    year * 365 + leap_days + (month * 153 + 2) / 5 + day - 719_469
}

#[cfg(test)]
mod tests {
    use super::micros;

    #[test]
    fn micros_reads_what_the_interface_writes() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:00:00.5Z", Some(951_825_600_500_000)),
            ("2026-03-01T12:00:00.123456Z", Some(1_772_366_400_123_456)),
            ("2026-03-01T12:00:00", None),
            ("soon", None),
        ] {
            assert_eq!(micros(text), expected, "{text}");
        }
    }
}
