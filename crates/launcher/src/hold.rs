//! What a launcher does, from its start to its end.
//!
//! It outlives the daemon, so it alone can tell how the command ended. It holds the command back until the
//! daemon says go, which the daemon says only once the handle is durable; then it makes the verdict and lets
//! the command begin. Whatever goes wrong before that, it ends and nothing was started.
//!
//! It starts no runtime and allocates little, since one is started for every turn.

use std::fs::File;
use std::io::{self, Read, Write};
use std::mem;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, WaitOptions, WaitStatus, getpid, getppid, pidfd_open, set_child_subreaper, setsid, wait,
};

use super::directory::{End, SegmentDirectory, Status, Verdict};
use super::process::{Identity, Tree, wait_readable};
use super::redact::Redactor;
use super::wire::{self, EXEC, GO, Hello, Plan, Prepared};

/// How long the launcher waits for its command alone. Most have ended by then, and need no thread for their
/// deadline; orphans that end meanwhile are zombies until then.
const ALONE_TIME_MAX: Duration = Duration::from_secs(1);

/// What prepared a command and holds it.
struct Held {
    plan: Plan,
    launcher: Identity,
    command: Identity,
    /// Closing it makes the held stage end.
    gate: UnixStream,
    /// The held stage, and then the command.
    process: OwnedFd,
    redaction: Option<JoinHandle<io::Result<()>>>,
}

/// The launcher, from its start to its end. It waits for so long to be told what to do.
pub(crate) fn launch(ahead: Duration) -> io::Result<()> {
    let daemon = getppid().ok_or_else(|| io::Error::other("the daemon has ended"))?;
    let daemon_process = pidfd_open(daemon, PidfdFlags::empty())?;
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    let mut daemon_socket = take_socket()?;
    if getppid() != Some(daemon) {
        return Err(io::Error::other("the daemon has ended"));
    }
    // Before it is known what for: starting a process and writing a word down are most of what a launch takes.
    let segment = SegmentDirectory::current();
    let waiting = Waiting::start();
    let start = segment.draft(Verdict::Start);
    if !wait_readable(&[daemon_socket.as_fd()], Some(ahead))?[0] {
        return Ok(());
    }
    let plan = Plan::read(&mut daemon_socket)?;
    let (held, start) = match waiting.and_then(|waiting| Ok((waiting.hold(plan, &segment)?, start?))) {
        Ok(held) => held,
        Err(error) => {
            return Hello::Failed { reason: error.to_string() }.write(&mut daemon_socket);
        }
    };
    Hello::Held { launcher: held.launcher, command: held.command }.write(&mut daemon_socket)?;

    let time = Duration::from_millis(held.plan.hold_ms);
    if !is_told_to_go(&mut daemon_socket, &daemon_process, time)? || start.decide()? == Verdict::Void {
        drop(held.gate);
        wait_for(held.command.pid)?;
        return Ok(());
    }
    drop(daemon_socket);
    run(held, &segment)
}

/// Moves the daemon's socket away from standard input, which the command must never see.
fn take_socket() -> io::Result<UnixStream> {
    let socket = rustix::stdio::stdin().try_clone_to_owned()?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Ok(UnixStream::from(socket))
}

/// The stage that will become a command, before it is known which.
struct Waiting {
    launcher: Identity,
    stage: Identity,
    gate: UnixStream,
    process: OwnedFd,
    /// What it writes comes here until it is told to write elsewhere.
    output: io::PipeReader,
}

impl Waiting {
    fn start() -> io::Result<Self> {
        let (gate, theirs) = UnixStream::pair()?;
        let (output, to_launcher) = io::pipe()?;
        let launcher_pid = getpid().as_raw_nonzero().get();
        let child = spawn_stage(launcher_pid, theirs, to_launcher)?;
        let stage_pid = i32::try_from(child.id()).map_err(io::Error::other)?;
        // It is waited for by its pid together with every orphan, never through this object.
        drop(child);
        // It was not waited for, so the number is still its own.
        let pid = Pid::from_raw(stage_pid).ok_or(io::ErrorKind::InvalidData)?;
        let process = pidfd_open(pid, PidfdFlags::empty())?;
        let (launcher, stage) = (Identity::of(launcher_pid)?, Identity::of(stage_pid)?);
        Ok(Self { launcher, stage, gate, process, output })
    }

