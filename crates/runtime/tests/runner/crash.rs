//! Crashes at every commit: the files are copied at the point, opened elsewhere, and everything goes on.
//!
//! A copy taken before a commit holds what a power cut would leave; one taken after it holds what was
//! promised. In both, every acknowledged Event must reach exactly one attempt, and no attempt that had begun
//! may begin again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::budget::{Amount, Budget, LedgerId, Owner, Per, Window};
use domain::execution::ExecutionState;
use domain::id::{EventId, ExecutionId, Sequence};
use domain::lease::LEASE;
use domain::outcome::{Outcome, TurnResult};
use domain::route::{ActivePolicy, CheckpointOutcome};
use domain::scope::EffectiveScope;
use domain::text::{DeliveryId, Unit};
use domain::time::Timestamp;
use domain::wait::Registration;
use extension::Recovery;
use serde_json::json;
use store::{Faults, Location, Options, Point};

use super::budget::budget;
use super::world::{Call, Double, HandClock, Taking, World, route, scope, scope_name};
use super::{crash_sequels, crash_use};

/// What a crash left, and what the world knew at that moment.
struct Crash {
    point: Point,
    directory: PathBuf,
    /// How many turns of each attempt had begun.
    begun: BTreeMap<ExecutionId, i64>,
    /// Events whose sender had been answered.
    acknowledged: Vec<EventId>,
    /// How much reports had been answered to use, in thousandths.
    reported: i64,
    /// Whether the scope was paused, and nobody had asked yet that it goes on.
    paused: bool,
}

/// The crashes of one life, and what its outside knows.
#[derive(Default)]
pub(super) struct Crashes {
    taken: Mutex<Vec<Crash>>,
    acknowledged: Mutex<Vec<EventId>>,
    reported: AtomicI64,
    paused: AtomicBool,
}

impl Crashes {
    /// Notes that the sender of an Event was answered.
    pub(super) fn acknowledge(&self, event: EventId) {
        self.acknowledged.lock().unwrap().push(event);
    }

    /// Notes that a report of so many thousandths was answered.
    pub(super) fn report(&self, thousandths: i64) {
        self.reported.fetch_add(thousandths, Ordering::SeqCst);
    }

    /// Notes that a pause was answered, or that it is about to be taken back.
    pub(super) fn pause(&self, paused: bool) {
        self.paused.store(paused, Ordering::SeqCst);
    }
}

