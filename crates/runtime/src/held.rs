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

#[derive(Debug, Default)]
struct Holdings {
    of: BTreeMap<ExecutionId, Holding>,
    /// The process ends: whatever is noted from now on is lost from the start.
    closed: bool,
}

/// A cache of what the rows say, used to renew; losing it loses nothing but time.
#[derive(Debug, Default)]
pub struct Held(Mutex<Holdings>);

impl Held {
    fn lock(&self) -> MutexGuard<'_, Holdings> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a grant. An earlier one for the same attempt is told that it is lost.
    pub(crate) fn take(&self, execution: ExecutionId, grant: Grant) -> CancellationToken {
        let lost = CancellationToken::new();
        let mut held = self.lock();
        if held.closed {
            lost.cancel();
        }
        let before = held.of.insert(execution, Holding { grant, lost: lost.clone() });
        drop(held);
        if let Some(before) = before {
            before.lost.cancel();
        }
        lost
    }

    /// Forgets a grant, if it is still the one that is noted.
    pub(crate) fn drop_grant(&self, execution: ExecutionId, grant: Grant) {
        let mut held = self.lock();
        if held.of.get(&execution).is_some_and(|holding| holding.grant == grant) {
            held.of.remove(&execution);
        }
    }

    /// Tells the task of an attempt that this grant is gone, if it is still the one that is noted: another
    /// may have been taken since it was looked at.
    pub(crate) fn lose_grant(&self, execution: ExecutionId, grant: Grant) {
        let mut held = self.lock();
        let lost = held.of.get(&execution).is_some_and(|holding| holding.grant == grant);
        let holding = if lost { held.of.remove(&execution) } else { None };
        drop(held);
        if let Some(holding) = holding {
            holding.lost.cancel();
        }
    }

    /// Tells every task, and those that are still to come, that this process speaks for nobody any more. The
    /// grants stay noted, to be released.
    pub(crate) fn close(&self) {
        let mut held = self.lock();
        held.closed = true;
        for holding in held.of.values() {
            holding.lost.cancel();
        }
    }

    /// Tells the task of an attempt that its authority is gone, whichever it is.
    pub(crate) fn lose(&self, execution: ExecutionId) {
        let holding = self.lock().of.remove(&execution);
        if let Some(holding) = holding {
            holding.lost.cancel();
        }
    }

    /// Every grant that is noted.
    pub(crate) fn grants(&self) -> Vec<(ExecutionId, Grant)> {
        self.lock().of.iter().map(|(id, holding)| (*id, holding.grant)).collect()
    }

    /// How many attempts this process speaks for.
    pub fn count(&self) -> usize {
        self.lock().of.len()
    }
}

#[cfg(test)]
mod tests {
    use domain::id::{Epoch, ExecutionId, Incarnation};
    use domain::lease::Grant;

    use super::Held;

    const ID: ExecutionId = ExecutionId::from_number(1);
    const OLD: Grant = Grant { owner: Incarnation::FIRST, epoch: Epoch::FIRST };

    fn newer() -> Grant {
        Grant { epoch: OLD.epoch.next(), ..OLD }
    }

    #[test]
    fn a_newer_grant_outlives_the_loss_of_an_older_one() {
        let held = Held::default();
        let before = held.take(ID, OLD);
        let now = held.take(ID, newer());
        assert!(before.is_cancelled(), "one task speaks for an attempt");
        // Such as by a renewal that began before recovery claimed the attempt.
        held.lose_grant(ID, OLD);
        held.drop_grant(ID, OLD);
        assert!(!now.is_cancelled());
        assert_eq!(held.grants(), [(ID, newer())]);
        held.lose_grant(ID, newer());
        assert!(now.is_cancelled());
        assert_eq!(held.count(), 0);
    }

    #[test]
    fn what_is_taken_after_the_end_is_lost_and_can_be_released() {
        let held = Held::default();
        let before = held.take(ID, OLD);
        held.close();
        assert!(before.is_cancelled());
        let other = ExecutionId::from_number(2);
        assert!(held.take(other, OLD).is_cancelled());
        assert_eq!(held.count(), 2);
    }
}
