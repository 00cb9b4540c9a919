//! The rules of `docs/spec` and the tests that hold them: each rule has its own name, says which tests would fail
//! without it or that it is open, and every test it names is there. A case of the specification holds a rule once
//! the runtime passes it, and then some rule names it.

use std::collections::BTreeSet;

use super::Finding;
use super::repository::Repository;

const PAGES: &str = "docs/spec/";
const INDEX: &str = "docs/spec/README.md";
/// Where the cases for the runtime are listed.
const CASES: &str = "crates/spec/src/cases.rs";
/// Where those are listed that it does not pass yet.
const LACKING: &str = "crates/runtime/tests/runner/specification.rs";
/// What stands in place of tests where the runtime does not have a rule yet.
const OPEN: &str = "open";

/// A rule as a page states it.
struct Rule<'t> {
    id: &'t str,
    tests: Vec<&'t str>,
}

/// Reads `- **ID** text [test, test]`.
fn rule(line: &str) -> Option<Result<Rule<'_>, &'static str>> {
    let (id, text) = line.strip_prefix("- **")?.split_once("**")?;
    let listed = text.strip_suffix(']').and_then(|text| text.rsplit_once('['));
    let Some((_rule, listed)) = listed else {
        return Some(Err("a rule ends with `[its tests]`, or with `[open]`"));
    };
    let tests: Vec<&str> = listed.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    if tests.is_empty() {
        return Some(Err("name a test that fails without this rule, or write `open`"));
    }
    Some(Ok(Rule { id, tests }))
}

/// Rules and tests hold together.
pub(super) fn hold(repository: &Repository) -> Vec<Finding> {
    let tests = tests(repository);
    let lacking = lacking(repository);
    let mut named = BTreeSet::new();
    let mut findings = Vec::new();
    let mut ids = BTreeSet::new();
    for file in &repository.files {
        if !file.path.starts_with(PAGES) || file.path == INDEX {
            continue;
        }
        let mut before: Option<(&str, u32)> = None;
        for (number, line) in file.numbered() {
            let rule = match rule(line) {
                None => continue,
                Some(Ok(rule)) => rule,
                Some(Err(problem)) => {
                    findings.push(Finding::at(&file.path, number, problem));
                    continue;
                }
            };
            if !ids.insert(rule.id) {
                findings.push(Finding::at(
                    &file.path,
                    number,
                    format!("`{}` is another rule's name", rule.id),
                ));
            }
            let place = rule.id.split_once('-').and_then(|(page, count)| Some((page, count.parse().ok()?)));
            let follows = match (before, place) {
                (_, None) => false,
                (None, Some((_page, count))) => count == 1,
                (Some((page, last)), Some((same, count))) => page == same && count == last + 1,
            };
            if !follows {
                let message = format!(
                    "`{}` does not follow the rule before it; rules of a page count up from 1",
                    rule.id
                );
                findings.push(Finding::at(&file.path, number, message));
            }
            before = place;
            for test in rule.tests.iter().filter(|test| **test != OPEN && !tests.contains(**test)) {
                findings.push(Finding::at(&file.path, number, format!("no test is called `{test}`")));
            }
            for case in rule.tests.iter().filter(|test| lacking.contains(*test)) {
                let message = format!("the runtime does not pass `{case}` yet, so it holds no rule");
                findings.push(Finding::at(&file.path, number, message));
            }
            named.extend(rule.tests.iter().copied());
            if rule.tests.contains(&OPEN) && rule.tests.len() > 1 {
                findings.push(Finding::at(&file.path, number, "a rule with tests is not open"));
            }
        }
    }
    for case in cases(repository) {
        if !named.contains(case) && !lacking.contains(case) {
            let message = format!("no rule of {PAGES} names the case `{case}`");
            findings.push(Finding::of(CASES, message));
        }
    }
    findings
}

