//! One item that breaks what touches it stops itself, and nothing beside it.

use std::time::Duration;

use domain::execution::ExecutionState;
use domain::input::Input;
use domain::outcome::{Outcome, TurnResult};
use domain::route::CheckpointOutcome;
use domain::text::BindingName;
use domain::work::WorkState;
use runtime::Stage;
use serde_json::json;

use super::world::World;

async fn check_quarantined(payload: serde_json::Value) {
    let mut world = World::new().await;
    let poison = world.say("d-1", Some("a"), &payload).await;
    let behind = world.deliver("d-2", "a").await;
    let beside = world.deliver("d-3", "b").await;
    world.route_by_hints().await;
    assert_eq!(world.outcome(beside).await, Some(CheckpointOutcome::Routed));
    for _ in 0..5 {
        world.clock.advance(Duration::from_secs(20));
        world.route_by_hints().await;
    }
    let checkpoint = world.checkpoint(poison).await.unwrap();
    assert_eq!(checkpoint.outcome, CheckpointOutcome::Quarantined);
    assert_eq!(checkpoint.code.unwrap().as_str(), "handler_panicked");
    assert_eq!(world.outcome(behind).await, Some(CheckpointOutcome::Routed));
}

#[tokio::test]
async fn a_handler_that_panics_quarantines_its_event() {
    check_quarantined(json!({"panic": true})).await;
}

#[tokio::test]
async fn a_handler_that_panics_later_quarantines_its_event() {
    check_quarantined(json!({"panic": true, "slow": true})).await;
}

/// Makes the record of a key's Work contradict its attempt, as a bug or a damaged disk might.
async fn damage(world: &World, key_id: &str) {
    let work = world.owner(key_id).await.unwrap().id;
    world
        .runtime
        .store()
        .transact("test", move |tx| {
            let read = tx.work(work)?.unwrap();
            let mut next = read.clone();
            next.state = WorkState::Ready;
            next.revision = read.revision.next();
            tx.update_work(&next, &read)
        })
        .await
        .unwrap();
}

#[tokio::test]
async fn a_report_that_cannot_be_settled_keeps_no_other_from_it() {
    let mut world = World::new().await;
    world.deliver("d-1", "a").await;
    world.deliver("d-2", "b").await;
    world.run().await;
    let runs = world.executions().await;
    damage(&world, "a").await;
    for run in &runs {
        world.executor.end(run.id, TurnResult::of(Outcome::Completed));
    }
    world.settle_tasks().await;
    for _ in 0..3 {
        // The step that meets the damage may fail; the stage goes on.
        let _met = world.stages.complete.step().await;
    }
    let sound = world.owner("b").await.unwrap();
    let of_sound = runs.iter().find(|run| run.work == sound.id).unwrap();
    assert_eq!(world.execution(of_sound.id).await.state, ExecutionState::Completed);
}

#[tokio::test]
async fn a_work_that_cannot_be_started_keeps_no_other_from_it() {
    let mut world = World::new().await;
    world.deliver("d-1", "a").await;
    world.run().await;
    let run = world.executions().await[0].id;
    world.end(run, Outcome::Completed).await;
    let broken = world.owner("a").await.unwrap();
    world
        .runtime
        .store()
        .transact("test", move |tx| {
            let read = tx.work(broken.id)?.unwrap();
            // Runnable, and no input is there.
            let next = read.clone().enqueue(tx.now()).unwrap();
            tx.update_work(&next, &read)
        })
        .await
        .unwrap();
    world.deliver("d-2", "b").await;
    world.stages.route.step().await.unwrap();
    for _ in 0..3 {
        let _met = world.stages.schedule.step().await;
    }
    assert!(world.owner("b").await.unwrap().state.is_running());
}

#[tokio::test]
async fn an_event_that_cannot_be_written_is_set_aside_by_itself() {
    let mut world = World::new().await;
    world.deliver("d-1", "a").await;
    world.run().await;
    let work = world.owner("a").await.unwrap().id;
    let poison = world.deliver("d-2", "a").await;
    // Its input is there already, so that routing it breaks its transaction.
    world
        .runtime
        .store()
        .transact("test", move |tx| {
            let event = tx.event(poison)?.unwrap();
            let binding = BindingName::known("double");
            tx.insert_input(&Input {
                work,
                sequence: event.sequence,
                event: poison,
                binding,
                consumed_by: None,
            })
        })
        .await
        .unwrap();
    let beside = world.deliver("d-3", "b").await;
    world.route_by_hints().await;
    assert_eq!(world.outcome(beside).await, Some(CheckpointOutcome::Routed));
    for _ in 0..5 {
        world.clock.advance(Duration::from_secs(20));
        world.route_by_hints().await;
    }
    let checkpoint = world.checkpoint(poison).await.unwrap();
    assert_eq!(checkpoint.outcome, CheckpointOutcome::Quarantined);
    assert_eq!(checkpoint.code.unwrap().as_str(), "conflict");
}
