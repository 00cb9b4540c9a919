//! What the process was given by its surroundings. Nothing else in this crate reads the environment.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::PathBuf;

use domain::time::Timestamp;

use crate::home::{Home, HomeError};

/// The home that a flag names, else the one the environment names, else the user's own.
///
/// # Errors
/// [`HomeError`] when there is none, or its path is too long.
pub(crate) fn home(flag: Option<PathBuf>) -> Result<Home, HomeError> {
    let current = std::env::current_dir().unwrap_or_default();
    Home::find(flag, std::env::var_os("OPEN_CONDUIT_HOME"), std::env::home_dir(), &current)
}

/// The words of the command line, the program's name first.
pub(crate) fn arguments() -> Vec<OsString> {
    std::env::args_os().collect()
}

/// This program, as whoever started it could type it again.
pub(crate) fn program() -> String {
    let typed = std::env::args().next().unwrap_or_default();
    if typed.contains('/') { typed } else { "open-conduit".to_owned() }
}

/// Whether standard output may be colored: it is a terminal that can, and nobody asked for plain text.
pub(crate) fn colored() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    std::io::stdout().is_terminal() && !set("NO_COLOR") && !dumb
}

/// How many columns standard output has; none when it is not a terminal.
pub(crate) fn columns() -> Option<usize> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    terminal_size::terminal_size().map(|(width, _height)| usize::from(width.0))
}

/// Whether a person reads along on standard error.
pub(crate) fn is_watched() -> bool {
    std::io::stderr().is_terminal()
}

/// What is to be logged: a level, or levels by module.
pub(crate) fn log_filter() -> Option<String> {
    std::env::var("OPEN_CONDUIT_LOG").ok().filter(|filter| !filter.is_empty())
}

/// Every variable. The daemon resolves secrets from them and finds its service manager there.
pub(crate) fn variables() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

/// The current moment, for what is shown. Nothing is decided by it.
pub(crate) fn now() -> Timestamp {
    store::system_clock().wall()
}
