//! What operators do: cancel a Work, apply a configuration.
//!
//! A control commits first and acts afterwards; what it has to stop outside is marked in the row, so a crash
//! in between only delays it.

use std::time::Duration;

use domain::capacity::Blocker;
use domain::execution::Execution;
use domain::id::{Generation, WorkId};
use domain::store::{Priority, StoreError};
use domain::work::{WorkRefusal, WorkState};
use extension::Stopped;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::execute::Unequipped;
use crate::generation::ApplyError;
use crate::node::Runtime;
use crate::schedule;
use crate::stage::{self, BATCH, Chain};

/// How long a run that could not be stopped is left alone before the next try.
const STOP_AGAIN: Duration = Duration::from_secs(30);

/// Why a control had no effect.
#[derive(Debug, Error)]
pub enum ControlError {
    /// There is no such Work.
    #[error("no Work {0} exists; `work list` shows those that do")]
    UnknownWork(WorkId),
    /// The Work does not allow it.
    #[error(transparent)]
    Refused(#[from] WorkRefusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a cancellation did.
#[derive(Debug, Clone)]
pub struct Cancelled {
    /// The attempt that was live, as it ended.
    pub execution: Option<Execution>,
}

impl Runtime {
    /// Cancels a Work and its live attempt. When this answers well, neither has any authority left; the
    /// process is stopped afterwards.
    ///
    /// # Errors
    /// [`ControlError`]; then nothing has changed. A Work that has ended stays as it ended.
    pub async fn cancel(&self, id: WorkId) -> Result<Cancelled, ControlError> {
        let cancelled = self
            .store()
            .transact_at(Priority::High, "cancel", move |tx| {
                let now = tx.now();
                let work = tx.work(id)?.ok_or(ControlError::UnknownWork(id))?;
                let next = work.clone().cancel(now)?;
                let mut ended = None;
                if let WorkState::Running { execution } = work.state
                    && let Some(read) = tx.execution(execution)?
                    && let Ok(execution) = read.clone().cancel(now)
                {
                    tx.update_execution(&execution, &read)?;
                    ended = Some(execution);
                }
                tx.update_work(&next, &work)?;
                if ended.is_some() {
                    schedule::room_freed(tx, &work.scope, 1)?;
                }
                Ok::<_, ControlError>(ended)
            })
            .await?;
        if let Some(execution) = &cancelled {
            self.held().lose(execution.id);
            self.hints().recover.notify_one();
        }
        self.hints().schedule.notify_one();
        self.hints().stop.notify_one();
        self.hints().committed();
        Ok(Cancelled { execution: cancelled })
    }

    /// Applies a configuration text as the next generation.
    ///
    /// # Errors
    /// [`ApplyError`]; then the one in force stays.
    pub async fn apply(&self, body: String, digest: String) -> Result<Generation, ApplyError> {
        let number = self.generations().apply(self.store(), body, digest).await?;
        self.reconsider().await?;
        Ok(number)
    }

    /// Looks again at everything that the configuration kept from going on.
    pub(crate) async fn reconsider(&self) -> Result<(), StoreError> {
        let blockers = self.store().read("reconsider", |tx| tx.blockers(1)).await?;
        for (blocker, _count) in blockers {
            let at_once = self.room_for(&blocker);
            loop {
                let list = blocker.clone();
                let more = self
                    .store()
                    .transact("reconsider", move |tx| schedule::bring_back(tx, &list, at_once))
                    .await?;
                // A full scope takes as many as it has room for; the others all come back.
                if !more || matches!(blocker, Blocker::ScopeFull(_)) {
                    break;
                }
            }
        }
        self.store()
            .transact("reconsider", |tx| {
                let now = tx.now();
                for mut block in tx.lane_blocks(1000)? {
                    if matches!(block.code.as_str(), "unknown_scope" | "scope_disabled") {
                        block.blocked_until = now;
                        tx.put_lane_block(&block)?;
                    }
                }
                Ok::<_, StoreError>(())
            })
            .await?;
        self.hints().route.notify_one();
        self.hints().schedule.notify_one();
        self.hints().committed();
        Ok(())
    }

    fn room_for(&self, blocker: &Blocker) -> u32 {
        match blocker {
            Blocker::ScopeFull(scope) => {
                let active = self.generations().active();
                active.scope(scope).map_or(BATCH, |scope| scope.scope.settings.concurrency)
            }
            Blocker::ScopeDisabled(_) | Blocker::Unconfigured(_) => BATCH,
        }
    }
}

/// Stops what ended while it still ran, until the end. Each is tried until it is established that it stopped.
pub(crate) async fn stop_loop(runtime: Runtime, end: CancellationToken) {
    loop {
        let left = match stop_unstopped(&runtime).await {
            Ok(left) => left,
            Err(error) => {
                tracing::warn!(error = %Chain(&error), "what was cancelled could not be looked for");
                true
            }
        };
        tokio::select! {
            biased;
            () = end.cancelled() => return,
            () = runtime.hints().stop.notified() => {}
            () = stage::pause(STOP_AGAIN), if left => {}
        }
    }
}

/// Stops what ended while it still ran, once. True when something could not be stopped for certain.
///
/// # Errors
/// [`StoreError`] when the store fails; the marks stay.
pub(crate) async fn stop_unstopped(runtime: &Runtime) -> Result<bool, StoreError> {
    let unstopped = runtime.store().read("stop.read", |tx| tx.unstopped(BATCH)).await?;
    let mut left = unstopped.len() == BATCH as usize;
    for execution in unstopped {
        let stopped = match runtime.equip(&execution).await {
            Ok(equipment) => equipment.executor.stop(Runtime::segment(&execution, &equipment)).await,
            Err(Unequipped::Store(error)) => return Err(error),
            Err(Unequipped::Failed(_)) => {
                Stopped::Unverifiable { reason: "its binding or executor is gone".to_owned() }
            }
        };
        match stopped {
            Stopped::Confirmed => {
                let id = execution.id;
                runtime.store().transact("stopped", move |tx| tx.mark_stopped(id)).await?;
            }
            Stopped::Unverifiable { reason } => {
                tracing::warn!(execution = %execution.id, reason, "a cancelled run may still run");
                left = true;
            }
        }
    }
    Ok(left)
}
