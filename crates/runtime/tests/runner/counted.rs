//! What a turn counts for under a budget when it ends otherwise than by its own report.

use domain::budget::{Amount, LedgerId, Owner, Per, Window};
use domain::outcome::{Outcome, TurnResult};
use domain::route::ActivePolicy;
use domain::scope::EffectiveScope;
use domain::text::{DeliveryId, Unit};
use domain::time::Timestamp;
use runtime::Stage;
use serde_json::json;

use super::budget::budget;
use super::engines::on_each_engine;
use super::world::{World, scope, scope_name};

fn under_a_budget() -> EffectiveScope {
    let budgets = vec![budget("turns", Per::Scope, Window::Life, 9)];
    EffectiveScope { budgets, ..scope(ActivePolicy::Queue, 16) }
}

/// How many turns were counted, and how many are reserved.
async fn turns(world: &World) -> [Amount; 2] {
    let unit = Unit::known("turns");
    let owner = Owner::Scope(scope_name());
    let ledger = LedgerId { owner, unit: unit.clone(), window: Window::Life, start: Timestamp::EPOCH };
    let read = move |tx: &mut dyn domain::store::Snapshot| {
        Ok::<_, domain::store::StoreError>([tx.ledger(&ledger)?, tx.reserved(&unit, None)?])
    };
    world.runtime.store().read("test", read).await.unwrap()
}

#[test]
fn a_turn_that_is_interrupted_counts_and_gives_back_what_it_reserved() {
    on_each_engine(&[under_a_budget()], async |mut world| {
        world.deliver("d-1", "k").await;
        world.run().await;
        assert_eq!(turns(&world).await, [Amount::ZERO, Amount::ONE]);
        let run = world.executions().await[0].clone();
        world.runtime.interrupt(run.work, DeliveryId::known("i-1")).await.unwrap();
        world.run().await;
        assert!(world.execution(run.id).await.state.is_terminal());
        assert_eq!(turns(&world).await, [Amount::ONE, Amount::ZERO]);
    });
}

#[test]
fn a_turn_whose_end_waits_for_its_lane_counts_once() {
    on_each_engine(&[under_a_budget()], async |mut world| {
        world.say("d-1", Some("k"), &json!({"once": true})).await;
        world.run().await;
        let run = world.executions().await[0].clone();
        // Accepted, and not routed when the attempt ends.
        world.say("d-2", Some("k"), &json!({"drop": true})).await;
        world.executor.end(run.id, TurnResult::of(Outcome::Completed));
        world.settle_tasks().await;
        world.stages.complete.step().await.unwrap();
        let known = world.execution(run.id).await;
        assert!(known.outcome.is_some() && known.ended_at.is_none(), "{known:?}");
        assert_eq!(turns(&world).await, [Amount::ONE, Amount::ZERO], "it is counted with its outcome");
        world.run().await;
        assert!(world.execution(run.id).await.ended_at.is_some());
        assert_eq!(turns(&world).await, [Amount::ONE, Amount::ZERO]);
    });
}
