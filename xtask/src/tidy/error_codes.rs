//! Every stable error code has a page that says what to do, and every page has its code.

use std::collections::BTreeSet;

use super::Finding;
use super::repository::Repository;

const CODES: &str = "crates/app/src/error_code.rs";
const PAGES: &str = "docs/errors/";
const INDEX: &str = "README";

/// Codes and pages are the same set. Without [`CODES`] there is nothing to compare.
pub(super) fn pages(repository: &Repository) -> Vec<Finding> {
    let Some(file) = repository.file(CODES) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let mut codes = BTreeSet::new();
    for (number, line) in file.numbered().take(file.production_lines()) {
        for code in code_literals(line) {
            let page = format!("{PAGES}{code}.md");
            if codes.insert(code) && !repository.paths.contains(&page) {
                findings.push(Finding::at(CODES, number, format!("`{code}` has no page; write {page}")));
            }
        }
    }
    for path in &repository.paths {
        let Some(name) = path.strip_prefix(PAGES).and_then(|name| name.strip_suffix(".md")) else {
            continue;
        };
        if name != INDEX && !codes.contains(name) {
            findings.push(Finding::of(path, format!("no error has the code `{name}`; remove the page")));
        }
    }
    findings
}

/// The string literals of a line that are written like a code. Comments are left out.
fn code_literals(line: &str) -> Vec<&str> {
    if line.trim_start().starts_with("//") {
        return Vec::new();
    }
    let is_code = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    line.split('"').skip(1).step_by(2).filter(|text| is_code(text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_compares_both_ways() {
        let text = "//! Codes.\n/// Like \"not_this\".\n    Self::DepthLimit => \"depth_limit\",\n    Self::Held => \"held\",\n";
        let found = pages(&Repository::sample(&[
            (CODES, text),
            ("docs/errors/held.md", ""),
            ("docs/errors/gone.md", ""),
            ("docs/errors/README.md", ""),
        ]));
        assert_eq!(
            found,
            [
                Finding::at(CODES, 3, "`depth_limit` has no page; write docs/errors/depth_limit.md"),
                Finding::of("docs/errors/gone.md", "no error has the code `gone`; remove the page"),
            ]
        );
    }

    #[test]
    fn pages_has_nothing_to_say_without_codes() {
        assert_eq!(pages(&Repository::sample(&[("docs/errors/a.md", "")])), []);
    }
}
