//! The coordination row, and what each life of a process has committed.

use domain::id::{Epoch, Incarnation};
use domain::lease::Lease;
use domain::ownership::Ownership;
use domain::store::StoreError;
use domain::time::Timestamp;

use crate::db::{self, Columns, Db, Sql, Value, int, maybe_int, maybe_time, text, time};
use crate::options::Host;

/// What a writer needs to know of the database before it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Coordination {
    /// The sequence that is given out next.
    pub(crate) next_sequence: i64,
    /// The highest time that was committed.
    pub(crate) clock: Timestamp,
    /// Who owns the loops.
    pub(crate) ownership: Ownership,
}

/// A life of a process, as the database has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Registered {
    pub(crate) incarnation: i64,
    /// The number of its host, by which the attempts that it can look after are found.
    pub(crate) host: i64,
}

/// Who registers a life.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lives<'h> {
    /// The only process of the database. Whatever an earlier one left is its own.
    Alone,
    /// One of several, on a host; without one, on a host that nobody else is on, ever.
    On(Option<&'h Host>),
}

/// The host of a process that has the database alone.
const ALONE: i64 = 0;

static READ: Sql = Sql::new(
    "read the coordination row",
    "coordination",
    "SELECT next_sequence, clock, epoch, owner, lease_until FROM coordination WHERE id = 1",
);

// The time may go back: a step of the wall clock that was too large to clamp has been accepted.
static ADVANCE: Sql = Sql::new(
    "advance the coordination row",
    "coordination",
    "UPDATE coordination SET next_sequence = $1, clock = $2, epoch = $3, owner = $4, lease_until = $5
     WHERE id = 1",
);

static NEWEST_WRITER: Sql = Sql::new(
    "read the newest writer",
    "writer",
    "SELECT incarnation FROM writer ORDER BY incarnation DESC LIMIT 1",
);

static INSERT_WRITER: Sql = Sql::new(
    "register the writer",
    "writer",
    "INSERT INTO writer (incarnation, host, batch, started_at) VALUES ($1, $2, 0, $3)",
);

static HOST_OF: Sql =
    Sql::new("read a writer's host", "writer", "SELECT host FROM writer WHERE incarnation = $1");

static HOST: Sql = Sql::new("find the host", "host", "SELECT number FROM host WHERE identity = $1");

static NEWEST_HOST: Sql =
    Sql::new("read the newest host", "host", "SELECT number FROM host ORDER BY number DESC LIMIT 1");

// A host may be called something else today.
static PUT_HOST: Sql = Sql::new(
    "note the host",
    "host",
    "INSERT INTO host (number, identity, label) VALUES ($1, $2, $3)
     ON CONFLICT (number) DO UPDATE SET label = $3",
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

/// Decodes `next_sequence, clock, epoch, owner, lease_until`.
pub(crate) fn decode(columns: &mut Columns<'_>) -> Result<Coordination, StoreError> {
    Ok(Coordination {
        next_sequence: columns.int()?,
        clock: columns.time()?,
        ownership: Ownership {
            epoch: Epoch::from_number(columns.int()?),
            lease: match (columns.maybe_int()?, columns.maybe_time()?) {
                (Some(owner), Some(until)) => Some(Lease { owner: Incarnation::from_number(owner), until }),
                (None, None) => None,
                (Some(_), None) | (None, Some(_)) => return Err(columns.corrupt("half a lease")),
            },
        },
    })
}

/// The coordination row.
pub(crate) fn read(db: &mut dyn Db) -> Result<Coordination, StoreError> {
    let row = one(db, &READ, &[], decode)?;
    row.ok_or_else(|| StoreError::Corrupt { table: "coordination", reason: "its row is missing".to_owned() })
}

/// Registers a new life of a process.
pub(crate) fn register(db: &mut dyn Db, now: Timestamp, lives: Lives<'_>) -> Result<Registered, StoreError> {
    let incarnation = one(db, &NEWEST_WRITER, &[], db::number)?.unwrap_or(0) + 1;
    let host = match lives {
        Lives::Alone => ALONE,
        Lives::On(None) => -incarnation,
        Lives::On(Some(host)) => number_host(db, host)?,
    };
    db.write(&INSERT_WRITER, &[int(incarnation), int(host), time(now)], 1)?;
    Ok(Registered { incarnation, host })
}

/// Frees the loops when an earlier life on the same host has them. It has ended, or this one could not be
/// there, so nobody need wait for its lease.
pub(crate) fn free_of_the_dead(db: &mut dyn Db, now: Coordination, host: i64) -> Result<(), StoreError> {
    let Some(lease) = now.ownership.lease else { return Ok(()) };
    if one(db, &HOST_OF, &[int(lease.owner.number())], db::number)? == Some(host) {
        let ownership = Ownership { lease: None, ..now.ownership };
        advance(db, Coordination { ownership, ..now })?;
    }
    Ok(())
}

fn number_host(db: &mut dyn Db, host: &Host) -> Result<i64, StoreError> {
    let number = match one(db, &HOST, &[text(&host.identity)], db::number)? {
        Some(known) => known,
        None => one(db, &NEWEST_HOST, &[], db::number)?.unwrap_or(ALONE) + 1,
    };
    db.write(&PUT_HOST, &[int(number), text(&host.identity), text(&host.label)], 1)?;
    Ok(number)
}

/// The last batch that a life of a process committed.
pub(crate) fn batch(db: &mut dyn Db, incarnation: i64) -> Result<i64, StoreError> {
    one(db, &BATCH, &[int(incarnation)], db::number)?.ok_or(StoreError::Conflict { what: BATCH.what })
}

/// Where sequences go on, the highest time, and who owns the loops.
pub(crate) fn advance(db: &mut dyn Db, next: Coordination) -> Result<(), StoreError> {
    let Ownership { epoch, lease } = next.ownership;
    let values = [
        int(next.next_sequence),
        time(next.clock),
        int(epoch.number()),
        maybe_int(lease.map(|lease| lease.owner.number())),
        maybe_time(lease.map(|lease| lease.until)),
    ];
    db.write(&ADVANCE, &values, 1)
}

/// The last statements of a transaction: the coordination row, and which batch it was.
pub(crate) fn close(
    db: &mut dyn Db,
    next: Coordination,
    incarnation: i64,
    batch: i64,
) -> Result<(), StoreError> {
    advance(db, next)?;
    db.write(&NOTE_BATCH, &[int(incarnation), int(batch)], 1)
}
