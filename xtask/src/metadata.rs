//! The part of `cargo metadata` that the tools read.

use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;

use crate::error::Error;
use crate::machine;

/// The platform whose packages count: the one that is released.
pub(crate) const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// A workspace as Cargo describes it.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) target_directory: PathBuf,
}

/// A crate of the workspace, or one it depends on.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) version: String,
    /// The SPDX expression, if the package states one.
    #[serde(default)]
    pub(crate) license: Option<String>,
    #[serde(default)]
    pub(crate) dependencies: Vec<Dependency>,
}

/// One line of a package's dependency tables.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) kind: Kind,
}

/// Which table a dependency stands in. Cargo writes an ordinary one as `null` or leaves it out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Option<NamedKind>")]
pub(crate) enum Kind {
    /// `[dependencies]`
    #[default]
    Normal,
    /// `[dev-dependencies]`
    Dev,
    /// `[build-dependencies]`
    Build,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum NamedKind {
    Dev,
    Build,
}

impl From<Option<NamedKind>> for Kind {
    fn from(named: Option<NamedKind>) -> Self {
        match named {
            None => Self::Normal,
            Some(NamedKind::Dev) => Self::Dev,
            Some(NamedKind::Build) => Self::Build,
        }
    }
}

/// The crates of this workspace, without what they depend on.
pub(crate) fn members() -> Result<Metadata, Error> {
    parse(machine::cargo().args(["metadata", "--format-version", "1", "--no-deps"]))
}

/// Every package that the lock file holds for [`PLATFORM`].
pub(crate) fn resolved() -> Result<Metadata, Error> {
    parse(machine::cargo().args(["metadata", "--format-version", "1", "--filter-platform", PLATFORM]))
}

fn parse(command: &mut Command) -> Result<Metadata, Error> {
    serde_json::from_str(&machine::read(command)?).map_err(Error::Metadata)
}

/// The packages that become part of the binary on [`PLATFORM`] or run while it is built: name and
/// version, each once.
pub(crate) fn linked() -> Result<Vec<String>, Error> {
    let listed = machine::read(machine::cargo().args([
        "tree",
        "--edges",
        "normal,build",
        "--package",
        "open-conduit",
        "--target",
        PLATFORM,
        "--prefix",
        "none",
        "--no-dedupe",
    ]))?;
    Ok(unique_packages(&listed))
}

fn unique_packages(listed: &str) -> Vec<String> {
    let mut packages: Vec<String> = listed
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some(format!("{} {}", words.next()?, words.next()?))
        })
        .collect();
    packages.sort();
    packages.dedup();
    packages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_reads_every_form_that_cargo_writes() {
        let read = |text: &str| serde_json::from_str::<Dependency>(text).expect("valid").kind;
        assert_eq!(read(r#"{"name":"a","kind":null}"#), Kind::Normal);
        assert_eq!(read(r#"{"name":"a"}"#), Kind::Normal);
        assert_eq!(read(r#"{"name":"a","kind":"dev"}"#), Kind::Dev);
        assert_eq!(read(r#"{"name":"a","kind":"build"}"#), Kind::Build);
    }

    #[test]
    fn unique_packages_counts_a_repeated_package_once() {
        let listed = "app v0.0.0 (/here/crates/app)\nserde v1.0.0\nserde v1.0.0 (*)\nserde v0.9.0\n\n";
        assert_eq!(unique_packages(listed), ["app v0.0.0", "serde v0.9.0", "serde v1.0.0"]);
    }
}
