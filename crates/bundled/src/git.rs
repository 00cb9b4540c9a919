//! The `git` provider of workspaces: a main checkout that runs share, a fresh checkout for each run, or a worktree
//! for each Work.
//!
//! What is about to be done is written down first, so that whoever comes after a crash finds either a workspace or a
//! record of one that was being made and that nothing ran in. What anybody wrote and nobody committed, and commits
//! that are nowhere else, are never removed.
//!
//! The modules stand in the order an acquisition passes them: `config` is what a binding asks for, `record` what is
//! written down, `decide` what is to be done about it, `program` how git is called, and `tree` what it is called for.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use extension::{
    AcquireError, BoxFuture, ConfigProblem, ExecutionId, KeptState, KeptWorkspace, Timestamp, WorkspaceEnded,
    WorkspaceFacts, WorkspaceProvider, WorkspaceRequest,
};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

mod config;
mod record;
mod decide;
mod program;
mod tree;

use config::{Config, Mode};
use decide::{Begin, GiveBack};
use program::{Git, GitError, Lock};
use record::{Record, Records, State, private_directory};

/// Gives attempts a place in a git repository.
#[derive(Debug, Clone)]
pub struct GitWorkspaces(Arc<Place>);

/// Where everything lies.
#[derive(Debug)]
struct Place {
    root: PathBuf,
    records: Records,
    git: Git,
}

impl GitWorkspaces {
    /// A provider that keeps what it makes below `root`, which is made with the first workspace, and calls git with
    /// what it needs of `environment`.
    pub fn new(root: &Path, environment: &[(String, String)]) -> Self {
        let (records, git) = (Records::below(root), Git::new(environment));
        Self(Arc::new(Place { root: root.to_owned(), records, git }))
    }

    /// Chooses from this process's own environment.
    pub fn from_process(root: &Path) -> Self {
        Self::new(root, &crate::shell::ShellOptions::from_process().environment)
    }

    /// Works on a thread of its own, which a daemon that ends does not wait for: what it leaves half done is found
    /// by the next one.
    async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Place) -> T + Send + 'static,
    ) -> Result<T, String> {
        let (done, result) = tokio::sync::oneshot::channel();
        let place = Arc::clone(&self.0);
        std::thread::spawn(move || {
            let _nobody_waits = done.send(work(&place));
        });
        result.await.map_err(|_panicked| "the provider failed by a bug".to_owned())
    }
}

/// Why a workspace could not be made, and whether that may pass.
#[derive(Debug)]
enum Trouble {
    Passing(String),
    Lasting(String),
}

impl Trouble {
    fn of(error: &GitError) -> Self {
        match error {
            GitError::Missing => Self::Lasting(error.to_string()),
            GitError::TooLong { .. } | GitError::Refused { .. } | GitError::Broken { .. } => {
                Self::Passing(error.to_string())
            }
        }
    }
}

impl From<GitError> for Trouble {
    fn from(error: GitError) -> Self {
        Self::of(&error)
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Passing(format!("the workspace's files cannot be written: {error}"))
    }
}

impl From<Trouble> for AcquireError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Passing(reason) => Self::Unavailable { reason },
            Trouble::Lasting(reason) => Self::Failed { reason },
        }
    }
}

impl Place {
    /// The root, made and resolved, so that git's answers and ours are the same paths.
    fn root(&self) -> io::Result<PathBuf> {
        private_directory(&self.root)?;
        self.root.canonicalize()
    }

    /// The lock on a main checkout.
    fn lock(&self, checkout: &Path, execution: ExecutionId) -> io::Result<Lock> {
        let locks = self.root()?.join("locks");
        private_directory(&locks)?;
        Lock::take(&locks.join(format!("{}.lock", mark(checkout))), execution)
    }

