//! More than one step's worth of what cannot go on must not keep the rest from going on.

use std::sync::Arc;

use domain::outcome::{Outcome, TurnResult};
use domain::route::{ActivePolicy, CheckpointOutcome};
use serde_json::json;
use store::Location;

use super::world::{Call, Double, World, open, scope};

/// More than any stage takes on in one step.
const CROWD: usize = 70;

#[tokio::test(start_paused = true)]
async fn a_long_backlog_behind_a_slow_handler_stops_its_lane_only() {
    let mut world = World::with(scope(ActivePolicy::Queue, 200)).await;
    let hanging = world.say("d-0", Some("a"), &json!({"hang": true})).await;
    for n in 0..CROWD {
        world.deliver(&format!("behind-{n}"), "a").await;
    }
    let beside = world.deliver("beside", "b").await;
    world.route_by_hints().await;
    assert_eq!(world.outcome(hanging).await, None);
    assert_eq!(world.outcome(beside).await, Some(CheckpointOutcome::Routed));
}

#[tokio::test(start_paused = true)]
async fn many_slow_handlers_stop_their_own_lanes_only() {
    let mut world = World::with(scope(ActivePolicy::Queue, 200)).await;
    for n in 0..CROWD {
        world.say(&format!("d-{n}"), Some(&format!("a-{n}")), &json!({"hang": true})).await;
    }
    let beside = world.deliver("beside", "b").await;
    world.route_by_hints().await;
    assert_eq!(world.outcome(beside).await, Some(CheckpointOutcome::Routed));
}

#[tokio::test]
async fn a_backlog_behind_a_slow_handler_is_routed_whole_and_in_order() {
    let mut world = World::with(scope(ActivePolicy::Queue, 200)).await;
    let mut expected = vec![world.say("d-0", Some("a"), &json!({"slow": true})).await];
    for n in 0..CROWD {
        expected.push(world.deliver(&format!("behind-{n}"), "a").await);
    }
    world.route_by_hints().await;
    let work = world.owner("a").await.unwrap();
    assert_eq!(world.pending(work.id).await, expected);
}

#[tokio::test]
async fn a_backlog_of_any_length_joins_the_work_that_gets_its_key() {
    let mut world = World::new().await;
    let mut expected = vec![world.say("d-0", Some("b"), &json!({"fail": true})).await];
    for n in 0..CROWD {
        expected.push(world.deliver(&format!("behind-{n}"), "b").await);
    }
    world.stages_route_only().await;
    expected.push(world.say("d-1", Some("a"), &json!({"keys": ["b"]})).await);
    world.run().await;
    let run = world.executions().await[0].id;
    assert_eq!(
        world.executor.calls(),
        [Call::Run(run, expected)],
        "none is overtaken by what brought the key"
    );
}

#[tokio::test]
async fn attempts_that_wait_for_their_lane_keep_no_other_from_being_settled() {
    let mut world = World::with(scope(ActivePolicy::Queue, 200)).await;
    for n in 0..CROWD {
        world.say(&format!("d-{n}"), Some(&format!("a-{n}")), &json!({"once": true})).await;
    }
    world.run().await;
    for n in 0..CROWD {
        world.say(&format!("late-{n}"), Some(&format!("a-{n}")), &json!({"fail": true})).await;
    }
    world.stages_route_only().await;
    let runs = world.executions().await;
    for run in &runs {
        world.executor.end(run.id, TurnResult::of(Outcome::Completed));
    }
    world.settle_tasks().await;
    world.run().await;
    assert!(world.executions().await.iter().all(|run| run.outcome.is_some() && run.ended_at.is_none()));

    // Only the newest one's lane becomes free.
    let last = runs.last().unwrap().work;
    let owned = world.runtime.store().read("test", move |tx| tx.keys_of(last)).await.unwrap();
    let lane = domain::lane::LaneId::of_key(&owned[0]);
    world
        .runtime
        .store()
        .transact("test", move |tx| {
            let block = tx.lane_block(lane)?.unwrap();
            let event = tx.event_at(block.head)?.unwrap();
            tx.route_off(&domain::route::Checkpoint {
                sequence: block.head,
                event: event.id,
                outcome: CheckpointOutcome::Quarantined,
                route: None,
                policy: None,
                work: None,
                generation: domain::id::Generation::from_number(1),
                code: None,
                reason: None,
                at: tx.now(),
            })?;
            tx.delete_lane_block(lane)
        })
        .await
        .unwrap();
    world.run().await;
    assert!(world.execution(runs.last().unwrap().id).await.ended_at.is_some());
}

#[tokio::test]
async fn runs_that_cannot_be_stopped_keep_no_other_from_being_stopped() {
    let mut world = World::with(scope(ActivePolicy::Queue, 200)).await;
    for n in 0..CROWD {
        world.deliver(&format!("d-{n}"), &format!("a-{n}")).await;
    }
    world.run().await;
    let runs = world.executions().await;
    for run in &runs {
        world.runtime.cancel(run.work).await.unwrap();
        world.executor.never_stop(run.id);
    }
    world.deliver("last", "last").await;
    world.run().await;
    let last = world.executions().await.last().unwrap().clone();
    world.runtime.cancel(last.work).await.unwrap();
    assert!(world.runtime.stop_unstopped().await.unwrap(), "some are left");
    assert!(world.executor.calls().contains(&Call::Stop(last.id)));
    assert!(!world.execution(last.id).await.unstopped);
}

#[tokio::test]
async fn the_next_life_waits_for_no_lease_of_a_dead_one() {
    let directory = tempfile::tempdir().unwrap();
    let first = directory.path().join("first.db");
    let clock = super::world::HandClock::new();
    let store = open(&Location::Sqlite(first.clone()), &clock).await;
    let mut world = World::over(store, Arc::clone(&clock), Arc::new(Double::default()), Arc::default()).await;
    world.apply(scope(ActivePolicy::Queue, 200)).await;
    for n in 0..2 * CROWD {
        world.deliver(&format!("d-{n}"), &format!("a-{n}")).await;
    }
    world.run().await;
    let second = directory.path().join("second.db");
    std::fs::copy(&first, &second).unwrap();
    std::fs::copy(directory.path().join("first.db-wal"), directory.path().join("second.db-wal")).unwrap();

    let store = open(&Location::Sqlite(second), &clock).await;
    let next = World::over(store, clock, Arc::new(Double::default()), world.texts()).await;
    let now = next.runtime.store().now();
    let expired = next.runtime.store().read("test", move |tx| tx.expired(now, 500)).await.unwrap();
    assert_eq!(expired.len(), 2 * CROWD);
}
