//! Interrupt: the old attempt has no authority any more and has stopped before another one starts.

use std::time::Duration;

use domain::event::Payload;
use domain::execution::ExecutionState;
use domain::id::{ExecutionId, WorkId};
use domain::intent::IntentKind;
use domain::outcome::{Outcome, TurnResult};
use domain::retry::Eligibility;
use domain::route::{ActivePolicy, CheckpointOutcome, Fallbacks};
use domain::scope::SecretRef;
use domain::text::{DeliveryId, EventType};
use domain::wait::Registration;
use domain::work::{WorkRefusal, WorkState};
use runtime::{ControlError, Message, Progress, Stage};
use serde_json::json;

use super::inject::{ordering, states};
use super::world::{Call, World};

async fn running(policy: ActivePolicy) -> (World, WorkId, ExecutionId) {
    let mut world = World::with(ordering(policy, Fallbacks::default())).await;
    world.say("d-1", Some("k"), &json!({})).await;
    world.run().await;
    let run = world.executions().await[0].clone();
    (world, run.work, run.id)
}

/// An order that was not carried out before its turn ended in a Wait is for no turn that comes later.
#[tokio::test]
async fn an_interrupt_of_a_turn_that_parked_ends_no_later_turn() {
    let (mut world, work, run) = running(ActivePolicy::Interrupt).await;
    world.executor.can_resume(true);
    world.runtime.interrupt(work, DeliveryId::known("i-1")).await.unwrap();
    let wait = Registration { timeout_seconds: Some(60), ..Registration::default() };
    world.executor.end(run, TurnResult::waiting(wait));
    world.settle_tasks().await;
    world.stages.complete.step().await.unwrap();
    assert_eq!(world.execution(run).await.state, ExecutionState::Parked);
    world.clock.advance(Duration::from_mins(1));
    world.stages.wake.step().await.unwrap();
    world.stages.schedule.step().await.unwrap();
    world.run().await;
    let resumed = world.execution(run).await;
    assert_eq!((resumed.state, resumed.interrupted_by), (ExecutionState::Running, None));
    assert_eq!(states(&world, run).await, ["stale"]);
}

/// Stops what is marked, and lets everything go on.
async fn stop(world: &mut World) -> bool {
    let left = world.runtime.stop_unstopped().await.unwrap();
    world.run().await;
    left
}

#[tokio::test]
async fn interrupt_commits_its_intent_and_fences_before_anything_is_stopped() {
    let (mut world, work, run) = running(ActivePolicy::Interrupt).await;
    let event = world.deliver("d-2", "k").await;
    world.stages_route_only().await;
    assert_eq!(states(&world, run).await, ["pending"]);
    assert_eq!(world.pending(work).await, [event]);
    assert_eq!(world.execution(run).await.state, ExecutionState::Running);
    world.run().await;
    let old = world.execution(run).await;
    assert_eq!((old.state, old.interrupted_by), (ExecutionState::Cancelled, Some(event)));
    assert!(old.unstopped && old.lease.is_none());
    assert_eq!(world.work(work).await.state, WorkState::Ready);
    assert_eq!(world.executor.runs(), 1, "nothing starts beside what may still run");
    assert_eq!(states(&world, run).await, ["accepted"]);
    assert!(!world.executor.try_end(run, TurnResult::of(Outcome::Completed)), "its task was let go");

    assert!(!stop(&mut world).await);
    assert!(world.executor.calls().contains(&Call::Interrupt(run)));
    assert!(!world.executor.calls().contains(&Call::Stop(run)));
    let next = world.executions().await[1].clone();
    assert_eq!((next.trigger, next.attempt.number()), (event, 2));
    assert_eq!(next.retry_of, None, "it repeats nothing");
    assert_eq!(states(&world, run).await, ["delivered"]);
    assert_eq!(world.work(work).await.failures, 0);
}

#[tokio::test]
async fn an_interruption_is_neither_a_failure_nor_a_success() {
    let mut world = World::new().await;
    world.say("d-1", Some("k"), &json!({"once": true})).await;
    world.run().await;
    let run = world.executions().await[0].clone();
    world.end(run.id, Outcome::Failed).await;
    world.clock.advance(Duration::from_mins(5));
    world.run().await;
    assert_eq!(world.executor.runs(), 2);
    world.runtime.interrupt(run.work, DeliveryId::known("i-1")).await.unwrap();
    world.run().await;
    assert!(!stop(&mut world).await);
    assert_eq!(world.work(run.work).await.failures, 1);
    world.deliver("d-2", "k").await;
    world.run().await;
    let third = world.executions().await[2].id;
    world.end(third, Outcome::Failed).await;
    assert_eq!(world.work(run.work).await.failures, 2, "the budget goes on where it was");
}

