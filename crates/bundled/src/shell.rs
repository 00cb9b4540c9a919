//! The shell executor: runs a command as one turn, in a process that outlives the daemon.
//!
//! A small process of ours, the launcher, stands between the two. It holds the command back until the runtime has
//! recorded where to find it, it alone waits for the command, and it writes how that ended into a file. So a
//! daemon that is killed at any moment leaves one of two things behind: a launch that began nothing and never
//! will, or a command with an identity that the next daemon can follow to the same end.
//!
//! The modules stand in the order a turn passes them: `config`, `environment` and `input` say what is run, `launch`
//! starts a launcher from a `binary` and `reserve` does so ahead, `inbox` is how more reaches the command, `handle` is
//! what the runtime keeps, `judge` reads the end, and
//! `recovery` finds out after a crash. `root` knows where launches lie. The launcher, and what it shares with
//! these, is a crate of its own.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use extension::{
    AttemptHost, BoxFuture, Capabilities, ConfigProblem, Controls, Epoch, EventId, ExecutionId, Executor,
    ExecutorName, Injected, Injection, Log, LogRequest, PinError, Recovery, RunError, RunRequest, Segment,
    Stopped, TurnResult,
};
use launcher::directory::{SegmentDirectory, open_plain};
use launcher::process::{Identity, Machine};
use launcher::wire::{self, Plan};
use serde_json::Value;

mod config;
mod environment;
mod input;
mod inbox;
mod root;
mod binary;
mod launch;
mod reserve;
mod handle;
mod judge;
mod recovery;

pub use binary::LauncherBinary;
pub use launcher::launcher_entry;

use binary::Source;
use config::Config;
use handle::Handle;
use launch::Held;
use recovery::{Settled, Site};
use reserve::Reserve;
use root::Root;

/// The command or its launcher could not be started.
const SPAWN_FAILED: &str = "spawn_failed";
/// The handle could not be recorded, so nothing was started.
const PIN_FAILED: &str = "pin_failed";
/// How long a launcher holds its command. Longer than any answer of a store that works takes.
const HOLD_TIME_MAX: Duration = Duration::from_mins(1);
/// Files or processes of a segment could not be read.
const SEGMENT_UNREADABLE: &str = "segment_unreadable";

/// How the executor stands in its surroundings.
#[derive(Debug, Clone)]
pub struct ShellOptions {
    /// The environment that the allow-list chooses from.
    pub environment: Vec<(String, String)>,
    /// Where commands find what they make calls with; none where nothing serves calls.
    pub toolbelt: Option<Toolbelt>,
}

/// Where commands find the toolbelt.
#[derive(Debug, Clone)]
pub struct Toolbelt {
    /// The socket that calls are made on.
    pub socket: PathBuf,
    /// The directory with the `os` command, which comes first in every command's `PATH`.
    pub bin: PathBuf,
}

impl ShellOptions {
    /// Chooses from this process's own environment; variables that are not UTF-8 are left out.
    pub fn from_process() -> Self {
        Self { environment: environment::of_this_process(), toolbelt: None }
    }
}

/// Runs shell commands.
#[derive(Debug)]
pub struct ShellExecutor {
    site: Arc<Site>,
    options: Arc<ShellOptions>,
    hold_time_max: Duration,
    reserve: Reserve,
}

impl ShellExecutor {
    /// An executor that keeps one directory for each Execution below `root`, which it makes when it is
    /// missing. Its launchers are started from memory, and where that is not possible from `binary`, whose
    /// `main` begins with [`launcher_entry`]; the daemon's is `/proc/self/exe`, which stays right when the
    /// file is replaced.
    ///
    /// # Errors
    /// When the directory cannot be made, or this system has no `/proc`.
    pub fn new(root: &Path, binary: PathBuf, options: ShellOptions) -> io::Result<Self> {
        let site = Site { root: Root::open(root)?, machine: Machine::here()? };
        // Rubbish that stays costs a little room, and nothing is wrong because of it.
        let _left_behind = site.root.remove_abandoned();
        let own = Identity::of(i32::try_from(std::process::id()).map_err(io::Error::other)?)?;
        let reserve = Reserve::new(Source::new(binary), &site.root.ahead(own));
        Ok(Self { site: Arc::new(site), options: Arc::new(options), hold_time_max: HOLD_TIME_MAX, reserve })
    }

