//! Cancellation, in every order against what it races with.

use domain::execution::ExecutionState;
use domain::outcome::{Outcome, TurnResult};
use domain::route::{ActivePolicy, CheckpointOutcome};
use domain::work::{WorkRefusal, WorkState};
use runtime::{ControlError, Stage};
use serde_json::json;

use super::world::{Call, World, scope};

#[tokio::test]
async fn cancelling_ends_the_work_and_its_attempt_together_and_stops_it_afterwards() {
    let mut world = World::with(scope(ActivePolicy::Queue, 1)).await;
    world.deliver("d-1", "k").await;
    world.deliver("d-2", "other").await;
    world.run().await;
    let work = world.owner("k").await.unwrap();
    let cancelled = world.runtime.cancel(work.id).await.unwrap().execution.unwrap();

    assert_eq!(world.work(work.id).await.state, WorkState::Cancelled);
    let run = world.execution(cancelled.id).await;
    assert_eq!(run.state, ExecutionState::Cancelled);
    assert!(run.unstopped, "what it started still runs, and the row says so");
    assert!(!world.executor.calls().contains(&Call::Stop(run.id)));

    world.run().await;
    assert_eq!(world.executor.runs(), 2, "the room is free at the commit");
    assert!(!world.runtime.stop_unstopped().await.unwrap());
    assert!(world.executor.calls().contains(&Call::Stop(run.id)));
    assert!(!world.execution(run.id).await.unstopped);
}

#[tokio::test]
async fn what_cannot_be_stopped_for_certain_stays_marked() {
    let mut world = World::new().await;
    world.deliver("d-1", "k").await;
    world.run().await;
    let work = world.owner("k").await.unwrap();
    let run = world.runtime.cancel(work.id).await.unwrap().execution.unwrap().id;
    world.executor.cannot_verify_stops(true);
    assert!(world.runtime.stop_unstopped().await.unwrap());
    assert!(world.execution(run).await.unstopped);
    world.executor.cannot_verify_stops(false);
    assert!(!world.runtime.stop_unstopped().await.unwrap());
    assert!(!world.execution(run).await.unstopped);
}

#[tokio::test]
async fn completion_first_then_cancel_keeps_the_end() {
    let mut world = World::new().await;
    world.say("d-1", Some("k"), &json!({"once": true})).await;
    world.run().await;
    let run = world.executions().await[0].id;
    world.end(run, Outcome::Completed).await;
    let work = world.owner("k").await.unwrap();
    let answer = world.runtime.cancel(work.id).await;
    assert!(matches!(answer, Err(ControlError::Refused(WorkRefusal::Terminal { state: "completed" }))));
    assert_eq!(world.work(work.id).await, work);
}

#[tokio::test]
async fn cancel_first_then_completion_stays_cancelled() {
    let mut world = World::new().await;
    world.deliver("d-1", "k").await;
    world.run().await;
    let run = world.executions().await[0].clone();
    world.executor.end(run.id, TurnResult::of(Outcome::Completed));
    world.settle_tasks().await;
    // The report waits; the cancellation is faster.
    world.runtime.cancel(run.work).await.unwrap();
    world.stages.complete.step().await.unwrap();
    assert_eq!(world.execution(run.id).await.state, ExecutionState::Cancelled);
    assert_eq!(world.work(run.work).await.state, WorkState::Cancelled);

    let late = world.deliver("d-2", "k").await;
    world.run().await;
    assert_eq!(world.outcome(late).await, Some(CheckpointOutcome::Terminal));
}

#[tokio::test]
async fn cancel_between_claim_and_launch_starts_nothing() {
    let mut world = World::new().await;
    world.deliver("d-1", "k").await;
    world.stages.route.step().await.unwrap();
    world.stages.schedule.step().await.unwrap();
    let work = world.owner("k").await.unwrap();
    world.runtime.cancel(work.id).await.unwrap();
    world.run().await;
    assert_eq!(world.executor.runs(), 0, "the handle is refused, so nothing begins");
}
