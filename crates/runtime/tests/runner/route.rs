//! Routing: the first match, ownership, order within a Work, and nothing that stops the others.

use std::time::Duration;

use domain::outcome::Outcome;
use domain::route::{ActivePolicy, CheckpointOutcome};
use domain::work::WorkState;
use serde_json::json;

use super::world::{Call, World, route, scope};

#[tokio::test]
async fn the_first_match_decides_even_when_it_drops() {
    let mut declared = scope(ActivePolicy::Queue, 16);
    declared.routes = vec![
        route("other", ActivePolicy::Queue, &json!({"types": ["never.happens"]})),
        route("first", ActivePolicy::Queue, &json!({})),
        route("second", ActivePolicy::Queue, &json!({})),
    ];
    let mut world = World::with(declared).await;
    let dropped = world.say("d-1", Some("k"), &json!({"drop": true})).await;
    world.run().await;

    let checkpoint = world.checkpoint(dropped).await.unwrap();
    assert_eq!(checkpoint.outcome, CheckpointOutcome::Dropped);
    assert_eq!(checkpoint.route.unwrap().as_str(), "first");
    assert_eq!(checkpoint.code.unwrap().as_str(), "told_to_drop");
    assert_eq!(checkpoint.generation.number(), 1, "the decision pins its generation");
    assert!(world.owner("k").await.is_none());
    assert_eq!(world.executor.runs(), 0);
}

#[tokio::test]
async fn a_dropped_event_keeps_its_association() {
    let mut world = World::new().await;
    world.deliver("d-1", "k").await;
    let dropped = world.say("d-2", Some("k"), &json!({"drop": true})).await;
    world.run().await;
    let checkpoint = world.checkpoint(dropped).await.unwrap();
    assert_eq!(checkpoint.outcome, CheckpointOutcome::Dropped);
    assert_eq!(checkpoint.work, Some(world.owner("k").await.unwrap().id));
}

#[tokio::test]
async fn no_match_keeps_the_event_as_unmatched() {
    let mut world = World::new().await;
    let event = world.say("d-1", None, &json!({})).await;
    world.run().await;
    assert_eq!(world.outcome(event).await, Some(CheckpointOutcome::Unmatched));
}

#[tokio::test]
async fn a_key_leads_to_one_work_for_ever() {
    let mut world = World::new().await;
    world.deliver("d-1", "k").await;
    world.run().await;
    let work = world.owner("k").await.unwrap();
    let first = world.executions().await[0].id;
    world.end(first, Outcome::Completed).await;
    world.deliver("d-2", "k").await;
    world.run().await;

    assert_eq!(world.owner("k").await.unwrap().id, work.id);
    let executions = world.executions().await;
    assert_eq!(executions.len(), 2);
    assert!(executions.iter().all(|execution| execution.work == work.id));
    assert_eq!(executions[1].attempt.number(), 2);
}

#[tokio::test]
async fn input_that_arrives_while_it_runs_waits_and_is_taken_whole_and_in_order() {
    let mut world = World::new().await;
    world.deliver("d-1", "k").await;
    world.run().await;
    let first = world.executions().await[0].id;
    let late =
        [world.deliver("d-2", "k").await, world.deliver("d-3", "k").await, world.deliver("d-4", "k").await];
    world.run().await;
    assert_eq!(world.executor.runs(), 1, "one attempt at a time");
    let work = world.owner("k").await.unwrap();
    assert_eq!(world.pending(work.id).await, late);

    world.end(first, Outcome::Completed).await;
    let second = world.executions().await[1].clone();
    assert_eq!(world.executor.calls()[1], Call::Run(second.id, late.to_vec()));
    assert_eq!(second.trigger, late[0], "the earliest of the batch triggers");
}

#[tokio::test]
async fn drop_applies_only_while_an_attempt_runs() {
    let mut world = World::with(scope(ActivePolicy::Drop, 16)).await;
    let first = world.deliver("d-1", "k").await;
    world.run().await;
    let during = world.deliver("d-2", "k").await;
    world.run().await;
    assert_eq!(world.outcome(first).await, Some(CheckpointOutcome::Routed));
    let checkpoint = world.checkpoint(during).await.unwrap();
    assert_eq!(checkpoint.outcome, CheckpointOutcome::Dropped);
    assert_eq!(checkpoint.code.unwrap().as_str(), "active_drop");
    assert_eq!(checkpoint.work, Some(world.owner("k").await.unwrap().id), "the association is kept");

    let run = world.executions().await[0].id;
    world.end(run, Outcome::Completed).await;
    assert_eq!(world.executor.runs(), 1, "what was dropped starts nothing");
    let after = world.deliver("d-3", "k").await;
    world.run().await;
    assert_eq!(world.outcome(after).await, Some(CheckpointOutcome::Routed));
}

