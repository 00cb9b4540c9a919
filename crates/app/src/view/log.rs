//! A run's output as lines of text that a page can show: bytes in, nothing but plain text and named styles out.
//!
//! Output is read in pieces, since it may be of any size. A piece begins and ends with a line wherever there is
//! an end of a line to be found, so that pieces lie side by side without a seam.

mod screen;

use screen::Screen;

/// The most bytes of markup for the lines of a page of their own. Output that is full of colors, of `<` or of empty
/// lines needs many times the bytes that it has itself.
pub(crate) const WEIGHT_MAX: usize = 96_000;
/// The same where much else is on the page.
pub(crate) const WEIGHT_BESIDE_MAX: usize = 48_000;
/// The most lines that are marked as the failure.
const FAILURE_LINES_MAX: usize = 20;
/// Bytes of markup around a line, with all that it may have, and for each digit of its place.
const LINE_WEIGHT: (usize, usize) = (150, 3);
/// Bytes of markup that say how much of a line is not shown.
const CLIPPED_WEIGHT: usize = 100;
/// Bytes of markup around a text in a style, beside its name.
const SPAN_WEIGHT: usize = 22;
/// Bytes of a letter that markup has a meaning for, such as `<`.
const ESCAPED_WEIGHT: usize = 5;

/// Bytes of a run's output, as they were read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Raw<'a> {
    /// What stands before them: enough to know the styles in force.
    pub(crate) before: &'a [u8],
    /// The bytes.
    pub(crate) bytes: &'a [u8],
    /// Where they begin.
    pub(crate) from: u64,
    /// Whether the output goes on behind them.
    pub(crate) more: bool,
    /// Whether the last line may still grow.
    pub(crate) live: bool,
    /// The most bytes of markup that are wanted for its lines. One line is given whatever it needs.
    pub(crate) weight_max: usize,
}

/// Which end of a piece its reader came for. The other end gives way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The lines from its beginning on.
    First,
    /// The lines up to its end.
    Last,
}

/// A piece of output as lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The lines.
    pub(crate) lines: Vec<Line>,
    /// Where the first line begins.
    pub(crate) from: u64,
    /// Where the next piece begins. A last line that may still grow is part of both.
    pub(crate) next: u64,
}

/// A line of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// Where it begins, in bytes.
    pub(crate) at: u64,
    /// Its number from one, when it is known.
    pub(crate) number: Option<u64>,
    /// Its text.
    pub(crate) spans: Vec<Span>,
    /// Characters at its end that are not shown.
    pub(crate) clipped: usize,
    /// Whether it may still grow.
    pub(crate) open: bool,
    /// Whether it tells of the failure.
    pub(crate) hit: bool,
}

/// A text in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    /// Names of styles; empty for plain text.
    pub(crate) class: String,
    /// The text. It has no control characters but tabs.
    pub(crate) text: String,
}

impl Line {
    /// Its text without styles.
    pub(crate) fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// The part of a page's address that leads to it. Bytes are known where line numbers are not.
    pub(crate) fn anchor(&self) -> String {
        format!("b{}", self.at)
    }

    /// About how many bytes of markup a page needs for it, and hardly less than it does.
    pub(crate) fn weight(&self) -> usize {
        let (line, digit) = LINE_WEIGHT;
        let digits = self.at.checked_ilog10().unwrap_or_default() as usize + 1;
        let clipped = if self.clipped > 0 { CLIPPED_WEIGHT } else { 0 };
        line + digit * digits + clipped + self.spans.iter().map(Span::weight).sum::<usize>()
    }

    /// How clearly it tells of a failure.
    fn failure(&self) -> Option<Clarity> {
        let first = self.spans.iter().find(|span| !span.text.trim().is_empty());
        let is_red = |span: &Span| span.class.split(' ').any(|name| matches!(name, "a-red" | "a-bright-red"));
        if first.is_some_and(is_red) { Some(Clarity::Clear) } else { says_failure(&self.text()) }
    }
}

impl Span {
    /// Bytes of markup that it needs.
    fn weight(&self) -> usize {
        let around = if self.class.is_empty() { 0 } else { SPAN_WEIGHT + self.class.len() };
        around + self.text.chars().map(letter_weight).sum::<usize>()
    }
}

/// Bytes of markup that a letter needs.
const fn letter_weight(letter: char) -> usize {
    if matches!(letter, '<' | '>' | '&' | '"' | '\'') { ESCAPED_WEIGHT } else { letter.len_utf8() }
}

/// How clearly a line tells of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clarity {
    /// It begins in red or with a word for it, or shouts one.
    Clear,
    /// It has a word for it. People and agents talk about failures, too.
    Vague,
}

