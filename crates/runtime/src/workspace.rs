//! Workspaces: from a claimed attempt to the directory it works in, and from its end back.
//!
//! *Reads* what providers keep, and of whom. *Decides* in `domain::workspace` whether it may be given back.
//! *Writes* nothing: what is kept stands with the provider, and where an attempt works is written with its pin.
//! *Afterwards*, and outside every transaction, a provider acts. Each of its calls may be repeated, so a crash in
//! between does the same again.
//!
//! An attempt whose workspace another one still has waits here, its lease renewed; the other gives it back once
//! nothing of it runs any more.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::execution::Execution;
use domain::id::{ExecutionId, WorkId};
use domain::outcome::TurnResult;
use domain::store::StoreError;
use domain::time::Timestamp;
use domain::workspace::{self, Ended, Workspace};
use extension::{
    AcquireError, KeptState, KeptWorkspace, Resource, Segment, Stopped, WorkspaceProvider, WorkspaceRequest,
};
use tokio::sync::{Notify, oneshot};

use crate::caught::{Panicked, caught};
use crate::control::STOP_AGAIN;
use crate::execute::Equipment;
use crate::node::Runtime;
use crate::stage::{self, Progress, Stage, StageError};

/// After how many seconds a run is worth another try whose workspace could not be made.
const RETRY_AFTER_SECONDS: u64 = 60;
/// How soon what could not be given back or removed is tried again.
const AGAIN_AFTER: Duration = Duration::from_mins(1);

/// Which attempts have a workspace, as far as this process knows. The providers know for certain.
#[derive(Debug)]
pub(crate) struct Uses {
    ids: Mutex<BTreeSet<ExecutionId>>,
    /// How many those are, for whoever only wants to know that there are none.
    count: AtomicUsize,
    /// Whether a Work may have ended whose workspace waits for its next attempt.
    works: AtomicBool,
    /// Something was given back.
    freed: Notify,
}

impl Default for Uses {
    fn default() -> Self {
        // At the start nobody knows what ended while no daemon ran.
        let works = AtomicBool::new(true);
        Self { ids: Mutex::default(), count: AtomicUsize::new(0), works, freed: Notify::new() }
    }
}

impl Uses {
    fn change(&self, change: impl FnOnce(&mut BTreeSet<ExecutionId>)) {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut ids);
        self.count.store(ids.len(), Ordering::SeqCst);
    }

    /// Whether an attempt has one, which it now leaves. It costs nothing while none has.
    pub(crate) fn take(&self, id: ExecutionId) -> bool {
        self.count.load(Ordering::SeqCst) > 0 && {
            let mut had = false;
            self.change(|ids| had = ids.remove(&id));
            had
        }
    }

    /// Notes that a Work has ended, maybe while nothing of it ran.
    pub(crate) fn work_ended(&self) {
        self.works.store(true, Ordering::SeqCst);
    }
}

/// Gets the workspace that an attempt's binding asks for; none where it asks for none.
///
/// # Errors
/// The result of an attempt that has none: it has failed, and may be worth another try.
pub(crate) async fn acquire(
    runtime: &Runtime,
    execution: &Execution,
    equipment: &Equipment,
) -> Result<Option<Arc<Workspace>>, TurnResult> {
    let Some(resource) = &equipment.binding.resource else { return Ok(None) };
    let known = Resource::read(resource);
    let provider = known.as_ref().and_then(|known| runtime.registry().workspace(known.provider));
    let (Some(known), Some(provider)) = (known, provider) else {
        let reason = "the provider of the run's workspace is not there any more";
        return Err(TurnResult::failed("unconfigured", reason));
    };
    let id = execution.id;
    runtime.uses().change(|ids| _ = ids.insert(id));
    let request = WorkspaceRequest { execution: id, work: execution.work, config: known.config.clone() };
    let mut asked = None;
    loop {
        let freed = runtime.uses().freed.notified();
        tokio::pin!(freed);
        // From here on nothing that is given back is missed.
        freed.as_mut().enable();
        match ask(runtime, Arc::clone(provider), request.clone()).await {
            Ok(workspace) => return Ok(Some(Arc::new(workspace.in_one_line()))),
            Err(AcquireError::Unavailable { reason }) => {
                let failed = TurnResult::failed("workspace_unavailable", reason);
                return Err(TurnResult { retry_after_seconds: Some(RETRY_AFTER_SECONDS), ..failed });
            }
            Err(AcquireError::Failed { reason }) => {
                return Err(TurnResult::failed("workspace_failed", reason));
            }
            // It may only not have been looked at since it ended.
            Err(AcquireError::Busy { by }) if asked != Some(by) => {
                asked = Some(by);
                runtime.hints().workspace.notify_one();
            }
            Err(AcquireError::Busy { by }) => {
                tracing::info!(execution = %id, %by, "a run waits until another one has left its workspace");
            }
        }
        tokio::select! {
            () = freed => {}
            () = stage::pause(STOP_AGAIN) => {}
        }
    }
}

