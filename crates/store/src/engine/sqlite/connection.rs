//! One connection: its pragmas, its statements, and the binding of values.

use std::path::Path;
use std::sync::Arc;

use domain::store::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, ErrorCode, OpenFlags};

use super::BUSY_TIMEOUT;
use super::file::OwnedFile;
use crate::db::{Cell, Db, EachRow, Row, Sql, Value, numbered};
use crate::migrate::Schema;

/// More statements than the program has, so that each is prepared once.
const STATEMENTS: usize = 256;

/// What every connection is told.
///
/// `synchronous` is FULL (2): without it a power cut may take a commit back that was answered. Nothing is
/// mapped into memory, for there an input or output error is a signal, not an error.
const PRAGMAS: &str = "PRAGMA synchronous = FULL;
    PRAGMA wal_autocheckpoint = 0;
    PRAGMA journal_size_limit = 67108864;
    PRAGMA temp_store = MEMORY;
    PRAGMA mmap_size = 0;
    PRAGMA foreign_keys = OFF;
    PRAGMA fullfsync = ON;
    PRAGMA checkpoint_fullfsync = ON;";

/// What SQLite said, as the contract has it.
pub(super) fn failed(operation: &'static str, error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full,
        Some(ErrorCode::ConstraintViolation) if is_unique(&error) => StoreError::Conflict { what: operation },
        _ => StoreError::Database { operation, source: Arc::new(error) },
    }
}

/// Whether a row exists that the write would repeat. Other constraints are broken by bugs alone.
fn is_unique(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    matches!(
        code,
        Some(
            rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE
                | rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY
                | rusqlite::ffi::SQLITE_CONSTRAINT_ROWID
        )
    )
}

/// A connection with its statements.
#[derive(Debug)]
pub(super) struct Link {
    connection: Connection,
}

impl Link {
    /// The connection that writes.
    pub(super) fn writer(file: Option<&OwnedFile>) -> Result<Self, StoreError> {
        let connection = match file {
            None => Connection::open_in_memory(),
            Some(file) => Connection::open_with_flags(file.path(), flags() | OpenFlags::SQLITE_OPEN_CREATE),
        };
        let connection = connection.map_err(|error| failed("open", error))?;
        // The page size has to be set before the first page, and the journal mode makes that.
        let prepare = "PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; PRAGMA cache_size = -32768;";
        Self::prepared(connection, prepare)
    }

    /// A connection that reads.
    pub(super) fn reader(path: &Path) -> Result<Self, StoreError> {
        // Not read-only as a file: a reader of a write-ahead log writes to the log's index.
        let connection = Connection::open_with_flags(path, flags()).map_err(|error| failed("open", error))?;
        Self::prepared(connection, "PRAGMA query_only = ON; PRAGMA cache_size = -16384;")
    }

    fn prepared(connection: Connection, prepare: &str) -> Result<Self, StoreError> {
        let set = || -> Result<(), rusqlite::Error> {
            connection.busy_timeout(BUSY_TIMEOUT)?;
            connection.execute_batch(prepare)?;
            connection.execute_batch(PRAGMAS)?;
            // Otherwise a bound LIMIT, or a value that a partial index is about, is planned for anew at every
            // binding: a statement would be parsed each time it runs.
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
            connection.set_prepared_statement_cache_capacity(STATEMENTS);
            Ok(())
        };
        set().map_err(|error| failed("open", error))?;
        Ok(Self { connection })
    }

    #[cfg(test)]
    pub(super) const fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn is_open(&self) -> bool {
        !self.connection.is_autocommit()
    }

    /// Runs a statement that is neither a write to a table nor a read.
    pub(super) fn run(&self, sql: &Sql) -> Result<(), StoreError> {
        let run = || self.connection.prepare_cached(sql.text)?.raw_execute();
        run().map(|_rows| ()).map_err(|error| failed(sql.what, error))
    }

    /// The first value that a pragma answers, as text.
    pub(super) fn pragma(&self, pragma: &str) -> Result<String, StoreError> {
        let read = self.connection.query_row(pragma, [], |row| match row.get_ref(0)? {
            ValueRef::Text(text) => Ok(String::from_utf8_lossy(text).into_owned()),
            ValueRef::Integer(number) => Ok(number.to_string()),
            ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => Ok(String::new()),
        });
        read.map_err(|error| failed("read or run a pragma", error))
    }

