//! The store: the only crate that knows SQL. It implements the storage contract of `domain` on two engines.
//!
//! A request travels from the top of this list to the bottom. [`open`] makes a `domain::store::Store`, whose
//! front (`backend`) puts bodies into a bounded `queue`; one of the `threads` takes them out; the `writer`
//! runs them in groups, one transaction and one durable commit for each group; a body sees a `tx`, on which
//! the `tables` implement the contract with statements written once; an `engine` runs those on SQLite or
//! PostgreSQL.

use std::path::PathBuf;
use std::sync::Arc;

use domain::id::Incarnation;
use domain::store::{Store, StoreError};

mod options;
mod clock;
mod fault;
mod backend;
mod queue;
mod threads;
mod reads;
mod writer;
mod tx;
mod db;
mod tables;
mod migrate;
mod engine;
mod counters;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
mod tape;

pub use clock::system_clock;
pub use fault::{CommitFault, Faults, Point};
pub use options::{Host, IssueObserver, Location, LocationError, Options};
pub use tape::{Said, Spoken, Tape};

use backend::{Database, Runs};
use clock::StoreClock;
use counters::Counters;
use engine::postgres::{Postgres, PostgresReader};
use engine::sqlite::{Sqlite, SqliteReader, log_bytes};
use tables::coordination::Registered;
use threads::Threads;
use writer::{Ways, Writer, message};

/// Connections that read, for a SQLite file: enough that one slow list does not hold up a page.
const SQLITE_READERS: usize = 3;
/// Connections that read, for PostgreSQL.
const POSTGRES_READERS: usize = 2;

/// What opening an engine yields beside the writer.
struct Opened {
    clock: Arc<StoreClock>,
    incarnation: Incarnation,
    /// The number of this process's host.
    host: i64,
    facts: Vec<(&'static str, String)>,
}

/// Opens a database, creates it where there is none, and brings its schema up to date.
///
/// # Errors
/// [`StoreError::Locked`] when another process, or another store of this one, holds the file;
/// [`StoreError::Database`] when the database cannot be reached, or was written by a newer version.
pub async fn open(location: &Location, options: Options) -> Result<Store, StoreError> {
    let database = match location {
        Location::Memory => open_sqlite(None, options).await?,
        Location::Sqlite(path) => open_sqlite(Some(path.clone()), options).await?,
        Location::Postgres(dsn) => open_postgres(dsn.clone(), options).await?,
    };
    Ok(Store::new(Arc::new(database)))
}

fn start_sqlite(
    path: Option<PathBuf>,
    options: Options,
    counters: Arc<Counters>,
) -> Result<(Writer<Sqlite>, Opened), StoreError> {
    let mut engine = Sqlite::open(path)?;
    let clock = Arc::new(StoreClock::start(options.clock, engine.highest()));
    let Registered { incarnation, host } = engine.register(clock.now())?;
    let incarnation = Incarnation::from_number(incarnation);
    let facts = engine.facts();
    let ways = Ways {
        clock: Arc::clone(&clock),
        host,
        counters,
        observers: options.observers,
        faults: options.faults,
        tape: options.tape,
        rehearse: options.rehearse,
    };
    Ok((Writer::new(engine, ways), Opened { clock, incarnation, host, facts }))
}

async fn open_sqlite(path: Option<PathBuf>, options: Options) -> Result<Database, StoreError> {
    let counters = Arc::new(Counters::default());
    let counted = Arc::clone(&counters);
    let file = path.clone();
    let (runs, opened) = if options.inline {
        let (writer, opened) = start_sqlite(path, options, counted)?;
        (Runs::Inline(Box::new(std::sync::Mutex::new(Some(writer)))), opened)
    } else {
        let start = move || start_sqlite(path, options, counted);
        let (mut threads, opened) =
            Threads::start(|opened: &Opened| Arc::clone(&opened.clock), start).await?;
        if let Some(file) = file.clone() {
            threads
                .add_readers(SQLITE_READERS, &opened.clock, opened.host, move || SqliteReader::open(&file))
                .await?;
        }
        (Runs::Threads { threads, blocking: false }, opened)
    };
    let mut facts = opened.facts;
    if let Some(file) = &file {
        facts.push(("file", file.display().to_string()));
    }
    Ok(Database {
        runs,
        clock: opened.clock,
        counters,
        incarnation: opened.incarnation,
        // Another life of this file would still hold its lock.
        exclusive: true,
        facts,
        log_bytes: file
            .map(|file| -> Box<dyn Fn() -> u64 + Send + Sync> { Box::new(move || log_bytes(&file)) }),
    })
}

fn start_postgres(
    dsn: &str,
    options: Options,
    counters: Arc<Counters>,
) -> Result<(Writer<Postgres>, Opened), StoreError> {
    let mut engine = Postgres::open(dsn)?;
    let clock = if options.own_time {
        Arc::new(StoreClock::start(options.clock, engine.highest()))
    } else {
        let clock = Arc::new(StoreClock::at(options.clock, engine.database_now()));
        engine.lead(Arc::clone(&clock));
        clock
    };
    let Registered { incarnation, host } = engine.register(clock.now(), options.host.as_ref())?;
    let incarnation = Incarnation::from_number(incarnation);
    let facts = engine.facts()?;
    let ways = Ways {
        clock: Arc::clone(&clock),
        host,
        counters,
        observers: options.observers,
        faults: options.faults,
        tape: options.tape,
        rehearse: options.rehearse,
    };
    Ok((Writer::new(engine, ways), Opened { clock, incarnation, host, facts }))
}

async fn open_postgres(dsn: String, options: Options) -> Result<Database, StoreError> {
    let counters = Arc::new(Counters::default());
    let counted = Arc::clone(&counters);
    // A connection needs its own thread to be driven, so the calling thread waits for that instead.
    let blocking = options.inline;
    let reads = dsn.clone();
    let start = move || start_postgres(&dsn, options, counted);
    let (mut threads, opened) = Threads::start(|opened: &Opened| Arc::clone(&opened.clock), start).await?;
    threads
        .add_readers(POSTGRES_READERS, &opened.clock, opened.host, move || PostgresReader::open(&reads))
        .await?;
    Ok(Database {
        runs: Runs::Threads { threads, blocking },
        clock: opened.clock,
        counters,
        incarnation: opened.incarnation,
        // Other nodes may be at work on the same database.
        exclusive: false,
        facts: opened.facts,
        log_bytes: None,
    })
}
