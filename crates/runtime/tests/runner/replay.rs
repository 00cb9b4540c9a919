//! Replays: a new Event that says again what an old one said, and revives nothing.

use domain::delivery::{Acceptance, Delivery};
use domain::id::EventId;
use domain::outcome::Outcome;
use domain::replay::{REPLAY_REQUESTED, ReplayRefusal};
use domain::route::{ActivePolicy, CheckpointOutcome};
use domain::scope::EffectiveScope;
use domain::text::{DeliveryId, EventType};
use runtime::{ReplayError, explain};
use serde_json::json;

use super::engines::on_each_engine;
use super::wait::of_type;
use super::world::{Call, World, route, scope};

/// A scope whose one route takes these types.
fn taking(types: &[&str]) -> EffectiveScope {
    let mut declared = scope(ActivePolicy::Queue, 16);
    declared.routes = vec![route("told", ActivePolicy::Queue, &json!({ "types": types }))];
    declared
}

async fn replay(world: &World, event: EventId, name: &str) -> EventId {
    let accepted = world.runtime.replay(event, DeliveryId::known(name)).await.unwrap();
    assert!(matches!(accepted, Acceptance::New { .. }), "{accepted:?}");
    accepted.event()
}

#[test]
fn a_replay_is_routed_as_the_original_would_be_now() {
    on_each_engine(&[taking(&["test.other"])], async |mut world| {
        let event = world.deliver("d-1", "k").await;
        world.run().await;
        let unmatched = world.checkpoint(event).await.unwrap();
        assert_eq!(unmatched.outcome, CheckpointOutcome::Unmatched);
        world.apply(taking(&["test.happened"])).await;
        let again = replay(&world, event, "once").await;
        world.run().await;
        let routed = world.checkpoint(again).await.unwrap();
        assert_eq!(routed.outcome, CheckpointOutcome::Routed, "the route sees the type that was said");
        assert_eq!(world.checkpoint(event).await.unwrap(), unmatched, "what was decided stays decided");
        let run = world.executions().await.remove(0);
        assert_eq!((run.trigger, Some(run.work)), (again, routed.work));

        let stored = world.events(REPLAY_REQUESTED).await.remove(0);
        assert_eq!((stored.causation.parent, stored.causation.root), (Some(event), event));
        assert_eq!((stored.causation.depth, stored.source.as_str()), (1, "core.manual"));
        let children = world.runtime.store().read("test", move |tx| tx.replays_of(event, 9)).await.unwrap();
        assert_eq!(children, [stored]);
    });
}

#[test]
fn the_same_request_replays_once() {
    on_each_engine(&[taking(&["test.other"])], async |mut world| {
        let event = world.deliver("d-1", "k").await;
        world.run().await;
        let first = replay(&world, event, "once").await;
        let again = world.runtime.replay(event, DeliveryId::known("once")).await.unwrap();
        assert_eq!((again.event(), matches!(again, Acceptance::Duplicate { .. })), (first, true));
        assert_ne!(replay(&world, event, "twice").await, first);
    });
}

/// Whatever became of the original: each may be looked at again.
#[test]
fn what_was_dropped_set_aside_or_came_too_late_can_be_replayed() {
    on_each_engine(&[scope(ActivePolicy::Queue, 16)], async |mut world| {
        let dropped = world.say("d-1", None, &json!({ "drop": true })).await;
        let poison = world.say("d-2", Some("p"), &json!({ "fail": true })).await;
        let opens = world.say("d-3", Some("k"), &json!({ "once": true })).await;
        world.run().await;
        for _ in 0..10 {
            world.clock.advance(std::time::Duration::from_mins(10));
            world.runtime.renew().await.unwrap();
            world.run().await;
        }
        let run = world.executions().await.remove(0);
        world.end(run.id, Outcome::Completed).await;
        let late = world.deliver("d-4", "k").await;
        world.run().await;
        for (event, outcome) in [
            (dropped, CheckpointOutcome::Dropped),
            (poison, CheckpointOutcome::Quarantined),
            (opens, CheckpointOutcome::Routed),
            (late, CheckpointOutcome::Terminal),
        ] {
            assert_eq!(world.outcome(event).await, Some(outcome));
            let again = replay(&world, event, &format!("again {event}")).await;
            world.run().await;
            let expected = match outcome {
                // Its handler fails again, and is asked again with growing pauses.
                CheckpointOutcome::Quarantined => None,
                CheckpointOutcome::Routed => Some(CheckpointOutcome::Terminal),
                CheckpointOutcome::Dropped | CheckpointOutcome::Terminal | CheckpointOutcome::Unmatched => {
                    Some(outcome)
                }
            };
            assert_eq!(world.outcome(again).await, expected, "nothing is revived: {outcome:?}");
        }
    });
}

/// What comes after it waits, as behind any other Event of its key.
#[test]
fn a_replay_that_cannot_be_routed_stands_in_the_lane_of_its_key() {
    on_each_engine(&[scope(ActivePolicy::Queue, 16)], async |mut world| {
        let poison = world.say("d-1", Some("p"), &json!({ "fail": true })).await;
        for _ in 0..10 {
            world.run().await;
            world.clock.advance(std::time::Duration::from_mins(1));
        }
        assert_eq!(world.outcome(poison).await, Some(CheckpointOutcome::Quarantined));
        let again = replay(&world, poison, "once").await;
        world.run().await;
        let later = world.deliver("d-2", "p").await;
        world.run().await;
        assert_eq!((world.outcome(again).await, world.outcome(later).await), (None, None));
        for _ in 0..10 {
            world.clock.advance(std::time::Duration::from_mins(1));
            world.run().await;
        }
        assert_eq!(world.outcome(again).await, Some(CheckpointOutcome::Quarantined));
        assert_eq!(world.outcome(later).await, Some(CheckpointOutcome::Routed));
    });
}

