//! Inject: what is offered to a running attempt stays pending until a result proves that it was taken in.

use std::time::Duration;

use domain::execution::ExecutionState;
use domain::id::{EventId, ExecutionId, WorkId};
use domain::intent::{ANSWER_TIME_MAX, ErrorFallback, IntentState};
use domain::lease::LEASE;
use domain::outcome::{Outcome, TurnResult};
use domain::route::{ActivePolicy, CheckpointOutcome, Fallback, Fallbacks};
use domain::scope::EffectiveScope;
use domain::work::WorkState;
use extension::Recovery;
use runtime::{Progress, Stage};
use serde_json::json;

use super::wait::{of_type, say_type};
use super::world::{Call, Taking, World, scope};
use super::{own, server};

const SECOND: Duration = Duration::from_secs(1);

/// A scope whose route gives orders to the running attempt.
pub(super) fn ordering(policy: ActivePolicy, fallbacks: Fallbacks) -> EffectiveScope {
    let mut declared = scope(policy, 16);
    declared.routes[0].fallbacks = fallbacks;
    declared
}

/// A world whose route injects, with a run of one attempt that goes on.
async fn injecting() -> (World, WorkId, ExecutionId) {
    running(World::with(ordering(ActivePolicy::Inject, Fallbacks::default())).await).await
}

async fn running(mut world: World) -> (World, WorkId, ExecutionId) {
    world.say("d-1", Some("k"), &json!({"once": true})).await;
    world.run().await;
    let run = world.executions().await[0].clone();
    (world, run.work, run.id)
}

/// The words of the states of a run's orders.
pub(super) async fn states(world: &World, run: ExecutionId) -> Vec<&'static str> {
    world.intents(run).await.iter().map(|intent| intent.state.as_str()).collect()
}

fn proving(outcome: Outcome, events: impl Into<Vec<EventId>>) -> TurnResult {
    TurnResult { consumed_inputs: events.into(), ..TurnResult::of(outcome) }
}

async fn ends(world: &mut World, run: ExecutionId, result: TurnResult) {
    world.executor.end(run, result);
    world.settle_tasks().await;
    world.run().await;
}

async fn consumed(world: &World, run: ExecutionId) -> Vec<EventId> {
    let inputs = world
        .runtime
        .store()
        .read("test", move |tx| tx.inputs_of(run, domain::id::Sequence::ZERO, 100))
        .await
        .unwrap();
    inputs.into_iter().map(|input| input.event).collect()
}

#[tokio::test]
async fn inject_commits_its_intent_before_the_executor_is_called() {
    let (mut world, work, run) = injecting().await;
    let event = world.deliver("d-2", "k").await;
    world.stages_route_only().await;
    let checkpoint = world.checkpoint(event).await.unwrap();
    assert_eq!(checkpoint.outcome, CheckpointOutcome::Routed);
    assert_eq!(checkpoint.policy, Some(ActivePolicy::Inject));
    assert_eq!(world.pending(work).await, [event]);
    let intent = world.intents(run).await.remove(0);
    assert_eq!((intent.event, intent.epoch), (event, world.execution(run).await.epoch));
    assert!(matches!(intent.state, IntentState::Pending { .. }));
    assert!(world.executor.injected(run).is_empty(), "nothing is called in a transaction");
    world.run().await;
    assert_eq!(world.executor.injected(run), [event]);
    assert_eq!(states(&world, run).await, ["accepted"]);
    assert_eq!(world.pending(work).await, [event], "accepted is not taken in");
    assert_eq!(world.executions().await.len(), 1, "and starts nothing");
}

#[tokio::test]
async fn a_proof_consumes_on_every_outcome() {
    for outcome in [Outcome::Completed, Outcome::Handoff, Outcome::Failed] {
        let (mut world, work, run) = injecting().await;
        let event = world.deliver("d-2", "k").await;
        world.run().await;
        ends(&mut world, run, proving(outcome, [event])).await;
        assert!(world.pending(work).await.is_empty(), "{outcome:?}");
        assert!(consumed(&world, run).await.contains(&event), "{outcome:?}");
        assert_eq!(states(&world, run).await, ["consumed"], "{outcome:?}");
        assert_eq!(world.executions().await.len(), 1, "{outcome:?}: nothing is left to start for");
        let completed = world.work(work).await.state == WorkState::Completed;
        assert_eq!(completed, outcome == Outcome::Completed);
    }
}

