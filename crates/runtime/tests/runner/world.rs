//! A runtime whose clock, executor and configuration are in the test's hand.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::causal::Origin;
use domain::delivery::{Acceptance, Authority, Delivery};
use domain::event::{Event, Key, Payload};
use domain::execution::Execution;
use domain::id::{EventId, ExecutionId, WorkId};
use domain::intent::Intent;
use domain::outcome::{Outcome, TurnResult};
use domain::route::{ActivePolicy, Checkpoint, CheckpointOutcome, Fallbacks};
use domain::scope::{Binding, EffectiveScope, Route, SecretRef, Settings};
use domain::store::{EventFilter, ExecutionFilter, Store, StoreError, WaitFilter};
use domain::text::{
    BindingName, DeliveryId, EventType, ExecutorName, ExternalId, HandlerName, RouteName, ScopeName,
    SourceName,
};
use domain::toolbelt::Presented;
use domain::wait::{Registration, Wait};
use domain::work::Work;
use extension::{
    AttemptHost, BoxFuture, Capabilities, ConfigProblem, Controls, Executor, Handler, Injected, Injection,
    Log, LogRequest, Notice, PinError, Recovery, Recurrence, ResumeRequest, RunError, RunRequest, Secret,
    SecretError, Segment, StartGate, Stopped, TriggerChoice, WorkspaceFacts,
};
use runtime::{
    AcceptError, ApplyError, Options, Progress, Registry, Runtime, Scopes, SecretSource, Stage, Stages,
};
use serde_json::{Value, json};
use store::Location;
use tokio::sync::oneshot;

pub(super) use super::clock::HandClock;
use super::pulse::{Pulse, Urgent};
use super::tokens::{CountedTokens, Given};
use super::told::Told;

/// What the double was asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Call {
    Run(ExecutionId, Vec<EventId>),
    /// The attempt, what woke it, and what it is given.
    Resume(ExecutionId, EventId, Vec<EventId>),
    Recover(ExecutionId, i64),
    Observe(ExecutionId),
    Inject(ExecutionId, EventId),
    Interrupt(ExecutionId),
    Notice(ExecutionId, String),
    Release(ExecutionId),
    Stop(ExecutionId),
}

/// How an executor is to answer to an Event that is offered to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taking {
    Accepts,
    Refuses,
    IsUnsure,
    Hangs,
    Panics,
}

#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a thing that a test may ask for by itself")]
struct DoubleState {
    calls: Vec<Call>,
    running: BTreeMap<ExecutionId, oneshot::Sender<TurnResult>>,
    recovery: Option<Recovery>,
    recoveries: BTreeMap<ExecutionId, Recovery>,
    unverifiable: bool,
    never_stop: BTreeSet<ExecutionId>,
    stops_hang: bool,
    run_fault: Option<RunFault>,
    written: u64,
    uncontrollable: bool,
    begins_unrecorded: bool,
    context: Vec<EventId>,
    taking: VecDeque<Taking>,
    held_answers: Vec<oneshot::Sender<()>>,
    proofs: BTreeMap<ExecutionId, Vec<EventId>>,
    resumes: bool,
    tokens: Given,
    workspaces: BTreeMap<ExecutionId, Arc<WorkspaceFacts>>,
    keeps_content: bool,
}

/// How a run is to go wrong before it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunFault {
    /// The executor says that its authority is gone.
    Fenced,
    /// The executor panics.
    Panics,
}

/// An executor that does what it is told.
#[derive(Debug, Default)]
pub(super) struct Double {
    state: Mutex<DoubleState>,
}

impl Double {
    pub(super) fn calls(&self) -> Vec<Call> {
        self.state.lock().unwrap().calls.clone()
    }

    /// The tokens that an attempt was given, oldest first.
    pub(super) fn tokens(&self, execution: ExecutionId) -> Vec<Presented> {
        self.state.lock().unwrap().tokens.of(execution)
    }

    pub(super) fn runs(&self) -> usize {
        self.calls().iter().filter(|call| matches!(call, Call::Run(..))).count()
    }

    /// Ends a run with a result.
    pub(super) fn end(&self, execution: ExecutionId, result: TurnResult) {
        let running = self.state.lock().unwrap().running.remove(&execution);
        running.expect("the run is going").send(result).expect("somebody follows the run");
    }

