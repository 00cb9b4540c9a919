//! Renewing leases, ahead of everything else and a few at a time.

use domain::id::ExecutionId;
use domain::lease::{Grant, RENEWAL};
use domain::store::{Priority, StoreError};
use tokio_util::sync::CancellationToken;

use crate::node::Runtime;
use crate::stage::{self, Chain};

/// Leases renewed in one transaction.
const RENEWED_AT_ONCE: usize = 128;

/// Renews every lease this process holds, until the end.
pub(crate) async fn run(runtime: Runtime, end: CancellationToken) {
    loop {
        tokio::select! {
            biased;
            () = end.cancelled() => return,
            () = stage::pause(RENEWAL) => {}
        }
        if let Err(error) = renew(&runtime).await {
            tracing::warn!(error = %Chain(&error), "leases could not be renewed");
        }
    }
}

/// Renews every lease once. What has lost its authority is told so.
///
/// # Errors
/// [`StoreError`] when the store fails; the leases run on until they end.
pub(crate) async fn renew(runtime: &Runtime) -> Result<(), StoreError> {
    let grants = runtime.held().grants();
    let mut done = Ok(());
    for part in grants.chunks(RENEWED_AT_ONCE) {
        // One part that fails must not cost the others their leases.
        done = done.and(renew_part(runtime, part).await);
    }
    done
}

async fn renew_part(runtime: &Runtime, part: &[(ExecutionId, Grant)]) -> Result<(), StoreError> {
    let presented = part.len();
    let part: Vec<(ExecutionId, Grant)> = part.to_vec();
    let lost = runtime
        .store()
        .transact_at(Priority::High, "renew", move |tx| {
            let now = tx.now();
            let mut lost = Vec::new();
            for (id, grant) in &part {
                let Some(read) = tx.execution(*id)? else {
                    lost.push((*id, *grant));
                    continue;
                };
                match read.clone().renew(*grant, now) {
                    Ok(next) => tx.update_execution(&next, &read)?,
                    // A stored outcome has released the lease on purpose.
                    Err(_fenced) if read.outcome.is_some() => {}
                    Err(_fenced) => lost.push((*id, *grant)),
                }
            }
            Ok::<_, StoreError>(lost)
        })
        .await?;
    runtime.metrics().renewed.inc_by((presented - lost.len()) as u64);
    for (id, grant) in lost {
        tracing::warn!(execution = %id, "the lease on a run was lost");
        runtime.metrics().lost.inc();
        runtime.held().lose_grant(id, grant);
        runtime.hints().recover.notify_one();
    }
    Ok(())
}
