//! How long a source file may be. A long file has more than one subject.

use super::Finding;
use super::repository::Repository;

/// From here a file is named, so that nobody is surprised by the limit.
const NOTICE_LINES: usize = 500;
/// Beyond this a file fails.
const LINES_MAX: usize = 800;

/// No source file has more than [`LINES_MAX`] production lines, or more than it was excepted with.
pub(super) fn file_sizes(repository: &Repository) -> Vec<Finding> {
    let exceptions = &repository.settings.long_files;
    let mut findings: Vec<Finding> = exceptions
        .keys()
        .filter(|path| !repository.paths.contains(*path))
        .map(|path| Finding::of("xtask/tidy.toml", format!("there is no {path}; remove it from long_files")))
        .collect();
    for file in repository.rust_files() {
        let lines = file.production_lines();
        let finding = match exceptions.get(&file.path) {
            Some(excepted) if lines > *excepted => Some(Finding::at(
                &file.path,
                *excepted + 1,
                format!("{lines} lines, excepted with {excepted}; move a subject to a file of its own"),
            )),
            Some(_) if lines <= LINES_MAX => Some(Finding::of(
                "xtask/tidy.toml",
                format!("{} has {lines} lines, under the limit; remove it from long_files", file.path),
            )),
            None if lines > LINES_MAX => Some(Finding::at(
                &file.path,
                LINES_MAX + 1,
                format!("{lines} lines, and {LINES_MAX} is the most; move a subject to a file of its own"),
            )),
            None if lines >= NOTICE_LINES => Some(Finding::notice(
                &file.path,
                format!("{lines} lines; look for a second subject before the limit of {LINES_MAX}"),
            )),
            Some(_) | None => None,
        };
        findings.extend(finding);
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::Severity;

    fn repository(lines: usize) -> Repository {
        Repository::sample(&[("crates/store/src/a.rs", &"x\n".repeat(lines))])
    }

    #[test]
    fn file_sizes_refuses_a_long_file_and_names_a_longish_one() {
        assert_eq!(file_sizes(&repository(NOTICE_LINES - 1)), []);
        assert_eq!(file_sizes(&repository(NOTICE_LINES))[0].severity, Severity::Notice);
        assert_eq!(file_sizes(&repository(LINES_MAX))[0].severity, Severity::Notice);
        let found = file_sizes(&repository(LINES_MAX + 1));
        assert_eq!((found[0].severity, found[0].line), (Severity::Fault, Some(LINES_MAX + 1)));
    }

    #[test]
    fn file_sizes_leaves_trailing_tests_out() {
        let text = format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", "x\n".repeat(10), "y\n".repeat(900));
        assert_eq!(file_sizes(&Repository::sample(&[("crates/store/src/a.rs", &text)])), []);
    }

    #[test]
    fn file_sizes_holds_an_exception_to_what_it_was() {
        let excepted = |lines: usize, exception: usize| {
            let mut sample = repository(lines);
            sample.settings.long_files.insert("crates/store/src/a.rs".to_owned(), exception);
            file_sizes(&sample)
        };
        assert_eq!(excepted(900, 900), []);
        assert!(excepted(901, 900)[0].message.contains("excepted with 900"));
        assert!(excepted(700, 900)[0].message.contains("remove it from long_files"));
    }

    #[test]
    fn file_sizes_refuses_an_exception_for_no_file() {
        let mut sample = repository(1);
        sample.settings.long_files.insert("gone.rs".to_owned(), 900);
        assert!(file_sizes(&sample)[0].message.contains("there is no gone.rs"));
    }
}
