//! Workspaces: who makes the directory ready that an attempt works in.
//!
//! The runtime acquires one outside every transaction before it calls the executor, and gives it back once nothing
//! of the attempt runs any more. Each call may be repeated: after a crash nobody knows whether the one before was
//! carried out, so a provider answers for what is there and repairs what is half done.

use std::fmt;

use serde_json::Value;
use thiserror::Error;

use crate::{BoxFuture, ConfigProblem, ExecutionId, Timestamp, WorkId, WorkspaceEnded, WorkspaceFacts};

/// Makes directories ready for attempts, and takes them back.
pub trait WorkspaceProvider: fmt::Debug + Send + Sync {
    /// The name that a binding's `resource` refers to it by.
    fn name(&self) -> &'static str;

    /// Checks the `config` of a binding's `resource`; answers what it gives, in one phrase for people.
    ///
    /// # Errors
    /// Every [`ConfigProblem`] found.
    fn validate(&self, config: &Value) -> Result<String, Vec<ConfigProblem>>;

    /// Makes the workspace of an attempt ready. For an attempt that has one already it is that one, with all that
    /// is in it.
    fn acquire(&self, request: WorkspaceRequest) -> BoxFuture<'_, Result<WorkspaceFacts, AcquireError>>;

    /// Gives a workspace back. It is called only when nothing of the attempt runs any more, and may be called again,
    /// also for an attempt that has none. Answers what is kept of it and why, in words.
    ///
    /// # Errors
    /// Why it could not, in words; it is tried again.
    fn release(
        &self,
        execution: ExecutionId,
        ended: WorkspaceEnded,
    ) -> BoxFuture<'_, Result<Option<String>, String>>;

    /// Everything that it keeps for attempts, in no order. It grows with what is there, not with what was.
    ///
    /// # Errors
    /// Why it could not be looked at, in words.
    fn kept(&self) -> BoxFuture<'_, Result<Vec<KeptWorkspace>, String>>;

    /// Removes the workspace of an attempt that was kept until `now`, as far as nothing is lost by that. Answers
    /// what stays and why, in words.
    ///
    /// # Errors
    /// Why it could not, in words; it is tried again.
    fn remove(&self, execution: ExecutionId, now: Timestamp)
    -> BoxFuture<'_, Result<Option<String>, String>>;
}

/// A workspace that an attempt needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceRequest {
    /// The attempt.
    pub execution: ExecutionId,
    /// Its Work.
    pub work: WorkId,
    /// The `config` of its binding's `resource`.
    pub config: Value,
}

/// Why an attempt has no workspace.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AcquireError {
    /// Another attempt has it. It is asked for again once that one has given it back.
    #[error("the run {by} still has it")]
    Busy {
        /// The attempt that has it.
        by: ExecutionId,
    },
    /// It could not be made. What was in the way may pass, such as a network.
    #[error("{reason}")]
    Unavailable {
        /// Why, in one line without a secret.
        reason: String,
    },
    /// It cannot be made until somebody changes something.
    #[error("{reason}")]
    Failed {
        /// Why, in one line without a secret, and what to do.
        reason: String,
    },
}

/// Something that is kept for an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptWorkspace {
    /// The attempt.
    pub execution: ExecutionId,
    /// Its Work.
    pub work: WorkId,
    /// For what.
    pub state: KeptState,
}

/// For what a workspace is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptState {
    /// The attempt has it.
    InUse,
    /// Later attempts at the same Work go on in it.
    ForWork,
    /// It is kept until then for whoever wants to look at it.
    Until(Timestamp),
}

/// A `resource`, as every binding writes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource<'a> {
    /// The provider's name.
    pub provider: &'a str,
    /// The provider's own configuration.
    pub config: &'a Value,
}

impl<'a> Resource<'a> {
    /// The keys of a resource.
    pub const KEYS: [&'static str; 2] = ["provider", "config"];

    /// Reads a `resource`; none when it is not one.
    pub fn read(resource: &'a Value) -> Option<Self> {
        static NOTHING: Value = Value::Null;
        let provider = resource.get("provider")?.as_str()?;
        Some(Self { provider, config: resource.get("config").unwrap_or(&NOTHING) })
    }
}
