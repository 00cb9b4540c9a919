//! The reference, which passes the suite, and executors that each break one rule and must not.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use extension::{
    AttemptHost, BoxFuture, Capabilities, ConfigProblem, Controls, Epoch, EventId, EventType, EventView,
    ExecutionId, Executor, ExecutorName, Injected, Injection, InputView, Log, LogRequest, Outcome, Payload,
    Recovery, RunError, RunRequest, ScopeName, Segment, Sequence, SourceName, Stopped, Timestamp, TurnResult,
};
use serde_json::Value;

use super::{InjectDriver, check_inject_executor};

/// One rule that an executor breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    OverClaims,
    AcceptsAfterItsResult,
    AcceptsWhatItDoesNotHold,
    LosesTheProofOnRecovery,
    NeverConsumes,
    ReportsTwice,
    CannotInject,
}

#[derive(Debug, Clone, Default)]
struct Kept {
    ended: bool,
    offered: Vec<EventId>,
    taken: Vec<EventId>,
}

/// The smallest executor that injects.
#[derive(Debug)]
struct Reference {
    flaw: Option<Flaw>,
    segments: Mutex<BTreeMap<ExecutionId, Kept>>,
}

impl Reference {
    fn with<T>(&self, execution: ExecutionId, look: impl FnOnce(&mut Kept) -> T) -> Option<T> {
        self.segments.lock().unwrap().get_mut(&execution).map(look)
    }

    fn result(&self, execution: ExecutionId) -> TurnResult {
        let kept = self.with(execution, |kept| kept.clone()).unwrap();
        let consumed_inputs = match self.flaw {
            Some(Flaw::OverClaims) => kept.offered,
            Some(Flaw::NeverConsumes) => Vec::new(),
            Some(Flaw::ReportsTwice) => [kept.taken.clone(), kept.taken].concat(),
            Some(
                Flaw::AcceptsAfterItsResult
                | Flaw::AcceptsWhatItDoesNotHold
                | Flaw::LosesTheProofOnRecovery
                | Flaw::CannotInject,
            )
            | None => kept.taken,
        };
        TurnResult { consumed_inputs, ..TurnResult::of(Outcome::Completed) }
    }
}

impl Executor for Reference {
    fn name(&self) -> ExecutorName {
        ExecutorName::known("reference")
    }

    fn capabilities(&self) -> Capabilities {
        let inject = self.flaw != Some(Flaw::CannotInject);
        Capabilities {
            holds_until_pinned: true,
            controls: Controls { inject, interrupt: false },
            resumes: false,
        }
    }

    fn validate(&self, _config: &Value, _resource: Option<&Value>) -> Result<String, Vec<ConfigProblem>> {
        Ok("is the reference".to_owned())
    }

    fn run<'a>(
        &'a self,
        _request: RunRequest,
        _host: &'a dyn AttemptHost,
    ) -> BoxFuture<'a, Result<TurnResult, RunError>> {
        Box::pin(std::future::pending())
    }

    fn recover(&self, segment: Segment) -> BoxFuture<'_, Recovery> {
        let ended = self.with(segment.execution, |kept| kept.ended);
        Box::pin(std::future::ready(match ended {
            None => Recovery::NothingStarted,
            Some(false) => Recovery::Alive,
            Some(true) => Recovery::Finished(self.result(segment.execution)),
        }))
    }

    fn observe(&self, _segment: Segment) -> BoxFuture<'_, Result<TurnResult, RunError>> {
        Box::pin(std::future::pending())
    }

    fn stop(&self, _segment: Segment) -> BoxFuture<'_, Stopped> {
        Box::pin(std::future::ready(Stopped::Confirmed))
    }

    fn inject(&self, injection: Injection) -> BoxFuture<'_, Injected> {
        let event = injection.input.event.id;
        let refused = |reason: &str| Injected::NotAccepting { reason: reason.to_owned() };
        let answer = self.with(injection.segment.execution, |kept| {
            if kept.offered.contains(&event) {
                return Injected::Accepted;
            }
            if kept.ended && self.flaw != Some(Flaw::AcceptsAfterItsResult) {
                return refused("it has ended");
            }
            kept.offered.push(event);
            Injected::Accepted
        });
        let unknown = || match self.flaw {
            Some(Flaw::AcceptsWhatItDoesNotHold) => Injected::Accepted,
            Some(
                Flaw::OverClaims
                | Flaw::AcceptsAfterItsResult
                | Flaw::LosesTheProofOnRecovery
                | Flaw::NeverConsumes
                | Flaw::ReportsTwice
                | Flaw::CannotInject,
            )
            | None => refused("it is not one of ours"),
        };
        Box::pin(std::future::ready(answer.unwrap_or_else(unknown)))
    }

    fn log(&self, _request: LogRequest) -> BoxFuture<'_, Result<Log, RunError>> {
        Box::pin(std::future::ready(Ok(Log { from: 0, bytes: Vec::new(), size: 0 })))
    }

    fn artifact(&self, _execution: ExecutionId, _path: &str) -> Option<std::path::PathBuf> {
        None
    }
}

