//! The executor that the cases mean: it runs until a case ends it, and finds what a case says it finds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use domain::id::{Epoch, ExecutionId};
use domain::outcome::TurnResult;
use domain::text::ExecutorName;
use extension::{
    AttemptHost, BoxFuture, Capabilities, ConfigProblem, Controls, Executor, Injected, Injection, Log,
    LogRequest, PinError, Recovery, ResumeRequest, RunError, RunRequest, Segment, Stopped,
};
use serde_json::Value;
use spec::driver::Capability;
use tokio::sync::oneshot;

#[derive(Debug, Default)]
struct State {
    /// Those who follow a segment, each under the epoch it was started or adopted at.
    followed: BTreeMap<(ExecutionId, Epoch), oneshot::Sender<TurnResult>>,
    labels: BTreeMap<ExecutionId, String>,
    found: Option<Recovery>,
    unverifiable: bool,
    /// What was presented and is not answered yet.
    presented: Vec<oneshot::Sender<Injected>>,
}

#[derive(Debug, Default)]
pub(super) struct Scripted(Mutex<State>);

/// The executor of one binding, which can do some of what an executor may.
#[derive(Debug)]
pub(super) struct Hands {
    pub(super) can: Vec<Capability>,
    pub(super) script: Arc<Scripted>,
}

impl Hands {
    fn can(&self, capability: Capability) -> bool {
        self.can.contains(&capability)
    }
}

/// The name of the executor that can do these, and nothing else.
pub(super) fn executor_name(can: &[Capability]) -> ExecutorName {
    let words = [
        (Capability::Resume, "-resumes"),
        (Capability::Inject, "-injects"),
        (Capability::Interrupt, "-interrupts"),
    ];
    let words = words.into_iter().filter(|(capability, _word)| can.contains(capability));
    ExecutorName::known(&words.fold("scripted".to_owned(), |name, (_capability, word)| name + word))
}

impl Scripted {
    /// Ends a segment. False when nobody follows it under this epoch any more.
    pub(super) fn end(&self, execution: ExecutionId, epoch: Epoch, result: TurnResult) -> bool {
        let followed = self.0.lock().unwrap().followed.remove(&(execution, epoch));
        followed.is_some_and(|end| end.send(result).is_ok())
    }

    /// What recovery finds from now on, and whether stops can be verified.
    pub(super) fn finds(&self, found: Recovery, unverifiable: bool) {
        let mut state = self.0.lock().unwrap();
        state.found = Some(found);
        state.unverifiable = unverifiable;
    }

    /// The label of the binding that an attempt was started with.
    pub(super) fn label(&self, execution: ExecutionId) -> Option<String> {
        self.0.lock().unwrap().labels.get(&execution).cloned()
    }

    /// Answers what was presented. False when there was nothing.
    pub(super) fn acknowledge(&self, answer: &Injected) -> bool {
        let presented = std::mem::take(&mut self.0.lock().unwrap().presented);
        let any = !presented.is_empty();
        for presented in presented {
            // One that nobody waits for any more was given up by whoever asked.
            drop(presented.send(answer.clone()));
        }
        any
    }

    /// Nobody waits for answers any more: the process that asked has ended.
    pub(super) fn forget(&self) {
        self.0.lock().unwrap().presented.clear();
    }

    /// Stops are verified from now on.
    pub(super) fn can_stop(&self) {
        self.0.lock().unwrap().unverifiable = false;
    }

    async fn follow(&self, execution: ExecutionId, epoch: Epoch) -> Result<TurnResult, RunError> {
        let (end, ended) = oneshot::channel();
        self.0.lock().unwrap().followed.insert((execution, epoch), end);
        match ended.await {
            Ok(result) => Ok(result),
            Err(_nobody_ends_it) => std::future::pending().await,
        }
    }
}

impl Executor for Hands {
    fn name(&self) -> ExecutorName {
        executor_name(&self.can)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            holds_until_pinned: true,
            resumes: self.can(Capability::Resume),
            controls: Controls {
                inject: self.can(Capability::Inject),
                interrupt: self.can(Capability::Interrupt),
            },
        }
    }

    fn validate(&self, _config: &Value, _resource: Option<&Value>) -> Result<String, Vec<ConfigProblem>> {
        Ok("does what the case says".to_owned())
    }

    fn run<'a>(
        &'a self,
        request: RunRequest,
        host: &'a dyn AttemptHost,
    ) -> BoxFuture<'a, Result<TurnResult, RunError>> {
        Box::pin(async move {
            match host.pin(b"handle".to_vec()).await {
                Ok(()) => {}
                Err(PinError::Fenced) => return Err(RunError::Fenced),
                Err(error @ (PinError::TooLarge | PinError::Store(_))) => panic!("{error}"),
            }
            let label = request.config["label"].as_str().expect("a binding of the cases has a label");
            self.script.0.lock().unwrap().labels.insert(request.execution, label.to_owned());
            self.script.follow(request.execution, request.epoch).await
        })
    }

    fn resume<'a>(
        &'a self,
        request: ResumeRequest,
        host: &'a dyn AttemptHost,
    ) -> BoxFuture<'a, Result<TurnResult, RunError>> {
        // None when its last turn was adopted before it had recorded anything. Which turns had is the executor's to
        // know: a process may die between the record and its noting that, so no stricter rule holds here.
        let session = request.session.as_deref();
        assert!(session.is_none_or(|session| session == b"handle"), "it goes on from what it had recorded");
        self.run(request.request, host)
    }

    fn recover(&self, _segment: Segment) -> BoxFuture<'_, Recovery> {
        let found = self.script.0.lock().unwrap().found.clone();
        Box::pin(async move { found.expect("the case says what is found") })
    }

    fn observe(&self, segment: Segment) -> BoxFuture<'_, Result<TurnResult, RunError>> {
        Box::pin(self.script.follow(segment.execution, segment.epoch))
    }

    fn stop(&self, _segment: Segment) -> BoxFuture<'_, Stopped> {
        let unverifiable = self.script.0.lock().unwrap().unverifiable;
        Box::pin(async move {
            if unverifiable {
                Stopped::Unverifiable { reason: "the case says so".to_owned() }
            } else {
                Stopped::Confirmed
            }
        })
    }

    fn inject(&self, _injection: Injection) -> BoxFuture<'_, Injected> {
        let (answer, answered) = oneshot::channel();
        self.script.0.lock().unwrap().presented.push(answer);
        Box::pin(async move {
            answered
                .await
                .unwrap_or_else(|_dropped| Injected::Ambiguous { reason: "nobody answers".to_owned() })
        })
    }

    fn log(&self, _request: LogRequest) -> BoxFuture<'_, Result<Log, RunError>> {
        Box::pin(async { Ok(Log { from: 0, bytes: Vec::new(), size: 0 }) })
    }

    fn artifact(&self, _execution: ExecutionId, _path: &str) -> Option<std::path::PathBuf> {
        None
    }
}
