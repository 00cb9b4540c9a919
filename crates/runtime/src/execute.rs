//! Executing: the one place where executors are called.
//!
//! *Reads* what a claimed attempt is to be given. *Decides* nothing about Works. *Writes* the handle of what
//! was started, and renewals, each under the attempt's grant. *Afterwards* hands the result to completion.
//!
//! Each attempt is followed by a task of its own. The task is a convenience: if it is lost, the lease ends and
//! recovery finds the attempt again.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use domain::execution::Execution;
use domain::id::{EventId, ExecutionId};
use domain::lease::Grant;
use domain::outcome::TurnResult;
use domain::scope::Binding;
use domain::store::{Recovered, StoreError};
use domain::text::WorkKind;
use extension::{Executor, ResumeRequest, RunError, RunRequest, Secret, Segment, Stopped};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::caught::caught;
use crate::control::STOP_AGAIN;
use crate::node::Runtime;
use crate::stage::{self, BATCH, Chain, Progress, Stage, StageError};
use crate::toolbelt;
use crate::workspace;

pub(crate) mod pin;
pub(crate) mod renew;
mod quiet;
mod request;

use request::Given;

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

/// A claim with the token that tells when its authority is gone.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) claimed: Claimed,
    pub(crate) lost: CancellationToken,
}

/// A result on its way to completion.
#[derive(Debug, Clone)]
pub struct Report {
    /// The attempt.
    pub execution: ExecutionId,
    /// The authority it was reached under.
    pub grant: Grant,
    /// The result.
    pub result: TurnResult,
    /// What recovery found, when it is the first to say so of an attempt that an earlier life left.
    pub recovered: Option<Recovered>,
}

/// The executing stage.
#[derive(Debug)]
pub struct Execute {
    runtime: Runtime,
    claims: mpsc::UnboundedReceiver<Launch>,
}

