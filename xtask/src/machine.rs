//! The tools' one door to the machine: processes, the clock, places on disk.
//!
//! Everything else in this crate works on values, so that it can be tested on made-up ones.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::error::Error;

/// How often [`until`] looks.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The folder of the workspace's `Cargo.toml`. Cargo says at each start where it found this crate; what it
/// said at compile time would be wrong where two checkouts share a target folder.
pub(crate) fn root() -> PathBuf {
    let own = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&own).parent().expect("xtask is a folder of the workspace").to_owned()
}

/// A command that starts in the workspace's root and has no standard input.
#[expect(clippy::disallowed_methods, reason = "the tools start every process here")]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root()).stdin(Stdio::null());
    command
}

/// The Cargo that runs this tool, or the one in `PATH`.
pub(crate) fn cargo() -> Command {
    command(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs a command to its end, its output going where ours goes.
pub(crate) fn run(command: &mut Command) -> Result<(), Error> {
    let status = command.status().map_err(|source| start_error(command, source))?;
    if status.success() {
        return Ok(());
    }
    Err(Error::Exited { command: shown(command), status: status.to_string() })
}

/// Runs a command to its end and returns what it printed; what it printed as an error is shown.
pub(crate) fn read(command: &mut Command) -> Result<String, Error> {
    command.stderr(Stdio::inherit());
    let output = command.output().map_err(|source| start_error(command, source))?;
    if !output.status.success() {
        return Err(Error::Exited { command: shown(command), status: output.status.to_string() });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a command can be started and ends well; nothing is shown.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// The error of a command that could not be started.
pub(crate) fn start_error(command: &Command, source: std::io::Error) -> Error {
    Error::Start { program: command.get_program().to_string_lossy().into_owned(), source }
}

/// A command as a person would type it.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
    command.get_args().fold(name, |mut text, argument| {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
        text
    })
}

/// Whether this process may install packages and become another user.
pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// The present moment, for durations that are shown to a person.
#[expect(clippy::disallowed_methods, reason = "the tools time what they run")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The present time of day, in microseconds since 1970, as the daemon's clock has it.
#[expect(clippy::disallowed_methods, reason = "a due time of the daemon's is waited for from outside")]
pub(crate) fn wall_micros() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// Asks `done` again and again until it answers, or until the deadline passes (then `None`).
pub(crate) fn until<T>(limit: Duration, done: impl FnMut() -> Option<T>) -> Option<T> {
    until_every(POLL_INTERVAL, limit, done)
}

/// As [`until`], with an interval of its own, for facts that hold only briefly.
pub(crate) fn until_every<T>(
    interval: Duration,
    limit: Duration,
    mut done: impl FnMut() -> Option<T>,
) -> Option<T> {
    let start = now();
    loop {
        if let Some(answer) = done() {
            return Some(answer);
        }
        if start.elapsed() >= limit {
            return None;
        }
        pause(interval);
    }
}

#[expect(clippy::disallowed_methods, reason = "another process is watched; it gives no signal")]
fn pause(interval: Duration) {
    std::thread::sleep(interval);
}

/// An [`Error::File`] with its place, for `map_err`.
pub(crate) fn file_error(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { action, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_reports_the_command_that_failed() {
        let error = run(command("sh").args(["-c", "exit 3"])).unwrap_err();
        assert_eq!(error.to_string(), "`sh -c exit 3` failed (exit status: 3)");
    }

    #[test]
    fn read_reports_a_program_that_is_not_there() {
        let error = read(&mut command("/nonexistent/program")).unwrap_err();
        assert_eq!(error.to_string(), "cannot start `/nonexistent/program`");
    }

    #[test]
    fn until_gives_up_at_its_limit() {
        assert_eq!(until(Duration::ZERO, || None::<()>), None);
        let mut asked = 0;
        let answer = until(Duration::from_secs(5), || {
            asked += 1;
            (asked == 2).then_some(asked)
        });
        assert_eq!(answer, Some(2));
    }
}
