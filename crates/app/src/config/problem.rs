//! What is wrong with a configuration, said so that a person can find and mend it.
//!
//! A message holds places, kinds and declared names, never a configured value: a secret may stand in the wrong
//! field, and problems are printed, logged and sent.

use std::fmt;

/// Something wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Where: `scopes[1].routes[0].binding`. Empty for the whole file.
    pub(crate) path: String,
    /// The line of the file, from one, when the text is at hand.
    pub(crate) line: Option<usize>,
    /// A stable word for the kind of problem.
    pub(crate) code: &'static str,
    /// What is wrong and what would be right.
    pub(crate) message: String,
}

impl Problem {
    pub(crate) fn new(path: impl Into<String>, code: &'static str, message: impl Into<String>) -> Self {
        Self { path: path.into(), line: None, code, message: message.into() }
    }

    pub(crate) fn on_line(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

impl From<domain::config::Problem> for Problem {
    fn from(problem: domain::config::Problem) -> Self {
        Self { path: problem.path, line: None, code: problem.code.as_str(), message: problem.message }
    }
}

/// `; did you mean ...?` when one of the known names is close to `written`, else nothing.
pub(crate) fn suggestion<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    // A third of the letters may be wrong: more would suggest a name that has nothing in common.
    let distance_max = (written.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&written.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(distance, _name)| *distance <= distance_max)
        .min()
        .map_or_else(String::new, |(_distance, name)| format!("; did you mean `{name}`?"))
}

/// Whether a key may be repeated in a message. What does not look like a key may be a value in its place.
pub(crate) fn is_showable(key: &str) -> bool {
    key.len() <= 64
        && key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

#[cfg(test)]
mod tests {
    use super::{is_showable, suggestion};

    #[test]
    fn suggestion_names_what_is_close_and_nothing_else() {
        let known = ["executor", "config", "resource"];
        assert_eq!(suggestion("excutor", known), "; did you mean `executor`?");
        assert_eq!(suggestion("Resource", known), "; did you mean `resource`?");
        assert_eq!(suggestion("conifg", known), "; did you mean `config`?");
        assert_eq!(suggestion("webhook", known), "");
        assert_eq!(suggestion("", known), "");
    }

    #[test]
    fn is_showable_takes_only_what_looks_like_a_key() {
        assert!(is_showable("timeout_seconds") && is_showable("_x-1"));
        assert!(!is_showable("pass word") && !is_showable("") && !is_showable("1x") && !is_showable("a=b"));
    }
}
