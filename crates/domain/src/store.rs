//! The storage contract: what the rules need of a database, and nothing a database decides.
//!
//! A transaction is a synchronous closure over [`Tx`]. It cannot await, so no executor, handler or network
//! call can hide in one. It may run more than once, so times and ids come from outside it: `tx.now()` is the
//! admission time, and new ids are proposed before. What it returns is durable when [`Store::transact`]
//! answers. Methods are record-shaped; no rule stands in SQL.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use thiserror::Error;

use crate::feed::Change;
use crate::id::{IdMaker, Incarnation, Sequence};
use crate::ownership::{NotOwner, Ownership, Tenure};
use crate::time::Timestamp;

pub mod access;
pub mod alias;
pub mod budget;
pub mod config;
pub mod credential;
pub mod event;
pub mod execution;
pub mod feed;
pub mod intent;
pub mod kv;
pub mod pause;
pub mod recurrence;
pub mod retention;
pub mod route;
pub mod start;
pub mod succession;
pub mod timer;
pub mod toolbelt;
pub mod wait;
pub mod work;

pub use access::{AccessReads, AccessWrites, Session, Token};
pub use alias::{AliasReads, AliasWrites};
pub use budget::{BudgetReads, BudgetWrites};
pub use config::{ConfigReads, ConfigWrites, GenerationRow};
pub use credential::{CredentialReads, CredentialWrites};
pub use event::{EventFilter, EventReads, EventWrites};
pub use execution::{ExecutionFilter, ExecutionReads, ExecutionWrites, Outline, Stranded};
pub use feed::{FeedReads, FeedWrites};
pub use intent::{IntentReads, IntentWrites};
pub use kv::{KvReads, KvRow, KvWrites};
pub use pause::{InForce, PauseReads, PauseWrites};
pub use recurrence::{RecurrenceReads, RecurrenceWrites};
pub use retention::{RetentionReads, RetentionWrites};
pub use route::{RouteReads, RouteWrites, Unrouted};
pub use start::{LastSeen, Recovered, RecoveryTally, StartFilter, StartReads, StartRow, StartWrites};
pub use succession::{SuccessionReads, SuccessionWrites};
pub use timer::{TimerReads, TimerWrites};
pub use toolbelt::{ToolbeltReads, ToolbeltWrites};
pub use wait::{WaitFilter, WaitReads, WaitWrites};
pub use work::{WorkFilter, WorkReads, WorkWrites};

/// A consistent snapshot, to read from.
pub trait Snapshot:
    EventReads
    + RouteReads
    + WorkReads
    + ExecutionReads
    + TimerReads
    + RecurrenceReads
    + IntentReads
    + WaitReads
    + AliasReads
    + BudgetReads
    + ToolbeltReads
    + CredentialReads
    + RetentionReads
    + KvReads
    + ConfigReads
    + PauseReads
    + SuccessionReads
    + AccessReads
    + FeedReads
    + StartReads
{
    /// The moment of the snapshot or, in a transaction, its admission time.
    fn now(&self) -> Timestamp;
}

/// One transaction: a snapshot that can be written, alone.
pub trait Tx:
    Snapshot
    + EventWrites
    + RouteWrites
    + WorkWrites
    + ExecutionWrites
    + TimerWrites
    + RecurrenceWrites
    + IntentWrites
    + WaitWrites
    + AliasWrites
    + BudgetWrites
    + ToolbeltWrites
    + CredentialWrites
    + RetentionWrites
    + KvWrites
    + ConfigWrites
    + PauseWrites
    + SuccessionWrites
    + AccessWrites
    + FeedWrites
    + StartWrites
{
    /// Takes the next sequence. Sequences are in the order of commits; gaps are allowed.
    fn next_sequence(&mut self) -> Sequence;

    /// The highest sequence taken so far, by this transaction included.
    fn last_sequence(&self) -> Sequence;

    /// What this transaction has changed so far, in order.
    fn changes(&self) -> &[Change];

    /// Who owns the loops of this database. It costs no statement.
    fn ownership(&self) -> Ownership;

    /// Sets who owns the loops. It costs no statement beyond what every commit has.
    fn put_ownership(&mut self, next: Ownership);
}

/// Refuses a transaction of a loop that no longer is its owner's. It comes first in the body.
///
/// # Errors
/// [`StoreError::NotOwner`].
pub fn fence(tx: &dyn Tx, tenure: Tenure) -> Result<(), StoreError> {
    Ok(tx.ownership().authorize(tenure, tx.now())?)
}

/// Sees what a transaction changed, inside it, and may write beside it. A module's own tables travel as
/// the parameter `X`, so `domain` need not know them.
pub trait Observer<X: ?Sized>: fmt::Debug + Send + Sync {
    /// Looks at the changes of a transaction that is about to end.
    ///
    /// # Errors
    /// [`StoreError`] undoes the transaction.
    fn observe(&self, tx: &mut X, changes: &[Change]) -> Result<(), StoreError>;
}

