//! PostgreSQL: the same bodies and statements, for several hosts on one database.
//!
//! Every write transaction locks the coordination row first, so writers take turns and READ COMMITTED is
//! serializable by construction. Writes are sent ahead and their answers awaited before the next read, or
//! before the request counts as done. A connection belongs to one thread, which drives it while it waits.

use std::sync::Arc;

use domain::store::StoreError;
use domain::time::Timestamp;

use self::connection::{Link, Settings};
use super::{CommitError, Engine, Reader};
use crate::clock::StoreClock;
use crate::db::{Columns, Db, EachRow, Sql, Value};
use crate::migrate;
use crate::options::Host;
use crate::tables::coordination::{self, Coordination, Lives, Registered};
use crate::tables::schema::Dialect;

mod connection;
mod tls;
mod value;

/// What PostgreSQL calls things. Text is compared by its bytes, whatever the database's locale.
pub(crate) const DIALECT: Dialect =
    Dialect { int: "BIGINT", text: "TEXT COLLATE \"C\"", blob: "BYTEA", table: "", clustered: "" };

// The time is read outside the locked row, so that it is read after the wait for the lock.
static LOCK: Sql = Sql::new(
    "lock the coordination row",
    "coordination",
    "WITH locked AS MATERIALIZED (
        SELECT next_sequence, clock, epoch, owner, lease_until FROM coordination WHERE id = 1 FOR UPDATE
     )
     SELECT next_sequence, clock, epoch, owner, lease_until,
        CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT) FROM locked",
);

/// The engine.
pub(crate) struct Postgres {
    link: Link,
    incarnation: i64,
    /// The store's clock, when it follows the database's.
    follower: Option<Arc<StoreClock>>,
    highest: Timestamp,
    database_now: Timestamp,
}

impl Postgres {
    /// Connects, and brings the schema up to date.
    pub(crate) fn open(dsn: &str) -> Result<Self, StoreError> {
        let mut link = Link::connect(Settings::parse(dsn)?)?;
        migrate::run(&mut link, &DIALECT)?;
        let mut engine = Self {
            link,
            incarnation: 0,
            follower: None,
            highest: Timestamp::EPOCH,
            database_now: Timestamp::EPOCH,
        };
        let coordination = engine.begin()?;
        engine.rollback()?;
        engine.highest = coordination.clock;
        Ok(engine)
    }

    /// The highest time the database has seen.
    pub(crate) const fn highest(&self) -> Timestamp {
        self.highest
    }

    /// The database's own time, as of the last transaction.
    pub(crate) const fn database_now(&self) -> Timestamp {
        self.database_now
    }

    /// Makes a clock follow the database's.
    pub(crate) fn lead(&mut self, clock: Arc<StoreClock>) {
        self.follower = Some(clock);
    }

    /// Registers this life of the process.
    pub(crate) fn register(&mut self, now: Timestamp, host: Option<&Host>) -> Result<Registered, StoreError> {
        let coordination = self.begin()?;
        let registered =
            coordination::register(&mut self.link, now, Lives::On(host)).and_then(|registered| {
                coordination::free_of_the_dead(&mut self.link, coordination, registered.host)?;
                self.link.flush()?;
                Ok(registered)
            });
        match registered {
            Ok(registered) => {
                self.link.command("COMMIT")?;
                self.incarnation = registered.incarnation;
                Ok(registered)
            }
            Err(error) => {
                self.rollback()?;
                Err(error)
            }
        }
    }

    /// What there is to say about the engine.
    pub(crate) fn facts(&mut self) -> Result<Vec<(&'static str, String)>, StoreError> {
        Ok(vec![
            ("engine", "postgres".to_owned()),
            ("version", self.link.setting("server_version")?),
            ("synchronous", self.link.setting("synchronous_commit")?),
        ])
    }

    /// Locks the coordination row, in a transaction that has just begun.
    fn lock(&mut self) -> Result<Coordination, StoreError> {
        let mut found = None;
        self.link.query(&LOCK, &[], &mut |row| {
            let mut columns = Columns::new(LOCK.table, row);
            let coordination = coordination::decode(&mut columns)?;
            found = Some((coordination, columns.time()?));
            Ok(())
        })?;
        let (coordination, now) = found.ok_or_else(|| StoreError::Corrupt {
            table: LOCK.table,
            reason: "its row is missing".to_owned(),
        })?;
        self.database_now = now;
        if let Some(clock) = &self.follower {
            clock.set(now);
        }
        Ok(coordination)
    }
}

impl Db for Postgres {
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
        self.link.flush()
    }
}

impl Engine for Postgres {
    fn begin(&mut self) -> Result<Coordination, StoreError> {
        self.link.revive()?;
        self.link.begin("BEGIN ISOLATION LEVEL READ COMMITTED")?;
        self.lock()
    }

    fn is_open(&self) -> bool {
        self.link.is_open()
    }

    fn take_passing(&mut self) -> bool {
        self.link.take_passing()
    }

    fn rollback(&mut self) -> Result<(), StoreError> {
        self.link.rollback()
    }

    fn close(&mut self, next: Coordination, batch: i64) -> Result<(), StoreError> {
        coordination::close(&mut self.link, next, self.incarnation, batch)?;
        self.link.flush()
    }

    fn commit(&mut self, _next: Coordination) -> Result<(), CommitError> {
        self.link.commit()
    }

    fn mark(&mut self) -> Result<(), StoreError> {
        self.link.command("SAVEPOINT rehearsal")
    }

    fn undo_to_mark(&mut self) -> Result<(), StoreError> {
        self.link.undo("ROLLBACK TO SAVEPOINT rehearsal; RELEASE SAVEPOINT rehearsal")
    }

    fn reopen(&mut self) -> Result<i64, StoreError> {
        self.link.reconnect()?;
        // The transaction whose fate is asked held this lock. When we have it, that one has ended.
        let locked = self.begin();
        let batch = locked.and_then(|_coordination| coordination::batch(&mut self.link, self.incarnation));
        let ended = self.rollback();
        batch.and_then(|batch| ended.map(|()| batch))
    }

    fn maintain(&mut self, _idle: bool) {}

    fn finish(&mut self) -> Result<(), StoreError> {
        self.link.finish();
        Ok(())
    }
}

/// A connection that reads.
pub(crate) struct PostgresReader(Link);

impl PostgresReader {
    /// Connects to a database that a [`Postgres`] has prepared.
    pub(crate) fn open(dsn: &str) -> Result<Self, StoreError> {
        Ok(Self(Link::connect(Settings::parse(dsn)?)?))
    }

    fn open_snapshot(&mut self) -> Result<(), StoreError> {
        self.0.begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
        self.0.flush()
    }
}

impl Reader for PostgresReader {
    fn begin(&mut self) -> Result<&mut dyn Db, StoreError> {
        self.0.revive()?;
        if self.open_snapshot().is_err() && self.0.take_passing() {
            // The connection was lost while nobody looked. A read's body runs once, so try before it does.
            self.0.reconnect()?;
            self.open_snapshot()?;
        }
        Ok(&mut self.0)
    }

    fn end(&mut self) -> Result<(), StoreError> {
        self.0.rollback()
    }
}