#[test]
fn a_replay_keeps_to_the_bounds_of_its_chain() {
    let mut shallow = taking(&["test.other"]);
    shallow.settings.causal_max_depth = 2;
    on_each_engine(&[shallow], async |mut world| {
        let event = world.deliver("d-1", "k").await;
        world.run().await;
        let first = replay(&world, event, "1").await;
        world.run().await;
        let second = replay(&world, first, "2").await;
        world.run().await;
        let refused = world.runtime.replay(second, DeliveryId::known("3")).await;
        assert!(matches!(refused, Err(ReplayError::Unaccepted(_))), "{refused:?}");
        let rejections = world.rejections().await;
        assert_eq!(rejections.len(), 1, "the refusal is on record");
        assert_eq!(
            (rejections[0].0.as_str(), &rejections[0].1["code"]),
            ("core.manual/3", &json!("depth_limit"))
        );
        world.apply(taking(&["test.happened"])).await;
        replay(&world, event, "4").await;
        world.run().await;
        assert_eq!(world.executor.runs(), 1);
    });
}

#[test]
fn what_waits_to_be_routed_or_steered_a_run_cannot_be_replayed() {
    on_each_engine(&[scope(ActivePolicy::Queue, 16)], async |mut world| {
        let event = world.say("d-1", Some("k"), &json!({ "once": true })).await;
        let refused = world.runtime.replay(event, DeliveryId::known("r")).await;
        assert!(matches!(refused, Err(ReplayError::Refused(ReplayRefusal::Unrouted))), "{refused:?}");
        world.run().await;
        let run = world.executions().await.remove(0);
        world.end(run.id, Outcome::Failed).await;
        let asks = world.runtime.retry(run.work, DeliveryId::known("retry")).await.unwrap().event();
        let refused = world.runtime.replay(asks, DeliveryId::known("r")).await;
        assert!(matches!(refused, Err(ReplayError::Refused(ReplayRefusal::Control))), "{refused:?}");
        let nothing = EventId::from_number(7);
        let refused = world.runtime.replay(nothing, DeliveryId::known("r")).await;
        assert!(matches!(refused, Err(ReplayError::UnknownEvent(_))), "{refused:?}");
    });
}

/// A Wait is for what is said, and a replay says it; what the attempt took in before is no news.
#[test]
fn a_replay_ends_a_wait_for_what_the_original_said() {
    on_each_engine(&[scope(ActivePolicy::Queue, 16)], async |mut world| {
        world.executor.can_resume(true);
        let opens = world.deliver("d-1", "k").await;
        world.run().await;
        let run = world.executions().await.remove(0);
        world.park(run.id, of_type("test.happened")).await;
        let again = replay(&world, opens, "again").await;
        world.run().await;
        let last = world.executor.calls().pop();
        assert_eq!(last, Some(Call::Resume(run.id, again, vec![again])));
    });
}

/// The same, when the replay was accepted before the Wait was registered.
#[test]
fn a_registration_finds_a_replay_by_what_it_says() {
    on_each_engine(&[scope(ActivePolicy::Queue, 16)], async |mut world| {
        world.executor.can_resume(true);
        let opens = world.deliver("d-1", "k").await;
        world.run().await;
        let run = world.executions().await.remove(0);
        let again = replay(&world, opens, "again").await;
        world.run().await;
        world.park(run.id, of_type("test.happened")).await;
        let last = world.executor.calls().pop();
        assert_eq!(last, Some(Call::Resume(run.id, again, vec![again])));
    });
}

/// What the runtime said of a Work reaches the route that asks for it, and never that Work.
#[test]
fn a_replayed_announcement_is_still_nobody_s_input_unasked() {
    on_each_engine(&[scope(ActivePolicy::Queue, 16)], async |mut world| {
        world.deliver("d-1", "k").await;
        world.run().await;
        let run = world.executions().await.remove(0);
        world.end(run.id, Outcome::Handoff).await;
        let ended = world.events("core.turn.ended").await.remove(0);
        let again = replay(&world, ended.id, "again").await;
        world.run().await;
        assert_eq!(world.outcome(again).await, Some(CheckpointOutcome::Unmatched));
        assert_eq!(world.executor.runs(), 1);
        let mut hears = scope(ActivePolicy::Queue, 16);
        hears.routes.insert(
            0,
            route("hears", ActivePolicy::Queue, &json!({ "types": ["core.turn.ended"], "other": "o" })),
        );
        world.apply(hears).await;
        replay(&world, ended.id, "heard").await;
        world.run().await;
        let other = world.owner("o").await.expect("the route leads there");
        assert_ne!(other.id, run.work);
        assert_eq!(world.executor.runs(), 2);
    });
}

#[test]
fn explain_says_what_a_replay_would_do() {
    on_each_engine(&[taking(&["test.other"])], async |mut world| {
        let event = world.deliver("d-1", "k").await;
        world.run().await;
        let again = replay(&world, event, "again").await;
        world.run().await;
        world.apply(taking(&["test.happened"])).await;
        let active = world.runtime.generations().active();
        let told = world.runtime.explain(&active, explain::Subject::Accepted(again)).await.unwrap().unwrap();
        assert_eq!(told.fate.as_str(), "routed");
        assert_eq!(told.event.event_type, EventType::known("test.happened"));
        let delivery: Delivery = world.delivery("d-2", Some("k"), &json!({}));
        assert_ne!(world.accept(delivery).await.unwrap().event(), again);
    });
}