    /// Tells the stage what it will become. It goes on waiting.
    fn hold(self, mut plan: Plan, segment: &SegmentDirectory) -> io::Result<Held> {
        let Self { launcher, stage, mut gate, process, output: from_command } = self;
        let redactor = Redactor::new(plan.redact.iter().map(String::as_str));
        // The values are in the redactor and in the command's environment; they need not be here as well.
        plan.redact.clear();
        let writes_output = redactor.is_idle();
        let redaction = if writes_output {
            None
        } else {
            let output = segment.open_output()?;
            Some(std::thread::spawn(move || redactor.copy(from_command, output)))
        };
        let command = mem::replace(&mut plan.command, wire::Command { argv: Vec::new(), env: Vec::new() });
        wire::Stage { writes_output, dir: mem::take(&mut plan.dir), command }.write(&mut gate)?;
        match Prepared::read(&mut gate)? {
            Prepared::Ready => Ok(Held { plan, launcher, command: stage, gate, process, redaction }),
            Prepared::Failed { reason } => Err(io::Error::other(reason)),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the launcher is what starts a job's process")]
fn spawn_stage(launcher_pid: i32, gate: UnixStream, output: io::PipeWriter) -> io::Result<Child> {
    // Not by path: the binary may have been replaced while the daemon ran. And without an environment: what a
    // variable may do to a program, such as loading a library into it, belongs to the command and must not
    // happen before the verdict.
    Command::new("/proc/self/exe")
        .args([EXEC, &launcher_pid.to_string()])
        .env_clear()
        .stdin(OwnedFd::from(gate))
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
}

/// Waits for the daemon's word. False when the daemon hung up, died or took too long.
fn is_told_to_go(socket: &mut UnixStream, daemon: &OwnedFd, time: Duration) -> io::Result<bool> {
    let ready = wait_readable(&[socket.as_fd(), daemon.as_fd()], Some(time))?;
    if !ready[0] {
        return Ok(false);
    }
    // A word that was sent before the daemon died still holds: it was sent after the handle was durable.
    let mut word = [0];
    Ok(socket.read(&mut word)? == 1 && word[0] == GO)
}

/// Lets the command begin, follows it to its end, records that, and ends what it left running.
fn run(held: Held, segment: &SegmentDirectory) -> io::Result<()> {
    let Held { plan, launcher, command, mut gate, process, redaction } = held;
    // The stage may have died meanwhile; then its end is the result.
    gate.write_all(&[GO])
        .or_else(|error| if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })?;
    drop(gate);
    let timed_out = Arc::new(AtomicBool::new(false));
    let grace = Duration::from_millis(plan.stop_grace_ms);
    if let Some(timeout_ms) = plan.timeout_ms {
        let timeout = Duration::from_millis(timeout_ms);
        let alone = timeout.min(ALONE_TIME_MAX);
        if !wait_readable(&[process.as_fd()], Some(alone))?[0] {
            let (timed_out, mark) = (Arc::clone(&timed_out), plan.mark.clone());
            std::thread::spawn(move || -> io::Result<()> {
                if !wait_readable(&[process.as_fd()], Some(timeout.saturating_sub(alone)))?[0] {
                    timed_out.store(true, Ordering::Release);
                    // Who survives this is met again below, or by the daemon.
                    let _survivors = Tree { launcher: Some(launcher), mark: &mark }.stop(grace)?;
                }
                Ok(())
            });
        }
    }
    let end = wait_for(command.pid)?;
    let status = Status { end, timed_out: timed_out.load(Ordering::Acquire), ended_at: wall_micros() };
    // First, because the rest may take long, and a status makes an attempt finished whatever happens then.
    // A command that deleted its directory cannot be recorded, but what it left is still ended.
    let recorded = segment.write_status(status);
    let tree = Tree { launcher: Some(launcher), mark: &plan.mark };
    end_orphans(tree, grace, || status.timed_out || segment.is_stopping())?;
    if let Some(thread) = redaction {
        // Every writer is gone, so the pipe is at its end.
        thread.join().map_err(|_panic| io::Error::other("the redacting writer panicked"))??;
    }
    recorded
}

/// Waits until one child has ended. Orphans of the tree come to the launcher; those that end meanwhile are
/// waited for as well, or they would pile up as zombies.
fn wait_for(command_pid: i32) -> io::Result<End> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == command_pid => {
                if let Some(end) = end_of(status) {
                    return Ok(end);
                }
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn end_of(status: WaitStatus) -> Option<End> {
    status.exit_status().map(End::Exit).or_else(|| status.terminating_signal().map(End::Signal))
}

/// Ends what the command left running. As every orphan becomes a child of the launcher, having no child
/// means having no tree: the usual case costs one call.
fn end_orphans(tree: Tree<'_>, grace: Duration, asked: impl FnOnce() -> bool) -> io::Result<()> {
    if !has_children()? {
        return Ok(());
    }
    // Some programs take a second request for an order to give up their cleaning.
    let _survivors = if asked() { tree.outlast(grace)? } else { tree.stop(grace)? };
    has_children().map(|_left| ())
}

/// Collects the children that have ended; answers whether there are others.
fn has_children() -> io::Result<bool> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return Ok(true),
            Err(Errno::CHILD) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the launcher outlives the runtime and has no other clock")]
fn wall_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
