//! When a daemon was last seen alive: one line in the home, written anew every few seconds.
//!
//! It is a file and not a row, since a daemon with nothing to do says nothing to its database. What the next
//! start makes of the line is a row (`domain::store::StartRow`).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::time::Duration;

use domain::store::LastSeen;
use domain::time::Timestamp;

use super::Daemon;
use crate::home::{Home, HomeError};

/// How often the line is written: how much later than it says a daemon may have ended.
const EVERY: Duration = Duration::from_secs(10);
/// Every line has as many bytes, so that one write replaces another.
const LINE_BYTES: usize = 48;
const ALIVE: &str = "alive";
const STOPPED: &str = "stopped";

/// What the last daemon of a home left. A line that nobody here wrote says nothing.
///
/// # Errors
/// [`HomeError::Io`] when it is there and cannot be read.
pub(super) fn last_seen(home: &Home) -> Result<Option<LastSeen>, HomeError> {
    Ok(home.read_private(&home.alive())?.as_deref().and_then(read))
}

fn read(line: &str) -> Option<LastSeen> {
    let (word, at) = line.trim_end().split_once(' ')?;
    let at = Timestamp::parse(at).ok()?;
    match word {
        ALIVE => Some(LastSeen { at, stopped: false }),
        STOPPED => Some(LastSeen { at, stopped: true }),
        _other => None,
    }
}

fn line(word: &str, at: Timestamp) -> String {
    let width = LINE_BYTES - 1;
    format!("{:<width$}\n", format!("{word} {at}"))
}

fn write(home: &Home, word: &str, at: Timestamp) -> io::Result<()> {
    let file: File =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(home.alive())?;
    file.write_all_at(line(word, at).as_bytes(), 0)
}

/// Says every few seconds that the daemon is alive, until it stops.
pub(super) async fn run(daemon: std::sync::Arc<Daemon>) {
    let mut failed = false;
    loop {
        match write(daemon.home(), ALIVE, daemon.store().now()) {
            Ok(()) => failed = false,
            // Once, and not every few seconds: a full disk is told about by whoever needs it.
            Err(error) if !failed => {
                failed = true;
                tracing::warn!(%error, "the home cannot be written, so the time of a crash would not be known");
            }
            Err(_as_before) => {}
        }
        if tokio::time::timeout(EVERY, daemon.stopping().cancelled()).await.is_ok() {
            return;
        }
    }
}

/// Says that the daemon has stopped in order.
pub(super) fn stopped(daemon: &Daemon) {
    if let Err(error) = write(daemon.home(), STOPPED, daemon.store().now()) {
        tracing::warn!(%error, "the home cannot be written, so the next start takes this stop for a crash");
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use domain::store::LastSeen;
    use domain::time::Timestamp;

    use super::{ALIVE, LINE_BYTES, STOPPED, last_seen, line, write};
    use crate::home::Home;

    #[test]
    fn the_newest_line_is_read_back_whole() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::find(Some(directory.path().join("home")), None, None, Path::new("/")).unwrap();
        home.create().unwrap();
        assert_eq!(last_seen(&home).unwrap(), None);
        let early = Timestamp::parse("2026-03-01T12:00:00.123456Z").unwrap();
        let late = Timestamp::parse("2026-03-01T12:00:10Z").unwrap();
        for (word, at, stopped) in [(STOPPED, early, true), (ALIVE, late, false), (STOPPED, late, true)] {
            assert_eq!(line(word, at).len(), LINE_BYTES);
            write(&home, word, at).unwrap();
            assert_eq!(last_seen(&home).unwrap(), Some(LastSeen { at, stopped }));
        }
        for strange in ["", "alive", "alive soon\n", "dead 2026-03-01T12:00:10Z\n"] {
            std::fs::write(home.alive(), strange).unwrap();
            assert_eq!(last_seen(&home).unwrap(), None, "{strange:?}");
        }
    }
}
