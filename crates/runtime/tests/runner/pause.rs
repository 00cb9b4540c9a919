//! Paused scopes: nothing starts, and everything else goes on.

use std::sync::Arc;
use std::time::Duration;

use domain::capacity::Blocker;
use domain::outcome::Outcome;
use domain::retry::Eligibility;
use domain::route::{ActivePolicy, CheckpointOutcome};
use domain::scope::EffectiveScope;
use domain::text::ScopeName;
use domain::work::{Queue, WorkState};
use runtime::{PauseError, Stage};
use serde_json::json;
use store::Location;

use super::engines::on_each_engine;
use super::wait::of_type;
use super::world::{Double, HandClock, World, open, scope, scope_name};

const MINUTE: Duration = Duration::from_mins(1);

fn child() -> ScopeName {
    ScopeName::known("main/child")
}

/// `main`, and a scope below it.
fn family(concurrency: u32) -> Vec<EffectiveScope> {
    let main = scope(ActivePolicy::Queue, concurrency);
    let below = EffectiveScope {
        name: child(),
        lineage: vec![scope_name(), child()],
        ..scope(ActivePolicy::Queue, concurrency)
    };
    vec![main, below]
}

async fn deliver_to(world: &World, scope: ScopeName, id: &str) -> domain::id::EventId {
    let delivery = domain::delivery::Delivery { scope, ..world.delivery(id, Some(id), &json!({})) };
    world.accept(delivery).await.unwrap().event()
}

#[test]
fn a_paused_scope_starts_nothing_and_keeps_everything_else() {
    on_each_engine(&family(16), async |mut world| {
        world.deliver("opens", "running").await;
        world.run().await;
        let going = world.executions().await[0].clone();
        let paused = world.runtime.pause_scope(scope_name()).await.unwrap();
        assert!(paused.changed);

        let event = world.deliver("d-1", "new").await;
        let more = world.deliver("d-2", "running").await;
        world.run().await;
        assert_eq!(world.outcome(event).await, Some(CheckpointOutcome::Routed), "it accepts and routes");
        let new = world.owner("new").await.unwrap();
        assert_eq!(new.queue, Queue::Blocked(Blocker::ScopePaused(scope_name())), "its mover is named");
        assert_eq!(world.pending(new.id).await, [event], "it queues");
        world.end(going.id, Outcome::Handoff).await;
        assert_eq!(world.work(going.work).await.state, WorkState::Ready, "what runs ends as ever");
        assert_eq!(world.pending(going.work).await, [more]);
        assert_eq!(world.executor.runs(), 1, "and nothing starts");

        let resumed = world.runtime.resume_scope(scope_name()).await.unwrap();
        assert_eq!((resumed.changed, resumed.still_paused_by), (true, None));
        world.run().await;
        assert_eq!(world.executor.runs(), 3, "everything that waited for it starts");
    });
}

#[test]
fn what_descends_from_a_paused_scope_is_paused_with_it() {
    on_each_engine(&family(16), async |mut world| {
        world.runtime.pause_scope(scope_name()).await.unwrap();
        world.runtime.pause_scope(child()).await.unwrap();
        deliver_to(&world, child(), "d-1").await;
        world.run().await;
        assert_eq!(world.executor.runs(), 0);
        let resumed = world.runtime.resume_scope(child()).await.unwrap();
        assert_eq!(resumed.still_paused_by, Some(scope_name()));
        world.run().await;
        assert_eq!(world.executor.runs(), 0, "the scope above it is still paused");
        world.runtime.resume_scope(scope_name()).await.unwrap();
        world.run().await;
        assert_eq!(world.executor.runs(), 1);

        world.runtime.pause_scope(child()).await.unwrap();
        deliver_to(&world, child(), "d-2").await;
        deliver_to(&world, scope_name(), "d-3").await;
        world.run().await;
        assert_eq!(world.executor.runs(), 2, "a pause doesn't reach upwards");
    });
}

#[test]
fn pausing_twice_pauses_once() {
    on_each_engine(&family(16), async |world| {
        let first = world.runtime.pause_scope(scope_name()).await.unwrap();
        world.clock.advance(MINUTE);
        let again = world.runtime.pause_scope(scope_name()).await.unwrap();
        assert!(!again.changed);
        assert_eq!(again.pause, first.pause, "since when is since the first time");
        assert!(world.runtime.resume_scope(scope_name()).await.unwrap().changed);
        assert!(!world.runtime.resume_scope(scope_name()).await.unwrap().changed);
        let nowhere = ScopeName::known("nowhere");
        for refused in [
            world.runtime.pause_scope(nowhere.clone()).await.map(|_| ()),
            world.runtime.resume_scope(nowhere).await.map(|_| ()),
        ] {
            assert!(matches!(refused, Err(PauseError::UnknownScope(_))), "{refused:?}");
        }
    });
}

