//! Processes of runs, as the kernel shows them: found by the mark in their environment, or by an argument.

use std::fs;
use std::path::Path;

use crate::error::Error;
use crate::machine;

/// The variable that marks what belongs to a run.
const MARK: &[u8] = b"OPEN_CONDUIT_RUN=";
/// The argument by which a launcher is told from what it launched.
const LAUNCHER_ARGUMENT: &str = "__launch";

/// A process that lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// Its arguments, the program first.
    pub(super) arguments: Vec<String>,
}

impl Process {
    /// Whether it is a launcher, which stands between the daemon and a command.
    pub(super) fn is_launcher(&self) -> bool {
        is_launcher(&self.arguments)
    }
}

/// What the shell executor keeps ahead of runs lies in folders that are called so.
pub(super) const AHEAD: &str = ".ahead-";

/// Everything that runs of a home's runs. A launcher has no mark; it lies in the directory of its run, unless it
/// waits for one.
pub(super) fn of_home(home: &Path) -> Vec<Process> {
    let mark = home.as_os_str().as_encoded_bytes();
    all(|pid, environment, arguments| {
        let is_marked = environment
            .split(|byte| *byte == 0)
            .any(|variable| variable.strip_prefix(MARK).is_some_and(|value| value.starts_with(mark)));
        let is_there = || {
            fs::read_link(format!("/proc/{pid}/cwd"))
                .is_ok_and(|place| place.starts_with(home) && !place.to_string_lossy().contains(AHEAD))
        };
        is_marked || (is_launcher(arguments) && is_there())
    })
}

/// Everything that has this text in an argument, whatever its environment.
pub(super) fn with_argument(text: &str) -> Vec<Process> {
    all(|_pid, _environment, arguments| arguments.iter().any(|argument| argument.contains(text)))
}

fn is_launcher(arguments: &[String]) -> bool {
    arguments.get(1).is_some_and(|argument| argument == LAUNCHER_ARGUMENT)
}

/// A zombie has neither environment nor arguments, so it never counts.
fn all(wanted: impl Fn(u32, &[u8], &[String]) -> bool) -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let own = std::process::id();
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != own)
        .filter_map(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
            let arguments = arguments(pid)?;
            wanted(pid, &environment, &arguments).then_some(Process { pid, arguments })
        })
        .collect()
}

fn arguments(pid: u32) -> Option<Vec<String>> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let text = String::from_utf8_lossy(&line);
    let arguments: Vec<String> = text.split_terminator('\0').map(str::to_owned).collect();
    (!arguments.is_empty()).then_some(arguments)
}

/// Whether a process is suspended.
pub(super) fn is_suspended(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
}

/// Kills a process that may have ended by itself meanwhile.
pub(super) fn kill_if_there(pid: u32) {
    machine::succeeds(machine::command("kill").arg("-KILL").arg(pid.to_string()));
}

/// Sends a signal by its name, such as `STOP`, to a process that is there.
pub(super) fn signal(pid: u32, name: &str) -> Result<(), Error> {
    machine::run(machine::command("kill").arg(format!("-{name}")).arg(pid.to_string()))
}
