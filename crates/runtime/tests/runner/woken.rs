//! The turn after a Wait: its chain, its batch, its time, and what a lost lease leaves of it.

use std::time::Duration;

use domain::execution::ExecutionState;
use domain::lease::LEASE;
use domain::outcome::{Outcome, TurnResult, Usage};
use domain::retry::Eligibility;
use domain::route::ActivePolicy;
use domain::work::{HoldReason, Queue, WorkRefusal, WorkState};
use extension::Recovery;
use runtime::{ControlError, Stage};
use serde_json::json;

use super::wait::{SECOND, for_seconds, last_start, of_type, running, say_type, winner};
use super::world::{Call, RunFault, World, scope};

/// A world whose chains end at a depth, with the run of Work `k`.
async fn shallow(depth: u32, resumes: bool) -> (World, domain::execution::Execution) {
    let mut declared = scope(ActivePolicy::Queue, 16);
    declared.settings.causal_max_depth = depth;
    let mut world = World::with(declared).await;
    world.executor.can_resume(resumes);
    world.deliver("opens", "k").await;
    world.run().await;
    let run = world.executions().await[0].clone();
    (world, run)
}

#[tokio::test]
async fn a_wake_by_something_independent_starts_a_chain_of_its_own() {
    let (mut world, run) = running(true).await;
    world.park(run.id, for_seconds(60)).await;
    let fact = world.deliver("fact", "k").await;
    world.run().await;
    let bridge = world.events("core.wait.woken").await.remove(0);
    assert_eq!((bridge.causation.root, bridge.causation.depth), (fact, 1));
    world.end(run.id, Outcome::Handoff).await;
    let ends = world.events("core.turn.ended").await;
    let parents: Vec<_> = ends.iter().rev().map(|event| event.causation.parent).collect();
    assert_eq!(parents, [Some(run.trigger), Some(bridge.id)], "the next turn publishes from there");
}

#[tokio::test]
async fn attempts_are_numbered_without_a_gap_where_one_goes_on_after_a_wait() {
    let (mut world, run) = running(true).await;
    for fact in ["one", "two"] {
        world.park(run.id, for_seconds(60)).await;
        world.deliver(fact, "k").await;
        world.run().await;
    }
    world.end(run.id, Outcome::Handoff).await;
    world.deliver("later", "k").await;
    world.run().await;
    let numbers: Vec<_> = world.executions().await.iter().map(|run| run.attempt.number()).collect();
    assert_eq!(numbers, [1, 2]);
}

#[tokio::test]
async fn a_chain_that_waits_for_itself_grows_deeper_and_ends_in_a_hold() {
    for resumes in [false, true] {
        // Depths: the first timeout 1, its bridge 2, the second timeout 3, and then no bridge.
        let (mut world, run) = shallow(3, resumes).await;
        world.park(run.id, for_seconds(10)).await;
        world.clock.advance(SECOND * 10);
        world.run().await;
        let next = world.executions().await.last().unwrap().id;
        world.park(next, for_seconds(10)).await;
        world.clock.advance(SECOND * 10);
        world.run().await;
        let held = world.work(run.work).await;
        let hold = held.hold.clone().expect("its chain is used up");
        assert_eq!(hold.because, HoldReason::WakeRefused);
        assert!(hold.reason.contains("3 Events deep"), "{}", hold.reason);
        assert_eq!(held.state, WorkState::Ready);
        assert!(matches!(held.queue, Queue::Blocked(domain::capacity::Blocker::Held(_))), "{held:?}");
        let wait = world.wait().await;
        let timeout = world.events("core.wait.timeout").await[0].id;
        assert_eq!(winner(&wait), Some(timeout), "the Wait has ended all the same");
        let rejections = world.rejections().await;
        let (_key, body) =
            rejections.iter().find(|(key, _)| *key == format!("core/woken/{}", wait.id)).unwrap();
        assert_eq!(body["code"], "depth_limit");
        // Neither input nor a configuration nor time lets it go on.
        let late = world.deliver("late", "k").await;
        world.apply(scope(ActivePolicy::Queue, 32)).await;
        world.clock.advance(SECOND * 600);
        world.run().await;
        let starts = world.executor.calls().len();
        assert_eq!(starts, 2);
        let released = world.runtime.release(run.work).await.unwrap();
        assert!(!released.let_through, "no budget and no gate was asked");
        world.run().await;
        assert_eq!(world.executor.calls().len(), 3, "an operator's word needs no room in a chain");
        assert_eq!(last_start(&world).1, [timeout, late]);
        let again = world.runtime.release(run.work).await;
        assert!(matches!(again, Err(ControlError::Refused(WorkRefusal::NotHeld))), "{again:?}");
    }
}

