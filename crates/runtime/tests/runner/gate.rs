//! Start gates: a reference gate that answers what the test says, and what becomes of the Works it holds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use domain::capacity::Blocker;
use domain::outcome::Outcome;
use domain::route::ActivePolicy;
use domain::work::{HoldReason, Queue, Work, WorkRefusal, WorkState};
use extension::{BoxFuture, Code, StartDecision, StartGate, StartSettlement, StartView, WorkKind};
use runtime::ControlError;
use serde_json::json;
use store::Location;
use tokio::sync::Notify;

use super::world::{Double, HandClock, Texts, World, open, scope, scope_name};

/// What the gate does about a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Hold,
    /// It answers only when it is rung.
    Later,
    Panic,
}

/// A gate for the kind `told` that is against nothing but the keys it was told about.
#[derive(Debug, Default)]
struct Reference {
    told: Mutex<BTreeMap<String, Told>>,
    asked: Mutex<Vec<String>>,
    bell: Notify,
}

impl Reference {
    fn about(&self, key: &str, told: Option<Told>) {
        let mut all = self.told.lock().unwrap();
        match told {
            Some(told) => all.insert(key.to_owned(), told),
            None => all.remove(key),
        };
    }

    fn asked(&self, key: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked| *asked == key).count()
    }
}

impl StartGate for Reference {
    fn name(&self) -> Code {
        Code::known("reference")
    }

    fn guards(&self, kind: &WorkKind) -> bool {
        kind.as_str() == "told"
    }

    fn decide<'a>(&'a self, start: &'a StartView) -> BoxFuture<'a, StartDecision> {
        Box::pin(async move {
            let key = start.keys[0].external_id.to_string();
            self.asked.lock().unwrap().push(key.clone());
            let told = self.told.lock().unwrap().get(&key).copied();
            match told {
                None => StartDecision::Start,
                Some(Told::Hold) => StartDecision::Hold { reason: "nobody has agreed yet".to_owned() },
                Some(Told::Later) => {
                    self.bell.notified().await;
                    StartDecision::Start
                }
                Some(Told::Panic) => panic!("the test says so"),
            }
        })
    }
}

async fn over(location: &Location, gate: &Arc<Reference>, texts: Texts) -> World {
    let clock = HandClock::new();
    let store = open(location, &clock).await;
    let gates: Vec<Arc<dyn StartGate>> = vec![Arc::<Reference>::clone(gate)];
    World::guarded(store, clock, Arc::<Double>::default(), texts, (None, gates)).await
}

async fn guarded() -> (World, Arc<Reference>) {
    let gate = Arc::new(Reference::default());
    let mut world = over(&Location::Memory, &gate, Texts::default()).await;
    world.apply(scope(ActivePolicy::Queue, 16)).await;
    (world, gate)
}

/// Lets tasks and stages go on until neither has anything to do.
async fn run(world: &mut World) {
    for _ in 0..4 {
        world.run().await;
        world.settle_tasks().await;
    }
}

async fn start(world: &mut World, id: &str, key: &str) -> Work {
    world.deliver(id, key).await;
    run(world).await;
    world.owner(key).await.unwrap()
}

fn is_held(work: &Work) -> bool {
    work.hold.as_ref().is_some_and(|hold| hold.because == HoldReason::Gate)
}

#[tokio::test]
async fn a_gate_holds_a_work_before_its_first_attempt_and_its_input_queues() {
    let (mut world, gate) = guarded().await;
    gate.about("a", Some(Told::Hold));
    let held = start(&mut world, "d-1", "a").await;
    assert!(is_held(&held), "{held:?}");
    assert_eq!(held.hold.as_ref().unwrap().reason, "gate `reference`: nobody has agreed yet");
    assert_eq!((held.state, held.attempts), (WorkState::Ready, 0), "no attempt is there to park");
    start(&mut world, "d-2", "a").await;
    assert_eq!(world.pending(held.id).await.len(), 2);
    assert_eq!((world.executor.runs(), gate.asked("a")), (0, 1), "nothing asks again");
    start(&mut world, "d-3", "b").await;
    assert_eq!(world.executor.runs(), 1, "another is not held");
}

