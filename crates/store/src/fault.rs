//! Failures on demand, for tests of what happens after one.
//!
//! Compiled in always, so that what is tested is what runs; a store without [`Faults`] pays a null check.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use domain::store::StoreError;

/// A point in a transaction's life at which a test may look, or copy the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Point {
    /// The transaction is open, and nothing is written.
    Begin,
    /// Everything is written, and nothing committed.
    BeforeCommit,
    /// The commit succeeded, and nobody has been answered.
    AfterCommit,
}

/// How a commit is to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitFault {
    /// It is reported as lost, and did not happen.
    Before,
    /// It is reported as lost, and did happen.
    After,
}

#[derive(Clone, Copy)]
enum StatementFault {
    Fails,
    DiskFull,
}

type Hook = Box<dyn Fn(Point) + Send + Sync>;

/// Failures that a test has ordered. Each happens once.
#[derive(Default)]
pub struct Faults {
    /// Statements until the ordered one, itself included; zero when none is ordered.
    countdown: AtomicU64,
    statement: Mutex<Option<StatementFault>>,
    commit: Mutex<Option<CommitFault>>,
    hook: Mutex<Option<Hook>>,
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").field("countdown", &self.countdown).finish_non_exhaustive()
    }
}

impl Faults {
    /// Makes the `nth` statement from now fail, the next one being the first.
    pub fn fail_statement(&self, nth: u64) {
        self.order(StatementFault::Fails, nth);
    }

    /// Makes the `nth` statement from now find the disk full.
    pub fn fill_disk(&self, nth: u64) {
        self.order(StatementFault::DiskFull, nth);
    }

    /// Makes the next commit fail.
    pub fn fail_commit(&self, fault: CommitFault) {
        *self.commit.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
    }

    /// Calls `hook` at every point, on the writer's thread.
    pub fn at_points(&self, hook: impl Fn(Point) + Send + Sync + 'static) {
        *self.hook.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(hook));
    }

    fn order(&self, fault: StatementFault, nth: u64) {
        *self.statement.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
        self.countdown.store(nth, Ordering::SeqCst);
    }

    /// The error of the statement that is about to run, if one was ordered for it.
    pub(crate) fn statement(&self) -> Option<StoreError> {
        let counted =
            self.countdown.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if counted != Ok(1) {
            return None;
        }
        let ordered = self.statement.lock().unwrap_or_else(PoisonError::into_inner).take();
        ordered.map(|fault| match fault {
            StatementFault::Fails => StoreError::Database {
                operation: "run a statement that a test made fail",
                source: std::sync::Arc::new(std::io::Error::other("injected")),
            },
            StatementFault::DiskFull => StoreError::Full,
        })
    }

    /// How the commit that is about to happen is to fail.
    pub(crate) fn take_commit(&self) -> Option<CommitFault> {
        self.commit.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn point(&self, point: Point) {
        if let Some(hook) = &*self.hook.lock().unwrap_or_else(PoisonError::into_inner) {
            hook(point);
        }
    }
}
