use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::outcome::{Artifact, Outcome, TurnResult};
use domain::text::ExecutorName;
use extension::{
    AttemptHost, BoxFuture, Capabilities, ConfigProblem, ExecutionId, Executor, Log, LogRequest, Recovery,
    RunError, RunRequest, Segment, Stopped,
};
use serde_json::Value;
use store::Location;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};

use crate::daemon::extensions::{self, Extensions};
use crate::daemon::outside::Outside;
use crate::daemon::{Options, Running, start};
use crate::home::Home;

pub(crate) mod places;
mod budgets;
mod cloudevents;
mod config;
mod daemon;
mod doctor;
mod document;
mod kept;
mod events;
mod jobs;
mod jobs_by_clock;
mod posture;
mod order;
mod runs;
mod overview;
mod pause;
mod replay;
mod sequel;
pub(crate) mod sessions;
mod browser_posture;
mod shared;
mod standard_webhooks;
mod stream;
mod toolbelt;
mod waits;
mod webhook;

/// How long a fact may take to come true.
const SOON: Duration = Duration::from_secs(20);
/// How often a fact is looked for that nobody announces.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

pub(crate) const CONFIG: &str = r#"
[daemon]
api_listen = "127.0.0.1:0"
webhook_listen = "127.0.0.1:0"
public_hosts = ["hooks.example.com"]

[[scopes]]
name = "main"
[scopes.settings]
concurrency = 4
[scopes.secrets]
hook = "env:HOOK_SECRET"
job = "env:JOB_SECRET"
gone = "env:NOT_THERE"
[[scopes.bindings]]
name = "fake"
executor = "fake"
[[scopes.bindings]]
name = "hang"
executor = "fake"
config = { hang = true }
[[scopes.routes]]
name = "hang"
handler = "match"
binding = "hang"
config = { types = ["hang.please"], work = "fresh", kind = "test.hang" }
[[scopes.routes]]
name = "built"
handler = "match"
binding = "fake"
config = { types = ["build.finished"], work = "fresh", kind = "test.build" }
[[scopes.routes]]
name = "manual"
handler = "manual"
binding = "fake"
[[scopes.extensions]]
name = "builds"
type = "webhook"
secret_names = ["hook"]
config = { namespace = "hook/builds", type = "build.finished", delivery_id = { header = "X-Delivery" }, verify = { hmac = { header = "X-Signature", secret = "hook", prefix = "sha256=" } } }
[[scopes.extensions]]
name = "job"
type = "webhook"
secret_names = ["job"]
config = { namespace = "hook/job", type = "build.finished", verify = { token = { secret = "job" } } }
[[scopes.extensions]]
name = "mute"
type = "webhook"
secret_names = ["gone"]
config = { namespace = "hook/mute", type = "build.finished", verify = { token = { secret = "gone" } } }
[[scopes.extensions]]
name = "repository"
type = "github"
secret_names = ["hook"]
config = { namespace = "github/acme", webhook_secret = "hook" }

[[scopes]]
name = "team/off"
disabled = true
[scopes.secrets]
hook = "env:HOOK_SECRET"
[[scopes.extensions]]
name = "builds"
type = "webhook"
secret_names = ["hook"]
config = { namespace = "hook/off", type = "build.finished", verify = { token = { secret = "hook" } } }
"#;

pub(crate) const HOOK_SECRET: &str = "hook-s3cret";
pub(crate) const JOB_SECRET: &str = "job-s3cret";

/// An executor that starts no process: it completes or fails at once, or hangs until it is stopped, and "leaves" a
/// file. What it "wrote" is the file `output`, when a test has made one.
#[derive(Debug)]
struct Fake {
    files: PathBuf,
    started: Mutex<Vec<ExecutionId>>,
    tokens: Mutex<BTreeMap<String, String>>,
}

impl Executor for Fake {
    fn name(&self) -> ExecutorName {
        ExecutorName::known("fake")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { holds_until_pinned: true, controls: extension::Controls::BOTH, resumes: false }
    }

    fn validate(&self, _config: &Value, _resource: Option<&Value>) -> Result<String, Vec<ConfigProblem>> {
        Ok("does nothing".to_owned())
    }

