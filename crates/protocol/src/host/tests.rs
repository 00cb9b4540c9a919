//! The host against processes in the hand of a test: streams in memory, and a clock that stands until everybody waits.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};

use extension::{
    BoxFuture, Code, EXTENSION_UNAVAILABLE, EventType, EventView, HandlerError, Key, Lifecycle, Match,
    Payload, PreparedRoute, RouteInput, ScopeView, WorkKind,
};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::launch::{Launch, Launched};
use super::*;
use crate::Guest;

/// What one start of the process does.
#[derive(Debug, Clone, Copy)]
enum Does {
    /// It serves a handler `sample`.
    Serves,
    /// It serves until it is asked to decide, and then ends.
    DiesDeciding,
    /// It serves until it is asked to decide, and then says nothing more.
    HangsDeciding,
    /// It writes this and says nothing more.
    Writes(&'static str),
    /// It writes one endless line.
    WritesForEver,
    /// It cannot be started.
    Fails,
}

/// Starts that do what they are told; the last one again and again.
#[derive(Debug)]
struct Told {
    starts: Mutex<VecDeque<Does>>,
    pids: AtomicU32,
    tasks: TaskTracker,
}

impl Launch for Told {
    fn launch(&self) -> BoxFuture<'_, Result<Launched, String>> {
        Box::pin(async {
            let does = {
                let mut starts = self.starts.lock().unwrap();
                if starts.len() > 1 { starts.pop_front().unwrap() } else { starts[0] }
            };
            if matches!(does, Does::Fails) {
                return Err("it cannot be started: no such program".to_owned());
            }
            let (ours, theirs) = (duplex(1 << 16), duplex(1 << 16));
            let errors = duplex(1 << 10).0;
            let (say_ended, ended) = oneshot::channel();
            let (kill, mut killed) = watch::channel(false);
            let task = behave(does, ours.1, theirs.0);
            self.tasks.spawn(async move {
                let how = tokio::select! {
                    () = task => "it ended with exit status: 7",
                    _ = killed.wait_for(|is| *is) => "it ended with signal: 9 (SIGKILL)",
                };
                drop(say_ended.send(how.to_owned()));
            });
            Ok(Launched {
                pid: self.pids.fetch_add(1, Ordering::Relaxed),
                input: Box::new(ours.0),
                output: Box::new(theirs.1),
                errors: Box::new(errors),
                secrets: Vec::new(),
                kill: Box::new(move || _ = kill.send(true)),
                ended,
            })
        })
    }
}

async fn behave(does: Does, mut input: DuplexStream, mut output: DuplexStream) {
    match does {
        Does::Serves => drop(guest().serve(input, output).await),
        Does::DiesDeciding | Does::HangsDeciding => {
            // What it is sent goes through this, so that it sees when it is asked to decide.
            let (mut seen, inner) = duplex(1 << 16);
            let mut serving = std::pin::pin!(guest().serve(inner, output));
            let watching = async {
                let mut chunk = vec![0; 1 << 16];
                loop {
                    let length = input.read(&mut chunk).await.unwrap();
                    if String::from_utf8_lossy(&chunk[..length]).contains(method::DECIDE) {
                        return;
                    }
                    seen.write_all(&chunk[..length]).await.unwrap();
                }
            };
            tokio::select! {
                _ = &mut serving => {}
                () = watching => {
                    // What it holds stays open meanwhile.
                    if matches!(does, Does::HangsDeciding) {
                        drop(serving.await);
                        std::future::pending::<()>().await;
                    }
                }
            }
        }
        Does::Writes(text) => {
            output.write_all(text.as_bytes()).await.unwrap();
            std::future::pending::<()>().await;
        }
        Does::WritesForEver => while output.write_all(&[b'x'; 4096]).await.is_ok() {},
        Does::Fails => {}
    }
}

/// A handler that takes what is called `x`, and refuses a configuration with `bad`.
#[derive(Debug)]
struct Sample;

impl Handler for Sample {
    fn name(&self) -> HandlerName {
        HandlerName::known("sample")
    }

    fn prepare(&self, config: &Value) -> Result<Box<dyn PreparedRoute>, Vec<ConfigProblem>> {
        if config.get("bad").is_some() {
            return Err(vec![ConfigProblem::at("bad", "must not be there")]);
        }
        Ok(Box::new(Self))
    }
}

impl PreparedRoute for Sample {
    fn describe(&self) -> String {
        "what is called x".to_owned()
    }

    fn ignores_work(&self) -> bool {
        true
    }

