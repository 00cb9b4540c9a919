//! Leases and recovery: one authority at a time, and no second start by guess.

use std::sync::Arc;
use std::time::Duration;

use domain::execution::ExecutionState;
use domain::lease::{LEASE, RENEWAL};
use domain::outcome::{Outcome, TurnResult};
use domain::route::ActivePolicy;
use domain::store::{RecoveryTally, StartFilter, StoreError};
use extension::Recovery;
use runtime::{Progress, Stage};
use store::Location;

use super::world::{Call, Double, HandClock, World, open, scope};

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
async fn a_launch_that_may_have_begun_without_a_record_is_not_repeated() {
    let (mut world, run) = running().await;
    world.executor.begins_unrecorded();
    world.executor.on_recover(Recovery::NothingStarted);
    world.clock.advance(LEASE);
    world.run().await;
    assert_eq!(world.execution(run.id).await.state, ExecutionState::Failed);
    assert!(world.executor.calls().contains(&Call::Stop(run.id)), "whatever there is of it has ended");
    assert_eq!(world.executor.runs(), 1);
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

/// A second life over what the first left, whose start is noted, with four runs that come to four ends.
#[tokio::test]
async fn each_run_that_an_earlier_life_left_is_counted_once_for_the_life_that_found_out() {
    let directory = tempfile::tempdir().unwrap();
    let location = Location::Sqlite(directory.path().join("conduit.db"));
    let clock = HandClock::new();
    let mut first =
        World::over(open(&location, &clock).await, Arc::clone(&clock), Arc::default(), Arc::default()).await;
    first.apply(scope(ActivePolicy::Queue, 16)).await;
    for key in ["a", "b", "c", "d"] {
        first.deliver(&format!("d-{key}"), key).await;
    }
    first.run().await;
    let runs: Vec<_> = first.executions().await.iter().map(|run| run.id).collect();
    assert_eq!(runs.len(), 4);
    let texts = first.texts();
    first.runtime.store().close().await.unwrap();
    drop(first);

    let executor = Arc::new(Double::default());
    let mut second =
        World::over(open(&location, &clock).await, Arc::clone(&clock), Arc::clone(&executor), texts).await;
    let life = second.runtime.store().incarnation();
    let noted: Result<(), StoreError> =
        second.runtime.store().transact("test", move |tx| tx.insert_start(life, None)).await;
    noted.unwrap();
    executor.on_recover_of(runs[0], Recovery::Alive);
    executor.on_recover_of(runs[1], Recovery::NothingStarted);
    executor.on_recover_of(runs[2], Recovery::Finished(TurnResult::of(Outcome::Completed)));
    let gone = Recovery::NotAdoptable { reason: "it is gone".to_owned(), stopped: false };
    executor.on_recover_of(runs[3], gone);
    executor.cannot_verify_stops(true);
    second.run().await;
    let tally = async |world: &World| {
        let filter = StartFilter { here: true, before: None };
        let rows = world.runtime.store().read("test", move |tx| tx.starts(&filter, 9)).await;
        let rows: Vec<domain::store::StartRow> = rows.map_err(|error: StoreError| error).unwrap();
        rows[0].recovered
    };
    let found = RecoveryTally { adopted: 1, relaunched: 1, finished: 1, interrupted: 0 };
    assert_eq!(tally(&second).await, found, "what is held is not yet found out");

    // A later try of the same life ends it, and what has been counted is not counted again.
    executor.cannot_verify_stops(false);
    executor.on_recover_of(runs[1], Recovery::Alive);
    second.clock.advance(LEASE);
    second.run().await;
    assert_eq!(tally(&second).await, RecoveryTally { interrupted: 1, ..found });
}

#[tokio::test]
async fn a_run_that_this_life_lost_sight_of_is_not_one_that_was_left_to_it() {
    let (mut world, _run) = running().await;
    let life = world.runtime.store().incarnation();
    let noted: Result<(), StoreError> =
        world.runtime.store().transact("test", move |tx| tx.insert_start(life, None)).await;
    noted.unwrap();
    world.executor.on_recover(Recovery::Alive);
    world.clock.advance(LEASE);
    world.run().await;
    let filter = StartFilter::default();
    let rows: Result<_, StoreError> =
        world.runtime.store().read("test", move |tx| tx.starts(&filter, 9)).await;
    assert_eq!(rows.unwrap()[0].recovered, RecoveryTally::default());
}
