//! Mutants: each says which rule it breaks and which tests must fail for it, is about production code, and still
//! applies, so that none of them rots unseen between two runs of `cargo xtask mutants`.

use super::Finding;
use super::repository::{Repository, SourceFile};
use super::rules;
use crate::mutants::{Change, EXTENSION, FOLDER, Head};

/// What a mutant says holds, and its lines are where they were.
pub(super) fn hold(repository: &Repository) -> Vec<Finding> {
    let (tests, rules) = (rules::tests(repository), rules::ids(repository));
    let mut findings = Vec::new();
    let patches = repository.files.iter().filter(|file| file.path.starts_with(FOLDER));
    for file in patches.filter(|file| file.path.ends_with(EXTENSION)) {
        let mut find = |problem: String| findings.push(Finding::of(&file.path, problem));
        match Head::parse(&file.text) {
            Ok(head) => {
                let names = head.killed_by.iter().map(|name| name.rsplit("::").next().unwrap_or(name));
                for name in names.filter(|name| !tests.contains(name)) {
                    find(format!("no test is called `{name}`"));
                }
                if !rules.contains(head.rule.as_str()) {
                    find(format!("no rule is called `{}`", head.rule));
                }
            }
            Err(problem) => find(problem),
        }
        match Change::parse(&file.text) {
            Ok(changes) => {
                for change in changes {
                    apply(repository, &change).unwrap_or_else(&mut find);
                }
            }
            Err(problem) => find(problem),
        }
    }
    findings
}

fn apply(repository: &Repository, change: &Change<'_>) -> Result<(), String> {
    let Some(file) = repository.file(change.path).filter(|file| is_production(file)) else {
        return Err(format!("{} is no file of production code", change.path));
    };
    change.check(&file.text)
}

/// Whether a file is one of a crate's own, and none of its tests.
fn is_production(file: &SourceFile) -> bool {
    let is_of_tests = file.path.contains("/tests/") || file.path.ends_with("/tests.rs");
    file.path.starts_with("crates/") && file.is_crate_source() && !is_of_tests
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "fn one() {}\nfn two() {}\nfn it_holds() {}\n";
    const PATCH: &str = "It breaks.\n\nRule: A-1\nPackage: a\nTarget: lib\nKilled by: a::it_holds\n\n\
        diff --git a/crates/a/src/a.rs b/crates/a/src/a.rs\n--- a/crates/a/src/a.rs\n+++ b/crates/a/src/a.rs\n\
        @@ -1,2 +1 @@\n-fn one() {}\n fn two() {}\n";

    fn found(patch: &str) -> Vec<String> {
        let files = [
            ("crates/a/src/a.rs", CODE),
            ("crates/a/src/a/tests.rs", CODE),
            ("docs/spec/a.md", "- **A-1** It MUST. [it_holds]\n"),
            ("xtask/mutants/one.patch", patch),
        ];
        hold(&Repository::sample(&files)).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_mutant_names_a_rule_and_tests_that_are_there() {
        assert_eq!(found(PATCH), [""; 0]);
        assert_eq!(found(&PATCH.replace("A-1", "A-2")), ["no rule is called `A-2`"]);
        assert_eq!(found(&PATCH.replace("it_holds", "it_is_gone")), ["no test is called `it_is_gone`"]);
        assert_eq!(found(&PATCH.replace("Killed by: a::it_holds", "Killed by:")).len(), 1);
    }

    #[test]
    fn a_mutant_still_applies() {
        assert_eq!(found(&PATCH.replace("-fn one", "-fn zero")).len(), 1);
        assert_eq!(
            found("Rule: A-1\nPackage: a\nTarget: lib\nKilled by: it_holds\n"),
            ["it changes nothing"]
        );
    }

    #[test]
    fn a_mutant_is_of_production_code() {
        for elsewhere in ["crates/a/src/a/tests.rs", "crates/a/src/gone.rs", "docs/spec/a.md"] {
            let patch = PATCH.replace("--- a/crates/a/src/a.rs", &format!("--- a/{elsewhere}"));
            assert_eq!(found(&patch), [format!("{elsewhere} is no file of production code")]);
        }
    }
}