    fn takes_announcement(&self, event_type: &EventType) -> bool {
        event_type.as_str() == "core.turn.ended"
    }

    fn decide<'a>(&'a self, input: &'a RouteInput) -> BoxFuture<'a, Result<Option<Match>, HandlerError>> {
        Box::pin(async move {
            assert_ne!(input.event.event_type.as_str(), "panic", "a bug of the handler");
            if input.event.event_type.as_str() == "fail" {
                let reason = "as it was told".to_owned();
                return Err(HandlerError { code: Code::known("told"), reason, is_final: false });
            }
            Ok((input.event.event_type.as_str() == "x").then(|| Match::Attach {
                keys: vec![Key { source: input.event.source.clone(), external_id: "1".parse().unwrap() }],
                kind: WorkKind::known("sample.kind"),
                lifecycle: Lifecycle::Standing,
                concurrency: None,
                reopens: Vec::new(),
            }))
        })
    }
}

fn guest() -> Guest {
    let software = Software { name: "sample".to_owned(), version: "1".to_owned() };
    Guest { software, handlers: vec![Arc::new(Sample)], ingresses: Vec::new() }
}

fn process(starts: &[Does]) -> Arc<Process> {
    let told = Told {
        starts: Mutex::new(starts.iter().copied().collect()),
        pids: AtomicU32::new(1),
        tasks: TaskTracker::new(),
    };
    let runtime = Software { name: "test".to_owned(), version: "1".to_owned() };
    let announcements = vec!["core.turn.ended".to_owned(), "core.wait.woken".to_owned()];
    Process::start_with("sample".to_owned(), announcements, runtime, Arc::new(|| {}), Box::new(told))
}

fn event(event_type: &str) -> RouteInput {
    let id = extension::EventId::from_number(1);
    let view = EventView {
        id,
        sequence: extension::Sequence::FIRST,
        source: "test".parse().unwrap(),
        delivery_id: "d1".parse().unwrap(),
        event_type: event_type.parse().unwrap(),
        scope: "main".parse().unwrap(),
        key: None,
        work: None,
        parent: None,
        root: id,
        depth: 0,
        emitted_by: None,
        occurred_at: None,
        accepted_at: extension::Timestamp::EPOCH,
    };
    let scope = ScopeView { name: "main".parse().unwrap(), lineage: vec!["main".parse().unwrap()] };
    RouteInput::new(view, Payload::new(b"{\"a\":\n1}".as_slice()).unwrap(), scope, None)
}

fn route(process: &Arc<Process>) -> Box<dyn PreparedRoute> {
    process.handler(HandlerName::known("sample")).prepare(&json!({})).unwrap()
}

/// Waits until it answers, whatever it takes on a clock that jumps.
async fn answers(process: &Process) {
    process.state.subscribe().wait_for(|state| matches!(state, State::Ready(_))).await.unwrap();
}

async fn ends(process: &Process) -> String {
    let mut state = process.state.subscribe();
    let down = state.wait_for(|state| matches!(state, State::Down { ends: 1.., .. })).await.unwrap();
    match &*down {
        State::Down { reason, .. } => reason.clone(),
        State::Starting | State::Ready(_) | State::Stopped => unreachable!("it was waited for"),
    }
}

