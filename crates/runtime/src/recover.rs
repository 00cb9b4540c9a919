//! Recovery: what became of an attempt whose authority is over.
//!
//! *Reads* live attempts whose lease has ended. *Decides* in `domain::execution` that they may be claimed, at
//! a higher epoch. *Writes* that claim first, then asks the executor outside, then writes what it found: the
//! attempt goes on, is launched again because nothing had started, or fails as interrupted. *Afterwards*
//! hands it to the executing or completing stage. A crash in between repeats the same, an epoch higher.
//!
//! It runs in every process, for the attempts of its own host: elsewhere, an executor would find nothing and
//! take that for an answer. The attempts of a host that is gone keep their place until it comes back, or a
//! person cancels them.

use std::sync::Arc;

use domain::execution::Execution;
use domain::id::{ExecutionId, Incarnation};
use domain::lease::{Grant, Lease};
use domain::outcome::TurnResult;
use domain::store::{Recovered, StoreError, Tx};
use domain::time::Timestamp;
use domain::toolbelt::TokenDigest;
use extension::{Recovery, Segment, Stopped};

use crate::execute::{self, Claimed, Equipment, Report, Unequipped, pin::GrantError};
use crate::node::Runtime;
use crate::stage::{BATCH, Chain, Progress, Stage, StageError};
use crate::toolbelt;

/// The recovering stage.
#[derive(Debug)]
pub struct Recover {
    runtime: Runtime,
}

impl Recover {
    pub(crate) const fn new(runtime: Runtime) -> Self {
        Self { runtime }
    }
}

impl Stage for Recover {
    fn name(&self) -> &'static str {
        "recover"
    }

    async fn step(&mut self) -> Result<Progress, StageError> {
        let runtime = &self.runtime;
        let due = runtime
            .store()
            .read("recover.read", |tx| {
                let now = tx.now();
                Ok::<_, StoreError>((tx.expired(now, BATCH)?, tx.next_expiry()?))
            })
            .await?;
        let (expired, next) = due;
        if expired.is_empty() {
            return Ok(Progress::Idle { due_at: next });
        }
        let owner = runtime.store().incarnation();
        let ids: Vec<ExecutionId> = expired.iter().map(|execution| execution.id).collect();
        let claimed = runtime.store().transact("recover", move |tx| claim(tx, &ids, owner)).await?;
        runtime.metrics().recovered.inc_by(claimed.len() as u64);
        for (execution, inherited) in claimed {
            if inherited {
                runtime.inherited().note(execution.id);
            }
            let (id, grant) = (execution.id, execution.grant().expect("recovery has just claimed it"));
            let lost = runtime.held().take(id, grant);
            execute::attend(runtime, id, grant, lost, recover(runtime.clone(), execution, grant));
        }
        runtime.hints().committed();
        Ok(Progress::Advanced)
    }
}

/// Claims what may be claimed, and says of each whether it was another life's.
fn claim(
    tx: &mut dyn Tx,
    ids: &[ExecutionId],
    owner: Incarnation,
) -> Result<Vec<(Execution, bool)>, StoreError> {
    let now = tx.now();
    let mut claimed = Vec::with_capacity(ids.len());
    for id in ids {
        let Some(read) = tx.execution(*id)? else { continue };
        // Refused means that someone else was faster, or the attempt has ended.
        if let Ok(next) = read.clone().recover(owner, now) {
            tx.update_execution(&next, &read)?;
            claimed.push((next, read.lease.is_none_or(|lease| lease.owner != owner)));
        }
    }
    Ok(claimed)
}

/// Ends the leases of processes that are known to have ended, so that nobody waits for them to run out.
///
/// Those are the earlier ones of this host, which one process has at a time.
///
/// # Errors
/// [`StoreError`] when the store fails.
pub(crate) async fn release_dead(runtime: &Runtime) -> Result<u64, StoreError> {
    let me = runtime.store().incarnation();
    let theirs = move |execution: &Execution, now| {
        execution.lease.is_some_and(|lease| lease.owner != me && lease.is_live(now))
    };
    // All at once, for a list that begins with what was released would never come to its end. It is as long as
    // there are live attempts.
    let dead: Vec<ExecutionId> = runtime
        .store()
        .read("release.read", move |tx| {
            let now = tx.now();
            let live = tx.expired(Timestamp::MAX, u32::MAX)?;
            Ok::<_, StoreError>(live.iter().filter(|read| theirs(read, now)).map(|read| read.id).collect())
        })
        .await?;
    let mut released = 0;
    for part in dead.chunks(BATCH as usize) {
        let part = part.to_vec();
        released += runtime
            .store()
            .transact("release", move |tx| {
                let now = tx.now();
                let mut released = 0;
                for id in &part {
                    let Some(read) = tx.execution(*id)?.filter(|read| theirs(read, now)) else { continue };
                    let lease = read.lease.map(|lease| Lease { until: now, ..lease });
                    tx.update_execution(&Execution { lease, ..read.clone() }, &read)?;
                    released += 1;
                }
                Ok::<_, StoreError>(released)
            })
            .await?;
    }
    Ok(released)
}

