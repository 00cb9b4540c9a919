//! Patterns for branches and changed files, as GitHub has them for its workflows.
//!
//! | in a pattern | means |
//! | --- | --- |
//! | `*` | any characters but `/`, none included |
//! | `**` | any characters; `**/` also none at all |
//! | `?`, `+` | none or one, one or more, of the character before |
//! | `[abc]`, `[0-9]` | one of these characters |
//! | `\` | the next character as it is |
//!
//! In a list, `!` in front takes back what patterns before it took, and the last that matches decides. A text is
//! matched whole and as it is written.

use thiserror::Error;

/// The most bytes of one pattern.
pub const PATTERN_BYTES_MAX: usize = 512;
/// The most patterns of a list.
pub const PATTERNS_MAX: usize = 100;

/// Why a pattern is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum GlobError {
    /// It is empty.
    #[error("must not be empty")]
    Empty,
    /// It is too long.
    #[error("must have at most {PATTERN_BYTES_MAX} bytes")]
    TooLong,
    /// A `[` has no `]`.
    #[error("has a `[` without its `]`, or nothing between them; write `\\[` for the character itself")]
    Class,
    /// A `?` or `+` repeats nothing.
    #[error("has a `?` or `+` with no character before it; write `\\` in front for the character itself")]
    Repeat,
    /// It ends with a `\`.
    #[error("ends with a `\\` that takes no character")]
    Escape,
}

/// What one character of a text may be.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Letter {
    Any,
    NoSlash,
    One(char),
    /// Inclusive ranges.
    Class(Vec<(char, char)>),
}

impl Letter {
    fn takes(&self, letter: char) -> bool {
        match self {
            Self::Any => true,
            Self::NoSlash => letter != '/',
            Self::One(one) => *one == letter,
            Self::Class(ranges) => ranges.iter().any(|(first, last)| (*first..=*last).contains(&letter)),
        }
    }
}

/// How often a letter comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Times {
    Once,
    NoneOrOnce,
    AnyNumber,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// Letters.
    Letters(Letter, Times),
    /// The two parts behind this one may be left out together.
    TwoMayLack,
}

/// One pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    parts: Vec<Part>,
}

impl Glob {
    /// Reads a pattern, without a `!` in front.
    ///
    /// # Errors
    /// [`GlobError`].
    pub fn parse(text: &str) -> Result<Self, GlobError> {
        if text.is_empty() {
            return Err(GlobError::Empty);
        }
        if text.len() > PATTERN_BYTES_MAX {
            return Err(GlobError::TooLong);
        }
        let mut parts: Vec<Part> = Vec::new();
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                '*' if letters.next_if_eq(&'*').is_some() => {
                    while letters.next_if_eq(&'*').is_some() {}
                    let any = Part::Letters(Letter::Any, Times::AnyNumber);
                    // Folders are whole: `**/a` is `a` at the root or behind a slash.
                    if letters.next_if_eq(&'/').is_some() {
                        let slash = Part::Letters(Letter::One('/'), Times::Once);
                        parts.extend([Part::TwoMayLack, any, slash]);
                    } else {
                        parts.push(any);
                    }
                }
                '*' => parts.push(Part::Letters(Letter::NoSlash, Times::AnyNumber)),
                '?' | '+' => repeat(&mut parts, letter)?,
                '[' => parts.push(Part::Letters(class(&mut letters)?, Times::Once)),
                '\\' => {
                    let next = letters.next().ok_or(GlobError::Escape)?;
                    parts.push(Part::Letters(Letter::One(next), Times::Once));
                }
                other => parts.push(Part::Letters(Letter::One(other), Times::Once)),
            }
        }
        Ok(Self { parts })
    }

    /// Whether the whole text matches.
    pub fn matches(&self, text: &str) -> bool {
        let mut here = vec![false; self.parts.len() + 1];
        self.reach(0, &mut here);
        let mut next = here.clone();
        for letter in text.chars() {
            next.fill(false);
            for (at, part) in self.parts.iter().enumerate().filter(|(at, _part)| here[*at]) {
                match part {
                    Part::Letters(of, times) if of.takes(letter) => match times {
                        Times::AnyNumber => self.reach(at, &mut next),
                        Times::Once | Times::NoneOrOnce => self.reach(at + 1, &mut next),
                    },
                    Part::Letters(..) | Part::TwoMayLack => {}
                }
            }
            std::mem::swap(&mut here, &mut next);
        }
        here[self.parts.len()]
    }

    /// Marks a part as the one that may take the next letter, and those that can follow without one.
    fn reach(&self, at: usize, marks: &mut [bool]) {
        let mut at = at;
        while !std::mem::replace(&mut marks[at], true) {
            match self.parts.get(at) {
                None | Some(Part::Letters(_, Times::Once)) => return,
                Some(Part::Letters(_, Times::NoneOrOnce | Times::AnyNumber)) => {}
                Some(Part::TwoMayLack) => self.reach(at + 3, marks),
            }
            at += 1;
        }
    }
}

