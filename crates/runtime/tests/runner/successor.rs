//! Successors: what has ended stays as it is, and a route may go on with a new Work.

use domain::id::{EventId, WorkId};
use domain::outcome::Outcome;
use domain::route::{ActivePolicy, CheckpointOutcome};
use domain::scope::EffectiveScope;
use domain::work::{Work, WorkState};
use serde_json::{Value, json};

use super::engines::on_each_engine;
use super::wait::of_type;
use super::world::{Call, World, route, scope};

/// A scope whose one route reopens after these ends.
fn reopening(ends: &[&str]) -> EffectiveScope {
    let mut declared = scope(ActivePolicy::Queue, 16);
    declared.routes = vec![route("told", ActivePolicy::Queue, &json!({ "reopens": ends }))];
    declared
}

async fn once(world: &World, id: &str, keys: &[&str]) -> EventId {
    world.say(id, keys.first().copied(), &json!({ "once": true, "keys": keys })).await
}

/// Ends the newest run well, and everything it leaves behind.
async fn complete(world: &mut World) -> WorkId {
    let run = world.executions().await.pop().unwrap();
    world.end(run.id, Outcome::Completed).await;
    assert_eq!(world.work(run.work).await.state, WorkState::Completed);
    run.work
}

async fn keys(world: &World, work: WorkId) -> Vec<String> {
    let keys = world.runtime.store().read("test", move |tx| tx.keys_of(work)).await.unwrap();
    keys.into_iter().map(|key| key.external_id.to_string()).collect()
}

async fn created(world: &World) -> Vec<Value> {
    let events = world.events("core.work.created").await;
    let mut bodies = Vec::new();
    for event in events.into_iter().rev() {
        let read = move |tx: &mut dyn domain::store::Snapshot| tx.payload(event.sequence);
        let payload = world.runtime.store().read("test", read).await.unwrap().unwrap();
        bodies.push(serde_json::from_slice(payload.as_bytes()).unwrap());
    }
    bodies
}

#[test]
fn uncorrelated_and_terminal_successor() {
    on_each_engine(&[reopening(&["completed"])], async |mut world| {
        let alone = world.say("d-0", None, &json!({})).await;
        once(&world, "d-1", &["k"]).await;
        world.run().await;
        assert_eq!(world.outcome(alone).await, Some(CheckpointOutcome::Unmatched), "nothing is guessed");
        let first = complete(&mut world).await;
        let ended: Work = world.work(first).await;

        let reopens = once(&world, "d-2", &["k"]).await;
        world.run().await;
        let checkpoint = world.checkpoint(reopens).await.unwrap();
        assert_eq!(checkpoint.outcome, CheckpointOutcome::Routed);
        let second = checkpoint.work.unwrap();
        assert_ne!(second, first);
        assert_eq!(world.work(first).await, ended, "what has ended is not changed");
        assert_eq!(keys(&world, first).await, ["k"], "its key stays its own");
        assert_eq!(keys(&world, second).await, ["k/generation/2"]);
        let told = world.events("core.work.created").await.remove(0);
        assert_eq!((told.work, told.causation.parent), (Some(second), Some(reopens)));
        let body = &created(&world).await[0];
        assert_eq!(body["predecessor"], json!(first));
        assert_eq!((&body["successor"], &body["generation"]), (&json!(second), &json!(2)));

        // Later deliveries are led there, too, and to the next generation when that one ends.
        let more = once(&world, "d-3", &["k"]).await;
        world.run().await;
        assert_eq!(world.checkpoint(more).await.unwrap().work, Some(second));
        let run = world.executions().await.pop().unwrap();
        world.end(run.id, Outcome::Completed).await;
        assert_eq!(complete(&mut world).await, second);
        let third = once(&world, "d-4", &["k"]).await;
        world.run().await;
        let third = world.checkpoint(third).await.unwrap().work.unwrap();
        assert_eq!(keys(&world, third).await, ["k/generation/3"]);
        let place = world.runtime.store().read("test", move |tx| tx.succession_of(third)).await.unwrap();
        let place = place.unwrap();
        assert_eq!((place.predecessor, place.first, place.generation), (second, first, 3));
    });
}

#[test]
fn without_the_policy_what_has_ended_takes_nothing() {
    on_each_engine(&[reopening(&["failed"])], async |mut world| {
        once(&world, "d-1", &["k"]).await;
        world.run().await;
        let first = complete(&mut world).await;
        let late = once(&world, "d-2", &["k"]).await;
        world.run().await;
        let checkpoint = world.checkpoint(late).await.unwrap();
        assert_eq!((checkpoint.outcome, checkpoint.work), (CheckpointOutcome::Terminal, Some(first)));
        // An address means that very Work, whatever its key would lead to.
        world.apply(reopening(&["completed"])).await;
        let addressed = domain::delivery::Delivery {
            work: Some(first),
            ..world.delivery("d-3", Some("k"), &json!({ "once": true }))
        };
        let addressed = world.accept(addressed).await.unwrap().event();
        world.run().await;
        let checkpoint = world.checkpoint(addressed).await.unwrap();
        assert_eq!((checkpoint.outcome, checkpoint.work), (CheckpointOutcome::Terminal, Some(first)));
        assert!(created(&world).await.is_empty());
    });
}