    pub(super) fn on_recover(&self, recovery: Recovery) {
        self.state.lock().unwrap().recovery = Some(recovery);
    }

    pub(super) fn on_recover_of(&self, execution: ExecutionId, recovery: Recovery) {
        self.state.lock().unwrap().recoveries.insert(execution, recovery);
    }

    /// Ends a run, if it is going.
    pub(super) fn try_end(&self, execution: ExecutionId, result: TurnResult) -> bool {
        let running = self.state.lock().unwrap().running.remove(&execution);
        running.is_some_and(|end| end.send(result).is_ok())
    }

    pub(super) fn cannot_verify_stops(&self, unverifiable: bool) {
        self.state.lock().unwrap().unverifiable = unverifiable;
    }

    pub(super) fn never_stop(&self, execution: ExecutionId) {
        self.state.lock().unwrap().never_stop.insert(execution);
    }

    pub(super) fn stops_again(&self, execution: ExecutionId) {
        self.state.lock().unwrap().never_stop.remove(&execution);
    }

    /// The workspace that a run was given.
    pub(super) fn workspace(&self, execution: ExecutionId) -> Option<Arc<WorkspaceFacts>> {
        self.state.lock().unwrap().workspaces.get(&execution).cloned()
    }

    pub(super) fn hang_at_stops(&self) {
        self.state.lock().unwrap().stops_hang = true;
    }

    /// From now on it says that it can neither inject nor interrupt.
    pub(super) fn cannot_be_controlled(&self, cannot: bool) {
        self.state.lock().unwrap().uncontrollable = cannot;
    }

    /// What the newest run was given as context.
    pub(super) fn context(&self) -> Vec<EventId> {
        self.state.lock().unwrap().context.clone()
    }

    /// From now on what it starts may begin before that is on record.
    pub(super) fn begins_unrecorded(&self) {
        self.state.lock().unwrap().begins_unrecorded = true;
    }

    /// How the next injections are answered; those after them are accepted.
    pub(super) fn on_inject(&self, taking: impl IntoIterator<Item = Taking>) {
        self.state.lock().unwrap().taking.extend(taking);
    }

    /// Lets injections that hang come to their answer, which is that they were accepted.
    pub(super) fn answer_held(&self) {
        self.state.lock().unwrap().held_answers.drain(..).for_each(|held| held.send(()).unwrap_or(()));
    }

    /// What a run proves that is stopped before it has a result.
    pub(super) fn on_proof(&self, execution: ExecutionId, events: Vec<EventId>) {
        self.state.lock().unwrap().proofs.insert(execution, events);
    }

    /// The Events that were offered to a run, in order.
    pub(super) fn injected(&self, execution: ExecutionId) -> Vec<EventId> {
        let mut offered = Vec::new();
        for call in self.calls() {
            if let Call::Inject(to, event) = call
                && to == execution
            {
                offered.push(event);
            }
        }
        offered
    }

    async fn stopped(&self, execution: ExecutionId, call: Call) -> Stopped {
        let hangs = {
            let mut state = self.state.lock().unwrap();
            state.calls.push(call);
            if state.unverifiable || state.never_stop.contains(&execution) {
                return Stopped::Unverifiable { reason: "the test says so".to_owned() };
            }
            state.running.remove(&execution);
            state.stops_hang
        };
        if hangs {
            std::future::pending::<()>().await;
        }
        Stopped::Confirmed
    }

    /// Makes every further run go wrong before it begins, or none.
    pub(super) fn on_run(&self, fault: Option<RunFault>) {
        self.state.lock().unwrap().run_fault = fault;
    }

    /// How many bytes every run has written.
    pub(super) fn write(&self, bytes: u64) {
        self.state.lock().unwrap().written = bytes;
    }

    /// Makes it unable to remove what it has of a run.
    pub(super) fn cannot_release(&self, cannot: bool) {
        self.state.lock().unwrap().keeps_content = cannot;
    }

    /// Lets attempts go on from their Waits, or has the next attempt do it.
    pub(super) fn can_resume(&self, resumes: bool) {
        self.state.lock().unwrap().resumes = resumes;
    }

