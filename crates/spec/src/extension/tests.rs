//! The suite against handlers that break its rules: each has to fail at its own.

use std::sync::atomic::{AtomicU32, Ordering};

use extension::{
    BoxFuture, Code, EventId, EventView, HandlerName, Lifecycle, Payload, ScopeView, Sequence, Timestamp,
};
use serde_json::Value;

use super::*;

/// What a handler does that it must not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Breaks {
    Nothing,
    Name,
    TakesAnything,
    AnswersOther,
    LooksAtTheWork,
    TakesAnnouncements,
}

#[derive(Debug, Clone, Copy)]
struct Subject(Breaks);

impl Handler for Subject {
    fn name(&self) -> HandlerName {
        HandlerName::known(if self.0 == Breaks::Name { "other" } else { "sample" })
    }

    fn prepare(&self, _config: &Value) -> Result<Box<dyn PreparedRoute>, Vec<ConfigProblem>> {
        Ok(Box::new(*self))
    }
}

impl PreparedRoute for Subject {
    fn describe(&self) -> String {
        "anything".to_owned()
    }

    fn ignores_work(&self) -> bool {
        true
    }

    fn takes_announcement(&self, _event_type: &EventType) -> bool {
        self.0 == Breaks::TakesAnnouncements
    }

    fn decide<'a>(&'a self, input: &'a RouteInput) -> BoxFuture<'a, Result<Option<Match>, HandlerError>> {
        let none =
            self.0 == Breaks::AnswersOther || (self.0 == Breaks::LooksAtTheWork && input.work.is_some());
        Box::pin(std::future::ready(Ok((!none).then(wants))))
    }
}

fn wants() -> Match {
    Match::Fresh {
        kind: WorkKind::known("sample"),
        lifecycle: Lifecycle::Once,
        keys: Vec::new(),
        concurrency: None,
    }
}

impl HandlerDriver for Subject {
    fn handler(&self) -> Arc<dyn Handler> {
        Arc::new(*self)
    }

    fn name(&self) -> &'static str {
        "sample"
    }

    async fn check(&self, sample: Sample) -> Result<(), Vec<ConfigProblem>> {
        let refuses = sample == Sample::Wrong && self.0 != Breaks::TakesAnything;
        if refuses { Err(vec![ConfigProblem::at("", "is wrong")]) } else { Ok(()) }
    }

    fn route(&self) -> Box<dyn PreparedRoute> {
        Box::new(*self)
    }

    fn questions(&self) -> Vec<(RouteInput, Option<Match>)> {
        let id = EventId::from_number(1);
        let event = EventView {
            id,
            sequence: Sequence::FIRST,
            source: "test".parse().unwrap(),
            delivery_id: "d1".parse().unwrap(),
            event_type: "x".parse().unwrap(),
            scope: "main".parse().unwrap(),
            key: None,
            work: None,
            parent: None,
            root: id,
            depth: 0,
            emitted_by: None,
            occurred_at: None,
            accepted_at: Timestamp::EPOCH,
        };
        let scope = ScopeView { name: "main".parse().unwrap(), lineage: vec!["main".parse().unwrap()] };
        vec![(RouteInput::new(event, Payload::null(), scope, None), Some(wants()))]
    }
}

/// A process that is not one, or whose crash fails the Event. The second route that is made of it crashes.
struct Process {
    pid: u32,
    code: &'static str,
    routes: AtomicU32,
}

impl Process {
    fn new(pid: u32, code: &'static str) -> Self {
        Self { pid, code, routes: AtomicU32::new(0) }
    }
}

impl HandlerDriver for Process {
    fn handler(&self) -> Arc<dyn Handler> {
        Subject(Breaks::Nothing).handler()
    }

    fn name(&self) -> &'static str {
        "sample"
    }

    async fn check(&self, sample: Sample) -> Result<(), Vec<ConfigProblem>> {
        Subject(Breaks::Nothing).check(sample).await
    }

    fn route(&self) -> Box<dyn PreparedRoute> {
        match self.routes.fetch_add(1, Ordering::Relaxed) {
            1 => Box::new(Crashing(self.code, AtomicU32::new(0))),
            _other => Subject(Breaks::Nothing).route(),
        }
    }

    fn questions(&self) -> Vec<(RouteInput, Option<Match>)> {
        Subject(Breaks::Nothing).questions()
    }
}

impl ProcessDriver for Process {
    async fn answers(&self, _before: Option<u32>) -> u32 {
        self.pid
    }

    fn freeze(&self, _pid: u32) {}

    fn kill(&self, _pid: u32) {}
}

/// Answers well but for the second question, which takes a moment and fails with a code.
#[derive(Debug)]
struct Crashing(&'static str, AtomicU32);

impl PreparedRoute for Crashing {
    fn describe(&self) -> String {
        "anything".to_owned()
    }

    fn ignores_work(&self) -> bool {
        false
    }

    fn takes_announcement(&self, _event_type: &EventType) -> bool {
        false
    }

    fn decide<'a>(&'a self, _input: &'a RouteInput) -> BoxFuture<'a, Result<Option<Match>, HandlerError>> {
        let asked = self.1.fetch_add(1, Ordering::Relaxed);
        if asked == 1 {
            let mut is_first = true;
            return Box::pin(std::future::poll_fn(move |context| {
                if std::mem::take(&mut is_first) {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                let reason = "it crashed".to_owned();
                Poll::Ready(Err(HandlerError { code: Code::known(self.0), reason, is_final: false }))
            }));
        }
        Box::pin(std::future::ready(Ok(Some(wants()))))
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

#[test]
fn a_handler_that_breaks_a_rule_fails_at_that_rule() {
    let broken = |breaks| run(check_handler(&Subject(breaks))).unwrap_err().rule;
    assert_eq!(run(check_handler(&Subject(Breaks::Nothing))), Ok(()));
    assert_eq!(broken(Breaks::Name), "goes_by_its_name");
    assert_eq!(broken(Breaks::TakesAnything), "says_what_is_wrong");
    assert_eq!(broken(Breaks::AnswersOther), "decides_as_is_right");
    assert_eq!(broken(Breaks::LooksAtTheWork), "ignores_work_as_it_says");
    assert_eq!(broken(Breaks::TakesAnnouncements), "asks_for_announcements_by_name");
}

#[test]
fn a_process_that_is_none_or_fails_what_it_was_asked_breaks_a_rule() {
    let broken = |pid, code| run(check_handler_process(&Process::new(pid, code))).unwrap_err().rule;
    assert_eq!(broken(std::process::id(), EXTENSION_UNAVAILABLE), "runs_in_a_process_of_its_own");
    assert_eq!(broken(1, "handler_failed"), "a_crash_holds_what_was_asked");
    assert_eq!(broken(1, EXTENSION_UNAVAILABLE), "is_started_again");
}
