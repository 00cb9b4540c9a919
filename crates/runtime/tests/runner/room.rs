//! Room that is free is offered to whoever waits for it, whatever became of the one it was offered to first.

use domain::budget::{Per, Window};
use domain::execution::ExecutionState;
use domain::outcome::{Outcome, TurnResult};
use domain::route::ActivePolicy;
use domain::scope::EffectiveScope;
use domain::store::GenerationRow;
use domain::text::{BindingName, DeliveryId};
use runtime::{Scopes, Stage};
use serde_json::json;
use std::sync::Arc;

use super::budget::budget;
use super::world::{World, route, scope};

/// One attempt runs, `b` and `c` wait for its room. Then it ends, and `b` is next.
async fn b_is_next(declared: EffectiveScope) -> World {
    let mut world = World::with(declared).await;
    for key in ["a", "b", "c"] {
        world.deliver(key, key).await;
        world.run().await;
    }
    let run = world.executions().await[0].id;
    world.executor.end(run, TurnResult::of(Outcome::Completed));
    world.settle_tasks().await;
    world.stages.complete.step().await.unwrap();
    world
}

#[tokio::test]
async fn room_offered_to_a_work_that_is_cancelled_goes_to_the_next() {
    let mut world = b_is_next(scope(ActivePolicy::Queue, 1)).await;
    let next = world.owner("b").await.unwrap();
    world.runtime.cancel(next.id).await.unwrap();
    world.run().await;
    let waited = world.owner("c").await.unwrap();
    assert!(waited.state.is_running(), "{waited:?}");
}

#[tokio::test]
async fn room_offered_to_a_work_without_its_binding_goes_to_the_next() {
    let mut declared = scope(ActivePolicy::Queue, 1);
    let mut other = declared.bindings.values().next().unwrap().clone();
    other.name = BindingName::known("other");
    declared.bindings.insert(other.name.clone(), other);
    let mut by_type = route("b", ActivePolicy::Queue, &json!({"only": "b"}));
    by_type.binding = Some(BindingName::known("other"));
    let mut without = declared.clone();
    declared.routes.insert(0, by_type);
    without.bindings.remove(&BindingName::known("other"));

    let mut world = World::with(declared).await;
    world.deliver("a", "a").await;
    world.run().await;
    world.say("b", Some("b"), &json!({"for": "b"})).await;
    world.run().await;
    world.deliver("c", "c").await;
    world.run().await;
    let run = world.executions().await[0].id;
    world.apply(without).await;
    world.run().await;
    world.end(run, Outcome::Completed).await;
    let waited = world.owner("c").await.unwrap();
    assert!(waited.state.is_running(), "{waited:?}");
}

#[tokio::test]
async fn room_of_a_run_that_is_interrupted_goes_to_whoever_waits() {
    let mut world = World::with(scope(ActivePolicy::Queue, 1)).await;
    for key in ["a", "b"] {
        world.deliver(key, key).await;
        world.run().await;
    }
    let run = world.executions().await[0].clone();
    world.runtime.interrupt(run.work, DeliveryId::known("i-1")).await.unwrap();
    world.run().await;
    let waited = world.owner("b").await.unwrap();
    assert!(waited.state.is_running(), "{waited:?}");
}

/// Room in the scope, and then a concurrency key.
#[tokio::test]
async fn what_was_offered_to_a_work_that_is_held_goes_to_the_next() {
    for (room, says) in [(1, json!({})), (16, json!({"alone": "deploy"}))] {
        let budgets = vec![budget("turns", Per::Work, Window::Life, 1)];
        let mut world = World::with(EffectiveScope { budgets, ..scope(ActivePolicy::Queue, room) }).await;
        world.say("b-1", Some("b"), &says).await;
        world.run().await;
        let first = world.executions().await[0].id;
        world.end(first, Outcome::Handoff).await;
        for key in ["a", "b", "c"] {
            world.say(key, Some(key), &says).await;
            world.run().await;
        }
        let run = world.executions().await[1].id;
        world.end(run, Outcome::Handoff).await;
        let held = world.owner("b").await.unwrap();
        assert!(held.hold.is_some(), "its budget is used up: {held:?}");
        let waited = world.owner("c").await.unwrap();
        assert!(waited.state.is_running(), "{waited:?}");
    }
}

#[tokio::test]
async fn a_configuration_whose_apply_was_cut_short_is_looked_at_by_the_next_life() {
    let mut world = World::with(scope(ActivePolicy::Queue, 1)).await;
    world.deliver("d-1", "k").await;
    world.stages_route_only().await;
    let mut without = scope(ActivePolicy::Queue, 1);
    without.bindings.clear();
    without.routes.clear();
    world.apply(without).await;
    world.run().await;
    assert_eq!(world.executor.runs(), 0);

    // The generation is committed, and the process dies before anything else.
    let back = scope(ActivePolicy::Queue, 1);
    let scopes = Scopes::from([(back.name.clone(), Arc::new(back))]);
    world.texts().lock().unwrap().insert("back".to_owned(), scopes);
    world
        .runtime
        .store()
        .transact("test", |tx| {
            let number = tx.current_generation_number()?.unwrap().next();
            let applied_at = tx.now();
            tx.insert_generation(&GenerationRow {
                number,
                body: "back".to_owned(),
                digest: String::new(),
                applied_at,
            })
        })
        .await
        .unwrap();
    world.runtime.prepare().await.unwrap();
    world.run().await;
    assert_eq!(world.executor.runs(), 1);
    assert_eq!(world.executions().await[0].state, ExecutionState::Running);
}
