//! Executing: the one place where executors are called.
//!
//! *Reads* what a claimed attempt is to be given. *Decides* nothing about Works. *Writes* the handle of what
//! was started, and renewals, each under the attempt's grant. *Afterwards* hands the result to completion.
//!
//! Each attempt is followed by a task of its own. The task is a convenience: if it is lost, the lease ends and
//! recovery finds the attempt again.

use std::sync::Arc;
use std::time::Duration;

use domain::execution::Execution;
use domain::id::ExecutionId;
use domain::lease::Grant;
use domain::outcome::TurnResult;
use domain::scope::Binding;
use domain::store::StoreError;
use domain::text::WorkKind;
use extension::{Executor, RunError, Secret, Segment, Stopped};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::node::Runtime;
use crate::stage::{self, BATCH, Chain, Progress, Stage, StageError};

pub(crate) mod pin;
pub(crate) mod renew;
mod request;

/// A claimed attempt on its way to its executor.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The attempt.
    pub execution: Arc<Execution>,
    /// Its Work's kind.
    pub kind: WorkKind,
    /// The authority over it.
    pub grant: Grant,
}

/// A result on its way to completion.
#[derive(Debug)]
pub struct Report {
    /// The attempt.
    pub execution: ExecutionId,
    /// The authority it was reached under.
    pub grant: Grant,
    /// The result.
    pub result: TurnResult,
}

/// The executing stage.
#[derive(Debug)]
pub struct Execute {
    runtime: Runtime,
    claims: mpsc::UnboundedReceiver<Claimed>,
}

impl Execute {
    pub(crate) const fn new(runtime: Runtime, claims: mpsc::UnboundedReceiver<Claimed>) -> Self {
        Self { runtime, claims }
    }
}

impl Stage for Execute {
    fn name(&self) -> &'static str {
        "execute"
    }

    async fn step(&mut self) -> Result<Progress, StageError> {
        let mut claimed = Vec::new();
        while claimed.len() < BATCH as usize
            && let Ok(claim) = self.claims.try_recv()
        {
            claimed.push(claim);
        }
        if claimed.is_empty() {
            return Ok(Progress::Idle { due_at: None });
        }
        for claim in claimed {
            let lost = self.runtime.held().take(claim.execution.id, claim.grant);
            let runtime = self.runtime.clone();
            self.runtime.spawn(async move { launch(runtime, claim, lost).await });
        }
        Ok(Progress::Advanced)
    }
}

/// What is needed to call the executor of an attempt.
pub(crate) struct Equipment {
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) binding: Binding,
    pub(crate) secrets: Vec<(String, Secret)>,
}

/// Why an attempt cannot be given to its executor.
pub(crate) enum Unequipped {
    /// It never will: the attempt fails with this.
    Failed(TurnResult),
    /// The store failed.
    Store(StoreError),
}

impl From<StoreError> for Unequipped {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Runtime {
    /// Finds the executor, binding and secrets that an attempt is pinned to.
    pub(crate) async fn equip(&self, execution: &Execution) -> Result<Equipment, Unequipped> {
        let binding = self
            .generations()
            .binding(self.store(), execution.generation, &execution.scope, &execution.binding)
            .await?;
        let missing = |what: &str| {
            Unequipped::Failed(TurnResult::failed("unconfigured", format!("{what} is not there any more")))
        };
        let binding = binding.ok_or_else(|| missing("the binding of the run"))?;
        let executor = self.registry().executor(&execution.executor).cloned();
        let executor = executor.ok_or_else(|| missing("the executor of the run"))?;
        let mut secrets = Vec::with_capacity(binding.secrets.len());
        for (name, reference) in &binding.secrets {
            match self.secrets().resolve(name, reference).await {
                Ok(secret) => secrets.push((name.clone(), secret)),
                Err(error) => {
                    let result = TurnResult::failed("secret_unavailable", error.to_string());
                    return Err(Unequipped::Failed(result));
                }
            }
        }
        Ok(Equipment { executor, binding, secrets })
    }

    /// Tells completion how an attempt ended.
    pub(crate) fn report(&self, execution: ExecutionId, grant: Grant, result: TurnResult) {
        self.send_report(Report { execution, grant, result });
    }

    /// What may have been started of an attempt, as the executor is asked about it.
    pub(crate) fn segment(execution: &Execution, equipment: &Equipment) -> Segment {
        Segment {
            execution: execution.id,
            epoch: execution.epoch,
            handle: execution.handle.as_ref().map(|handle| handle.as_bytes().to_vec()),
            config: equipment.binding.config.clone(),
            secrets: equipment.secrets.clone(),
        }
    }
}

async fn launch(runtime: Runtime, claim: Claimed, lost: CancellationToken) {
    let Claimed { execution, kind, grant } = claim;
    let equipment = match runtime.equip(&execution).await {
        Ok(equipment) => equipment,
        Err(Unequipped::Failed(result)) => return runtime.report(execution.id, grant, result),
        Err(Unequipped::Store(error)) => return give_up(&runtime, &execution, grant, &error),
    };
    let request = match request::build(&runtime, &execution, kind, &equipment).await {
        Ok(request) => request,
        Err(error) => return give_up(&runtime, &execution, grant, &error),
    };
    let host = pin::Host { runtime: runtime.clone(), execution: execution.id, grant };
    let run = equipment.executor.run(request, &host);
    follow(&runtime, &execution, grant, &equipment, lost, execution.timeout, run).await;
}

/// The store failed before the executor was called. The lease ends and recovery begins again.
fn give_up(runtime: &Runtime, execution: &Execution, grant: Grant, error: &StoreError) {
    tracing::warn!(execution = %execution.id, error = %Chain(error), "a launch was given up");
    runtime.held().drop_grant(execution.id, grant);
}

/// Follows a segment to its end, its deadline, or the loss of its authority.
pub(crate) async fn follow(
    runtime: &Runtime,
    execution: &Execution,
    grant: Grant,
    equipment: &Equipment,
    lost: CancellationToken,
    remaining: Duration,
    run: extension::BoxFuture<'_, Result<TurnResult, RunError>>,
) {
    let result = tokio::select! {
        biased;
        () = lost.cancelled() => return,
        ended = run => match ended {
            Ok(result) => result,
            Err(RunError::Fenced) => return runtime.held().lose(execution.id),
            Err(RunError::Failed { code, reason }) => TurnResult::failed(code, reason),
        },
        () = stage::pause(remaining) => {
            match overdue(runtime, execution, equipment).await {
                Ok(result) => result,
                Err(error) => return give_up(runtime, execution, grant, &error),
            }
        }
    };
    runtime.report(execution.id, grant, result);
}

/// Stops a segment whose deadline has passed, and says how it ended.
async fn overdue(
    runtime: &Runtime,
    execution: &Execution,
    equipment: &Equipment,
) -> Result<TurnResult, StoreError> {
    let id = execution.id;
    let newest = runtime.store().read("execute.read", move |tx| tx.execution(id)).await?;
    let segment = Runtime::segment(newest.as_ref().unwrap_or(execution), equipment);
    let seconds = execution.timeout.as_secs();
    let mut summary = format!("stopped at its deadline of {seconds} seconds");
    match equipment.executor.stop(segment).await {
        Stopped::Confirmed => {}
        Stopped::Unverifiable { reason } => {
            tracing::warn!(execution = %execution.id, reason, "a run could not be stopped for certain");
            summary = format!("{summary}; it may still run: {reason}");
        }
    }
    Ok(TurnResult::failed("deadline", summary))
}