#[tokio::test]
async fn a_retry_sees_neither_what_was_claimed_nor_what_was_proved_as_new() {
    let (mut world, _work, run) = injecting().await;
    let first = world.execution(run).await.trigger;
    let proved = world.deliver("d-2", "k").await;
    let unproved = world.deliver("d-3", "k").await;
    world.run().await;
    ends(&mut world, run, proving(Outcome::Failed, [proved])).await;
    world.clock.advance(Duration::from_mins(5));
    world.run().await;
    let again = world.executions().await[1].id;
    let taken = consumed(&world, again).await;
    assert!(taken.contains(&unproved), "what was not proved remains for it");
    assert!(!taken.contains(&proved) && !taken.contains(&first), "{taken:?}");
}

// The orders of completion and injection, each with what it leaves.
#[tokio::test]
async fn completion_inject_orders() {
    // A completion before the Event is routed waits for it, so that the Work does not end under it.
    let (mut world, work, run) = injecting().await;
    let event = world.deliver("d-2", "k").await;
    world.executor.end(run, TurnResult::of(Outcome::Completed));
    world.settle_tasks().await;
    world.stages.complete.step().await.unwrap();
    assert_eq!(world.work(work).await.state, WorkState::Running { execution: run });
    world.run().await;
    assert!(world.intents(run).await.is_empty(), "an attempt that came to its end is given no order");
    assert_eq!(world.checkpoint(event).await.unwrap().code.unwrap().as_str(), "run_over");
    assert_eq!(consumed(&world, world.executions().await[1].id).await, [event]);

    // A committed intent that was never sent leaves its input to the next attempt, and goes to no other.
    let (mut world, work, run) = injecting().await;
    let event = world.deliver("d-2", "k").await;
    world.stages_route_only().await;
    world.executor.end(run, proving(Outcome::Completed, [event]));
    world.settle_tasks().await;
    world.stages.complete.step().await.unwrap();
    assert_eq!(world.pending(work).await, [event], "what was never sent cannot have been taken in");
    world.run().await;
    let next = world.executions().await[1].id;
    assert_eq!(consumed(&world, next).await, [event]);
    assert_eq!(states(&world, run).await, ["stale"]);
    assert!(world.executor.injected(run).is_empty() && world.executor.injected(next).is_empty());

    // One that was accepted too late to be taken in is presented again.
    let (mut world, _work, run) = injecting().await;
    let event = world.deliver("d-2", "k").await;
    world.run().await;
    ends(&mut world, run, TurnResult::of(Outcome::Completed)).await;
    assert_eq!(consumed(&world, world.executions().await[1].id).await, [event]);
    assert_eq!(states(&world, run).await, ["accepted"]);

    // Completed first, a later Event is terminal and stays on record.
    let (mut world, work, run) = injecting().await;
    world.end(run, Outcome::Completed).await;
    let late = world.deliver("d-2", "k").await;
    world.run().await;
    assert_eq!(world.outcome(late).await, Some(CheckpointOutcome::Terminal));
    assert!(world.intents(run).await.is_empty() && world.pending(work).await.is_empty());
}

#[tokio::test]
async fn a_proof_before_the_answer_is_recorded_consumes_and_the_late_answer_changes_nothing() {
    let (mut world, work, run) = injecting().await;
    world.executor.on_inject([Taking::Hangs]);
    let event = world.deliver("d-2", "k").await;
    world.run().await;
    assert_eq!(states(&world, run).await, ["dispatched"]);
    ends(&mut world, run, proving(Outcome::Completed, [event])).await;
    assert_eq!(states(&world, run).await, ["consumed"]);
    assert_eq!(world.work(work).await.state, WorkState::Completed);
    world.executor.answer_held();
    world.settle_tasks().await;
    world.run().await;
    assert_eq!(states(&world, run).await, ["consumed"]);
}

