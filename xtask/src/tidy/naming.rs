//! Names of files and modules, and the sentence each file starts with.

use super::Finding;
use super::repository::{Repository, SourceFile, declared_module};

/// Names that say nothing about what is inside, or that hide a name of Rust's own.
const VAGUE: &[&str] = &["core", "common", "types", "util", "utils", "helper", "helpers"];

/// A module is `name.rs` beside `name/`, so that a list of open files can be told apart.
pub(super) fn no_mod_files(repository: &Repository) -> Vec<Finding> {
    repository
        .rust_files()
        .filter(|file| file.stem() == "mod")
        .map(|file| {
            let folder = file.path.strip_suffix("/mod.rs").unwrap_or(&file.path);
            Finding::of(&file.path, format!("rename it to {folder}.rs"))
        })
        .collect()
}

/// No crate and no module has one of the [`VAGUE`] names.
pub(super) fn no_vague_modules(repository: &Repository) -> Vec<Finding> {
    let vague = |name: &str| VAGUE.contains(&name);
    let advice = |name: &str| format!("`{name}` says nothing; name it after its subject");
    let mut findings: Vec<Finding> = repository
        .members
        .iter()
        .filter(|member| vague(&member.name))
        .map(|member| Finding::of("Cargo.toml", advice(&member.name)))
        .collect();
    for file in repository.rust_files() {
        let in_path = file.path.split('/').chain([file.stem()]).find(|name| vague(name));
        findings.extend(in_path.map(|name| Finding::of(&file.path, advice(name))));
        for (number, line) in file.numbered() {
            if let Some(name) = declared_module(line).filter(|name| vague(name)) {
                findings.push(Finding::at(&file.path, number, advice(name)));
            }
        }
    }
    findings
}

/// Each source file starts by saying why it exists.
pub(super) fn module_docs(repository: &Repository) -> Vec<Finding> {
    repository
        .rust_files()
        .filter(|file| file.is_crate_source() && !file.text.starts_with("//!") && !is_test_file(file))
        .map(|file| Finding::at(&file.path, 1, "start with `//!`: what this file is for and why it is apart"))
        .collect()
}

/// Tests that were moved out of their file document themselves by their names.
fn is_test_file(file: &SourceFile) -> bool {
    file.stem() == "tests"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Package;

    #[test]
    fn no_mod_files_names_the_right_file() {
        let found =
            no_mod_files(&Repository::sample(&[("crates/a/src/route/mod.rs", ""), ("a/model.rs", "")]));
        assert_eq!(found, [Finding::of("crates/a/src/route/mod.rs", "rename it to crates/a/src/route.rs")]);
    }

    #[test]
    fn no_vague_modules_looks_at_files_folders_declarations_and_crates() {
        let mut sample = Repository::sample(&[
            ("crates/a/src/util.rs", ""),
            ("crates/a/src/common/x.rs", ""),
            ("crates/a/src/lib.rs", "//! A.\nmod types {\n}\nmod fine;\n"),
        ]);
        sample.members = vec![Package {
            name: "core".to_owned(),
            version: String::new(),
            license: None,
            dependencies: Vec::new(),
        }];
        let places: Vec<_> =
            no_vague_modules(&sample).into_iter().map(|finding| (finding.path, finding.line)).collect();
        assert_eq!(
            places,
            [
                ("Cargo.toml".to_owned(), None),
                ("crates/a/src/util.rs".to_owned(), None),
                ("crates/a/src/common/x.rs".to_owned(), None),
                ("crates/a/src/lib.rs".to_owned(), Some(2)),
            ]
        );
    }

    #[test]
    fn module_docs_wants_a_first_sentence() {
        let found = module_docs(&Repository::sample(&[
            ("crates/a/src/bare.rs", "use std::fmt;\n"),
            ("crates/a/src/good.rs", "//! Good.\n"),
            ("crates/a/src/good/tests.rs", "use super::*;\n"),
            ("crates/a/build.rs", "fn main() {}\n"),
        ]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].path, "crates/a/src/bare.rs");
    }
}