async fn recover(runtime: Runtime, execution: Execution, grant: Grant) {
    let equipment = match runtime.equip(&execution).await {
        Ok(equipment) => equipment,
        Err(Unequipped::Failed(result)) => {
            return hold(&runtime, &execution, grant, result.summary.as_deref());
        }
        Err(Unequipped::Store(error)) => return again(&runtime, &execution, grant, &error),
    };
    // What goes on is given the token of this epoch before it counts: until it is adopted, none is good.
    let (token, digest) = toolbelt::new_token(&runtime, &execution).unzip();
    let segment = Segment { token, ..Runtime::segment(&execution, &equipment) };
    let found = equipment.executor.recover(segment.clone()).await;
    tracing::info!(execution = %execution.id, epoch = %execution.epoch, found = word(&found), "recovered a run");
    crate::metrics::count(&runtime.metrics().recoveries, word(&found));
    match found {
        Recovery::Finished(result) => conclude(&runtime, &execution, grant, result, Recovered::Finished),
        Recovery::Alive => match adopt(&runtime, execution.id, grant, digest).await {
            Ok(()) => {
                let remaining = execution.remaining(runtime.store().now());
                let run = equipment.executor.observe(segment);
                execute::follow(&runtime, &execution, grant, &equipment, remaining, run).await;
            }
            Err(GrantError::Fenced(_)) => runtime.abandon(execution.id, grant),
            Err(GrantError::Store(error)) => again(&runtime, &execution, grant, &error),
        },
        Recovery::NothingStarted if equipment.executor.capabilities().holds_until_pinned => {
            match relaunch(&runtime, execution.id, grant).await {
                Ok(Some(claimed)) => runtime.launch(claimed),
                Ok(None) | Err(GrantError::Fenced(_)) => runtime.abandon(execution.id, grant),
                Err(GrantError::Store(error)) => again(&runtime, &execution, grant, &error),
            }
        }
        Recovery::NothingStarted => {
            let reason = "whether it had started is not known".to_owned();
            interrupted(&runtime, &execution, grant, &equipment, reason, false).await;
        }
        Recovery::NotAdoptable { reason, stopped } => {
            interrupted(&runtime, &execution, grant, &equipment, reason, stopped).await;
        }
    }
}

const fn word(found: &Recovery) -> &'static str {
    match found {
        Recovery::Alive => "adopted",
        Recovery::Finished(_) => "finished",
        Recovery::NothingStarted => "relaunched",
        Recovery::NotAdoptable { .. } => "interrupted",
    }
}

/// The store failed in the middle of a recovery. The lease ends and recovery begins again.
fn again(runtime: &Runtime, execution: &Execution, grant: Grant, error: &StoreError) {
    tracing::warn!(execution = %execution.id, error = %Chain(error), "a recovery was given up");
    runtime.abandon(execution.id, grant);
}

/// Keeps an attempt in its place that nobody can look for: it may still run, so nothing may be started
/// beside it. When the lease ends, recovery asks again.
fn hold(runtime: &Runtime, execution: &Execution, grant: Grant, reason: Option<&str>) {
    let reason = reason.unwrap_or("no reason was given");
    tracing::error!(execution = %execution.id, reason, "a run cannot be verified and is held");
    runtime.abandon(execution.id, grant);
}

/// Hands on the result of an attempt that has ended, to be counted where it is written.
fn conclude(runtime: &Runtime, execution: &Execution, grant: Grant, result: TurnResult, found: Recovered) {
    let recovered = runtime.inherited().has(execution.id).then_some(found);
    runtime.send_report(Report { execution: execution.id, grant, result, recovered });
}

/// Counts an attempt for this life, in the transaction that goes on with it.
fn count(tx: &mut dyn Tx, inherited: bool, grant: Grant, found: Recovered) -> Result<(), StoreError> {
    if inherited {
        // False when no daemon has noted its start, and then nobody asks for the count.
        tx.count_recovered(grant.owner, found)?;
    }
    Ok(())
}

async fn adopt(
    runtime: &Runtime,
    id: ExecutionId,
    grant: Grant,
    digest: Option<TokenDigest>,
) -> Result<(), GrantError> {
    let inherited = runtime.inherited().has(id);
    runtime
        .store()
        .transact("adopt", move |tx| {
            let read = tx.execution(id)?.ok_or(domain::lease::Fenced::Ended)?;
            let next = read.clone().adopt(grant, tx.now())?.equip(digest);
            tx.update_execution(&next, &read)?;
            Ok::<_, GrantError>(count(tx, inherited, grant, Recovered::Adopted)?)
        })
        .await?;
    runtime.inherited().counted(id);
    Ok(())
}

async fn relaunch(runtime: &Runtime, id: ExecutionId, grant: Grant) -> Result<Option<Claimed>, GrantError> {
    let inherited = runtime.inherited().has(id);
    let claimed = runtime
        .store()
        .transact("relaunch", move |tx| {
            let read = tx.execution(id)?.ok_or(domain::lease::Fenced::Ended)?;
            let next = read.clone().relaunch(grant, tx.now())?;
            tx.update_execution(&next, &read)?;
            count(tx, inherited, grant, Recovered::Relaunched)?;
            let work = tx.work(next.work)?;
            let claimed = work.map(|work| Claimed { execution: Arc::new(next), kind: work.kind, grant });
            Ok::<_, GrantError>(claimed)
        })
        .await?;
    runtime.inherited().counted(id);
    Ok(claimed)
}

/// Fails an attempt that cannot be taken over, once it is established that nothing of it runs.
async fn interrupted(
    runtime: &Runtime,
    execution: &Execution,
    grant: Grant,
    equipment: &Equipment,
    reason: String,
    stopped: bool,
) {
    if !stopped
        && let Stopped::Unverifiable { reason: why } =
            equipment.executor.stop(Runtime::segment(execution, equipment)).await
    {
        return hold(runtime, execution, grant, Some(&why));
    }
    let mut result = TurnResult::failed("interrupted", reason);
    result.consumed_inputs = execute::proof(equipment, Runtime::segment(execution, equipment)).await;
    conclude(runtime, execution, grant, result, Recovered::Interrupted);
}
