//! Extensions for tests: the real ones, and one that takes any configuration.

use std::sync::Arc;

use bundled::shell::{ShellExecutor, ShellOptions};
use extension::{
    BoxFuture, ConfigProblem, EventType, Executor, Handler, HandlerError, HandlerName, HttpDelivery, Ingress,
    IngressDelivery, IngressEntry, IngressRefusal, Match, PreparedIngress, PreparedRoute, RouteInput,
    Secrets, SourceName,
};
use serde_json::Value;

use super::Registered;

/// The registered extensions of a test.
#[derive(Debug)]
pub(super) struct Sample {
    handlers: Vec<Arc<dyn Handler>>,
    executors: Vec<Arc<dyn Executor>>,
    ingresses: Vec<Arc<dyn Ingress>>,
    _runs: tempfile::TempDir,
}

impl Sample {
    /// Everything that is bundled, and a handler and an ingress of the type `schedule` that take anything.
    pub(super) fn new() -> Self {
        let runs = tempfile::tempdir().expect("tests have a temporary directory");
        let options = ShellOptions { environment: Vec::new() };
        let shell = ShellExecutor::new(runs.path(), "/proc/self/exe".into(), options)
            .expect("an empty directory holds no other executor's runs");
        let mut handlers = bundled::handlers();
        handlers.push(Arc::new(Anything));
        let mut ingresses = bundled::ingresses();
        ingresses.push(Arc::new(Anything));
        Self { handlers, executors: vec![Arc::new(shell)], ingresses, _runs: runs }
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
