//! One connection, with the statements it has prepared and the writes it has sent ahead.

use std::collections::HashMap;
use std::error::Error as _;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::str::FromStr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use domain::store::StoreError;
use tokio::runtime::Runtime;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Error, NoTls, Socket, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::value::{Owned, types};
use super::{CommitError, tls};
use crate::db::{Db, EachRow, Sql, Value};
use crate::migrate::Schema;

/// What every connection is told, in milliseconds: nothing of ours takes that long, and a connection whose
/// process is gone must not hold the coordination row for ever. A process that was suspended inside a transaction
/// holds up every other one until the last of these is over. A statement is planned once, as on SQLite: each is made
/// for its index, whatever is bound to it and however small its table is when it is planned.
const SESSION: &str = "SET statement_timeout = 60000; SET lock_timeout = 60000;
    SET idle_in_transaction_session_timeout = 5000;
    SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET jit = off";
/// The advisory lock that migrations take, so that two nodes that start at once take turns.
const MIGRATION_LOCK: &str = "SELECT pg_advisory_xact_lock(7239470156)";

/// How to connect.
#[derive(Clone)]
pub(super) struct Settings {
    config: Config,
    tls: Option<MakeRustlsConnect>,
}

impl Settings {
    /// Reads a connection string.
    pub(super) fn parse(dsn: &str) -> Result<Self, StoreError> {
        let mut config =
            Config::from_str(dsn).map_err(|error| database("read its connection string", error))?;
        if config.get_application_name().is_none() {
            config.application_name("open-conduit");
        }
        let tls = tls::connector(&config)?;
        Ok(Self { config, tls })
    }
}

fn database(operation: &'static str, error: Error) -> StoreError {
    StoreError::Database { operation, source: Arc::new(error) }
}

/// The answer to a write that was sent ahead: how many rows it hit.
type Sent = Pin<Box<dyn Future<Output = Result<u64, Error>> + Send>>;

/// A write whose answer is awaited later.
struct Queued {
    what: &'static str,
    /// The rows it must hit.
    rows: u64,
    sent: Sent,
}

/// A connection.
pub(super) struct Link {
    runtime: Runtime,
    settings: Settings,
    client: Arc<Client>,
    statements: HashMap<usize, Statement>,
    queued: Vec<Queued>,
    /// Whether a transaction has begun and not ended.
    open: bool,
    /// Whether that transaction refuses statements because one of them failed.
    aborted: bool,
    /// Whether the last failure says nothing about the request that met it.
    passing: bool,
}

/// Connects, and lets the runtime drive the connection.
fn connect(runtime: &Runtime, settings: &Settings) -> Result<Arc<Client>, StoreError> {
    let connected = runtime.block_on(async {
        let client = match &settings.tls {
            Some(tls) => attach(runtime, &settings.config, tls.clone()).await?,
            None => attach(runtime, &settings.config, NoTls).await?,
        };
        client.batch_execute(SESSION).await?;
        Ok(client)
    });
    connected.map(Arc::new).map_err(|error| database("connect", error))
}

async fn attach<T>(runtime: &Runtime, config: &Config, tls: T) -> Result<Client, Error>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
{
    let (client, connection) = config.connect(tls).await?;
    runtime.spawn(async move {
        if let Err(error) = connection.await {
            tracing::warn!(%error, "a connection to the database was lost");
        }
    });
    Ok(client)
}

/// Whether an error comes from losing the connection, from a server that is going down or coming up, or from one that
/// waited too long for us.
fn is_loss(error: &Error) -> bool {
    let down = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    ];
    match error.code() {
        Some(code) => down.contains(code) || code.code().starts_with("08"),
        None => error.is_closed() || error.source().is_some_and(<dyn std::error::Error>::is::<io::Error>),
    }
}

