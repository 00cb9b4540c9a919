//! Where a store is, and how it is opened.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use domain::store::Observer;
use domain::time::Clock;
use thiserror::Error;
use tracker::IssueTx;

use crate::clock::system_clock;
use crate::fault::Faults;
use crate::tape::Tape;

/// An observer of transactions that may also write to the tracker's tables.
pub type IssueObserver = Arc<dyn for<'a> Observer<dyn IssueTx + 'a>>;

/// Which database.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    /// One that ends with the store.
    Memory,
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL database, by its connection string.
    Postgres(String),
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("Memory"),
            Self::Sqlite(path) => f.debug_tuple("Sqlite").field(path).finish(),
            // A connection string may hold a password.
            Self::Postgres(_) => f.write_str("Postgres(..)"),
        }
    }
}

/// The text names no database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("name a database: a file's path, `sqlite:PATH`, `memory:`, or a PostgreSQL connection string")]
pub struct LocationError;

impl FromStr for Location {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, LocationError> {
        if text.is_empty() {
            Err(LocationError)
        } else if text == "memory:" {
            Ok(Self::Memory)
        } else if ["postgres://", "postgresql://", "host="].iter().any(|start| text.starts_with(start)) {
            Ok(Self::Postgres(text.to_owned()))
        } else {
            match text.strip_prefix("sqlite:").unwrap_or(text) {
                "" => Err(LocationError),
                path => Ok(Self::Sqlite(PathBuf::from(path))),
            }
        }
    }
}

/// Where a process runs: the one place from which what its executors start can be looked after.
///
/// Two processes that live at the same time never give the same one; a lock on the place itself has to see
/// to that. A process that gives it later may take up whatever an earlier one left there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// What tells it from every other host, for ever. Compared, not read.
    pub identity: String,
    /// What people call it.
    pub label: String,
}

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// The clocks. On PostgreSQL they only measure what passes between two looks at the database's clock.
    pub clock: Arc<dyn Clock>,
    /// Where this process runs. It matters on PostgreSQL, whose other nodes may be elsewhere; without one this
    /// process leaves nothing that another could take up.
    pub host: Option<Host>,
    /// Who sees the changes of each transaction, in the transaction.
    pub observers: Vec<IssueObserver>,
    /// Bodies run on the calling thread, one by one, and the futures are ready at once.
    pub inline: bool,
    /// Every body runs twice, first inside a savepoint that is undone, and a body that is not the same both
    /// times is refused as the bug it is.
    pub rehearse: bool,
    /// On PostgreSQL, time comes from `clock` and not from the database: for tests that move it.
    pub own_time: bool,
    /// Failures that a test orders.
    pub faults: Option<Arc<Faults>>,
    /// Takes down the statements of transactions.
    pub tape: Option<Arc<Tape>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: system_clock(),
            host: None,
            observers: Vec::new(),
            inline: false,
            rehearse: cfg!(debug_assertions),
            own_time: false,
            faults: None,
            tape: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Location, LocationError};
    use std::path::PathBuf;

    #[test]
    fn a_location_is_read_from_what_people_type() {
        let read = |text: &str| text.parse::<Location>();
        assert_eq!(read("memory:"), Ok(Location::Memory));
        assert_eq!(read("sqlite:/a/b.db"), Ok(Location::Sqlite(PathBuf::from("/a/b.db"))));
        assert_eq!(read("b.db"), Ok(Location::Sqlite(PathBuf::from("b.db"))));
        for text in ["postgres://h/d", "postgresql://h/d", "host=/run user=oc"] {
            assert_eq!(read(text), Ok(Location::Postgres(text.to_owned())));
        }
        assert_eq!(read(""), Err(LocationError));
        assert_eq!(read("sqlite:"), Err(LocationError));
    }

    #[test]
    fn debug_does_not_show_a_password() {
        let location = Location::Postgres("postgres://oc:hunter2@h/d".to_owned());
        assert_eq!(format!("{location:?}"), "Postgres(..)");
    }
}