#[test]
fn a_cancelled_work_is_succeeded_only_where_that_is_said() {
    on_each_engine(&[reopening(&["completed"])], async |mut world| {
        let opens = world.deliver("d-1", "k").await;
        world.run().await;
        let first = world.checkpoint(opens).await.unwrap().work.unwrap();
        world.runtime.cancel(first).await.unwrap();
        let late = world.deliver("d-2", "k").await;
        world.run().await;
        assert_eq!(world.outcome(late).await, Some(CheckpointOutcome::Terminal));
        world.apply(reopening(&["cancelled"])).await;
        let reopens = world.deliver("d-3", "k").await;
        world.run().await;
        assert_eq!(world.outcome(reopens).await, Some(CheckpointOutcome::Routed));
    });
}

/// All keys of a Work go on together, so that none of them leads elsewhere.
#[test]
fn a_successor_gets_every_key_of_its_predecessor() {
    on_each_engine(&[reopening(&["completed"])], async |mut world| {
        once(&world, "d-1", &["a", "b"]).await;
        world.run().await;
        complete(&mut world).await;
        once(&world, "d-2", &["a", "c"]).await;
        world.run().await;
        let second = complete(&mut world).await;
        assert_eq!(keys(&world, second).await, ["a/generation/2", "b/generation/2", "c/generation/2"]);
        let by_b = once(&world, "d-3", &["b"]).await;
        world.run().await;
        let third = world.checkpoint(by_b).await.unwrap().work.unwrap();
        let by_a = once(&world, "d-4", &["a"]).await;
        world.run().await;
        assert_eq!(world.checkpoint(by_a).await.unwrap().work, Some(third));
        assert_eq!(created(&world).await.len(), 2);
    });
}

/// Events of one key, in one step: one successor, and every later one is its input.
#[test]
fn events_that_race_for_a_reopening_make_one_successor() {
    on_each_engine(&[reopening(&["completed"])], async |mut world| {
        once(&world, "d-1", &["k"]).await;
        world.run().await;
        complete(&mut world).await;
        let mut events = Vec::new();
        for n in 0..5 {
            events.push(once(&world, &format!("r-{n}"), &["k"]).await);
        }
        world.stages_route_only().await;
        let second = world.checkpoint(events[0]).await.unwrap().work.unwrap();
        assert_eq!(world.pending(second).await, events);
        assert_eq!(created(&world).await.len(), 1);
    });
}

/// A successor waits for the plain key that Events carry, and does not end under one that is on its way.
#[test]
fn a_successor_is_woken_and_kept_by_the_plain_key() {
    on_each_engine(&[reopening(&["completed"])], async |mut world| {
        world.executor.can_resume(true);
        once(&world, "d-1", &["k"]).await;
        world.run().await;
        complete(&mut world).await;
        once(&world, "d-2", &["k"]).await;
        world.run().await;
        let run = world.executions().await.pop().unwrap();
        world.park(run.id, of_type("test.happened")).await;
        let wakes = once(&world, "d-3", &["k"]).await;
        world.run().await;
        assert_eq!(world.executor.calls().pop(), Some(Call::Resume(run.id, wakes, vec![wakes])));
        once(&world, "d-4", &["k"]).await;
        world.executor.end(run.id, domain::outcome::TurnResult::of(Outcome::Completed));
        world.settle_tasks().await;
        runtime::Stage::step(&mut world.stages.complete).await.unwrap();
        assert!(!world.work(run.work).await.state.is_terminal(), "input is on its way to it");
        world.run().await;
        assert_eq!(world.executions().await.pop().unwrap().work, run.work, "and it takes that");
        assert_eq!(world.owner("k/generation/2").await.unwrap().id, run.work);
    });
}

/// Creation and its announcement are one: a chain that may go no further makes no successor.
#[test]
fn a_successor_that_its_chain_refuses_is_not_made() {
    let mut shallow = reopening(&["completed"]);
    shallow.settings.causal_per_minute = 1;
    on_each_engine(&[shallow], async |mut world| {
        once(&world, "d-1", &["k"]).await;
        world.run().await;
        let first = complete(&mut world).await;
        let ended = world.events("core.turn.ended").await.remove(0);
        let mut hears = reopening(&["completed"]);
        hears.settings.causal_per_minute = 1;
        let config = json!({ "types": ["core.turn.ended"], "other": "k", "reopens": ["completed"] });
        hears.routes.insert(0, route("hears", ActivePolicy::Queue, &config));
        world.apply(hears).await;
        world.clock.advance(std::time::Duration::from_mins(1));
        let again =
            world.runtime.replay(ended.id, domain::text::DeliveryId::known("r")).await.unwrap().event();
        world.run().await;
        let checkpoint = world.checkpoint(again).await.unwrap();
        assert_eq!((checkpoint.outcome, checkpoint.work), (CheckpointOutcome::Terminal, Some(first)));
        assert_eq!(checkpoint.code.unwrap().as_str(), "successor_refused");
        assert!(world.owner("k/generation/2").await.is_none());
        assert!(world.rejections().await.iter().any(|(name, _body)| name.starts_with("core/created/")));
    });
}