impl Execute {
    pub(crate) const fn new(runtime: Runtime, claims: mpsc::UnboundedReceiver<Launch>) -> Self {
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
        let executions = claimed.iter().map(|launch| Arc::clone(&launch.claimed.execution)).collect();
        let given = request::given_together(&self.runtime, executions).await;
        for (Launch { claimed, lost }, given) in claimed.into_iter().zip(given) {
            let (id, grant) = (claimed.execution.id, claimed.grant);
            attend(&self.runtime, id, grant, lost, launch(self.runtime.clone(), claimed, given));
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
        self.send_report(Report { execution, grant, result, recovered: None });
    }

    /// What may have been started of an attempt, as the executor is asked about it.
    pub(crate) fn segment(execution: &Execution, equipment: &Equipment) -> Segment {
        Segment {
            execution: execution.id,
            epoch: execution.epoch,
            handle: execution.handle.as_ref().map(|handle| handle.as_bytes().to_vec()),
            config: equipment.binding.config.clone(),
            secrets: equipment.secrets.clone(),
            token: None,
        }
    }
}

/// Lets a task speak for an attempt, until it is done or its authority is gone. One that panics lets go of the
/// attempt, or it would be renewed for ever and followed by nobody.
pub(crate) fn attend(
    runtime: &Runtime,
    id: ExecutionId,
    grant: Grant,
    lost: CancellationToken,
    task: impl Future<Output = ()> + Send + 'static,
) {
    let attending = runtime.clone();
    runtime.spawn(async move {
        tokio::select! {
            biased;
            () = lost.cancelled() => {}
            ended = caught(task) => if ended.is_err() {
                tracing::error!(execution = %id, "an executor failed by a bug; the run will be recovered");
                attending.abandon(id, grant);
            },
        }
    });
}

async fn launch(runtime: Runtime, claim: Claimed, given: Option<Given>) {
    let Claimed { execution, kind, grant } = claim;
    let equipment = match runtime.equip(&execution).await {
        Ok(equipment) => equipment,
        Err(Unequipped::Failed(result)) => return runtime.report(execution.id, grant, result),
        Err(Unequipped::Store(error)) => return give_up(&runtime, &execution, grant, &error),
    };
    let given = match given {
        Some(given) => given,
        None => match request::given_alone(&runtime, Arc::clone(&execution)).await {
            Ok(given) => given,
            Err(error) => return give_up(&runtime, &execution, grant, &error),
        },
    };
    let workspace = match workspace::acquire(&runtime, &execution, &equipment).await {
        Ok(workspace) => workspace,
        Err(result) => return runtime.report(execution.id, grant, result),
    };
    let remaining = execution.remaining(runtime.store().now());
    let (token, digest) = toolbelt::new_token(&runtime, &execution).unzip();
    let request = request::build(&execution, kind, given, &equipment);
    let request = RunRequest { token, workspace: workspace.clone(), ..request };
    let host = pin::Host { runtime: runtime.clone(), execution: execution.id, grant, workspace, digest };
    let run = match execution.turn.resumed_by {
        None => equipment.executor.run(request, &host),
        Some(woken_by) => {
            let session = execution.turn.session.as_ref().map(|session| session.as_bytes().to_vec());
            equipment.executor.resume(ResumeRequest { request, woken_by, session }, &host)
        }
    };
    follow(&runtime, &execution, grant, &equipment, remaining, run).await;
}

/// The store failed before the executor was called. The lease ends and recovery begins again.
fn give_up(runtime: &Runtime, execution: &Execution, grant: Grant, error: &StoreError) {
    tracing::warn!(execution = %execution.id, error = %Chain(error), "a launch was given up");
    runtime.abandon(execution.id, grant);
}

/// Follows a segment to its end or its deadline.
pub(crate) async fn follow(
    runtime: &Runtime,
    execution: &Execution,
    grant: Grant,
    equipment: &Equipment,
    remaining: Duration,
    run: extension::BoxFuture<'_, Result<TurnResult, RunError>>,
) {
    let result = tokio::select! {
        biased;
        ended = run => match ended {
            Ok(result) => result,
            Err(RunError::Fenced) => return runtime.abandon(execution.id, grant),
            // The lease ends, and recovery launches it again once it finds that nothing was started.
            Err(RunError::NotStarted { reason }) => {
                tracing::warn!(execution = %execution.id, reason, "a run could not be started yet");
                return runtime.abandon(execution.id, grant);
            }
            Err(RunError::Failed { code, reason }) => TurnResult::failed(code, reason),
        },
        () = stage::pause(remaining) => {
            let seconds = execution.timeout.as_secs();
            let why = TurnResult::failed("deadline", format!("stopped at its deadline of {seconds} seconds"));
            match stop_for(runtime, execution, equipment, why).await {
                Ok(result) => result,
                Err(error) => return give_up(runtime, execution, grant, &error),
            }
        }
        quiet = quiet::too_long(execution, equipment) => {
            let seconds = quiet.as_secs();
            let why = TurnResult::failed("inactive", format!("stopped, as it wrote nothing for {seconds} seconds"));
            match stop_for(runtime, execution, equipment, why).await {
                Ok(result) => result,
                Err(error) => return give_up(runtime, execution, grant, &error),
            }
        }
    };
    runtime.report(execution.id, grant, result);
}

/// What a segment that was stopped proves to have taken in.
pub(crate) async fn proof(equipment: &Equipment, segment: Segment) -> Vec<EventId> {
    if equipment.executor.capabilities().controls.inject {
        equipment.executor.proof(segment).await
    } else {
        Vec::new()
    }
}

/// Stops a segment that went on or was quiet for too long, and says how it ended. One that may still run keeps its
/// place: nothing may be started beside it.
async fn stop_for(
    runtime: &Runtime,
    execution: &Execution,
    equipment: &Equipment,
    why: TurnResult,
) -> Result<TurnResult, StoreError> {
    let id = execution.id;
    let newest = runtime.store().read("execute.read", move |tx| tx.execution(id)).await?;
    let segment = Runtime::segment(newest.as_ref().unwrap_or(execution), equipment);
    while let Stopped::Unverifiable { reason } = equipment.executor.stop(segment.clone()).await {
        tracing::error!(execution = %id, reason, "a run went on for too long and cannot be stopped for certain");
        stage::pause(STOP_AGAIN).await;
    }
    let consumed_inputs = proof(equipment, segment).await;
    Ok(TurnResult { consumed_inputs, ..why })
}
