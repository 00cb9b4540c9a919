//! A home with a shell executor, hosts that answer a pin in different ways, and bounded waiting for facts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bundled::shell::{ShellExecutor, ShellOptions, Toolbelt};
use extension::{
    Attempt, AttemptHost, BoxFuture, Epoch, EventId, EventType, EventView, ExecutionId, Executor, InputView,
    LogRequest, Payload, PinError, RunError, RunRequest, ScopeName, Secret, Segment, Sequence, SourceName,
    Timestamp, TurnResult, WorkId, WorkKind,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long a fact may take to become true on a busy machine.
const FACT_TIME_MAX: Duration = Duration::from_secs(30);
/// How long to wait before looking again.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The attempt of every test. Its mark still differs, since the mark is a path below the home.
pub(crate) const RUN: ExecutionId = ExecutionId::from_number(77);

/// A temporary home.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) dir: TempDir,
    pub(crate) executor: Arc<ShellExecutor>,
}

impl Home {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let executor = Arc::new(executor(&dir.path().join("runs")));
        Self { dir, executor }
    }

    /// One whose launchers are started as they are where nothing may be run from memory.
    pub(crate) fn without_memory() -> Self {
        let mut home = Self::new();
        home.executor = Arc::new(executor(&home.root()).without_memory());
        home
    }

    /// The executor of a daemon that was started again.
    pub(crate) fn restarted(&self) -> Arc<ShellExecutor> {
        Arc::new(executor(&self.root()))
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("runs")
    }

    /// A path in the home, outside everything the executor keeps.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The directory of a launch.
    pub(crate) fn segment(&self, epoch: i64) -> PathBuf {
        self.root().join(RUN.to_string()).join(format!("e{epoch}"))
    }

    /// Runs a turn to its end with a host that grants.
    pub(crate) async fn run(&self, config: Value) -> TurnResult {
        self.try_run(request(config), &Granting::default()).await.unwrap()
    }

    pub(crate) async fn try_run(
        &self,
        request: RunRequest,
        host: &dyn AttemptHost,
    ) -> Result<TurnResult, RunError> {
        tokio::time::timeout(FACT_TIME_MAX, self.executor.run(request, host)).await.expect("the turn ends")
    }

    /// Begins a turn and leaves it to itself once `fact` holds, as a daemon does that is killed. Answers the
    /// handle.
    pub(crate) async fn abandon(&self, request: RunRequest, fact: impl Fn() -> bool) -> Vec<u8> {
        let host = Granting::default();
        let executor = self.restarted();
        tokio::select! {
            ended = executor.run(request, &host) => panic!("the turn ended: {ended:?}"),
            () = until("the turn is where the daemon dies", fact) => {}
        }
        host.handle()
    }

    /// The whole output.
    pub(crate) async fn output(&self) -> String {
        let request = LogRequest { execution: RUN, from: 0, bytes_max: 1 << 20 };
        String::from_utf8(self.executor.log(request).await.unwrap().bytes).unwrap()
    }

    /// The pids of everything that carries the attempt's mark, and of launchers in its directory.
    pub(crate) fn marked(&self) -> Vec<i32> {
        let directory = fs::canonicalize(self.root()).unwrap().join(RUN.to_string());
        let mark = format!("OPEN_CONDUIT_RUN={}", directory.display());
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let is_launcher = line.split(|byte| *byte == 0).nth(1) == Some(b"__launch");
            let is_there =
                || fs::read_link(entry.path().join("cwd")).is_ok_and(|place| place.starts_with(&directory));
            let is_marked = environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes());
            if is_marked || (is_launcher && is_there()) {
                found.push(pid);
            }
        }
        found
    }
}

impl Drop for Home {
    /// A failed test leaves no process behind.
    fn drop(&mut self) {
        for pid in self.marked() {
            kill(pid, "KILL");
        }
    }
}

pub(crate) fn executor(root: &Path) -> ShellExecutor {
    executor_with(root, Duration::from_mins(1))
}

/// An executor whose launchers hold for so long.
pub(crate) fn executor_with(root: &Path, hold_time_max: Duration) -> ShellExecutor {
    executor_for(root, None).hold_time_max(hold_time_max)
}

/// An executor whose commands find the toolbelt there.
pub(crate) fn executor_for(root: &Path, toolbelt: Option<Toolbelt>) -> ShellExecutor {
    let environment = [
        ("PATH", std::env::var("PATH").unwrap()),
        ("HOME", "/nonexistent".to_owned()),
        ("LC_ALL", "C".to_owned()),
        ("GITHUB_TOKEN", "not for everyone".to_owned()),
        ("EDITOR", "vi".to_owned()),
        ("TERM", "xterm".to_owned()),
    ];
    let environment = environment.map(|(name, value)| (name.to_owned(), value)).to_vec();
    let launcher = PathBuf::from(env!("CARGO_BIN_EXE_shell-launcher"));
    ShellExecutor::new(root, launcher, ShellOptions { environment, toolbelt }).unwrap()
}

