//! Concurrency keys: Works that share one never run at the same time.

use std::time::Duration;

use domain::capacity::Blocker;
use domain::id::{ExecutionId, WorkId};
use domain::outcome::Outcome;
use domain::route::ActivePolicy;
use domain::text::{ConcurrencyKey, DeliveryId};
use domain::work::Queue;
use serde_json::json;

use super::engines::on_each_engine;
use super::wait::of_type;
use super::world::{World, scope, scope_name};

fn deploys() -> Queue {
    Queue::Blocked(Blocker::Concurrency(scope_name(), ConcurrencyKey::known("deploy")))
}

/// Accepts Events for new Works that share a key, one moment after the other.
async fn share(world: &World, ids: &[&str]) {
    for id in ids {
        world.say(&format!("d-{id}"), Some(id), &json!({ "alone": "deploy" })).await;
        world.clock.advance(Duration::from_secs(1));
    }
}

async fn id_of(world: &World, key: &str) -> WorkId {
    world.owner(key).await.unwrap().id
}

/// The Works whose runs go on.
async fn going(world: &World) -> Vec<(ExecutionId, WorkId)> {
    let runs = world.executions().await;
    runs.into_iter().filter(|run| run.state.is_going_on()).map(|run| (run.id, run.work)).collect()
}

#[test]
fn works_that_share_a_concurrency_key_run_one_at_a_time_in_order() {
    on_each_engine(&[scope(ActivePolicy::Queue, 16)], async |mut world| {
        share(&world, &["a", "b", "c"]).await;
        world.deliver("d-x", "x").await;
        world.run().await;
        assert_eq!(going(&world).await.len(), 2, "the one without a key runs beside");
        assert_eq!(world.owner("b").await.unwrap().queue, deploys(), "its mover is named");
        let runnable = world.runtime.store().read("test", |tx| tx.count_runnable(9)).await.unwrap();
        assert_eq!(runnable, 0, "nobody walks past those that wait");
        for key in ["a", "b", "c"] {
            let work = id_of(&world, key).await;
            let (run, _work) = *going(&world).await.iter().find(|(_run, its)| *its == work).unwrap();
            world.end(run, Outcome::Handoff).await;
        }
        assert_eq!(going(&world).await.len(), 1);
    });
}

#[test]
fn a_parked_run_leaves_its_concurrency_key_and_waits_for_it_to_go_on() {
    on_each_engine(&[scope(ActivePolicy::Queue, 16)], async |mut world| {
        world.executor.can_resume(true);
        share(&world, &["a", "b"]).await;
        world.run().await;
        let (first, a) = going(&world).await[0];
        world.park(first, of_type("test.happened")).await;
        let (second, b) = going(&world).await[0];
        assert_eq!((a, b), (id_of(&world, "a").await, id_of(&world, "b").await));
        world.deliver("wakes", "a").await;
        world.run().await;
        assert_eq!(world.work(a).await.queue, deploys());
        world.end(second, Outcome::Handoff).await;
        assert_eq!(going(&world).await, [(first, a)]);
    });
}

/// What was cancelled and may still run keeps the others out until it is established that it stopped.
#[test]
fn a_run_that_may_still_run_keeps_its_concurrency_key() {
    on_each_engine(&[scope(ActivePolicy::Queue, 16)], async |mut world| {
        share(&world, &["a", "b"]).await;
        world.run().await;
        let (run, work) = going(&world).await[0];
        world.executor.cannot_verify_stops(true);
        world.runtime.cancel(work).await.unwrap();
        world.runtime.stop_unstopped().await.unwrap();
        world.run().await;
        assert_eq!(going(&world).await, [], "{run} may still run");
        assert_eq!(world.owner("b").await.unwrap().queue, deploys());
        world.executor.cannot_verify_stops(false);
        world.runtime.stop_unstopped().await.unwrap();
        world.run().await;
        assert_eq!(going(&world).await.len(), 1);
    });
}

/// Its Work goes on, and so does whoever waits for the key.
#[test]
fn the_key_of_a_run_that_was_interrupted_is_free_once_that_has_stopped() {
    on_each_engine(&[scope(ActivePolicy::Queue, 16)], async |mut world| {
        share(&world, &["a", "b"]).await;
        world.run().await;
        let (run, work) = going(&world).await[0];
        world.runtime.interrupt(work, DeliveryId::known("i-1")).await.unwrap();
        world.run().await;
        assert_eq!(going(&world).await, [], "{run} may still run");
        world.runtime.stop_unstopped().await.unwrap();
        world.run().await;
        assert_eq!(going(&world).await.len(), 1);
        assert_eq!(going(&world).await[0].1, id_of(&world, "b").await);
    });
}

/// A key that is free must not be lost with the Work that it was offered to.
#[test]
fn a_key_that_is_offered_to_a_work_that_cannot_take_it_goes_to_the_next() {
    on_each_engine(&[scope(ActivePolicy::Queue, 16)], async |mut world| {
        share(&world, &["a", "b", "c"]).await;
        world.run().await;
        let (run, _a) = going(&world).await[0];
        world.executor.end(run, domain::outcome::TurnResult::of(Outcome::Handoff));
        world.settle_tasks().await;
        runtime::Stage::step(&mut world.stages.complete).await.unwrap();
        let b = world.owner("b").await.unwrap();
        assert_eq!(b.queue, Queue::Runnable, "it was offered the key");
        world.runtime.cancel(b.id).await.unwrap();
        world.run().await;
        assert_eq!(going(&world).await.len(), 1);
        assert_eq!(going(&world).await[0].1, id_of(&world, "c").await);
    });
}

#[test]
fn another_scope_s_concurrency_key_of_the_same_name_is_another() {
    let mut other = scope(ActivePolicy::Queue, 16);
    other.name = domain::text::ScopeName::known("other");
    other.lineage = vec![other.name.clone()];
    on_each_engine(&[scope(ActivePolicy::Queue, 16), other.clone()], async |mut world| {
        share(&world, &["a"]).await;
        let there = domain::delivery::Delivery {
            scope: other.name.clone(),
            ..world.delivery("d-o", Some("o"), &json!({ "alone": "deploy" }))
        };
        world.accept(there).await.unwrap();
        world.run().await;
        assert_eq!(going(&world).await.len(), 2);
    });
}
