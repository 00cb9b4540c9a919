//! Causal bounds: a chain that publishes too much is refused, and what it hangs on goes on.

use std::time::Duration;

use domain::outcome::Outcome;
use domain::route::ActivePolicy;
use serde_json::json;

use super::world::{World, route, scope};

/// A world in which each turn's end starts the next turn of another key, for ever.
async fn feedback(depth: u32, per_minute: u32) -> World {
    let mut declared = scope(ActivePolicy::Queue, 16);
    declared.settings.causal_max_depth = depth;
    declared.settings.causal_per_minute = per_minute;
    let answers = json!({"types": ["test.happened", "core.turn.ended"], "ping": true});
    declared.routes = vec![route("told", ActivePolicy::Queue, &answers)];
    World::with(declared).await
}

/// Ends whatever runs, until nothing does.
async fn let_it_go_on(world: &mut World, rounds: usize) -> usize {
    for round in 0..rounds {
        let live: Vec<_> =
            world.executions().await.into_iter().filter(|run| !run.state.is_terminal()).collect();
        let Some(run) = live.first() else { return round };
        world.end(run.id, Outcome::Completed).await;
    }
    rounds
}

#[tokio::test]
async fn a_feedback_loop_ends_at_the_depth_of_its_root() {
    let mut world = feedback(4, 128).await;
    let root = world.deliver("d-1", "k").await;
    world.run().await;
    assert_eq!(let_it_go_on(&mut world, 50).await, 5, "the root's turn and one for each Event it led to");
    let announced = world.events("core.turn.ended").await;
    assert_eq!(announced.len(), 4);
    assert!(announced.iter().all(|event| event.causation.root == root));
    let rejections = world.rejections().await;
    assert_eq!(rejections.len(), 1);
    assert_eq!(rejections[0].1["code"], "depth_limit");
    assert_eq!(rejections[0].1["depth"], 5);
    assert!(world.executions().await.iter().all(|run| run.state.is_terminal()), "no turn hangs on it");
}

#[tokio::test]
async fn a_burst_ends_with_its_minute_and_depth_is_never_given_back() {
    let mut world = feedback(32, 3).await;
    world.deliver("d-1", "k").await;
    world.run().await;
    assert_eq!(let_it_go_on(&mut world, 50).await, 4);
    assert_eq!(world.rejections().await[0].1["code"], "rate_limit");
    // Another root has a share of its own.
    world.deliver("d-2", "k").await;
    world.run().await;
    assert_eq!(let_it_go_on(&mut world, 50).await, 4);
    // The next minute restores the rate; the chain that was cut stays cut.
    world.clock.advance(Duration::from_mins(1));
    world.run().await;
    assert_eq!(let_it_go_on(&mut world, 50).await, 0);
}

#[tokio::test]
async fn bounds_are_pinned_when_the_root_is_accepted() {
    let mut world = feedback(2, 128).await;
    world.deliver("d-1", "k").await;
    world.run().await;
    let mut wider = scope(ActivePolicy::Queue, 16);
    wider.settings.causal_max_depth = 1000;
    let answers = json!({"types": ["test.happened", "core.turn.ended"], "ping": true});
    wider.routes = vec![route("told", ActivePolicy::Queue, &answers)];
    world.apply(wider).await;
    assert_eq!(let_it_go_on(&mut world, 50).await, 3, "a later configuration does not lengthen it");
}
