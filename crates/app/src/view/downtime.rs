//! A time without a daemon, and what the next one found.

use std::time::Duration;

use super::clock::{Clock, Moment};
use super::time;
use crate::api::wire::StartBody;

/// A time without a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Downtime {
    pub(crate) from: Moment,
    pub(crate) until: Moment,
    /// `43 min, killed`.
    pub(crate) how: String,
    /// `adopted 2, launched again 1, interrupted 0`.
    pub(crate) tally: String,
}

impl Downtime {
    /// None when no daemon is known to have been there before.
    pub(crate) fn new(start: &StartBody, clock: &Clock) -> Option<Self> {
        let since = start.down_since.as_deref()?;
        Some(Self {
            from: clock.moment(since),
            until: clock.moment(&start.started_at),
            how: how(start),
            tally: tally(start),
        })
    }
}

/// How long it was, and whether the daemon before had stopped in order.
pub(crate) fn how(start: &StartBody) -> String {
    let long = time::span(Duration::from_secs(start.down_seconds.unwrap_or_default()));
    let long = if start.down_seconds == Some(0) { "less than a second".to_owned() } else { long };
    format!("{long}, {}", if start.stopped { "stopped in order" } else { "not stopped in order" })
}

/// What recovery did with the runs that were live. Runs that had ended meanwhile are named when there were any.
pub(crate) fn tally(start: &StartBody) -> String {
    let mut text = format!("adopted {}, launched again {}", start.adopted, start.relaunched);
    if start.finished > 0 {
        text = format!("{text}, ended meanwhile {}", start.finished);
    }
    format!("{text}, interrupted {}", start.interrupted)
}

#[cfg(test)]
mod tests {
    use domain::time::Timestamp;
    use jiff::tz::TimeZone;

    use super::Downtime;
    use crate::view::clock::Clock;
    use crate::view::sample::start;

    #[test]
    fn a_downtime_says_how_long_and_what_was_found() {
        let clock = Clock::new(TimeZone::UTC, Timestamp::parse("2026-03-10T13:00:00Z").unwrap());
        let shown = Downtime::new(&start(), &clock).unwrap();
        assert_eq!((shown.from.at.as_str(), shown.until.at.as_str()), ("11:17:00", "12:00:00"));
        assert_eq!(shown.how, "43 min, not stopped in order");
        assert_eq!(shown.tally, "adopted 2, launched again 1, interrupted 0");
        let mut quick = start();
        (quick.down_seconds, quick.stopped, quick.finished) = (Some(0), true, 4);
        let shown = Downtime::new(&quick, &clock).unwrap();
        assert_eq!(shown.how, "less than a second, stopped in order");
        assert_eq!(shown.tally, "adopted 2, launched again 1, ended meanwhile 4, interrupted 0");
        quick.down_since = None;
        assert_eq!(Downtime::new(&quick, &clock), None);
    }
}
