//! Gates on calls: a reference gate that answers what the test says, and what becomes of the calls it decides about.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::event::Payload;
use domain::execution::ExecutionState;
use domain::id::ExecutionId;
use domain::lease::LEASE;
use domain::outcome::Outcome;
use domain::route::ActivePolicy;
use domain::text::{CallId, EventType};
use domain::toolbelt::{Operation, Presented};
use domain::wait::Registration;
use domain::work::WorkState;
use extension::{
    BoxFuture, CallDecision, CallGate, CallSubject, CallView, Code, Executor, Handler, Recovery,
};
use runtime::toolbelt::{Emission, Request};
use runtime::{Answered, CallError, Registry};
use serde_json::Value;
use store::Location;
use tokio::sync::Notify;

use super::told::Told as ToldHandler;
use super::world::{Double, HandClock, World, key, open, scope};

/// What the gate does about a type of Event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Refuse,
    /// The turn waits for `approval.given`.
    Wait,
    /// It waits for a key of another Work, which it may not.
    Foreign,
    /// It answers only when it is rung.
    Later,
    Never,
    Panic,
}

/// A gate for what is emitted that is against nothing but the types it was told about.
#[derive(Debug, Default)]
struct Reference {
    told: Mutex<BTreeMap<String, Told>>,
    asked: Mutex<Vec<CallView>>,
    bell: Notify,
}

