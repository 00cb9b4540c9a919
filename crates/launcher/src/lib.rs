//! The launcher, and what it shares with the daemon that starts it.
//!
//! A small process between the daemon and a command. It holds the command back until the daemon has recorded
//! where to find it, it alone waits for the command, and it writes how that ended into a file.
//!
//! It is a crate and a binary of its own because it is started for every turn, twice: the daemon's own binary
//! is a hundred times larger, and its start was the larger part of what a short turn cost. So this crate knows
//! no runtime and nothing else of ours. `bundled` builds the binary and carries it as bytes.
//!
//! The modules stand in the order a launch passes them: `wire` is what daemon and launcher say to each other,
//! `directory` the files that both touch, `process` knows processes by identity, and `redact` keeps values out
//! of what is written. `hold` is the launcher, `stage` what it holds.

use std::process::ExitCode;
use std::time::Duration;

pub mod wire;
pub mod directory;
pub mod process;
pub mod redact;
mod hold;
mod stage;

use wire::{EXEC, LAUNCH};

/// Takes over when this process was started as a launcher, or as the stage that becomes a command; `None`
/// for everyone else.
///
/// It is the first call in a binary's `main`: before a runtime, a thread or a log exists.
pub fn launcher_entry() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let word = arguments.next()?;
    if word == LAUNCH {
        // Nobody reads an error of ours: the daemon has been told, or is gone.
        let ahead_ms = arguments.next().and_then(|time| time.to_str()?.parse().ok()).unwrap_or(0);
        let ahead = Duration::from_millis(ahead_ms);
        Some(hold::launch(ahead).map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS))
    } else if word == EXEC {
        let launcher = arguments.next().and_then(|pid| pid.to_str()?.parse().ok());
        Some(stage::become_command(launcher))
    } else {
        None
    }
}
