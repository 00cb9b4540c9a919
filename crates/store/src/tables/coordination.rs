//! The coordination row, and what each life of a process has committed.

use domain::store::StoreError;
use domain::time::Timestamp;

use crate::db::{self, Columns, Db, Sql, Value, int, time};

/// What a writer needs to know of the database before it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Coordination {
    /// The sequence that is given out next.
    pub(crate) next_sequence: i64,
    /// The highest time that was committed.
    pub(crate) clock: Timestamp,
}

static READ: Sql = Sql::new(
    "read the coordination row",
    "coordination",
    "SELECT next_sequence, clock FROM coordination WHERE id = 1",
);

// The time may go back: a step of the wall clock that was too large to clamp has been accepted.
static ADVANCE: Sql = Sql::new(
    "advance the coordination row",
    "coordination",
    "UPDATE coordination SET next_sequence = $1, clock = $2 WHERE id = 1",
);

static NEWEST_WRITER: Sql = Sql::new(
    "read the newest writer",
    "writer",
    "SELECT incarnation FROM writer ORDER BY incarnation DESC LIMIT 1",
);

static INSERT_WRITER: Sql = Sql::new(
    "register the writer",
    "writer",
    "INSERT INTO writer (incarnation, batch, started_at) VALUES ($1, 0, $2)",
);

static BATCH: Sql =
    Sql::new("read the writer's last batch", "writer", "SELECT batch FROM writer WHERE incarnation = $1");

static NOTE_BATCH: Sql =
    Sql::new("note the writer's batch", "writer", "UPDATE writer SET batch = $2 WHERE incarnation = $1");

fn one<T>(
    on: &mut dyn Db,
    sql: &'static Sql,
    values: &[Value<'_>],
    decode: impl Fn(&mut Columns<'_>) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    let mut found = None;
    on.query(sql, values, &mut |row| {
        found = Some(decode(&mut Columns::new(sql.table, row))?);
        Ok(())
    })?;
    Ok(found)
}

/// The coordination row.
pub(crate) fn read(db: &mut dyn Db) -> Result<Coordination, StoreError> {
    let row = one(db, &READ, &[], |columns| {
        Ok(Coordination { next_sequence: columns.int()?, clock: columns.time()? })
    })?;
    row.ok_or_else(|| StoreError::Corrupt { table: "coordination", reason: "its row is missing".to_owned() })
}

/// Registers a new life of a process. Returns its incarnation.
pub(crate) fn register(db: &mut dyn Db, now: Timestamp) -> Result<i64, StoreError> {
    let newest = one(db, &NEWEST_WRITER, &[], db::number)?.unwrap_or(0);
    db.write(&INSERT_WRITER, &[int(newest + 1), time(now)], 1)?;
    Ok(newest + 1)
}

/// The last batch that a life of a process committed.
pub(crate) fn batch(db: &mut dyn Db, incarnation: i64) -> Result<i64, StoreError> {
    one(db, &BATCH, &[int(incarnation)], db::number)?.ok_or(StoreError::Conflict { what: BATCH.what })
}

/// The last statements of a transaction: where sequences go on, the highest time, and which batch it was.
pub(crate) fn close(
    db: &mut dyn Db,
    next: Coordination,
    incarnation: i64,
    batch: i64,
) -> Result<(), StoreError> {
    db.write(&ADVANCE, &[int(next.next_sequence), time(next.clock)], 1)?;
    db.write(&NOTE_BATCH, &[int(incarnation), int(batch)], 1)
}