    /// Pins, unless the test has something else in mind.
    async fn pinned(&self, host: &dyn AttemptHost) -> Result<(), RunError> {
        let fault = self.state.lock().unwrap().run_fault;
        match fault {
            Some(RunFault::Fenced) => return Err(RunError::Fenced),
            Some(RunFault::Panics) => panic!("the test says so"),
            None => {}
        }
        match host.pin(b"handle".to_vec()).await {
            Ok(()) => Ok(()),
            Err(PinError::Fenced) => Err(RunError::Fenced),
            Err(error @ (PinError::TooLarge | PinError::Store(_))) => {
                Err(RunError::Failed { code: "pin_failed", reason: error.to_string() })
            }
        }
    }

    fn begin(&self, execution: ExecutionId, call: Call) -> oneshot::Receiver<TurnResult> {
        let (end, ended) = oneshot::channel();
        let mut state = self.state.lock().unwrap();
        state.calls.push(call);
        state.running.insert(execution, end);
        ended
    }
}

async fn until(ended: oneshot::Receiver<TurnResult>) -> Result<TurnResult, RunError> {
    match ended.await {
        Ok(result) => Ok(result),
        // Nobody will ever end it: it hangs, as real ones do.
        Err(_dropped) => std::future::pending().await,
    }
}

impl Executor for Double {
    fn name(&self) -> ExecutorName {
        ExecutorName::known("double")
    }

    fn capabilities(&self) -> Capabilities {
        let state = self.state.lock().unwrap();
        let can = !state.uncontrollable;
        Capabilities {
            holds_until_pinned: !state.begins_unrecorded,
            controls: Controls { inject: can, interrupt: can },
            resumes: state.resumes,
        }
    }

    fn validate(&self, _config: &Value, _resource: Option<&Value>) -> Result<String, Vec<ConfigProblem>> {
        Ok("does what the test says".to_owned())
    }

