//! What the writer needs of a database. An engine holds connections, transactions, binding and dialect;
//! everything that both engines do alike stands above it.

use domain::store::StoreError;

use crate::db::Db;
use crate::tables::coordination::Coordination;

pub(crate) mod postgres;
pub(crate) mod sqlite;

/// How a commit failed.
#[derive(Debug)]
pub(crate) enum CommitError {
    /// It certainly did not happen.
    Refused(StoreError),
    /// Nobody knows. The writer's row will tell, on a new connection.
    Unknown,
}

/// The one connection that writes.
pub(crate) trait Engine: Db {
    /// Opens a transaction that excludes every other writer of the database.
    fn begin(&mut self) -> Result<Coordination, StoreError>;

    /// Whether the transaction still takes statements. After an error it may be gone, and not only the
    /// statement that met it.
    fn is_open(&self) -> bool;

    /// Whether the last error is nobody's fault, so that the whole batch runs again. Forgets it.
    fn take_passing(&mut self) -> bool;

    /// Ends the transaction without effect. Harmless when it is gone already.
    fn rollback(&mut self) -> Result<(), StoreError>;

    /// Writes where the next transaction begins, and the number of this batch.
    fn close(&mut self, next: Coordination, batch: i64) -> Result<(), StoreError>;

    /// Makes the transaction durable.
    fn commit(&mut self, next: Coordination) -> Result<(), CommitError>;

    /// Marks a point in the transaction to go back to.
    fn mark(&mut self) -> Result<(), StoreError>;

    /// Goes back to the mark, and forgets it.
    fn undo_to_mark(&mut self) -> Result<(), StoreError>;

    /// Gives up the connection, makes another, and reads the last batch this writer committed.
    fn reopen(&mut self) -> Result<i64, StoreError>;

    /// Looks after the files, between transactions. `idle` when nobody waits.
    fn maintain(&mut self, idle: bool);

    /// Ends well.
    fn finish(&mut self) -> Result<(), StoreError>;
}

/// A connection that reads snapshots.
pub(crate) trait Reader {
    /// Opens a snapshot.
    fn begin(&mut self) -> Result<&mut dyn Db, StoreError>;

    /// Ends it.
    fn end(&mut self) -> Result<(), StoreError>;
}