    fn run<'a>(
        &'a self,
        request: RunRequest,
        host: &'a dyn AttemptHost,
    ) -> BoxFuture<'a, Result<TurnResult, RunError>> {
        Box::pin(async move {
            if let Some(token) = &request.token {
                let token = token.expose().to_owned();
                self.tokens.lock().unwrap().insert(request.execution.to_string(), token);
            }
            host.pin(b"handle".to_vec()).await.map_err(|_error| RunError::Fenced)?;
            self.started.lock().unwrap().push(request.execution);
            if request.config.get("hang").is_some() {
                std::future::pending::<()>().await;
            }
            if request.config.get("fail").is_some() {
                let code = Some("exit_status".to_owned());
                return Ok(TurnResult { code, exit_status: Some(3), ..TurnResult::of(Outcome::Failed) });
            }
            // Once: the turn that follows a Wait completes.
            let woken = request.inputs.iter().any(|input| input.event.event_type.as_str() != "wait.please");
            if let Some(wait) = request.config.get("wait").filter(|_wait| !woken) {
                return Ok(TurnResult::waiting(serde_json::from_value(wait.clone()).unwrap()));
            }
            let artifacts = vec![Artifact { path: "out/report.html".to_owned(), bytes: 21 }];
            Ok(TurnResult {
                summary: Some("done".to_owned()),
                artifacts,
                ..TurnResult::of(Outcome::Completed)
            })
        })
    }

    fn recover(&self, _segment: Segment) -> BoxFuture<'_, Recovery> {
        Box::pin(std::future::ready(Recovery::NothingStarted))
    }

    fn observe(&self, _segment: Segment) -> BoxFuture<'_, Result<TurnResult, RunError>> {
        Box::pin(std::future::ready(Err(RunError::Fenced)))
    }

    fn stop(&self, _segment: Segment) -> BoxFuture<'_, Stopped> {
        Box::pin(std::future::ready(Stopped::Confirmed))
    }

    fn log(&self, request: LogRequest) -> BoxFuture<'_, Result<Log, RunError>> {
        const OUTPUT: &[u8] = b"one\ntwo\n<script>alert(1)</script>\n";
        let output = std::fs::read(self.files.join("output")).unwrap_or_else(|_absent| OUTPUT.to_vec());
        let size = output.len();
        let from = usize::try_from(request.from)
            .unwrap_or_else(|_negative| {
                size.saturating_sub(usize::try_from(request.from.unsigned_abs()).unwrap())
            })
            .min(size);
        let bytes = output[from..size.min(from + request.bytes_max)].to_vec();
        Box::pin(std::future::ready(Ok(Log { from: from as u64, bytes, size: size as u64 })))
    }

    fn artifact(&self, _execution: ExecutionId, path: &str) -> Option<PathBuf> {
        // As careless as can be: whatever keeps a request inside must stand before it.
        Some(self.files.join(path))
    }
}

/// A daemon in a home of its own, with real sockets.
pub(crate) struct TestDaemon {
    directory: tempfile::TempDir,
    pub(crate) running: Running,
    pub(crate) token: String,
    fake: Arc<Fake>,
}

pub(crate) fn home_in(directory: &Path) -> Home {
    Home::find(Some(directory.join("home")), None, None, Path::new("/")).unwrap()
}

fn options(directory: &Path) -> (Options, Arc<Fake>) {
    let files = directory.join("files");
    std::fs::create_dir_all(files.join("out")).unwrap();
    std::fs::write(files.join("out/report.html"), "<h1>not a page</h1>\n\n").unwrap();
    std::fs::write(directory.join("outside"), "outside").unwrap();
    let fake = Arc::new(Fake { files, started: Mutex::default(), tokens: Mutex::default() });
    let variable = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
    let options = Options {
        location: None,
        store: store::Options::default(),
        extensions: Extensions {
            handlers: extensions::handlers(),
            executors: vec![Arc::clone(&fake) as Arc<dyn Executor>],
            ingresses: bundled::ingresses(),
            recurrences: extensions::recurrences(),
            workspaces: vec![Arc::new(places::Places)],
            outside: Outside::new("/nonexistent/open-conduit".into()),
        },
        environment: vec![variable("HOOK_SECRET", HOOK_SECRET), variable("JOB_SECRET", JOB_SECRET)],
        takes_webhooks: true,
    };
    (options, fake)
}

impl TestDaemon {
    pub(crate) async fn start() -> Self {
        Self::start_with(CONFIG).await
    }

    pub(crate) async fn start_with(config: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let home = home_in(directory.path());
        home.create().unwrap();
        std::fs::write(home.root().join("conduit.toml"), config).unwrap();
        Self::start_in(directory).await
    }

    pub(crate) async fn start_in(directory: tempfile::TempDir) -> Self {
        Self::start_at(directory, None).await
    }

    /// Starts on a database that is not the home's own.
    async fn start_at(directory: tempfile::TempDir, location: Option<Location>) -> Self {
        let home = home_in(directory.path());
        let (options, fake) = options(directory.path());
        let options = Options { location, ..options };
        let running = start(home.clone(), options).await.unwrap();
        let token = std::fs::read_to_string(home.token()).unwrap();
        Self { directory, running, token, fake }
    }

