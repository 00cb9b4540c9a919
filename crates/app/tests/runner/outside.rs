//! Extensions in processes of their own: those that come with the program against the suite of the specification,
//! compiled in and as processes; and a daemon whose extension is killed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use extension::{
    BoxFuture, ConfigProblem, EventId, EventView, ExternalId, Handler, HandlerName, HttpDelivery, Ingress,
    IngressEntry, Key, Lifecycle, Match, Payload, PreparedRoute, RouteInput, ScopeView, Secret, SecretError,
    Secrets, Sequence, SourceName, Timestamp, WorkKind,
};
use protocol::host::{Declaration, Refused, Surroundings};
use protocol::wire::Software;
use protocol::{Process, Standing};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use spec::extension::{
    HandlerDriver, IngressDriver, ProcessDriver, Sample, check_handler, check_handler_process, check_ingress,
    check_ingress_process,
};

mod daemon;
mod python;

const BINARY: &str = env!("CARGO_BIN_EXE_open-conduit");
/// How often a process is looked at that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// An extension as a process, as the daemon runs it.
fn process(name: &str, argv: Vec<String>) -> Arc<Process> {
    let path = std::env::var("PATH").unwrap_or_default();
    Process::start(Declaration {
        name: name.to_owned(),
        argv,
        dir: PathBuf::from("/"),
        stage: PathBuf::from(BINARY),
        surroundings: Arc::new(move || {
            let environment = vec![("PATH".to_owned(), path.clone())];
            Box::pin(async move { Ok(Surroundings { environment, secrets: Vec::new() }) })
        }),
        announcements: vec!["core.turn.ended".to_owned()],
        runtime: Software { name: "test".to_owned(), version: "1".to_owned() },
        on_ready: Arc::new(|| {}),
    })
}

fn bundled_process(name: &str) -> Arc<Process> {
    process(name, vec![BINARY.to_owned(), "extension-run".to_owned(), name.to_owned()])
}

fn entry_of(config: &Value) -> IngressEntry {
    IngressEntry {
        name: "entry".parse().unwrap(),
        scope: "main".parse().unwrap(),
        secret_names: vec!["signing".to_owned()],
        config: config.clone(),
    }
}

/// An extension, compiled in or as a process, with what the suite asks it.
struct Subject {
    name: &'static str,
    right: Value,
    wrong: Value,
    process: Option<Arc<Process>>,
}

impl Subject {
    const fn config(&self, sample: Sample) -> &Value {
        match sample {
            Sample::Right => &self.right,
            Sample::Wrong => &self.wrong,
        }
    }

    fn process(&self) -> &Arc<Process> {
        self.process.as_ref().expect("it is one of a process")
    }
}

fn problems(asked: Result<(), Refused>) -> Result<(), Vec<ConfigProblem>> {
    asked.map_err(|refused| match refused {
        Refused::Problems(problems) => problems,
        other @ (Refused::Unavailable { .. } | Refused::NotOffered { .. }) => panic!("{other:?}"),
    })
}

impl ProcessDriver for Subject {
    async fn answers(&self, before: Option<u32>) -> u32 {
        loop {
            if let Standing::Ready { pid, .. } = self.process().standing()
                && Some(pid) != before
            {
                return pid;
            }
            drop(tokio::time::timeout(LOOK_EVERY, std::future::pending::<()>()).await);
        }
    }

    fn freeze(&self, pid: u32) {
        signal(pid, Signal::STOP);
    }

    fn kill(&self, pid: u32) {
        signal(pid, Signal::KILL);
    }
}

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

impl HandlerDriver for Subject {
    fn handler(&self) -> Arc<dyn Handler> {
        match &self.process {
            Some(process) => process.handler(HandlerName::known(self.name)),
            None => bundled::package(self.name).unwrap().handlers.remove(0),
        }
    }