impl Link {
    pub(super) fn connect(settings: Settings) -> Result<Self, StoreError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime
            .map_err(|error| StoreError::Database { operation: "connect", source: Arc::new(error) })?;
        let client = connect(&runtime, &settings)?;
        Ok(Self {
            runtime,
            settings,
            client,
            statements: HashMap::new(),
            queued: Vec::new(),
            open: false,
            aborted: false,
            passing: false,
        })
    }

    /// Gives up the connection and makes another.
    pub(super) fn reconnect(&mut self) -> Result<(), StoreError> {
        self.queued.clear();
        self.statements.clear();
        self.open = false;
        self.aborted = false;
        self.client = connect(&self.runtime, &self.settings)?;
        Ok(())
    }

    /// Makes another connection if this one was lost.
    pub(super) fn revive(&mut self) -> Result<(), StoreError> {
        if self.client.is_closed() { self.reconnect() } else { Ok(()) }
    }

    pub(super) fn is_open(&self) -> bool {
        self.open && !self.aborted && !self.client.is_closed()
    }

    pub(super) fn take_passing(&mut self) -> bool {
        std::mem::take(&mut self.passing)
    }

    /// What the server said, as the contract has it.
    fn failed(&mut self, what: &'static str, error: Error) -> StoreError {
        self.aborted = true;
        let code = error.code();
        self.passing |= is_loss(&error)
            || code == Some(&SqlState::T_R_SERIALIZATION_FAILURE)
            || code == Some(&SqlState::T_R_DEADLOCK_DETECTED);
        if code == Some(&SqlState::DISK_FULL) {
            StoreError::Full
        } else if code == Some(&SqlState::UNIQUE_VIOLATION) {
            StoreError::Conflict { what }
        } else {
            database(what, error)
        }
    }

    /// Begins a transaction: the message goes out with the first statement.
    pub(super) fn begin(&mut self, text: &'static str) -> Result<(), StoreError> {
        self.open = true;
        self.aborted = false;
        let client = Arc::clone(&self.client);
        let sent = Box::pin(async move { client.batch_execute(text).await.map(|()| 0) });
        self.send("begin a transaction", 0, sent)
    }

    /// Runs a statement that is neither a write to a table nor a read.
    pub(super) fn command(&mut self, text: &str) -> Result<(), StoreError> {
        self.flush()?;
        let done = self.runtime.block_on(self.client.batch_execute(text));
        done.map_err(|error| self.failed("run a command", error))
    }

    /// Goes back to a savepoint, which also ends an abortion.
    pub(super) fn undo(&mut self, text: &str) -> Result<(), StoreError> {
        self.flush().ok();
        let done = self.runtime.block_on(self.client.batch_execute(text));
        done.map_err(|error| self.failed("roll back to a savepoint", error))?;
        self.aborted = false;
        Ok(())
    }

    pub(super) fn rollback(&mut self) -> Result<(), StoreError> {
        // What the queued writes would have said is of no interest any more.
        self.flush().ok();
        let open = std::mem::take(&mut self.open);
        if !open || self.client.is_closed() {
            // With its connection, the transaction is gone.
            return Ok(());
        }
        let done = self.runtime.block_on(self.client.batch_execute("ROLLBACK"));
        match done {
            Err(error) if !is_loss(&error) => Err(self.failed("roll back", error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    pub(super) fn commit(&mut self) -> Result<(), CommitError> {
        let done = self.runtime.block_on(self.client.batch_execute("COMMIT"));
        match done {
            Ok(()) => {
                self.open = false;
                Ok(())
            }
            Err(error) if is_loss(&error) => {
                tracing::error!(%error, "a commit was lost; its fate will be looked up");
                Err(CommitError::Unknown)
            }
            Err(error) => Err(CommitError::Refused(self.failed("commit", error))),
        }
    }

    /// A setting of the server.
    pub(super) fn setting(&mut self, name: &str) -> Result<String, StoreError> {
        let values: [&(dyn ToSql + Sync); 1] = [&name];
        let read = self.client.query_one("SELECT current_setting($1)", &values);
        let read = self.runtime.block_on(read).and_then(|row| row.try_get(0));
        read.map_err(|error| self.failed("read a setting", error))
    }

    /// Ends the connection.
    pub(super) fn finish(&mut self) {
        self.rollback().ok();
    }

    /// The prepared statement for `sql`, made at its first use.
    fn prepared(&mut self, sql: &'static Sql, values: &[Value<'_>]) -> Result<Statement, StoreError> {
        if let Some(statement) = self.statements.get(&sql.key()) {
            return Ok(statement.clone());
        }
        let prepared = self.runtime.block_on(self.client.prepare_typed(sql.text, &types(values)));
        match prepared {
            Ok(statement) => {
                self.statements.insert(sql.key(), statement.clone());
                Ok(statement)
            }
            Err(error) => {
                // It may fail only because a write that was sent ahead has: that is the error to tell.
                self.flush()?;
                Err(self.failed(sql.what, error))
            }
        }
    }

    /// Sends a statement and goes on.
    fn send(&mut self, what: &'static str, rows: u64, mut sent: Sent) -> Result<(), StoreError> {
        // The first poll puts the message on its way.
        match sent.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => {
                self.queued.push(Queued { what, rows, sent });
                Ok(())
            }
            Poll::Ready(Ok(_at_once)) => Ok(()),
            Poll::Ready(Err(error)) => Err(self.failed(what, error)),
        }
    }

    /// Waits for everything that was sent ahead, and for what `last` asks behind it, in one round trip.
    fn settle<T>(
        &mut self,
        what: &'static str,
        last: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, StoreError> {
        let queued = std::mem::take(&mut self.queued);
        let (first, answer) = self.runtime.block_on(async {
            let mut last = pin!(last);
            let early = poll_fn(|context| Poll::Ready(last.as_mut().poll(context))).await;
            let first = first_failure(queued).await;
            let answer = match early {
                Poll::Ready(answer) => answer,
                Poll::Pending => last.await,
            };
            (first, answer)
        });
        match (first, answer) {
            (Some((what, Some(error))), _) => Err(self.failed(what, error)),
            (Some((what, None)), _) => Err(StoreError::Conflict { what }),
            (None, answer) => answer.map_err(|error| self.failed(what, error)),
        }
    }
}

/// The first of some writes that failed, or hit other rows than it must. Later ones failed because of it.
async fn first_failure(queued: Vec<Queued>) -> Option<(&'static str, Option<Error>)> {
    let mut first = None;
    for Queued { what, rows, sent } in queued {
        let failure = match sent.await {
            Ok(hit) if hit == rows => None,
            Ok(_other) => Some((what, None)),
            Err(error) => Some((what, Some(error))),
        };
        first = first.or(failure);
    }
    first
}

fn owned(values: &[Value<'_>]) -> Vec<Owned> {
    values.iter().map(Owned::from).collect()
}

impl Db for Link {
    fn write(&mut self, sql: &'static Sql, values: &[Value<'_>], rows: u64) -> Result<(), StoreError> {
        let statement = self.prepared(sql, values)?;
        let (client, values) = (Arc::clone(&self.client), owned(values));
        let sent = Box::pin(async move { client.execute_raw(&statement, &values).await });
        self.send(sql.what, rows, sent)
    }

    fn count(&mut self, sql: &'static Sql, values: &[Value<'_>]) -> Result<u64, StoreError> {
        let statement = self.prepared(sql, values)?;
        let (client, values) = (Arc::clone(&self.client), owned(values));
        self.settle(sql.what, async move { client.execute_raw(&statement, &values).await })
    }

    fn query(
        &mut self,
        sql: &'static Sql,
        values: &[Value<'_>],
        each: EachRow<'_>,
    ) -> Result<(), StoreError> {
        let statement = self.prepared(sql, values)?;
        let (client, values) = (Arc::clone(&self.client), owned(values));
        let rows = self.settle(sql.what, async move {
            let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
            client.query(&statement, &values).await
        })?;
        rows.iter().try_for_each(|row| each(row))
    }

    fn list(
        &mut self,
        sql: &'static Sql,
        text: &str,
        values: &[Value<'_>],
        each: EachRow<'_>,
    ) -> Result<(), StoreError> {
        let (client, kinds, values) = (Arc::clone(&self.client), types(values), owned(values));
        let rows = self.settle(sql.what, async move {
            let values = values.iter().map(|value| value as &(dyn ToSql + Sync));
            let typed: Vec<(&(dyn ToSql + Sync), _)> = values.zip(kinds).collect();
            client.query_typed(text, &typed).await
        })?;
        rows.iter().try_for_each(|row| each(row))
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        if self.queued.is_empty() {
            return Ok(());
        }
        self.settle("finish its writes", std::future::ready(Ok(())))
    }
}

impl Schema for Link {
    fn begin_migration(&mut self) -> Result<(), StoreError> {
        self.begin("BEGIN")?;
        self.command(MIGRATION_LOCK)
    }

    fn define(&mut self, statement: &str) -> Result<(), StoreError> {
        self.command(statement)
    }

    fn end_migration(&mut self, keep: bool) -> Result<(), StoreError> {
        if keep {
            self.open = false;
            self.command("COMMIT")
        } else {
            self.rollback()
        }
    }
}
