//! The `git` program: one call at a time for a checkout, with a clean environment and an end.
//!
//! A call's standard input is the checkout's lock. The kernel gives the lock free when the last process that has it
//! is gone, so a git that outlives a killed daemon keeps the next daemon out for as long as it works, and no longer.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use extension::ExecutionId;
use launcher::process::{Identity, Machine, wait_readable};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How long a call may take that asks a remote or writes a whole tree.
const LONG: Duration = Duration::from_mins(10);
/// How long any other call may take.
const SHORT: Duration = Duration::from_mins(1);
/// How long the rest of the output of a call that has ended is waited for.
const REST: Duration = Duration::from_secs(5);
/// The most bytes of output that are kept of a call.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// The most characters of what git said that are shown.
const SAID_CHARS_MAX: usize = 200;

/// What is passed on from the daemon's environment: who it is, and how it reaches a remote.
const PASSED_ON: [&str; 15] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "SSH_AUTH_SOCK",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
    "SSL_CERT_FILE",
];

/// What every call is told first. Nothing of a repository's own is run, and nothing stays behind.
const SETTINGS: [&str; 9] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "protocol.ext.allow=never",
    "advice.detachedHead=false",
];

/// Why a call of git came to nothing.
#[derive(Debug, Error)]
pub(super) enum GitError {
    /// There is no such program.
    #[error("there is no `git` in the daemon's PATH; install it, or set PATH for the daemon")]
    Missing,
    /// It went on for too long.
    #[error("`git {what}` was stopped after {seconds} seconds")]
    TooLong { what: String, seconds: u64 },
    /// It said no.
    #[error("`git {what}` failed: {said}")]
    Refused { what: String, said: String },
    /// It could not be started or followed.
    #[error("`git {what}` could not be followed: {source}")]
    Broken { what: String, source: io::Error },
}

/// Who has a lock, as it stands in its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    /// The run that it is held for.
    run: String,
    /// The boot that the pids are of.
    boot: String,
    daemon: (i32, u64),
    /// The git that works under it.
    git: Option<(i32, u64)>,
}

/// The lock on a checkout.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    note: Note,
}

impl Lock {
    /// Waits for the lock. A git that a dead daemon left under it is ended first.
    pub(super) fn take(path: &Path, execution: ExecutionId) -> io::Result<Self> {
        let own = Identity::of(i32::try_from(std::process::id()).map_err(io::Error::other)?)?;
        let boot = Machine::here()?.boot;
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        if file.try_lock().is_err() {
            let mut text = String::new();
            Read::by_ref(&mut file).take(4096).read_to_string(&mut text)?;
            if let Ok(note) = serde_json::from_str::<Note>(&text) {
                note.reap(&boot)?;
            }
            file.lock()?;
        }
        let note = Note { run: execution.to_string(), boot, daemon: (own.pid, own.start), git: None };
        let mut lock = Self { file, note };
        lock.write()?;
        Ok(lock)
    }

    fn write(&mut self) -> io::Result<()> {
        let text = serde_json::to_vec(&self.note).expect("a note is plain data");
        self.file.rewind()?;
        self.file.set_len(0)?;
        self.file.write_all(&text)
    }

    fn works(&mut self, git: Option<Identity>) -> io::Result<()> {
        self.note.git = git.map(|it| (it.pid, it.start));
        self.write()
    }
}

impl Note {
    /// Ends the git of a daemon that is proved to be dead.
    fn reap(&self, boot: &str) -> io::Result<()> {
        let identity = |(pid, start)| Identity { pid, start };
        if self.boot != boot || identity(self.daemon).open()?.is_some() {
            return Ok(());
        }
        let Some(git) = self.git.map(identity) else { return Ok(()) };
        if git.open()?.is_some() {
            end_group(git.pid);
        }
        Ok(())
    }
}

fn end_group(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        // One that has ended is as good.
        let _ended = kill_process_group(pid, Signal::KILL);
    }
}

/// How git is called.
#[derive(Debug)]
pub(super) struct Git {
    environment: Vec<(String, String)>,
    long: Duration,
}