#[tokio::test]
async fn nothing_starts_while_the_old_attempt_cannot_be_stopped_for_certain() {
    let (mut world, work, run) = running(ActivePolicy::Interrupt).await;
    world.executor.cannot_verify_stops(true);
    world.deliver("d-2", "k").await;
    world.run().await;
    let late = world.deliver("d-3", "k").await;
    assert!(stop(&mut world).await);
    assert_eq!(world.outcome(late).await, Some(CheckpointOutcome::Routed));
    assert_eq!(world.work(work).await.eligibility, Eligibility::Stopping { interrupted: run, repeats: None });
    assert_eq!(world.executions().await.len(), 1);
    let again = world.runtime.retry(work, DeliveryId::known("retry")).await;
    assert!(matches!(again, Err(ControlError::Refused(WorkRefusal::Stopping))), "{again:?}");
    assert_eq!(world.pending(work).await.len(), 2, "input is kept");
    world.executor.cannot_verify_stops(false);
    assert!(!stop(&mut world).await);
    assert_eq!(world.executions().await.len(), 2);
    assert!(world.pending(work).await.is_empty());
}

#[tokio::test]
async fn a_result_that_comes_after_the_fence_has_no_effect() {
    let (mut world, work, run) = running(ActivePolicy::Interrupt).await;
    let event = world.deliver("d-2", "k").await;
    world.stages_route_only().await;
    world.executor.end(run, TurnResult::of(Outcome::Completed));
    world.settle_tasks().await;
    // The report waits for its stage; the order is carried out first.
    world.stages.dispatch.step().await.unwrap();
    world.settle_tasks().await;
    world.run().await;
    assert_eq!(world.execution(run).await.state, ExecutionState::Cancelled);
    stop(&mut world).await;
    assert_eq!(world.executions().await[1].trigger, event);
    assert!(world.events("core.turn.ended").await.is_empty());
    assert_eq!(world.work(work).await.failures, 0);
}

#[tokio::test]
async fn a_completion_before_the_fence_stands_and_the_order_goes_to_no_other() {
    let (mut world, _work, run) = running(ActivePolicy::Interrupt).await;
    let event = world.deliver("d-2", "k").await;
    world.stages_route_only().await;
    world.executor.end(run, TurnResult::of(Outcome::Completed));
    world.settle_tasks().await;
    world.stages.complete.step().await.unwrap();
    world.run().await;
    assert_eq!(world.execution(run).await.state, ExecutionState::Completed);
    assert_eq!(states(&world, run).await, ["stale"]);
    let next = world.executions().await[1].clone();
    assert_eq!((next.trigger, next.state), (event, ExecutionState::Running));
}

#[tokio::test]
async fn two_interruptions_end_one_attempt() {
    let (mut world, _work, run) = running(ActivePolicy::Interrupt).await;
    let one = world.deliver("d-2", "k").await;
    let two = world.deliver("d-3", "k").await;
    world.run().await;
    stop(&mut world).await;
    assert_eq!(states(&world, run).await, ["delivered", "stale"]);
    let next = world.executions().await[1].clone();
    assert!(world.executor.calls().contains(&Call::Run(next.id, vec![one, two])));
    assert_eq!(next.state, ExecutionState::Running, "the second is not for the next one");
}

#[tokio::test]
async fn a_cancelled_work_whose_run_was_interrupted_stays_cancelled() {
    let (mut world, work, run) = running(ActivePolicy::Interrupt).await;
    world.deliver("d-2", "k").await;
    world.run().await;
    world.runtime.cancel(work).await.unwrap();
    stop(&mut world).await;
    assert_eq!(world.work(work).await.state, WorkState::Cancelled);
    assert_eq!(world.executions().await.len(), 1);
    assert!(!world.execution(run).await.unstopped);
}

#[tokio::test]
async fn an_operator_s_interrupt_is_a_control_and_no_input() {
    let (mut world, work, run) = running(ActivePolicy::Queue).await;
    let queued = world.deliver("d-2", "k").await;
    world.run().await;
    let id = DeliveryId::known("interrupt-1");
    let ordered = world.runtime.interrupt(work, id.clone()).await.unwrap();
    let again = world.runtime.interrupt(work, id).await.unwrap();
    assert_eq!(again.acceptance.event(), ordered.acceptance.event(), "asked twice, it is ordered once");
    assert_eq!(ordered.execution, Some(run));
    let event = world.events("core.manual.interrupt").await.remove(0);
    assert_eq!(world.checkpoint(event.id).await.unwrap().policy, Some(ActivePolicy::Interrupt));
    assert_eq!(world.pending(work).await, [queued], "it is not input");
    world.run().await;
    assert_eq!(world.execution(run).await.interrupted_by, Some(event.id));
    stop(&mut world).await;
    let next = world.executions().await[1].clone();
    assert!(world.executor.calls().contains(&Call::Run(next.id, vec![queued])));

    // Without input the Work rests.
    world.runtime.interrupt(work, DeliveryId::known("interrupt-2")).await.unwrap();
    world.run().await;
    stop(&mut world).await;
    assert_eq!(world.work(work).await.state, WorkState::Ready);
    assert_eq!(world.executions().await.len(), 2);
    let idle = world.runtime.interrupt(work, DeliveryId::known("interrupt-3")).await;
    assert!(matches!(idle, Err(ControlError::NoRun(_, IntentKind::Interrupt))), "{idle:?}");
    assert_eq!(world.events("core.manual.interrupt").await.len(), 2, "a refusal leaves nothing");
}