#[tokio::test]
async fn a_proof_grants_nothing_that_was_not_injected_there() {
    let (mut world, work, run) = injecting().await;
    world.executor.on_inject([Taking::Refuses]);
    let refused = world.deliver("d-2", "k").await;
    world.run().await;
    // Of another Work, never injected, and made up.
    let other = world.deliver("d-3", "elsewhere").await;
    world.run().await;
    world.apply(scope(ActivePolicy::Queue, 16)).await;
    let queued = world.deliver("d-4", "k").await;
    let elsewhere = world.deliver("d-5", "elsewhere").await;
    world.run().await;
    let nobody = EventId::from_number(77);
    let claimed = vec![refused, other, queued, elsewhere, nobody, queued];
    ends(&mut world, run, proving(Outcome::Handoff, claimed)).await;
    let first = world.execution(run).await.trigger;
    assert_eq!(consumed(&world, run).await, [first], "the proof added nothing");
    let next = world.executions().await.into_iter().find(|next| next.work == work && next.id != run).unwrap();
    assert_eq!(consumed(&world, next.id).await, [refused, queued]);
    assert_eq!(states(&world, run).await, ["not_accepting"]);
}

#[tokio::test]
async fn an_executor_that_does_not_accept_is_not_asked_again() {
    let (mut world, work, run) = injecting().await;
    world.executor.on_inject([Taking::Refuses]);
    let event = world.deliver("d-2", "k").await;
    world.run().await;
    for _ in 0..3 {
        world.clock.advance(Duration::from_secs(20));
        world.runtime.renew().await.unwrap();
        world.run().await;
    }
    assert_eq!(world.executor.injected(run), [event]);
    assert_eq!(states(&world, run).await, ["not_accepting"]);
    let checkpoint = world.checkpoint(event).await.unwrap();
    assert_eq!(checkpoint.policy, Some(ActivePolicy::Inject), "no queue is inferred");
    assert_eq!(world.pending(work).await, [event]);
}