    /// How long launchers hold their command for the runtime's answer to the pin, when not a minute. A daemon
    /// that is suspended for longer finds the launch gone, with nothing started.
    #[must_use]
    pub const fn hold_time_max(mut self, time: Duration) -> Self {
        self.hold_time_max = time;
        self
    }

    /// How long a launcher that was started ahead waits for a turn, when not a minute.
    #[must_use]
    pub fn ahead_time_max(mut self, time: Duration) -> Self {
        self.reserve = self.reserve.time_max(time);
        self
    }

    /// Starts launchers from the binary that was given, even where they could be started from memory.
    #[must_use]
    pub fn without_memory(mut self) -> Self {
        self.reserve = self.reserve.with_binary(Source::without_memory);
        self
    }

    /// Which binary launchers are started from. The first call in a process finds that out, and blocks for the
    /// time a small program takes to run.
    pub fn launcher_binary(&self) -> LauncherBinary {
        self.reserve.binary().which()
    }

    /// Deletes the content of an Execution that has ended: its input, output and artifacts. Again is fine.
    ///
    /// # Errors
    /// When something could not be deleted.
    pub async fn release(&self, execution: ExecutionId) -> io::Result<()> {
        let site = Arc::clone(&self.site);
        tokio::task::spawn_blocking(move || site.root.remove(execution)).await.map_err(io::Error::other)?
    }

    /// Makes the directory and has a launcher hold the command.
    async fn hold(&self, request: RunRequest, config: Config) -> Result<Held, RunError> {
        let (site, options) = (Arc::clone(&self.site), Arc::clone(&self.options));
        let (reserve, hold_time_max) = (self.reserve.clone(), self.hold_time_max);
        let held = tokio::task::spawn_blocking(move || {
            let directory = site.root.segment(request.execution, request.epoch);
            let mark = site.root.mark(request.execution);
            let plan = plan(&options, hold_time_max, &config, &request, &directory, mark)?;
            reserve.hold(&directory, &plan, || {
                directory
                    .write_input(&input::render(&request))
                    .map_err(|error| spawn_failed("`input.json` cannot be written", &error))?;
                let token = request.token.as_ref().filter(|_token| options.toolbelt.is_some());
                token.map_or(Ok(()), |token| {
                    directory
                        .write_token(token.expose())
                        .map_err(|error| spawn_failed("the token cannot be written", &error))
                })
            })
        });
        held.await.map_err(|error| spawn_failed("the launch was cut short", &error.into()))?
    }

    /// Has launchers wait for the turns to come. Nobody waits for that.
    fn refill(&self) {
        let reserve = self.reserve.clone();
        tokio::task::spawn_blocking(move || reserve.refill());
    }

    /// What a launch came to whose launcher has ended.
    async fn settle(&self, segment: Segment, epoch: Epoch) -> Result<Settled, RunError> {
        let site = Arc::clone(&self.site);
        let settled = tokio::task::spawn_blocking(move || site.settle(&segment, epoch));
        settled.await.map_err(io::Error::other).and_then(|settled| settled).map_err(unreadable)
    }

    async fn run_to_end(&self, request: RunRequest, host: &dyn AttemptHost) -> Result<TurnResult, RunError> {
        let config = Config::parse(&request.config).map_err(|problems| {
            let reason = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            RunError::Failed {
                code: SPAWN_FAILED,
                reason: format!("the binding's configuration is not valid: {reason}"),
            }
        })?;
        let epoch = request.epoch;
        let mut segment = Segment {
            execution: request.execution,
            epoch,
            handle: None,
            config: request.config.clone(),
            secrets: request.secrets.clone(),
            token: None,
        };
        let held = self.hold(request, config).await?;
        let handle = Handle::new(self.site.machine.clone(), held.launcher, held.command, epoch).to_bytes();
        let pinned = host.pin(handle.clone()).await;
        let refused = pinned.err();
        let running = if refused.is_none() { held.go() } else { held.give_up() };
        self.refill();
        running.end().await.map_err(unreadable)?;
        segment.handle = Some(handle);
        let settled = self.settle(segment, epoch).await?;
        match (refused, settled) {
            // Without the word to go no launcher starts anything.
            (Some(PinError::Fenced), _) | (None, Settled::Voided) => Err(RunError::Fenced),
            (Some(error @ PinError::Store(_)), _) => Err(RunError::NotStarted { reason: error.to_string() }),
            (Some(error @ PinError::TooLarge), _) => {
                Err(RunError::Failed { code: PIN_FAILED, reason: error.to_string() })
            }
            (None, Settled::Ended(result)) => Ok(result),
            (None, Settled::LauncherLost) => Err(launcher_lost()),
        }
    }