#[tokio::test]
async fn an_operator_s_order_is_refused_unless_the_attempt_was_pinned_with_the_capability() {
    let mut world = World::new().await;
    world.executor.cannot_be_controlled(true);
    world.apply(ordering(ActivePolicy::Queue, Fallbacks::default())).await;
    world.say("d-1", Some("k"), &json!({})).await;
    world.run().await;
    let run = world.executions().await[0].clone();
    // What it could do from now on does not change what it was pinned with.
    world.executor.cannot_be_controlled(false);
    let refused = world.runtime.interrupt(run.work, DeliveryId::known("i-1")).await;
    assert!(matches!(refused, Err(ControlError::Unsupported { .. })), "{refused:?}");
    let refused = world.runtime.inject(run.work, message(), DeliveryId::known("i-2")).await;
    assert!(matches!(refused, Err(ControlError::Unsupported { .. })), "{refused:?}");
    assert_eq!(world.execution(run.id).await.state, ExecutionState::Running);
    assert!(world.pending(run.work).await.is_empty());
    world.runtime.cancel(run.work).await.unwrap();
    let ended = world.runtime.interrupt(run.work, DeliveryId::known("i-3")).await;
    assert!(matches!(ended, Err(ControlError::Refused(WorkRefusal::Terminal { .. }))), "{ended:?}");
}

fn message() -> Message {
    let payload = Payload::new(b"{\"text\":\"look again\"}".to_vec()).unwrap();
    Message { event_type: EventType::known("manual.message"), payload }
}

#[tokio::test]
async fn an_operator_s_message_is_injected_and_is_input_until_it_is_proved() {
    let (mut world, work, run) = running(ActivePolicy::Queue).await;
    let ordered = world.runtime.inject(work, message(), DeliveryId::known("m-1")).await.unwrap();
    let event = ordered.acceptance.event();
    world.run().await;
    assert_eq!(world.executor.injected(run), [event]);
    assert_eq!(world.pending(work).await, [event]);
    let result = TurnResult { consumed_inputs: vec![event], ..TurnResult::of(Outcome::Completed) };
    world.executor.end(run, result);
    world.settle_tasks().await;
    world.run().await;
    assert!(world.pending(work).await.is_empty());
    assert_eq!(world.executions().await.len(), 1);
}

#[tokio::test]
async fn an_operator_s_failed_dispatch_takes_no_fallback() {
    let mut declared = ordering(ActivePolicy::Queue, Fallbacks::default());
    let binding = declared.bindings.values_mut().next().unwrap();
    binding.secrets.insert("TOKEN".to_owned(), SecretRef("env:TOKEN".to_owned()));
    let mut world = World::with(declared).await;
    world.deliver("d-1", "k").await;
    world.run().await;
    let run = world.executions().await[0].clone();
    // Without its secret the executor cannot be called.
    world.secrets.take_away(true);
    world.runtime.interrupt(run.work, DeliveryId::known("i-1")).await.unwrap();
    world.run().await;
    assert_eq!(states(&world, run.id).await, ["ambiguous"]);
    assert_eq!(world.execution(run.id).await.state, ExecutionState::Running);
    world.secrets.take_away(false);
    world.clock.advance(Duration::from_secs(1));
    world.run().await;
    assert_eq!(states(&world, run.id).await, ["accepted"], "it is tried until it is carried out");
    assert_eq!(world.execution(run.id).await.state, ExecutionState::Cancelled);
}

#[tokio::test]
async fn an_operator_s_order_that_the_executor_cannot_do_is_not_repeated() {
    let (mut world, work, run) = running(ActivePolicy::Queue).await;
    world.runtime.interrupt(work, DeliveryId::known("i-1")).await.unwrap();
    world.executor.cannot_be_controlled(true);
    world.run().await;
    assert_eq!(states(&world, run).await, ["not_accepting"]);
    assert_eq!(world.execution(run).await.state, ExecutionState::Running);
    assert!(world.pending(work).await.is_empty());
    assert!(matches!(world.stages.dispatch.step().await.unwrap(), Progress::Idle { due_at: None }));
}