struct Driver {
    executor: Reference,
}

impl InjectDriver for Driver {
    fn executor(&self) -> &dyn Executor {
        &self.executor
    }

    async fn begin(&mut self, execution: ExecutionId) -> Segment {
        self.executor.segments.lock().unwrap().insert(execution, Kept::default());
        let (epoch, handle) = (Epoch::FIRST, Some(b"kept".to_vec()));
        Segment { execution, epoch, handle, config: Value::Null, secrets: Vec::new(), token: None }
    }

    async fn take(&mut self, segment: &Segment, event: EventId) {
        self.executor.with(segment.execution, |kept| kept.taken.push(event)).unwrap();
    }

    async fn end(&mut self, segment: &Segment) -> TurnResult {
        self.executor.with(segment.execution, |kept| kept.ended = true).unwrap();
        self.executor.result(segment.execution)
    }

    async fn restart(&mut self, segment: &Segment) -> Segment {
        if self.executor.flaw == Some(Flaw::LosesTheProofOnRecovery) {
            self.executor.with(segment.execution, |kept| kept.taken.clear()).unwrap();
        }
        Segment { epoch: segment.epoch.next(), ..segment.clone() }
    }

    fn event(&self, number: i64) -> InputView {
        let id = EventId::from_number(number);
        let event = EventView {
            id,
            sequence: Sequence::from_number(number),
            source: SourceName::known("ci"),
            delivery_id: format!("d-{number}").parse().unwrap(),
            event_type: EventType::known("build.requested"),
            scope: ScopeName::known("main"),
            key: None,
            work: None,
            parent: None,
            root: id,
            depth: 0,
            emitted_by: None,
            occurred_at: None,
            accepted_at: Timestamp::EPOCH,
        };
        InputView { event, payload: Some(Payload::null()), is_context: false }
    }
}

/// Nothing of the reference waits, so its futures are done at once.
fn done<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the reference waits for nothing"),
    }
}

fn broken_rule(flaw: Option<Flaw>) -> Option<&'static str> {
    let mut driver = Driver { executor: Reference { flaw, segments: Mutex::default() } };
    done(check_inject_executor(&mut driver)).err().map(|violation| violation.rule)
}

#[test]
fn the_reference_passes_the_inject_suite() {
    assert_eq!(broken_rule(None), None);
}

#[test]
fn each_flaw_fails_the_inject_suite_by_its_rule() {
    for (flaw, rule) in [
        (Flaw::OverClaims, "never_over_claims"),
        (Flaw::AcceptsAfterItsResult, "refuses_after_its_result"),
        (Flaw::AcceptsWhatItDoesNotHold, "refuses_what_it_does_not_hold"),
        (Flaw::LosesTheProofOnRecovery, "keeps_the_proof_over_a_restart"),
        (Flaw::NeverConsumes, "proves_what_it_took"),
        (Flaw::ReportsTwice, "proves_what_it_took"),
        (Flaw::CannotInject, "advertises"),
    ] {
        assert_eq!(broken_rule(Some(flaw)), Some(rule), "{flaw:?}");
    }
}
