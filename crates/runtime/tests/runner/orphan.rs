//! Nothing is started beside what may still run, and nobody waits for ever for what cannot be stopped.

use std::time::Duration;

use domain::execution::ExecutionState;
use domain::lease::LEASE;
use domain::outcome::{Outcome, TurnResult};
use domain::route::ActivePolicy;
use domain::scope::SecretRef;
use extension::Recovery;
use runtime::Stage;
use serde_json::json;

use super::world::{Call, World, scope};

/// The default deadline of an attempt, and a moment.
const PAST_DEADLINE: Duration = Duration::from_secs(3601);
/// Longer than any shutdown may take here; the clock is tokio's, and nobody waits for it.
const AT_ONCE: Duration = Duration::from_secs(5);

#[tokio::test(start_paused = true)]
async fn an_overdue_run_that_may_still_run_keeps_its_place() {
    let mut world = World::new().await;
    world.deliver("d-1", "k").await;
    world.run().await;
    world.deliver("d-2", "k").await;
    world.run().await;
    let run = world.executions().await[0].id;
    world.executor.cannot_verify_stops(true);
    tokio::time::advance(PAST_DEADLINE).await;
    world.settle_tasks().await;
    world.run().await;
    assert!(world.executor.calls().contains(&Call::Stop(run)));
    assert_eq!(world.execution(run).await.state, ExecutionState::Running);
    assert_eq!(world.executions().await.len(), 1, "nothing takes its place");

    world.executor.cannot_verify_stops(false);
    tokio::time::advance(Duration::from_secs(31)).await;
    world.settle_tasks().await;
    world.run().await;
    assert_eq!(world.execution(run).await.state, ExecutionState::Failed);
    let result = world.runtime.store().read("test", move |tx| tx.turn_result(run)).await.unwrap().unwrap();
    assert_eq!(result.code.as_deref(), Some("deadline"));
    assert_eq!(world.executions().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_passed_while_nobody_looked_is_kept_at_adoption() {
    let mut world = World::new().await;
    world.deliver("d-1", "k").await;
    world.run().await;
    let run = world.executions().await[0].id;
    world.executor.on_recover(Recovery::Alive);
    world.clock.advance(PAST_DEADLINE);
    world.run().await;
    world.settle_tasks().await;
    world.run().await;
    assert!(world.executor.calls().contains(&Call::Stop(run)));
    assert_eq!(world.execution(run).await.state, ExecutionState::Failed);
}

#[tokio::test]
async fn a_run_whose_secret_is_gone_is_held_until_it_can_be_looked_at() {
    let mut declared = scope(ActivePolicy::Queue, 16);
    let binding = declared.bindings.values_mut().next().unwrap();
    binding.secrets.insert("TOKEN".to_owned(), SecretRef("env:TOKEN".to_owned()));
    let mut world = World::with(declared).await;
    world.deliver("d-1", "k").await;
    world.run().await;
    world.deliver("d-2", "k").await;
    world.run().await;
    let run = world.executions().await[0].id;

    world.executor.on_recover(Recovery::Alive);
    world.secrets.take_away(true);
    world.clock.advance(LEASE);
    world.run().await;
    assert_eq!(
        world.execution(run).await.state,
        ExecutionState::Running,
        "it was not looked at, and may run"
    );
    assert_eq!(world.executions().await.len(), 1, "nothing takes its place");

    world.secrets.take_away(false);
    world.clock.advance(LEASE);
    world.run().await;
    assert_eq!(world.executor.runs(), 1, "it was adopted");
    world.end(run, Outcome::Completed).await;
    assert_eq!(world.execution(run).await.state, ExecutionState::Completed);
}

#[tokio::test]
async fn a_run_whose_generation_cannot_be_read_is_held() {
    let mut world = World::new().await;
    world.deliver("d-1", "k").await;
    world.run().await;
    world.deliver("d-2", "k").await;
    world.apply(scope(ActivePolicy::Queue, 8)).await;
    world.run().await;
    let run = world.executions().await[0].id;
    let text = world.texts().lock().unwrap().remove("text 0").unwrap();
    world.executor.on_recover(Recovery::Finished(TurnResult::of(Outcome::Completed)));
    world.clock.advance(LEASE);
    world.run().await;
    assert_eq!(world.execution(run).await.state, ExecutionState::Running);
    assert_eq!(world.executions().await.len(), 1);

    world.texts().lock().unwrap().insert("text 0".to_owned(), text);
    world.clock.advance(LEASE);
    world.run().await;
    assert_eq!(world.execution(run).await.state, ExecutionState::Completed);
}

#[tokio::test(start_paused = true)]
async fn shutdown_does_not_wait_for_a_run_that_is_being_adopted() {
    let mut world = World::new().await;
    world.deliver("d-1", "k").await;
    world.run().await;
    let run = world.executions().await[0].id;
    world.executor.on_recover(Recovery::Alive);
    world.clock.advance(LEASE);
    // The claim is durable; its task has not begun.
    world.stages.recover.step().await.unwrap();
    tokio::time::timeout(AT_ONCE, world.runtime.shutdown()).await.expect("at once").unwrap();
    let now = world.runtime.store().now();
    let lease = world.execution(run).await.lease.unwrap();
    assert!(!lease.is_live(now), "the next life need not wait for it");
}

#[tokio::test(start_paused = true)]
async fn shutdown_releases_what_is_claimed_and_not_launched() {
    let mut world = World::new().await;
    world.deliver("d-1", "k").await;
    world.stages.route.step().await.unwrap();
    world.stages.schedule.step().await.unwrap();
    let run = world.executions().await[0].id;
    world.runtime.shutdown().await.unwrap();
    let now = world.runtime.store().now();
    assert!(!world.execution(run).await.lease.unwrap().is_live(now));
    // A stage that was in the middle of its step starts nothing after that.
    world.stages.execute.step().await.unwrap();
    world.settle_tasks().await;
    assert_eq!(world.executor.runs(), 0);
}

#[tokio::test(start_paused = true)]
async fn shutdown_does_not_wait_for_a_stop_that_hangs() {
    let mut world = World::new().await;
    world.deliver("d-1", "k").await;
    world.run().await;
    let run = world.executions().await[0].id;
    world.executor.hang_at_stops();
    tokio::time::advance(PAST_DEADLINE).await;
    world.settle_tasks().await;
    assert!(world.executor.calls().contains(&Call::Stop(run)));
    tokio::time::timeout(AT_ONCE, world.runtime.shutdown()).await.expect("at once").unwrap();
}

#[tokio::test(start_paused = true)]
async fn shutdown_does_not_wait_for_a_handler_that_hangs() {
    let mut world = World::new().await;
    world.say("d-1", Some("k"), &json!({"hang": true})).await;
    world.stages.route.step().await.unwrap();
    world.settle_tasks().await;
    tokio::time::timeout(AT_ONCE, world.runtime.shutdown()).await.expect("at once").unwrap();
}

#[tokio::test]
async fn a_stop_that_hangs_keeps_no_other_run_from_being_stopped() {
    let mut world = World::new().await;
    world.deliver("d-1", "a").await;
    world.deliver("d-2", "b").await;
    world.run().await;
    for run in world.executions().await {
        world.runtime.cancel(run.work).await.unwrap();
    }
    world.executor.hang_at_stops();
    let stopping = tokio::time::timeout(Duration::from_millis(50), world.runtime.stop_unstopped()).await;
    assert!(stopping.is_err(), "they hang");
    let stops = world.executor.calls().iter().filter(|call| matches!(call, Call::Stop(_))).count();
    assert_eq!(stops, 2);
}
