//! A remote, a main checkout of it and a provider, all in a directory of their own.

use std::path::{Path, PathBuf};
use std::process::Command;

use bundled::git::GitWorkspaces;
use extension::{
    AcquireError, ExecutionId, KeptState, KeptWorkspace, Timestamp, WorkId, WorkspaceEnded, WorkspaceFacts,
    WorkspaceProvider, WorkspaceRequest,
};
use serde_json::{Value, json};

pub(crate) struct Site {
    home: tempfile::TempDir,
    pub(crate) provider: GitWorkspaces,
}

/// The moment that runs end at.
pub(crate) const END: Timestamp = Timestamp::from_micros(1_000_000);

impl Site {
    /// A remote with one commit, cloned.
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        git(&root, &["init", "--quiet", "--bare", "--initial-branch=main", "remote.git"]);
        git(&root, &["clone", "--quiet", "remote.git", "main"]);
        let site = Self { provider: provider(&root.join("workspaces")), home };
        Self::commit(&site.main(), "first");
        git(&site.main(), &["push", "--quiet", "--set-upstream", "origin", "HEAD:main"]);
        git(&site.main(), &["remote", "set-head", "origin", "--auto"]);
        site
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.home.path().canonicalize().unwrap()
    }

    pub(crate) fn main(&self) -> PathBuf {
        self.root().join("main")
    }

    /// Commits a file of that name in a checkout.
    pub(crate) fn commit(dir: &Path, name: &str) {
        std::fs::write(dir.join(name), name).unwrap();
        git(dir, &["add", name]);
        git(dir, &["-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "-m", name]);
    }

    /// Somebody else pushes a commit.
    pub(crate) fn push(&self, name: &str) -> String {
        let other = self.root().join(format!("other-{name}"));
        git(&self.root(), &["clone", "--quiet", "remote.git", other.to_str().unwrap()]);
        Self::commit(&other, name);
        git(&other, &["push", "--quiet", "origin", "HEAD:main"]);
        head(&other)
    }

    pub(crate) fn config(&self, mode: &str) -> Value {
        json!({ "checkout": self.main(), "mode": mode })
    }

    pub(crate) async fn try_acquire(
        &self,
        execution: i64,
        work: i64,
        mode: &str,
    ) -> Result<WorkspaceFacts, AcquireError> {
        let (execution, work) = (ExecutionId::from_number(execution), WorkId::from_number(work));
        self.provider.acquire(WorkspaceRequest { execution, work, config: self.config(mode) }).await
    }

    pub(crate) async fn acquire(&self, execution: i64, work: i64, mode: &str) -> WorkspaceFacts {
        self.try_acquire(execution, work, mode).await.unwrap()
    }

    /// The end of a run whose Work goes on.
    pub(crate) async fn release(&self, execution: i64, well: bool) -> Option<String> {
        self.release_as(execution, WorkspaceEnded { well, work_ended: false, at: END }).await
    }

    pub(crate) async fn release_as(&self, execution: i64, ended: WorkspaceEnded) -> Option<String> {
        self.provider.release(ExecutionId::from_number(execution), ended).await.unwrap()
    }

    /// What is kept, by run.
    pub(crate) async fn kept(&self) -> Vec<(i64, KeptState)> {
        let kept = self.provider.kept().await.unwrap();
        let mut kept: Vec<_> =
            kept.iter().map(|KeptWorkspace { execution, state, .. }| (execution.number(), *state)).collect();
        kept.sort_by_key(|(execution, _state)| *execution);
        kept
    }

    /// The record of a run, as a crash may have left it.
    pub(crate) fn edit_record(&self, execution: i64, edit: impl FnOnce(&mut Value)) {
        let name = format!("{}.json", ExecutionId::from_number(execution));
        let path = self.root().join("workspaces/runs").join(name);
        let mut record: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        edit(&mut record);
        std::fs::write(&path, record.to_string()).unwrap();
    }
}

pub(crate) fn provider(root: &Path) -> GitWorkspaces {
    let of = |name: &str| (name.to_owned(), std::env::var(name).unwrap_or_default());
    GitWorkspaces::new(root, &[of("PATH"), ("HOME".to_owned(), "/nonexistent".to_owned())])
}

#[expect(clippy::disallowed_methods, reason = "it stands for whoever works in the repository")]
pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let done = Command::new("git").args(args).current_dir(dir).output().unwrap();
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

pub(crate) fn head(dir: &Path) -> String {
    git(dir, &["rev-parse", "HEAD"])
}
