//! Recurring timers: armed by what is configured, fired once, in one commit with what they publish.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use domain::event::Key;
use domain::id::{EventId, Sequence};
use domain::outcome::Outcome;
use domain::recurrence::{Firing, Recurrence};
use domain::route::ActivePolicy;
use domain::scope::{EffectiveScope, Entry};
use domain::store::Store;
use domain::text::{DeliveryId, EntryName, EventType, ExternalId, SourceName};
use runtime::{Progress, Stage as _};
use serde_json::{Value, json};
use store::{Faults, Location, Options};

use super::engines::on_each_engine;
use super::pulse::{NAMESPACE, PULSE, URGENT};
use super::world::{HandClock, World, scope, scope_name};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);

/// A scope with an entry of these parts.
fn beating(parts: &Value) -> EffectiveScope {
    let entry = Entry {
        name: EntryName::known("pulses"),
        entry_type: PULSE.to_owned(),
        secrets: BTreeMap::new(),
        config: json!({ "parts": parts }),
        declared_in: scope_name(),
    };
    let extensions = BTreeMap::from([(entry.name.clone(), entry)]);
    EffectiveScope { extensions, ..scope(ActivePolicy::Queue, 16) }
}

/// Steps until nothing is left to do. When there will be.
async fn settle(world: &mut World) -> Option<Duration> {
    world.run().await;
    for _ in 0..20 {
        match world.stages.recur.step().await.unwrap() {
            Progress::Advanced => {}
            Progress::Idle { due_at } => {
                return due_at.map(|due_at| due_at.since(world.runtime.store().now()));
            }
        }
    }
    panic!("it never rests");
}

async fn timers(store: &Store) -> Vec<Recurrence> {
    store.read("test", |tx| tx.recurrences(None, 1000)).await.unwrap()
}

async fn firings(store: &Store) -> Vec<Firing> {
    let mut all = Vec::new();
    for timer in timers(store).await {
        let id = timer.id;
        all.extend(store.read("test", move |tx| tx.firings(id, 1000)).await.unwrap());
    }
    all
}

async fn beats(world: &World) -> usize {
    world.events("pulse.beat").await.len()
}

#[test]
fn a_firing_its_event_and_the_next_timer_are_one() {
    on_each_engine(&[beating(&json!({ "a": { "every": 30 } }))], async |mut world| {
        assert_eq!(settle(&mut world).await, Some(30 * SECOND), "it is armed, and nothing more");
        let armed = timers(world.runtime.store()).await;
        assert_eq!((armed.len(), armed[0].firings, beats(&world).await), (1, 0, 0));
        world.clock.advance(30 * SECOND);
        settle(&mut world).await;
        let fired = timers(world.runtime.store()).await;
        assert_eq!((fired[0].firings, fired[0].due_at), (1, armed[0].due_at.after(30 * SECOND)));
        let event = world.events("pulse.beat").await.pop().expect("it is published");
        assert_eq!((event.source.as_str(), event.occurred_at), (NAMESPACE, Some(armed[0].due_at)));
        let known = firings(world.runtime.store()).await;
        assert_eq!((known.len(), known[0].event, known[0].number), (1, Some(event.id), 0));
        settle(&mut world).await;
        assert_eq!(beats(&world).await, 1, "it fires once");
    });
}

#[test]
fn what_was_late_and_what_was_missed_is_known_afterwards() {
    let parts = json!({ "a": { "every": 30 }, "b": { "every": 30, "skips": true } });
    on_each_engine(&[beating(&parts)], async |mut world| {
        settle(&mut world).await;
        world.clock.advance(100 * SECOND);
        settle(&mut world).await;
        assert_eq!(beats(&world).await, 1, "an outage is one beat");
        let known = firings(world.runtime.store()).await;
        let (ran, skipped): (Vec<&Firing>, Vec<&Firing>) =
            known.iter().partition(|firing| firing.event.is_some());
        let told = |firing: &Firing| serde_json::from_slice::<Value>(&firing.told).unwrap();
        let ran = told(ran[0]);
        assert_eq!((&ran["late_seconds"], &ran["missed"][0]["count"]), (&json!(10), &json!(2)));
        let skipped = told(skipped[0]);
        assert_eq!((skipped["ran"].is_null(), &skipped["late_seconds"]), (true, &json!(70)));
    });
}

