//! Extensions for tests: the real ones, and one that takes any configuration.

use std::path::PathBuf;
use std::sync::Arc;

use bundled::git::GitWorkspaces;
use bundled::shell::{ShellExecutor, ShellOptions};
use extension::{
    AttemptHost, BoxFuture, Capabilities, ConfigProblem, Controls, EventType, ExecutionId, Executor,
    ExecutorName, Handler, HandlerError, HandlerName, HttpDelivery, Ingress, IngressDelivery, IngressEntry,
    IngressRefusal, Log, LogRequest, Match, PreparedIngress, PreparedRoute, Recovery, Recurrence, RouteInput,
    RunError, RunRequest, Secrets, Segment, SourceName, Stopped, TurnResult, WorkspaceProvider,
};
use serde_json::Value;

use super::Registered;

/// The registered extensions of a test.
#[derive(Debug)]
pub(super) struct Sample {
    handlers: Vec<Arc<dyn Handler>>,
    executors: Vec<Arc<dyn Executor>>,
    ingresses: Vec<Arc<dyn Ingress>>,
    workspaces: Vec<Arc<dyn WorkspaceProvider>>,
    _runs: tempfile::TempDir,
}

impl Sample {
    /// Everything that is bundled, and a handler and an ingress of the type `schedule` that take anything.
    pub(super) fn new() -> Self {
        let runs = tempfile::tempdir().expect("tests have a temporary directory");
        let options = ShellOptions { environment: Vec::new(), toolbelt: None };
        let shell = ShellExecutor::new(runs.path(), "/proc/self/exe".into(), options)
            .expect("an empty directory holds no other executor's runs");
        let mut handlers = bundled::handlers();
        handlers.push(Arc::new(Anything));
        let mut ingresses = bundled::ingresses();
        ingresses.push(Arc::new(Anything));
        let workspaces: Vec<Arc<dyn WorkspaceProvider>> =
            vec![Arc::new(GitWorkspaces::new(runs.path(), &[]))];
        let executors: Vec<Arc<dyn Executor>> = vec![Arc::new(shell), Arc::new(Plain)];
        Self { handlers, executors, ingresses, workspaces, _runs: runs }
    }
}

impl Registered for Sample {
    fn handlers(&self) -> &[Arc<dyn Handler>] {
        &self.handlers
    }

    fn executors(&self) -> &[Arc<dyn Executor>] {
        &self.executors
    }

    fn ingresses(&self) -> &[Arc<dyn Ingress>] {
        &self.ingresses
    }

    fn recurrences(&self) -> &[Arc<dyn Recurrence>] {
        &[]
    }

    fn workspaces(&self) -> &[Arc<dyn WorkspaceProvider>] {
        &self.workspaces
    }
}

/// An executor that can do nothing to what runs.
#[derive(Debug)]
struct Plain;

impl Executor for Plain {
    fn name(&self) -> ExecutorName {
        ExecutorName::known("plain")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { holds_until_pinned: false, controls: Controls::NONE, resumes: false }
    }

    fn validate(&self, _config: &Value, _resource: Option<&Value>) -> Result<String, Vec<ConfigProblem>> {
        Ok("runs nothing".to_owned())
    }

    fn run<'a>(
        &'a self,
        _request: RunRequest,
        _host: &'a dyn AttemptHost,
    ) -> BoxFuture<'a, Result<TurnResult, RunError>> {
        Box::pin(std::future::pending())
    }

    fn recover(&self, _segment: Segment) -> BoxFuture<'_, Recovery> {
        Box::pin(std::future::ready(Recovery::NothingStarted))
    }

    fn observe(&self, _segment: Segment) -> BoxFuture<'_, Result<TurnResult, RunError>> {
        Box::pin(std::future::pending())
    }

    fn stop(&self, _segment: Segment) -> BoxFuture<'_, Stopped> {
        Box::pin(std::future::ready(Stopped::Confirmed))
    }

    fn log(&self, _request: LogRequest) -> BoxFuture<'_, Result<Log, RunError>> {
        Box::pin(std::future::ready(Ok(Log { from: 0, bytes: Vec::new(), size: 0 })))
    }

    fn artifact(&self, _execution: ExecutionId, _path: &str) -> Option<PathBuf> {
        None
    }
}

#[derive(Debug)]
struct Anything;

impl Handler for Anything {
    fn name(&self) -> HandlerName {
        HandlerName::known("schedule")
    }

    fn prepare(&self, _config: &Value) -> Result<Box<dyn PreparedRoute>, Vec<ConfigProblem>> {
        Ok(Box::new(Self))
    }
}

impl PreparedRoute for Anything {
    fn describe(&self) -> String {
        "anything".to_owned()
    }

    fn ignores_work(&self) -> bool {
        true
    }

    fn takes_announcement(&self, _event_type: &EventType) -> bool {
        false
    }

    fn decide<'a>(&'a self, _input: &'a RouteInput) -> BoxFuture<'a, Result<Option<Match>, HandlerError>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

impl Ingress for Anything {
    fn entry_type(&self) -> &'static str {
        "schedule"
    }

    fn prepare(&self, entry: &IngressEntry) -> Result<Box<dyn PreparedIngress>, Vec<ConfigProblem>> {
        let namespace = entry.config["namespace"].as_str().unwrap_or_default();
        match SourceName::new(namespace) {
            Ok(namespace) => Ok(Box::new(Receiving(namespace))),
            Err(error) => Err(vec![ConfigProblem::at("namespace", error.to_string())]),
        }
    }
}

#[derive(Debug)]
struct Receiving(SourceName);

impl PreparedIngress for Receiving {
    fn namespace(&self) -> &SourceName {
        &self.0
    }

    fn path_prefix(&self) -> &'static str {
        "schedule"
    }

    fn describe(&self) -> String {
        "anything".to_owned()
    }

    fn body_bytes_max(&self) -> usize {
        0
    }

    fn receive<'a>(
        &'a self,
        _request: &'a HttpDelivery,
        _secrets: &'a dyn Secrets,
    ) -> BoxFuture<'a, Result<Vec<IngressDelivery>, IngressRefusal>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}