    fn run<'a>(
        &'a self,
        request: RunRequest,
        host: &'a dyn AttemptHost,
    ) -> BoxFuture<'a, Result<TurnResult, RunError>> {
        Box::pin(async move {
            {
                let mut state = self.state.lock().unwrap();
                state.tokens.note(request.execution, request.token.as_ref());
                state.workspaces.extend(request.workspace.clone().map(|given| (request.execution, given)));
            }
            self.pinned(host).await?;
            let inputs = request.inputs.iter().map(|input| input.event.id).collect();
            let context = request.inputs.iter().filter(|input| input.is_context).map(|input| input.event.id);
            self.state.lock().unwrap().context = context.collect();
            until(self.begin(request.execution, Call::Run(request.execution, inputs))).await
        })
    }

    fn resume<'a>(
        &'a self,
        ResumeRequest { request, woken_by, session }: ResumeRequest,
        host: &'a dyn AttemptHost,
    ) -> BoxFuture<'a, Result<TurnResult, RunError>> {
        Box::pin(async move {
            self.state.lock().unwrap().tokens.note(request.execution, request.token.as_ref());
            self.pinned(host).await?;
            assert_eq!(session.as_deref(), Some(&b"handle"[..]), "it goes on from what it had pinned");
            let inputs = request.inputs.iter().map(|input| input.event.id).collect();
            until(self.begin(request.execution, Call::Resume(request.execution, woken_by, inputs))).await
        })
    }

    fn recover(&self, segment: Segment) -> BoxFuture<'_, Recovery> {
        Box::pin(async move {
            let mut state = self.state.lock().unwrap();
            state.calls.push(Call::Recover(segment.execution, segment.epoch.number()));
            state.tokens.note(segment.execution, segment.token.as_ref());
            let told = state.recoveries.get(&segment.execution).or(state.recovery.as_ref());
            told.cloned().unwrap_or(Recovery::NothingStarted)
        })
    }

    fn observe(&self, segment: Segment) -> BoxFuture<'_, Result<TurnResult, RunError>> {
        Box::pin(async move { until(self.begin(segment.execution, Call::Observe(segment.execution))).await })
    }

    fn stop(&self, segment: Segment) -> BoxFuture<'_, Stopped> {
        Box::pin(self.stopped(segment.execution, Call::Stop(segment.execution)))
    }

    fn interrupt(&self, segment: Segment) -> BoxFuture<'_, Stopped> {
        Box::pin(self.stopped(segment.execution, Call::Interrupt(segment.execution)))
    }

    fn inject(&self, injection: Injection) -> BoxFuture<'_, Injected> {
        Box::pin(async move {
            let (execution, event) = (injection.segment.execution, injection.input.event.id);
            let reason = "the test says so".to_owned();
            let (taking, held) = {
                let mut state = self.state.lock().unwrap();
                state.calls.push(Call::Inject(execution, event));
                let taking = state.taking.pop_front().unwrap_or(Taking::Accepts);
                let (answer, held) = oneshot::channel();
                if taking == Taking::Hangs {
                    state.held_answers.push(answer);
                }
                (taking, held)
            };
            match taking {
                Taking::Accepts => Injected::Accepted,
                Taking::Refuses => Injected::NotAccepting { reason },
                Taking::IsUnsure => Injected::Ambiguous { reason },
                Taking::Hangs => {
                    held.await.unwrap_or(());
                    Injected::Accepted
                }
                Taking::Panics => panic!("the test says so"),
            }
        })
    }

    fn release(&self, execution: ExecutionId) -> BoxFuture<'_, Result<(), String>> {
        let mut state = self.state.lock().unwrap();
        state.calls.push(Call::Release(execution));
        let kept = state.keeps_content;
        Box::pin(async move { if kept { Err("the test says so".to_owned()) } else { Ok(()) } })
    }

    fn notify(&self, segment: Segment, notice: Notice) -> BoxFuture<'_, ()> {
        let mut state = self.state.lock().unwrap();
        state.calls.push(Call::Notice(segment.execution, format!("{}: {}", notice.code, notice.text)));
        Box::pin(async {})
    }

    fn proof(&self, segment: Segment) -> BoxFuture<'_, Vec<EventId>> {
        let proofs = self.state.lock().unwrap().proofs.get(&segment.execution).cloned();
        Box::pin(async move { proofs.unwrap_or_default() })
    }

    fn log(&self, request: LogRequest) -> BoxFuture<'_, Result<Log, RunError>> {
        let size = self.state.lock().unwrap().written;
        Box::pin(async move { Ok(Log { from: 0, bytes: request.execution.to_string().into(), size }) })
    }

    fn artifact(&self, _execution: ExecutionId, _path: &str) -> Option<std::path::PathBuf> {
        None
    }
}

/// Secrets that are there, until the test takes them away.
#[derive(Debug, Default)]
pub(super) struct Secrets {
    gone: AtomicBool,
}

impl Secrets {
    pub(super) fn take_away(&self, gone: bool) {
        self.gone.store(gone, Ordering::SeqCst);
    }
}

impl SecretSource for Secrets {
    fn resolve<'a>(
        &'a self,
        name: &'a str,
        _reference: &'a SecretRef,
    ) -> BoxFuture<'a, Result<Secret, SecretError>> {
        let error = SecretError { name: name.to_owned(), reason: "the test has none".to_owned() };
        let gone = self.gone.load(Ordering::SeqCst);
        Box::pin(async move { if gone { Err(error) } else { Ok(Secret::new("a secret value".to_owned())) } })
    }
}

pub(super) fn key(id: &str) -> Key {
    Key { source: SourceName::known("test"), external_id: ExternalId::known(id) }
}

pub(super) fn scope_name() -> ScopeName {
    ScopeName::known("main")
}

/// A scope with one route to one binding.
pub(super) fn scope(policy: ActivePolicy, concurrency: u32) -> EffectiveScope {
    let name = scope_name();
    let binding = Binding {
        name: BindingName::known("double"),
        executor: ExecutorName::known("double"),
        config: Value::Null,
        resource: None,
        timeout_seconds: None,
        inactivity_seconds: None,
        credential: None,
        retry: None,
        secrets: BTreeMap::new(),
        declared_in: name.clone(),
    };
    EffectiveScope {
        name: name.clone(),
        lineage: vec![name.clone()],
        disabled: false,
        settings: Settings { concurrency, ..Settings::default() },
        routes: vec![route("told", policy, &json!({}))],
        bindings: BTreeMap::from([(binding.name.clone(), binding)]),
        extensions: BTreeMap::new(),
        read_scopes: Vec::new(),
        write_scopes: Vec::new(),
        budgets: Vec::new(),
    }
}