#[tokio::test]
async fn an_ambiguous_send_is_repeated_under_the_same_name_until_it_is_answered() {
    let (mut world, _work, run) = injecting().await;
    world.executor.on_inject([Taking::IsUnsure, Taking::Panics, Taking::Accepts]);
    let event = world.deliver("d-2", "k").await;
    world.run().await;
    assert_eq!(states(&world, run).await, ["ambiguous"]);
    assert_eq!(
        world.stages.dispatch.step().await.unwrap(),
        Progress::Idle { due_at: Some(world.runtime.store().now().after(SECOND)) }
    );
    world.clock.advance(SECOND);
    world.run().await;
    assert_eq!(states(&world, run).await, ["ambiguous"]);
    world.clock.advance(SECOND);
    world.run().await;
    assert_eq!(world.executor.injected(run).len(), 2, "the pause grows");
    world.clock.advance(SECOND);
    world.run().await;
    assert_eq!(world.executor.injected(run), [event, event, event]);
    let intent = world.intents(run).await.remove(0);
    assert_eq!((intent.state, intent.tries), (IntentState::Accepted, 3));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_come_is_ambiguous() {
    let (mut world, _work, run) = injecting().await;
    world.executor.on_inject([Taking::Hangs]);
    world.deliver("d-2", "k").await;
    world.run().await;
    assert_eq!(states(&world, run).await, ["dispatched"]);
    tokio::time::advance(ANSWER_TIME_MAX).await;
    world.settle_tasks().await;
    assert_eq!(states(&world, run).await, ["ambiguous"]);
}

#[tokio::test]
async fn an_error_fallback_is_used_only_where_it_is_configured() {
    let on_error = Some(ErrorFallback::Queue);
    let fallbacks = Fallbacks { unsupported: None, on_error };
    let world = World::with(ordering(ActivePolicy::Inject, fallbacks)).await;
    let (mut world, work, run) = running(world).await;
    world.executor.on_inject([Taking::IsUnsure]);
    let event = world.deliver("d-2", "k").await;
    world.run().await;
    assert_eq!(states(&world, run).await, ["fell_back"]);
    world.clock.advance(Duration::from_secs(20));
    world.runtime.renew().await.unwrap();
    world.run().await;
    assert_eq!(world.executor.injected(run), [event], "it is not tried again");
    assert_eq!(world.pending(work).await, [event]);
    // It may have arrived all the same.
    ends(&mut world, run, proving(Outcome::Completed, [event])).await;
    assert_eq!(world.work(work).await.state, WorkState::Completed);
}

#[tokio::test]
async fn unsupported_policy_explicit_fallback() {
    for policy in [ActivePolicy::Inject, ActivePolicy::Interrupt] {
        for (fallback, outcome) in
            [(Fallback::Queue, CheckpointOutcome::Routed), (Fallback::Drop, CheckpointOutcome::Dropped)]
        {
            let fallbacks = Fallbacks { unsupported: Some(fallback), on_error: None };
            let mut world = World::new().await;
            world.executor.cannot_be_controlled(true);
            world.apply(ordering(policy, fallbacks)).await;
            let (mut world, work, run) = running(world).await;
            for delivery in ["d-2", "d-3"] {
                let event = world.deliver(delivery, "k").await;
                world.run().await;
                let checkpoint = world.checkpoint(event).await.unwrap();
                assert_eq!((checkpoint.outcome, checkpoint.policy), (outcome, Some(fallback.policy())));
                assert_eq!(checkpoint.code.unwrap().as_str(), "fallback", "recorded at every use");
                assert!(checkpoint.reason.unwrap().contains("`double`"));
            }
            assert!(world.intents(run).await.is_empty());
            assert_eq!(world.pending(work).await.len(), if fallback == Fallback::Queue { 2 } else { 0 });
            assert_eq!(world.execution(run).await.state, ExecutionState::Running);
        }
        // Without one nothing is inferred: the order is given, and comes back as not accepted.
        let world = World::with(ordering(policy, Fallbacks::default())).await;
        world.executor.cannot_be_controlled(true);
        let (mut world, work, run) = running(world).await;
        let refused = world.try_apply(ordering(policy, Fallbacks::default())).await.unwrap_err();
        assert!(refused.to_string().contains("set a `fallback`"), "{refused}");
        let event = world.deliver("d-2", "k").await;
        world.run().await;
        assert_eq!(world.checkpoint(event).await.unwrap().policy, Some(policy));
        assert_eq!(states(&world, run).await, ["not_accepting"]);
        assert_eq!(world.pending(work).await, [event]);
        assert!(world.executor.injected(run).is_empty());
    }
}

#[tokio::test]
async fn an_order_waits_for_a_launch_and_is_sent_in_order() {
    let mut world = World::with(ordering(ActivePolicy::Inject, Fallbacks::default())).await;
    world.say("d-1", Some("k"), &json!({})).await;
    world.stages_route_only().await;
    world.stages.schedule.step().await.unwrap();
    let run = world.executions().await[0].id;
    let (one, two) = (world.deliver("d-2", "k").await, world.deliver("d-3", "k").await);
    world.stages_route_only().await;
    world.stages.dispatch.step().await.unwrap();
    world.settle_tasks().await;
    assert_eq!(states(&world, run).await, ["pending", "pending"], "nothing can be given to it yet");
    world.run().await;
    world.clock.advance(SECOND);
    world.run().await;
    assert_eq!(world.executor.injected(run), [one, two]);
}

#[tokio::test]
async fn an_adopted_attempt_is_sent_the_same_order_and_another_one_never_is() {
    let (mut world, work, run) = injecting().await;
    world.executor.on_inject([Taking::IsUnsure]);
    let event = world.deliver("d-2", "k").await;
    world.run().await;
    world.executor.on_recover(Recovery::Alive);
    world.clock.advance(LEASE);
    world.run().await;
    world.clock.advance(SECOND);
    world.run().await;
    assert!(world.execution(run).await.epoch.number() > 1);
    assert_eq!(world.executor.injected(run), [event, event], "the same attempt, an epoch higher");
    world.executor.on_inject([Taking::IsUnsure]);
    let late = world.deliver("d-3", "k").await;
    world.run().await;
    ends(&mut world, run, proving(Outcome::Completed, [event])).await;
    world.clock.advance(Duration::from_mins(1));
    world.runtime.renew().await.unwrap();
    world.run().await;
    let next = world.executions().await.last().unwrap().id;
    assert_ne!(next, run);
    assert_eq!(states(&world, run).await, ["consumed", "stale"]);
    assert!(world.executor.injected(next).is_empty());
    assert!(world.executor.calls().contains(&Call::Run(next, vec![late])), "it is its input instead");
    assert!(world.pending(work).await.is_empty());
}

#[tokio::test]
async fn a_run_that_is_stopped_at_its_end_still_proves_what_it_took() {
    let (mut world, work, run) = injecting().await;
    let event = world.deliver("d-2", "k").await;
    world.run().await;
    world.executor.on_proof(run, vec![event]);
    world.executor.on_recover(Recovery::NotAdoptable { reason: "gone".to_owned(), stopped: true });
    world.clock.advance(LEASE);
    world.run().await;
    assert_eq!(world.execution(run).await.state, ExecutionState::Failed);
    assert!(world.pending(work).await.is_empty());
    assert_eq!(states(&world, run).await, ["consumed"]);
}

#[tokio::test]
async fn a_waiting_result_s_proof_is_applied_before_its_registration_looks() {
    let (mut world, work, run) = injecting().await;
    let proved = world.deliver("d-2", "k").await;
    world.run().await;
    let wait = domain::wait::Registration::default();
    let result = TurnResult { consumed_inputs: vec![proved], ..TurnResult::waiting(wait) };
    ends(&mut world, run, result).await;
    assert!(
        matches!(world.work(work).await.state, WorkState::Waiting { .. }),
        "what it took in wakes it not"
    );
    assert!(world.pending(work).await.is_empty());
    let new = world.deliver("d-3", "k").await;
    world.run().await;
    let next = world.executions().await.last().unwrap().clone();
    assert_ne!(next.id, run);
    assert_eq!(consumed(&world, next.id).await.first(), Some(&new), "only the new one is its input");
    assert!(!consumed(&world, next.id).await.contains(&proved));
}

/// What it did not take in comes before what it did, so it waits for what was accepted after neither.
#[tokio::test]
async fn what_was_proved_wakes_nobody_though_something_before_it_was_not_seen() {
    let (mut world, work, run) = injecting().await;
    let unseen = say_type(&world, "d-2", "other").await;
    let proved = say_type(&world, "d-3", "done").await;
    world.run().await;
    let result = TurnResult { consumed_inputs: vec![proved], ..TurnResult::waiting(of_type("done")) };
    ends(&mut world, run, result).await;
    let waiting = world.work(work).await;
    assert!(matches!(waiting.state, WorkState::Waiting { .. }), "{waiting:?}");
    assert_eq!(world.pending(work).await, [unseen]);
    let new = say_type(&world, "d-4", "done").await;
    world.run().await;
    assert_eq!(world.executions().await.last().unwrap().trigger, new);
}

#[tokio::test]
async fn an_order_to_an_attempt_that_parks_goes_to_no_later_turn() {
    let (mut world, work, run) = injecting().await;
    world.executor.on_inject([Taking::IsUnsure]);
    let event = world.deliver("d-2", "k").await;
    world.run().await;
    let wait = domain::wait::Registration {
        keys: Some(Vec::new()),
        timeout_seconds: Some(60),
        ..Default::default()
    };
    ends(&mut world, run, TurnResult::waiting(wait)).await;
    world.clock.advance(SECOND);
    world.run().await;
    assert_eq!(states(&world, run).await, ["stale"]);
    assert_eq!(world.pending(work).await, [event], "it is input of whatever ends the wait");
}

#[test]
fn an_order_is_carried_out_by_the_host_of_its_attempt() {
    server::on_database(async |dsn| {
        let (mut cellar, mut attic) = own::two_nodes(dsn).await;
        cellar.apply(ordering(ActivePolicy::Inject, Fallbacks::default())).await;
        let (mut cellar, work, run) = running(cellar).await;
        let event = attic.deliver("d-2", "k").await;
        cellar.stages_route_only().await;
        attic.run().await;
        assert_eq!(states(&attic, run).await, ["pending"], "the attic has no such run");
        cellar.run().await;
        assert_eq!(cellar.executor.injected(run), [event]);
        assert!(attic.executor.injected(run).is_empty());
        ends(&mut cellar, run, proving(Outcome::Completed, [event])).await;
        assert_eq!(states(&attic, run).await, ["consumed"]);
        assert_eq!(attic.work(work).await.state, WorkState::Completed);
        for world in [cellar, attic] {
            world.runtime.store().close().await.unwrap();
        }
    });
}