    fn name(&self) -> &'static str {
        self.name
    }

    async fn check(&self, sample: Sample) -> Result<(), Vec<ConfigProblem>> {
        match &self.process {
            Some(process) => problems(process.check_route(self.name, self.config(sample)).await),
            None => self.handler().prepare(self.config(sample)).map(drop),
        }
    }

    fn route(&self) -> Box<dyn PreparedRoute> {
        self.handler().prepare(&self.right).unwrap()
    }

    fn questions(&self) -> Vec<(RouteInput, Option<Match>)> {
        let key = |source: &str, id: &str| Key {
            source: SourceName::known(source),
            external_id: ExternalId::new(id).unwrap(),
        };
        let attach = |key: Key, kind: &str| {
            let (keys, kind) = (vec![key], WorkKind::known(kind));
            let (lifecycle, concurrency, reopens) = (Lifecycle::Standing, None, Vec::new());
            Some(Match::Attach { keys, kind, lifecycle, concurrency, reopens })
        };
        if self.name == "manual" {
            let own = key("things", "1");
            return vec![
                (event("core.manual", "say.it", Some(own.clone()), "null"), attach(own, "manual.work")),
                (event("core.manual", "say.it", None, "null"), None),
                (event("other", "say.it", Some(key("things", "1")), "null"), None),
            ];
        }
        // As long as a payload gets, with every letter that JSON escapes.
        let long = json!({ "n": 7, "text": "\"\\\n\u{e9}".repeat((1 << 17) - 64) }).to_string();
        let keyed = || attach(key("jobs", "7"), "job.work");
        vec![
            (event("ci", "build.done", None, "{\n \"n\": 7 }"), keyed()),
            (event("ci", "build.done", None, &long), keyed()),
            (event("ci", "build.done", None, "{\"n\": 8}"), None),
            (event("ci", "other", None, "{\"n\": 7}"), None),
        ]
    }
}

fn event(source: &str, event_type: &str, key: Option<Key>, payload: &str) -> RouteInput {
    let id = EventId::from_number(7);
    let event = EventView {
        id,
        sequence: Sequence::from_number(1),
        source: SourceName::known(source),
        delivery_id: "d 1".parse().unwrap(),
        event_type: event_type.parse().unwrap(),
        scope: "main".parse().unwrap(),
        key,
        work: None,
        parent: Some(EventId::from_number(6)),
        root: EventId::from_number(5),
        depth: 2,
        emitted_by: None,
        occurred_at: Some(Timestamp::from_micros(1)),
        accepted_at: Timestamp::from_micros(1_700_000_000_000_001),
    };
    let scope = ScopeView { name: "main".parse().unwrap(), lineage: vec!["main".parse().unwrap()] };
    RouteInput::new(event, Payload::new(payload.as_bytes()).unwrap(), scope, None)
}

/// A body, and its HMAC-SHA-256 under [`SECRET`].
const BODY: &str = r#"{"action":"done","number":7}"#;
const SECRET: &str = "a secret of the tests";
const SIGNATURE: &str = "sha256=5ed2a861d08df391acdb158dd9ebe98cf9af64a18a44c44e1b1b0013d01d98be";

/// What the `github` entry makes of [`BODY`] as a push.
const FACTS: &str = concat!(
    r#"{"kind":"github.delivery.v1","event":"push","action":"done","repository":null,"ref":null,"#,
    r#""before":null,"after":null,"conclusion":null,"files":[],"files_complete":false,"commits":0,"#,
    r#""created":false,"deleted":false,"forced":false,"tag":null,"label":null,"fork":false,"#,
    r#""sender":null,"installation":null,"subject":null}"#,
);

/// One secret that can be read, or none.
#[derive(Debug)]
struct Known(Option<&'static str>);

impl Secrets for Known {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Secret, SecretError>> {
        let reason = "there is none".to_owned();
        let secret = self.0.filter(|_secret| name == "signing").map(|secret| Secret::new(secret.to_owned()));
        Box::pin(std::future::ready(secret.ok_or(SecretError { name: name.to_owned(), reason })))
    }
}

impl IngressDriver for Subject {
    fn ingress(&self) -> Arc<dyn Ingress> {
        match &self.process {
            Some(process) => process.ingress(self.name, "hooks"),
            None => bundled::package(self.name).unwrap().ingresses.remove(0),
        }
    }

    async fn check(&self, sample: Sample) -> Result<(), Vec<ConfigProblem>> {
        let entry = entry_of(self.config(sample));
        match &self.process {
            Some(process) => problems(process.check_entry(self.name, &entry).await),
            None => self.ingress().prepare(&entry).map(drop),
        }
    }

    fn entry(&self) -> IngressEntry {
        entry_of(&self.right)
    }

    fn request(&self) -> HttpDelivery {
        let headers = [
            ("content-type", "application/json"),
            ("x-signature", SIGNATURE),
            ("x-hub-signature-256", SIGNATURE),
            ("x-github-event", "push"),
            ("x-github-delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958"),
            ("idempotency-key", "72d3162e-cc78-11e3-81ab-4c9367dc0958"),
        ];
        HttpDelivery {
            path_tail: String::new(),
            headers: headers.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec())).to_vec(),
            body: BODY.into(),
            received_at: Timestamp::from_micros(1_700_000_000_000_000),
            fresh_id: "fresh".to_owned(),
        }
    }

    fn secrets(&self) -> &dyn Secrets {
        &Known(Some(SECRET))
    }

    fn no_secrets(&self) -> &dyn Secrets {
        &Known(None)
    }

    fn carries(&self) -> Vec<(String, String, Vec<u8>)> {
        let id = "72d3162e-cc78-11e3-81ab-4c9367dc0958".to_owned();
        if self.name == "webhook" {
            return vec![(id, "ci.event".to_owned(), BODY.into())];
        }
        // The facts of a delivery that says next to nothing.
        let facts = FACTS;
        vec![(id, "github.delivery".to_owned(), facts.into())]
    }
}