#[test]
fn a_retry_and_a_wake_of_a_paused_scope_wait_for_it() {
    on_each_engine(&family(16), async |mut world| {
        world.executor.can_resume(true);
        world.say("d-1", Some("fails"), &json!({ "once": true })).await;
        world.deliver("d-2", "waits").await;
        world.run().await;
        let runs = world.executions().await;
        world.end(runs[0].id, Outcome::Failed).await;
        world.park(runs[1].id, of_type("test.happened")).await;
        world.runtime.pause_scope(scope_name()).await.unwrap();
        world.deliver("d-3", "waits").await;
        world.clock.advance(MINUTE * 5);
        world.run().await;
        let due = world.work(runs[0].work).await;
        assert!(matches!(due.eligibility, Eligibility::Due { .. }), "its timer fired: {due:?}");
        let woken = world.work(runs[1].work).await;
        assert!(matches!(woken.eligibility, Eligibility::Woken { .. }), "its Wait ended: {woken:?}");
        assert_eq!(world.executor.calls().len(), 2, "and neither goes on");
        world.runtime.resume_scope(scope_name()).await.unwrap();
        world.run().await;
        assert_eq!(world.executor.calls().len(), 4);
    });
}

/// Whole lists move: however many wait, the scheduler looks at a handful.
#[test]
fn works_of_a_paused_scope_are_not_looked_at_one_by_one() {
    on_each_engine(&family(16), async |mut world| {
        for n in 0..70 {
            world.deliver(&format!("d-{n}"), &format!("k-{n}")).await;
        }
        world.stages_route_only().await;
        world.runtime.pause_scope(scope_name()).await.unwrap();
        deliver_to(&world, child(), "late").await;
        world.stages_route_only().await;
        world.stages.schedule.step().await.unwrap();
        let runnable = world.runtime.store().read("test", |tx| tx.count_runnable(1000)).await.unwrap();
        assert_eq!(runnable, 1, "one step moved all of one scope");
        world.run().await;
        assert_eq!(world.executor.runs(), 0, "the other is below it");
    });
}

#[tokio::test]
async fn a_pause_outlives_the_process_and_an_apply() {
    let directory = tempfile::tempdir().unwrap();
    let location = Location::Sqlite(directory.path().join("conduit.db"));
    let clock = HandClock::new();
    let executor = Arc::<Double>::default();
    let texts;
    {
        let store = open(&location, &clock).await;
        let mut world = World::over(store, Arc::clone(&clock), Arc::clone(&executor), Arc::default()).await;
        world.apply_all(family(16)).await;
        world.runtime.pause_scope(scope_name()).await.unwrap();
        world.deliver("d-1", "k").await;
        world.run().await;
        texts = world.texts();
        world.runtime.shutdown().await.unwrap();
        world.runtime.store().close().await.unwrap();
    }
    let store = open(&location, &clock).await;
    let mut world = World::over(store, clock, Arc::clone(&executor), texts).await;
    world.run().await;
    let paused = Queue::Blocked(Blocker::ScopePaused(scope_name()));
    assert_eq!(world.owner("k").await.unwrap().queue, paused, "a restart doesn't look for it in vain");
    world.apply_all(family(3)).await;
    assert_eq!(world.owner("k").await.unwrap().queue, paused, "and nor does an apply");
    world.run().await;
    assert_eq!(executor.runs(), 0);
    world.runtime.resume_scope(scope_name()).await.unwrap();
    world.run().await;
    assert_eq!(executor.runs(), 1);
}

/// A crash right after a pause was taken back: what was left on the list comes back with the next start.
#[tokio::test]
async fn what_a_crash_left_on_a_paused_list_comes_back_with_the_next_start() {
    let clock = HandClock::new();
    let store = open(&Location::Memory, &clock).await;
    let mut world = World::over(store, clock, Arc::default(), Arc::default()).await;
    world.apply_all(family(16)).await;
    world.runtime.pause_scope(scope_name()).await.unwrap();
    world.deliver("d-1", "k").await;
    world.run().await;
    world.runtime.store().transact("test", |tx| tx.delete_pause(&scope_name())).await.unwrap();
    world.run().await;
    assert_eq!(world.executor.runs(), 0);
    world.runtime.prepare().await.unwrap();
    world.run().await;
    assert_eq!(world.executor.runs(), 1);
}
