//! Output as a document shows it, compared with output as it comes: other ids, other ports, other times.
//!
//! An id or a loopback address that a document shows is a name. The first time it is met, it takes the value
//! that stands in its place; afterwards it has that value, in output and in commands. So a document can show
//! one run from beginning to end, and what it shows must fit together.

use std::collections::BTreeMap;

/// What stands for any text.
const ANY: &str = "…";
/// How ids begin.
const ID_PREFIXES: &[&str] = &["ev_", "run_", "work_"];
/// The least letters and digits after that, so that a word of prose is no id.
const ID_LETTERS_MIN: usize = 10;
/// How addresses of this machine begin.
const ADDRESS_PREFIX: &str = "127.0.0.1:";

/// Names of a document with their values.
#[derive(Debug, Default)]
pub(super) struct Names {
    values: BTreeMap<String, String>,
}

impl Names {
    /// The text with the values of the names it has.
    pub(super) fn actual(&self, text: &str) -> String {
        let mut rest = text;
        let mut actual = String::new();
        while let Some((before, name, after)) = next_name(rest) {
            actual.push_str(before);
            actual.push_str(self.values.get(name).map_or(name, String::as_str));
            rest = after;
        }
        actual + rest
    }

    /// Whether what was printed is what is expected. If so, new names have their values. Spaces count as one,
    /// as columns are as wide as what stands in them.
    pub(super) fn learn(&mut self, expected: &[String], printed: &str) -> bool {
        let expected: Vec<String> = expected.iter().map(|line| spaced(line)).collect();
        let printed: Vec<String> = printed.trim_end().lines().map(spaced).collect();
        let learned = lines_fit(&expected, &printed, &self.values);
        learned.is_some_and(|values| {
            self.values = values;
            true
        })
    }
}

fn spaced(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

type Values = BTreeMap<String, String>;

/// The values with which the lines fit.
fn lines_fit(expected: &[String], printed: &[String], values: &Values) -> Option<Values> {
    let Some((first, rest)) = expected.split_first() else {
        return printed.is_empty().then(|| values.clone());
    };
    if first == ANY {
        return (0..=printed.len()).find_map(|skipped| lines_fit(rest, &printed[skipped..], values));
    }
    let (line, others) = printed.split_first()?;
    let values = line_fits(first, line, values)?;
    lines_fit(rest, others, &values)
}

/// The values with which one line fits.
fn line_fits(expected: &str, printed: &str, values: &Values) -> Option<Values> {
    if let Some(rest) = expected.strip_prefix(ANY) {
        let mut ends = printed.char_indices().map(|(at, _)| at).chain([printed.len()]);
        return ends.find_map(|end| line_fits(rest, &printed[end..], values));
    }
    if let Some(name) = name_at_start(expected) {
        let rest = &expected[name.len()..];
        if let Some(value) = values.get(name) {
            return line_fits(rest, printed.strip_prefix(value.as_str())?, values);
        }
        let value = name_at_start(printed).filter(|value| is_of_one_kind(name, value))?;
        let mut learned = values.clone();
        learned.insert(name.to_owned(), value.to_owned());
        return line_fits(rest, &printed[value.len()..], &learned);
    }
    let mut letters = expected.chars();
    match letters.next() {
        None => printed.is_empty().then(|| values.clone()),
        Some(letter) => line_fits(letters.as_str(), printed.strip_prefix(letter)?, values),
    }
}

/// The first name of a text, with what stands before and after it.
fn next_name(text: &str) -> Option<(&str, &str, &str)> {
    text.char_indices().find_map(|(at, _)| {
        let begins_here = !text[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_');
        let name = name_at_start(&text[at..]).filter(|_| begins_here)?;
        Some((&text[..at], name, &text[at + name.len()..]))
    })
}

fn name_at_start(text: &str) -> Option<&str> {
    let end = |from: usize, belongs: fn(char) -> bool| {
        from + text[from..].find(|letter: char| !belongs(letter)).unwrap_or(text.len() - from)
    };
    if text.starts_with(ADDRESS_PREFIX) {
        let end = end(ADDRESS_PREFIX.len(), |letter| letter.is_ascii_digit());
        return (end > ADDRESS_PREFIX.len()).then(|| &text[..end]);
    }
    let prefix = ID_PREFIXES.iter().find(|prefix| text.starts_with(**prefix))?;
    let end = end(prefix.len(), |letter| letter.is_ascii_lowercase() || letter.is_ascii_digit());
    (end >= prefix.len() + ID_LETTERS_MIN).then(|| &text[..end])
}

fn is_of_one_kind(a: &str, b: &str) -> bool {
    let kind = |name: &str| ID_PREFIXES.iter().position(|prefix| name.starts_with(prefix));
    kind(a) == kind(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn learn(names: &mut Names, expected: &[&str], printed: &str, fits: bool) {
        let expected: Vec<String> = expected.iter().map(|line| (*line).to_owned()).collect();
        assert_eq!(names.learn(&expected, printed), fits, "{expected:?}\n{printed}");
    }

    #[test]
    fn learn_compares_lines_with_gaps() {
        let mut names = Names::default();
        learn(&mut names, &["took  … ms, done"], "took 44   ms, done\n", true);
        learn(&mut names, &["took … ms"], "took 44 s", false);
        learn(&mut names, &["a", "…", "d"], "a\nb\nc\nd\n", true);
        learn(&mut names, &["a", "…"], "a\n", true);
        learn(&mut names, &["a"], "a\nb\n", false);
        learn(&mut names, &["a", "b"], "a\n", false);
    }

    #[test]
    fn learn_gives_a_name_one_value() {
        let mut names = Names::default();
        learn(&mut names, &["run_aaaaaaaaaa of ev_aaaaaaaaaa"], "run_bbbbbbbbbb of ev_cccccccccc", true);
        learn(&mut names, &["run_aaaaaaaaaa ended"], "run_bbbbbbbbbb ended", true);
        learn(&mut names, &["run_aaaaaaaaaa ended"], "run_dddddddddd ended", false);
        learn(&mut names, &["run_eeeeeeeeee"], "ev_dddddddddd", false);
        assert_eq!(names.actual("why run_aaaaaaaaaa, ev_aaaaaaaaaa"), "why run_bbbbbbbbbb, ev_cccccccccc");
    }

    #[test]
    fn a_failed_comparison_teaches_nothing() {
        let mut names = Names::default();
        learn(&mut names, &["run_aaaaaaaaaa", "x"], "run_bbbbbbbbbb\ny", false);
        assert_eq!(names.actual("run_aaaaaaaaaa"), "run_aaaaaaaaaa");
    }

    #[test]
    fn addresses_are_names_and_words_are_not() {
        let mut names = Names::default();
        learn(&mut names, &["API http://127.0.0.1:7717 (x)"], "API http://127.0.0.1:4000 (x)", true);
        assert_eq!(names.actual("curl http://127.0.0.1:7717/v1"), "curl http://127.0.0.1:4000/v1");
        assert_eq!(next_name("run_once, prev_3b1p4d8040002, 127.0.0.1:x"), None);
    }
}
