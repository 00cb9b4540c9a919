//! Structure checks: what a reviewer should not have to look for and a compiler can't see.
//!
//! A check is a function from the [`Repository`] to its [`Finding`]s. It does no input or output, so
//! that every check has tests that show it a made-up bad repository and see it object. They run as
//! `cargo xtask tidy`, and as a test, so that a plain test run finds the same.

mod budget;
mod documents;
mod edges;
mod error_codes;
mod imports;
mod license;
mod mutants;
mod naming;
mod repository;
mod rules;
mod size;
mod test_files;
mod text;
mod words;

use std::fmt;

use self::repository::Repository;
use crate::error::Error;
use crate::output;

/// One thing that a check has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    severity: Severity,
    /// Relative to the root, and the line from 1 where there is one.
    path: String,
    line: Option<usize>,
    /// What is wrong and what to do.
    message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Severity {
    /// Must be put right.
    Fault,
    /// Worth knowing.
    Notice,
}

impl Finding {
    fn at(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { severity: Severity::Fault, path: path.to_owned(), line: Some(line), message: message.into() }
    }

    fn of(path: &str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Fault, path: path.to_owned(), line: None, message: message.into() }
    }

    fn notice(path: &str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Notice, ..Self::of(path, message) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.severity {
            Severity::Fault => {}
            Severity::Notice => f.write_str("notice: ")?,
        }
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.message),
            None => write!(f, "{}: {}", self.path, self.message),
        }
    }
}

/// Every check, in the order in which findings are shown.
const CHECKS: &[fn(&Repository) -> Vec<Finding>] = &[
    edges::allowed_edges,
    edges::walls,
    size::file_sizes,
    naming::no_mod_files,
    naming::no_vague_modules,
    naming::module_docs,
    words::core_words,
    words::private_paths,
    words::unfinished,
    imports::specification_imports,
    test_files::one_runner,
    test_files::no_forgotten_file,
    text::whitespace,
    documents::required,
    documents::links,
    error_codes::pages,
    rules::hold,
    mutants::hold,
    license::licenses,
    budget::packages,
];

/// Runs every check on this repository and prints what they found.
pub(crate) fn run() -> Result<(), Error> {
    let repository = Repository::read()?;
    let findings = findings(&repository);
    for finding in &findings {
        output::line(&finding.to_string());
    }
    let count = findings.iter().filter(|finding| finding.severity == Severity::Fault).count();
    if count > 0 {
        return Err(Error::Untidy { count });
    }
    Ok(())
}

fn findings(repository: &Repository) -> Vec<Finding> {
    CHECKS.iter().flat_map(|check| check(repository)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_is_tidy() {
        let repository = Repository::read().expect("the repository can be read");
        let faults: Vec<String> = findings(&repository)
            .iter()
            .filter(|finding| finding.severity == Severity::Fault)
            .map(ToString::to_string)
            .collect();
        assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
    }

    #[test]
    fn finding_shows_its_place_first() {
        assert_eq!(Finding::at("a.rs", 7, "too long").to_string(), "a.rs:7: too long");
        assert_eq!(Finding::notice("a.rs", "long").to_string(), "notice: a.rs: long");
    }
}
