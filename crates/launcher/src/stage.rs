//! The held stage: what the launcher starts in the command's place. It prepares what it is told, waits for the
//! launcher's word and becomes the command. Its pid was recorded long before.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{ExitCode, Stdio};

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal, setsid};

use super::directory::SegmentDirectory;
use super::wire::{Command, GO, Prepared, Stage};

/// What a shell answers for a program that is not there.
const STATUS_NOT_FOUND: u8 = 127;
/// What a shell answers for a program that cannot be run.
const STATUS_NOT_RUNNABLE: u8 = 126;

/// Becomes the command once the launcher of that pid says so.
pub(crate) fn become_command(launcher: Option<i32>) -> ExitCode {
    match held(launcher.and_then(Pid::from_raw)) {
        Ok(Some(command)) => {
            let error = exec(&command);
            let is_missing = error.kind() == io::ErrorKind::NotFound;
            let code = if is_missing { STATUS_NOT_FOUND } else { STATUS_NOT_RUNNABLE };
            // Standard error is the segment's output. If it cannot be written, the exit status still says it.
            let _unwritten = writeln!(io::stderr(), "the command could not be run: {error}");
            ExitCode::from(code)
        }
        Ok(None) => ExitCode::SUCCESS,
        Err(_launcher_gone) => ExitCode::FAILURE,
    }
}

/// What to become, once the launcher says so; `None` when it went away without a word.
fn held(launcher: Option<Pid>) -> io::Result<Option<Command>> {
    // The command must not outlive the one process that can tell how it ended.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != launcher {
        return Ok(None);
    }
    // A session of its own, so that a command which signals its group does not reach the launcher.
    setsid()?;
    let mut gate = UnixStream::from(rustix::stdio::stdin().try_clone_to_owned()?);
    let stage = Stage::read(&mut gate)?;
    if let Err(error) = prepare(&stage) {
        Prepared::Failed { reason: error.to_string() }.write(&mut gate)?;
        return Ok(None);
    }
    Prepared::Ready.write(&mut gate)?;
    let mut word = [0];
    Ok((gate.read(&mut word)? == 1 && word[0] == GO).then_some(stage.command))
}

/// Goes where the command works, and writes where its output is kept.
fn prepare(stage: &Stage) -> io::Result<()> {
    if stage.writes_output {
        let output = SegmentDirectory::current().open_output()?;
        rustix::stdio::dup2_stdout(&output)?;
        rustix::stdio::dup2_stderr(&output)?;
    }
    std::env::set_current_dir(&stage.dir).map_err(|error| {
        io::Error::other(format!("the held command could not be started in its directory: {error}"))
    })
}

#[expect(clippy::disallowed_methods, reason = "this process becomes the job's command")]
fn exec(plan: &Command) -> io::Error {
    let Some((program, arguments)) = plan.argv.split_first() else {
        return io::ErrorKind::InvalidInput.into();
    };
    let environment = plan.env.iter().map(|(name, value)| (name, value));
    std::process::Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(environment)
        .stdin(Stdio::null())
        .exec()
}