#[tokio::test]
async fn a_settled_start_goes_through_once_and_a_gate_has_no_say_afterwards() {
    let (mut world, gate) = guarded().await;
    gate.about("a", Some(Told::Hold));
    let held = start(&mut world, "d-1", "a").await;
    world.runtime.settle_start(held.id, StartSettlement::Start).await.unwrap();
    let twice = world.runtime.settle_start(held.id, StartSettlement::Start).await;
    assert!(matches!(twice, Err(ControlError::Refused(WorkRefusal::NotHeld))), "{twice:?}");
    run(&mut world).await;
    assert_eq!((world.executor.runs(), gate.asked("a")), (1, 1), "whatever the gate would say");
    let first = world.executions().await[0].id;
    world.end(first, Outcome::Completed).await;
    start(&mut world, "d-2", "a").await;
    assert_eq!((world.executor.runs(), gate.asked("a")), (2, 1), "only the first attempt is asked about");
}

#[tokio::test]
async fn a_gate_may_have_its_work_cancelled() {
    let (mut world, gate) = guarded().await;
    gate.about("a", Some(Told::Hold));
    let held = start(&mut world, "d-1", "a").await;
    world.runtime.settle_start(held.id, StartSettlement::Cancel).await.unwrap();
    run(&mut world).await;
    let now = world.work(held.id).await;
    assert_eq!((now.state, now.hold, world.executor.runs()), (WorkState::Cancelled, None, 0));
    let late = world.runtime.settle_start(held.id, StartSettlement::Start).await;
    assert!(late.is_err(), "{late:?}");
}

#[tokio::test]
async fn a_gate_that_takes_its_time_keeps_no_other_from_starting() {
    let (mut world, gate) = guarded().await;
    gate.about("slow", Some(Told::Later));
    let slow = start(&mut world, "d-1", "slow").await;
    assert_eq!(slow.queue, Queue::Blocked(Blocker::Asked(scope_name())), "its mover is named");
    for number in 2..6 {
        start(&mut world, &format!("d-{number}"), &format!("k-{number}")).await;
    }
    assert_eq!(world.executor.runs(), 4);
    // More comes for it meanwhile: it is shown again as it is now.
    start(&mut world, "d-6", "slow").await;
    gate.about("slow", None);
    gate.bell.notify_one();
    run(&mut world).await;
    assert_eq!((world.executor.runs(), gate.asked("slow")), (5, 2));
    assert!(world.pending(slow.id).await.is_empty());
}

#[tokio::test]
async fn a_gate_that_fails_holds() {
    let (mut world, gate) = guarded().await;
    gate.about("a", Some(Told::Panic));
    let held = start(&mut world, "d-1", "a").await;
    assert_eq!(held.hold.as_ref().unwrap().reason, "gate `reference`: it did not answer");
    world.runtime.release(held.id).await.unwrap();
    run(&mut world).await;
    assert_eq!(world.executor.runs(), 1, "an operator may let it through");
}

#[tokio::test]
async fn a_cancelled_work_is_not_started_by_a_late_answer() {
    let (mut world, gate) = guarded().await;
    gate.about("a", Some(Told::Later));
    let asked = start(&mut world, "d-1", "a").await;
    world.runtime.cancel(asked.id).await.unwrap();
    gate.bell.notify_one();
    run(&mut world).await;
    assert_eq!((world.work(asked.id).await.state, world.executor.runs()), (WorkState::Cancelled, 0));
}

#[tokio::test]
async fn what_was_being_asked_when_the_process_died_is_asked_again() {
    let directory = tempfile::tempdir().unwrap();
    let location = Location::Sqlite(directory.path().join("conduit.db"));
    let gate = Arc::new(Reference::default());
    let mut world = over(&location, &gate, Texts::default()).await;
    world.apply(scope(ActivePolicy::Queue, 16)).await;
    gate.about("a", Some(Told::Later));
    gate.about("b", Some(Told::Hold));
    world.say("d-1", Some("a"), &json!({})).await;
    start(&mut world, "d-2", "b").await;
    let texts = world.texts();
    world.runtime.store().close().await.unwrap();
    drop(world);
    gate.about("a", None);
    let mut world = over(&location, &gate, texts).await;
    run(&mut world).await;
    assert_eq!((world.executor.runs(), gate.asked("a")), (1, 2));
    assert!(is_held(&world.owner("b").await.unwrap()), "a hold outlives the process");
    assert_eq!(gate.asked("b"), 1);
}