    fn bound(&self, text: &str, values: &[Value<'_>]) -> Result<CachedStatement<'_>, rusqlite::Error> {
        let mut statement = self.connection.prepare_cached(text)?;
        for (index, value) in (1..).zip(values) {
            match value {
                Value::Int(number) => statement.raw_bind_parameter(index, number)?,
                Value::Text(text) => statement.raw_bind_parameter(index, text)?,
                Value::Blob(blob) => statement.raw_bind_parameter(index, blob)?,
                Value::NullInt | Value::NullText | Value::NullBlob => {
                    statement.raw_bind_parameter(index, rusqlite::types::Null)?;
                }
            }
        }
        Ok(statement)
    }

    fn execute(&self, sql: &'static Sql, values: &[Value<'_>]) -> Result<u64, StoreError> {
        let rows = self.bound(sql.numbered(), values).and_then(|mut statement| statement.raw_execute());
        match rows {
            Ok(rows) => Ok(rows as u64),
            Err(error) => Err(failed(sql.what, error)),
        }
    }

    fn read(
        &self,
        what: &'static str,
        text: &str,
        values: &[Value<'_>],
        each: EachRow<'_>,
    ) -> Result<(), StoreError> {
        let failed = |error| failed(what, error);
        let mut statement = self.bound(text, values).map_err(failed)?;
        let width = statement.column_count();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(failed)? {
            each(&LiteRow { row, width })?;
        }
        Ok(())
    }
}

fn flags() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

impl Db for Link {
    fn write(&mut self, sql: &'static Sql, values: &[Value<'_>], rows: u64) -> Result<(), StoreError> {
        if self.execute(sql, values)? == rows { Ok(()) } else { Err(StoreError::Conflict { what: sql.what }) }
    }

    fn count(&mut self, sql: &'static Sql, values: &[Value<'_>]) -> Result<u64, StoreError> {
        self.execute(sql, values)
    }

    fn query(
        &mut self,
        sql: &'static Sql,
        values: &[Value<'_>],
        each: EachRow<'_>,
    ) -> Result<(), StoreError> {
        self.read(sql.what, sql.numbered(), values, each)
    }

    fn list(
        &mut self,
        sql: &'static Sql,
        text: &str,
        values: &[Value<'_>],
        each: EachRow<'_>,
    ) -> Result<(), StoreError> {
        self.read(sql.what, &numbered(text), values, each)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Schema for Link {
    fn begin_migration(&mut self) -> Result<(), StoreError> {
        self.define("BEGIN IMMEDIATE")
    }

    fn define(&mut self, statement: &str) -> Result<(), StoreError> {
        let failed = |error| failed("bring its schema up to date", error);
        self.connection.execute_batch(statement).map_err(failed)
    }

    fn end_migration(&mut self, keep: bool) -> Result<(), StoreError> {
        self.define(if keep { "COMMIT" } else { "ROLLBACK" })
    }
}

/// A row, as long as its statement stands on it.
struct LiteRow<'r, 's> {
    row: &'r rusqlite::Row<'s>,
    width: usize,
}

impl Row for LiteRow<'_, '_> {
    fn width(&self) -> usize {
        self.width
    }

    fn cell(&self, index: usize) -> Result<Cell<'_>, String> {
        match self.row.get_ref(index) {
            Ok(ValueRef::Null) => Ok(Cell::Null),
            Ok(ValueRef::Integer(number)) => Ok(Cell::Int(number)),
            Ok(ValueRef::Text(text)) => match std::str::from_utf8(text) {
                Ok(text) => Ok(Cell::Text(text)),
                Err(_source) => Err(format!("column {} is not UTF-8", index + 1)),
            },
            Ok(ValueRef::Blob(blob)) => Ok(Cell::Blob(blob)),
            Ok(ValueRef::Real(_)) => Err(format!("column {} is a fraction", index + 1)),
            Err(_source) => Err(format!("there is no column {}", index + 1)),
        }
    }
}
