//! Bytes that make a difference in a diff and none to a reader.

use super::Finding;
use super::repository::{Repository, SourceFile};

/// Every text file ends in a newline; no line ends in a space or tab; Rust has no tabs.
pub(super) fn whitespace(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.files.iter().filter(|file| !is_verbatim(file)) {
        if !file.text.is_empty() && !file.text.ends_with('\n') {
            let last = file.text.lines().count();
            findings.push(Finding::at(&file.path, last, "end the file with a newline"));
        }
        for (number, line) in file.numbered() {
            if line.ends_with([' ', '\t', '\r']) {
                findings.push(Finding::at(&file.path, number, "remove the space at the end of the line"));
            }
            if file.is("rs") && line.contains('\t') {
                findings.push(Finding::at(&file.path, number, "replace the tab by spaces, or write `\\t`"));
            }
        }
    }
    findings
}

/// Files whose bytes are somebody else's: recorded output, patches, fixtures.
fn is_verbatim(file: &SourceFile) -> bool {
    file.is("snap") || file.is("patch") || file.path.contains("/fixtures/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whitespace_finds_each_kind() {
        let sample = Repository::sample(&[
            ("docs/a.md", "no newline"),
            ("docs/b.md", "one \ntwo\t\n"),
            ("crates/a/src/a.rs", "//! A.\n\tlet x = 1;\n"),
            ("Makefile", "all:\n\ttrue\n"),
            ("crates/a/src/snapshots/a.snap", "column  \n"),
            ("empty", ""),
        ]);
        let places: Vec<_> =
            whitespace(&sample).into_iter().map(|finding| (finding.path, finding.line)).collect();
        assert_eq!(
            places,
            [
                ("docs/a.md".to_owned(), Some(1)),
                ("docs/b.md".to_owned(), Some(1)),
                ("docs/b.md".to_owned(), Some(2)),
                ("crates/a/src/a.rs".to_owned(), Some(2)),
            ]
        );
    }
}
