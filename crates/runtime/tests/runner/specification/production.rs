//! The production runtime as a driver: its stages stepped by hand, over any engine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier, Mutex};
use std::task::Poll;

use domain::alias::Subscribe;
use domain::causal::Origin;
use domain::delivery::{Acceptance, Authority, Delivery as Handed};
use domain::event::Payload;
use domain::id::{Epoch, ExecutionId, IdMaker};
use domain::intent::{Intent, IntentState};
use domain::outcome::{Outcome, TurnResult};
use domain::scope::SecretRef;
use domain::store::{Store, StoreError, Tx};
use domain::text::SubscriptionId;
use domain::time::{Clock, Timestamp};
use extension::{BoxFuture, Executor, Handler, Injected, Recovery, Secret, SecretError};
use runtime::{
    AcceptError, ControlError, Options, PauseError, Progress, Registry, Runtime, Scopes, SecretSource, Stage,
    Stages, SubscribeError,
};
use spec::driver::{
    Answer, AttemptState, Capability, Command, Delivery, Driver, Found, InjectAnswer, ScopeText, Snapshot,
    Subscription, TurnEnd, TurnOutcome,
};
use store::{Host, Location};

use super::clock::HandClock;
use super::copies::{self, Copies, Copy};
use super::mortal::{Fate, mortal};
use super::scripted::{Hands, Scripted};
use super::told::{self, Desk, Told};
use super::{config, snapshot};

/// No case has a secret.
#[derive(Debug)]
struct NoSecrets;

impl SecretSource for NoSecrets {
    fn resolve<'a>(
        &'a self,
        name: &'a str,
        _reference: &'a SecretRef,
    ) -> BoxFuture<'a, Result<Secret, SecretError>> {
        let error = SecretError { name: name.to_owned(), reason: "a case has none".to_owned() };
        Box::pin(async move { Err(error) })
    }
}

/// Where the database is.
#[derive(Debug, Clone)]
pub(super) enum Engine {
    /// In memory, where the store itself is what a restart finds again.
    Memory,
    /// In a file, which is copied at every commit. Whenever no attempt is live, a case goes on in a copy.
    Sqlite(PathBuf),
    /// On a server.
    Postgres(String),
}

/// A runtime over the store, with stages of its own. There are two at least, so that they compete.
struct Node {
    runtime: Runtime,
    stages: Stages,
}

/// What outlives every process of a case.
struct World {
    engine: Engine,
    /// What copies the file at each commit.
    copies: Option<Arc<Copies>>,
    /// Whether every body of a transaction runs twice.
    rehearse: bool,
    clock: Arc<HandClock>,
    executor: Arc<Scripted>,
    desk: Arc<Desk>,
    texts: Arc<Mutex<BTreeMap<String, Scopes>>>,
}

pub(super) struct Production {
    tokio: tokio::runtime::Runtime,
    world: World,
    /// What is durable.
    durable: Store,
    /// The same, as the process that lives now has it.
    store: Store,
    fate: Arc<Fate>,
    nodes: Vec<Node>,
    /// What is there, as long as nothing has been done since it was looked at.
    seen: Option<Snapshot>,
    /// How many processes there were before this one.
    lives: i64,
    /// How often the database was opened again.
    reopened: usize,
}

impl World {
    async fn open(&self) -> Store {
        let (clock, rehearse) = (self.clock.shared(), self.rehearse);
        let options = store::Options { clock, rehearse, inline: true, ..store::Options::default() };
        match &self.engine {
            Engine::Memory => store::open(&Location::Memory, options).await.unwrap(),
            Engine::Sqlite(path) => {
                let faults = self.copies.as_ref().map(|copies| copies.faults(path));
                let options = store::Options { faults, ..options };
                store::open(&Location::Sqlite(path.clone()), options).await.unwrap()
            }
            Engine::Postgres(dsn) => {
                let host = Host { identity: "cellar".to_owned(), label: "the cellar".to_owned() };
                let options = store::Options { host: Some(host), own_time: true, ..options };
                store::open(&Location::Postgres(dsn.clone()), options).await.unwrap()
            }
        }
    }