/// The lines of a file behind the one that has `begin`, up to the one that is `end`.
fn block<'r>(
    repository: &'r Repository,
    path: &str,
    begin: &str,
    end: &str,
) -> impl Iterator<Item = &'r str> {
    let file = repository.files.iter().find(|file| file.path == path);
    let lines = file.into_iter().flat_map(|file| file.text.lines());
    let behind = lines.map(str::trim).skip_while(move |line| !line.contains(begin)).skip(1);
    behind.take_while(move |line| *line != end)
}

/// The names of the cases for the runtime.
fn cases(repository: &Repository) -> BTreeSet<&str> {
    block(repository, CASES, "$each! {", "}").collect()
}

/// The names of those that it does not pass yet.
fn lacking(repository: &Repository) -> BTreeSet<&str> {
    block(repository, LACKING, "const LACKING", "];").filter_map(|line| line.split('"').nth(1)).collect()
}

/// The names of the rules.
pub(super) fn ids(repository: &Repository) -> BTreeSet<&str> {
    let pages = repository.files.iter().filter(|file| file.path.starts_with(PAGES));
    pages.flat_map(|file| file.text.lines()).filter_map(|line| rule(line)?.ok()).map(|rule| rule.id).collect()
}

/// The names of every function in the crates: of tests, and of cases that become tests by a macro.
pub(super) fn tests(repository: &Repository) -> BTreeSet<&str> {
    let lines = repository.rust_files().flat_map(|file| file.text.lines());
    lines
        .filter_map(|line| {
            let (_before, after) = line.split_once("fn ")?;
            let name = after.split(['(', '<']).next()?;
            let is_name =
                !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
            is_name.then_some(name)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "#[test]\nfn it_holds() {}\npub async fn it_holds_too(driver: &D) {}\n";

    fn found(page: &str) -> Vec<String> {
        let repository = Repository::sample(&[("crates/a/src/lib.rs", CODE), ("docs/spec/a.md", page)]);
        hold(&repository).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_rule_names_tests_that_are_there_or_is_open() {
        let page = "- **A-1** It MUST. [it_holds, it_holds_too]\n- **A-2** It will. [open]\n";
        assert_eq!(found(page), [""; 0]);
        assert_eq!(found("- **A-1** It MUST. [it_is_gone]\n"), ["no test is called `it_is_gone`"]);
        assert_eq!(found("- **A-1** It MUST. [it_holds, open]\n"), ["a rule with tests is not open"]);
    }

    #[test]
    fn a_rule_without_tests_is_refused() {
        for page in ["- **A-1** It MUST.\n", "- **A-1** It MUST. []\n"] {
            assert_eq!(found(page).len(), 1, "{page}");
        }
    }

    #[test]
    fn a_case_is_named_by_a_rule_once_the_runtime_passes_it() {
        let list = "macro_rules! for_each {\n    $each! {\n        it_holds\n        it_waits\n    }\n}\n";
        let lacks = "const LACKING: &[(&str, &str)] = &[\n    (\"it_waits\", \"waits\"),\n];\n";
        let code = "fn it_holds() {}\nfn it_waits() {}\n";
        let found = |page: &str| {
            let files = [(CASES, list), (LACKING, lacks), ("crates/a/a.rs", code), ("docs/spec/a.md", page)];
            let found = hold(&Repository::sample(&files));
            found.into_iter().map(|finding| finding.message).collect::<Vec<_>>()
        };
        assert_eq!(found("- **A-1** It MUST. [it_holds]\n"), [""; 0]);
        assert_eq!(found("- **A-1** It MUST. [open]\n"), ["no rule of docs/spec/ names the case `it_holds`"]);
        let early = "- **A-1** It MUST. [it_holds, it_waits]\n";
        assert_eq!(found(early), ["the runtime does not pass `it_waits` yet, so it holds no rule"]);
    }

    #[test]
    fn rules_count_up_and_are_never_two_of_one_name() {
        assert_eq!(found("- **A-2** It MUST. [open]\n").len(), 1);
        assert_eq!(found("- **A-1** It MUST. [open]\n- **A-3** It MUST. [open]\n").len(), 1);
        assert_eq!(found("- **A-1** It MUST. [open]\n- **A-1** It MUST. [open]\n").len(), 2);
    }
}
