//! Completion: an attempt ends once, and its Work only when nothing is on its way to it.

use domain::execution::ExecutionState;
use domain::lease::LEASE;
use domain::outcome::{Outcome, TurnResult};
use domain::route::{ActivePolicy, CheckpointOutcome};
use domain::work::{Queue, WorkState};
use runtime::{Progress, Stage};
use serde_json::json;

use super::world::{World, route, scope};

#[tokio::test]
async fn a_cycle_leaves_a_whole_history() {
    let mut world = World::new().await;
    let event = world.say("d-1", None, &json!({"fresh": true})).await;
    world.run().await;
    let run = world.executions().await[0].clone();
    assert_eq!(run.state, ExecutionState::Running);
    assert!(run.handle.is_some(), "what was started is recorded before it begins");
    let result = TurnResult { summary: Some("x".repeat(3000)), ..TurnResult::of(Outcome::Completed) };
    world.executor.end(run.id, result);
    world.settle_tasks().await;
    world.run().await;

    let ended = world.execution(run.id).await;
    assert_eq!(ended.state, ExecutionState::Completed);
    assert_eq!(ended.trigger, event);
    assert_eq!(ended.lease, None);
    assert_eq!(world.work(run.work).await.state, WorkState::Completed);
    let kept = world.runtime.store().read("test", move |tx| tx.turn_result(run.id)).await.unwrap().unwrap();
    assert_eq!(kept.summary.unwrap().len(), TurnResult::SUMMARY_BYTES_MAX);
    assert_eq!(world.runtime.held().count(), 0);
}

#[tokio::test]
async fn a_turn_s_end_is_announced_on_its_chain_and_is_nobody_s_input_unasked() {
    let mut world = World::new().await;
    let event = world.deliver("d-1", "k").await;
    world.run().await;
    let run = world.executions().await[0].id;
    world.end(run, Outcome::Completed).await;

    let announced = world.events("core.turn.ended").await;
    assert_eq!(announced.len(), 1);
    let announced = &announced[0];
    assert_eq!(announced.causation.parent, Some(event));
    assert_eq!(announced.causation.root, event);
    assert_eq!(announced.causation.depth, 1);
    assert_eq!(announced.emitted_by, Some(run));
    assert_eq!(world.outcome(announced.id).await, Some(CheckpointOutcome::Unmatched));
    let minute = domain::causal::minute_of(announced.accepted_at);
    let charged =
        world.runtime.store().read("test", move |tx| tx.derived_in_minute(event, minute)).await.unwrap();
    assert_eq!(charged, 1, "its chain is charged");
    assert_eq!(world.executor.runs(), 1);
}

#[tokio::test]
async fn an_announcement_reaches_the_route_that_names_it_and_never_its_own_work() {
    let mut declared = scope(ActivePolicy::Queue, 16);
    declared.routes =
        vec![route("told", ActivePolicy::Queue, &json!({"types": ["test.happened", "core.turn.ended"]}))];
    let mut world = World::with(declared).await;
    world.deliver("d-1", "k").await;
    world.run().await;
    let run = world.executions().await[0].id;
    world.end(run, Outcome::Completed).await;
    let announced = world.events("core.turn.ended").await;
    let checkpoint = world.checkpoint(announced[0].id).await.unwrap();
    assert_eq!(checkpoint.outcome, CheckpointOutcome::Dropped);
    assert_eq!(checkpoint.code.unwrap().as_str(), "own_news");
    assert_eq!(world.executor.runs(), 1, "a Work does not wake itself");
}

#[tokio::test]
async fn an_attempt_ends_under_the_generation_it_began_under() {
    let mut world = World::new().await;
    world.deliver("d-1", "k").await;
    world.run().await;
    let run = world.executions().await[0].id;
    let mut without = scope(ActivePolicy::Queue, 16);
    without.bindings.clear();
    without.routes.clear();
    world.apply(without).await;
    world.run().await;
    world.end(run, Outcome::Completed).await;
    let ended = world.execution(run).await;
    assert_eq!((ended.state, ended.generation.number()), (ExecutionState::Completed, 1));
    let announced = world.events("core.turn.ended").await;
    assert_eq!(world.checkpoint(announced[0].id).await.unwrap().generation.number(), 2);
}

