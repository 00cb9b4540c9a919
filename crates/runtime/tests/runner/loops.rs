//! The loops as a daemon runs them, woken by hints alone: nothing here looks again by itself.

use std::time::Duration;

use domain::execution::ExecutionState;
use domain::id::ExecutionId;
use domain::outcome::{Outcome, TurnResult};
use domain::route::ActivePolicy;
use serde_json::json;
use tokio::time::timeout;

use super::world::{Call, World, scope};

/// More than any of this takes.
const SOON: Duration = Duration::from_secs(10);

/// A world whose stages run by themselves.
async fn started(policy: ActivePolicy, concurrency: u32) -> World {
    let mut world = World::with(scope(policy, concurrency)).await;
    world.start();
    world
}

async fn until(world: &World, what: &str, mut holds: impl AsyncFnMut(&World) -> bool) {
    let wait = async {
        let mut feed = world.runtime.hints().feed.subscribe();
        while !holds(world).await {
            // Not every fact here is a commit, so the wait is short.
            let _news = timeout(Duration::from_millis(5), feed.changed()).await;
        }
    };
    timeout(SOON, wait).await.unwrap_or_else(|_late| panic!("{what}"));
}

fn newest(world: &World) -> ExecutionId {
    let calls = world.executor.calls();
    let mut runs =
        calls.iter().rev().filter_map(|call| if let Call::Run(id, _) = call { Some(*id) } else { None });
    runs.next().expect("something runs")
}

#[tokio::test]
async fn hints_alone_carry_an_event_through_and_the_next_one_after_it() {
    let world = started(ActivePolicy::Queue, 1).await;
    for round in 1..=20_usize {
        world.say(&format!("d-{round}"), Some("k"), &json!({"slow": round % 3 == 0})).await;
        until(&world, "it runs", async |world| world.executor.runs() == round).await;
        let run = newest(&world);
        world.executor.end(run, TurnResult::of(Outcome::Completed));
        until(&world, "it ends", async |world| world.execution(run).await.state == ExecutionState::Completed)
            .await;
    }
    timeout(SOON, world.runtime.shutdown()).await.expect("at once").unwrap();
}

#[tokio::test]
async fn hints_alone_pass_the_room_on_and_stop_what_is_cancelled() {
    let world = started(ActivePolicy::Queue, 1).await;
    for key in ["a", "b", "c"] {
        world.deliver(key, key).await;
    }
    until(&world, "the first runs", async |world| world.executor.runs() == 1).await;
    until(&world, "the last is routed", async |world| world.owner("c").await.is_some()).await;
    let first = newest(&world);
    let work = world.execution(first).await.work;
    world.runtime.cancel(work).await.unwrap();
    until(&world, "it is stopped", async |world| !world.execution(first).await.unstopped).await;
    until(&world, "the second runs", async |world| world.executor.runs() == 2).await;
    world.executor.end(newest(&world), TurnResult::of(Outcome::Completed));
    until(&world, "the third runs", async |world| world.executor.runs() == 3).await;
    timeout(SOON, world.runtime.shutdown()).await.expect("at once").unwrap();
    let now = world.runtime.store().now();
    let lease = world.execution(newest(&world)).await.lease.unwrap();
    assert!(!lease.is_live(now));
}
