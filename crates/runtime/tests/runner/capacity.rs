//! Capacity: counted from rows, and freed with them.

use std::time::Duration;

use domain::capacity::Blocker;
use domain::outcome::Outcome;
use domain::route::ActivePolicy;
use domain::work::Queue;

use super::world::{World, scope, scope_name};

#[tokio::test]
async fn a_full_scope_starts_no_more_and_accepts_and_routes_on() {
    let mut world = World::with(scope(ActivePolicy::Queue, 2)).await;
    for n in 0..5 {
        world.deliver(&format!("d-{n}"), &format!("k-{n}")).await;
    }
    world.run().await;
    assert_eq!(world.executor.runs(), 2);
    for n in 2..5 {
        let work = world.owner(&format!("k-{n}")).await.unwrap();
        assert_eq!(work.queue, Queue::Blocked(Blocker::ScopeFull(scope_name())), "its mover is named");
    }
}

#[tokio::test]
async fn room_that_is_freed_goes_to_whoever_waited_longest() {
    let mut world = World::with(scope(ActivePolicy::Queue, 1)).await;
    for n in 0..4 {
        world.deliver(&format!("d-{n}"), &format!("k-{n}")).await;
        world.clock.advance(Duration::from_secs(1));
        world.run().await;
    }
    for n in 0..4 {
        let executions = world.executions().await;
        assert_eq!(executions.len(), n + 1, "one at a time");
        let newest = &executions[n];
        assert_eq!(newest.work, world.owner(&format!("k-{n}")).await.unwrap().id, "in order");
        world.end(newest.id, Outcome::Completed).await;
    }
}

#[tokio::test]
async fn a_raised_limit_lets_the_waiting_start() {
    let mut world = World::with(scope(ActivePolicy::Queue, 1)).await;
    for n in 0..4 {
        world.deliver(&format!("d-{n}"), &format!("k-{n}")).await;
    }
    world.run().await;
    assert_eq!(world.executor.runs(), 1);
    world.apply(scope(ActivePolicy::Queue, 3)).await;
    world.run().await;
    assert_eq!(world.executor.runs(), 3);
}

#[tokio::test]
async fn a_binding_that_is_gone_holds_and_does_not_fail() {
    let mut world = World::with(scope(ActivePolicy::Queue, 1)).await;
    world.deliver("d-1", "k").await;
    world.stages_route_only().await;
    let mut without = scope(ActivePolicy::Queue, 1);
    without.bindings.clear();
    without.routes.clear();
    world.apply(without).await;
    world.run().await;
    let work = world.owner("k").await.unwrap();
    assert_eq!(work.queue, Queue::Blocked(Blocker::Unconfigured(scope_name())));
    assert_eq!(world.executor.runs(), 0);

    world.apply(scope(ActivePolicy::Queue, 1)).await;
    world.run().await;
    assert_eq!(world.executor.runs(), 1);
}
