//! What every stage is: one bounded step, and the one loop that runs it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use domain::store::{Store, StoreError};
use domain::time::Timestamp;
use thiserror::Error;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::caught::{Panicked, caught};
use crate::hint::Hints;
use crate::own::jittered;

/// The most items one step takes on.
pub const BATCH: u32 = 64;
/// The same where other processes write, too: while one holds the database's lock, they wait, and each read
/// inside is a way to the server and back.
pub const BATCH_SHARED: u32 = 24;
/// The longest pause after a step that failed.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// The shortest pause before a step that is due but found nothing it could do.
const DUE_PAUSE: Duration = Duration::from_millis(20);

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Something; there may be more.
    Advanced,
    /// Nothing: there was nothing to do.
    Idle {
        /// When there will be, if that is known.
        due_at: Option<Timestamp>,
    },
}

/// A step could not be taken. The stage tries again.
#[derive(Debug, Error)]
pub enum StageError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// One part of the way an Event travels.
pub trait Stage: Send {
    /// Its name in logs and metrics.
    fn name(&self) -> &'static str;

    /// Does at most one bounded unit of work.
    fn step(&mut self) -> impl Future<Output = Result<Progress, StageError>> + Send;
}

/// Whether a transaction failed because of one of its items, so that the others may succeed without it. What
/// fails as a whole, such as a full disk, is tried again as a whole.
pub(crate) const fn is_of_an_item(error: &StoreError) -> bool {
    match error {
        StoreError::Conflict { .. } | StoreError::Corrupt { .. } | StoreError::Panicked { .. } => true,
        StoreError::Database { .. }
        | StoreError::Full
        | StoreError::Lost
        | StoreError::Locked
        | StoreError::NotOwner(_)
        | StoreError::Closed => false,
    }
}

/// Waits for `duration`. The only sleep of the runtime: a due time is a fact, too.
#[expect(clippy::disallowed_methods, reason = "every wait for a due time goes through here")]
pub(crate) async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}

/// Steps a stage while it advances, then waits for a hint, the due time or the end.
///
/// `look_again` bounds the wait where hints of other processes cannot be heard.
pub(crate) async fn run<S: Stage>(
    mut stage: S,
    store: Store,
    hints: Arc<Hints>,
    bell: fn(&Hints) -> &Notify,
    look_again: Option<Duration>,
    end: CancellationToken,
) {
    let bell = bell(&hints);
    let mut failures: u32 = 0;
    while !end.is_cancelled() {
        let step = caught(stage.step()).await.unwrap_or_else(|Panicked| {
            let message = "its step panicked".to_owned();
            Err(StoreError::Panicked { label: stage.name(), message }.into())
        });
        let wait = match step {
            Ok(Progress::Advanced) => {
                failures = 0;
                // A stage with much to do must not keep the others from their turn.
                tokio::task::yield_now().await;
                continue;
            }
            Ok(Progress::Idle { due_at }) => {
                failures = 0;
                // What is due and yet could not be done must not be asked for in a tight loop.
                let due = due_at.map(|at| at.since(store.now()).max(DUE_PAUSE));
                let again = look_again.map(jittered);
                match (due, again) {
                    (Some(due), Some(again)) => Some(due.min(again)),
                    (due, again) => due.or(again),
                }
            }
            // Its turn will come; whoever claims the loops rings.
            Err(StageError::Store(StoreError::NotOwner(_))) => look_again.map(jittered),
            Err(StageError::Store(StoreError::Closed)) => return,
            Err(error) => {
                failures = failures.saturating_add(1);
                tracing::warn!(stage = stage.name(), error = %Chain(&error), failures, "stage step failed");
                Some(Duration::from_millis(50 << failures.min(8)).min(PAUSE_MAX))
            }
        };
        tokio::select! {
            biased;
            () = end.cancelled() => return,
            () = bell.notified(), if failures == 0 => {}
            () = pause(wait.unwrap_or_default()), if wait.is_some() => {}
        }
    }
}

/// An error with its causes, for a log line.
pub(crate) struct Chain<'a>(pub(crate) &'a dyn std::error::Error);

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
