//! The stage between the daemon and an extension's program: our own binary, which gives itself a session, dies with
//! whoever started it, and becomes the program. Its pid is the program's.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::ExitCode;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal, setsid};

/// The first word of a command line that means this stage.
pub const WORD: &str = "extension-stage";
/// What a shell answers for a program that cannot be run.
const STATUS_NOT_RUNNABLE: u8 = 126;

/// Becomes the program that a command line names after [`WORD`] and the pid of whoever started it. None when the
/// command line is another one. Nothing else may exist in the process yet.
pub fn entry() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != WORD {
        return None;
    }
    let parent = words.next()?.to_str()?.parse().ok().and_then(Pid::from_raw);
    let error = become_program(parent, words.collect());
    // It is the extension's standard error, which the daemon reads.
    let _unwritten = writeln!(io::stderr(), "the program cannot be run: {error}");
    Some(ExitCode::from(STATUS_NOT_RUNNABLE))
}

#[expect(clippy::disallowed_methods, reason = "this process becomes the extension's program")]
fn become_program(parent: Option<Pid>, argv: Vec<OsString>) -> io::Error {
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return error.into();
    }
    // Whoever died before the line above sends no signal.
    if getppid() != parent {
        return io::Error::other("the daemon is gone");
    }
    if let Err(error) = setsid() {
        return error.into();
    }
    let mut argv = argv.into_iter();
    let Some(program) = argv.next() else { return io::ErrorKind::InvalidInput.into() };
    std::process::Command::new(program).args(argv).exec()
}
