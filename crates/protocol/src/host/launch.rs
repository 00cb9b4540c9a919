//! Starting an extension's process, and its end.
//!
//! A thread starts the process and waits for its end: the kernel's signal at a parent's death is that thread's death,
//! and so it comes exactly when the daemon dies.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use extension::BoxFuture;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

use crate::stage;

/// Starts what an extension runs in.
pub(super) trait Launch: fmt::Debug + Send + Sync + 'static {
    /// Starts it once. An error is in words, without a secret.
    fn launch(&self) -> BoxFuture<'_, Result<Launched, String>>;
}

/// What was started.
pub(super) struct Launched {
    pub(super) pid: u32,
    pub(super) input: Box<dyn AsyncWrite + Send + Unpin>,
    pub(super) output: Box<dyn AsyncRead + Send + Unpin>,
    pub(super) errors: Box<dyn AsyncRead + Send + Unpin>,
    /// Values to keep out of the log.
    pub(super) secrets: Vec<String>,
    /// Ends it and everything of its session's group. It may have ended.
    pub(super) kill: Box<dyn Fn() + Send + Sync>,
    /// Says, in words, how it ended.
    pub(super) ended: oneshot::Receiver<String>,
}

/// What a command is started with.
#[derive(Debug)]
pub struct Surroundings {
    /// The whole environment.
    pub environment: Vec<(String, String)>,
    /// Those of its values that are secrets.
    pub secrets: Vec<String>,
}

/// Reads the environment at the moment of a start, since a secret may have changed.
pub type ReadSurroundings = Arc<dyn Fn() -> BoxFuture<'static, Result<Surroundings, String>> + Send + Sync>;

/// A command as a process.
pub(super) struct Program {
    /// Our own binary, which begins as [`stage::entry`].
    pub(super) stage: PathBuf,
    pub(super) argv: Vec<String>,
    pub(super) dir: PathBuf,
    pub(super) surroundings: ReadSurroundings,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("stage", &self.stage).finish_non_exhaustive()
    }
}

impl Launch for Program {
    fn launch(&self) -> BoxFuture<'_, Result<Launched, String>> {
        Box::pin(async {
            let surroundings = (self.surroundings)().await?;
            let mut command = self.command();
            command.env_clear().envs(surroundings.environment);
            let failed = |error: io::Error| format!("it cannot be started: {error}");
            start(command, surroundings.secrets).await.map_err(failed)
        })
    }
}

impl Program {
    #[expect(clippy::disallowed_methods, reason = "this is where an extension's process is started")]
    fn command(&self) -> Command {
        let mut command = Command::new(&self.stage);
        command.arg(stage::WORD).arg(std::process::id().to_string()).args(&self.argv).current_dir(&self.dir);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// A process that may have been waited for, after which its pid may be somebody else's.
#[derive(Debug)]
struct Alive {
    pid: Pid,
    is_reaped: Mutex<bool>,
}

impl Alive {
    /// Kills the group; the stage has made it the leader of one.
    fn kill(&self) {
        let is_reaped = self.is_reaped.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_reaped {
            // Before the stage has its session there is no such group, and then only the process itself. One that has
            // ended takes neither.
            let _ended = kill_process_group(self.pid, Signal::KILL)
                .or_else(|_none| kill_process(self.pid, Signal::KILL));
        }
    }
}

async fn start(mut command: Command, secrets: Vec<String>) -> io::Result<Launched> {
    let (say_started, started) = oneshot::channel();
    let (say_ended, ended) = oneshot::channel();
    let thread = std::thread::Builder::new().name("extension".to_owned());
    thread.spawn(move || {
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return drop(say_started.send(Err(error))),
        };
        let pid = Pid::from_child(&child);
        let alive = Arc::new(Alive { pid, is_reaped: Mutex::new(false) });
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let given = say_started.send(Ok((Arc::clone(&alive), streams)));
        if given.is_err() {
            alive.kill();
        }
        drop(say_ended.send(wait(&mut child, &alive)));
    })?;
    let (alive, (input, output, errors)) =
        started.await.map_err(|_gone| io::Error::other("its thread has ended"))??;
    let missing = || io::Error::other("a pipe is missing");
    let input = pipe::Sender::from_owned_fd(OwnedFd::from(input.ok_or_else(missing)?))?;
    let output = pipe::Receiver::from_owned_fd(OwnedFd::from(output.ok_or_else(missing)?))?;
    let errors = pipe::Receiver::from_owned_fd(OwnedFd::from(errors.ok_or_else(missing)?))?;
    let pid = u32::try_from(alive.pid.as_raw_nonzero().get()).expect("a pid is positive");
    Ok(Launched {
        pid,
        input: Box::new(input),
        output: Box::new(output),
        errors: Box::new(errors),
        secrets,
        kill: Box::new(move || alive.kill()),
        ended,
    })
}

/// Waits for the end, ends what is left of the group while the pid is still ours, and says how it ended.
fn wait(child: &mut Child, alive: &Alive) -> String {
    let left = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while matches!(waitid(WaitId::Pid(alive.pid), left), Err(rustix::io::Errno::INTR)) {}
    alive.kill();
    let mut is_reaped = alive.is_reaped.lock().unwrap_or_else(PoisonError::into_inner);
    *is_reaped = true;
    match child.wait() {
        Ok(status) => format!("it ended with {status}"),
        Err(error) => format!("it ended, and how cannot be told: {error}"),
    }
}