    async fn node(&self, store: &Store) -> Node {
        let texts = Arc::clone(&self.texts);
        let options = Options {
            read_scopes: Arc::new(move |text| {
                texts.lock().unwrap().get(text).cloned().ok_or_else(|| "unknown text".to_owned())
            }),
            secrets: Arc::new(NoSecrets),
            tokens: Arc::new(runtime::NoTokens),
            look_again: None,
        };
        let handler: Arc<dyn Handler> = Arc::new(Told(Arc::clone(&self.desk)));
        let every = [Capability::Resume, Capability::Inject, Capability::Interrupt];
        let executors = (0..8).map(|chosen| -> Arc<dyn Executor> {
            let can = every.into_iter().enumerate().filter(|(bit, _it)| chosen & (1 << bit) != 0);
            let can = can.map(|(_bit, capability)| capability).collect();
            Arc::new(Hands { can, script: Arc::clone(&self.executor) })
        });
        let (runtime, stages) = Runtime::new(store.clone(), Registry::new([handler], executors), options);
        runtime.prepare().await.unwrap();
        Node { runtime, stages }
    }
}

/// Lets the tasks of handlers and attempts go as far as they can.
async fn settle() {
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
}

/// Whether a bell has rung since it was last heard. No timer is asked, for a thread that only waits runs none.
async fn rung(bell: &tokio::sync::Notify) -> bool {
    let mut notified = std::pin::pin!(bell.notified());
    std::future::poll_fn(|context| Poll::Ready(notified.as_mut().poll(context).is_ready())).await
}

/// Steps a stage until it has nothing to do now.
async fn exhaust(stage: &mut impl Stage) {
    while stage.step().await.unwrap() == Progress::Advanced {}
    settle().await;
}

impl Node {
    async fn route(&mut self) {
        loop {
            exhaust(&mut self.stages.route).await;
            exhaust(&mut self.stages.complete).await;
            if !rung(&self.runtime.hints().route).await {
                return;
            }
        }
    }

    /// Does what one node does by itself. What came of it is for the caller to see.
    async fn act(&mut self, command: &Command, at: &World) -> Answer {
        // Where others share the database, whoever runs the loops says so again and again.
        self.runtime.claim_loops().await.unwrap();
        self.runtime.follow_generation().await.unwrap();
        match command {
            Command::Configure(texts) => self.configure(texts, at).await,
            Command::Accept(delivery) => accept(&self.runtime, delivery).await,
            Command::Route => {
                self.route().await;
                Answer::Done
            }
            Command::Claim => {
                exhaust(&mut self.stages.schedule).await;
                Answer::Done
            }
            Command::Launch => {
                exhaust(&mut self.stages.execute).await;
                Answer::Done
            }
            Command::Renew => {
                self.runtime.renew().await.unwrap();
                Answer::Done
            }
            Command::Recover(_found) => {
                exhaust(&mut self.stages.recover).await;
                exhaust(&mut self.stages.complete).await;
                Answer::Done
            }
            Command::Fire => {
                exhaust(&mut self.stages.wake).await;
                Answer::Done
            }
            Command::Report { .. } => {
                exhaust(&mut self.stages.complete).await;
                Answer::Done
            }
            Command::Cancel(work) => match self.runtime.cancel(*work).await {
                Ok(_cancelled) => {
                    self.runtime.stop_unstopped().await.unwrap();
                    Answer::Done
                }
                Err(error) => refused(&error),
            },
            Command::Retry { work, delivery } => match self.runtime.retry(*work, delivery.clone()).await {
                Ok(acceptance) => accepted(acceptance),
                Err(error) => refused(&error),
            },
            Command::Open(_) | Command::Advance(_) | Command::Reopen => Answer::Done,
            Command::Interrupt { work, delivery } => {
                match self.runtime.interrupt(*work, delivery.clone()).await {
                    Ok(ordered) => accepted(ordered.acceptance),
                    Err(error) => refused(&error),
                }
            }
            Command::Dispatch(_) | Command::Present | Command::Acknowledge(_) => {
                self.dispatch(command, at).await;
                Answer::Done
            }
            Command::Subscribe(subscription) => subscribe(&self.runtime, subscription).await,
            Command::Translate => {
                exhaust(&mut self.stages.alias).await;
                Answer::Done
            }
            Command::Release(work) => match self.runtime.release(*work).await {
                Ok(_released) => Answer::Done,
                Err(error) => refused(&error),
            },
            Command::Pause(scope) => pause(self.runtime.pause_scope(scope.clone()).await),
            Command::Resume(scope) => pause(self.runtime.resume_scope(scope.clone()).await),
        }
    }

