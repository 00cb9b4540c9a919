//! A sentence in parts, so that a page shows it as the command line prints it, with more to it: what stands in
//! backticks is code, an id leads to its page, and a moment is told in the reader's zone.

use domain::id::{EventId, ExecutionId, WorkId};

use super::clock::{Clock, Moment};

/// A part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Words.
    Text(String),
    /// A name as it is written in a file or a command.
    Code(String),
    /// The id of something, and the page that shows it.
    Link {
        /// The page.
        path: String,
        /// The id.
        id: String,
    },
    /// A moment.
    At(Moment),
}

/// The parts of a sentence, in order.
pub(crate) fn parts(sentence: &str, clock: &Clock) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut pieces = sentence.split('`').peekable();
    let mut is_code = false;
    while let Some(piece) = pieces.next() {
        if is_code && pieces.peek().is_some() {
            parts.push(Part::Code(piece.to_owned()));
        } else if is_code {
            // A backtick that nothing closes is a backtick.
            words(&format!("`{piece}"), clock, &mut parts);
        } else {
            words(piece, clock, &mut parts);
        }
        is_code = !is_code;
    }
    parts
}

fn words(text: &str, clock: &Clock, parts: &mut Vec<Part>) {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let starts_word = !plain.ends_with(|letter: char| letter.is_alphanumeric() || letter == '_');
        let found = if starts_word { moment(rest, clock).or_else(|| link(rest)) } else { None };
        let length = if let Some((part, length)) = found {
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(part);
            length
        } else {
            plain.push(next);
            next.len_utf8()
        };
        rest = &rest[length..];
    }
    if !plain.is_empty() {
        parts.push(Part::Text(plain));
    }
}

/// A moment as [`super::time::absolute`] writes it, at the beginning of a text.
fn moment(text: &str, clock: &Clock) -> Option<(Part, usize)> {
    const LENGTH: usize = "2026-03-10 12:00:00 UTC".len();
    let written = text.get(..LENGTH)?.strip_suffix(" UTC")?;
    let iso = format!("{}Z", written.replacen(' ', "T", 1));
    domain::time::Timestamp::parse(&iso).ok()?;
    Some((Part::At(clock.moment(&iso)), LENGTH))
}

/// A whole id at the beginning of a text.
fn link(text: &str) -> Option<(Part, usize)> {
    let length =
        text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(text.len());
    let id = &text[..length];
    let path = path(id)?;
    Some((Part::Link { path, id: id.to_owned() }, length))
}

/// The page of a whole id.
fn path(id: &str) -> Option<String> {
    // The letters of an id as it is always written; the beginning of one is no id of anything.
    const LETTERS: usize = 13;
    let (prefix, letters) = id.split_once('_')?;
    if letters.len() != LETTERS {
        return None;
    }
    match prefix {
        EventId::PREFIX => id.parse::<EventId>().ok().map(|_id| format!("/events/{id}")),
        ExecutionId::PREFIX => id.parse::<ExecutionId>().ok().map(|_id| format!("/runs/{id}")),
        WorkId::PREFIX => id.parse::<WorkId>().ok().map(|_id| format!("/work/{id}")),
        _other => None,
    }
}

#[cfg(test)]
mod tests {
    use domain::id::{EventId, WorkId};
    use domain::time::Timestamp;
    use jiff::tz::TimeZone;

    use super::{Part, parts};
    use crate::view::clock::Clock;

    fn shown(sentence: &str) -> Vec<String> {
        let now = Timestamp::parse("2026-03-10T12:30:00Z").unwrap();
        let clock = Clock::new(TimeZone::get("Europe/Berlin").unwrap(), now);
        let part = |part: Part| match part {
            Part::Text(text) => text,
            Part::Code(code) => format!("<{code}>"),
            Part::Link { path, id: _ } => format!("[{path}]"),
            Part::At(moment) => format!("({})", moment.at),
        };
        parts(sentence, &clock).into_iter().map(part).collect()
    }

    #[test]
    fn names_ids_and_moments_are_found() {
        let (event, work) = (EventId::from_number(7), WorkId::from_number(9));
        assert_eq!(
            shown(&format!("{event} `a.b` came at 2026-03-10 12:00:00 UTC. It is input of {work}.")),
            [
                format!("[/events/{event}]"),
                " ".to_owned(),
                "<a.b>".to_owned(),
                " came at ".to_owned(),
                "(13:00:00)".to_owned(),
                ". It is input of ".to_owned(),
                format!("[/work/{work}]"),
                ".".to_owned()
            ]
        );
    }

    #[test]
    fn what_only_looks_like_it_is_text() {
        let id = EventId::from_number(7).to_string();
        for text in [
            "run_1 and ev_x, work_",
            "one ` alone",
            "2026-13-10 12:00:00 UTC",
            &format!("x{id}"),
            &format!("{id}x"),
            "\u{e9}2026-03-1",
        ] {
            assert_eq!(shown(text).concat(), text, "{text}");
        }
        assert_eq!(shown(&format!("`{id}")).concat(), format!("`[/events/{id}]"));
        assert_eq!(shown(""), Vec::<String>::new());
    }
}
