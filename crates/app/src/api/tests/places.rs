//! A provider of workspaces that makes none and says what it would.

use extension::{
    AcquireError, BoxFuture, ConfigProblem, ExecutionId, KeptWorkspace, Timestamp, WorkspaceEnded,
    WorkspaceFacts, WorkspaceProvider, WorkspaceRequest,
};
use serde_json::Value;

/// Answers at once, with a line about it that wants to be escaped.
#[derive(Debug)]
pub(crate) struct Places;

/// What it says of every workspace.
pub(crate) const SUMMARY: &str = "a place, <b>1</b> commit behind";

impl WorkspaceProvider for Places {
    fn name(&self) -> &'static str {
        "places"
    }

    fn validate(&self, _config: &Value) -> Result<String, Vec<ConfigProblem>> {
        Ok("in a place".to_owned())
    }

    fn acquire(&self, _request: WorkspaceRequest) -> BoxFuture<'_, Result<WorkspaceFacts, AcquireError>> {
        let facts = WorkspaceFacts {
            kind: "places".to_owned(),
            reference: Some("main".to_owned()),
            dir: "/srv/place".to_owned(),
            summary: SUMMARY.to_owned(),
            data: Value::Null,
        };
        Box::pin(std::future::ready(Ok(facts)))
    }

    fn release(
        &self,
        _execution: ExecutionId,
        _ended: WorkspaceEnded,
    ) -> BoxFuture<'_, Result<Option<String>, String>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn kept(&self) -> BoxFuture<'_, Result<Vec<KeptWorkspace>, String>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn remove(
        &self,
        _execution: ExecutionId,
        _now: Timestamp,
    ) -> BoxFuture<'_, Result<Option<String>, String>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}