#[test]
fn a_firing_that_was_published_before_gives_its_first_result() {
    on_each_engine(&[beating(&json!({ "a": { "every": 30 } }))], async |mut world| {
        settle(&mut world).await;
        let due_at = timers(world.runtime.store()).await[0].due_at;
        let mut delivery = world.delivery("x", None, &json!({}));
        delivery.source = SourceName::known(NAMESPACE);
        delivery.delivery_id = DeliveryId::known(&format!("beat/a/{due_at}"));
        let first = world.accept(delivery).await.unwrap().event();
        world.clock.advance(30 * SECOND);
        settle(&mut world).await;
        let known = firings(world.runtime.store()).await;
        assert_eq!((known.len(), known[0].event), (1, Some(first)));
        assert_eq!(beats(&world).await, 0, "and publishes nothing of its own");
    });
}

#[tokio::test]
async fn an_answer_that_no_longer_holds_is_asked_for_again() {
    // The first answer takes so long that the next beat has come.
    let mut world = World::with(beating(&json!({ "a": { "every": 30, "first_answer_takes": 30 } }))).await;
    settle(&mut world).await;
    let due_at = timers(world.runtime.store()).await[0].due_at;
    world.clock.advance(30 * SECOND);
    settle(&mut world).await;
    assert_eq!((beats(&world).await, firings(world.runtime.store()).await.len()), (0, 0));
    world.clock.advance(SECOND);
    settle(&mut world).await;
    let events = world.events("pulse.beat").await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].occurred_at, Some(due_at.after(30 * SECOND)), "the second answer is applied");
}

/// A world on a file, with failures at hand.
async fn on_file(directory: &tempfile::TempDir) -> (World, Arc<Faults>) {
    let (clock, faults) = (HandClock::new(), Arc::<Faults>::default());
    let options = Options {
        clock: clock.shared(),
        inline: true,
        faults: Some(Arc::clone(&faults)),
        ..Options::default()
    };
    let location = Location::Sqlite(directory.path().join("conduit.db"));
    let store = store::open(&location, options).await.unwrap();
    let mut world = World::over(store, clock, Arc::default(), Arc::default()).await;
    world.apply(beating(&json!({ "a": { "every": 30 } }))).await;
    (world, faults)
}

#[tokio::test]
async fn a_failure_at_any_statement_leaves_one_firing() {
    let mut interrupted = 0;
    for nth in 1..40 {
        let directory = tempfile::tempdir().unwrap();
        let (mut world, faults) = on_file(&directory).await;
        settle(&mut world).await;
        world.clock.advance(30 * SECOND);
        faults.fail_statement(nth);
        let mut failed = false;
        for _ in 0..10 {
            failed |= world.stages.recur.step().await.is_err();
        }
        faults.fail_statement(0);
        interrupted += usize::from(failed);
        let (timers, known) = (timers(world.runtime.store()).await, firings(world.runtime.store()).await);
        assert_eq!((beats(&world).await, known.len(), timers[0].firings), (1, 1, 1), "statement {nth}");
        assert_eq!(known[0].event, Some(world.events("pulse.beat").await[0].id));
    }
    assert!(interrupted > 4, "{interrupted} of them hit the firing");
}

#[tokio::test]
async fn a_restart_fires_nothing_again_and_moves_no_timer() {
    let mut world = World::with(beating(&json!({ "a": { "every": 30 } }))).await;
    settle(&mut world).await;
    world.clock.advance(30 * SECOND);
    settle(&mut world).await;
    let before = timers(world.runtime.store()).await;
    let (store, clock, texts) = (world.runtime.store().clone(), Arc::clone(&world.clock), world.texts());
    let mut next = World::over(store, clock, Arc::default(), texts).await;
    settle(&mut next).await;
    assert_eq!(timers(next.runtime.store()).await, before);
    assert_eq!(beats(&next).await, 1);
}

