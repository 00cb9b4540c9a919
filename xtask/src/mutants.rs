//! `cargo xtask mutants`: breaks a rule on purpose, and sees that a test notices.
//!
//! Each file in `xtask/mutants` is a patch to production code with a head that says what it breaks and which tests
//! must fail for it. They are applied one by one to a copy of the committed tree, built and run. A mutant that
//! survives means that its rule is not held; one that does not apply or does not compile has to be written anew.
//!
//! It takes minutes, so it is no part of the check. That the patches name tests that are there is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::machine::{self, file_error};
use crate::{metadata, output};

/// Where the patches are, from the root.
pub(crate) const FOLDER: &str = "xtask/mutants";
/// What the files are called at the end.
pub(crate) const EXTENSION: &str = ".patch";

/// What is typed after `cargo xtask mutants`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Try only these, by the names of their files
    #[arg(long, value_name = "MUTANT", value_delimiter = ',')]
    only: Vec<String>,
}

/// The head of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// The package whose tests are run.
    pub(crate) package: String,
    /// Which of its tests: `lib`, or the name of an integration test.
    pub(crate) target: String,
    /// The tests that must fail, by their whole names.
    pub(crate) killed_by: Vec<String>,
}

impl Head {
    /// Reads what stands before the first difference.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let head = text.split("diff --git").next().unwrap_or_default();
        let value = |name: &str| {
            let line = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.map(|value| value.trim().to_owned())
                .ok_or_else(|| format!("its head has no line `{name}: …`"))
        };
        let killed_by: Vec<String> =
            value("Killed by")?.split(',').map(|name| name.trim().to_owned()).collect();
        if killed_by.iter().any(String::is_empty) {
            return Err("it names no test that must fail".to_owned());
        }
        Ok(Self { package: value("Package")?, target: value("Target")?, killed_by })
    }
}

/// A patch, by the name of its file.
#[derive(Debug)]
struct Mutant {
    name: String,
    path: PathBuf,
    head: Head,
}

/// What became of a mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fate {
    /// These of its tests failed.
    Killed(Vec<String>),
    /// All of its tests passed.
    Survived,
    /// It says nothing about the tests.
    Invalid(&'static str),
}

/// Tries every mutant, or those that are named.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let mutants = read(arguments)?;
    let work = metadata::members()?.target_directory.join("mutants");
    let tree = work.join("tree");
    fresh_tree(&tree)?;
    let mut failed = Vec::new();
    for mutant in &mutants {
        let fate = try_one(mutant, &tree, &work.join("target"))?;
        let said = match &fate {
            Fate::Killed(by) => format!("killed by {}", by.join(", ")),
            Fate::Survived => format!("SURVIVED {}", mutant.head.killed_by.join(", ")),
            Fate::Invalid(why) => format!("INVALID: {why}"),
        };
        output::line(&format!("{:<32} {said}", mutant.name));
        match fate {
            Fate::Killed(_) => {}
            Fate::Survived | Fate::Invalid(_) => failed.push(mutant.name.clone()),
        }
    }
    remove_tree(&tree);
    output::line(&format!("{} of {} mutants were killed", mutants.len() - failed.len(), mutants.len()));
    if failed.is_empty() { Ok(()) } else { Err(Error::Mutants { names: failed.join(", ") }) }
}