#[tokio::test]
async fn a_terminal_work_takes_nothing_and_keeps_its_keys() {
    let mut world = World::new().await;
    world.say("d-1", Some("k"), &json!({"once": true})).await;
    world.run().await;
    let run = world.executions().await[0].id;
    world.end(run, Outcome::Completed).await;
    let work = world.owner("k").await.unwrap();
    assert_eq!(work.state, WorkState::Completed);

    let late = world.deliver("d-2", "k").await;
    world.run().await;
    let checkpoint = world.checkpoint(late).await.unwrap();
    assert_eq!(checkpoint.outcome, CheckpointOutcome::Terminal);
    assert_eq!(checkpoint.work, Some(work.id));
    assert_eq!(world.work(work.id).await, work, "nothing about it changed");
    assert_eq!(world.executor.runs(), 1);
}

#[tokio::test]
async fn a_conflict_of_owners_aborts_everything_and_ends_in_quarantine() {
    let mut world = World::new().await;
    world.deliver("d-1", "one").await;
    world.deliver("d-2", "two").await;
    world.run().await;
    let torn = world.say("d-3", Some("one"), &json!({"keys": ["two", "three"]})).await;
    world.run().await;

    assert_eq!(world.outcome(torn).await, None, "it stays unrouted, for diagnosis");
    assert!(world.owner("three").await.is_none(), "no key was attached");
    let one = world.owner("one").await.unwrap();
    assert!(world.pending(one.id).await.is_empty());
    let behind = world.deliver("d-4", "one").await;
    let beside = world.deliver("d-5", "elsewhere").await;
    world.run().await;
    assert_eq!(world.outcome(behind).await, None, "its lane waits");
    assert_eq!(world.outcome(beside).await, Some(CheckpointOutcome::Routed), "no other lane does");

    for _ in 0..5 {
        world.clock.advance(Duration::from_secs(20));
        world.runtime.renew().await.unwrap();
        world.run().await;
    }
    let checkpoint = world.checkpoint(torn).await.unwrap();
    assert_eq!(checkpoint.outcome, CheckpointOutcome::Quarantined);
    assert_eq!(checkpoint.code.unwrap().as_str(), "key_conflict");
    assert_eq!(world.outcome(behind).await, Some(CheckpointOutcome::Routed), "the lane went on");
}

#[tokio::test]
async fn a_handler_that_always_fails_stops_its_lane_only_and_not_for_ever() {
    let mut world = World::new().await;
    let poison = world.say("d-1", Some("k"), &json!({"fail": true})).await;
    let mut behind = Vec::new();
    for n in 0..150 {
        behind.push(world.deliver(&format!("behind-{n}"), "k").await);
    }
    let beside = world.deliver("beside", "other").await;
    world.run().await;
    assert_eq!(world.outcome(beside).await, Some(CheckpointOutcome::Routed));
    assert_eq!(world.outcome(poison).await, None);
    let candidates = world.runtime.store().read("test", |tx| tx.route_candidates(10)).await.unwrap();
    assert!(candidates.is_empty(), "a blocked backlog is not walked past again");

    for pause in [1, 2, 4, 8] {
        world.clock.advance(Duration::from_secs(pause));
        world.runtime.renew().await.unwrap();
        world.run().await;
    }
    assert_eq!(world.outcome(poison).await, Some(CheckpointOutcome::Quarantined));
    let work = world.owner("k").await.unwrap();
    let run = world.executions().await.into_iter().find(|execution| execution.work == work.id).unwrap();
    let calls = world.executor.calls();
    let taken = calls.iter().find_map(|call| match call {
        Call::Run(id, inputs) if *id == run.id => Some(inputs.clone()),
        Call::Run(..)
        | Call::Resume(..)
        | Call::Recover(..)
        | Call::Observe(_)
        | Call::Inject(..)
        | Call::Interrupt(_)
        | Call::Notice(..)
        | Call::Release(_)
        | Call::Stop(_) => None,
    });
    let mut seen = taken.unwrap();
    seen.extend(world.pending(work.id).await);
    // The first attempt starts with what was routed by then; nothing is missing and the order is kept.
    assert!(seen.len() >= 100, "{} of {}", seen.len(), behind.len());
    assert_eq!(seen[..], behind[..seen.len()]);
    for event in &behind {
        assert_eq!(world.outcome(*event).await, Some(CheckpointOutcome::Routed));
    }
}