    /// Presents orders, lets the answers come in, or both.
    async fn dispatch(&mut self, command: &Command, at: &World) {
        if let Command::Dispatch(_) | Command::Present = command {
            self.present().await;
        }
        if let Command::Dispatch(answer) | Command::Acknowledge(answer) = command {
            acknowledge(at, *answer).await;
            self.runtime.stop_unstopped().await.unwrap();
        }
    }

    /// Sends every order that is not settled, also one that is not due yet, and stops what they ended.
    async fn present(&mut self) {
        self.runtime.store().transact("case", hurry).await.unwrap();
        exhaust(&mut self.stages.dispatch).await;
        self.runtime.stop_unstopped().await.unwrap();
    }

    async fn configure(&self, texts: &[ScopeText], at: &World) -> Answer {
        let scopes = match config::scopes(texts) {
            Ok(scopes) => scopes,
            Err(answer) => return answer,
        };
        let text = format!("text {}", at.texts.lock().unwrap().len());
        at.texts.lock().unwrap().insert(text.clone(), scopes);
        match self.runtime.apply(text, String::new()).await {
            Ok(_generation) => Answer::Done,
            Err(error) => Answer::Refused(error.to_string()),
        }
    }
}

fn pause<T>(paused: Result<T, PauseError>) -> Answer {
    match paused {
        Ok(_done) => Answer::Done,
        Err(error) => Answer::Refused(error.to_string()),
    }
}

async fn subscribe(runtime: &Runtime, subscription: &Subscription) -> Answer {
    let asked = Subscribe {
        id: SubscriptionId::known(&subscription.id),
        work: subscription.work,
        watched: subscription.watched.clone(),
        types: subscription.types.clone(),
        own: subscription.own.clone(),
        becomes: subscription.becomes.clone(),
        after: subscription.after,
    };
    match runtime.subscribe(asked).await {
        Ok(_installed) => Answer::Done,
        Err(SubscribeError::Refused(refusal)) => Answer::Refused(refusal.code().to_owned()),
        Err(SubscribeError::Store(error)) => panic!("{error}"),
    }
}

/// Makes every order due that is to be sent again later: a case lets no time pass for it.
fn hurry(tx: &mut dyn Tx) -> Result<(), StoreError> {
    let now = tx.now();
    for read in tx.due_intents(Timestamp::MAX, 1000)? {
        let state = match read.state {
            IntentState::Pending { due_at } if due_at > now => IntentState::Pending { due_at: now },
            IntentState::Dispatched { due_at } if due_at > now => IntentState::Dispatched { due_at: now },
            IntentState::Ambiguous { due_at } if due_at > now => IntentState::Ambiguous { due_at: now },
            IntentState::Pending { .. }
            | IntentState::Dispatched { .. }
            | IntentState::Ambiguous { .. }
            | IntentState::Accepted
            | IntentState::NotAccepting
            | IntentState::FellBack
            | IntentState::Consumed
            | IntentState::Delivered
            | IntentState::Stale => continue,
        };
        tx.update_intent(&Intent { state, ..read.clone() }, &read)?;
    }
    Ok(())
}