#[tokio::test]
async fn a_timeout_that_its_chain_refuses_holds_the_work_until_it_is_released() {
    // Depths: the timeout 1, its bridge 2, and then no further timeout.
    let (mut world, run) = shallow(2, true).await;
    world.park(run.id, for_seconds(10)).await;
    world.clock.advance(SECOND * 10);
    world.run().await;
    world.park(run.id, for_seconds(10)).await;
    world.clock.advance(SECOND * 10);
    world.run().await;
    let held = world.work(run.work).await;
    assert!(held.hold.is_some() && held.state.waits_for().is_some(), "{held:?}");
    assert!(world.wait().await.state.is_active());
    let timers = world.runtime.store().read("test", |tx| tx.timers(None, 9)).await.unwrap();
    assert!(timers.is_empty(), "it does not fire in a loop");
    world.runtime.release(run.work).await.unwrap();
    world.run().await;
    let wait = world.wait().await;
    let timeout = world.events("core.wait.timeout").await.remove(0);
    assert_eq!(winner(&wait), Some(timeout.id));
    assert_eq!((timeout.causation.parent, timeout.delivery_id), (None, wait.timeout_delivery()));
    assert_eq!(world.execution(run.id).await.turn.number, 3);
}

#[tokio::test]
async fn a_fact_ends_the_wait_whose_timeout_was_refused() {
    let (mut world, run) = shallow(2, true).await;
    for _ in 0..2 {
        world.park(run.id, for_seconds(10)).await;
        world.clock.advance(SECOND * 10);
        world.run().await;
    }
    assert!(world.work(run.work).await.hold.is_some());
    let fact = world.deliver("fact", "k").await;
    world.run().await;
    assert_eq!(winner(&world.wait().await), Some(fact));
    assert_eq!(world.work(run.work).await.hold, None, "what kept it is over");
    assert_eq!(world.execution(run.id).await.turn.number, 3);
}

#[tokio::test]
async fn a_deadline_counts_what_ran_and_not_what_waited() {
    let mut declared = scope(ActivePolicy::Queue, 16);
    declared.settings.timeout_seconds = 100;
    let mut world = World::with(declared).await;
    world.executor.can_resume(true);
    world.deliver("opens", "k").await;
    world.run().await;
    let run = world.executions().await[0].clone();
    for (ran, left) in [(7, 93), (11, 82)] {
        world.clock.advance(SECOND * ran);
        world.runtime.renew().await.unwrap();
        world.park(run.id, for_seconds(3600)).await;
        let parked = world.execution(run.id).await;
        assert_eq!((parked.state, parked.deadline_at), (ExecutionState::Parked, None));
        world.clock.advance(SECOND * 3600);
        world.run().await;
        let resumed = world.execution(run.id).await;
        let now = world.runtime.store().now();
        assert_eq!(resumed.deadline_at.unwrap().since(now), Duration::from_secs(left));
    }
}