pub(super) fn route(name: &str, policy: ActivePolicy, config: &Value) -> Route {
    Route {
        name: RouteName::known(name),
        handler: HandlerName::known("told"),
        binding: Some(BindingName::known("double")),
        active_policy: policy,
        fallbacks: Fallbacks::default(),
        config: config.clone(),
        declared_in: scope_name(),
    }
}

pub(super) type Texts = Arc<Mutex<BTreeMap<String, Scopes>>>;

/// A runtime and everything around it.
pub(super) struct World {
    pub(super) runtime: Runtime,
    pub(super) stages: Stages,
    pub(super) executor: Arc<Double>,
    pub(super) clock: Arc<HandClock>,
    pub(super) secrets: Arc<Secrets>,
    /// Whether it takes the loops, or renews what it has of them, before it steps.
    pub(super) claims: bool,
    texts: Texts,
}

impl World {
    /// A world in memory with one scope that queues.
    pub(super) async fn new() -> Self {
        Self::with(scope(ActivePolicy::Queue, 16)).await
    }

    pub(super) async fn with(scope: EffectiveScope) -> Self {
        let clock = HandClock::new();
        let store = open(&Location::Memory, &clock).await;
        let mut world = Self::over(store, clock, Arc::default(), Texts::default()).await;
        world.apply(scope).await;
        world
    }

    /// A world over a store that may have a past.
    pub(super) async fn over(
        store: Store,
        clock: Arc<HandClock>,
        executor: Arc<Double>,
        texts: Texts,
    ) -> Self {
        Self::looking(store, clock, executor, texts, None).await
    }

    /// As [`Self::over`], where stages that run look again every so often.
    pub(super) async fn looking(
        store: Store,
        clock: Arc<HandClock>,
        executor: Arc<Double>,
        texts: Texts,
        look_again: Option<Duration>,
    ) -> Self {
        Self::guarded(store, clock, executor, texts, (look_again, Vec::new())).await
    }

    /// As [`Self::looking`], with start gates.
    pub(super) async fn guarded(
        store: Store,
        clock: Arc<HandClock>,
        executor: Arc<Double>,
        texts: Texts,
        (look_again, gates): (Option<Duration>, Vec<Arc<dyn StartGate>>),
    ) -> Self {
        let double: Arc<dyn Executor> = Arc::<Double>::clone(&executor);
        let registry = Registry::new([Arc::new(Told) as Arc<dyn Handler>], [double]).with_gates(gates);
        Self::registered(store, clock, executor, texts, (look_again, registry)).await
    }

    /// As [`Self::looking`], with what is registered.
    pub(super) async fn registered(
        store: Store,
        clock: Arc<HandClock>,
        executor: Arc<Double>,
        texts: Texts,
        (look_again, registry): (Option<Duration>, Registry),
    ) -> Self {
        let known = Arc::clone(&texts);
        let secrets = Arc::new(Secrets::default());
        let options = Options {
            read_scopes: Arc::new(move |text| {
                known.lock().unwrap().get(text).cloned().ok_or_else(|| "unknown text".to_owned())
            }),
            secrets: Arc::clone(&secrets) as Arc<dyn SecretSource>,
            tokens: Arc::new(CountedTokens::default()),
            look_again,
        };
        let registry = registry
            .with_recurrences([Arc::new(Pulse::new(Arc::clone(&clock))) as Arc<dyn Recurrence>])
            .with_choices([Arc::new(Urgent) as Arc<dyn TriggerChoice>]);
        let (runtime, stages) = Runtime::new(store, registry, options);
        runtime.prepare().await.unwrap();
        Self { runtime, stages, executor, clock, secrets, claims: false, texts }
    }

    pub(super) fn texts(&self) -> Texts {
        Arc::clone(&self.texts)
    }

    pub(super) async fn apply(&mut self, scope: EffectiveScope) {
        self.apply_all(vec![scope]).await;
    }

    pub(super) async fn apply_all(&mut self, scopes: Vec<EffectiveScope>) {
        self.claim().await;
        self.try_apply_all(scopes).await.unwrap();
    }

