//! SQLite: one file, one writing connection, and a few that read.
//!
//! The file is ours alone, held by a lock beside it, so the coordination row is read once and then counted
//! in memory. The log is checkpointed by the writer, between transactions, never by a commit somebody waits
//! for.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use domain::id::Incarnation;
use domain::store::StoreError;
use domain::time::Timestamp;
#[cfg(test)]
use rusqlite::Connection;

use self::connection::Link;
use self::file::OwnedFile;
use super::{CommitError, Engine, Reader};
use crate::db::{Db, EachRow, Sql, Value};
use crate::migrate;
use crate::tables::coordination::{self, Coordination, Lives, Registered};
use crate::tables::schema::Dialect;

mod connection;
mod file;

pub(crate) use self::file::log_bytes;

/// What SQLite calls things. A table whose key is one integer is stored by it; `WITHOUT ROWID` does the same
/// for the others.
pub(crate) const DIALECT: Dialect = Dialect {
    int: "INTEGER",
    text: "TEXT",
    blob: "BLOB",
    table: "STRICT",
    clustered: "STRICT, WITHOUT ROWID",
};

/// Older versions can corrupt a write-ahead log that two connections checkpoint at once.
const VERSION_MIN: i32 = 3_051_003;
/// A log of this size is emptied between two batches, whoever waits.
const LOG_BYTES_MAX: u64 = 64 << 20;
/// After an attempt that a long reader defeated, the log may grow by this before the next.
const LOG_BYTES_STEP: u64 = 16 << 20;
/// How long a connection waits for a lock of another. Only a checkpoint and a backup ever hold one.
const BUSY_TIMEOUT: Duration = Duration::from_millis(100);

static BEGIN: Sql = Sql::new("begin a transaction", "", "BEGIN IMMEDIATE");
static COMMIT: Sql = Sql::new("commit", "", "COMMIT");
static ROLLBACK: Sql = Sql::new("roll back", "", "ROLLBACK");
static MARK: Sql = Sql::new("set a savepoint", "", "SAVEPOINT rehearsal");
static UNDO: Sql = Sql::new("roll back to a savepoint", "", "ROLLBACK TO rehearsal");
static FORGET: Sql = Sql::new("release a savepoint", "", "RELEASE rehearsal");

/// The engine.
#[derive(Debug)]
pub(crate) struct Sqlite {
    link: Link,
    /// Where the database is; none for one in memory. Holding it holds the lock.
    file: Option<OwnedFile>,
    incarnation: i64,
    coordination: Coordination,
    /// The size of the log at which it is emptied.
    log_bytes_next: u64,
    /// Commits since the last checkpoint.
    unchecked: u64,
    /// Pragmas as SQLite has them, for people.
    facts: Vec<(&'static str, String)>,
}

impl Sqlite {
    /// Opens or creates a database; in memory when there is no path.
    pub(crate) fn open(path: Option<PathBuf>) -> Result<Self, StoreError> {
        let version = rusqlite::version_number();
        if version < VERSION_MIN {
            return Err(StoreError::Database {
                operation: "open",
                source: Arc::new(std::io::Error::other("this SQLite is older than 3.51.3, which is unsafe")),
            });
        }
        let file = path.map(OwnedFile::take).transpose()?;
        let mut link = Link::writer(file.as_ref())?;
        migrate::run(&mut link, &DIALECT)?;
        let coordination = coordination::read(&mut link)?;
        let mut facts = vec![
            ("engine", if file.is_some() { "sqlite" } else { "memory" }.to_owned()),
            ("version", rusqlite::version().to_owned()),
        ];
        for (name, pragma) in [
            ("journal_mode", "PRAGMA journal_mode"),
            ("synchronous", "PRAGMA synchronous"),
            ("page_size", "PRAGMA page_size"),
            ("cache_size", "PRAGMA cache_size"),
            ("wal_autocheckpoint", "PRAGMA wal_autocheckpoint"),
        ] {
            facts.push((name, link.pragma(pragma)?));
        }
        Ok(Self {
            link,
            file,
            incarnation: 0,
            coordination,
            log_bytes_next: LOG_BYTES_MAX,
            unchecked: 0,
            facts,
        })
    }

    /// The highest time the database has seen.
    pub(crate) const fn highest(&self) -> Timestamp {
        self.coordination.clock
    }

    /// Registers this life of the process. Whoever opened the file owns the loops.
    pub(crate) fn register(&mut self, now: Timestamp) -> Result<Registered, StoreError> {
        self.link.run(&BEGIN)?;
        let registered = coordination::register(&mut self.link, now, Lives::Alone)?;
        self.incarnation = registered.incarnation;
        let owner = Incarnation::from_number(registered.incarnation);
        self.coordination.ownership = self.coordination.ownership.exclusive(owner);
        coordination::advance(&mut self.link, self.coordination)?;
        self.link.run(&COMMIT)?;
        Ok(registered)
    }

