//! What the checks look at: the repository's files, its crates and the exceptions it allows itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::error::Error;
use crate::machine::{self, file_error};
use crate::metadata::{self, Package};

/// Names that are never looked into: the same as in `.gitignore`, and Git's own folder.
const SKIPPED: &[&str] = &[".git", "target", ".pending-snap"];
const SKIPPED_SUFFIX: &str = ".snap.new";

/// Everything the checks may ask about.
#[derive(Debug, Default)]
pub(super) struct Repository {
    /// Every text file, by path from the root with `/`.
    pub(super) files: Vec<SourceFile>,
    /// Every path, of files that are not text too.
    pub(super) paths: BTreeSet<String>,
    /// The crates of the workspace.
    pub(super) members: Vec<Package>,
    /// The crates of the workspace and all they depend on.
    pub(super) packages: Vec<Package>,
    /// Name and version of each package that the binary is made of.
    pub(super) linked: Vec<String>,
    /// Licenses that a dependency may have.
    pub(super) licenses: Vec<String>,
    pub(super) settings: Settings,
}

/// `xtask/tidy.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    pub(super) spec_imports: Vec<String>,
    pub(super) long_files: BTreeMap<String, usize>,
}

/// The part of `deny.toml` that tidy holds too, so that there is one list of licenses.
#[derive(Debug, Deserialize)]
struct DenySettings {
    licenses: DenyLicenses,
}

#[derive(Debug, Deserialize)]
struct DenyLicenses {
    allow: Vec<String>,
}

/// A text file of the repository.
#[derive(Debug)]
pub(super) struct SourceFile {
    pub(super) path: String,
    pub(super) text: String,
}

impl Repository {
    /// Reads this repository: its files from disk, its crates from Cargo.
    pub(super) fn read() -> Result<Self, Error> {
        let root = machine::root();
        let resolved = metadata::resolved()?;
        let mut repository = Self {
            members: metadata::members()?.packages,
            packages: resolved.packages,
            linked: metadata::linked()?,
            licenses: settings::<DenySettings>("deny.toml")?.licenses.allow,
            settings: settings("xtask/tidy.toml")?,
            ..Self::default()
        };
        repository.collect(&root, "")?;
        Ok(repository)
    }

    fn collect(&mut self, directory: &Path, prefix: &str) -> Result<(), Error> {
        let mut names = Vec::new();
        for entry in fs::read_dir(directory).map_err(file_error("read", directory))? {
            let entry = entry.map_err(file_error("read", directory))?;
            let kind = entry.file_type().map_err(file_error("read", &entry.path()))?;
            names.push((entry.file_name().to_string_lossy().into_owned(), kind));
        }
        names.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, kind) in names {
            if SKIPPED.contains(&name.as_str()) || name.ends_with(SKIPPED_SUFFIX) {
                continue;
            }
            let on_disk = directory.join(&name);
            let path = format!("{prefix}{name}");
            if kind.is_dir() {
                self.collect(&on_disk, &format!("{path}/"))?;
            } else if kind.is_file() {
                let bytes = fs::read(&on_disk).map_err(file_error("read", &on_disk))?;
                if let Some(text) = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')) {
                    self.files.push(SourceFile { path: path.clone(), text });
                }
                self.paths.insert(path);
            }
        }
        Ok(())
    }

    /// The Rust files.
    pub(super) fn rust_files(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(|file| file.is("rs"))
    }

    /// The file at a path, if there is one.
    pub(super) fn file(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// A made-up repository of the given files, for the checks' tests.
    #[cfg(test)]
    pub(super) fn sample(files: &[(&str, &str)]) -> Self {
        Self {
            files: files
                .iter()
                .map(|(path, text)| SourceFile { path: (*path).to_owned(), text: (*text).to_owned() })
                .collect(),
            paths: files.iter().map(|(path, _)| (*path).to_owned()).collect(),
            ..Self::default()
        }
    }
}

impl SourceFile {
    /// Whether the file's name ends in `.extension`.
    pub(super) fn is(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == extension)
    }

    /// The lines with their numbers, from 1.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }

    /// The file's name without folders and without `.rs`.
    pub(super) fn stem(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or(&self.path);
        name.strip_suffix(".rs").unwrap_or(name)
    }

    /// Whether this is a file of some crate's `src`.
    pub(super) fn is_crate_source(&self) -> bool {
        let mut folders = self.path.split('/');
        match folders.next() {
            Some("crates") => folders.nth(1) == Some("src"),
            Some("xtask") => folders.next() == Some("src"),
            _ => false,
        }
    }

    /// How many lines stand before a trailing `#[cfg(test)] mod tests`.
    pub(super) fn production_lines(&self) -> usize {
        let lines: Vec<&str> = self.text.lines().collect();
        let starts_tests = |at: &usize| {
            lines[*at] == "#[cfg(test)]"
                && lines[at + 1..]
                    .iter()
                    .find(|line| !line.starts_with("#["))
                    .is_some_and(|line| line.starts_with("mod tests"))
        };
        (0..lines.len()).rev().find(starts_tests).unwrap_or(lines.len())
    }
}

/// The module that a line declares, if it declares one: `pub mod name;` or `mod name {`.
pub(super) fn declared_module(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    if let Some(after) = rest.strip_prefix("pub") {
        rest = match after.strip_prefix('(') {
            Some(restricted) => restricted.split_once(')')?.1,
            None => after,
        };
        rest = rest.trim_start();
    }
    let name = rest.strip_prefix("mod ")?.trim_start();
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    let after = name[end..].trim_start();
    (end > 0 && (after.starts_with(';') || after.starts_with('{'))).then_some(&name[..end])
}

fn settings<T: for<'de> Deserialize<'de>>(path: &'static str) -> Result<T, Error> {
    let on_disk = machine::root().join(path);
    let text = fs::read_to_string(&on_disk).map_err(file_error("read", &on_disk))?;
    toml::from_str(&text).map_err(|source| Error::Settings { path, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_module_reads_each_form() {
        assert_eq!(declared_module("mod a;"), Some("a"));
        assert_eq!(declared_module("    pub mod b_c {"), Some("b_c"));
        assert_eq!(declared_module("pub(super) mod d;"), Some("d"));
        assert_eq!(declared_module("// mod e;"), None);
        assert_eq!(declared_module("a mod f of text;"), None);
        assert_eq!(declared_module("mod g is a word"), None);
    }

    #[test]
    fn production_lines_stops_at_trailing_tests_only() {
        let lines =
            |text: &str| SourceFile { path: "a.rs".to_owned(), text: text.to_owned() }.production_lines();
        assert_eq!(lines("a\nb\n#[cfg(test)]\nmod tests {\n}\n"), 2);
        assert_eq!(lines("a\n#[cfg(test)]\nfn sample() {}\nb\n"), 4);
        assert_eq!(lines("a\n#[cfg(test)]\n#[expect(x)]\nmod tests;\n"), 1);
    }

    #[test]
    fn is_crate_source_knows_the_folders() {
        let is = |path: &str| SourceFile { path: path.to_owned(), text: String::new() }.is_crate_source();
        assert!(is("crates/store/src/lib.rs") && is("xtask/src/main.rs"));
        assert!(!is("crates/store/tests/runner.rs") && !is("docs/style.md"));
    }
}