#[tokio::test]
async fn recovery_repeats_a_resume_with_the_same_batch() {
    let (mut world, run) = running(true).await;
    world.park(run.id, of_type("build.finished")).await;
    let other = say_type(&world, "other", "test.other").await;
    let fact = say_type(&world, "fact", "build.finished").await;
    world.executor.on_run(Some(RunFault::Fenced));
    world.run().await;
    assert_eq!(world.execution(run.id).await.state, ExecutionState::Launching);
    let late = say_type(&world, "late", "test.other").await;
    world.executor.on_run(None);
    world.executor.on_recover(Recovery::NothingStarted);
    world.clock.advance(LEASE);
    world.run().await;
    let resumes = || Call::Resume(run.id, fact, vec![other, fact]);
    assert_eq!(world.executor.calls().last(), Some(&resumes()), "nothing had started: the same turn again");
    let resumed = world.execution(run.id).await;
    assert_eq!((resumed.turn.number, resumed.epoch.number()), (2, 3));
    assert_eq!(world.pending(run.work).await, [late]);
    // One that did start is followed.
    world.executor.on_recover(Recovery::Alive);
    world.runtime.held().count();
    world.clock.advance(LEASE);
    world.stages.recover.step().await.unwrap();
    world.settle_tasks().await;
    assert_eq!(world.executor.calls().last(), Some(&Call::Observe(run.id)));
    assert_eq!(world.executor.calls().iter().filter(|call| **call == resumes()).count(), 1);
}

#[tokio::test]
async fn a_parked_attempt_is_never_recovered() {
    let (mut world, run) = running(true).await;
    world.park(run.id, for_seconds(36_000)).await;
    let calls = world.executor.calls().len();
    world.clock.advance(LEASE * 100);
    world.run().await;
    assert_eq!(world.executor.calls().len(), calls);
    assert_eq!(world.execution(run.id).await.state, ExecutionState::Parked);
}

#[tokio::test]
async fn a_result_adds_up_what_the_turns_used() {
    let (mut world, run) = running(true).await;
    let used = |thousandths| vec![Usage { unit: "usd".to_owned(), thousandths }];
    world.executor.end(run.id, TurnResult { usage: used(5), ..TurnResult::waiting(for_seconds(60)) });
    world.settle_tasks().await;
    world.run().await;
    world.deliver("fact", "k").await;
    world.run().await;
    world.executor.end(run.id, TurnResult { usage: used(2), ..TurnResult::of(Outcome::Completed) });
    world.settle_tasks().await;
    world.run().await;
    let id = run.id;
    let result = world.runtime.store().read("test", move |tx| tx.turn_result(id)).await.unwrap().unwrap();
    assert_eq!((result.outcome, result.usage), (Outcome::Completed, used(7)));
    assert_eq!(world.execution(run.id).await.state, ExecutionState::Completed);
}

#[tokio::test]
async fn a_resumed_turn_that_fails_is_repeated_with_all_it_had() {
    let mut world = World::new().await;
    world.executor.can_resume(true);
    let opens = world.say("opens", Some("k"), &json!({"once": true})).await;
    world.run().await;
    let run = world.executions().await[0].clone();
    world.park(run.id, for_seconds(60)).await;
    let fact = world.deliver("fact", "k").await;
    world.run().await;
    world.end(run.id, Outcome::Failed).await;
    let failed = world.work(run.work).await;
    assert!(matches!(failed.eligibility, Eligibility::Backoff { .. }));
    assert_eq!(failed.failures, 1);
    world.clock.advance(Duration::from_mins(5));
    world.run().await;
    let again = world.executions().await[1].clone();
    assert_eq!((again.retry_of, again.turn.number), (Some(run.id), 1));
    let (bridge, due) = (&world.events("core.wait.woken").await[0], &world.events("core.retry.due").await[0]);
    assert_eq!(due.causation.parent, Some(bridge.id), "on the chain of the turn that failed");
    assert_eq!(last_start(&world), (again.id, vec![opens, fact]));
}

#[tokio::test]
async fn a_wake_is_heard_and_needs_no_polling() {
    let (mut world, run) = running(true).await;
    world.park(run.id, for_seconds(60)).await;
    while super::world::rung(&world.runtime.hints().schedule).await {}
    world.deliver("fact", "k").await;
    world.route_by_hints().await;
    assert!(super::world::rung(&world.runtime.hints().schedule).await, "scheduling is told");
    assert!(matches!(world.work(run.work).await.eligibility, Eligibility::Woken { resumes: Some(_), .. }));
}
