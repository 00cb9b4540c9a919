//! Everything a command writes. Nothing else in the command line touches standard output or standard error.
//!
//! What was asked for goes to standard output; everything said about it goes to standard error, so that a pipe
//! carries only the former. Text from outside is shown with its control characters spelled out: an Event may
//! hold an escape sequence, and a terminal would obey it.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::env;
use crate::view::{Field, Tone, Word};

use super::failure::{Failure, Stop};

mod table;

pub(crate) use table::Table;

/// How answers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// For people.
    Text,
    /// For programs: one object, or an object on each line for a stream.
    Json,
}

/// Where a command writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    form: Form,
    colored: bool,
    columns: Option<usize>,
}

impl Output {
    pub(crate) fn new(form: Form) -> Self {
        Self { form, colored: env::colored(), columns: env::columns() }
    }

    /// Whether programs read the output.
    pub(crate) fn is_json(&self) -> bool {
        self.form == Form::Json
    }

    /// Writes an object on a line of its own.
    ///
    /// # Errors
    /// [`Stop`] when nobody reads any more.
    #[expect(clippy::unused_self, reason = "every way to write is asked of the same value")]
    pub(crate) fn object(&self, object: &impl Serialize) -> Result<(), Stop> {
        let text = serde_json::to_string(object).expect("a body of the API is JSON");
        raw_line(&text)
    }

    /// Writes a line.
    ///
    /// # Errors
    /// [`Stop`] when nobody reads any more.
    #[expect(clippy::unused_self, reason = "every way to write is asked of the same value")]
    pub(crate) fn line(&self, text: impl AsRef<str>) -> Result<(), Stop> {
        raw_line(&printable(text.as_ref()))
    }

    /// Writes words next to each other, each in its tone.
    ///
    /// # Errors
    /// [`Stop`] when nobody reads any more.
    pub(crate) fn words(&self, words: &[Word]) -> Result<(), Stop> {
        let painted: Vec<String> =
            words.iter().map(|word| self.paint(&printable(&word.text), word.tone)).collect();
        raw_line(&painted.join("  "))
    }

    /// Writes a sentence, wrapped to the width of a terminal.
    ///
    /// # Errors
    /// [`Stop`] when nobody reads any more.
    pub(crate) fn sentence(&self, text: &str) -> Result<(), Stop> {
        match self.columns {
            Some(columns) => wrap(&printable(text), columns, "  ").iter().try_for_each(|line| raw_line(line)),
            None => self.line(text),
        }
    }

    /// Writes a heading.
    ///
    /// # Errors
    /// [`Stop`] when nobody reads any more.
    pub(crate) fn heading(&self, text: &str) -> Result<(), Stop> {
        let style = Style::new().bold();
        raw_line(&if self.colored { format!("{style}{text}{style:#}") } else { text.to_owned() })
    }

    /// Writes names and values, one below the other.
    ///
    /// # Errors
    /// [`Stop`] when nobody reads any more.
    pub(crate) fn fields(&self, fields: &[Field]) -> Result<(), Stop> {
        let width = fields.iter().map(|field| field.name.len()).max().unwrap_or(0);
        for field in fields {
            let name = self.paint(&format!("{:width$}", field.name), Tone::Quiet);
            let value = self.paint(&printable(&field.value.text), field.value.tone);
            raw_line(format!("{name}  {value}").trim_end())?;
        }
        Ok(())
    }

    /// Writes a table. A terminal gets the columns that fit; a pipe gets every text whole.
    ///
    /// # Errors
    /// [`Stop`] when nobody reads any more.
    pub(crate) fn table(&self, table: &Table) -> Result<(), Stop> {
        table
            .lines(self.columns, |text, tone| self.paint(text, tone))
            .iter()
            .try_for_each(|line| raw_line(line))
    }

    /// Says something about the answer, to people only.
    pub(crate) fn note(&self, text: &str) {
        if !self.is_json() {
            complain(text);
        }
    }

    /// Says what went wrong.
    pub(crate) fn failure(&self, failure: &Failure) {
        if self.is_json() {
            complain(&serde_json::to_string(&failure.problem).expect("a problem is JSON"));
            return;
        }
        let problem = &failure.problem;
        let mut text = format!("error: {} ({})", problem.detail.trim_end_matches('.'), problem.code);
        for item in &problem.problems {
            let line = item.line.map(|line| format!("line {line}: ")).unwrap_or_default();
            let path = if item.path.is_empty() { String::new() } else { format!("{}: ", item.path) };
            write!(text, "\n  {line}{path}{}", item.message).expect("a string takes whatever is written");
        }
        if !problem.candidates.is_empty() {
            write!(text, "\n  one of {}", problem.candidates.join(", "))
                .expect("a string takes whatever is written");
        }
        if let Some(hint) = &failure.hint {
            write!(text, "\n\nhint: {hint}").expect("a string takes whatever is written");
        }
        complain(&text);
    }

    fn paint(&self, text: &str, tone: Tone) -> String {
        let style = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Good => AnsiColor::Green.on_default(),
            Tone::Bad => AnsiColor::Red.on_default(),
            Tone::Active => AnsiColor::Cyan.on_default(),
            Tone::Quiet => Style::new().dimmed(),
        };
        if self.colored { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// Writes bytes as they are, such as a run's own output.
///
/// # Errors
/// [`Stop`] when nobody reads any more.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Stop> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

fn raw_line(line: &str) -> Result<(), Stop> {
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes())?;
    Ok(out.write_all(b"\n")?)
}

/// Writes a line to standard error. Nobody can be told when that fails.
fn complain(text: &str) {
    let printable: Vec<String> = text.lines().map(printable).collect();
    drop(writeln!(io::stderr().lock(), "{}", printable.join("\n")));
}

/// A text in which control characters are spelled out.
fn printable(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return text.to_owned();
    }
    let spelled = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(spelled).collect()
}

/// The lines of a text that is wrapped at spaces; the ones after the first are indented.
fn wrap(text: &str, columns: usize, indent: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ') {
        let width = word.chars().count();
        if used > 0 && used + 1 + width > columns {
            lines.push(indent.to_owned());
            used = indent.len();
        } else if used > 0 {
            lines.last_mut().expect("there is a first line").push(' ');
            used += 1;
        }
        lines.last_mut().expect("there is a first line").push_str(word);
        used += width;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{printable, wrap};

    #[test]
    fn control_characters_are_spelled_out() {
        assert_eq!(printable("plain"), "plain");
        assert_eq!(printable("a\u{1b}[31mb\n"), "a\\u{1b}[31mb\\n");
    }

    #[test]
    fn wrap_breaks_at_spaces_and_never_inside_a_word() {
        assert_eq!(wrap("one two three", 8, "  "), ["one two", "  three"]);
        assert_eq!(wrap("averyveryverylongword no", 8, "  "), ["averyveryverylongword", "  no"]);
        assert_eq!(wrap("", 8, "  "), [""]);
    }
}
