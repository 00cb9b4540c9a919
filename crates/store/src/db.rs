//! The thin handle between the tables and an engine: statements, parameters, and columns.
//!
//! A statement is a `static`, so its address names it and an engine can keep what it prepared under that.
//! Parameters carry their type even when they are null, because PostgreSQL wants to know it.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::OnceLock;

use domain::store::StoreError;
use domain::time::Timestamp;

/// A statement of the program, written with `$n` for its parameters.
#[derive(Debug)]
pub(crate) struct Sql {
    /// What it is to do, for errors: the rest of "the database failed while it was to".
    pub(crate) what: &'static str,
    /// The table it is about, for errors about rows.
    pub(crate) table: &'static str,
    /// Its text.
    pub(crate) text: &'static str,
    numbered: OnceLock<String>,
}

impl Sql {
    pub(crate) const fn new(what: &'static str, table: &'static str, text: &'static str) -> Self {
        Self { what, table, text, numbered: OnceLock::new() }
    }

    /// What an engine keeps the prepared statement under.
    pub(crate) fn key(&'static self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The text with `?n`: SQLite takes `$1` for a name, and numbers names as it meets them.
    pub(crate) fn numbered(&self) -> &str {
        self.numbered.get_or_init(|| numbered(self.text))
    }
}

/// A statement's text as SQLite numbers parameters.
pub(crate) fn numbered(text: &str) -> String {
    text.replace('$', "?")
}

/// A parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Value<'a> {
    Int(i64),
    Text(&'a str),
    Blob(&'a [u8]),
    NullInt,
    NullText,
    NullBlob,
}

impl Value<'_> {
    /// How many bytes it brings, beyond a number's few.
    pub(crate) const fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Blob(blob) => blob.len(),
            Self::Int(_) | Self::NullInt | Self::NullText | Self::NullBlob => 8,
        }
    }
}

pub(crate) const fn int(number: i64) -> Value<'static> {
    Value::Int(number)
}

pub(crate) fn maybe_int(number: Option<i64>) -> Value<'static> {
    number.map_or(Value::NullInt, Value::Int)
}

pub(crate) const fn time(at: Timestamp) -> Value<'static> {
    Value::Int(at.as_micros())
}

pub(crate) fn maybe_time(at: Option<Timestamp>) -> Value<'static> {
    maybe_int(at.map(Timestamp::as_micros))
}

pub(crate) fn limit(limit: u32) -> Value<'static> {
    Value::Int(i64::from(limit))
}

pub(crate) const fn text(text: &str) -> Value<'_> {
    Value::Text(text)
}

pub(crate) fn maybe_text(text: Option<&str>) -> Value<'_> {
    text.map_or(Value::NullText, Value::Text)
}

pub(crate) const fn blob(blob: &[u8]) -> Value<'_> {
    Value::Blob(blob)
}

pub(crate) fn maybe_blob(blob: Option<&[u8]>) -> Value<'_> {
    blob.map_or(Value::NullBlob, Value::Blob)
}

/// A column as the engine read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Cell<'r> {
    Null,
    Int(i64),
    Text(&'r str),
    Blob(&'r [u8]),
}

/// A row as the engine holds it.
pub(crate) trait Row {
    /// The columns it has.
    fn width(&self) -> usize;

    /// One of them; the message says what else stands there.
    fn cell(&self, index: usize) -> Result<Cell<'_>, String>;
}

/// The columns of a row, read from left to right.
pub(crate) struct Columns<'r> {
    table: &'static str,
    row: &'r dyn Row,
    next: usize,
}

impl<'r> Columns<'r> {
    pub(crate) fn new(table: &'static str, row: &'r dyn Row) -> Self {
        Self { table, row, next: 0 }
    }

    /// An error about this row. `reason` never repeats what stands in it.
    pub(crate) fn corrupt(&self, reason: impl Into<String>) -> StoreError {
        StoreError::Corrupt { table: self.table, reason: reason.into() }
    }

