//! The attempts this process speaks for: their grants, and how to tell each that it no longer does.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::id::ExecutionId;
use domain::lease::Grant;
use tokio_util::sync::CancellationToken;

/// Why an attempt's task was told to stop.
#[derive(Debug, Clone)]
pub(crate) struct Holding {
    pub(crate) grant: Grant,
    pub(crate) lost: CancellationToken,
}

/// A cache of what the rows say, used to renew; losing it loses nothing but time.
#[derive(Debug, Default)]
pub struct Held(Mutex<BTreeMap<ExecutionId, Holding>>);

impl Held {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ExecutionId, Holding>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a grant. An earlier one for the same attempt is told that it is lost.
    pub(crate) fn take(&self, execution: ExecutionId, grant: Grant) -> CancellationToken {
        let lost = CancellationToken::new();
        let before = self.lock().insert(execution, Holding { grant, lost: lost.clone() });
        if let Some(before) = before {
            before.lost.cancel();
        }
        lost
    }

    /// Forgets a grant, if it is still the one that is noted.
    pub(crate) fn drop_grant(&self, execution: ExecutionId, grant: Grant) {
        let mut held = self.lock();
        if held.get(&execution).is_some_and(|holding| holding.grant == grant) {
            held.remove(&execution);
        }
    }

    /// Tells the task of an attempt that its authority is gone.
    pub(crate) fn lose(&self, execution: ExecutionId) {
        let holding = self.lock().remove(&execution);
        if let Some(holding) = holding {
            holding.lost.cancel();
        }
    }

    /// Every grant that is noted.
    pub(crate) fn grants(&self) -> Vec<(ExecutionId, Grant)> {
        self.lock().iter().map(|(id, holding)| (*id, holding.grant)).collect()
    }

    /// How many attempts this process speaks for.
    pub fn count(&self) -> usize {
        self.lock().len()
    }
}
