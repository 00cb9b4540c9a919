//! `cargo xtask mutants`: breaks a rule on purpose, and sees that a test notices.
//!
//! Each file in `xtask/mutants` is a patch to production code with a head that says which rule it breaks and which
//! tests must fail for it. They are applied one by one to a tree of their own, below the target folder, of what is
//! committed; it is built and those tests are run. A mutant that survives means that its rule is not held; one that
//! does not apply or does not compile has to be written anew.
//!
//! Everything is built once as it is, and the tests have to pass then; after that only what a patch touches is built
//! again. It takes minutes all the same, so it is no part of the check. That the patches still apply, and name
//! rules and tests that are there, is (`tidy`).

mod patch;
mod tree;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

pub(crate) use self::patch::{Change, Head};
use self::tree::Tree;
use crate::component::{self, Component};
use crate::error::Error;
use crate::machine::{self, file_error};
use crate::postgres::{self, Server};
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
    /// Leave a component out; the tests that need it pass without it
    #[arg(long, value_name = "COMPONENT", value_delimiter = ',')]
    without: Vec<Component>,
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
    /// These of its tests did not pass.
    Killed(Vec<String>),
    /// All of its tests passed.
    Survived,
    /// It says nothing about the tests.
    Invalid(&'static str),
}

/// Tries every mutant, or those that are named.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let mutants = read(arguments)?;
    let target = metadata::members()?.target_directory;
    let mut variables = vec![(component::WITHOUT_VARIABLE, component::joined(&arguments.without))];
    let mut server = None;
    if !arguments.without.contains(&Component::Postgres) {
        component::provide(&[Component::Postgres], false, &target)?;
        let started = server.insert(Server::start()?);
        variables.push((postgres::VARIABLE, started.url().to_owned()));
    }
    let tree = Tree::set_up(&target.join("mutants"), variables)?;
    check_unbroken(&tree, &mutants)?;
    let table = Table::of(&mutants);
    output::line(&table.head());
    let mut failed = Vec::new();
    for mutant in &mutants {
        let start = machine::now();
        let fate = try_one(mutant, &tree)?;
        output::line(&table.row(mutant, &fate, start.elapsed().as_secs()));
        match fate {
            Fate::Killed(_) => {}
            Fate::Survived | Fate::Invalid(_) => failed.push(mutant.name.clone()),
        }
    }
    tree.clear()?;
    output::line(&format!("\n{} of {} mutants were killed", mutants.len() - failed.len(), mutants.len()));
    if failed.is_empty() { Ok(()) } else { Err(Error::Mutants { names: failed.join(", ") }) }
}

/// Reads the patches. Those that are run by one binary follow one another.
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
    mutants.sort_by(|one, other| (one.binary(), &one.name).cmp(&(other.binary(), &other.name)));
    for only in &arguments.only {
        if !mutants.iter().any(|mutant| mutant.name == *only) {
            let reason = format!("there is no file {FOLDER}/{only}{EXTENSION}");
            return Err(Error::Document { what: only.clone(), reason });
        }
    }
    Ok(mutants)
}

impl Mutant {
    /// The package and the target that its tests are in.
    fn binary(&self) -> (&str, &str) {
        (&self.head.package, &self.head.target)
    }
}

/// Sees that each test passes while nothing is broken, for else it would kill whatever is tried.
fn check_unbroken(tree: &Tree, mutants: &[Mutant]) -> Result<(), Error> {
    let mut binaries: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for mutant in mutants {
        let tests = binaries.entry(mutant.binary()).or_default();
        tests.extend(mutant.head.killed_by.iter().cloned());
        tests.sort();
        tests.dedup();
    }
    let mut failing = Vec::new();
    for (binary, tests) in binaries {
        let uncompiled = || Error::Unbroken { names: format!("all of {} {}", binary.0, binary.1) };
        let built = tree.build(binary)?.ok_or_else(uncompiled)?;
        failing.extend(not_passed(&tree.run(&built, &tests)?, &tests));
    }
    if failing.is_empty() { Ok(()) } else { Err(Error::Unbroken { names: failing.join(", ") }) }
}

