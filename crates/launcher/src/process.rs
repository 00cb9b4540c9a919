//! Processes by identity. A pid is a number that the kernel hands out again; a pid with the moment it was
//! started, on one boot and in one pid namespace, is a process. Everything that is signalled here was opened
//! first and compared afterwards, so that a recycled pid is left alone.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::wire::LAUNCH;

/// The variable that marks every process of an Execution, in the environment it was started with. A launcher is
/// started before it is known for what; it is told by the directory that it lies in, which the mark names.
pub const MARK_VARIABLE: &str = "OPEN_CONDUIT_RUN";

/// The space in which a pid means something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The kernel's random id of this boot.
    pub boot: String,
    /// The inode of the pid namespace.
    pub pid_namespace: u64,
}

impl Machine {
    /// Where this process runs.
    ///
    /// # Errors
    /// When this system has no `/proc`.
    pub fn here() -> io::Result<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
        Ok(Self { boot, pid_namespace: fs::metadata("/proc/self/ns/pid")?.ino() })
    }
}

/// One process of a [`Machine`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Its pid.
    pub pid: i32,
    /// When it was started, in clock ticks since boot.
    pub start: u64,
}

impl Identity {
    /// The identity of a process that certainly exists: this one, or a child that was not waited for.
    ///
    /// # Errors
    /// When there is none of that number, or `/proc` cannot be read.
    pub fn of(pid: i32) -> io::Result<Self> {
        Ok(Self { pid, start: Stat::read(pid)?.start })
    }

    /// Opens the process. `None` when it is dead, or when its pid belongs to another one by now.
    ///
    /// # Errors
    /// When `/proc` cannot be read, or there is no room for another descriptor.
    pub fn open(self) -> io::Result<Option<OwnedFd>> {
        let Some(pid) = Pid::from_raw(self.pid) else { return Ok(None) };
        let fd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(fd) => fd,
            // Gone, or the number is a thread's by now.
            Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // Compared only now: whatever the number means after this, the descriptor stays this process.
        match Stat::read(self.pid) {
            Ok(stat) if stat.start == self.start && !stat.is_dead() => Ok(Some(fd)),
            Ok(_) => Ok(None),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Whether reading below `/proc` failed because the process ended.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

/// More bytes than `/proc/PID/stat` has.
const STAT_BYTES_MAX: usize = 2048;

/// What `/proc/PID/stat` says that matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    state: u8,
    parent: i32,
    threads: u64,
    start: u64,
}

impl Stat {
    fn read(pid: i32) -> io::Result<Self> {
        // In one call: the kernel gives the whole line, and it has at most 52 fields.
        let mut line = [0; STAT_BYTES_MAX];
        let length = File::open(format!("/proc/{pid}/stat"))?.read(&mut line)?;
        Self::parse(&line[..length]).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// The name of the program stands in brackets and may hold brackets, spaces and bytes that are no text;
    /// only what follows the last bracket can be counted on.
    fn parse(line: &[u8]) -> Option<Self> {
        let name_end = line.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(line.get(name_end + 1..)?).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Self {
            state: *fields.first()?.as_bytes().first()?,
            parent: fields.get(1)?.parse().ok()?,
            threads: fields.get(17)?.parse().ok()?,
            start: fields.get(19)?.parse().ok()?,
        })
    }

    /// Whether nothing of it runs. A main thread that ended leaves a zombie behind while others still work.
    fn is_dead(self) -> bool {
        matches!(self.state, b'Z' | b'X') && self.threads <= 1
    }
}

/// Every process there is, dead ones left out.
fn all() -> io::Result<Vec<(Identity, Stat)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let Ok(stat) = Stat::read(pid) else { continue };
        if !stat.is_dead() {
            found.push((Identity { pid, start: stat.start }, stat));
        }
    }
    Ok(found)
}

