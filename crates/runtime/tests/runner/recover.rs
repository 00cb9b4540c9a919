//! Leases and recovery: one authority at a time, and no second start by guess.

use std::time::Duration;

use domain::execution::ExecutionState;
use domain::lease::{LEASE, RENEWAL};
use domain::outcome::{Outcome, TurnResult};
use extension::Recovery;
use runtime::{Progress, Stage};

use super::world::{Call, World};

async fn running() -> (World, domain::execution::Execution) {
    let mut world = World::new().await;
    world.deliver("d-1", "k").await;
    world.run().await;
    let run = world.executions().await[0].clone();
    (world, run)
}

#[tokio::test]
async fn a_renewed_lease_is_never_recovered() {
    let (mut world, run) = running().await;
    for _ in 0..10 {
        world.clock.advance(RENEWAL);
        world.runtime.renew().await.unwrap();
        world.run().await;
    }
    assert_eq!(world.execution(run.id).await.epoch, run.epoch);
}

#[tokio::test]
async fn a_lease_is_live_until_the_moment_it_ends_and_not_at_it() {
    let (mut world, run) = running().await;
    world.clock.advance(LEASE.saturating_sub(Duration::from_micros(1)));
    let due = world.stages.recover.step().await.unwrap();
    assert!(matches!(due, Progress::Idle { due_at: Some(_) }), "{due:?}");
    assert_eq!(world.execution(run.id).await.epoch, run.epoch);

    world.executor.on_recover(Recovery::Alive);
    world.clock.advance(Duration::from_micros(1));
    assert_eq!(world.stages.recover.step().await.unwrap(), Progress::Advanced);
    let claimed = world.execution(run.id).await;
    assert_eq!(claimed.epoch, run.epoch.next());
    assert!(claimed.recovering, "the claim is durable before anyone is asked");
}

#[tokio::test]
async fn what_is_alive_is_adopted_and_not_started_again() {
    let (mut world, run) = running().await;
    world.executor.on_recover(Recovery::Alive);
    world.clock.advance(LEASE);
    world.run().await;
    let adopted = world.execution(run.id).await;
    assert_eq!(adopted.state, ExecutionState::Running);
    assert!(!adopted.recovering);
    assert_eq!(adopted.attempt, run.attempt);
    assert_eq!(world.executor.runs(), 1);
    assert!(world.executor.calls().contains(&Call::Observe(run.id)));
    world.end(run.id, Outcome::Completed).await;
    assert_eq!(world.execution(run.id).await.state, ExecutionState::Completed);
}

#[tokio::test]
async fn a_result_that_was_reached_meanwhile_is_committed_once() {
    let (mut world, run) = running().await;
    world.executor.on_recover(Recovery::Finished(TurnResult::of(Outcome::Completed)));
    world.clock.advance(LEASE);
    world.run().await;
    assert_eq!(world.execution(run.id).await.state, ExecutionState::Completed);
    assert_eq!(world.executor.runs(), 1);
    assert_eq!(world.events("core.turn.ended").await.len(), 1);
}

#[tokio::test]
async fn a_launch_that_started_nothing_is_the_same_attempt_again() {
    let (mut world, run) = running().await;
    world.executor.on_recover(Recovery::NothingStarted);
    world.clock.advance(LEASE);
    world.run().await;
    let again = world.execution(run.id).await;
    assert_eq!(again.attempt, run.attempt, "no attempt was spent");
    assert_eq!(again.epoch, run.epoch.next());
    assert_eq!(again.state, ExecutionState::Running);
    assert_eq!(world.executor.runs(), 2);
    assert_eq!(world.executions().await.len(), 1);
}

#[tokio::test]
async fn what_cannot_be_taken_over_fails_as_interrupted_once_it_is_stopped() {
    let (mut world, run) = running().await;
    world.executor.on_recover(Recovery::NotAdoptable { reason: "it is gone".to_owned(), stopped: false });
    world.executor.cannot_verify_stops(true);
    world.clock.advance(LEASE);
    world.run().await;
    assert_eq!(world.execution(run.id).await.state, ExecutionState::Running, "unverifiable is not stopped");
    world.deliver("d-2", "k").await;
    world.run().await;
    assert_eq!(world.executions().await.len(), 1, "nothing takes its place");

    world.executor.cannot_verify_stops(false);
    world.clock.advance(LEASE);
    world.run().await;
    let ended = world.execution(run.id).await;
    assert_eq!(ended.state, ExecutionState::Failed);
    assert_eq!(ended.epoch.number(), 3, "each try is an epoch");
    let result = world.runtime.store().read("test", move |tx| tx.turn_result(run.id)).await.unwrap().unwrap();
    assert_eq!(result.code.as_deref(), Some("interrupted"));
    assert_eq!(world.executions().await.len(), 2, "the input that waited has its attempt");
}

#[tokio::test]
async fn a_stale_result_does_not_speak_for_the_recovered_attempt() {
    let (mut world, run) = running().await;
    world.executor.on_recover(Recovery::Alive);
    world.clock.advance(LEASE);
    // The first life reports just as the second is claimed.
    world.executor.end(run.id, TurnResult::of(Outcome::Failed));
    world.settle_tasks().await;
    world.stages.recover.step().await.unwrap();
    world.settle_tasks().await;
    world.stages.complete.step().await.unwrap();
    let adopted = world.execution(run.id).await;
    assert_eq!(adopted.state, ExecutionState::Running);
    assert_eq!(adopted.outcome, None);
    world.end(run.id, Outcome::Completed).await;
    assert_eq!(world.execution(run.id).await.state, ExecutionState::Completed);
}
