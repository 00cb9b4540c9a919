//! A request's view of the database: its handle, its time, its sequences and its changes.
//!
//! The tables implement the storage contract on [`Transaction`]. Every statement passes through [`Handle`],
//! which remembers the first error (a body may swallow it, and on PostgreSQL the commit would then answer
//! well and commit nothing), counts writes, and notes what a rehearsal compares.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use domain::feed::Change;
use domain::id::Sequence;
use domain::ownership::Ownership;
use domain::store::{Snapshot, StoreError, Tx};
use domain::time::Timestamp;
use tracker::IssueTx;

use crate::db::{Columns, Db, EachRow, Sql, Value};
use crate::fault::Faults;
use crate::tape::Tape;

/// What a request did, statement by statement, to compare two runs of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Trace(Vec<(&'static str, u64)>);

impl Trace {
    /// The first statement that differs, or is missing in one of the two.
    pub(crate) fn difference<'t>(&'t self, other: &'t Self) -> Option<&'static str> {
        let pairs = self.0.iter().zip(&other.0);
        let differing = pairs.clone().find(|(one, two)| one != two).map(|(one, _two)| one.0);
        let longer = if self.0.len() > other.0.len() { &self.0 } else { &other.0 };
        differing.or_else(|| longer.get(pairs.len()).map(|surplus| surplus.0))
    }
}

/// The statements of one request.
pub(crate) struct Handle<'e> {
    db: &'e mut dyn Db,
    faults: Option<Arc<Faults>>,
    error: Option<StoreError>,
    pub(crate) statements: u64,
    pub(crate) writes: u64,
    pub(crate) bytes: usize,
    trace: Option<Trace>,
    tape: Option<Arc<Tape>>,
}

impl<'e> Handle<'e> {
    pub(crate) fn new(db: &'e mut dyn Db, faults: Option<Arc<Faults>>) -> Self {
        Self { db, faults, error: None, statements: 0, writes: 0, bytes: 0, trace: None, tape: None }
    }

    /// Begins to note what is done.
    pub(crate) fn traced(mut self) -> Self {
        self.trace = Some(Trace::default());
        self
    }

    /// Begins to take down what is said.
    pub(crate) fn taped(mut self, tape: Arc<Tape>) -> Self {
        self.tape = Some(tape);
        self
    }

    pub(crate) fn take_trace(&mut self) -> Trace {
        self.trace.take().unwrap_or_default()
    }

    /// The first error of the request.
    pub(crate) fn error(&self) -> Option<&StoreError> {
        self.error.as_ref()
    }

    /// Remembers the first error. Whatever comes after it fails alike.
    fn latch<T>(&mut self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(error) = &result
            && self.error.is_none()
        {
            self.error = Some(error.clone());
        }
        result
    }

    /// Waits for queued writes, whatever happened before: their answers belong to this request.
    pub(crate) fn flush(&mut self) {
        let result = self.db.flush();
        // Latching is all there is to do with it.
        self.latch(result).ok();
    }

    /// Makes an error that is not a statement's the request's own.
    pub(crate) fn fail(&mut self, error: StoreError) {
        self.latch::<()>(Err(error)).ok();
    }

