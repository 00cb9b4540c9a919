//! A binary that begins with the launcher's entry, as the daemon's does. The tests give it to executors that
//! start nothing from memory.

use std::process::ExitCode;

fn main() -> ExitCode {
    bundled::shell::launcher_entry().unwrap_or(ExitCode::FAILURE)
}