    fn acquire(&self, request: &WorkspaceRequest) -> Result<WorkspaceFacts, AcquireError> {
        let config = Config::parse(&request.config).map_err(|problems| {
            let words: Vec<String> = problems.iter().map(ToString::to_string).collect();
            AcquireError::Failed { reason: format!("the resource is not valid: {}", words.join("; ")) }
        })?;
        let checkout = config.checkout.canonicalize().map_err(|error| {
            let reason = format!("the checkout that the resource names cannot be opened: {error}");
            AcquireError::Failed { reason }
        })?;
        let mut lock = self.lock(&checkout, request.execution).map_err(Trouble::from)?;
        let records = self.records.all().map_err(Trouble::from)?;
        match decide::begin(config.mode, request.execution, request.work, &records) {
            Begin::Busy(by) => return Err(AcquireError::Busy { by }),
            Begin::Again => {
                if let Some(facts) = self.again(request.execution).map_err(Trouble::from)? {
                    return Ok(facts);
                }
            }
            Begin::Repair => self.discard(&mut lock, request.execution)?,
            Begin::Anew => {}
        }
        let made = self.make(&mut lock, &config, &checkout, request, &records);
        if made.is_err() {
            // What stays is found by its record.
            let _left = self.discard(&mut lock, request.execution);
        }
        Ok(made?)
    }

    /// What an attempt has, when it is still there.
    fn again(&self, execution: ExecutionId) -> io::Result<Option<WorkspaceFacts>> {
        let record = self.records.read(execution)?.filter(|record| record.dir.is_dir());
        let Some(record) = record else { return Ok(None) };
        let facts = record.facts.clone();
        if record.state != State::Held && facts.is_some() {
            self.records.write(&Record { state: State::Held, ..record })?;
        }
        Ok(facts)
    }

    fn make(
        &self,
        lock: &mut Lock,
        config: &Config,
        checkout: &Path,
        request: &WorkspaceRequest,
        records: &[Record],
    ) -> Result<WorkspaceFacts, Trouble> {
        tree::check(&self.git, lock, checkout)?;
        let dir = match config.mode {
            Mode::Shared => checkout.to_owned(),
            Mode::Fresh => self.trees()?.join(mark(checkout)).join(request.execution.to_string()),
            Mode::Worktree => self.trees()?.join(mark(checkout)).join(request.work.to_string()),
        };
        let retain_failed_seconds = config.retain_failed.as_secs();
        let record = Record::new(request.execution, request.work, config.mode, checkout, dir);
        let record = Record { retain_failed_seconds, ..record };
        // One that is there already was worked in, so nothing of it may be discarded.
        let is_there = record.dir.exists();
        let state = if is_there { State::Held } else { State::Making };
        self.records.write(&Record { state, ..record.clone() })?;
        let work = request.work.to_string();
        let facts = match config.mode {
            Mode::Shared => {
                let sharer = decide::sharer(checkout, request.execution, records);
                tree::shared(&self.git, lock, config, checkout, sharer.is_some())?
            }
            Mode::Fresh => tree::fresh(&self.git, lock, config, checkout, &record.dir)?,
            Mode::Worktree => tree::of_work(&self.git, lock, config, checkout, (&record.dir, &work))?,
        };
        let facts = facts.in_one_line();
        self.records.write(&Record { state: State::Held, facts: Some(facts.clone()), ..record })?;
        for old in records.iter().filter(|old| old.state == State::ForWork && old.work() == request.work) {
            self.records.forget(old.execution())?;
        }
        Ok(facts)
    }

    /// Where the worktrees lie.
    fn trees(&self) -> io::Result<PathBuf> {
        Ok(self.root()?.join("trees"))
    }

    /// Removes what was being made for an attempt and never begun in, and the record of it.
    fn discard(&self, lock: &mut Lock, execution: ExecutionId) -> Result<(), Trouble> {
        let Some(record) = self.records.read(execution)? else { return Ok(()) };
        let ours = record.dir.starts_with(self.trees()?);
        if record.state == State::Making && record.mode != Mode::Shared && ours {
            tree::discard(&self.git, lock, &record.checkout, &record.dir)?;
        }
        Ok(self.records.forget(execution)?)
    }

