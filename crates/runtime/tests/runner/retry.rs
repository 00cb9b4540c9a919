//! Retry: a failure waits, one accepted Event ends the wait, and an operator may end it sooner.

use std::time::Duration;

use domain::execution::ExecutionState;
use domain::id::{ExecutionId, WorkId};
use domain::outcome::{Outcome, TurnResult};
use domain::retry::{Eligibility, Exhaustion};
use domain::route::{ActivePolicy, CheckpointOutcome};
use domain::scope::Settings;
use domain::text::DeliveryId;
use domain::timer::Timer;
use domain::work::{Queue, WorkRefusal, WorkState};
use runtime::{ControlError, Progress, Stage};
use serde_json::json;

use super::world::{Call, World, scope};

const MINUTE: Duration = Duration::from_mins(1);
const MOMENT: Duration = Duration::from_micros(1);

async fn world(settings: impl FnOnce(&mut Settings)) -> World {
    let mut declared = scope(ActivePolicy::Queue, 16);
    settings(&mut declared.settings);
    World::with(declared).await
}

/// A Work of one attempt that has failed.
async fn failed_once(world: &mut World) -> (WorkId, ExecutionId) {
    world.say("d-1", Some("k"), &json!({"once": true})).await;
    world.run().await;
    let run = world.executions().await[0].clone();
    world.end(run.id, Outcome::Failed).await;
    (run.work, run.id)
}

async fn timers(world: &World, work: WorkId) -> Vec<Timer> {
    world.runtime.store().read("test", move |tx| tx.timers_of(work, 9)).await.unwrap()
}

async fn fail_newest(world: &mut World) {
    let run = world.executions().await.last().unwrap().id;
    world.end(run, Outcome::Failed).await;
}

#[tokio::test]
async fn a_failure_waits_five_then_ten_minutes_and_is_then_an_operators() {
    let mut world = world(|_usual| {}).await;
    let (work, first) = failed_once(&mut world).await;
    for (minutes, attempt) in [(5, 2), (10, 3)] {
        assert!(matches!(world.work(work).await.eligibility, Eligibility::Backoff { .. }));
        world.clock.advance((MINUTE * minutes).saturating_sub(MOMENT));
        world.run().await;
        assert_eq!(world.executions().await.len(), attempt - 1, "it is not due a moment before");
        world.clock.advance(MOMENT);
        world.run().await;
        let executions = world.executions().await;
        assert_eq!(executions.len(), attempt);
        let again = executions.last().unwrap();
        assert_eq!(again.attempt.number(), i64::try_from(attempt).unwrap(), "attempts are never reset");
        assert_eq!(again.retry_of, Some(executions[attempt - 2].id));
        fail_newest(&mut world).await;
    }
    let exhausted = world.work(work).await;
    assert_eq!((exhausted.state, exhausted.failures), (WorkState::Ready, 3));
    assert!(matches!(exhausted.eligibility, Eligibility::Exhausted { because: Exhaustion::Budget, .. }));
    assert!(timers(&world, work).await.is_empty());
    world.clock.advance(MINUTE * 600);
    world.run().await;
    assert_eq!(world.executions().await.len(), 3, "nothing tries again by itself");
    let due = world.events("core.retry.due").await;
    assert_eq!(due.len(), 2);
    let root = world.execution(first).await.trigger;
    assert!(due.iter().all(|event| event.causation.root == root), "it stays on its chain");
}

#[tokio::test]
async fn a_budget_of_four_waits_fifteen_minutes_the_third_time() {
    let mut world = world(|settings| settings.failure_budget = 4).await;
    let (work, _run) = failed_once(&mut world).await;
    for minutes in [5, 10, 15] {
        let timer = timers(&world, work).await.remove(0);
        assert_eq!(timer.due_at.since(timer.armed_at), MINUTE * minutes);
        world.clock.advance(MINUTE * minutes);
        world.run().await;
        fail_newest(&mut world).await;
    }
    assert!(timers(&world, work).await.is_empty());
}

#[tokio::test]
async fn a_success_begins_the_budget_anew() {
    let mut world = world(|_usual| {}).await;
    let (work, _run) = failed_once(&mut world).await;
    world.clock.advance(MINUTE * 5);
    world.run().await;
    let again = world.executions().await[1].id;
    world.end(again, Outcome::Handoff).await;
    let ready = world.work(work).await;
    assert_eq!((ready.failures, ready.eligibility), (0, Eligibility::Clear));
}