/// Whether the process was started with that mark. False when its environment cannot be read.
fn is_marked(pid: i32, mark: &str) -> bool {
    let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return false };
    environment.split(|byte| *byte == 0).any(|variable| {
        let value = variable.strip_prefix(MARK_VARIABLE.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        value == Some(mark.as_bytes())
    })
}

/// Whether the process is a launcher that lies in a directory below the mark. Anybody else may be there as
/// well, such as a person who looks at the output.
fn is_launcher_of(pid: i32, mark: &str) -> bool {
    let Ok(line) = fs::read(format!("/proc/{pid}/cmdline")) else { return false };
    line.split(|byte| *byte == 0).nth(1) == Some(LAUNCH.as_bytes())
        && fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|directory| directory.starts_with(mark))
}

/// The processes of one Execution: what descends from its launcher, and what carries its mark.
///
/// The launcher adopts its orphans, so while it lives nothing escapes the first; once it is gone the second
/// remains. A process may clear its environment, but only in what it starts next, and that still descends.
#[derive(Debug, Clone, Copy)]
pub struct Tree<'a> {
    /// The launcher, when it is alive. It is not a member: it ends by itself when its tree has.
    pub launcher: Option<Identity>,
    /// The value of [`MARK_VARIABLE`].
    pub mark: &'a str,
}

/// Some process could not be ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Survivors(
    /// How many.
    pub usize,
);

/// How long the kernel may take to carry out `KILL` before the rest counts as unkillable.
const KILL_TIME_MAX: Duration = Duration::from_secs(10);
/// How long one round of waiting may take before the tree is looked at again.
const ROUND_TIME_MAX: Duration = Duration::from_millis(200);

impl Tree<'_> {
    /// Who belongs to it now.
    fn members(&self) -> io::Result<Vec<Identity>> {
        let all = all()?;
        let own_pid = i32::try_from(std::process::id()).unwrap_or(0);
        let mut inside: Vec<i32> = self.launcher.iter().map(|launcher| launcher.pid).collect();
        let mut next = 0;
        while let Some(parent) = inside.get(next).copied() {
            inside.extend(
                all.iter().filter(|(_, stat)| stat.parent == parent).map(|(identity, _)| identity.pid),
            );
            next += 1;
        }
        let belongs = |identity: &Identity| {
            identity.pid != own_pid
                && Some(*identity) != self.launcher
                && (inside.contains(&identity.pid)
                    || is_marked(identity.pid, self.mark)
                    || is_launcher_of(identity.pid, self.mark))
        };
        Ok(all.into_iter().map(|(identity, _)| identity).filter(belongs).collect())
    }

    /// Asks every member to end, waits up to `grace`, then kills, and looks again until nobody is left.
    ///
    /// Each is asked once, and only those that are there at first: what appears later may be what a member
    /// needs to clean up.
    ///
    /// # Errors
    /// When the processes cannot be looked at or signalled; what cannot be ended is told in the answer.
    pub fn stop(&self, grace: Duration) -> io::Result<Result<(), Survivors>> {
        if !grace.is_zero() {
            for member in self.open_members()? {
                send(&member, Signal::TERM)?;
                // One that was suspended could not even be told.
                send(&member, Signal::CONT)?;
            }
        }
        self.outlast(grace)
    }

    /// The same for a tree that has been asked already.
    ///
    /// # Errors
    /// As [`Tree::stop`].
    pub fn outlast(&self, grace: Duration) -> io::Result<Result<(), Survivors>> {
        let deadline = now() + grace;
        while !left(deadline).is_zero() {
            let members = self.open_members()?;
            if members.is_empty() {
                return Ok(Ok(()));
            }
            wait_all(&members, left(deadline).min(ROUND_TIME_MAX))?;
        }
        self.kill()
    }

    /// Opens every member. None is left when this is empty: one that ended meanwhile may have left others.
    fn open_members(&self) -> io::Result<Vec<OwnedFd>> {
        loop {
            let members = self.members()?;
            let mut open = Vec::new();
            for member in &members {
                open.extend(member.open()?);
            }
            if members.is_empty() || !open.is_empty() {
                return Ok(open);
            }
        }
    }

    /// Kills every member, and looks again until nobody is left.
    ///
    /// # Errors
    /// As [`Tree::stop`].
    pub fn kill(&self) -> io::Result<Result<(), Survivors>> {
        let deadline = now() + KILL_TIME_MAX;
        loop {
            let members = self.open_members()?;
            if members.is_empty() {
                return Ok(Ok(()));
            }
            if left(deadline).is_zero() {
                return Ok(Err(Survivors(members.len())));
            }
            for member in &members {
                send(member, Signal::KILL)?;
            }
            wait_all(&members, left(deadline).min(ROUND_TIME_MAX))?;
        }
    }
}