    /// Gives a workspace back. Answers what is kept of it, and why.
    fn release(&self, execution: ExecutionId, ended: WorkspaceEnded) -> Result<Option<String>, Trouble> {
        let Some(record) = self.records.read(execution)? else { return Ok(None) };
        let mut lock = self.lock(&record.checkout, execution)?;
        // It may have been given back while the lock was waited for.
        let Some(record) = self.records.read(execution)? else { return Ok(None) };
        match decide::give_back(&record, ended) {
            GiveBack::Forget => Ok(self.records.forget(execution).map(|()| None)?),
            GiveBack::Discard => self.discard(&mut lock, execution).map(|()| None),
            GiveBack::Remove => self.remove(&mut lock, record, ended.at),
            GiveBack::ForWork => {
                Ok(self.records.write(&Record { state: State::ForWork, ..record }).map(|()| None)?)
            }
            GiveBack::Until(at) => {
                let state = State::Until { at: at.as_micros() };
                self.records.write(&Record { state, ..record })?;
                Ok(Some(format!("its checkout is kept until {at}")))
            }
        }
    }

    /// Removes a worktree whose time has come.
    fn sweep(&self, execution: ExecutionId, now: Timestamp) -> Result<Option<String>, Trouble> {
        let Some(record) = self.records.read(execution)? else { return Ok(None) };
        let mut lock = self.lock(&record.checkout, execution)?;
        match self.records.read(execution)? {
            Some(record) if matches!(record.state, State::Until { at } if at <= now.as_micros()) => {
                self.remove(&mut lock, record, now)
            }
            Some(_) | None => Ok(None),
        }
    }

    /// Removes a worktree as far as nothing is lost by that, or says why it stays.
    fn remove(&self, lock: &mut Lock, record: Record, now: Timestamp) -> Result<Option<String>, Trouble> {
        let execution = record.execution();
        match tree::remove(&self.git, lock, &record.checkout, &record.dir) {
            Ok(()) => Ok(self.records.forget(execution).map(|()| None)?),
            Err(why) => {
                let state = State::Until { at: now.after(decide::LOOK_AGAIN_AFTER).as_micros() };
                let kept = format!("{} is kept: {why}", record.dir.display());
                self.records.write(&Record { state, ..record })?;
                Ok(Some(kept))
            }
        }
    }

    fn kept(&self) -> io::Result<Vec<KeptWorkspace>> {
        let kept = |record: &Record| KeptWorkspace {
            execution: record.execution(),
            work: record.work(),
            state: match record.state {
                State::Making | State::Held => KeptState::InUse,
                State::ForWork => KeptState::ForWork,
                State::Until { at } => KeptState::Until(Timestamp::from_micros(at)),
            },
        };
        Ok(self.records.all()?.iter().map(kept).collect())
    }
}

/// A short name for a checkout's path, which no path's letters get into.
fn mark(checkout: &Path) -> String {
    let digest = Sha256::digest(checkout.as_os_str().as_encoded_bytes());
    let first = digest.first_chunk().expect("a digest of SHA-256 has 32 bytes");
    format!("{:016x}", u64::from_be_bytes(*first))
}

fn in_words(trouble: Trouble) -> String {
    match trouble {
        Trouble::Passing(reason) | Trouble::Lasting(reason) => reason,
    }
}

impl WorkspaceProvider for GitWorkspaces {
    fn name(&self) -> &'static str {
        "git"
    }

    fn validate(&self, config: &Value) -> Result<String, Vec<ConfigProblem>> {
        Config::parse(config).map(|config| config.describe())
    }

    fn acquire(&self, request: WorkspaceRequest) -> BoxFuture<'_, Result<WorkspaceFacts, AcquireError>> {
        Box::pin(async move {
            let acquired = self.aside(move |place| place.acquire(&request)).await;
            acquired.unwrap_or_else(|reason| Err(AcquireError::Unavailable { reason }))
        })
    }

    fn release(
        &self,
        execution: ExecutionId,
        ended: WorkspaceEnded,
    ) -> BoxFuture<'_, Result<Option<String>, String>> {
        Box::pin(
            async move { self.aside(move |place| place.release(execution, ended)).await?.map_err(in_words) },
        )
    }

    fn kept(&self) -> BoxFuture<'_, Result<Vec<KeptWorkspace>, String>> {
        Box::pin(async move { self.aside(Place::kept).await?.map_err(|error| error.to_string()) })
    }

    fn remove(
        &self,
        execution: ExecutionId,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<Option<String>, String>> {
        Box::pin(async move { self.aside(move |place| place.sweep(execution, now)).await?.map_err(in_words) })
    }
}