#[tokio::test]
async fn input_during_the_wait_queues_and_shortens_nothing() {
    let mut world = world(|_usual| {}).await;
    let (work, first) = failed_once(&mut world).await;
    let late = world.deliver("d-2", "k").await;
    world.run().await;
    assert_eq!(world.outcome(late).await, Some(CheckpointOutcome::Routed));
    let waiting = world.work(work).await;
    assert_eq!(waiting.queue.clone(), Queue::Blocked(domain::capacity::Blocker::Backoff(waiting.scope)));
    assert_eq!(world.executions().await.len(), 1);
    // Room and a new configuration change nothing about that.
    world.apply(scope(ActivePolicy::Queue, 32)).await;
    world.run().await;
    assert_eq!(world.executions().await.len(), 1);

    world.clock.advance(MINUTE * 5);
    world.run().await;
    let again = world.executions().await[1].clone();
    let first = world.execution(first).await;
    let due = world.events("core.retry.due").await.remove(0);
    assert_eq!((again.trigger, again.retry_of), (due.id, Some(first.id)), "the retry triggers it");
    let given = Call::Run(again.id, vec![first.trigger, late]);
    assert!(world.executor.calls().contains(&given), "the first batch, then what is new");
    assert_eq!(world.executor.context(), [first.trigger], "and the first as context");
    assert!(world.pending(work).await.is_empty());
}

#[tokio::test]
async fn an_operator_ends_the_wait_and_the_old_timer_is_gone() {
    let mut world = world(|_usual| {}).await;
    let (work, first) = failed_once(&mut world).await;
    let id = DeliveryId::known("retry-1");
    let asked = world.runtime.retry(work, id.clone()).await.unwrap();
    let again = world.runtime.retry(work, id).await.unwrap();
    assert_eq!(again.event(), asked.event(), "asking twice asks once");
    world.run().await;
    let executions = world.executions().await;
    assert_eq!((executions.len(), executions[1].trigger), (2, asked.event()));
    assert_eq!(executions[1].retry_of, Some(first));
    assert!(timers(&world, work).await.is_empty());
    world.end(executions[1].id, Outcome::Failed).await;
    assert_eq!(world.work(work).await.failures, 1, "the budget began anew");
    world.clock.advance(MINUTE * 5);
    world.run().await;
    assert_eq!(world.executions().await.len(), 3);
}

#[tokio::test]
async fn an_operator_revives_what_is_exhausted() {
    let mut world = world(|settings| settings.failure_budget = 1).await;
    let (work, _run) = failed_once(&mut world).await;
    world.runtime.retry(work, DeliveryId::known("retry-1")).await.unwrap();
    world.run().await;
    let again = world.executions().await[1].id;
    world.end(again, Outcome::Completed).await;
    assert_eq!(world.work(work).await.state, WorkState::Completed);
}

#[tokio::test]
async fn a_retry_is_refused_where_there_is_none_to_make() {
    let mut world = world(|_usual| {}).await;
    world.say("d-1", Some("k"), &json!({})).await;
    world.run().await;
    let run = world.executions().await[0].clone();
    let ask = async |world: &World, id: &str| world.runtime.retry(run.work, DeliveryId::known(id)).await;
    let refused = |answer| match answer {
        Err(ControlError::Refused(refusal)) => Some(refusal),
        _other => None,
    };
    assert_eq!(refused(ask(&world, "r-1").await), Some(WorkRefusal::Running));
    world.end(run.id, Outcome::Completed).await;
    assert_eq!(refused(ask(&world, "r-2").await), Some(WorkRefusal::NothingToRetry));
    world.runtime.cancel(run.work).await.unwrap();
    let ended = refused(ask(&world, "r-3").await);
    assert_eq!(ended, Some(WorkRefusal::Terminal { state: "cancelled" }));
    assert!(world.events("core.retry.requested").await.is_empty(), "a refusal leaves nothing");
}

#[tokio::test]
async fn cancel_first_then_retry_leaves_nothing_to_fire() {
    let mut world = world(|_usual| {}).await;
    let (work, _run) = failed_once(&mut world).await;
    world.runtime.cancel(work).await.unwrap();
    assert!(timers(&world, work).await.is_empty());
    world.clock.advance(MINUTE * 60);
    world.run().await;
    assert!(world.events("core.retry.due").await.is_empty());
    assert_eq!(world.executions().await.len(), 1);
}