/// Signals an opened process; one that has ended, or that belongs to another user, is passed over.
///
/// # Errors
/// When the kernel knows no such signal, or has no means to send it so.
pub fn send(process: &OwnedFd, signal: Signal) -> io::Result<()> {
    match pidfd_send_signal(process, signal) {
        Ok(()) | Err(Errno::SRCH | Errno::PERM) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Waits until all of the opened processes have ended, but not longer than `time`.
fn wait_all(processes: &[OwnedFd], time: Duration) -> io::Result<()> {
    let deadline = now() + time;
    for process in processes {
        if !wait_readable(&[process.as_fd()], Some(left(deadline)))?[0] {
            break;
        }
    }
    Ok(())
}

/// Waits until one of the descriptors is readable or hung up; for a process that means that it has ended.
/// Answers which are; none when `time` passed first.
///
/// # Errors
/// When the kernel has no room to wait for so many.
pub fn wait_readable(
    descriptors: &[std::os::fd::BorrowedFd<'_>],
    time: Option<Duration>,
) -> io::Result<Vec<bool>> {
    let deadline = time.map(|time| now() + time);
    loop {
        let mut polled: Vec<_> = descriptors.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let timeout = deadline.map(|deadline| timespec(left(deadline)));
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) => return Ok(polled.iter().map(|fd| !fd.revents().is_empty()).collect()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec::try_from(time).unwrap_or(Timespec { tv_sec: i64::from(i32::MAX), tv_nsec: 0 })
}

/// What is left until a moment.
pub fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(now())
}

/// The monotonic clock. Signals, grace and deadlines of real processes run by real time.
#[expect(clippy::disallowed_methods, reason = "the launcher outlives the runtime and has no other clock")]
pub fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::{Identity, Stat};

    #[test]
    fn parse_cuts_at_the_last_bracket() {
        let mut line = b"12 (x) R 1 (y\xff) S 7 12 12 0 -1 0 0 0 0 0 0 0 0 0 20 0 ".to_vec();
        line.extend_from_slice(b"3 0 4711 0 0");
        let stat = Stat::parse(&line).unwrap();
        assert_eq!(stat, Stat { state: b'S', parent: 7, threads: 3, start: 4711 });
        assert_eq!(Stat::parse(b"12 (x"), None);
    }

    #[test]
    fn a_zombie_is_dead_unless_a_thread_of_it_works() {
        let stat = Stat { state: b'Z', parent: 1, threads: 1, start: 1 };
        assert!(stat.is_dead());
        assert!(!Stat { threads: 2, ..stat }.is_dead());
        assert!(!Stat { state: b'T', ..stat }.is_dead());
    }

    #[test]
    fn open_refuses_a_recycled_pid() {
        let own = Identity::of(i32::try_from(std::process::id()).unwrap()).unwrap();
        assert!(own.open().unwrap().is_some());
        assert!(Identity { start: own.start + 1, ..own }.open().unwrap().is_none());
        assert!(Identity { pid: 0, ..own }.open().unwrap().is_none());
    }
}
