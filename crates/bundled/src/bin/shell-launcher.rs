//! The launcher by itself. The tests start it where the daemon starts its own binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    bundled::shell::launcher_entry().unwrap_or(ExitCode::FAILURE)
}
