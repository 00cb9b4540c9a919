//! Query strings: what a list is narrowed to, and where its next page begins.
//!
//! A parameter that is not known is an error, as is one that comes twice: a filter that is silently ignored
//! shows the wrong rows.

use std::str::FromStr;

use domain::event::Key;
use percent_encoding::percent_decode_str;

use super::failure::Failure;

/// Rows of a page when nothing else is asked for.
const LIMIT: u32 = 50;
/// The most rows of a page.
const LIMIT_MAX: u32 = 200;

/// The parameters of a request.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads a query string.
    ///
    /// # Errors
    /// `bad_request` when it is no text, or names a parameter twice or one that is not in `known`.
    pub(crate) fn read(query: Option<&str>, known: &[&str]) -> Result<Self, Failure> {
        let mut parameters: Vec<(String, String)> = Vec::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            if !known.contains(&name.as_str()) {
                let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
                let listed = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(Failure::bad(format!("a query parameter is not known here; known are {listed}")));
            }
            if parameters.iter().any(|(seen, _value)| *seen == name) {
                return Err(Failure::bad(format!("the query parameter `{name}` is given twice")));
            }
            parameters.push((name, value));
        }
        Ok(Self(parameters))
    }

    /// The parameters of a question that nobody typed.
    pub(crate) fn of(parameters: &[(&str, &str)]) -> Self {
        Self(parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    /// The text of a parameter; none when it is absent or empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let (_name, value) = self.0.iter().find(|(known, _value)| known == name)?;
        (!value.is_empty()).then_some(value)
    }

    /// A parameter as a value of its type.
    ///
    /// # Errors
    /// `bad_request` when it is not one.
    pub(crate) fn parsed<T: FromStr>(&self, name: &str) -> Result<Option<T>, Failure>
    where
        T::Err: std::fmt::Display,
    {
        let parsed = self.text(name).map(str::parse).transpose();
        parsed.map_err(|error: T::Err| Failure::bad(format!("`{name}`: {error}")))
    }

    /// The key in `key_source` and `key_external_id`, or in `key` as people write it: both with a space between.
    ///
    /// # Errors
    /// `bad_request` when only one of them is given, or one is not valid.
    pub(crate) fn key(&self) -> Result<Option<Key>, Failure> {
        if let Some(text) = self.text("key") {
            let halves = text.trim().split_once(' ');
            let (source, external_id) = halves.ok_or_else(|| {
                Failure::bad(
                    "a key is a namespace and an identifier with a space between, such as `github/acme pr/7`",
                )
            })?;
            return Ok(Some(Key { source: source.parse()?, external_id: external_id.trim().parse()? }));
        }
        match (self.parsed("key_source")?, self.parsed("key_external_id")?) {
            (Some(source), Some(external_id)) => Ok(Some(Key { source, external_id })),
            (None, None) => Ok(None),
            (Some(_), None) | (None, Some(_)) => {
                Err(Failure::bad("a key is both `key_source` and `key_external_id`"))
            }
        }
    }

    /// The key as a form shows it: namespace, a space, identifier. Empty when none is given.
    pub(crate) fn key_text(&self) -> String {
        match (self.text("key_source"), self.text("key_external_id")) {
            (Some(source), Some(external_id)) => format!("{source} {external_id}"),
            (Some(_), None) | (None, _) => self.text("key").unwrap_or_default().to_owned(),
        }
    }

    /// How many rows a page has.
    ///
    /// # Errors
    /// `bad_request` when it is not from 1 to 200.
    pub(crate) fn limit(&self) -> Result<u32, Failure> {
        match self.parsed("limit")?.unwrap_or(LIMIT) {
            limit @ 1..=LIMIT_MAX => Ok(limit),
            _other => Err(Failure::bad(format!("`limit` goes from 1 to {LIMIT_MAX}"))),
        }
    }

    /// Where the page begins, as [`cursor`] wrote it.
    ///
    /// # Errors
    /// `bad_request` when it is not a cursor of this list.
    pub(crate) fn cursor(&self, list: Cursor) -> Result<Option<i64>, Failure> {
        Ok(self.cursor_of(&[list])?.map(|(_list, number)| number))
    }

    /// As [`Self::cursor`], for what is listed in several parts.
    ///
    /// # Errors
    /// `bad_request` when it is not a cursor of any of these.
    pub(crate) fn cursor_of(&self, lists: &[Cursor]) -> Result<Option<(Cursor, i64)>, Failure> {
        let Some(text) = self.text("cursor") else { return Ok(None) };
        match lists.iter().find_map(|list| Some((*list, read_cursor(*list, text)?))) {
            Some(found) => Ok(Some(found)),
            None => Err(Failure::bad("the cursor is not one of this list; begin without one")),
        }
    }
}

fn decode(text: &str) -> Result<String, Failure> {
    let spaced = text.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8();
    Ok(decoded.map_err(|_source| Failure::bad("the query string is not UTF-8"))?.into_owned())
}

/// Which list a cursor belongs to, so that it is not taken for another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cursor {
    Events,
    Work,
    Runs,
    Feed,
    Scopes,
    LiveRuns,
    Starts,
    Waits,
    Timers,
}

impl Cursor {
    const fn letter(self) -> char {
        match self {
            Self::Events => 'e',
            Self::Work => 'w',
            Self::Runs => 'r',
            Self::Feed => 'f',
            Self::Scopes => 's',
            Self::LiveRuns => 'l',
            Self::Starts => 'd',
            Self::Waits => 'p',
            Self::Timers => 't',
        }
    }
}

/// A cursor after a row, opaque to clients.
pub(crate) fn cursor(list: Cursor, number: i64) -> String {
    format!("{}{number:x}", list.letter())
}

/// The row of a cursor.
pub(crate) fn read_cursor(list: Cursor, text: &str) -> Option<i64> {
    let digits = text.strip_prefix(list.letter())?;
    let is_hex = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_hex.then(|| i64::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::{Cursor, Query, cursor, read_cursor};

    #[test]
    fn read_decodes_and_refuses_what_it_does_not_know() {
        let query = Query::read(Some("a=x%20y+z&b=&"), &["a", "b"]).unwrap();
        assert_eq!((query.text("a"), query.text("b")), (Some("x y z"), None));
        assert!(Query::read(Some("server=evil"), &["a"]).is_err());
        assert!(Query::read(Some("a=1&a=2"), &["a"]).is_err());
        assert!(Query::read(Some("a=%ff"), &["a"]).is_err());
    }

    #[test]
    fn limit_has_bounds() {
        let limit = |text: &str| Query::read(Some(text), &["limit"]).unwrap().limit();
        assert_eq!(limit("").unwrap(), 50);
        assert_eq!(limit("limit=200").unwrap(), 200);
        assert!(limit("limit=0").is_err() && limit("limit=201").is_err() && limit("limit=x").is_err());
    }

    #[test]
    fn cursors_round_trip_and_belong_to_one_list() {
        assert_eq!(read_cursor(Cursor::Runs, &cursor(Cursor::Runs, i64::MAX)), Some(i64::MAX));
        assert_eq!(read_cursor(Cursor::Runs, &cursor(Cursor::Events, 7)), None);
        for wrong in ["", "r", "r-1", "rxyz", "r+1", "rffffffffffffffffff"] {
            assert_eq!(read_cursor(Cursor::Runs, wrong), None, "{wrong}");
        }
    }
}