impl Git {
    /// With what is needed of `environment`.
    pub(super) fn new(environment: &[(String, String)]) -> Self {
        let mut kept: Vec<(String, String)> =
            environment.iter().filter(|(name, _value)| PASSED_ON.contains(&name.as_str())).cloned().collect();
        let fixed = [
            ("LC_ALL", "C"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("SSH_ASKPASS_REQUIRE", "never"),
            ("GIT_ASKPASS", "true"),
        ];
        kept.extend(fixed.map(|(name, value)| (name.to_owned(), value.to_owned())));
        Self { environment: kept, long: LONG }
    }

    /// The same with another bound on calls that may take long.
    #[cfg(test)]
    const fn long(mut self, time: Duration) -> Self {
        self.long = time;
        self
    }

    /// Calls git in `dir` for something that takes no time to speak of. Answers what it wrote.
    pub(super) fn ask(&self, lock: &mut Lock, dir: &Path, args: &[&str]) -> Result<String, GitError> {
        self.call(lock, dir, args, SHORT)
    }

    /// Calls git in `dir` for something that may take long.
    pub(super) fn work(&self, lock: &mut Lock, dir: &Path, args: &[&str]) -> Result<String, GitError> {
        self.call(lock, dir, args, self.long)
    }

    fn call(&self, lock: &mut Lock, dir: &Path, args: &[&str], time: Duration) -> Result<String, GitError> {
        let what = args.iter().find(|word| !word.starts_with('-')).copied().unwrap_or_default();
        let broken = |source: io::Error| GitError::Broken { what: what.to_owned(), source };
        let input = lock.file.try_clone().map_err(broken)?;
        let mut child = self.command(dir, args, input).spawn().map_err(|error| {
            if error.kind() == io::ErrorKind::NotFound { GitError::Missing } else { broken(error) }
        })?;
        let pid = i32::try_from(child.id()).unwrap_or_default();
        let (output, said) = (read_all(child.stdout.take()), read_all(child.stderr.take()));
        // Not being collected yet, its pid is still its own.
        let ended =
            Identity::of(pid).and_then(|git| lock.works(Some(git))).and_then(|()| has_ended(pid, time));
        if !matches!(ended, Ok(true)) {
            end_group(pid);
        }
        let status = child.wait().map_err(broken)?;
        lock.works(None).map_err(broken)?;
        if !ended.map_err(broken)? {
            return Err(GitError::TooLong { what: what.to_owned(), seconds: time.as_secs() });
        }
        let text =
            |bytes: Result<Vec<u8>, _>| String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
        let (output, said) = (text(output.recv_timeout(REST)), text(said.recv_timeout(REST)));
        if status.success() {
            return Ok(output);
        }
        let said = match (last_line(&said), status.signal()) {
            (line, _) if !line.is_empty() => line,
            (_, Some(signal)) => format!("it was ended by signal {signal}"),
            (_, None) => "it did not say why".to_owned(),
        };
        Err(GitError::Refused { what: what.to_owned(), said })
    }

    #[expect(clippy::disallowed_methods, reason = "the git provider is what calls git")]
    fn command(&self, dir: &Path, args: &[&str], input: File) -> Command {
        let mut command = Command::new("git");
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.args(args).current_dir(dir).process_group(0);
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// Whether a child ended within `time`. It blocks for as long.
fn has_ended(pid: i32, time: Duration) -> io::Result<bool> {
    let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?;
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    Ok(wait_readable(&[process.as_fd()], Some(time))?[0])
}

/// Reads on the side until the end, and keeps the beginning.
fn read_all(from: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (done, result) = mpsc::channel();
    if let Some(mut from) = from {
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            // What cannot be read any more has been read.
            let _end = from.by_ref().take(OUTPUT_BYTES_MAX as u64).read_to_end(&mut kept);
            let _rest = io::copy(&mut from, &mut io::sink());
            let _nobody_waits = done.send(kept);
        });
    }
    result
}

/// The last line that says something, without what a remote's address may hold of a password.
fn last_line(said: &str) -> String {
    let line = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    without_credentials(line).chars().filter(|c| !c.is_control()).take(SAID_CHARS_MAX).collect()
}

/// The text with names and passwords taken out of addresses.
fn without_credentials(text: &str) -> String {
    let mut clean = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        clean.push_str(before);
        let host = after.find(|c: char| c == '/' || c.is_whitespace() || c == '\'').unwrap_or(after.len());
        let begin = after[..host].rfind('@').map_or(0, |sign| sign + 1);
        rest = &after[begin..];
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_credentials_leaves_the_host() {
        let check = |text: &str, expected: &str| assert_eq!(without_credentials(text), expected);
        check(
            "fatal: unable to access 'https://me:s3cret@host/x.git/': no",
            "fatal: unable to access 'https://host/x.git/': no",
        );
        check("https://s3cret@a/b and ssh://git@c d@e", "https://a/b and ssh://c d@e");
        check("nothing of it: a@b", "nothing of it: a@b");
    }

    #[test]
    fn last_line_is_one_line_without_control_characters() {
        assert_eq!(last_line("one\nfatal: \u{1b}[31mtwo\n\n"), "fatal: [31mtwo");
        assert_eq!(last_line(&"x".repeat(900)).len(), SAID_CHARS_MAX);
    }

    #[test]
    fn the_environment_is_chosen_and_git_asks_nobody() {
        let given = [("HOME", "/h"), ("GIT_DIR", "/evil"), ("GIT_CONFIG_COUNT", "1"), ("SECRET", "s3cret")];
        let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let names: Vec<String> =
            Git::new(&given).environment.into_iter().map(|(name, _value)| name).collect();
        assert!(names.contains(&"HOME".to_owned()) && names.contains(&"GIT_TERMINAL_PROMPT".to_owned()));
        assert!(!names.iter().any(|name| ["GIT_DIR", "GIT_CONFIG_COUNT", "SECRET"].contains(&name.as_str())));
    }

    #[test]
    fn a_lock_is_one_holders_and_says_whose() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("x.lock");
        let lock = Lock::take(&path, ExecutionId::from_number(7)).unwrap();
        let note: Note = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(note, lock.note);
        assert_eq!(note.run, ExecutionId::from_number(7).to_string());
        assert!(File::open(&path).unwrap().try_lock().is_err());
        drop(lock);
        assert!(File::open(&path).unwrap().try_lock().is_ok());
    }

