//! Tables: aligned columns that fit the terminal.

use crate::view::{Tone, Word};

use super::printable;

/// What stands between two columns.
const GAP: &str = "  ";
/// A column is not made narrower than this.
const COLUMN_MIN: usize = 8;

/// Rows under a heading.
#[derive(Debug)]
pub(crate) struct Table {
    headings: &'static [&'static str],
    rows: Vec<Vec<Word>>,
}

impl Table {
    /// A table without rows. The first column holds ids, which are never cut: they are there to be copied.
    pub(crate) const fn new(headings: &'static [&'static str]) -> Self {
        Self { headings, rows: Vec::new() }
    }

    /// Adds a row with a word for each column.
    pub(crate) fn row<const N: usize>(&mut self, words: [Word; N]) {
        debug_assert_eq!(N, self.headings.len(), "a row has a word for each column");
        self.rows.push(words.into_iter().map(|word| Word::new(printable(&word.text), word.tone)).collect());
    }

    /// The lines, no wider than `columns` where that can be.
    pub(super) fn lines(&self, columns: Option<usize>, paint: impl Fn(&str, Tone) -> String) -> Vec<String> {
        let widths = self.widths(columns);
        let heading: Vec<Word> =
            self.headings.iter().map(|heading| Word::quiet(heading.to_uppercase())).collect();
        std::iter::once(&heading)
            .chain(&self.rows)
            .map(|row| {
                let last = row.iter().rposition(|word| !word.text.is_empty()).unwrap_or(0);
                let mut line = String::new();
                for (place, (word, width)) in row.iter().zip(&widths).enumerate().take(last + 1) {
                    let text = cut(&word.text, *width);
                    let padding = width - text.chars().count();
                    line.push_str(&paint(&text, word.tone));
                    if place < last {
                        line.push_str(&" ".repeat(padding));
                        line.push_str(GAP);
                    }
                }
                line
            })
            .collect()
    }

    fn widths(&self, columns: Option<usize>) -> Vec<usize> {
        let width = |place: usize| {
            let texts = self.rows.iter().map(|row| row[place].text.chars().count());
            texts.chain([self.headings[place].len()]).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..self.headings.len()).map(width).collect();
        let Some(columns) = columns else { return widths };
        let gaps = GAP.len() * widths.len().saturating_sub(1);
        // The widest column gives way, one letter at a time, so that columns end up alike.
        while widths.iter().sum::<usize>() + gaps > columns {
            let Some(widest) = widths.iter_mut().skip(1).max().filter(|widest| **widest > COLUMN_MIN) else {
                break;
            };
            *widest -= 1;
        }
        widths
    }
}

/// A text of at most `width` letters; one that was cut says so.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::Table;
    use crate::view::Word;

    fn table() -> Table {
        let mut table = Table::new(&["run", "trigger", "key"]);
        table.row(["run_0123456789abc".into(), "build.finished".into(), "hook/ci build/7".into()]);
        table.row(["run_0123456789abd".into(), "say.hello".into(), Word::from("")]);
        table
    }

    #[test]
    fn columns_are_aligned_and_end_without_spaces() {
        let lines = table().lines(None, |text, _tone| text.to_owned());
        assert_eq!(
            lines,
            [
                "RUN                TRIGGER         KEY",
                "run_0123456789abc  build.finished  hook/ci build/7",
                "run_0123456789abd  say.hello",
            ]
        );
    }

    #[test]
    fn a_narrow_terminal_cuts_the_widest_columns_but_no_id() {
        let lines = table().lines(Some(44), |text, _tone| text.to_owned());
        assert_eq!(lines[1], "run_0123456789abc  build.finis…  hook/ci bu…");
        let lines = table().lines(Some(20), |text, _tone| text.to_owned());
        assert_eq!(lines[1], "run_0123456789abc  build.f…  hook/ci…");
    }
}