fn begun(executor: &Double) -> BTreeMap<ExecutionId, i64> {
    let mut begun = BTreeMap::new();
    for call in executor.calls() {
        match call {
            Call::Run(id, _) | Call::Resume(id, ..) => *begun.entry(id).or_default() += 1,
            Call::Recover(..)
            | Call::Observe(_)
            | Call::Inject(..)
            | Call::Interrupt(_)
            | Call::Notice(..)
            | Call::Release(_)
            | Call::Stop(_) => {}
        }
    }
    begun
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in ["conduit.db", "conduit.db-wal"] {
        if from.join(name).exists() {
            fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
}

/// Two keys, late input, a Work that ends, a failure and a duplicate: some of everything.
async fn scenario(world: &mut World, crashes: &Crashes) {
    let script = [
        ("d-1", Some("a"), json!({})),
        ("d-2", Some("b"), json!({"once": true})),
        ("d-3", Some("a"), json!({})),
        ("d-1", Some("a"), json!({})),
        ("d-4", None, json!({"fresh": true})),
        ("d-5", Some("c"), json!({"drop": true})),
        ("d-6", Some("b"), json!({})),
    ];
    for (id, key, payload) in script {
        let event = world.say(id, key, &payload).await;
        crashes.acknowledge(event);
        world.run().await;
        let_go(world).await;
    }
    // A failure that waits, and the Event that ends the wait.
    let once = world.owner("b").await.expect("it was routed");
    if let domain::work::WorkState::Running { execution } = once.state {
        world.end(execution, Outcome::Failed).await;
        world.clock.advance(Duration::from_mins(5));
        world.run().await;
        let_go(world).await;
    }
    let mut failed = false;
    loop {
        let live: Vec<_> =
            world.executions().await.into_iter().filter(|execution| !execution.state.is_terminal()).collect();
        // One that is parked goes on when there is room for it.
        let Some(next) = live.iter().find(|execution| execution.state.is_going_on()) else { break };
        let outcome = if failed { Outcome::Completed } else { Outcome::Failed };
        failed = true;
        world.end(next.id, outcome).await;
        let_go(world).await;
    }
}

/// What is given to a run while it runs, with a proof and without one, and runs that are ended for others.
async fn orders(world: &mut World, crashes: &Crashes) {
    let say = async |world: &mut World, id: &str, payload| {
        let event = world.say(id, Some("a"), &payload).await;
        crashes.acknowledge(event);
        world.run().await;
        event
    };
    let newest = async |world: &World| world.executions().await.last().unwrap().clone();
    say(world, "d-1", json!({})).await;
    let proved = say(world, "d-2", json!({"for": "inject"})).await;
    let first = newest(world).await;
    let result = TurnResult { consumed_inputs: vec![proved], ..TurnResult::of(Outcome::Handoff) };
    world.executor.end(first.id, result);
    world.settle_tasks().await;
    world.run().await;
    say(world, "d-3", json!({})).await;
    world.executor.on_inject([Taking::IsUnsure]);
    say(world, "d-4", json!({"for": "inject"})).await;
    world.clock.advance(Duration::from_secs(1));
    world.run().await;
    say(world, "d-5", json!({"for": "interrupt"})).await;
    world.runtime.stop_unstopped().await.unwrap();
    world.run().await;
    let third = newest(world).await;
    world.runtime.interrupt(third.work, DeliveryId::known("i-1")).await.unwrap();
    world.run().await;
    say(world, "d-6", json!({})).await;
    world.runtime.stop_unstopped().await.unwrap();
    world.run().await;
    let last = newest(world).await;
    assert_eq!(last.attempt.number(), 4, "each of them happened");
    world.end(last.id, Outcome::Completed).await;
}

/// Lets one turn through of every Work that a budget holds. True when there is one.
async fn let_go(world: &mut World) -> bool {
    let held = world.runtime.store().read("test", |tx| tx.held(99)).await.unwrap();
    for work in &held {
        world.runtime.release(work.id).await.unwrap();
    }
    world.run().await;
    !held.is_empty()
}

/// One turn of each Work starts by itself, and all of them are counted.
fn budgets() -> Vec<Budget> {
    vec![budget("turns", Per::Work, Window::Life, 1), budget("turns", Per::Scope, Window::Life, 1000)]
}

/// Works that wait: for a fact that comes, for one that came already, and for their time.
async fn waits(world: &mut World, crashes: &Crashes) {
    let wait = |seconds| Registration { timeout_seconds: Some(seconds), ..Registration::default() };
    for (opens, follows) in [("w-1", None), ("w-2", Some("after")), ("w-3", Some("before"))] {
        let say = async |world: &mut World, id: String| {
            let event = world.say(&id, Some(opens), &json!({})).await;
            crashes.acknowledge(event);
            world.run().await;
        };
        say(world, opens.to_owned()).await;
        let run = world.executions().await.last().expect("it was started").id;
        if follows == Some("before") {
            say(world, format!("{opens}-before")).await;
        }
        world.park(run, wait(20)).await;
        if follows == Some("after") {
            say(world, format!("{opens}-after")).await;
        }
        world.clock.advance(Duration::from_secs(20));
        world.runtime.renew().await.unwrap();
        world.run().await;
        let_go(world).await;
    }
}

/// Opens what a crash left and lets everything go on to its end.
async fn resume(crash: &Crash, texts: &World, resumes: bool) {
    let clock = HandClock::new();
    clock.advance(Duration::from_hours(1));
    let location = Location::Sqlite(crash.directory.join("conduit.db"));
    let options = Options { clock: clock.shared(), inline: true, ..Options::default() };
    let store = store::open(&location, options).await.unwrap();
    let executor = Arc::new(Double::default());
    executor.can_resume(resumes);
    let mut world = World::over(store, clock, Arc::clone(&executor), texts.texts()).await;
    if world.runtime.generations().active().number.number() == 0 {
        // The crash came before the first configuration was there; nothing can have been accepted.
        assert!(crash.acknowledged.is_empty());
        return;
    }
    // The first life's processes are found by whoever asks for them.
    for execution in world.executions().await {
        let turns = crash.begun.get(&execution.id).copied().unwrap_or(0);
        let found = if turns >= execution.turn.number { Recovery::Alive } else { Recovery::NothingStarted };
        executor.on_recover_of(execution.id, found);
    }
    if crash.paused {
        world.run().await;
        assert_eq!(executor.runs(), 0, "a pause outlives a crash");
    }
    world.runtime.resume_scope(scope_name()).await.unwrap();
    loop {
        world.run().await;
        // Only what the first life began can still run, and stopping it is all that is left of an interruption.
        world.runtime.stop_unstopped().await.unwrap();
        world.run().await;
        if let_go(&mut world).await {
            continue;
        }
        let live: Vec<_> =
            world.executions().await.into_iter().filter(|execution| !execution.state.is_terminal()).collect();
        if live.is_empty() {
            let next = world.runtime.store().read("test", |tx| tx.next_timer_due()).await.unwrap();
            let Some(due) = next else { break };
            world.clock.advance(due.since(world.runtime.store().now()));
            continue;
        }
        let mut ended = false;
        for execution in live {
            ended |= executor.try_end(execution.id, TurnResult::of(Outcome::Completed));
        }
        world.settle_tasks().await;
        if !ended {
            world.clock.advance(LEASE);
        }
    }
    world.clock.advance(Duration::from_mins(1));
    world.run().await;
    let due = world.runtime.store().read("test", |tx| tx.next_intent_due()).await.unwrap();
    assert_eq!(due, None, "an order outlives no attempt");
    crash_use::settle(&mut world).await;
    check(crash, &world, &executor).await;
}

/// How many turns the ledger of the scope has.
async fn counted(world: &World) -> Amount {
    let id = LedgerId {
        owner: Owner::Scope(scope_name()),
        unit: Unit::known("turns"),
        window: Window::Life,
        start: Timestamp::EPOCH,
    };
    world.runtime.store().read("test", move |tx| tx.ledger(&id)).await.unwrap()
}

async fn check(crash: &Crash, world: &World, executor: &Double) {
    crash_sequels::check(world).await;
    crash_use::check(crash.reported, world).await;
    let later = begun(executor);
    let announced = world.events("core.turn.ended").await;
    let mut inputs: BTreeMap<EventId, u32> = BTreeMap::new();
    for execution in world.executions().await {
        let ends = [
            ExecutionState::Completed,
            ExecutionState::Handoff,
            ExecutionState::Failed,
            ExecutionState::Waiting,
        ];
        assert!(ends.contains(&execution.state) || execution.interrupted_by.is_some(), "{execution:?}");
        assert!(!execution.unstopped);
        let id = execution.id;
        let turns = [&crash.begun, &later].map(|begun| begun.get(&id).copied().unwrap_or(0));
        assert!(turns[0] + turns[1] <= execution.turn.number, "begun twice: {turns:?} {execution:?}");
        let told = announced.iter().filter(|event| event.emitted_by == Some(id)).count();
        // Whoever ended it for another Event knows.
        let ended = execution.turn.number - i64::from(execution.interrupted_by.is_some());
        assert_eq!(i64::try_from(told), Ok(ended), "the end of each turn is told: {execution:?}");
        let consumed = world
            .runtime
            .store()
            .read("test", move |tx| tx.inputs_of(id, Sequence::ZERO, 100))
            .await
            .unwrap();
        assert!(consumed.iter().any(|input| input.event == execution.trigger), "{execution:?} has its input");
        for input in consumed {
            *inputs.entry(input.event).or_default() += 1;
        }
    }
    if world.runtime.generations().active().scopes.values().any(|active| !active.scope.budgets.is_empty()) {
        let turns: i64 = world.executions().await.iter().map(|execution| execution.turn.number).sum();
        assert_eq!(counted(world).await, Amount::of_thousandths(turns * 1000), "each turn counts once");
        let reserved =
            world.runtime.store().read("test", |tx| tx.reserved(&Unit::known("turns"), None)).await;
        assert_eq!(reserved.unwrap(), Amount::ZERO, "and reserves nothing afterwards");
    }
    for event in &crash.acknowledged {
        let checkpoint = world.checkpoint(*event).await;
        let outcome = checkpoint.expect("an acknowledged event is routed in the end").outcome;
        let expected = match outcome {
            CheckpointOutcome::Routed => 1,
            CheckpointOutcome::Dropped | CheckpointOutcome::Terminal => 0,
            CheckpointOutcome::Unmatched | CheckpointOutcome::Quarantined => panic!("{event}: {outcome:?}"),
        };
        assert_eq!(
            inputs.get(event).copied().unwrap_or(0),
            expected,
            "{event} is consumed as often as it should"
        );
    }
}

/// Lets a life go on in a scope, copies its files at every commit, and resumes each of the copies.
pub(super) async fn at_every_commit(
    scope: EffectiveScope,
    life: impl AsyncFnOnce(&mut World, &Crashes),
    resumes: bool,
) {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path().join("first");
    fs::create_dir_all(&home).unwrap();
    let clock = HandClock::new();
    let faults = Arc::new(Faults::default());
    let options = Options {
        clock: clock.shared(),
        inline: true,
        faults: Some(Arc::clone(&faults)),
        ..Options::default()
    };
    let store = store::open(&Location::Sqlite(home.join("conduit.db")), options).await.unwrap();

    let executor = Arc::new(Double::default());
    executor.can_resume(resumes);
    let crashes = Arc::new(Crashes::default());
    let mut world = World::over(store, clock, Arc::clone(&executor), Arc::default()).await;
    {
        let (crashes, executor) = (Arc::clone(&crashes), Arc::clone(&executor));
        let root = directory.path().to_path_buf();
        faults.at_points(move |point| {
            if point == Point::Begin {
                return;
            }
            let mut taken = crashes.taken.lock().unwrap();
            let to = root.join(format!("crash-{}", taken.len()));
            copy(&home, &to);
            let acknowledged = crashes.acknowledged.lock().unwrap().clone();
            let paused = crashes.paused.load(Ordering::SeqCst);
            let reported = crashes.reported.load(Ordering::SeqCst);
            let begun = begun(&executor);
            taken.push(Crash { point, directory: to, begun, acknowledged, reported, paused });
        });
    }
    world.apply(scope).await;
    life(&mut world, &crashes).await;

    let taken = std::mem::take(&mut *crashes.taken.lock().unwrap());
    let of = |point| taken.iter().filter(|crash| crash.point == point).count();
    assert!(of(Point::BeforeCommit) >= 30, "{}", of(Point::BeforeCommit));
    assert_eq!(of(Point::BeforeCommit), of(Point::AfterCommit));
    for crash in &taken {
        resume(crash, &world, resumes).await;
    }
}

/// Works that wait, and some of everything.
async fn everything(world: &mut World, crashes: &Crashes) {
    waits(world, crashes).await;
    scenario(world, crashes).await;
}

#[tokio::test]
async fn every_commit_may_be_the_last() {
    at_every_commit(scope(ActivePolicy::Queue, 2), everything, false).await;
}

#[tokio::test]
async fn every_commit_may_be_the_last_where_attempts_are_resumed() {
    at_every_commit(scope(ActivePolicy::Queue, 2), everything, true).await;
}

#[tokio::test]
async fn every_commit_of_an_order_may_be_the_last() {
    let mut declared = scope(ActivePolicy::Queue, 2);
    declared.routes = vec![
        route("given", ActivePolicy::Inject, &json!({"only": "inject"})),
        route("ended", ActivePolicy::Interrupt, &json!({"only": "interrupt"})),
        route("told", ActivePolicy::Queue, &json!({})),
    ];
    at_every_commit(declared, orders, false).await;
}

/// The usual scope under a budget.
fn under_a_budget() -> EffectiveScope {
    EffectiveScope { budgets: budgets(), ..scope(ActivePolicy::Queue, 2) }
}

#[tokio::test]
async fn every_commit_may_be_the_last_under_a_budget() {
    at_every_commit(under_a_budget(), everything, false).await;
}

#[tokio::test]
async fn every_commit_may_be_the_last_under_a_budget_where_attempts_are_resumed() {
    at_every_commit(under_a_budget(), everything, true).await;
}
