//! Nothing polls where one process has the database: who has something to do by now is told so.

use domain::outcome::{Outcome, TurnResult};
use domain::route::ActivePolicy;
use domain::text::DeliveryId;
use domain::wait::Registration;
use runtime::Stage;
use serde_json::json;

use super::world::{World, rung, scope, scope_name};

/// A world of one run that goes on, in which nobody has been told anything.
async fn running(policy: ActivePolicy) -> (World, domain::execution::Execution) {
    let mut world = World::with(scope(policy, 16)).await;
    world.say("d-1", Some("k"), &json!({"once": true})).await;
    world.run().await;
    let run = world.executions().await[0].clone();
    hear(&world).await;
    (world, run)
}

/// Hears whatever has rung so far.
async fn hear(world: &World) {
    let hints = world.runtime.hints();
    for bell in [&hints.schedule, &hints.dispatch, &hints.wake, &hints.stop] {
        while rung(bell).await {}
    }
}

#[tokio::test]
async fn whoever_fires_timers_is_told_of_a_new_one() {
    let waits = Registration { timeout_seconds: Some(60), ..Registration::default() };
    for result in [TurnResult::of(Outcome::Failed), TurnResult::waiting(waits)] {
        let (mut world, run) = running(ActivePolicy::Queue).await;
        world.executor.end(run.id, result);
        world.settle_tasks().await;
        world.stages.complete.step().await.unwrap();
        assert!(rung(&world.runtime.hints().wake).await);
    }
}

#[tokio::test]
async fn an_operator_s_order_is_told_of_and_so_is_what_it_leaves_to_be_stopped() {
    let (mut world, run) = running(ActivePolicy::Queue).await;
    world.runtime.interrupt(run.work, DeliveryId::known("i-1")).await.unwrap();
    assert!(rung(&world.runtime.hints().dispatch).await);
    world.stages.dispatch.step().await.unwrap();
    world.settle_tasks().await;
    assert!(rung(&world.runtime.hints().stop).await);
}

#[tokio::test]
async fn a_route_s_order_is_told_of() {
    let (mut world, _run) = running(ActivePolicy::Inject).await;
    world.deliver("d-2", "k").await;
    world.stages_route_only().await;
    assert!(rung(&world.runtime.hints().dispatch).await);
}

#[tokio::test]
async fn what_an_operator_lets_start_is_told_of() {
    let (mut world, run) = running(ActivePolicy::Queue).await;
    world.end(run.id, Outcome::Failed).await;
    hear(&world).await;
    world.runtime.retry(run.work, DeliveryId::known("retry-1")).await.unwrap();
    assert!(rung(&world.runtime.hints().schedule).await);
    world.runtime.pause_scope(scope_name()).await.unwrap();
    world.run().await;
    hear(&world).await;
    world.runtime.resume_scope(scope_name()).await.unwrap();
    assert!(rung(&world.runtime.hints().schedule).await);
}
