//! The launcher by itself: the binary that `bundled` carries, and starts from memory.

use std::process::ExitCode;

use launcher::wire::PROBE;

fn main() -> ExitCode {
    if let Some(code) = launcher::launcher_entry() {
        return code;
    }
    let is_probe = std::env::args_os().nth(1).is_some_and(|word| word == PROBE);
    if is_probe { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
