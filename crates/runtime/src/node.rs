//! One process's runtime: the store, what extensions registered, and the stages over them.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use domain::id::ExecutionId;
use domain::lease::{Grant, Lease};
use domain::store::{Store, StoreError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::alias::Alias;
use crate::complete::Complete;
use crate::control;
use crate::dispatch::Dispatch;
use crate::execute::{Claimed, Execute, Launch, Report, renew};
use crate::follow;
use crate::generation::{ApplyError, Generations, ReadScopes};
use crate::held::Held;
use crate::hint::Hints;
use crate::inherited::Inherited;
use crate::metrics::Metrics;
use crate::own::{self, Own};
use crate::recover::{self, Recover};
use crate::recur::Recur;
use crate::registry::{Registry, SecretSource};
use crate::retain::Retain;
use crate::route::Route;
use crate::schedule::Schedule;
use crate::stage;
use crate::toolbelt::TokenSource;
use crate::wake::{self, Wake};
use crate::workspace::{Uses, Workspaces};

/// How the runtime is to run.
#[derive(Clone)]
pub struct Options {
    /// Turns a generation's text into scopes.
    pub read_scopes: ReadScopes,
    /// Resolves secrets.
    pub secrets: Arc<dyn SecretSource>,
    /// Makes the tokens of attempts.
    pub tokens: Arc<dyn TokenSource>,
    /// How often each stage looks for itself, where another process may have written; a second is usual. None
    /// when this process has the database alone.
    pub look_again: Option<Duration>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("look_again", &self.look_again).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Inner {
    store: Store,
    registry: Registry,
    options: Options,
    generations: Generations,
    hints: Arc<Hints>,
    held: Held,
    inherited: Inherited,
    uses: Uses,
    own: Own,
    metrics: Metrics,
    tasks: TaskTracker,
    end: CancellationToken,
    claims: mpsc::UnboundedSender<Launch>,
    reports: mpsc::UnboundedSender<Report>,
}

/// The runtime of one process. Clones share it.
#[derive(Debug, Clone)]
pub struct Runtime(Arc<Inner>);

/// The stages, for whoever steps them: the loops of [`Runtime::start`], a simulator, or a test.
#[derive(Debug)]
pub struct Stages {
    /// From accepted Events to checkpoints.
    pub route: Route,
    /// From ready Works to claims.
    pub schedule: Schedule,
    /// From claims to executors.
    pub execute: Execute,
    /// From orders to the attempts that they are for.
    pub dispatch: Dispatch,
    /// From results to ended attempts.
    pub complete: Complete,
    /// From due timers to the Events they become.
    pub wake: Wake,
    /// From recurring timers that are due to the Events they publish.
    pub recur: Recur,
    /// From Events of a key to those of the Works that subscribed to it.
    pub alias: Alias,
    /// From ended leases to what became of the attempts.
    pub recover: Recover,
    /// From runs that ended to content that is released.
    pub retain: Retain,
    /// From runs that ended to workspaces that are given back.
    pub workspace: Workspaces,
}

impl Runtime {
    /// Puts a runtime together and its stages, which stand still.
    pub fn new(store: Store, registry: Registry, options: Options) -> (Self, Stages) {
        let (claims, claimed) = mpsc::unbounded_channel();
        let (reports, reported) = mpsc::unbounded_channel();
        let runtime = Self(Arc::new(Inner {
            generations: Generations::new(registry.clone(), Arc::clone(&options.read_scopes)),
            store,
            registry,
            options,
            hints: Arc::default(),
            held: Held::default(),
            inherited: Inherited::default(),
            uses: Uses::default(),
            own: Own::default(),
            metrics: Metrics::default(),
            tasks: TaskTracker::new(),
            end: CancellationToken::new(),
            claims,
            reports,
        }));
        let stages = Stages {
            route: Route::new(runtime.clone()),
            schedule: Schedule::new(runtime.clone()),
            execute: Execute::new(runtime.clone(), claimed),
            dispatch: Dispatch::new(runtime.clone()),
            complete: Complete::new(runtime.clone(), reported),
            wake: Wake::new(runtime.clone()),
            recur: Recur::new(runtime.clone()),
            alias: Alias::new(runtime.clone()),
            recover: Recover::new(runtime.clone()),
            retain: Retain::new(runtime.clone()),
            workspace: Workspaces::new(runtime.clone()),
        };
        (runtime, stages)
    }

    /// Puts the newest stored generation in force and frees what a dead process held.
    ///
    /// # Errors
    /// [`ApplyError`] when the store fails or the generation cannot be used.
    pub async fn prepare(&self) -> Result<(), ApplyError> {
        self.generations().load(self.store()).await?;
        recover::release_dead(self).await?;
        if self.store().exclusive() {
            // Nobody else can have the loops, so they need not be waited for.
            self.claim_loops().await?;
        }
        if self.store().facts_say("clock_stepped_back_seconds") {
            wake::rearm(self).await?;
        }
        // A generation may have been stored by a process that died before it looked again at what waits.
        self.reconsider().await?;
        Ok(())
    }

    /// Lets the stages run until [`Self::shutdown`].
    pub fn start(&self, stages: Stages) {
        let Stages {
            route,
            schedule,
            execute,
            dispatch,
            complete,
            wake,
            recur,
            alias,
            recover,
            retain,
            workspace,
        } = stages;
        self.run(route, |hints| &hints.route);
        self.run(schedule, |hints| &hints.schedule);
        self.run(execute, |hints| &hints.execute);
        self.run(dispatch, |hints| &hints.dispatch);
        self.run(complete, |hints| &hints.complete);
        self.run(wake, |hints| &hints.wake);
        self.run(recur, |hints| &hints.recur);
        self.run(alias, |hints| &hints.alias);
        self.run(recover, |hints| &hints.recover);
        self.run(retain, |hints| &hints.retain);
        self.run(workspace, |hints| &hints.workspace);
        self.spawn(own::run(self.clone(), self.0.end.clone()));
        self.spawn(renew::run(self.clone(), self.0.end.clone()));
        self.spawn(control::stop_loop(self.clone(), self.0.options.look_again, self.0.end.clone()));
        if let Some(every) = self.0.options.look_again {
            self.spawn(follow::run(self.clone(), every, self.0.end.clone()));
        }
    }

    fn run<S: stage::Stage + 'static>(&self, stage: S, bell: fn(&Hints) -> &tokio::sync::Notify) {
        let (store, hints, end) = (self.store().clone(), Arc::clone(&self.0.hints), self.0.end.clone());
        let look_again = self.0.options.look_again;
        self.spawn(async move { stage::run(stage, store, hints, bell, look_again, end).await });
    }

    /// Ends the stages and releases the loops and every lease this process holds, so that the next one need
    /// not wait.
    /// Attempts go on running; whoever starts next adopts them.
    ///
    /// # Errors
    /// [`StoreError`] when the leases could not be released; then they run out by themselves.
    pub async fn shutdown(&self) -> Result<(), StoreError> {
        self.0.end.cancel();
        self.held().close();
        self.0.tasks.close();
        self.0.tasks.wait().await;
        // Only now: a stage in the middle of its step may have claimed something since.
        let grants = self.held().grants();
        // Alone, there is nobody to leave the loops to.
        let tenure = self.own().leave().filter(|_tenure| !self.store().exclusive());
        self.store()
            .transact("release", move |tx| {
                if let Some(tenure) = tenure {
                    let left = tx.ownership().release(tenure);
                    tx.put_ownership(left);
                }
                let now = tx.now();
                for (id, grant) in &grants {
                    let Some(read) = tx.execution(*id)? else { continue };
                    if read.authorize(*grant, now).is_ok() {
                        let lease = Some(Lease { owner: grant.owner, until: now });
                        let next = domain::execution::Execution { lease, ..read.clone() };
                        tx.update_execution(&next, &read)?;
                    }
                }
                Ok(())
            })
            .await
    }

    /// Ids for Events that a transaction may have to publish.
    pub(crate) fn propose_events(&self, count: usize) -> Vec<domain::id::EventId> {
        if count == 0 {
            return Vec::new();
        }
        self.store().ids(|maker, now| (0..count).map(|_| maker.event(now)).collect())
    }

    /// The most items one step takes on here.
    pub(crate) fn batch(&self) -> u32 {
        if self.store().exclusive() { stage::BATCH } else { stage::BATCH_SHARED }
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// What extensions registered.
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    /// The configuration generations.
    pub fn generations(&self) -> &Generations {
        &self.0.generations
    }

    /// The hints between stages.
    pub fn hints(&self) -> &Hints {
        &self.0.hints
    }

    /// The metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// The attempts this process speaks for.
    pub fn held(&self) -> &Held {
        &self.0.held
    }

    pub(crate) fn inherited(&self) -> &Inherited {
        &self.0.inherited
    }

    pub(crate) fn uses(&self) -> &Uses {
        &self.0.uses
    }

    pub(crate) fn own(&self) -> &Own {
        &self.0.own
    }

    pub(crate) fn secrets(&self) -> &dyn SecretSource {
        &*self.0.options.secrets
    }

    pub(crate) fn tokens(&self) -> &dyn TokenSource {
        &*self.0.options.tokens
    }

    /// Renews every lease once, as the loop does every ten seconds.
    ///
    /// # Errors
    /// [`StoreError`] when the store fails.
    pub async fn renew(&self) -> Result<(), StoreError> {
        renew::renew(self).await
    }

    /// Stops what ended while it still ran, once, as the loop does.
    ///
    /// # Errors
    /// [`StoreError`] when the store fails.
    pub async fn stop_unstopped(&self) -> Result<bool, StoreError> {
        control::stop_unstopped(self).await
    }

    /// Cancelled when the runtime is to end.
    pub(crate) fn ending(&self) -> &CancellationToken {
        &self.0.end
    }

    /// Lets a grant go that nobody will act on any more. Its lease runs out, and recovery begins again.
    pub(crate) fn abandon(&self, execution: ExecutionId, grant: Grant) {
        self.held().drop_grant(execution, grant);
        // Recovery may sleep without a due time; it has to look when this lease ends.
        self.hints().recover.notify_one();
    }

    pub(crate) fn launch(&self, claimed: Claimed) {
        // Held from here, so that it is renewed however long it waits to be launched.
        let lost = self.held().take(claimed.execution.id, claimed.grant);
        // The receiver lives as long as the stages; after them, the lease ends and recovery takes over.
        drop(self.0.claims.send(Launch { claimed, lost }));
        self.hints().execute.notify_one();
    }

    pub(crate) fn send_report(&self, report: Report) {
        let id: ExecutionId = report.execution;
        if self.0.reports.send(report).is_err() {
            tracing::debug!(execution = %id, "a result came after the end; recovery will ask for it again");
        }
        self.hints().complete.notify_one();
    }

    /// Runs a task that shutdown waits for.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.tasks.spawn(task);
    }
}