    async fn observe_to_end(&self, segment: Segment) -> Result<TurnResult, RunError> {
        let handle = segment.handle.as_deref().and_then(Handle::from_bytes);
        let Some(handle) = handle else {
            return Err(RunError::Failed {
                code: SEGMENT_UNREADABLE,
                reason: "there is no handle by which the segment could be followed".to_owned(),
            });
        };
        if let Some(process) = self.site.open_adopted(&handle).map_err(unreadable)? {
            launch::ended(process).await.map_err(unreadable)?;
        }
        match self.settle(segment, handle.epoch).await? {
            Settled::Ended(result) => Ok(result),
            Settled::Voided => Err(RunError::Fenced),
            Settled::LauncherLost => Err(launcher_lost()),
        }
    }
}

/// What a launcher is to do for a request.
fn plan(
    options: &ShellOptions,
    hold_time_max: Duration,
    config: &Config,
    request: &RunRequest,
    directory: &SegmentDirectory,
    mark: String,
) -> Result<Plan, RunError> {
    let workspace = request.workspace.as_ref().map(|workspace| PathBuf::from(&workspace.dir));
    let named = workspace.as_ref().or(config.dir.as_ref());
    if named.is_some_and(|dir| !dir.is_dir()) {
        let whose = if workspace.is_some() { "of its workspace" } else { "that the binding's `dir` names" };
        let reason = format!("the directory {whose} does not exist");
        return Err(RunError::Failed { code: SPAWN_FAILED, reason });
    }
    let dir = named.cloned().unwrap_or_else(|| directory.work());
    Ok(Plan {
        hold_ms: milliseconds(hold_time_max),
        timeout_ms: config.timeout.map(milliseconds),
        stop_grace_ms: milliseconds(config.stop_grace),
        redact: request.secrets.iter().map(|(_name, secret)| secret.expose().to_owned()).collect(),
        dir: environment::text(&dir)?,
        command: wire::Command {
            argv: config.argv.clone(),
            env: environment::build(options, config, request, directory, &mark)?,
        },
        mark,
    })
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Why a binding's `dir` is refused beside a `resource`.
const TWO_DIRECTORIES: &str = "the binding's `resource` says where the command runs; give one of them";

fn spawn_failed(what: &str, error: &io::Error) -> RunError {
    if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
        return RunError::NotStarted { reason: format!("{what}: {error}") };
    }
    RunError::Failed { code: SPAWN_FAILED, reason: format!("{what}: {error}") }
}

fn launcher_lost() -> RunError {
    let reason = "the launcher was ended before it let the command begin; nothing was started".to_owned();
    RunError::Failed { code: SPAWN_FAILED, reason }
}

#[expect(clippy::needless_pass_by_value, reason = "it stands in map_err")]
fn unreadable(error: io::Error) -> RunError {
    RunError::Failed { code: SEGMENT_UNREADABLE, reason: format!("the segment cannot be followed: {error}") }
}

impl Executor for ShellExecutor {
    fn name(&self) -> ExecutorName {
        ExecutorName::known("shell")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { holds_until_pinned: true, controls: Controls::BOTH, resumes: false }
    }

    fn validate(&self, config: &Value, resource: Option<&Value>) -> Result<String, Vec<ConfigProblem>> {
        let parsed = Config::parse(config);
        let mut problems = Vec::new();
        if resource.is_some() && config.get("dir").is_some() {
            problems.push(ConfigProblem::at("dir", TWO_DIRECTORIES));
        }
        match parsed {
            Ok(config) if problems.is_empty() => Ok(config.describe()),
            parsed => {
                problems.extend(parsed.err().unwrap_or_default());
                Err(problems)
            }
        }
    }