fn try_one(mutant: &Mutant, tree: &Tree) -> Result<Fate, Error> {
    if !tree.apply(&mutant.path)? {
        return Ok(Fate::Invalid("it does not apply"));
    }
    let Some(built) = tree.build(mutant.binary())? else {
        return Ok(Fate::Invalid("it does not compile"));
    };
    let tests = &mutant.head.killed_by;
    let killers = not_passed(&tree.run(&built, tests)?, tests);
    Ok(if killers.is_empty() { Fate::Survived } else { Fate::Killed(killers) })
}

/// The tests that the harness does not say to have passed: they failed, or did not come to an end.
fn not_passed(printed: &str, tests: &[String]) -> Vec<String> {
    let passed = |name: &String| printed.lines().any(|line| line == format!("test {name} ... ok"));
    tests.iter().filter(|name| !passed(name)).cloned().collect()
}

/// How wide the columns are.
#[derive(Debug, Default)]
struct Table {
    name: usize,
    killed_by: usize,
}

impl Table {
    fn of(mutants: &[Mutant]) -> Self {
        let width = |of: fn(&Mutant) -> usize| mutants.iter().map(of).max().unwrap_or_default();
        let names = |mutant: &Mutant| shown(&mutant.head.killed_by).len();
        Self { name: width(|mutant| mutant.name.len()).max(8), killed_by: width(names).max(24) }
    }

    fn head(&self) -> String {
        let titles = self.line("mutant", "rule", "killed by", "seconds");
        let rule = |width: usize| "-".repeat(width);
        format!("{titles}\n{}", self.line(&rule(self.name), &rule(6), &rule(self.killed_by), &rule(7)))
    }

    fn row(&self, mutant: &Mutant, fate: &Fate, seconds: u64) -> String {
        let said = match fate {
            Fate::Killed(by) => shown(by),
            Fate::Survived => "SURVIVED".to_owned(),
            Fate::Invalid(why) => format!("INVALID: {why}"),
        };
        self.line(&mutant.name, &mutant.head.rule, &said, &seconds.to_string())
    }

    fn line(&self, name: &str, rule: &str, killed_by: &str, seconds: &str) -> String {
        let (first, third) = (self.name, self.killed_by);
        format!("| {name:<first$} | {rule:<6} | {killed_by:<third$} | {seconds:>7} |")
    }
}

/// Tests as the table names them: without the module that all tests of a crate are in.
fn shown(tests: &[String]) -> String {
    let short = |name: &String| name.strip_prefix("runner::").unwrap_or(name).to_owned();
    tests.iter().map(short).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(name: &str, killed_by: &str) -> Mutant {
        let head = format!("Rule: WAI-6\nPackage: runtime\nTarget: runner\nKilled by: {killed_by}\n");
        Mutant { name: name.to_owned(), path: PathBuf::new(), head: Head::parse(&head).unwrap() }
    }

    #[test]
    fn a_mutant_is_killed_by_a_test_that_did_not_pass() {
        let named = ["a".to_owned(), "b".to_owned(), "c".to_owned()];
        let printed = "test a ... ok\ntest b ... FAILED\ntest c ... ok\n";
        assert_eq!(not_passed(printed, &named), ["b"]);
        assert_eq!(not_passed("test a ... ok\ntest b ... ok\ntest c ... ", &named), ["c"]);
        assert_eq!(not_passed("test ab ... ok\ntest a ... ignored\n", &named), named);
    }

    #[test]
    fn the_table_has_a_row_for_each_mutant() {
        let mutants = [mutant("one", "runner::wait::a, runner::wait::b"), mutant("a-longer-name", "x")];
        let table = Table::of(&mutants);
        let killed = Fate::Killed(vec!["runner::wait::b".to_owned()]);
        let lines = [
            table.head(),
            table.row(&mutants[0], &killed, 61),
            table.row(&mutants[1], &Fate::Survived, 7),
            table.row(&mutants[1], &Fate::Invalid("it does not apply"), 0),
        ];
        let expected = "\
| mutant        | rule   | killed by                | seconds |
| ------------- | ------ | ------------------------ | ------- |
| one           | WAI-6  | wait::b                  |      61 |
| a-longer-name | WAI-6  | SURVIVED                 |       7 |
| a-longer-name | WAI-6  | INVALID: it does not apply |       0 |";
        assert_eq!(lines.join("\n"), expected);
    }
}
