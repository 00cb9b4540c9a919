//! Owning the loops: one process of a database routes and schedules, the others wait for their turn.
//!
//! Acceptance, control, execution and completion run in every process, fenced by states and epochs of their
//! own. Recovery does, too: only the host that started an attempt can look for it. What is left to one owner
//! are the loops that look for work anywhere, and each of their transactions presents the tenure it acts
//! under. An owner that cannot renew stops by its own clock before its lease ends; one that was paused over
//! the end is refused by the database.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::lease::Lease;
use domain::ownership::{OWNERSHIP_MARGIN, OWNERSHIP_RENEWAL, Owned, Ownership, Tenure};
use domain::store::{Priority, StoreError, Tx, fence};
use domain::time::Timestamp;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::node::Runtime;
use crate::stage::{self, Chain};

/// How often a process that is not the owner looks whether the loops are free.
const LOOK: Duration = Duration::from_secs(1);

/// Who runs the loops of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// This process.
    Owner,
    /// Another one, unless it stops renewing.
    Other(Lease),
}

/// What this process has of the loops.
#[derive(Debug, Default)]
pub(crate) struct Own {
    held: Mutex<Option<Held>>,
    /// Rings when a tenure was lost before its time.
    lost: Notify,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    tenure: Tenure,
    /// When this process stops by its own clock.
    stops_at: Timestamp,
}

impl Own {
    fn lock(&self) -> MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hold(&self, ownership: Ownership) {
        *self.lock() = ownership.tenure().zip(ownership.lease).map(|(tenure, lease)| {
            let margin = i64::try_from(OWNERSHIP_MARGIN.as_micros()).expect("a margin is seconds");
            Held { tenure, stops_at: Timestamp::from_micros(lease.until.as_micros() - margin) }
        });
    }

    /// Gives the tenure up here. What it was, for the database to be told.
    pub(crate) fn leave(&self) -> Option<Tenure> {
        self.lock().take().map(|held| held.tenure)
    }

    fn lose(&self, tenure: Tenure) {
        let mut held = self.lock();
        if held.is_some_and(|held| held.tenure == tenure) {
            *held = None;
            tracing::warn!(epoch = %tenure.epoch, "another process may have taken the loops over; this one stops");
            self.lost.notify_one();
        }
    }
}

impl Runtime {
    /// The tenure under which this process may run the loops now. None when they are another's, and once its
    /// lease is about to end unrenewed.
    pub(crate) fn tenure(&self) -> Option<Tenure> {
        let held = *self.own().lock();
        held.filter(|held| self.store().now() < held.stops_at).map(|held| held.tenure)
    }

    /// Whether this process runs the loops.
    pub fn owns_loops(&self) -> bool {
        self.tenure().is_some()
    }

    /// Takes the loops over when they are free, or renews what this process has of them, once, as the loop
    /// does every few seconds.
    ///
    /// # Errors
    /// [`StoreError`] when the store fails; a tenure that is held runs on until it ends.
    pub async fn claim_loops(&self) -> Result<Standing, StoreError> {
        let me = self.store().incarnation();
        let claimed = self
            .store()
            .transact_at(Priority::High, "own", move |tx| {
                let claimed = tx.ownership().claim(me, tx.now());
                if let Ok(next) = claimed {
                    tx.put_ownership(next);
                }
                Ok::<_, StoreError>(claimed)
            })
            .await?;
        let stood = self.tenure();
        match claimed {
            Ok(ownership) => {
                self.own().hold(ownership);
                if stood != ownership.tenure() {
                    tracing::info!(epoch = %ownership.epoch, "this process runs the loops");
                    self.hints().route.notify_one();
                    self.hints().schedule.notify_one();
                    self.hints().wake.notify_one();
                    self.hints().alias.notify_one();
                }
                Ok(Standing::Owner)
            }
            Err(Owned { lease }) => {
                if let Some(tenure) = stood {
                    self.own().lose(tenure);
                }
                Ok(Standing::Other(lease))
            }
        }
    }

    /// Runs a transaction of a loop, unless the loops are another's by now.
    ///
    /// # Errors
    /// [`StoreError::NotOwner`] when they are; what else [`domain::store::Store::transact`] can meet.
    pub(crate) async fn transact_owned<T: Send + 'static>(
        &self,
        label: &'static str,
        tenure: Tenure,
        mut body: impl FnMut(&mut dyn Tx) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let done = self
            .store()
            .transact(label, move |tx| {
                fence(tx, tenure)?;
                body(tx)
            })
            .await;
        if let Err(StoreError::NotOwner(_)) = &done {
            self.own().lose(tenure);
        }
        done
    }
}

/// Claims and renews until the end. Where the process has the database alone, one claim is for ever.
pub(crate) async fn run(runtime: Runtime, end: CancellationToken) {
    while !end.is_cancelled() {
        let wait = match runtime.claim_loops().await {
            Ok(Standing::Owner) if runtime.store().exclusive() => return,
            Ok(Standing::Owner) => OWNERSHIP_RENEWAL,
            Ok(Standing::Other(lease)) => jittered(LOOK.min(lease.until.since(runtime.store().now()))),
            Err(StoreError::Closed) => return,
            Err(error) => {
                tracing::warn!(error = %Chain(&error), "the ownership of the loops could not be looked at");
                jittered(LOOK)
            }
        };
        tokio::select! {
            biased;
            () = end.cancelled() => return,
            () = runtime.own().lost.notified() => {}
            () = stage::pause(wait) => {}
        }
    }
}

/// A wait that two processes that began together do not share: up to a quarter of [`LOOK`] longer.
pub(crate) fn jittered(wait: Duration) -> Duration {
    // A fresh state is seeded at random, and that is all the chance this needs.
    let chance = RandomState::new().hash_one(()) % 256;
    wait + LOOK / 4 * u32::try_from(chance).expect("a byte") / 256
}

#[cfg(test)]
mod tests {
    use super::{LOOK, jittered};

    #[test]
    fn jitter_is_bounded_and_differs() {
        let waits: std::collections::BTreeSet<_> = (0..64).map(|_| jittered(LOOK)).collect();
        assert!(waits.iter().all(|wait| *wait >= LOOK && *wait < LOOK + LOOK / 4));
        assert!(waits.len() > 1);
    }
}
