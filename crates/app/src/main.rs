//! The `open-conduit` binary: the daemon, and the commands that talk to it.

use std::process::ExitCode;

mod env;
mod home;
mod config;
mod error_code;
mod auth;
mod daemon;
mod listener;
mod api;
mod toolbelt;
mod pages;
mod view;
mod client;
mod cli;

fn main() -> ExitCode {
    // The process may be a turn's launcher. Then nothing else may exist in it: no runtime, no thread, no log.
    // The same goes for the stage that becomes an extension's program.
    match bundled::shell::launcher_entry().or_else(protocol::stage::entry) {
        Some(code) => code,
        None => cli::main(),
    }
}