    /// Before every statement: nothing follows an error.
    fn enter(&mut self) -> Result<(), StoreError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        self.statements += 1;
        match self.faults.as_ref().and_then(|faults| faults.statement()) {
            Some(error) => self.latch(Err(error)),
            None => Ok(()),
        }
    }

    fn note(&mut self, sql: &'static Sql, values: &[Value<'_>], answer: u64) {
        if let Some(tape) = &self.tape {
            tape.note(sql.text, values);
        }
        if let Some(trace) = &mut self.trace {
            let mut hasher = DefaultHasher::new();
            values.hash(&mut hasher);
            answer.hash(&mut hasher);
            trace.0.push((sql.what, hasher.finish()));
        }
    }

    pub(crate) fn write(
        &mut self,
        sql: &'static Sql,
        values: &[Value<'_>],
        rows: u64,
    ) -> Result<(), StoreError> {
        self.enter()?;
        self.writes += 1;
        self.bytes += values.iter().map(Value::bytes).sum::<usize>();
        self.note(sql, values, rows);
        let result = self.db.write(sql, values, rows);
        self.latch(result)
    }

    pub(crate) fn count(&mut self, sql: &'static Sql, values: &[Value<'_>]) -> Result<u64, StoreError> {
        self.enter()?;
        let result = self.db.count(sql, values);
        // A write that hit nothing left nothing to undo.
        if !matches!(result, Ok(0)) {
            self.writes += 1;
            self.bytes += values.iter().map(Value::bytes).sum::<usize>();
        }
        self.note(sql, values, *result.as_ref().unwrap_or(&0));
        self.latch(result)
    }

    /// Every row of a query, decoded.
    pub(crate) fn many<T>(
        &mut self,
        sql: &'static Sql,
        values: &[Value<'_>],
        decode: impl Fn(&mut Columns<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        self.each(sql, None, values, &mut |columns| {
            found.push(decode(columns)?);
            Ok(())
        })?;
        Ok(found)
    }

    /// The only row of a query, decoded.
    pub(crate) fn one<T>(
        &mut self,
        sql: &'static Sql,
        values: &[Value<'_>],
        decode: impl Fn(&mut Columns<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let mut found = None;
        self.each(sql, None, values, &mut |columns| {
            found = Some(decode(columns)?);
            Ok(())
        })?;
        Ok(found)
    }

    /// Every row of a query whose text was composed, decoded.
    pub(crate) fn listed<T>(
        &mut self,
        sql: &'static Sql,
        text: &str,
        values: &[Value<'_>],
        decode: impl Fn(&mut Columns<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        self.each(sql, Some(text), values, &mut |columns| {
            found.push(decode(columns)?);
            Ok(())
        })?;
        Ok(found)
    }

    fn each(
        &mut self,
        sql: &'static Sql,
        composed: Option<&str>,
        values: &[Value<'_>],
        take: &mut dyn FnMut(&mut Columns<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.enter()?;
        let mut hasher = self.trace.as_ref().map(|_trace| DefaultHasher::new());
        let each: EachRow<'_> = &mut |row| {
            if let Some(hasher) = &mut hasher {
                (0..row.width()).for_each(|index| row.cell(index).hash(hasher));
            }
            take(&mut Columns::new(sql.table, row))
        };
        let result = match composed {
            None => self.db.query(sql, values, each),
            Some(text) => self.db.list(sql, text, values, each),
        };
        let seen = hasher.map_or(0, |hasher| hasher.finish());
        self.note(sql, values, seen);
        self.latch(result)
    }
}

/// Where a request stands: in time, in the order of sequences, and on which host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) now: Timestamp,
    pub(crate) host: i64,
    pub(crate) next_sequence: i64,
    pub(crate) ownership: Ownership,
}

impl Place {
    /// That of a read, which has no sequences to give out and no part in the loops.
    pub(crate) const fn of_read(host: i64, now: Timestamp) -> Self {
        Self { now, host, next_sequence: 1, ownership: Ownership::NONE }
    }
}

/// A request in progress, or a read.
pub(crate) struct Transaction<'e> {
    pub(crate) db: Handle<'e>,
    pub(crate) place: Place,
    changes: Vec<Change>,
    /// Rows of the feed that are not written yet, column by column.
    pub(crate) untold: Vec<[Option<i64>; 7]>,
}

impl<'e> Transaction<'e> {
    pub(crate) fn new(db: Handle<'e>, place: Place) -> Self {
        Self { db, place, changes: Vec::new(), untold: Vec::new() }
    }

    /// The sequence that the next request begins with, if this one is kept.
    pub(crate) const fn next_free(&self) -> i64 {
        self.place.next_sequence
    }

    /// Notes a change for observers.
    pub(crate) fn changed(&mut self, change: Change) {
        self.changes.push(change);
    }
}

impl Snapshot for Transaction<'_> {
    fn now(&self) -> Timestamp {
        self.place.now
    }
}

impl Tx for Transaction<'_> {
    fn next_sequence(&mut self) -> Sequence {
        let taken = Sequence::from_number(self.place.next_sequence);
        self.place.next_sequence = taken.next().number();
        taken
    }

    fn last_sequence(&self) -> Sequence {
        Sequence::from_number(self.place.next_sequence - 1)
    }

    fn changes(&self) -> &[Change] {
        &self.changes
    }

    fn ownership(&self) -> Ownership {
        self.place.ownership
    }

    fn put_ownership(&mut self, next: Ownership) {
        self.place.ownership = next;
    }
}

impl IssueTx for Transaction<'_> {}