    pub(crate) async fn restart(self) -> Self {
        self.restart_at(None).await
    }

    async fn restart_at(self, location: Option<Location>) -> Self {
        Self::start_at(self.stop().await, location).await
    }

    /// Stops, and gives back what its home is in.
    pub(crate) async fn stop(self) -> tempfile::TempDir {
        self.running.stop().await.unwrap();
        self.directory
    }

    pub(crate) fn home(&self) -> &Home {
        self.running.daemon().home()
    }

    pub(crate) fn api(&self) -> SocketAddr {
        self.running.addresses().api.unwrap()
    }

    /// Says what every run "wrote".
    pub(crate) fn writes(&self, output: &[u8]) {
        std::fs::write(self.fake.files.join("output"), output).unwrap();
    }

    fn hooks(&self) -> SocketAddr {
        self.running.addresses().webhooks.unwrap()
    }

    /// A request over the socket, as the command line sends it.
    pub(crate) async fn unix(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Reply {
        let mut all = vec![("Host", "localhost"), ("Content-Type", "application/json")];
        let bearer = format!("Bearer {}", self.token);
        all.push(("Authorization", &bearer));
        all.extend_from_slice(headers);
        let stream = UnixStream::connect(self.home().socket()).await.unwrap();
        exchange(stream, &request(method, path, &all, body)).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.unix("GET", path, &[], b"").await
    }

    pub(crate) async fn get_json(&self, path: &str) -> Value {
        let reply = self.get(path).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.json()
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.unix("POST", path, &[], body.to_string().as_bytes()).await
    }

    pub(crate) async fn emit(&self, body: &Value) -> Value {
        let reply = self.post("/v1/events", body).await;
        assert!(matches!(reply.status, 200 | 202), "{}", reply.text());
        reply.json()
    }

    /// A request over TCP, with nothing but these headers.
    pub(crate) async fn tcp(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        send(self.api(), &request(method, path, headers, body)).await
    }

    /// Waits until a path's answer is as it should be.
    pub(crate) async fn until(&self, path: &str, fact: impl Fn(&Value) -> bool) -> Value {
        let mut changed = self.running.daemon().runtime().hints().feed.subscribe();
        let waited = tokio::time::timeout(SOON, async {
            loop {
                changed.mark_unchanged();
                let answer = self.get_json(path).await;
                if fact(&answer) {
                    return answer;
                }
                // Not everything that a path shows rings the bell.
                drop(tokio::time::timeout(LOOK_AGAIN, changed.changed()).await);
            }
        });
        waited.await.unwrap_or_else(|_elapsed| panic!("{path} did not come true"))
    }

    pub(crate) async fn count(&self, path: &str) -> usize {
        self.get_json(path).await["items"].as_array().unwrap().len()
    }
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_error| panic!("not JSON: {}", self.text()))
    }

    pub(crate) fn code(&self) -> String {
        assert_eq!(self.header("content-type"), "application/problem+json", "{}", self.text());
        let problem = self.json();
        assert_eq!(problem["status"], self.status);
        problem["code"].as_str().unwrap().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(String::as_str).unwrap_or_default()
    }
}

fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    let chunked = headers.iter().any(|(name, _value)| name.eq_ignore_ascii_case("transfer-encoding"));
    if !chunked {
        write!(head, "Content-Length: {}\r\n", body.len()).unwrap();
    }
    for (name, value) in headers {
        write!(head, "{name}: {value}\r\n").unwrap();
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

async fn send(address: SocketAddr, bytes: &[u8]) -> Reply {
    exchange(TcpStream::connect(address).await.unwrap(), bytes).await
}

async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, bytes: &[u8]) -> Reply {
    // A server that answers early may close before everything is written; the answer is still there to read.
    drop(stream.write_all(bytes).await);
    let mut answer = Vec::new();
    let read = tokio::time::timeout(SOON, stream.read_to_end(&mut answer)).await.expect("an answer in time");
    drop(read);
    parse(&answer)
}

fn parse(answer: &[u8]) -> Reply {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers: BTreeMap<String, String> = lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let mut body = answer[end + 4..].to_vec();
    if headers.get("transfer-encoding").is_some_and(|coding| coding == "chunked") {
        body = unchunked(&body);
    }
    Reply { status, headers, body }
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        if length == 0 {
            break;
        }
        body.extend_from_slice(&rest[end + 2..end + 2 + length]);
        rest = &rest[end + 4 + length..];
    }
    body
}