/// Makes the last part come none or one time, or one or more times.
fn repeat(parts: &mut Vec<Part>, sign: char) -> Result<(), GlobError> {
    let Some(Part::Letters(letter, times)) = parts.last_mut() else { return Err(GlobError::Repeat) };
    match (*times, sign) {
        (Times::Once, '?') => *times = Times::NoneOrOnce,
        (Times::Once, _plus) => {
            let more = Part::Letters(letter.clone(), Times::AnyNumber);
            parts.push(more);
        }
        // What may come any number of times, or not at all, already does.
        (Times::AnyNumber, _sign) => {}
        (Times::NoneOrOnce, _sign) => return Err(GlobError::Repeat),
    }
    Ok(())
}

/// The characters between `[` and `]`.
fn class(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Letter, GlobError> {
    let mut ranges = Vec::new();
    loop {
        let first = match letters.next().ok_or(GlobError::Class)? {
            ']' if ranges.is_empty() => return Err(GlobError::Class),
            ']' => return Ok(Letter::Class(ranges)),
            '\\' => letters.next().ok_or(GlobError::Class)?,
            letter => letter,
        };
        let last = if letters.next_if_eq(&'-').is_some() {
            match letters.next().ok_or(GlobError::Class)? {
                // A hyphen at the end is itself.
                ']' => {
                    ranges.extend([(first, first), ('-', '-')]);
                    return Ok(Letter::Class(ranges));
                }
                letter => letter,
            }
        } else {
            first
        };
        ranges.push((first, last));
    }
}

/// A list of patterns, in which `!` takes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Globs {
    list: Vec<(bool, Glob)>,
}

impl Globs {
    /// Reads a list. Each text that is wrong is told by its place.
    ///
    /// # Errors
    /// The place and the reason of each pattern that is refused.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, Vec<(usize, GlobError)>> {
        let mut list = Vec::new();
        let mut problems = Vec::new();
        for (at, text) in texts.into_iter().enumerate() {
            let (takes, text) = text.strip_prefix('!').map_or((true, text), |rest| (false, rest));
            match Glob::parse(text) {
                Ok(glob) => list.push((takes, glob)),
                Err(problem) => problems.push((at, problem)),
            }
        }
        if problems.is_empty() { Ok(Self { list }) } else { Err(problems) }
    }

    /// Whether it takes nothing at all: every pattern of it takes back.
    pub fn only_takes_back(&self) -> bool {
        self.list.iter().all(|(takes, _glob)| !takes)
    }

    /// Whether the last pattern that matches the text takes it.
    pub fn take(&self, text: &str) -> bool {
        self.list.iter().rev().find(|(_takes, glob)| glob.matches(text)).is_some_and(|(takes, _glob)| *takes)
    }
}

#[cfg(test)]
mod tests {
    use super::{Glob, GlobError, Globs};

    #[track_caller]
    fn check(pattern: &str, text: &str, expected: bool) {
        assert_eq!(Glob::parse(pattern).unwrap().matches(text), expected, "{pattern} {text}");
    }

    #[test]
    fn each_sign_means_what_the_table_says() {
        check("a*c", "abbc", true);
        check("a*c", "a/c", false);
        check("a**c", "a/b/c", true);
        check("**/a", "a", true);
        check("**/a", "x/y/a", true);
        check("**/a", "xa", false);
        check("**/a", "x/a/b", false);
        check("a/**/b", "a/b", true);
        check("a/**/b", "ab", false);
        check("**", "", true);
        check("ab?c", "ac", true);
        check("ab?c", "abbc", false);
        check("ab+c", "abbc", true);
        check("ab+c", "ac", false);
        check("[a-c-]+", "b-a", true);
        check("[a-c]", "d", false);
        check("\\*\\[", "*[", true);
        check("a", "A", false);
        check("*?", "abc", true);
    }

    #[test]
    fn a_pattern_that_means_nothing_is_refused() {
        let refused = |text: &str| Glob::parse(text).unwrap_err();
        assert_eq!(refused(""), GlobError::Empty);
        assert_eq!(refused("[a"), GlobError::Class);
        assert_eq!(refused("[]"), GlobError::Class);
        assert_eq!(refused("+a"), GlobError::Repeat);
        assert_eq!(refused("a\\"), GlobError::Escape);
        assert_eq!(refused(&"a".repeat(513)), GlobError::TooLong);
        assert_eq!(Globs::parse(["a", "!", "?"]), Err(vec![(1, GlobError::Empty), (2, GlobError::Repeat)]));
    }

    #[test]
    fn a_pattern_takes_time_that_grows_with_its_length() {
        let pattern = "**a".repeat(60);
        assert!(!Glob::parse(&pattern).unwrap().matches(&"a".repeat(59)));
        assert!(Glob::parse(&pattern).unwrap().matches(&"a".repeat(600)));
    }
}