/// Lets the answers to what was presented come in, and to what is presented after them.
async fn acknowledge(at: &World, answer: InjectAnswer) {
    let reason = "the case says so".to_owned();
    let answer = match answer {
        InjectAnswer::Accepted => Injected::Accepted,
        InjectAnswer::NotAccepting => Injected::NotAccepting { reason },
        InjectAnswer::Ambiguous => Injected::Ambiguous { reason },
    };
    while at.executor.acknowledge(&answer) {
        settle().await;
    }
}

async fn accept(runtime: &Runtime, delivery: &Delivery) -> Answer {
    let origin = match delivery.parent {
        None => Origin::Root,
        Some(parent) => Origin::Derived { parent, emitted_by: delivery.emitted_by },
    };
    let authority = if delivery.parent.is_some() { Authority::Core } else { Authority::Ingress };
    let handed = Handed {
        id: runtime.store().ids(IdMaker::event),
        source: delivery.source.clone(),
        delivery_id: delivery.id.clone(),
        event_type: delivery.event_type.clone(),
        scope: delivery.scope.clone(),
        key: delivery.key.clone(),
        work: delivery.work,
        occurred_at: None,
        payload: Payload::new(told::payload(delivery).to_string().into_bytes()).unwrap(),
        origin,
    };
    match runtime.accept(handed, authority).await {
        Ok(acceptance) => accepted(acceptance),
        Err(error @ (AcceptError::Refused(_) | AcceptError::UnknownScope(_))) => {
            Answer::Refused(error.code().to_owned())
        }
        Err(AcceptError::Store(error)) => panic!("{error}"),
    }
}

fn accepted(acceptance: Acceptance) -> Answer {
    match acceptance {
        Acceptance::New { event, .. } => Answer::Accepted(event),
        Acceptance::Duplicate { event, .. } => Answer::Original(event),
    }
}

fn refused(error: &ControlError) -> Answer {
    assert!(!matches!(error, ControlError::Store(_)), "{error}");
    Answer::Refused(error.to_string())
}

/// A turn's end as an executor reports it.
fn result(end: &TurnEnd) -> TurnResult {
    let of = match &end.outcome {
        TurnOutcome::Completed => TurnResult::of(Outcome::Completed),
        TurnOutcome::Handoff => TurnResult::of(Outcome::Handoff),
        TurnOutcome::Failed { retry_after_seconds } => {
            TurnResult { retry_after_seconds: *retry_after_seconds, ..TurnResult::of(Outcome::Failed) }
        }
        TurnOutcome::Waiting(registration) => TurnResult::waiting(domain::wait::Registration {
            keys: Some(registration.keys.clone()),
            types: registration.types.clone(),
            after: Some(registration.after),
            timeout_seconds: registration.timeout.map(|timeout| timeout.as_secs()),
        }),
    };
    TurnResult { consumed_inputs: end.consumed.clone(), ..of }
}

/// Without a look at the network after every task, where the engine has none.
fn one_thread(engine: &Engine) -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    match engine {
        Engine::Memory | Engine::Sqlite(_) => builder.enable_time(),
        Engine::Postgres(_) => builder.enable_all(),
    };
    builder.build().unwrap()
}

/// What a process answers, if it lives to do so.
async fn unless_dead(fate: &Fate, answer: impl Future<Output = Answer>) -> Answer {
    tokio::select! {
        biased;
        () = fate.died() => Answer::Lacking("life"),
        answer = answer => answer,
    }
}

/// Whether a restart here would end nothing that an attempt has in a process.
fn is_quiet(seen: &Snapshot) -> bool {
    seen.attempts.iter().all(|attempt| attempt.state.is_terminal())
}

/// After so many crashes one comes before a commit.
const AGAIN: usize = 3;

impl Production {
    pub(super) fn new(engine: Engine) -> Self {
        Self::over(engine, true)
    }

    /// One in memory for long runs, which does everything once.
    pub(super) fn swift() -> Self {
        Self::over(Engine::Memory, false)
    }