    pub(super) async fn try_apply(&mut self, scope: EffectiveScope) -> Result<(), ApplyError> {
        self.try_apply_all(vec![scope]).await
    }

    async fn try_apply_all(&mut self, scopes: Vec<EffectiveScope>) -> Result<(), ApplyError> {
        let text = format!("text {}", self.texts.lock().unwrap().len());
        let scopes: Scopes = scopes.into_iter().map(|scope| (scope.name.clone(), Arc::new(scope))).collect();
        self.texts.lock().unwrap().insert(text.clone(), scopes);
        self.runtime.apply(text, String::new()).await.map(|_generation| ())
    }

    pub(super) fn delivery(&self, id: &str, key_id: Option<&str>, payload: &Value) -> Delivery {
        Delivery {
            id: self.runtime.store().ids(domain::id::IdMaker::event),
            source: SourceName::known("test"),
            delivery_id: DeliveryId::known(id),
            event_type: EventType::known("test.happened"),
            scope: scope_name(),
            key: key_id.map(key),
            work: None,
            occurred_at: None,
            payload: Payload::new(payload.to_string().into_bytes()).unwrap(),
            origin: Origin::Root,
        }
    }

    pub(super) async fn accept(&self, delivery: Delivery) -> Result<Acceptance, AcceptError> {
        self.runtime.accept(delivery, Authority::Ingress).await
    }

    /// Accepts a delivery with a key.
    pub(super) async fn deliver(&self, id: &str, key_id: &str) -> EventId {
        self.say(id, Some(key_id), &json!({})).await
    }

    /// Accepts a delivery that tells the handler what to do.
    pub(super) async fn say(&self, id: &str, key_id: Option<&str>, payload: &Value) -> EventId {
        self.accept(self.delivery(id, key_id, payload)).await.unwrap().event()
    }

    /// Lets the tasks of running attempts go as far as they can.
    pub(super) async fn settle_tasks(&self) {
        for _ in 0..64 {
            tokio::task::yield_now().await;
        }
    }

    async fn claim(&self) {
        if self.claims {
            self.runtime.claim_loops().await.unwrap();
        }
    }

    /// Steps every stage until none has anything to do now.
    pub(super) async fn run(&mut self) {
        self.claim().await;
        loop {
            let mut moved = false;
            moved |= self.stages.route.step().await.unwrap() == Progress::Advanced;
            moved |= self.stages.schedule.step().await.unwrap() == Progress::Advanced;
            moved |= self.stages.execute.step().await.unwrap() == Progress::Advanced;
            self.settle_tasks().await;
            moved |= self.stages.dispatch.step().await.unwrap() == Progress::Advanced;
            self.settle_tasks().await;
            moved |= self.stages.complete.step().await.unwrap() == Progress::Advanced;
            moved |= self.stages.wake.step().await.unwrap() == Progress::Advanced;
            moved |= self.stages.alias.step().await.unwrap() == Progress::Advanced;
            moved |= self.stages.recover.step().await.unwrap() == Progress::Advanced;
            self.settle_tasks().await;
            if !moved {
                return;
            }
        }
    }

    /// Steps the routing stage as its loop does: while it advances, and again when its bell has rung.
    pub(super) async fn route_by_hints(&mut self) {
        loop {
            while self.stages.route.step().await.unwrap() == Progress::Advanced {}
            self.settle_tasks().await;
            if !rung(&self.runtime.hints().route).await {
                return;
            }
        }
    }

    /// Routes what is accepted and starts nothing.
    pub(super) async fn stages_route_only(&mut self) {
        self.claim().await;
        while self.stages.route.step().await.unwrap() == Progress::Advanced {}
    }

    /// Lets the stages run by themselves. Those that stay here belong to nobody and are not to be stepped.
    pub(super) fn start(&mut self) {
        let options = Options {
            read_scopes: Arc::new(|_text| Err("nobody asks".to_owned())),
            secrets: Arc::new(Secrets::default()),
            tokens: Arc::new(CountedTokens::default()),
            look_again: None,
        };
        let registry = self.runtime.registry().clone();
        let (_unused, idle) = Runtime::new(self.runtime.store().clone(), registry, options);
        self.runtime.start(std::mem::replace(&mut self.stages, idle));
    }