/// Asks in a task of its own: the attempt may lose its authority meanwhile, and then somebody has to look at what was
/// made for it.
async fn ask(
    runtime: &Runtime,
    provider: Arc<dyn WorkspaceProvider>,
    request: WorkspaceRequest,
) -> Result<Workspace, AcquireError> {
    let (done, answer) = oneshot::channel();
    let own = runtime.clone();
    runtime.spawn(async move {
        let answered = tokio::select! {
            biased;
            // Whatever the provider is at, the next daemon finds.
            () = own.ending().cancelled() => return,
            answered = caught(provider.acquire(request)) => answered,
        };
        let bug = |Panicked| AcquireError::Failed { reason: "the provider failed by a bug".to_owned() };
        if done.send(answered.map_err(bug).and_then(|answered| answered)).is_err() {
            own.hints().workspace.notify_one();
        }
    });
    let ending = || AcquireError::Unavailable { reason: "the daemon is ending".to_owned() };
    match answer.await {
        Ok(answered) => answered,
        // Only while the daemon ends, and then the attempt's own task ends with it.
        Err(_dropped) if runtime.ending().is_cancelled() => std::future::pending().await,
        Err(_dropped) => Err(ending()),
    }
}

/// The stage that gives workspaces back and removes those whose time is over.
#[derive(Debug)]
pub struct Workspaces {
    runtime: Runtime,
}

impl Workspaces {
    pub(crate) const fn new(runtime: Runtime) -> Self {
        Self { runtime }
    }
}

impl Stage for Workspaces {
    fn name(&self) -> &'static str {
        "workspace"
    }

    async fn step(&mut self) -> Result<Progress, StageError> {
        let runtime = &self.runtime;
        let now = runtime.store().now();
        let works = runtime.uses().works.swap(false, Ordering::SeqCst);
        let mut due: Vec<Timestamp> = Vec::new();
        let mut acted = false;
        for provider in runtime.registry().workspaces() {
            match caught(provider.kept())
                .await
                .unwrap_or_else(|Panicked| Err("it failed by a bug".to_owned()))
            {
                Ok(kept) => {
                    let looked = look(runtime, provider, kept, works).await?;
                    due.extend(looked.due);
                    acted |= looked.acted;
                }
                Err(reason) => {
                    tracing::warn!(provider = provider.name(), reason, "what is kept cannot be looked at");
                    runtime.uses().works.fetch_or(works, Ordering::SeqCst);
                    due.push(now.after(AGAIN_AFTER));
                }
            }
        }
        // What became of what was given back says itself until when it stays.
        Ok(if acted { Progress::Advanced } else { Progress::Idle { due_at: due.into_iter().min() } })
    }
}

/// What came of a look.
#[derive(Debug, Default)]
struct Looked {
    /// When to look again.
    due: Option<Timestamp>,
    /// Whether something was given back or removed.
    acted: bool,
}

impl Looked {
    fn next(&mut self, at: Timestamp) {
        self.due = Some(self.due.map_or(at, |before| before.min(at)));
    }

    /// Something was to be done, and was or has to be tried again at `again`.
    fn tried(&mut self, done: bool, again: Timestamp) {
        if done {
            self.acted = true;
        } else {
            self.next(again);
        }
    }
}