    fn over(engine: Engine, rehearse: bool) -> Self {
        let tokio = one_thread(&engine);
        let folder = match &engine {
            Engine::Sqlite(path) => path.parent().map(Path::to_owned),
            Engine::Memory | Engine::Postgres(_) => None,
        };
        let world = World {
            engine,
            copies: folder.map(Copies::below),
            rehearse,
            clock: HandClock::new(),
            executor: Arc::default(),
            desk: Desk::new(),
            texts: Arc::default(),
        };
        let mut driver = Self::open(tokio, world);
        driver.begin();
        driver
    }

    /// Over a database, with no process yet.
    fn open(tokio: tokio::runtime::Runtime, world: World) -> Self {
        let durable = tokio.block_on(world.open());
        let (store, fate, nodes) = (durable.clone(), Arc::default(), Vec::new());
        Self { tokio, world, durable, store, fate, nodes, seen: None, lives: 0, reopened: 0 }
    }

    /// How often the case went on in a copy, or the database was opened again; and how many copies there were.
    pub(super) fn reopened(&self) -> (usize, usize) {
        (self.reopened, self.world.copies.as_ref().map_or(0, |copies| copies.count()))
    }

    /// A machine of its own over a copy of the file, with nothing but what is in it.
    pub(super) fn elsewhere(&self, copy: &Path) -> Self {
        let clock = HandClock::new();
        clock.advance(self.world.clock.wall().since(clock.wall()));
        let world = World {
            engine: Engine::Sqlite(copy.to_owned()),
            copies: None,
            rehearse: false,
            clock,
            executor: Arc::default(),
            desk: Desk::new(),
            texts: Arc::clone(&self.world.texts),
        };
        world.desk.open_all();
        Self::open(one_thread(&world.engine), world)
    }

    /// What a crash left here, before anybody looks after it; then a process begins.
    pub(super) fn left(&mut self) -> Snapshot {
        let left = self.snapshot();
        self.begin();
        left
    }

    /// The process dies, and the next one begins over a copy of the file.
    fn move_to(&mut self, copy: &Path) {
        self.reopened += 1;
        self.nodes.clear();
        self.tokio = one_thread(&self.world.engine);
        self.world.executor.forget();
        self.world.engine = Engine::Sqlite(copy.to_owned());
        self.durable = self.tokio.block_on(self.world.open());
        self.begin();
        self.copies();
    }

    /// The copies since this was asked last.
    fn copies(&self) -> Vec<Copy> {
        self.world.copies.as_ref().map(|copies| copies.take()).unwrap_or_default()
    }

    /// Does one thing in a file, of which every crash is looked at that can come into it.
    fn act_in_a_file(&mut self, command: &Command) -> Answer {
        let before = self.snapshot();
        let mut answer = self.perform(command);
        let mut copies = self.copies();
        copies::verify(&copies, self, &before, &self.now());
        // A process that dies before its first commit has done nothing, and the command comes to the next one.
        let again = self.reopened.is_multiple_of(AGAIN) && is_quiet(&before);
        if let Some(first) = copies.first().cloned().filter(|_copy| again) {
            self.move_to(&first.path);
            answer = self.perform(command);
            copies = self.copies();
            copies::verify(&copies, self, &before, &self.now());
        }
        self.go_on_in(&copies);
        answer
    }

    /// The process dies after its last commit, if that ends nothing of an attempt.
    fn go_on_in(&mut self, copies: &[Copy]) {
        if let Some(last) = copies.last()
            && is_quiet(&self.now())
        {
            self.move_to(&last.path);
        }
    }

    fn now(&self) -> Snapshot {
        self.tokio.block_on(self.durable.read("test", snapshot::read)).unwrap()
    }

    /// What is there before a command, which then is done.
    fn before(&mut self) -> Snapshot {
        match self.seen.take() {
            Some(seen) => seen,
            None => self.look(),
        }
    }