/// Why the store could not do what was asked. The transaction left nothing behind.
#[derive(Debug, Clone, Error)]
pub enum StoreError {
    /// A write found its record changed or gone. The caller rereads and tries again.
    #[error("a record changed meanwhile ({what})")]
    Conflict {
        /// Which write.
        what: &'static str,
    },
    /// The database refused or failed.
    #[error("the database failed while it was to {operation}")]
    Database {
        /// What was to be done.
        operation: &'static str,
        /// What it said.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// A stored record is not one of ours.
    #[error("a stored {table} row cannot be read: {reason}")]
    Corrupt {
        /// The table.
        table: &'static str,
        /// Why, without its content.
        reason: String,
    },
    /// The body of the transaction panicked. Its effects were undone.
    #[error("a transaction failed by a bug of ours ({label}): {message}")]
    Panicked {
        /// The transaction.
        label: &'static str,
        /// The panic's message.
        message: String,
    },
    /// The disk is full.
    #[error("the disk of the database is full; free some space")]
    Full,
    /// Whether the transaction was committed could not be found out. The store has reopened itself.
    #[error("the database was lost during a commit")]
    Lost,
    /// The loops belong to another process, or to nobody; see [`Ownership`].
    #[error(transparent)]
    NotOwner(#[from] NotOwner),
    /// Another process owns the database.
    #[error("another process uses the database")]
    Locked,
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// The stable word for this error.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Conflict { .. } => "conflict",
            Self::Database { .. } => "database",
            Self::Corrupt { .. } => "corrupt_record",
            Self::Panicked { .. } => "bug",
            Self::Full => "disk_full",
            Self::Lost => "commit_unknown",
            Self::NotOwner(_) => "not_owner",
            Self::Locked => "database_locked",
            Self::Closed => "store_closed",
        }
    }
}

/// Which of two waiting requests goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Renewals and control: never behind a large batch.
    High,
    /// Everything else, in order of arrival.
    Normal,
}

/// Whether a body's writes are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// They are committed.
    Commit,
    /// They are undone; a body that wrote nothing costs nothing.
    Undo,
}

/// A transaction's body. It may be called again from the start.
pub type Body = Box<dyn FnMut(&mut dyn Tx) -> Flow + Send>;
/// A read's body.
pub type ReadBody = Box<dyn FnOnce(&mut dyn Snapshot) + Send>;
/// When it resolves, the request is durable, or undone.
pub type Submitted = Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send>>;

/// An implementation of the contract.
pub trait Backend: fmt::Debug + Send + Sync {
    /// Runs a body in a transaction, together with others, and answers after the commit.
    fn submit(&self, label: &'static str, priority: Priority, body: Body) -> Submitted;

    /// Runs a body on a snapshot.
    fn read(&self, label: &'static str, body: ReadBody) -> Submitted;

    /// The store's clock.
    fn now(&self) -> Timestamp;

    /// This process's life on this database.
    fn incarnation(&self) -> Incarnation;

    /// Whether having opened the database proves that every earlier incarnation on it has ended.
    fn exclusive(&self) -> bool;

    /// Figures for people: engine, version, file, sizes, commits. Names are stable.
    fn facts(&self) -> Vec<(&'static str, String)>;

    /// Finishes what was submitted, then closes.
    fn close(&self) -> Submitted;

    /// For a test or a tool that knows the engine.
    fn as_any(&self) -> &dyn Any;
}

/// A handle on the database. Clones share it.
#[derive(Debug, Clone)]
pub struct Store {
    backend: Arc<dyn Backend>,
    ids: Arc<Mutex<IdMaker>>,
}

impl Store {
    /// Wraps an implementation.
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        let ids = Arc::new(Mutex::new(IdMaker::new(backend.incarnation())));
        Self { backend, ids }
    }

    /// Runs `body` in a transaction at normal priority. `label` names it in metrics and errors.
    ///
    /// # Errors
    /// What `body` returned, its writes undone; or the [`StoreError`] that prevented it.
    pub async fn transact<T, E>(
        &self,
        label: &'static str,
        body: impl FnMut(&mut dyn Tx) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.transact_at(Priority::Normal, label, body).await
    }

    /// As [`Self::transact`], at a chosen priority.
    ///
    /// # Errors
    /// As [`Self::transact`].
    pub async fn transact_at<T, E>(
        &self,
        priority: Priority,
        label: &'static str,
        mut body: impl FnMut(&mut dyn Tx) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let slot = Arc::new(Mutex::new(None));
        let answer = Arc::clone(&slot);
        let body: Body = Box::new(move |tx| {
            let result = body(tx);
            let flow = if result.is_ok() { Flow::Commit } else { Flow::Undo };
            *answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            flow
        });
        self.backend.submit(label, priority, body).await?;
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        slot.take().expect("a submitted body has run when the submission resolves")
    }

    /// Reads from a consistent snapshot.
    ///
    /// # Errors
    /// What `body` returned, or the [`StoreError`] that prevented it.
    pub async fn read<T, E>(
        &self,
        label: &'static str,
        body: impl FnOnce(&mut dyn Snapshot) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let slot = Arc::new(Mutex::new(None));
        let answer = Arc::clone(&slot);
        let body: ReadBody = Box::new(move |snapshot| {
            let result = body(snapshot);
            *answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        });
        self.backend.read(label, body).await?;
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        slot.take().expect("a read body has run when the read resolves")
    }

    /// The store's clock.
    pub fn now(&self) -> Timestamp {
        self.backend.now()
    }

    /// Whether the engine has a figure of this name to tell.
    pub fn facts_say(&self, name: &str) -> bool {
        self.backend.facts().iter().any(|(known, _value)| *known == name)
    }

    /// This process's life on this database.
    pub fn incarnation(&self) -> Incarnation {
        self.backend.incarnation()
    }

    /// Whether having opened the database proves that every earlier incarnation on it has ended.
    pub fn exclusive(&self) -> bool {
        self.backend.exclusive()
    }

    /// Makes ids, to propose to a transaction.
    pub fn ids<T>(&self, make: impl FnOnce(&mut IdMaker, Timestamp) -> T) -> T {
        let mut maker = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        make(&mut maker, self.backend.now())
    }

    /// The implementation.
    pub fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    /// Finishes what was submitted, then closes.
    ///
    /// # Errors
    /// [`StoreError`] when the database fails at it.
    pub async fn close(&self) -> Result<(), StoreError> {
        self.backend.close().await
    }
}
