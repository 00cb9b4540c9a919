//! Nothing that can go on may wait for a bell that nobody rings.

use std::time::Duration;

use domain::lease::LEASE;
use domain::outcome::{Outcome, TurnResult};
use domain::route::{ActivePolicy, CheckpointOutcome};
use extension::Recovery;
use runtime::{Progress, Stage};
use serde_json::json;

use super::world::{RunFault, World, route, rung, scope};

async fn idle_recovery() -> World {
    let mut world = World::new().await;
    // Nothing is live yet, so recovery sleeps until somebody rings.
    assert_eq!(world.stages.recover.step().await.unwrap(), Progress::Idle { due_at: None });
    while rung(&world.runtime.hints().recover).await {}
    world.deliver("d-1", "k").await;
    world.stages.route.step().await.unwrap();
    world.stages.schedule.step().await.unwrap();
    world
}

/// What recovery does once it has been woken: it sleeps until the lease ends, and takes the attempt then.
async fn check_recovery_goes_on(world: &mut World) {
    assert!(rung(&world.runtime.hints().recover).await, "recovery is told that a lease runs out unattended");
    assert_eq!(world.runtime.held().count(), 0, "nobody renews it");
    world.executor.on_run(None);
    world.executor.on_recover(Recovery::NothingStarted);
    world.clock.advance(LEASE);
    world.run().await;
    assert_eq!(world.executor.runs(), 1);
}

#[tokio::test]
async fn an_attempt_whose_executor_was_fenced_is_recovered() {
    let mut world = idle_recovery().await;
    world.executor.on_run(Some(RunFault::Fenced));
    world.stages.execute.step().await.unwrap();
    world.settle_tasks().await;
    check_recovery_goes_on(&mut world).await;
}

#[tokio::test]
async fn an_attempt_whose_executor_panicked_is_recovered() {
    let mut world = idle_recovery().await;
    world.executor.on_run(Some(RunFault::Panics));
    world.stages.execute.step().await.unwrap();
    world.settle_tasks().await;
    check_recovery_goes_on(&mut world).await;
}

#[tokio::test]
async fn an_attempt_whose_report_came_too_late_is_recovered() {
    let mut world = idle_recovery().await;
    world.stages.execute.step().await.unwrap();
    world.settle_tasks().await;
    let run = world.executions().await[0].id;
    world.clock.advance(LEASE);
    world.executor.end(run, TurnResult::of(Outcome::Completed));
    world.settle_tasks().await;
    world.stages.complete.step().await.unwrap();
    assert!(rung(&world.runtime.hints().recover).await);
}

#[tokio::test]
async fn an_answer_that_went_stale_is_asked_for_again() {
    let mut declared = scope(ActivePolicy::Queue, 16);
    declared.routes = vec![route("told", ActivePolicy::Queue, &json!({"looks": true}))];
    let mut world = World::with(declared).await;
    world.deliver("d-1", "k").await;
    world.run().await;
    let run = world.executions().await[0].id;

    let slow = world.say("d-2", Some("k"), &json!({"slow": true})).await;
    world.stages.route.step().await.unwrap();
    // The Work moves on while the handler thinks.
    world.executor.end(run, TurnResult::of(Outcome::Completed));
    world.settle_tasks().await;
    world.stages.complete.step().await.unwrap();
    // The loop hears the answer's own ring once; the step it brings about finds the answer stale.
    while rung(&world.runtime.hints().route).await {}
    world.route_by_hints().await;
    assert_eq!(world.outcome(slow).await, Some(CheckpointOutcome::Routed));
}

#[tokio::test]
async fn a_handler_that_saw_no_work_is_asked_again_when_there_is_one() {
    let mut declared = scope(ActivePolicy::Queue, 16);
    declared.routes = vec![route("told", ActivePolicy::Queue, &json!({"looks": true}))];
    let mut world = World::with(declared).await;
    // Both are read in one snapshot, in which nothing owns the key yet.
    world.deliver("opens", "k").await;
    let follows = world.say("follows", Some("k"), &json!({"known": true})).await;
    world.route_by_hints().await;
    assert_eq!(world.outcome(follows).await, Some(CheckpointOutcome::Routed));
}

#[tokio::test]
async fn a_handler_that_looks_at_the_work_waits_for_the_earlier_event_of_its_key() {
    let mut declared = scope(ActivePolicy::Queue, 16);
    declared.routes = vec![route("told", ActivePolicy::Queue, &json!({"looks": true}))];
    let mut world = World::with(declared).await;
    world.say("opens", Some("k"), &json!({"slow": true})).await;
    let follows = world.say("follows", Some("k"), &json!({"known": true})).await;
    world.route_by_hints().await;
    assert_eq!(world.outcome(follows).await, Some(CheckpointOutcome::Routed));
}

#[tokio::test]
async fn a_redelivery_is_known_even_where_its_scope_is_gone() {
    let mut world = World::new().await;
    let first = world.deliver("d-1", "k").await;
    let mut elsewhere = scope(ActivePolicy::Queue, 16);
    elsewhere.name = domain::text::ScopeName::known("elsewhere");
    world.apply(elsewhere).await;
    let again = world.accept(world.delivery("d-1", Some("k"), &json!({}))).await.unwrap();
    assert_eq!(again.event(), first);
    world.clock.advance(Duration::from_secs(1));
    assert!(world.accept(world.delivery("d-2", Some("k"), &json!({}))).await.is_err());
}