#[test]
fn a_removed_part_loses_its_timer_and_a_disabled_scope_keeps_it_at_rest() {
    let parts = json!({ "a": { "every": 30 }, "b": { "every": 40 } });
    on_each_engine(&[beating(&parts)], async |mut world| {
        settle(&mut world).await;
        let before = timers(world.runtime.store()).await;
        world.apply(EffectiveScope { disabled: true, ..beating(&parts) }).await;
        world.clock.advance(100 * SECOND);
        assert_eq!(settle(&mut world).await, Some(MINUTE), "only the repair is due");
        let resting = timers(world.runtime.store()).await;
        assert_eq!(beats(&world).await, 0);
        assert!(resting.iter().all(|timer| timer.rests));
        let due = |timers: &[Recurrence]| timers.iter().map(|timer| timer.due_at).collect::<Vec<_>>();
        assert_eq!(due(&resting), due(&before));
        world.apply(beating(&parts)).await;
        settle(&mut world).await;
        assert_eq!(beats(&world).await, 2, "what they missed is one beat each");
        world.apply(beating(&json!({ "b": { "every": 40 } }))).await;
        settle(&mut world).await;
        let left = timers(world.runtime.store()).await;
        assert_eq!((left.len(), left[0].key.external_id.as_str()), (1, "b"));
    });
}

#[test]
fn timers_are_armed_with_an_apply_and_repaired_within_a_minute() {
    on_each_engine(&[beating(&json!({}))], async |mut world| {
        settle(&mut world).await;
        world.apply(beating(&json!({ "a": { "every": 300 } }))).await;
        settle(&mut world).await;
        let armed = timers(world.runtime.store()).await;
        assert_eq!(armed.len(), 1, "with the apply");
        let lost = armed[0].clone();
        world.runtime.store().transact("test", move |tx| tx.delete_recurrence(&lost)).await.unwrap();
        settle(&mut world).await;
        assert!(timers(world.runtime.store()).await.is_empty(), "nobody looks at once");
        world.clock.advance(MINUTE);
        settle(&mut world).await;
        assert_eq!(timers(world.runtime.store()).await.len(), 1, "a minute later it is there again");
    });
}

#[tokio::test]
async fn one_that_cannot_be_fired_keeps_no_other_from_firing() {
    let parts = json!({ "a": { "every": 30, "broken": true }, "b": { "every": 30 } });
    let mut world = World::with(beating(&parts)).await;
    settle(&mut world).await;
    world.clock.advance(30 * SECOND);
    assert_eq!(settle(&mut world).await, Some(SECOND), "it is asked for again after a while");
    let key = Key { source: SourceName::known(NAMESPACE), external_id: ExternalId::known("b") };
    let events = world.events("pulse.beat").await;
    assert_eq!(events.iter().map(|event| event.key.clone()).collect::<Vec<_>>(), [Some(key)]);
}

/// Accepts an input of a Work whose trigger is chosen.
async fn ask_for(world: &World, id: &str, event_type: &str) -> EventId {
    let delivery = world.delivery(id, Some("k"), &json!({ "kind": URGENT }));
    let delivery = domain::delivery::Delivery { event_type: EventType::known(event_type), ..delivery };
    world.accept(delivery).await.unwrap().event()
}

#[test]
fn one_run_follows_whatever_arrives_and_takes_all_of_it_for_what_was_chosen() {
    on_each_engine(&[scope(ActivePolicy::Queue, 16)], async |mut world| {
        ask_for(&world, "1", "test.timer").await;
        world.run().await;
        let mut sent = Vec::new();
        for (id, event_type) in
            [("2", "test.timer"), ("3", "test.urgent"), ("4", "test.urgent"), ("5", "test.timer")]
        {
            sent.push(ask_for(&world, id, event_type).await);
            world.run().await;
        }
        assert_eq!(world.executions().await.len(), 1, "one at a time");
        let first = world.executions().await[0].id;
        world.end(first, Outcome::Failed).await;
        let runs = world.executions().await;
        assert_eq!(runs.len(), 2, "one run is pending, and a failure is not tried again");
        let second = &runs[1];
        assert_eq!(second.trigger, sent[2], "the newest delivery");
        let id = second.id;
        let taken = world.runtime.store().read("test", move |tx| tx.inputs_of(id, Sequence::ZERO, 10)).await;
        let taken: Vec<EventId> = taken.unwrap().iter().map(|input| input.event).collect();
        assert_eq!(taken, sent, "nothing is dropped");
        world.end(id, Outcome::Completed).await;
        assert_eq!(world.executions().await.len(), 2, "and nothing is left");
    });
}
