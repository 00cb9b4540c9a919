//! Integration tests: one binary per crate, and no file that no binary includes.

use super::Finding;
use super::repository::{Repository, SourceFile, declared_module};

const RUNNER: &str = "runner";
/// The one test binary besides: it is a part of the check of its own, which can be left out.
const BROWSER: &str = "crates/app/tests/browser.rs";

/// Each crate links one integration test binary, `tests/runner.rs`; a second one links everything again.
pub(super) fn one_runner(repository: &Repository) -> Vec<Finding> {
    test_files(repository)
        .filter(|(_, file, inside)| !inside.contains('/') && file.stem() != RUNNER && file.path != BROWSER)
        .map(|(tests, file, _)| {
            Finding::of(
                &file.path,
                format!(
                    "move it to {tests}{RUNNER}/{stem}.rs and name it in {tests}{RUNNER}.rs",
                    stem = file.stem()
                ),
            )
        })
        .collect()
}

/// Each file below `tests/` is named by a `mod`; one that is not is never compiled, and always green.
pub(super) fn no_forgotten_file(repository: &Repository) -> Vec<Finding> {
    test_files(repository)
        .filter(|(_, _, inside)| inside.contains('/'))
        .filter(|(tests, file, _)| {
            let named = test_files(repository)
                .filter(|(other, ..)| other == tests)
                .flat_map(|(_, other, _)| other.text.lines())
                .filter_map(declared_module)
                .any(|name| name == file.stem());
            !named
        })
        .map(|(tests, file, _)| {
            Finding::of(
                &file.path,
                format!("nothing includes it; add `mod {};` in {tests}{RUNNER}.rs", file.stem()),
            )
        })
        .collect()
}

/// The Rust files below a crate's `tests/`: that folder, the file, and its path inside.
fn test_files(repository: &Repository) -> impl Iterator<Item = (&str, &SourceFile, &str)> {
    repository.rust_files().filter_map(|file| {
        let below = file.path.strip_prefix("crates/")?;
        let inside = below.split_once('/')?.1.strip_prefix("tests/")?;
        Some((file.path.strip_suffix(inside)?, file, inside))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Repository {
        Repository::sample(&[
            ("crates/a/tests/runner.rs", "//! Runs.\nmod runner {\n    mod named;\n}\n"),
            ("crates/a/tests/runner/named.rs", ""),
            ("crates/a/tests/runner/forgotten.rs", ""),
            ("crates/a/tests/second.rs", ""),
            ("crates/app/tests/browser.rs", ""),
            ("crates/b/tests/runner/named.rs", ""),
            ("crates/b/src/tests.rs", ""),
        ])
    }

    #[test]
    fn one_runner_refuses_a_second_binary() {
        let found = one_runner(&sample());
        assert_eq!(
            found,
            [Finding::of(
                "crates/a/tests/second.rs",
                "move it to crates/a/tests/runner/second.rs and name it in crates/a/tests/runner.rs"
            )]
        );
    }

    #[test]
    fn no_forgotten_file_wants_a_declaration_in_the_same_crate() {
        let paths: Vec<_> = no_forgotten_file(&sample()).into_iter().map(|finding| finding.path).collect();
        assert_eq!(paths, ["crates/a/tests/runner/forgotten.rs", "crates/b/tests/runner/named.rs"]);
    }
}