    fn look(&self) -> Snapshot {
        let read = self.now();
        let attempts = read.attempts.into_iter().map(|attempt| {
            let label = self.world.executor.label(attempt.id);
            let launched = attempt.state != AttemptState::Launching;
            spec::driver::AttemptRecord { label: label.filter(|_label| launched), ..attempt }
        });
        Snapshot { attempts: attempts.collect(), asked: self.world.desk.asked(), ..read }
    }

    /// Ends every process and begins another over what is durable.
    fn reopen(&mut self) {
        self.reopened += 1;
        let nodes = std::mem::take(&mut self.nodes);
        self.tokio.block_on(async {
            for node in &nodes {
                node.runtime.shutdown().await.unwrap();
            }
            drop(nodes);
            settle().await;
            self.world.executor.forget();
            if !matches!(self.world.engine, Engine::Memory) {
                self.durable.close().await.unwrap();
                self.durable = self.world.open().await;
            }
        });
        self.begin();
    }

    /// Begins a process over what is durable.
    fn begin(&mut self) {
        self.seen = None;
        self.fate = Arc::default();
        self.store = match self.world.engine {
            Engine::Memory => {
                self.lives += 1;
                let store = mortal(self.durable.clone(), Arc::clone(&self.fate), self.lives);
                let owner = store.incarnation();
                // As opening a file does, which is had alone.
                let owns = self.durable.transact("own", move |tx| {
                    let next = tx.ownership().exclusive(owner);
                    tx.put_ownership(next);
                    Ok::<_, StoreError>(())
                });
                self.tokio.block_on(owns).unwrap();
                store
            }
            // Whoever opens it is new there.
            Engine::Sqlite(_) | Engine::Postgres(_) => self.durable.clone(),
        };
        for _ in 0..2 {
            let node = self.tokio.block_on(self.world.node(&self.store));
            self.nodes.push(node);
        }
    }

    /// Drops a process with everything that it had in memory, and begins another.
    fn replace(&mut self) {
        self.nodes.clear();
        self.tokio = one_thread(&self.world.engine);
        self.world.executor.forget();
        self.begin();
        // The first thing that a daemon does is to stop what nobody is known to have stopped.
        self.tokio.block_on(self.nodes[0].runtime.stop_unstopped()).unwrap();
    }

    fn report(
        &mut self,
        before: &Snapshot,
        (execution, epoch): (ExecutionId, Epoch),
        end: &TurnEnd,
    ) -> Answer {
        if !self.world.executor.end(execution, epoch, result(end)) {
            return Answer::Refused("nobody_follows".to_owned());
        }
        let command = Command::Report { execution, epoch, end: end.clone() };
        self.on_every_node(&command);
        let after = self.snapshot();
        let changed = before.attempt(execution) != after.attempt(execution);
        if changed { Answer::Done } else { Answer::Refused("stale".to_owned()) }
    }

    fn on_every_node(&mut self, command: &Command) -> Answer {
        let (nodes, world, fate) = (&mut self.nodes, &self.world, &self.fate);
        let mut nodes: Vec<&mut Node> = nodes.iter_mut().collect();
        if let Command::Recover(_) = command {
            // Not by whoever lost it: that one then still believes, and its results are under the old epoch.
            nodes.reverse();
        }
        self.tokio.block_on(unless_dead(fate, async {
            settle().await;
            let mut answer = Answer::Done;
            for node in nodes {
                answer = node.act(command, world).await;
            }
            answer
        }))
    }

    fn on_one_node(&mut self, command: &Command) -> Answer {
        let (node, world) = (&mut self.nodes[0], &self.world);
        self.tokio.block_on(unless_dead(&self.fate, node.act(command, world)))
    }

    /// Sets the executor up for what it is to find.
    fn find(&self, found: &Found) {
        let (found, unverifiable) = match found {
            Found::Alive => (Recovery::Alive, false),
            Found::Finished(end) => (Recovery::Finished(result(end)), false),
            Found::NothingStarted => (Recovery::NothingStarted, false),
            Found::NotAdoptable { stopped } => {
                let reason = "the case says so".to_owned();
                (Recovery::NotAdoptable { reason, stopped: *stopped }, !*stopped)
            }
        };
        self.world.executor.finds(found, unverifiable);
    }
}

