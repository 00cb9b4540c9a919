//! Where mutants are tried: a tree of what is committed, with a target folder of its own.
//!
//! Both stay below the target folder for the next time, so that only what has changed since is built. Nothing is ever
//! patched in a tree that somebody works in.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::component;
use crate::error::Error;
use crate::machine::{self, file_error};
use crate::postgres;

/// How long the tests of one mutant may take. One that is broken may wait for ever.
const RUN_LIMIT: Duration = Duration::from_mins(5);

/// A place to try mutants in.
#[derive(Debug)]
pub(super) struct Tree {
    root: PathBuf,
    target: PathBuf,
    printed: PathBuf,
    /// Variables for the tests.
    variables: Vec<(&'static str, String)>,
}

/// A program that runs tests.
#[derive(Debug)]
pub(super) struct Built {
    program: PathBuf,
    /// The folder of its package, where Cargo starts tests.
    package: PathBuf,
}

impl Tree {
    /// A tree below `folder`, with what is committed here.
    pub(super) fn set_up(folder: &Path, variables: Vec<(&'static str, String)>) -> Result<Self, Error> {
        fs::create_dir_all(folder).map_err(file_error("create", folder))?;
        let own = Self {
            root: folder.join("tree"),
            target: folder.join("target"),
            printed: folder.join("printed"),
            variables,
        };
        let head = machine::read(machine::command("git").args(["rev-parse", "HEAD"]))?;
        let is_there = own.root.join(".git").exists()
            && machine::succeeds(own.git().args(["checkout", "--quiet", "--force", "--detach", head.trim()]));
        if !is_there {
            if own.root.exists() {
                fs::remove_dir_all(&own.root).map_err(file_error("remove", &own.root))?;
            }
            machine::succeeds(machine::command("git").args(["worktree", "prune"]));
            let mut add = machine::command("git");
            add.args(["worktree", "add", "--quiet", "--force", "--detach"]).arg(&own.root).arg(head.trim());
            machine::run(&mut add)?;
        }
        own.clear()?;
        Ok(own)
    }

    /// Takes back whatever was changed. What did not change keeps its time, and is not built again.
    pub(super) fn clear(&self) -> Result<(), Error> {
        machine::run(self.git().args(["reset", "--quiet", "--hard"]))?;
        machine::run(self.git().args(["clean", "--quiet", "--force", "-d"]))
    }

    /// Applies a patch to what is committed. False when it does not apply.
    pub(super) fn apply(&self, patch: &Path) -> Result<bool, Error> {
        self.clear()?;
        Ok(machine::succeeds(self.git().arg("apply").arg(patch)))
    }

    /// Builds the tests of a package: `lib`, or an integration test. None when they do not compile.
    pub(super) fn build(&self, (package, target): (&str, &str)) -> Result<Option<Built>, Error> {
        let mut cargo = machine::cargo();
        cargo
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.target)
            // Nobody looks at a backtrace here.
            .env("CARGO_PROFILE_DEV_DEBUG", "none")
            .args(["test", "--no-run", "--quiet", "--message-format", "json", "--package", package]);
        if target == "lib" {
            cargo.arg("--lib");
        } else {
            cargo.args(["--test", target]);
        }
        let output = cargo.output().map_err(|source| machine::start_error(&cargo, source))?;
        if !output.status.success() {
            return Ok(None);
        }
        Ok(built(&String::from_utf8_lossy(&output.stdout)))
    }

    /// Runs some tests and returns what they printed. Whatever has not ended in time is killed.
    pub(super) fn run(&self, built: &Built, tests: &[String]) -> Result<String, Error> {
        let printed = File::create(&self.printed).map_err(file_error("create", &self.printed))?;
        let mut command = machine::command(&built.program);
        for variable in [component::WITHOUT_VARIABLE, postgres::VARIABLE] {
            command.env_remove(variable);
        }
        command
            .current_dir(&built.package)
            .env("CARGO_MANIFEST_DIR", &built.package)
            .env("INSTA_UPDATE", "no")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .arg("--exact")
            .args(tests)
            .stdout(printed)
            .stderr(Stdio::null());
        let mut child = command.spawn().map_err(|source| machine::start_error(&command, source))?;
        if machine::until(RUN_LIMIT, || child.try_wait().ok().flatten()).is_none() {
            child.kill().ok();
            child.wait().ok();
        }
        let printed = fs::read(&self.printed).map_err(file_error("read", &self.printed))?;
        Ok(String::from_utf8_lossy(&printed).into_owned())
    }

    /// Git in this tree, and never in one around it: what is not committed there must not be lost.
    fn git(&self) -> Command {
        let mut command = machine::command("git");
        for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
            command.env_remove(variable);
        }
        command
            .current_dir(&self.root)
            .env("GIT_CEILING_DIRECTORIES", self.root.parent().unwrap_or(&self.root));
        command
    }
}

/// The one program that Cargo says to have built for tests.
fn built(messages: &str) -> Option<Built> {
    messages.lines().find_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        let program = PathBuf::from(message.get("executable")?.as_str()?);
        message.pointer("/profile/test")?.as_bool().filter(|is_test| *is_test)?;
        let package = Path::new(message.get("manifest_path")?.as_str()?).parent()?.to_owned();
        Some(Built { program, package })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_is_the_program_that_has_the_tests() {
        let messages = r#"{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","profile":{"test":false},"executable":"/t/a"}
{"reason":"compiler-artifact","manifest_path":"/w/b/Cargo.toml","profile":{"test":true},"executable":null}
{"reason":"compiler-artifact","manifest_path":"/w/b/Cargo.toml","profile":{"test":true},"executable":"/t/b-1"}
{"reason":"build-finished","success":true}"#;
        let built = built(messages).unwrap();
        assert_eq!((built.program, built.package), (PathBuf::from("/t/b-1"), PathBuf::from("/w/b")));
        assert!(super::built("").is_none());
    }
}