#[tokio::test]
async fn an_announcement_may_start_work_of_another_key() {
    let mut declared = scope(ActivePolicy::Queue, 16);
    declared.routes = vec![route(
        "told",
        ActivePolicy::Queue,
        &json!({"types": ["test.happened", "core.turn.ended"], "other": "after"}),
    )];
    let mut world = World::with(declared).await;
    world.deliver("d-1", "k").await;
    world.run().await;
    let run = world.executions().await[0].id;
    world.end(run, Outcome::Completed).await;
    let announced = world.events("core.turn.ended").await;
    let checkpoint = world.checkpoint(announced[0].id).await.unwrap();
    assert_eq!(checkpoint.outcome, CheckpointOutcome::Routed);
    let other = world.owner("after").await.unwrap();
    assert_eq!(checkpoint.work, Some(other.id), "it names one Work and is addressed to none");
    assert_eq!(world.executor.runs(), 2);
}

#[tokio::test]
async fn a_work_waits_for_input_that_is_accepted_and_not_yet_routed() {
    let mut world = World::new().await;
    world.say("d-1", Some("k"), &json!({"once": true})).await;
    world.run().await;
    let run = world.executions().await[0].clone();
    // Accepted, and the routing stage has not looked at it when the attempt ends.
    let late = world.deliver("d-2", "k").await;
    world.executor.end(run.id, TurnResult::of(Outcome::Completed));
    world.settle_tasks().await;
    assert_eq!(world.stages.complete.step().await.unwrap(), Progress::Advanced);

    let waiting = world.execution(run.id).await;
    assert_eq!(waiting.state, ExecutionState::Running, "the attempt is not over");
    assert_eq!(waiting.outcome, Some(Outcome::Completed), "and its outcome is not lost");
    assert_eq!(waiting.lease, None);
    assert_eq!(world.work(run.work).await.state, WorkState::Running { execution: run.id });
    assert_eq!(world.stages.complete.step().await.unwrap(), Progress::Idle { due_at: None });

    world.run().await;
    assert_eq!(world.execution(run.id).await.state, ExecutionState::Completed);
    assert_eq!(world.outcome(late).await, Some(CheckpointOutcome::Routed));
    let executions = world.executions().await;
    assert_eq!(executions.len(), 2, "the late input has its attempt");
    assert_eq!(executions[1].trigger, late);
}

#[tokio::test]
async fn a_failed_attempt_leaves_standing_work_ready_for_its_next_input() {
    let mut world = World::new().await;
    world.deliver("d-1", "k").await;
    world.run().await;
    let run = world.executions().await[0].clone();
    world.end(run.id, Outcome::Failed).await;
    let work = world.work(run.work).await;
    assert_eq!((work.state, work.queue), (WorkState::Ready, Queue::Idle));
    world.deliver("d-2", "k").await;
    world.run().await;
    assert_eq!(world.executions().await.len(), 2);
}

#[tokio::test]
async fn a_result_after_the_lease_has_no_effect() {
    let mut world = World::new().await;
    world.deliver("d-1", "k").await;
    world.run().await;
    let run = world.executions().await[0].clone();
    world.clock.advance(LEASE);
    world.executor.end(run.id, TurnResult::of(Outcome::Completed));
    world.settle_tasks().await;
    assert_eq!(world.stages.complete.step().await.unwrap(), Progress::Advanced);
    let after = world.execution(run.id).await;
    assert_eq!(after.state, ExecutionState::Running);
    assert_eq!(after.outcome, None);
    assert!(world.events("core.turn.ended").await.is_empty());
}
