//! What the process was given by its surroundings. Nothing else in this crate reads the environment.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal as _;
use std::path::PathBuf;

use domain::time::Timestamp;
use store::Location;

use crate::home::{Home, HomeError};

/// The home that a flag names, else the one the environment names, else the user's own.
///
/// # Errors
/// [`HomeError`] when there is none, or its path is too long.
pub(crate) fn home(flag: Option<PathBuf>) -> Result<Home, HomeError> {
    let current = std::env::current_dir().unwrap_or_default();
    Home::find(flag, named_home().map(OsString::from), std::env::home_dir(), &current)
}

/// The home that the environment names.
pub(crate) fn named_home() -> Option<PathBuf> {
    std::env::var_os("OPEN_CONDUIT_HOME").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The words of the command line, the program's name first.
pub(crate) fn arguments() -> Vec<OsString> {
    std::env::args_os().collect()
}

/// The file of this program.
///
/// # Errors
/// When that cannot be told, such as after it was removed.
pub(crate) fn program_file() -> std::io::Result<PathBuf> {
    let file = std::env::current_exe()?;
    if file.try_exists()? { Ok(file) } else { Err(std::io::ErrorKind::NotFound.into()) }
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

/// The variable that names the database of a daemon, as [`store::Location`] reads it. A connection string is a
/// secret, so there is no flag for it: everybody on a machine can read the words of a command line.
pub(crate) const DATABASE: &str = "OPEN_CONDUIT_DATABASE";

/// The database that the environment names; none for the home's own.
///
/// # Errors
/// A message without the value, when it names none.
pub(crate) fn database() -> Result<Option<Location>, String> {
    let Some(value) = std::env::var_os(DATABASE).filter(|value| !value.is_empty()) else { return Ok(None) };
    read_database(&value).map(Some)
}

fn read_database(value: &OsStr) -> Result<Location, String> {
    let text = value.to_str().ok_or_else(|| format!("{DATABASE} is not text"))?;
    text.parse().map_err(|error| format!("{DATABASE}: {error}"))
}

/// The IANA name of this machine's time zone, where it has one.
pub(crate) fn time_zone() -> Option<String> {
    let named = std::env::var("TZ").ok().map(|name| name.trim_start_matches(':').to_owned());
    named.filter(|name| !name.is_empty()).or_else(|| {
        let file = std::fs::read_link("/etc/localtime").ok()?;
        Some(file.to_str()?.split_once("/zoneinfo/")?.1.to_owned())
    })
}

/// Where a job finds what it makes calls with.
#[derive(Debug)]
pub(crate) struct ToolbeltPlace {
    /// The socket.
    pub(crate) socket: PathBuf,
    /// The file with the token.
    pub(crate) token_file: PathBuf,
    /// Where Events appear that reach the job while it runs.
    pub(crate) inbox: Option<PathBuf>,
}

/// What this process was given to make calls with; none outside of a run.
pub(crate) fn toolbelt() -> Option<ToolbeltPlace> {
    let path = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    Some(ToolbeltPlace {
        socket: path("OS_SOCKET")?,
        token_file: path("OS_TOKEN_FILE")?,
        inbox: path("OS_INBOX_DIR"),
    })
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

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use store::Location;

    use super::read_database;

    #[test]
    fn a_database_is_read_and_never_repeated_in_an_error() {
        let dsn = "postgres://oc:hunter2@db/conduit";
        assert_eq!(read_database(OsStr::new(dsn)), Ok(Location::Postgres(dsn.to_owned())));
        let error = read_database(OsStr::new("sqlite:")).unwrap_err();
        assert!(error.starts_with("OPEN_CONDUIT_DATABASE: "), "{error}");
    }
}