    /// Ends a run with an outcome and lets everything go on.
    pub(super) async fn end(&mut self, execution: ExecutionId, outcome: Outcome) {
        self.executor.end(execution, TurnResult::of(outcome));
        self.settle_tasks().await;
        self.run().await;
    }

    /// Ends a run's turn in a Wait and lets everything go on.
    pub(super) async fn park(&mut self, execution: ExecutionId, wait: Registration) {
        self.executor.end(execution, TurnResult::waiting(wait));
        self.settle_tasks().await;
        self.run().await;
    }

    /// The newest Wait.
    pub(super) async fn wait(&self) -> Wait {
        let waits =
            self.runtime.store().read("test", |tx| tx.waits(&WaitFilter::default(), 1)).await.unwrap();
        waits.into_iter().next().expect("somebody waits")
    }

    pub(super) async fn checkpoint(&self, event: EventId) -> Option<Checkpoint> {
        self.runtime
            .store()
            .read("test", move |tx| {
                let event = tx.event(event)?.expect("the event was accepted");
                tx.checkpoint(event.sequence)
            })
            .await
            .unwrap()
    }

    pub(super) async fn outcome(&self, event: EventId) -> Option<CheckpointOutcome> {
        self.checkpoint(event).await.map(|checkpoint| checkpoint.outcome)
    }

    pub(super) async fn owner(&self, key_id: &str) -> Option<Work> {
        let key = key(key_id);
        self.runtime
            .store()
            .read("test", move |tx| match tx.key_owner(&key)? {
                Some(id) => tx.work(id),
                None => Ok(None),
            })
            .await
            .unwrap()
    }

    pub(super) async fn work(&self, id: WorkId) -> Work {
        self.runtime.store().read("test", move |tx| tx.work(id)).await.unwrap().unwrap()
    }

    pub(super) async fn pending(&self, work: WorkId) -> Vec<EventId> {
        let inputs = self.runtime.store().read("test", move |tx| tx.pending_inputs(work, 100)).await.unwrap();
        inputs.into_iter().map(|input| input.event).collect()
    }

    /// The orders to an attempt.
    pub(super) async fn intents(&self, execution: ExecutionId) -> Vec<Intent> {
        self.runtime.store().read("test", move |tx| tx.intents_of(execution, 100)).await.unwrap()
    }

    /// Every attempt, oldest first.
    pub(super) async fn executions(&self) -> Vec<Execution> {
        let filter = ExecutionFilter::default();
        let mut executions =
            self.runtime.store().read("test", move |tx| tx.executions(&filter, 200)).await.unwrap();
        executions.reverse();
        executions
    }

    pub(super) async fn execution(&self, id: ExecutionId) -> Execution {
        self.runtime.store().read("test", move |tx| tx.execution(id)).await.unwrap().unwrap()
    }

    /// What the bounds of chains refused: its key and its body.
    pub(super) async fn rejections(&self) -> Vec<(String, Value)> {
        let read =
            |tx: &mut dyn domain::store::Snapshot| tx.kv_after(domain::store::kv::CAUSAL_REJECTIONS, "", 100);
        let rows = self.runtime.store().read("test", read).await.unwrap();
        rows.into_iter().map(|row| (row.key, serde_json::from_slice(&row.body).unwrap())).collect()
    }

    pub(super) async fn events(&self, event_type: &str) -> Vec<Event> {
        let event_type = Some(EventType::known(event_type));
        let filter = EventFilter { event_type, ..EventFilter::default() };
        self.runtime.store().read("test", move |tx| tx.events(&filter, 200)).await.unwrap()
    }
}

/// Whether a bell has rung since it was last heard.
pub(super) async fn rung(bell: &tokio::sync::Notify) -> bool {
    tokio::time::timeout(Duration::ZERO, bell.notified()).await.is_ok()
}

/// Opens a store whose bodies run on the test's thread.
pub(super) async fn open(location: &Location, clock: &Arc<HandClock>) -> Store {
    try_open(location, clock).await.unwrap()
}

pub(super) async fn try_open(location: &Location, clock: &Arc<HandClock>) -> Result<Store, StoreError> {
    let clock = clock.shared();
    store::open(location, store::Options { clock, inline: true, ..store::Options::default() }).await
}