    fn cell(&mut self) -> Result<Cell<'r>, StoreError> {
        let cell = self.row.cell(self.next).map_err(|reason| self.corrupt(reason))?;
        self.next += 1;
        Ok(cell)
    }

    fn unexpected<T>(&self, wanted: &str) -> Result<T, StoreError> {
        Err(self.corrupt(format!("column {} is not {wanted}", self.next)))
    }

    pub(crate) fn maybe_int(&mut self) -> Result<Option<i64>, StoreError> {
        match self.cell()? {
            Cell::Null => Ok(None),
            Cell::Int(number) => Ok(Some(number)),
            Cell::Text(_) | Cell::Blob(_) => self.unexpected("a number"),
        }
    }

    pub(crate) fn int(&mut self) -> Result<i64, StoreError> {
        match self.maybe_int()? {
            Some(number) => Ok(number),
            None => self.unexpected("a number"),
        }
    }

    pub(crate) fn flag(&mut self) -> Result<bool, StoreError> {
        match self.int()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => self.unexpected("0 or 1"),
        }
    }

    pub(crate) fn time(&mut self) -> Result<Timestamp, StoreError> {
        self.int().map(Timestamp::from_micros)
    }

    pub(crate) fn maybe_time(&mut self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.maybe_int()?.map(Timestamp::from_micros))
    }

    /// A number that stands for a state or another word.
    pub(crate) fn word<T>(&mut self, decode: impl Fn(i64) -> Option<T>) -> Result<T, StoreError> {
        let number = self.int()?;
        match decode(number) {
            Some(word) => Ok(word),
            None => self.unexpected("a number that stands for a word"),
        }
    }

    pub(crate) fn maybe_word<T>(
        &mut self,
        decode: impl Fn(i64) -> Option<T>,
    ) -> Result<Option<T>, StoreError> {
        match self.maybe_int()? {
            None => Ok(None),
            Some(number) => match decode(number) {
                Some(word) => Ok(Some(word)),
                None => self.unexpected("a number that stands for a word"),
            },
        }
    }

    fn maybe_str(&mut self) -> Result<Option<&'r str>, StoreError> {
        match self.cell()? {
            Cell::Null => Ok(None),
            Cell::Text(text) => Ok(Some(text)),
            Cell::Int(_) | Cell::Blob(_) => self.unexpected("a text"),
        }
    }

    /// A text of a validated kind, or none.
    pub(crate) fn maybe_text<T>(&mut self) -> Result<Option<T>, StoreError>
    where
        T: FromStr,
        T::Err: Display,
    {
        let parsed = self.maybe_str()?.map(str::parse).transpose();
        // The errors of our text types never repeat the text.
        parsed.map_err(|error: T::Err| self.corrupt(error.to_string()))
    }

    /// A text of a validated kind.
    pub(crate) fn text<T>(&mut self) -> Result<T, StoreError>
    where
        T: FromStr,
        T::Err: Display,
    {
        match self.maybe_text()? {
            Some(text) => Ok(text),
            None => self.unexpected("a text"),
        }
    }

    pub(crate) fn maybe_blob(&mut self) -> Result<Option<&'r [u8]>, StoreError> {
        match self.cell()? {
            Cell::Null => Ok(None),
            Cell::Blob(blob) => Ok(Some(blob)),
            Cell::Int(_) | Cell::Text(_) => self.unexpected("bytes"),
        }
    }

    pub(crate) fn blob(&mut self) -> Result<&'r [u8], StoreError> {
        match self.maybe_blob()? {
            Some(blob) => Ok(blob),
            None => self.unexpected("bytes"),
        }
    }
}

/// The only column of a row, a number.
pub(crate) fn number(columns: &mut Columns<'_>) -> Result<i64, StoreError> {
    columns.int()
}

/// The only column of a row, a time.
pub(crate) fn moment(columns: &mut Columns<'_>) -> Result<Timestamp, StoreError> {
    columns.time()
}

/// What to do with each row of a query.
pub(crate) type EachRow<'f> = &'f mut dyn FnMut(&dyn Row) -> Result<(), StoreError>;

/// An open transaction or snapshot of an engine.
pub(crate) trait Db {
    /// A write that hits `rows` rows, or is a [`StoreError::Conflict`]. An engine may queue it and find out
    /// later, but no later than the end of the request.
    fn write(&mut self, sql: &'static Sql, values: &[Value<'_>], rows: u64) -> Result<(), StoreError>;

    /// A write of which the number of rows it hits is an answer.
    fn count(&mut self, sql: &'static Sql, values: &[Value<'_>]) -> Result<u64, StoreError>;

    /// A read.
    fn query(&mut self, sql: &'static Sql, values: &[Value<'_>], each: EachRow<'_>)
    -> Result<(), StoreError>;

    /// A read whose text depends on what is asked. `sql` says what it is about.
    fn list(
        &mut self,
        sql: &'static Sql,
        text: &str,
        values: &[Value<'_>],
        each: EachRow<'_>,
    ) -> Result<(), StoreError>;

    /// Waits for what was queued, and finds what it hit.
    fn flush(&mut self) -> Result<(), StoreError>;
}