    fn run<'a>(
        &'a self,
        request: RunRequest,
        host: &'a dyn AttemptHost,
    ) -> BoxFuture<'a, Result<TurnResult, RunError>> {
        Box::pin(self.run_to_end(request, host))
    }

    fn recover(&self, segment: Segment) -> BoxFuture<'_, Recovery> {
        let site = Arc::clone(&self.site);
        Box::pin(async move {
            let recovered = tokio::task::spawn_blocking(move || site.recover(&segment)).await;
            recovered.map_err(io::Error::other).and_then(|recovered| recovered).unwrap_or_else(|error| {
                Recovery::NotAdoptable { reason: format!("it cannot be looked at: {error}"), stopped: false }
            })
        })
    }

    fn observe(&self, segment: Segment) -> BoxFuture<'_, Result<TurnResult, RunError>> {
        Box::pin(self.observe_to_end(segment))
    }

    fn stop(&self, segment: Segment) -> BoxFuture<'_, Stopped> {
        let site = Arc::clone(&self.site);
        Box::pin(async move {
            let stopped = tokio::task::spawn_blocking(move || site.stop(&segment)).await;
            stopped
                .map_err(io::Error::other)
                .and_then(|stopped| stopped)
                .unwrap_or_else(|error| Stopped::Unverifiable { reason: error.to_string() })
        })
    }

    fn release(&self, execution: ExecutionId) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move { Self::release(self, execution).await.map_err(|error| error.to_string()) })
    }

    fn inject(&self, injection: Injection) -> BoxFuture<'_, Injected> {
        let site = Arc::clone(&self.site);
        Box::pin(async move {
            let injected = tokio::task::spawn_blocking(move || site.inject(&injection)).await;
            injected.map_err(io::Error::other).and_then(|injected| injected).unwrap_or_else(|error| {
                Injected::Ambiguous { reason: format!("the inbox cannot be written: {error}") }
            })
        })
    }

    fn proof(&self, segment: Segment) -> BoxFuture<'_, Vec<EventId>> {
        let site = Arc::clone(&self.site);
        Box::pin(async move {
            // What cannot be read proves nothing, and the next run is given it again.
            let proof = tokio::task::spawn_blocking(move || site.proof(&segment)).await;
            proof.map_err(io::Error::other).and_then(|proof| proof).unwrap_or_default()
        })
    }

    fn log(&self, request: LogRequest) -> BoxFuture<'_, Result<Log, RunError>> {
        let site = Arc::clone(&self.site);
        Box::pin(async move {
            let log = tokio::task::spawn_blocking(move || read_log(&site.root, request)).await;
            log.map_err(io::Error::other).and_then(|log| log).map_err(unreadable)
        })
    }

    fn directory(&self, execution: ExecutionId, config: &Value) -> Option<PathBuf> {
        let own = || Some(self.site.root.segments(execution).ok()?.last()?.1.work());
        Config::parse(config).ok()?.dir.or_else(own)
    }

    fn artifact(&self, execution: ExecutionId, path: &str) -> Option<PathBuf> {
        let segments = self.site.root.segments(execution).ok()?;
        segments.last().and_then(|(_, directory)| directory.artifact(path))
    }
}

/// Reads a piece of the newest launch's output; earlier launches of an Execution started nothing. Before the
/// first launch, and after a release, there is none.
fn read_log(root: &Root, request: LogRequest) -> io::Result<Log> {
    let segments = root.segments(request.execution)?;
    let newest = segments.last().map(|(_, directory)| open_plain(&directory.output())).transpose()?;
    let Some(mut file) = newest.flatten() else {
        return Ok(Log { from: 0, bytes: Vec::new(), size: 0 });
    };
    let size = file.metadata()?.len();
    let from = match u64::try_from(request.from) {
        Ok(from) => from.min(size),
        Err(_negative) => size.saturating_sub(request.from.unsigned_abs()),
    };
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    // Up to the size that is reported, although more may have been written meanwhile.
    let length = (size - from).min(request.bytes_max as u64);
    file.take(length).read_to_end(&mut bytes)?;
    Ok(Log { from, bytes, size })
}