#[tokio::test]
async fn what_another_try_would_not_change_is_set_aside_at_once() {
    let mut world = World::new().await;
    let poison = world.say("d-1", Some("k"), &json!({"fail": "for good"})).await;
    let behind = world.deliver("d-2", "k").await;
    world.run().await;
    assert_eq!(world.outcome(poison).await, Some(CheckpointOutcome::Quarantined));
    assert_eq!(world.outcome(behind).await, Some(CheckpointOutcome::Routed), "its lane goes on");
    let blocks = world.runtime.store().read("test", |tx| tx.lane_blocks(1)).await.unwrap();
    assert!(blocks.is_empty(), "{blocks:?}");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_hangs_holds_up_its_lane_and_nothing_beside_it() {
    let mut world = World::new().await;
    let hanging = world.say("d-1", Some("a"), &json!({"hang": true})).await;
    let behind = world.deliver("d-2", "a").await;
    let beside = world.deliver("d-3", "b").await;
    world.run().await;
    assert_eq!(world.outcome(hanging).await, None);
    assert_eq!(world.outcome(behind).await, None, "order within the lane is kept");
    assert_eq!(world.outcome(beside).await, Some(CheckpointOutcome::Routed));
    assert_eq!(world.executor.runs(), 1, "and the other lane's attempt has started");

    // It is asked for thirty seconds, five times, with pauses; then it is set aside.
    for _ in 0..5 {
        tokio::time::advance(Duration::from_secs(31)).await;
        world.settle_tasks().await;
        world.run().await;
        world.clock.advance(Duration::from_secs(20));
        world.runtime.renew().await.unwrap();
        world.run().await;
    }
    let checkpoint = world.checkpoint(hanging).await.unwrap();
    assert_eq!(checkpoint.outcome, CheckpointOutcome::Quarantined);
    assert_eq!(checkpoint.code.unwrap().as_str(), "handler_timeout");
    assert_eq!(world.outcome(behind).await, Some(CheckpointOutcome::Routed));
}

#[tokio::test]
async fn earlier_events_of_a_key_join_the_work_that_gets_it() {
    let mut world = World::new().await;
    // The first event of `b` cannot be routed yet; then `a` takes the key `b`.
    let early = world.say("d-1", Some("b"), &json!({"fail": true})).await;
    world.run().await;
    assert_eq!(world.outcome(early).await, None);
    let attaching = world.say("d-2", Some("a"), &json!({"keys": ["b"]})).await;
    world.run().await;

    let work = world.owner("a").await.unwrap();
    assert_eq!(world.owner("b").await.unwrap().id, work.id);
    let checkpoint = world.checkpoint(early).await.unwrap();
    assert_eq!(checkpoint.outcome, CheckpointOutcome::Routed);
    assert_eq!(checkpoint.work, Some(work.id));
    let run = world.executions().await[0].id;
    assert_eq!(world.executor.calls()[0], Call::Run(run, vec![early, attaching]), "each in its place");
}

#[tokio::test]
async fn a_checkpointed_event_is_never_resurrected_by_a_key() {
    let mut world = World::new().await;
    let dropped = world.say("d-1", Some("b"), &json!({"drop": true})).await;
    world.run().await;
    world.say("d-2", Some("a"), &json!({"keys": ["b"]})).await;
    world.run().await;
    assert_eq!(world.outcome(dropped).await, Some(CheckpointOutcome::Dropped));
    let work = world.owner("b").await.unwrap();
    let run = world.executions().await[0].id;
    let inputs =
        world.runtime.store().read("test", move |tx| tx.inputs_of(run, domain::id::Sequence::ZERO, 9)).await;
    assert_eq!(inputs.unwrap().len(), 1, "{}", work.id);
}

#[tokio::test]
async fn fresh_work_is_new_each_time_and_without_a_key_nothing_is_guessed() {
    let mut world = World::new().await;
    world.deliver("d-0", "running").await;
    world.say("d-1", None, &json!({"fresh": true})).await;
    world.say("d-2", None, &json!({"fresh": true})).await;
    let loose = world.say("d-3", None, &json!({})).await;
    world.run().await;
    let executions = world.executions().await;
    assert_eq!(executions.len(), 3);
    assert_ne!(executions[1].work, executions[2].work);
    assert_eq!(world.outcome(loose).await, Some(CheckpointOutcome::Unmatched));
}

#[tokio::test]
async fn a_disabled_scope_keeps_its_events_until_it_is_enabled() {
    let mut disabled = scope(ActivePolicy::Queue, 16);
    disabled.disabled = true;
    let mut world = World::with(disabled).await;
    let event = world.deliver("d-1", "k").await;
    for _ in 0..10 {
        world.run().await;
        world.clock.advance(Duration::from_mins(1));
    }
    assert_eq!(world.outcome(event).await, None, "it is not set aside for that");
    world.apply(scope(ActivePolicy::Queue, 16)).await;
    world.run().await;
    let checkpoint = world.checkpoint(event).await.unwrap();
    assert_eq!(checkpoint.outcome, CheckpointOutcome::Routed);
    assert_eq!(checkpoint.generation.number(), 2);
}