/// A first attempt of some Work, triggered by one Event.
pub(crate) fn request(config: Value) -> RunRequest {
    let trigger = input(1, &json!({"hello": "world"}));
    RunRequest {
        execution: RUN,
        attempt: Attempt::FIRST,
        retry_of: None,
        epoch: Epoch::FIRST,
        work: WorkId::from_number(5),
        kind: WorkKind::known("job"),
        scope: ScopeName::known("main"),
        trigger: trigger.event.id,
        inputs: vec![trigger],
        config,
        workspace: None,
        secrets: Vec::new(),
        timeout: Duration::from_hours(1),
        token: None,
    }
}

pub(crate) fn input(number: i64, payload: &Value) -> InputView {
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
    let payload = Some(Payload::new(serde_json::to_vec(payload).unwrap()).unwrap());
    InputView { event, payload, is_context: false }
}

pub(crate) fn secret(name: &str, value: &str) -> (String, Secret) {
    (name.to_owned(), Secret::new(value.to_owned()))
}

/// The segment as a claim at `epoch` asks for it.
pub(crate) fn segment(epoch: i64, handle: Option<Vec<u8>>, config: &Value) -> Segment {
    let epoch = Epoch::from_number(epoch);
    Segment { execution: RUN, epoch, handle, config: config.clone(), secrets: Vec::new(), token: None }
}

/// Records the handle and grants.
#[derive(Debug, Default)]
pub(crate) struct Granting(Mutex<Option<Vec<u8>>>);

impl Granting {
    pub(crate) fn handle(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone().expect("a handle was pinned")
    }
}

impl AttemptHost for Granting {
    fn pin(&self, handle: Vec<u8>) -> BoxFuture<'_, Result<(), PinError>> {
        let earlier = self.0.lock().unwrap().replace(handle);
        assert_eq!(earlier, None, "a handle is pinned once");
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Refuses.
#[derive(Debug)]
pub(crate) struct Refusing(pub(crate) PinError);

impl AttemptHost for Refusing {
    fn pin(&self, _handle: Vec<u8>) -> BoxFuture<'_, Result<(), PinError>> {
        Box::pin(std::future::ready(Err(self.0.clone())))
    }
}

/// Grants, but only after it has been told to; `pinned` is where the handle can be seen meanwhile.
#[derive(Debug)]
pub(crate) struct Slow {
    pub(crate) pinned: tokio::sync::watch::Sender<Option<Vec<u8>>>,
    pub(crate) granted: tokio::sync::Notify,
}

impl Slow {
    pub(crate) fn new() -> Self {
        Self { pinned: tokio::sync::watch::Sender::new(None), granted: tokio::sync::Notify::new() }
    }

    /// Waits until a handle is there.
    pub(crate) async fn handle(&self) -> Vec<u8> {
        let mut seen = self.pinned.subscribe();
        let handle = tokio::time::timeout(FACT_TIME_MAX, seen.wait_for(Option::is_some)).await;
        handle.expect("the launch is pinned").unwrap().clone().unwrap()
    }
}

impl AttemptHost for Slow {
    fn pin(&self, handle: Vec<u8>) -> BoxFuture<'_, Result<(), PinError>> {
        Box::pin(async move {
            self.pinned.send_replace(Some(handle));
            self.granted.notified().await;
            Ok(())
        })
    }
}

/// Waits until something is a fact.
pub(crate) async fn until(what: &str, fact: impl Fn() -> bool) {
    let wait = async {
        while !fact() {
            #[expect(
                clippy::disallowed_methods,
                reason = "another process is observed, which sends no signal"
            )]
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    assert!(tokio::time::timeout(FACT_TIME_MAX, wait).await.is_ok(), "it never happened that {what}");
}

/// A process of its own, outside every attempt.
#[expect(clippy::disallowed_methods, reason = "a bystander of the attempt under test")]
pub(crate) fn bystander(argv: &[&str]) -> Child {
    Command::new(argv[0]).args(&argv[1..]).stdin(Stdio::null()).spawn().unwrap()
}

/// This test binary, running one test as if it were a daemon.
#[expect(clippy::disallowed_methods, reason = "a daemon that can be killed is a process of its own")]
pub(crate) fn daemon(test: &str, variables: &[(&str, &str)]) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Signals a process by its number.
pub(crate) fn kill(pid: i32, signal: &str) {
    let mut kill = bystander(&["/bin/sh", "-c", &format!("kill -{signal} {pid} 2>/dev/null")]);
    kill.wait().unwrap();
}

/// Whether a process of that number runs.
pub(crate) fn runs(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
