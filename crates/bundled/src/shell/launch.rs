//! The daemon's side of a launch: start a launcher, hear which processes are held, say go, and wait.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use extension::RunError;
use launcher::directory::SegmentDirectory;
use launcher::process::{Identity, wait_readable};
use launcher::wire::{GO, Hello, LAUNCH, Plan};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// How long a launcher may take to prepare a command.
const HELLO_TIME_MAX: Duration = Duration::from_secs(20);

/// Launchers whose turn nobody waits for any more. Each stays a zombie until it is collected here.
#[derive(Debug, Default, Clone)]
pub(super) struct Abandoned(Arc<Mutex<Vec<Child>>>);

impl Abandoned {
    /// Collects those that have ended.
    fn sweep(&self) {
        let mut children = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        children.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }
}

/// A launcher that is our child.
#[derive(Debug)]
struct LauncherChild {
    child: Option<Child>,
    abandoned: Abandoned,
}

impl Drop for LauncherChild {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        if matches!(child.try_wait(), Ok(None)) {
            self.abandoned.0.lock().unwrap_or_else(PoisonError::into_inner).push(child);
        }
    }
}

/// A launch that waits for the word to begin. Dropping it makes the launcher give up.
#[derive(Debug)]
pub(super) struct Held {
    /// The launcher.
    pub(super) launcher: Identity,
    /// What becomes the command.
    pub(super) command: Identity,
    socket: UnixStream,
    running: Running,
}

impl Held {
    /// Lets the launch begin, unless another authority made it void. Neither is known here: the verdict says
    /// it once the launcher has ended.
    pub(super) fn go(mut self) -> Running {
        use std::io::Write as _;

        // The launcher may be gone by now. One byte never fills the buffer, so this does not block.
        let _undelivered = self.socket.write_all(&[GO]);
        self.running
    }

    /// Gives the launch up.
    pub(super) fn give_up(self) -> Running {
        self.running
    }
}

/// A launcher that was told what to do.
#[derive(Debug)]
pub(super) struct Running {
    process: OwnedFd,
    child: LauncherChild,
}

impl Running {
    /// Waits until the launcher has ended.
    pub(super) async fn end(self) -> io::Result<()> {
        ended(self.process).await
    }
}

/// Waits until an opened process has ended.
#[expect(
    deprecated,
    reason = "its complaint is of types whose descriptor may change; an OwnedFd is one descriptor, open until dropped"
)]
pub(super) async fn ended(process: OwnedFd) -> io::Result<()> {
    let process = AsyncFd::with_interest(process, Interest::READABLE)?;
    process.readable().await.map(|mut ready| ready.retain_ready())
}

/// A launcher that has not been told what to do. Dropping it makes the launcher end.
#[derive(Debug)]
pub(super) struct Idle {
    socket: UnixStream,
    running: Running,
}

/// Starts a launcher in the directory of a launch. It gets ready before it is told what for, and waits for that no
/// longer than `ahead`.
pub(super) fn start(
    binary: &Path,
    directory: &SegmentDirectory,
    ahead: Duration,
    abandoned: &Abandoned,
) -> Result<Idle, RunError> {
    abandoned.sweep();
    let (socket, theirs) = UnixStream::pair().map_err(failed)?;
    socket.set_read_timeout(Some(HELLO_TIME_MAX)).map_err(failed)?;
    let child = spawn(binary, directory, ahead, theirs).map_err(failed)?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    // From here on the child is collected whatever happens; not being collected yet, its pid is still its own.
    let child = LauncherChild { child: Some(child), abandoned: abandoned.clone() };
    let pid = pid.ok_or_else(|| failed(io::ErrorKind::InvalidData))?;
    let process = pidfd_open(pid, PidfdFlags::empty()).map_err(failed)?;
    Ok(Idle { socket, running: Running { process, child } })
}

impl Idle {
    /// Whether it waits for a plan. Until it has one it says nothing, so whatever can be read is its end.
    pub(super) fn is_waiting(&self) -> bool {
        wait_readable(&[self.socket.as_fd()], Some(Duration::ZERO)).is_ok_and(|readable| !readable[0])
    }

    /// Ends it, so that it touches its directory no more. It blocks for the time a process takes to be killed.
    pub(super) fn end(mut self) {
        if let Some(mut child) = self.running.child.child.take() {
            // One that has ended is as good.
            let _ended = child.kill().and_then(|()| child.wait());
        }
    }

    /// Has the command prepared and held. It blocks for the time a small program may need to start.
    ///
    /// # Errors
    /// When the launcher went away before it held anything, or cannot hold this.
    pub(super) fn hold(self, plan: &Plan) -> Result<Held, NotHeld> {
        let Self { mut socket, running } = self;
        plan.write(&mut socket).map_err(NotHeld::Gone)?;
        match Hello::read(&mut socket).map_err(NotHeld::Gone)? {
            Hello::Held { launcher, command } => Ok(Held { launcher, command, socket, running }),
            Hello::Failed { reason } => Err(NotHeld::Refused { reason }),
        }
    }
}

/// Why a launcher holds nothing. Nothing was started: the word to begin was never given.
#[derive(Debug)]
pub(super) enum NotHeld {
    /// It did not answer.
    Gone(io::Error),
    /// It answered that it cannot.
    Refused {
        /// Why, in words.
        reason: String,
    },
}

impl From<NotHeld> for RunError {
    fn from(error: NotHeld) -> Self {
        match error {
            NotHeld::Gone(error) => failed(error),
            NotHeld::Refused { reason } => Self::Failed { code: super::SPAWN_FAILED, reason },
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the shell executor is what starts launchers")]
fn spawn(
    binary: &Path,
    directory: &SegmentDirectory,
    ahead: Duration,
    socket: UnixStream,
) -> io::Result<Child> {
    Command::new(binary)
        .args([LAUNCH, &ahead.as_millis().to_string()])
        .env_clear()
        .current_dir(directory.path())
        .stdin(OwnedFd::from(socket))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

fn failed(error: impl Into<io::Error>) -> RunError {
    let error: io::Error = error.into();
    RunError::Failed {
        code: super::SPAWN_FAILED,
        reason: format!("the launcher could not be started: {error}"),
    }
}