#[tokio::test]
async fn retry_first_then_cancel_keeps_the_event_and_starts_nothing() {
    let mut world = world(|_usual| {}).await;
    let (work, _run) = failed_once(&mut world).await;
    world.clock.advance(MINUTE * 5);
    assert_eq!(world.stages.wake.step().await.unwrap(), Progress::Advanced);
    world.runtime.cancel(work).await.unwrap();
    world.run().await;
    let due = world.events("core.retry.due").await;
    assert_eq!(world.outcome(due[0].id).await, Some(CheckpointOutcome::Routed));
    assert_eq!(world.work(work).await.state, WorkState::Cancelled);
    assert_eq!(world.executions().await.len(), 1);
}

#[tokio::test]
async fn a_timer_that_outlived_its_failure_fires_into_nothing() {
    let mut world = world(|_usual| {}).await;
    let (work, run) = failed_once(&mut world).await;
    let stale = timers(&world, work).await.remove(0);
    world.runtime.retry(work, DeliveryId::known("retry-1")).await.unwrap();
    // As if it had been armed by a writer that did not know.
    world.runtime.store().transact("test", move |tx| tx.insert_timer(&stale)).await.unwrap();
    world.run().await;
    let later = Duration::from_secs(20);
    world.clock.advance(later);
    world.runtime.renew().await.unwrap();
    fail_newest(&mut world).await;
    assert_eq!(timers(&world, work).await.len(), 2);
    world.clock.advance((MINUTE * 5).saturating_sub(MOMENT));
    world.run().await;
    assert_eq!(timers(&world, work).await.len(), 1, "the older one has fired");
    assert_eq!(world.executions().await.len(), 2, "an older failure's timer does not end a later wait");
    assert!(world.events("core.retry.due").await.is_empty());
    assert_ne!(world.work(work).await.eligibility.failed(), Some(run));
    world.clock.advance(MOMENT);
    world.run().await;
    assert_eq!(world.executions().await.len(), 3);
}

#[tokio::test]
async fn exhaustion_may_fail_the_work_for_good() {
    let mut world = world(|settings| {
        settings.failure_budget = 1;
        settings.terminal_on_exhaustion = true;
    })
    .await;
    let (work, run) = failed_once(&mut world).await;
    let ended = world.work(work).await;
    assert_eq!((ended.state, ended.failures), (WorkState::Failed, 1));
    assert_eq!(world.execution(run).await.state, ExecutionState::Failed);
    let late = world.deliver("d-2", "k").await;
    world.run().await;
    assert_eq!(world.outcome(late).await, Some(CheckpointOutcome::Terminal));
}

#[tokio::test]
async fn a_hint_of_the_executor_makes_standing_work_wait_too() {
    let mut world = world(|_usual| {}).await;
    world.deliver("d-1", "k").await;
    world.run().await;
    let run = world.executions().await[0].clone();
    let hint = TurnResult { retry_after_seconds: Some(90), ..TurnResult::of(Outcome::Failed) };
    world.executor.end(run.id, hint);
    world.settle_tasks().await;
    world.run().await;
    assert_eq!(timers(&world, run.work).await.len(), 1);
    world.clock.advance(Duration::from_secs(90));
    world.run().await;
    assert_eq!(world.executions().await.len(), 2);
    fail_newest(&mut world).await;
    assert!(timers(&world, run.work).await.is_empty(), "without a hint its next input is its next attempt");
    world.deliver("d-2", "k").await;
    world.run().await;
    assert_eq!(world.executions().await.len(), 3);
}

#[tokio::test]
async fn a_retry_that_its_chain_refuses_is_recorded_and_left_to_an_operator() {
    let mut world = world(|settings| settings.causal_max_depth = 1).await;
    let (work, first) = failed_once(&mut world).await;
    world.clock.advance(MINUTE * 5);
    world.run().await;
    // The first retry stands at depth one, the second would stand at two.
    fail_newest(&mut world).await;
    world.clock.advance(MINUTE * 10);
    world.run().await;
    assert_eq!(world.executions().await.len(), 2);
    let held = world.work(work).await;
    assert!(
        matches!(held.eligibility, Eligibility::Exhausted { because: Exhaustion::Causal, .. }),
        "{held:?}"
    );
    let second = world.executions().await[1].id;
    let rejections = world.rejections().await;
    let retry = rejections.iter().find(|(key, _body)| key == &format!("core/retry/{second}"));
    let (_key, body) = retry.expect("the refusal is recorded");
    assert_eq!(body["code"], "depth_limit");
    assert_eq!(body["root"], world.execution(first).await.trigger.to_string());
    assert!(body.get("payload").is_none());
    world.runtime.retry(work, DeliveryId::known("retry-1")).await.unwrap();
    world.run().await;
    assert_eq!(world.executions().await.len(), 3, "an operator's word begins a chain of its own");
}
