//! The attempts that earlier lives of this host left live, until recovery has found out what became of each.
//!
//! Each is counted once, for the life that found out. What is in memory here is lost with the process, and the
//! next life finds its name nowhere on the attempt and takes it for inherited again.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::id::ExecutionId;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Inherited(Mutex<BTreeSet<ExecutionId>>);

impl Inherited {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<ExecutionId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes one that this life has claimed.
    pub(crate) fn note(&self, execution: ExecutionId) {
        self.lock().insert(execution);
    }

    /// Whether an attempt is one, and not yet counted.
    pub(crate) fn has(&self, execution: ExecutionId) -> bool {
        self.lock().contains(&execution)
    }

    /// It has been counted.
    pub(crate) fn counted(&self, execution: ExecutionId) {
        self.lock().remove(&execution);
    }
}