/// Whether a text has a word for failure that it does not deny, as `0 failed` does.
fn says_failure(text: &str) -> Option<Clarity> {
    const WORDS: [&str; 12] = [
        "error",
        "errors",
        "failed",
        "failure",
        "fail",
        "fatal",
        "panic",
        "panicked",
        "traceback",
        "exception",
        "aborted",
        "segfault",
    ];
    /// Up to which word it is the beginning of a line.
    const BEGINNING: usize = 3;
    let (mut found, mut before) = (None, "");
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    for (place, word) in words.enumerate() {
        // Names such as `ValueError` end in the word.
        let is_named = word.ends_with("Error") || word.ends_with("Exception");
        let is_one = is_named || WORDS.contains(&word.to_ascii_lowercase().as_str());
        if is_one && !matches!(before, "0" | "no" | "No" | "without") {
            if place < BEGINNING || word.chars().all(char::is_uppercase) {
                return Some(Clarity::Clear);
            }
            found = Some(Clarity::Vague);
        }
        before = word;
    }
    found
}

/// The lines of a piece.
pub(crate) fn piece(raw: &Raw<'_>, keep: Keep) -> Piece {
    let mut screen = Screen::after(raw.before);
    let starts_line = raw.from == 0 || raw.before.ends_with(b"\n");
    let mut begin = match (keep, starts_line) {
        // The rest of a line whose beginning was not read belongs to the piece before, unless it is all there is.
        (Keep::Last, false) => raw.bytes.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1),
        (Keep::First, _) | (Keep::Last, true) => 0,
    };
    if begin == raw.bytes.len() {
        begin = 0;
    }
    // A piece before another one ends where that one begins, be it inside a line.
    let is_cut = raw.more && keep == Keep::First;
    let end = if is_cut { end(&raw.bytes[begin..]) + begin } else { raw.bytes.len() };
    drop(screen.lines(&raw.bytes[..begin]));
    let mut lines = screen.lines(&raw.bytes[begin..end]);
    for line in &mut lines {
        line.at += raw.from + begin as u64;
    }
    let mut next = raw.from + end as u64;
    if !raw.more && raw.live && !raw.bytes.ends_with(b"\n") {
        // It is read again when more of it is there, unless it alone fills a piece.
        let is_alone = lines.len() == 1 && !starts_line;
        if let Some(last) = lines.last_mut().filter(|_last| !is_alone) {
            last.open = true;
            next = last.at;
        }
    }
    match keep {
        Keep::First => {
            let fits = fitting(lines.iter(), raw.weight_max);
            if let Some(over) = lines.get(fits) {
                next = over.at;
            }
            lines.truncate(fits);
        }
        Keep::Last => {
            let fits = fitting(lines.iter().rev(), raw.weight_max);
            drop(lines.drain(..lines.len().saturating_sub(fits)));
        }
    }
    let from = lines.first().map_or(raw.from + begin as u64, |line| line.at);
    Piece { lines, from, next }
}

/// How many of these lines there is room for. There is always room for one.
fn fitting<'l>(lines: impl Iterator<Item = &'l Line>, weight_max: usize) -> usize {
    let mut weight = 0;
    let fits = lines.take_while(|line| {
        weight += line.weight();
        weight <= weight_max
    });
    fits.count().max(1)
}

/// Where the last whole line of bytes ends; with none, where their last whole character does.
fn end(bytes: &[u8]) -> usize {
    if let Some(last) = bytes.iter().rposition(|byte| *byte == b'\n') {
        return last + 1;
    }
    let tail = bytes.len().saturating_sub(3);
    let first_of = |place: &usize| bytes[*place] & 0b1100_0000 != 0b1000_0000;
    let Some(start) = (tail..bytes.len()).rev().find(first_of) else { return bytes.len() };
    match std::str::from_utf8(&bytes[start..]) {
        // Unfinished, so that the next piece has all of it.
        Err(error) if error.error_len().is_none() && start > 0 => start,
        Ok(_) | Err(_) => bytes.len(),
    }
}

impl Piece {
    /// Numbers the lines, from what the first of them is.
    pub(crate) fn number(&mut self, first: u64) {
        for (number, line) in (first..).zip(&mut self.lines) {
            line.number = Some(number);
        }
    }

    /// Marks the first lines that tell of a failure, and says where they begin.
    pub(crate) fn mark_failure(&mut self) -> Option<String> {
        let clear = self.lines.iter().position(|line| line.failure() == Some(Clarity::Clear));
        let first = clear.or_else(|| self.lines.iter().position(|line| line.failure().is_some()))?;
        let failed = self.lines[first..].iter_mut().take(FAILURE_LINES_MAX);
        for line in failed.take_while(|line| line.failure().is_some()) {
            line.hit = true;
        }
        Some(self.lines[first].anchor())
    }
}

#[cfg(test)]
mod tests;
