//! Moments and spans in words. Lists say how long ago, details say when.

use std::time::Duration;

use domain::time::Timestamp;

/// What is more recent than this is not worth a number.
const JUST_NOW: Duration = Duration::from_secs(2);
const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// How long ago `at` was: `just now`, `12 s ago`, `3 min ago`, `2 h ago`, `5 days ago`. What lies ahead is
/// `in 3 min`. A text that is no moment stays as it is.
pub(crate) fn ago(at: &str, now: Timestamp) -> String {
    let Ok(moment) = Timestamp::parse(at) else { return at.to_owned() };
    let (past, future) = (now.since(moment), moment.since(now));
    if past.max(future) < JUST_NOW {
        "just now".to_owned()
    } else if future > Duration::ZERO {
        format!("in {}", rough(future))
    } else {
        format!("{} ago", rough(past))
    }
}

/// A moment to the second: `2026-11-30 13:56:17 UTC`. A text that is no moment stays as it is.
pub(crate) fn absolute(at: &str) -> String {
    match Timestamp::parse(at) {
        Ok(moment) => {
            let text = Timestamp::from_micros(moment.as_seconds() * 1_000_000).to_string();
            text.replacen('T', " ", 1).replacen('Z', " UTC", 1)
        }
        Err(_other) => at.to_owned(),
    }
}

/// The time of day of a moment: `13:56:17`.
pub(crate) fn of_day(at: &str) -> String {
    absolute(at).split(' ').nth(1).unwrap_or(at).to_owned()
}

/// How long it took from one moment to another, when both are known.
pub(crate) fn between(from: Option<&str>, to: Option<&str>) -> Option<Duration> {
    let moment = |text: Option<&str>| text.and_then(|text| Timestamp::parse(text).ok());
    Some(moment(to)?.since(moment(from)?))
}

/// A span in its two largest units: `40 ms`, `1.3 s`, `3 min 20 s`, `2 h 5 min`, `3 days 4 h`.
pub(crate) fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0 => format!("{} ms", span.as_millis()),
        1..10 => format!("{seconds}.{} s", span.subsec_millis() / 100),
        10..MINUTE => format!("{seconds} s"),
        MINUTE..HOUR => two((seconds / MINUTE, "min"), (seconds % MINUTE, "s")),
        HOUR..DAY => two((seconds / HOUR, "h"), (seconds % HOUR / MINUTE, "min")),
        DAY.. => two((seconds / DAY, days(seconds / DAY)), (seconds % DAY / HOUR, "h")),
    }
}

/// A span in its largest unit.
fn rough(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..MINUTE => format!("{seconds} s"),
        MINUTE..HOUR => format!("{} min", seconds / MINUTE),
        HOUR..DAY => format!("{} h", seconds / HOUR),
        DAY.. => format!("{} {}", seconds / DAY, days(seconds / DAY)),
    }
}

const fn days(number: u64) -> &'static str {
    if number == 1 { "day" } else { "days" }
}

fn two(large: (u64, &str), small: (u64, &str)) -> String {
    if small.0 == 0 {
        format!("{} {}", large.0, large.1)
    } else {
        format!("{} {} {} {}", large.0, large.1, small.0, small.1)
    }
}

#[cfg(test)]
mod tests {
    use super::{absolute, ago, between, of_day, span};
    use domain::time::Timestamp;
    use std::time::Duration;

    #[test]
    fn ago_is_one_unit() {
        let now = Timestamp::parse("2026-03-10T12:00:00Z").unwrap();
        for (at, expect) in [
            ("2026-03-10T11:59:59Z", "just now"),
            ("2026-03-10T11:59:48Z", "12 s ago"),
            ("2026-03-10T11:57:00Z", "3 min ago"),
            ("2026-03-10T10:00:01Z", "1 h ago"),
            ("2026-03-09T12:00:00Z", "1 day ago"),
            ("2026-03-01T12:00:00Z", "9 days ago"),
            ("2026-03-10T12:03:00Z", "in 3 min"),
            ("soon", "soon"),
        ] {
            assert_eq!(ago(at, now), expect);
        }
    }

    #[test]
    fn moments_are_shown_to_the_second() {
        assert_eq!(absolute("2026-03-10T12:00:00.123456Z"), "2026-03-10 12:00:00 UTC");
        assert_eq!(of_day("2026-03-10T12:00:00.9Z"), "12:00:00");
        assert_eq!(absolute("soon"), "soon");
        assert_eq!(of_day("soon"), "soon");
    }

    #[test]
    fn span_has_at_most_two_units() {
        for (millis, expect) in [
            (40, "40 ms"),
            (1_340, "1.3 s"),
            (12_900, "12 s"),
            (200_000, "3 min 20 s"),
            (180_000, "3 min"),
            (7_500_000, "2 h 5 min"),
            (273_600_000, "3 days 4 h"),
            (86_400_000, "1 day"),
        ] {
            assert_eq!(span(Duration::from_millis(millis)), expect);
        }
    }

    #[test]
    fn between_needs_both_ends() {
        let (from, to) = (Some("2026-03-10T12:00:00Z"), Some("2026-03-10T12:00:02.5Z"));
        assert_eq!(between(from, to), Some(Duration::from_millis(2500)));
        assert_eq!(between(from, None), None);
        assert_eq!(between(to, from), Some(Duration::ZERO));
    }
}