    /// What there is to say about the engine.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        self.facts.clone()
    }

    #[cfg(test)]
    pub(crate) const fn connection(&self) -> &Connection {
        self.link.connection()
    }

    /// Moves pages from the log to the file. Failure is no harm: the log only stays longer.
    fn checkpoint(&mut self, mode: &str) {
        match self.link.pragma(mode) {
            Ok(_busy) => self.unchecked = 0,
            Err(error) => tracing::warn!(%error, "the write-ahead log could not be checkpointed"),
        }
    }
}

impl Db for Sqlite {
    fn write(&mut self, sql: &'static Sql, values: &[Value<'_>], rows: u64) -> Result<(), StoreError> {
        self.link.write(sql, values, rows)
    }

    fn count(&mut self, sql: &'static Sql, values: &[Value<'_>]) -> Result<u64, StoreError> {
        self.link.count(sql, values)
    }

    fn query(
        &mut self,
        sql: &'static Sql,
        values: &[Value<'_>],
        each: EachRow<'_>,
    ) -> Result<(), StoreError> {
        self.link.query(sql, values, each)
    }

    fn list(
        &mut self,
        sql: &'static Sql,
        text: &str,
        values: &[Value<'_>],
        each: EachRow<'_>,
    ) -> Result<(), StoreError> {
        self.link.list(sql, text, values, each)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Engine for Sqlite {
    fn begin(&mut self) -> Result<Coordination, StoreError> {
        self.link.run(&BEGIN)?;
        Ok(self.coordination)
    }

    fn is_open(&self) -> bool {
        self.link.is_open()
    }

    fn take_passing(&mut self) -> bool {
        false
    }

    fn rollback(&mut self) -> Result<(), StoreError> {
        if self.link.is_open() { self.link.run(&ROLLBACK) } else { Ok(()) }
    }

    fn close(&mut self, next: Coordination, batch: i64) -> Result<(), StoreError> {
        coordination::close(&mut self.link, next, self.incarnation, batch)
    }

    fn commit(&mut self, next: Coordination) -> Result<(), CommitError> {
        match self.link.run(&COMMIT) {
            Ok(()) => {
                self.coordination = next;
                self.unchecked += 1;
                Ok(())
            }
            // Nothing of the transaction reached the log in a form that a reader would take.
            Err(StoreError::Full) => Err(CommitError::Refused(StoreError::Full)),
            Err(error) => {
                tracing::error!(%error, "a commit failed; its fate will be looked up");
                Err(CommitError::Unknown)
            }
        }
    }

    fn mark(&mut self) -> Result<(), StoreError> {
        self.link.run(&MARK)
    }

    fn undo_to_mark(&mut self) -> Result<(), StoreError> {
        self.link.run(&UNDO)?;
        self.link.run(&FORGET)
    }

    fn reopen(&mut self) -> Result<i64, StoreError> {
        if self.file.is_some() {
            self.link = Link::writer(self.file.as_ref())?;
        } else {
            // The connection is the database. What it holds is what was committed.
            self.rollback()?;
        }
        self.coordination = coordination::read(&mut self.link)?;
        coordination::batch(&mut self.link, self.incarnation)
    }

    fn maintain(&mut self, idle: bool) {
        let Some(file) = &self.file else { return };
        let bytes = log_bytes(file.path());
        if bytes >= self.log_bytes_next {
            self.checkpoint("PRAGMA wal_checkpoint(TRUNCATE)");
            let left = self.file.as_ref().map_or(0, |file| log_bytes(file.path()));
            self.log_bytes_next = if left < LOG_BYTES_MAX { LOG_BYTES_MAX } else { left + LOG_BYTES_STEP };
        } else if idle && self.unchecked > 0 {
            self.checkpoint("PRAGMA wal_checkpoint(PASSIVE)");
        }
    }

    fn finish(&mut self) -> Result<(), StoreError> {
        if self.file.is_some() {
            self.checkpoint("PRAGMA wal_checkpoint(TRUNCATE)");
        }
        Ok(())
    }
}

static READ: Sql = Sql::new("begin a read", "", "BEGIN DEFERRED");

/// A connection that reads.
#[derive(Debug)]
pub(crate) struct SqliteReader(Link);

impl SqliteReader {
    /// Opens a database that a [`Sqlite`] holds.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self(Link::reader(path)?))
    }
}

impl Reader for SqliteReader {
    fn begin(&mut self) -> Result<&mut dyn Db, StoreError> {
        self.0.run(&READ)?;
        Ok(&mut self.0)
    }

    fn end(&mut self) -> Result<(), StoreError> {
        if self.0.is_open() { self.0.run(&ROLLBACK) } else { Ok(()) }
    }
}