#[track_caller]
fn is_held(answer: Result<Option<Match>, HandlerError>, because: &str) {
    let error = answer.unwrap_err();
    assert_eq!(error.code.as_str(), EXTENSION_UNAVAILABLE, "{error}");
    assert!(error.reason.contains(because), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_stands_in_says_what_the_handler_says() {
    let process = process(&[Does::Serves]);
    answers(&process).await;
    let route = route(&process);
    let announcement = EventType::known("core.wait.woken");
    assert!(route.takes_announcement(&announcement), "before it has said anything it may be meant");
    let matched = route.decide(&event("x")).await.unwrap();
    assert!(matches!(matched, Some(Match::Attach { lifecycle: Lifecycle::Standing, .. })), "{matched:?}");
    assert_eq!(route.decide(&event("y")).await, Ok(None));
    assert_eq!(route.decide(&event("fail")).await.unwrap_err().code.as_str(), "told");
    assert_eq!(route.describe(), "what is called x");
    assert!(route.ignores_work() && !route.takes_announcement(&announcement));
    assert!(route.takes_announcement(&EventType::known("core.turn.ended")));
    process.stop().await;
    is_held(route.decide(&event("x")).await, "was stopped");
}

#[tokio::test(start_paused = true)]
async fn a_bug_of_a_handler_is_the_event_s_and_the_process_goes_on() {
    let process = process(&[Does::Serves]);
    answers(&process).await;
    let route = route(&process);
    assert_eq!(route.decide(&event("panic")).await.unwrap_err().code.as_str(), "extension_error");
    assert!(route.decide(&event("x")).await.unwrap().is_some());
    assert!(matches!(process.standing(), Standing::Ready { pid: 1, .. }));
}

#[tokio::test(start_paused = true)]
async fn an_extension_is_asked_about_its_configuration() {
    let process = process(&[Does::Serves]);
    answers(&process).await;
    assert_eq!(process.check_route("sample", &json!({})).await, Ok(()));
    let refused = process.check_route("sample", &json!({ "bad": 1 })).await;
    assert_eq!(refused, Err(Refused::Problems(vec![ConfigProblem::at("bad", "must not be there")])));
    let unknown = process.check_route("sample.more", &json!({})).await;
    assert_eq!(unknown, Err(Refused::NotOffered { offered: vec!["sample".to_owned()] }));
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_holds_what_it_was_asked_and_is_started_again() {
    let process = process(&[Does::DiesDeciding, Does::Serves]);
    answers(&process).await;
    let route = route(&process);
    is_held(route.decide(&event("x")).await, "exit status: 7");
    is_held(route.decide(&event("x")).await, "exit status: 7");
    let died_at = Instant::now();
    answers(&process).await;
    assert_eq!(died_at.elapsed(), Duration::from_millis(500));
    assert!(route.decide(&event("x")).await.unwrap().is_some(), "it is prepared again by itself");
    assert!(matches!(process.standing(), Standing::Ready { pid: 2, .. }));
}

#[tokio::test(start_paused = true)]
async fn a_process_that_hangs_is_ended_at_the_deadline_and_holds() {
    let process = process(&[Does::HangsDeciding, Does::Serves]);
    answers(&process).await;
    let route = route(&process);
    let asked_at = Instant::now();
    is_held(route.decide(&event("x")).await, "did not answer `handler.decide` within 10 s");
    assert_eq!(asked_at.elapsed(), CALL_WITHIN);
    assert!(ends(&process).await.contains("within 10 s"));
    answers(&process).await;
    assert!(route.decide(&event("x")).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn what_is_no_answer_ends_the_process() {
    let version = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocol\":2,\"extension\":{\"name\":\"a\",\"version\":\"1\"}}}\n";
    let others = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocol\":1,\"extension\":{\"name\":\"a\",\"version\":\"1\"},\
                  \"capabilities\":{\"handlers\":[\"match\"]}}}\n";
    let refused = "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32001,\"message\":\"I am older\"}}\n";
    for (does, because) in [
        (Does::Writes("hello\n"), "not an answer"),
        (Does::Writes("{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}\n"), "was not asked"),
        (Does::WritesForEver, "a line of more than"),
        (Does::Writes(version), "speaks version 2"),
        (Does::Writes(others), "neither `sample` nor `sample.`"),
        (Does::Writes(refused), "I am older"),
        (Does::Writes(""), "did not answer `initialize`"),
        (Does::Fails, "no such program"),
    ] {
        let process = process(&[does, Does::Serves]);
        let reason = ends(&process).await;
        assert!(reason.contains(because), "{does:?}: {reason}");
        answers(&process).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_ends_again_and_again_is_started_less_and_less_often() {
    let process = process(&[Does::Fails]);
    let start = Instant::now();
    let mut state = process.state.subscribe();
    let mut at = Vec::new();
    for number in 1..=9 {
        let is_next = |state: &State| matches!(state, State::Down { ends, .. } if *ends == number);
        state.wait_for(is_next).await.unwrap();
        at.push(start.elapsed().as_millis());
    }
    assert_eq!(at, [0, 500, 1500, 3500, 7500, 15_500, 31_500, 63_500, 123_500]);
    process.stop().await;
    assert_eq!(process.standing(), Standing::Stopped);
}

#[tokio::test(start_paused = true)]
async fn more_requests_than_may_wait_for_answers_take_turns() {
    let process = process(&[Does::Serves]);
    answers(&process).await;
    let route: Arc<dyn PreparedRoute> = Arc::from(route(&process));
    let mut asking = tokio::task::JoinSet::new();
    for _each in 0..crate::wire::IN_FLIGHT_MAX * 3 {
        let route = Arc::clone(&route);
        asking.spawn(async move { route.decide(&event("x")).await });
    }
    for answer in asking.join_all().await {
        assert!(answer.unwrap().is_some());
    }
}
