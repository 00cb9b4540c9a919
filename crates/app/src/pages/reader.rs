//! Who reads a page: in which time zone, in which theme.
//!
//! Both are cookies without meaning to anyone else. The script writes the zone, the page of settings the theme.

use domain::time::Timestamp;
use hyper::header::{COOKIE, HeaderMap};
use jiff::tz::TimeZone;

use crate::view::clock::Clock;

/// The cookie that names the zone, such as `Europe/Berlin`.
const ZONE: &str = "conduit-zone";
/// The cookie that names the theme.
pub(super) const THEME: &str = "conduit-theme";
/// The most characters of a zone's name.
const ZONE_LENGTH_MAX: usize = 64;

/// Who reads a page.
#[derive(Debug, Clone)]
pub(crate) struct Reader {
    /// Says moments in the reader's zone.
    pub(crate) clock: Clock,
    /// A theme that was chosen; the system's own when none.
    pub(crate) theme: Option<&'static str>,
}

impl Reader {
    /// Reads the cookies of a request.
    pub(crate) fn of(headers: &HeaderMap, now: Timestamp) -> Self {
        let zone = cookie(headers, ZONE).filter(|name| name.len() <= ZONE_LENGTH_MAX);
        let zone = zone.and_then(|name| TimeZone::get(name).ok()).unwrap_or(TimeZone::UTC);
        let theme = cookie(headers, THEME).and_then(theme);
        Self { clock: Clock::new(zone, now), theme }
    }
}

/// A theme by its name.
pub(super) fn theme(name: &str) -> Option<&'static str> {
    ["light", "dark"].into_iter().find(|known| *known == name)
}

/// The first cookie of a name.
fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let values = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(known, _value)| *known == name).map(|(_name, value)| value)
}

#[cfg(test)]
mod tests {
    use domain::time::Timestamp;
    use hyper::header::{COOKIE, HeaderMap, HeaderValue};

    use super::Reader;

    fn reader(cookies: &'static str) -> Reader {
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, HeaderValue::from_static(cookies));
        Reader::of(&headers, Timestamp::EPOCH)
    }

    #[test]
    fn a_zone_and_a_theme_are_known_or_ignored() {
        let known = reader("a=b; conduit-zone=Europe/Berlin; conduit-theme=dark");
        assert_eq!((known.clock.zone(), known.theme), ("Europe/Berlin, UTC+1".to_owned(), Some("dark")));
        let other = reader("conduit-zone=../etc/passwd; conduit-theme=\"><script>");
        assert_eq!((other.clock.zone(), other.theme), ("UTC".to_owned(), None));
    }
}