fn read(arguments: &Arguments) -> Result<Vec<Mutant>, Error> {
    let folder = machine::root().join(FOLDER);
    let mut mutants = Vec::new();
    for entry in fs::read_dir(&folder).map_err(file_error("read", &folder))? {
        let path = entry.map_err(file_error("read", &folder))?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(name) = file.strip_suffix(EXTENSION) else { continue };
        if !arguments.only.is_empty() && !arguments.only.iter().any(|only| only == name) {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(file_error("read", &path))?;
        let head = Head::parse(&text).map_err(|reason| Error::Document { what: file.clone(), reason })?;
        mutants.push(Mutant { name: name.to_owned(), path, head });
    }
    mutants.sort_by(|one, other| one.name.cmp(&other.name));
    for only in &arguments.only {
        if !mutants.iter().any(|mutant| mutant.name == *only) {
            let reason = format!("there is no file {FOLDER}/{only}{EXTENSION}");
            return Err(Error::Document { what: only.clone(), reason });
        }
    }
    Ok(mutants)
}

/// A copy of what is committed, so that nobody's work is patched.
fn fresh_tree(tree: &Path) -> Result<(), Error> {
    remove_tree(tree);
    machine::run(
        machine::command("git")
            .args(["worktree", "add", "--quiet", "--force", "--detach"])
            .arg(tree)
            .arg("HEAD"),
    )
}

/// It need not be there.
fn remove_tree(tree: &Path) {
    machine::succeeds(machine::command("git").args(["worktree", "remove", "--force"]).arg(tree));
    machine::succeeds(machine::command("git").args(["worktree", "prune"]));
}

fn try_one(mutant: &Mutant, tree: &Path, target: &Path) -> Result<Fate, Error> {
    machine::run(git(tree).args(["checkout", "--quiet", "--force", "HEAD"]))?;
    if !machine::succeeds(git(tree).arg("apply").arg(&mutant.path)) {
        return Ok(Fate::Invalid("it does not apply; write it anew"));
    }
    if !machine::succeeds(tests(mutant, tree, target).arg("--no-run")) {
        return Ok(Fate::Invalid("it does not compile; write it anew"));
    }
    let mut command = tests(mutant, tree, target);
    command.args(["--no-fail-fast", "--", "--exact"]).args(&mutant.head.killed_by);
    let output = command.output().map_err(|source| machine::start_error(&command, source))?;
    Ok(fate(&String::from_utf8_lossy(&output.stdout), &mutant.head.killed_by))
}

/// What the harness printed of the named tests.
fn fate(printed: &str, named: &[String]) -> Fate {
    let ended = |name: &str, how: &str| printed.lines().any(|line| line == format!("test {name} ... {how}"));
    if named.iter().any(|name| !ended(name, "ok") && !ended(name, "FAILED")) {
        return Fate::Invalid("a test that it names did not run");
    }
    let killers: Vec<String> = named.iter().filter(|name| ended(name, "FAILED")).cloned().collect();
    if killers.is_empty() { Fate::Survived } else { Fate::Killed(killers) }
}

fn git(tree: &Path) -> Command {
    let mut command = machine::command("git");
    command.current_dir(tree);
    command
}

fn tests(mutant: &Mutant, tree: &Path, target: &Path) -> Command {
    let mut command = machine::cargo();
    command.current_dir(tree).env("CARGO_TARGET_DIR", target).args([
        "test",
        "--package",
        &mutant.head.package,
    ]);
    if mutant.head.target == "lib" {
        command.arg("--lib");
    } else {
        command.args(["--test", &mutant.head.target]);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "A Wait is not woken.\n\nPackage: runtime\nTarget: runner\nKilled by: memory::a, memory::b\n\n";

    #[test]
    fn a_head_names_package_target_and_tests() {
        let head = Head::parse(&format!("{HEAD}diff --git a/x b/x\nPackage: other\n")).unwrap();
        assert_eq!((head.package.as_str(), head.target.as_str()), ("runtime", "runner"));
        assert_eq!(head.killed_by, ["memory::a", "memory::b"]);
    }

    #[test]
    fn a_head_that_names_no_test_is_refused() {
        for head in ["Package: a\nTarget: lib\n", "Package: a\nTarget: lib\nKilled by:\n", ""] {
            assert!(Head::parse(head).is_err(), "{head}");
        }
    }

    #[test]
    fn a_mutant_is_killed_by_a_test_that_ran_and_failed() {
        let named = ["memory::a".to_owned(), "memory::b".to_owned()];
        let printed = "test memory::a ... ok\ntest memory::b ... FAILED\n";
        assert_eq!(fate(printed, &named), Fate::Killed(vec!["memory::b".to_owned()]));
        assert_eq!(fate("test memory::a ... ok\ntest memory::b ... ok\n", &named), Fate::Survived);
    }

    #[test]
    fn a_test_that_did_not_run_kills_nothing() {
        let named = ["memory::a".to_owned()];
        for printed in ["", "test memory::ab ... FAILED\n", "test memory::a ... ignored\n"] {
            assert!(matches!(fate(printed, &named), Fate::Invalid(_)), "{printed}");
        }
    }
}