/// Looks at everything that a provider keeps; at what is kept for Works only when `works` says so.
async fn look(
    runtime: &Runtime,
    provider: &Arc<dyn WorkspaceProvider>,
    kept: Vec<KeptWorkspace>,
    works: bool,
) -> Result<Looked, StoreError> {
    let now = runtime.store().now();
    let again = now.after(AGAIN_AFTER);
    let mut looked = Looked::default();
    for KeptWorkspace { execution, work, state } in kept {
        match state {
            KeptState::Until(at) if at > now => looked.next(at),
            KeptState::Until(_over) => {
                let done = say(provider, execution, caught(provider.remove(execution, now)).await);
                looked.tried(done, again);
            }
            KeptState::ForWork if !works => {}
            KeptState::ForWork => match ended(runtime, execution, work).await? {
                Some((_execution, ended)) if ended.work_ended => {
                    let done = let_go(runtime, provider, execution, ended).await;
                    if !done {
                        runtime.uses().work_ended();
                    }
                    looked.tried(done, again);
                }
                Some(_) | None => {}
            },
            KeptState::InUse => match ended(runtime, execution, work).await? {
                Some((gone, ended)) => {
                    let done =
                        stopped(runtime, &gone).await? && let_go(runtime, provider, execution, ended).await;
                    looked.tried(done, again);
                }
                None => runtime.uses().change(|ids| _ = ids.insert(execution)),
            },
        }
    }
    Ok(looked)
}

/// An attempt that ended and whose workspace may be given back, and how it ended.
async fn ended(
    runtime: &Runtime,
    execution: ExecutionId,
    work: WorkId,
) -> Result<Option<(Execution, Ended)>, StoreError> {
    let read = runtime.store().read("workspace.read", move |tx| {
        // One that the store does not know, as after it was put back from a copy, keeps what it has.
        let Some(execution) = tx.execution(execution)? else { return Ok(None) };
        let work = tx.work(work)?;
        let ended = workspace::may_give_back(&execution, work.as_ref());
        Ok::<_, StoreError>(ended.map(|ended| (execution, ended)))
    });
    read.await
}

/// Whether nothing of an ended attempt runs any more. Its executor has said so, and is asked once more.
async fn stopped(runtime: &Runtime, execution: &Execution) -> Result<bool, StoreError> {
    let binding = runtime
        .generations()
        .binding(runtime.store(), execution.generation, &execution.scope, &execution.binding)
        .await?;
    let (Some(binding), Some(executor)) = (binding, runtime.registry().executor(&execution.executor)) else {
        // Nobody is left to ask.
        return Ok(true);
    };
    let handle = execution.handle.as_ref().map(|handle| handle.as_bytes().to_vec());
    let (id, epoch, config) = (execution.id, execution.epoch, binding.config);
    let segment = Segment { execution: id, epoch, handle, config, secrets: Vec::new(), token: None };
    match caught(executor.stop(segment)).await {
        Ok(Stopped::Confirmed) => Ok(true),
        Ok(Stopped::Unverifiable { reason }) => {
            tracing::warn!(execution = %id, reason, "a run keeps its workspace, as it may still run");
            Ok(false)
        }
        Err(Panicked) => {
            tracing::error!(execution = %id, "an executor failed by a bug at stopping a run");
            Ok(false)
        }
    }
}

/// Has a provider take back what an attempt had. False when that has to be tried again.
async fn let_go(
    runtime: &Runtime,
    provider: &Arc<dyn WorkspaceProvider>,
    execution: ExecutionId,
    ended: Ended,
) -> bool {
    let released = say(provider, execution, caught(provider.release(execution, ended)).await);
    if released {
        runtime.uses().change(|ids| _ = ids.remove(&execution));
        runtime.uses().freed.notify_waiters();
    }
    released
}

/// Says what came of giving back or removing. False when it has to be tried again.
fn say(
    provider: &Arc<dyn WorkspaceProvider>,
    execution: ExecutionId,
    done: Result<Result<Option<String>, String>, Panicked>,
) -> bool {
    let provider = provider.name();
    match done {
        Ok(Ok(None)) => true,
        Ok(Ok(Some(kept))) => {
            tracing::info!(%execution, provider, kept, "a workspace stays");
            true
        }
        Ok(Err(reason)) => {
            tracing::warn!(%execution, provider, reason, "a workspace could not be given back or removed");
            false
        }
        Err(Panicked) => {
            tracing::error!(%execution, provider, "a provider of workspaces failed by a bug");
            false
        }
    }
}