fn subject(name: &'static str, process: Option<Arc<Process>>) -> Subject {
    let (right, wrong) = match name {
        "match" => (
            json!({ "types": ["build.*"], "when": "payload.n == 7", "kind": "job.work",
                    "key": { "source": "jobs", "external_id": "${string(payload.n)}" } }),
            json!({ "types": ["Build"], "when": "1 +" }),
        ),
        "manual" => (json!({}), json!({ "anything": 1 })),
        "webhook" => (
            json!({ "namespace": "ci/main", "type": "ci.event",
                    "verify": { "hmac": { "header": "X-Signature", "secret": "signing", "prefix": "sha256=" } } }),
            json!({ "namespace": "ci/main" }),
        ),
        _github => (
            json!({ "namespace": "github/acme", "webhook_secret": "signing" }),
            json!({ "namespace": "github/acme", "webhook_secret": "signing", "forks": "perhaps" }),
        ),
    };
    Subject { name, right, wrong, process }
}

async fn as_process(name: &'static str) -> Subject {
    let process = bundled_process(name);
    process.settle(Duration::from_mins(1)).await;
    subject(name, Some(process))
}

#[tokio::test]
async fn match_conforms_compiled_in() {
    assert_eq!(check_handler(&subject("match", None)).await, Ok(()));
}

#[tokio::test]
async fn match_conforms_as_a_process_and_survives_its_end() {
    assert_eq!(check_handler_process(&as_process("match").await).await, Ok(()));
}

#[tokio::test]
async fn manual_conforms_compiled_in() {
    assert_eq!(check_handler(&subject("manual", None)).await, Ok(()));
}

#[tokio::test]
async fn manual_conforms_as_a_process_and_survives_its_end() {
    assert_eq!(check_handler_process(&as_process("manual").await).await, Ok(()));
}

#[tokio::test]
async fn webhook_conforms_compiled_in() {
    assert_eq!(check_ingress(&subject("webhook", None)).await, Ok(()));
}

#[tokio::test]
async fn webhook_conforms_as_a_process_and_survives_its_end() {
    assert_eq!(check_ingress_process(&as_process("webhook").await).await, Ok(()));
}

#[tokio::test]
async fn github_conforms_compiled_in() {
    assert_eq!(check_ingress(&subject("github", None)).await, Ok(()));
}

#[tokio::test]
async fn github_conforms_as_a_process_and_survives_its_end() {
    assert_eq!(check_ingress_process(&as_process("github").await).await, Ok(()));
}

#[tokio::test]
async fn every_extension_that_comes_with_the_program_is_put_to_the_suite() {
    assert_eq!(bundled::PACKAGES, ["match", "manual", "webhook", "github"]);
}

/// The command line of a process, as the kernel has it.
fn command_line(pid: u32) -> String {
    let path = Path::new("/proc").join(pid.to_string()).join("cmdline");
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).replace('\0', " ")
}

#[tokio::test]
async fn a_process_has_a_session_of_its_own_and_ends_with_its_keeper() {
    let subject = as_process("manual").await;
    let pid = subject.answers(None).await;
    let raw = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    assert_eq!(rustix::process::getsid(Some(raw)), Ok(raw));
    assert!(command_line(pid).contains("extension-run manual"), "{}", command_line(pid));
    subject.process().stop().await;
    assert_eq!(command_line(pid), "");
    assert_eq!(subject.process().standing(), Standing::Stopped);
}