impl Production {
    /// Does one thing.
    fn perform(&mut self, command: &Command) -> Answer {
        let before = self.before();
        match command {
            Command::Open(gate) => {
                self.world.desk.open(gate);
                Answer::Done
            }
            Command::Advance(by) => {
                self.world.clock.advance(*by);
                Answer::Done
            }
            Command::Reopen => {
                self.reopen();
                Answer::Done
            }
            Command::Report { execution, epoch, end } => self.report(&before, (*execution, *epoch), end),
            Command::Claim | Command::Recover(_) => {
                if let Command::Recover(found) = command {
                    self.find(found);
                }
                self.on_every_node(command);
                self.world.executor.can_stop();
                Answer::Attempts(snapshot::claimed(&before, &self.snapshot()))
            }
            Command::Renew => {
                self.on_every_node(command);
                let after = self.snapshot();
                let later = |id| after.attempt(id).lease_until > before.attempt(id).lease_until;
                Answer::Attempts(after.attempts.iter().map(|it| it.id).filter(|id| later(*id)).collect())
            }
            Command::Route | Command::Launch | Command::Fire | Command::Translate => {
                self.on_every_node(command)
            }
            Command::Configure(_)
            | Command::Accept(_)
            | Command::Cancel(_)
            | Command::Retry { .. }
            | Command::Interrupt { .. }
            | Command::Dispatch(_)
            | Command::Present
            | Command::Acknowledge(_)
            | Command::Subscribe(_)
            | Command::Pause(_)
            | Command::Resume(_)
            | Command::Release(_) => self.on_one_node(command),
        }
    }
}

impl Driver for Production {
    fn act(&mut self, command: Command) -> Answer {
        if self.world.copies.is_some() { self.act_in_a_file(&command) } else { self.perform(&command) }
    }

    /// Each command on a thread and a node of its own, which begin together.
    fn together(&mut self, commands: Vec<Command>) -> Vec<Answer> {
        while self.nodes.len() < commands.len() {
            let node = self.tokio.block_on(self.world.node(&self.store));
            self.nodes.push(node);
        }
        for command in &commands {
            if let Command::Recover(found) = command {
                self.find(found);
            }
        }
        let before = self.before();
        let (barrier, handle, world) = (Barrier::new(commands.len()), self.tokio.handle(), &self.world);
        let answers: Vec<Answer> = std::thread::scope(|scope| {
            let threads: Vec<_> = commands
                .iter()
                .zip(&mut self.nodes)
                .map(|(command, node)| {
                    let barrier = &barrier;
                    scope.spawn(move || {
                        barrier.wait();
                        handle.block_on(node.act(command, world))
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        self.tokio.block_on(settle());
        let copies = self.copies();
        if self.world.copies.is_some() {
            copies::verify(&copies, self, &before, &self.now());
        }
        // Whoever claimed has what came of it; the others have nothing.
        let claimed = snapshot::claimed(&before, &self.snapshot());
        let mut claimed = Some(claimed);
        self.go_on_in(&copies);
        let claims = |command: &Command| matches!(command, Command::Claim | Command::Recover(_));
        commands
            .iter()
            .zip(answers)
            .map(
                |(command, answer)| {
                    if claims(command) {
                        Answer::Attempts(claimed.take().unwrap_or_default())
                    } else {
                        answer
                    }
                },
            )
            .collect()
    }

    fn crash(&mut self, command: Command, at: u32) {
        self.fate.order(at);
        // Nobody hears the answer.
        let _unheard = self.act(command);
        self.seen = None;
        self.replace();
    }

    fn snapshot(&mut self) -> Snapshot {
        let seen = self.seen.take().unwrap_or_else(|| self.look());
        self.seen.insert(seen).clone()
    }
}