impl Reference {
    fn about(&self, event_type: &str, told: Option<Told>) {
        let mut all = self.told.lock().unwrap();
        match told {
            Some(told) => all.insert(event_type.to_owned(), told),
            None => all.remove(event_type),
        };
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

fn approval() -> Registration {
    Registration {
        types: vec![EventType::known("approval.given")],
        timeout_seconds: Some(600),
        ..Registration::default()
    }
}

impl CallGate for Reference {
    fn name(&self) -> Code {
        Code::known("reference")
    }

    fn guards(&self, operation: Operation) -> bool {
        operation == Operation::Emit
    }

    fn decide<'a>(&'a self, call: &'a CallView) -> BoxFuture<'a, CallDecision> {
        Box::pin(async move {
            self.asked.lock().unwrap().push(call.clone());
            let CallSubject::Event { event_type, .. } = &call.subject else { return CallDecision::Allow };
            let told = self.told.lock().unwrap().get(event_type.as_str()).copied();
            let wait =
                |registration| CallDecision::Wait { reason: "nobody has looked".to_owned(), registration };
            match told {
                None => CallDecision::Allow,
                Some(Told::Refuse) => CallDecision::Refuse { reason: "not on a\nFriday".to_owned() },
                Some(Told::Wait) => wait(approval()),
                Some(Told::Foreign) => wait(Registration { keys: Some(vec![key("b")]), ..approval() }),
                Some(Told::Later) => {
                    self.bell.notified().await;
                    CallDecision::Allow
                }
                Some(Told::Never) => std::future::pending().await,
                Some(Told::Panic) => panic!("the test says so"),
            }
        })
    }
}

async fn guarded() -> (World, Arc<Reference>) {
    let gate = Arc::new(Reference::default());
    let clock = HandClock::new();
    let store = open(&Location::Memory, &clock).await;
    let executor = Arc::<Double>::default();
    let double: Arc<dyn Executor> = Arc::<Double>::clone(&executor);
    let gates: [Arc<dyn CallGate>; 1] = [Arc::<Reference>::clone(&gate)];
    let registry =
        Registry::new([Arc::new(ToldHandler) as Arc<dyn Handler>], [double]).with_call_gates(gates);
    let mut world = World::registered(store, clock, executor, Arc::default(), (None, registry)).await;
    world.apply(scope(ActivePolicy::Queue, 16)).await;
    (world, gate)
}

async fn running(world: &mut World, key_id: &str) -> (ExecutionId, Presented) {
    world.deliver(&format!("begin {key_id}"), key_id).await;
    world.run().await;
    let run = world.executions().await.last().unwrap().id;
    (run, *world.executor.tokens(run).last().unwrap())
}

fn emit(event_type: &str) -> Request {
    Request::Emit(Emission {
        event_type: EventType::known(event_type),
        key: None,
        payload: Payload::null(),
        cause: None,
        occurred_at: None,
    })
}

async fn call(world: &World, by: Presented, event_type: &str) -> Result<Answered, CallError> {
    world.runtime.call(by, CallId::known(event_type), emit(event_type)).await
}

fn answer(answered: &Answered) -> Value {
    serde_json::from_slice(&answered.answer).unwrap()
}

#[tokio::test]
async fn a_gate_turns_a_call_into_a_wait_and_decides_again_when_it_is_made_again() {
    let (mut world, gate) = guarded().await;
    world.executor.can_resume(true);
    let (run, token) = running(&mut world, "a").await;
    gate.about("code.merged", Some(Told::Wait));
    let held = call(&world, token, "code.merged").await.unwrap();
    assert!(held.held && !held.again);
    let said = answer(&held);
    assert_eq!((&said["held"], &said["gate"]), (&true.into(), &"reference".into()));
    assert_eq!(
        (&said["reason"], &said["wait"]["types"][0]),
        (&"nobody has looked".into(), &"approval.given".into())
    );
    assert!(world.events("code.merged").await.is_empty(), "it did not run");
    // Made again in the same turn it is decided again, and declares nothing more.
    assert_eq!(call(&world, token, "code.merged").await.unwrap(), held);
    assert_eq!(gate.asked(), 2);
    world.end(run, Outcome::Completed).await;
    assert_eq!(world.execution(run).await.state, ExecutionState::Parked);
    assert_eq!(world.wait().await.types, [EventType::known("approval.given")]);
    assert!(call(&world, token, "code.merged").await.is_err(), "who waits has no authority");
    let mut done = world.delivery("the approval", Some("a"), &serde_json::json!({}));
    done.event_type = EventType::known("approval.given");
    world.accept(done).await.unwrap();
    world.run().await;
    assert_eq!(world.execution(run).await.turn.number, 2);
    let resumed = *world.executor.tokens(run).last().unwrap();
    assert!(
        call(&world, resumed, "code.merged").await.unwrap().held,
        "it is the gate's to let it through now"
    );
    gate.about("code.merged", None);
    let made = call(&world, resumed, "code.merged").await.unwrap();
    assert!(!made.held && !made.again);
    let again = call(&world, resumed, "code.merged").await.unwrap();
    assert_eq!((again.again, again.answer), (true, made.answer));
    assert_eq!(
        (world.events("code.merged").await.len(), gate.asked()),
        (1, 4),
        "what was made is asked about no more"
    );
    let other = world.runtime.call(resumed, CallId::known("code.merged"), emit("note.made")).await;
    assert_eq!(other.unwrap_err().code(), "call_reused");
}

#[tokio::test]
async fn a_held_call_waits_no_longer_than_its_timeout_and_for_a_turn_that_ends_well() {
    let (mut world, gate) = guarded().await;
    let (run, token) = running(&mut world, "a").await;
    gate.about("code.merged", Some(Told::Wait));
    call(&world, token, "code.merged").await.unwrap();
    world.end(run, Outcome::Failed).await;
    assert_eq!(world.execution(run).await.state, ExecutionState::Failed, "its end says more than the gate");
    let (run, token) = running(&mut world, "b").await;
    call(&world, token, "code.merged").await.unwrap();
    world.end(run, Outcome::Completed).await;
    let work = world.execution(run).await.work;
    assert!(matches!(world.work(work).await.state, WorkState::Waiting { .. }));
    world.clock.advance(Duration::from_mins(10));
    world.runtime.claim_loops().await.unwrap();
    world.run().await;
    assert!(matches!(world.work(work).await.state, WorkState::Running { .. }));
    assert_eq!(world.execution(run).await.state, ExecutionState::Waiting, "the next attempt asks again");
}

#[tokio::test]
async fn a_gate_s_refusal_is_the_call_s_result_and_changes_nothing() {
    let (mut world, gate) = guarded().await;
    let (run, token) = running(&mut world, "a").await;
    let before = world.execution(run).await;
    gate.about("code.merged", Some(Told::Refuse));
    let refused = call(&world, token, "code.merged").await.unwrap_err();
    assert_eq!(refused.code(), "gate_refused");
    assert_eq!(refused.to_string(), "gate `reference` refuses the call: not on a Friday");
    // One that waits for what its Work may not wait for holds nothing either.
    gate.about("code.merged", Some(Told::Foreign));
    assert_eq!(call(&world, token, "code.merged").await.unwrap_err().code(), "invalid_wait");
    assert_eq!(world.execution(run).await, before);
    assert!(world.events("code.merged").await.is_empty());
    // The same call may be made again, and other calls are none of the gate's affair.
    gate.about("code.merged", None);
    assert!(!call(&world, token, "code.merged").await.unwrap().again);
    let asked = gate.asked();
    let progress = domain::toolbelt::Progress::new("half", None).unwrap();
    world.runtime.call(token, CallId::known("p"), Request::Progress(progress)).await.unwrap();
    assert_eq!(gate.asked(), asked);
    let shown = gate.asked.lock().unwrap().last().unwrap().clone();
    assert_eq!((shown.execution, shown.keys.as_slice()), (run, [key("a")].as_slice()));
}

#[tokio::test]
async fn a_gate_that_fails_lets_no_call_through() {
    let (mut world, gate) = guarded().await;
    let (_run, token) = running(&mut world, "a").await;
    gate.about("code.merged", Some(Told::Panic));
    assert_eq!(call(&world, token, "code.merged").await.unwrap_err().code(), "gate_silent");
    // Nor does one that is asked when the process ends.
    gate.about("code.merged", Some(Told::Never));
    let runtime = world.runtime.clone();
    let asked = runtime.call(token, CallId::known("code.merged"), emit("code.merged"));
    let end = async {
        while gate.asked() < 2 {
            tokio::task::yield_now().await;
        }
        world.runtime.shutdown().await.unwrap();
    };
    let (answered, ()) = tokio::join!(asked, end);
    assert_eq!(answered.unwrap_err().code(), "gate_silent");
    assert!(world.events("code.merged").await.is_empty());
}

#[tokio::test]
async fn what_a_gate_allows_is_refused_under_another_epoch() {
    let (mut world, gate) = guarded().await;
    let (run, token) = running(&mut world, "a").await;
    gate.about("code.merged", Some(Told::Later));
    let runtime = world.runtime.clone();
    let asked = runtime.call(token, CallId::known("code.merged"), emit("code.merged"));
    let recover = async {
        while gate.asked() < 1 {
            tokio::task::yield_now().await;
        }
        world.clock.advance(LEASE);
        world.executor.on_recover(Recovery::Alive);
        world.run().await;
        gate.bell.notify_one();
    };
    let (answered, ()) = tokio::join!(asked, recover);
    assert_eq!(answered.unwrap_err().code(), "stale_epoch");
    assert!(world.events("code.merged").await.is_empty());
    // Who took over may make it, and a token of no epoch is not even shown to the gate.
    let asked = gate.asked();
    assert_eq!(call(&world, token, "code.merged").await.unwrap_err().code(), "stale_epoch");
    assert_eq!(gate.asked(), asked);
    gate.about("code.merged", None);
    let adopted = *world.executor.tokens(run).last().unwrap();
    call(&world, adopted, "code.merged").await.unwrap();
    assert_eq!(world.events("code.merged").await.len(), 1);
}