    /// A process that has the lock, as git has, left by a daemon of this identity.
    #[expect(clippy::disallowed_methods, reason = "it stands for git")]
    fn left(path: &Path, daemon: Identity) -> std::process::Child {
        let mut lock = Lock::take(path, ExecutionId::from_number(7)).unwrap();
        let input = lock.file.try_clone().unwrap();
        let child = Command::new("sleep").arg("1000").process_group(0).stdin(input).spawn().unwrap();
        lock.note.daemon = (daemon.pid, daemon.start);
        lock.works(Some(Identity::of(i32::try_from(child.id()).unwrap()).unwrap())).unwrap();
        child
    }

    #[test]
    fn the_git_of_a_dead_daemon_is_ended_and_that_of_a_living_one_is_not() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("x.lock");
        let own = Identity::of(i32::try_from(std::process::id()).unwrap()).unwrap();
        let mut git = left(&path, own);
        assert!(File::open(&path).unwrap().try_lock().is_err(), "a git that works has the lock");
        let note: Note = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        note.reap(&Machine::here().unwrap().boot).unwrap();
        assert!(git.try_wait().unwrap().is_none(), "its daemon lives");
        git.kill().unwrap();
        git.wait().unwrap();

        let mut git = left(&path, Identity { start: own.start + 1, ..own });
        let lock = Lock::take(&path, ExecutionId::from_number(8)).unwrap();
        assert!(git.wait().unwrap().signal().is_some());
        assert_eq!(lock.note.run, ExecutionId::from_number(8).to_string());
    }

    #[test]
    fn a_call_that_goes_on_for_too_long_is_stopped() {
        let home = tempfile::tempdir().unwrap();
        let mut lock = Lock::take(&home.path().join("x.lock"), ExecutionId::from_number(7)).unwrap();
        let git = Git::new(&std::env::vars().collect::<Vec<_>>()).long(Duration::from_millis(50));
        let stuck = ["-c", "alias.stuck=!sleep 1000", "stuck"];
        let error = git.work(&mut lock, home.path(), &stuck).unwrap_err();
        assert!(matches!(error, GitError::TooLong { .. }), "{error}");
    }
}
