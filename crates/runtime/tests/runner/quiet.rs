//! Runs that stand still, and bindings that say themselves how they are tried again.

use std::time::Duration;

use domain::execution::ExecutionState;
use domain::outcome::Outcome;
use domain::retry::{Eligibility, OwnRetry};
use domain::route::ActivePolicy;
use domain::scope::EffectiveScope;
use domain::text::BindingName;
use domain::work::{Queue, WorkState};

use super::engines::on_each_engine;
use super::world::{Call, World, scope};

fn binding(change: impl FnOnce(&mut domain::scope::Binding)) -> EffectiveScope {
    let mut declared = scope(ActivePolicy::Queue, 16);
    change(declared.bindings.get_mut(&BindingName::known("double")).unwrap());
    declared
}

async fn seconds(world: &World, seconds: u64) {
    for _ in 0..seconds {
        tokio::time::advance(Duration::from_secs(1)).await;
        world.settle_tasks().await;
    }
}

async fn quiet_world() -> (World, domain::execution::Execution) {
    let mut world = World::with(binding(|binding| binding.inactivity_seconds = Some(60))).await;
    world.deliver("d-1", "k").await;
    world.run().await;
    let run = world.executions().await.remove(0);
    (world, run)
}

#[tokio::test(start_paused = true)]
async fn a_run_that_stands_still_is_stopped_and_fails_as_inactive() {
    let (mut world, run) = quiet_world().await;
    seconds(&world, 59).await;
    assert!(!world.executor.calls().contains(&Call::Stop(run.id)));
    seconds(&world, 2).await;
    assert!(world.executor.calls().contains(&Call::Stop(run.id)), "its whole tree is stopped");
    world.run().await;
    assert_eq!(world.execution(run.id).await.state, ExecutionState::Failed);
    let result = world.runtime.store().read("test", move |tx| tx.turn_result(run.id)).await.unwrap().unwrap();
    assert_eq!(result.code.as_deref(), Some("inactive"));
}

#[tokio::test(start_paused = true)]
async fn every_sign_of_life_begins_the_count_anew() {
    let (world, run) = quiet_world().await;
    for bytes in 1..5 {
        seconds(&world, 50).await;
        world.executor.write(bytes);
    }
    seconds(&world, 50).await;
    assert!(!world.executor.calls().contains(&Call::Stop(run.id)), "it went on for minutes");
    seconds(&world, 30).await;
    assert!(world.executor.calls().contains(&Call::Stop(run.id)));
}

#[tokio::test(start_paused = true)]
async fn without_the_setting_nobody_minds_silence() {
    let mut world = World::new().await;
    world.deliver("d-1", "k").await;
    world.run().await;
    let run = world.executions().await.remove(0);
    seconds(&world, 3000).await;
    assert!(!world.executor.calls().contains(&Call::Stop(run.id)));
}

#[test]
fn a_binding_s_own_retries_hold_for_standing_work() {
    let own = OwnRetry { attempts: 2, backoff: Duration::from_secs(90) };
    on_each_engine(&[binding(|binding| binding.retry = Some(own))], async |mut world| {
        let event = world.deliver("d-1", "k").await;
        world.run().await;
        let first = world.executions().await.remove(0);
        world.end(first.id, Outcome::Failed).await;
        let work = world.work(first.work).await;
        assert!(matches!(work.eligibility, Eligibility::Backoff { .. }), "{work:?}");
        world.clock.advance(Duration::from_secs(90));
        world.run().await;
        let second = world.executions().await.pop().unwrap();
        assert_eq!(second.retry_of, Some(first.id));
        assert_eq!(
            world.executor.calls().pop(),
            Some(Call::Run(second.id, vec![event])),
            "with what the first had"
        );
        world.end(second.id, Outcome::Failed).await;
        let work = world.work(first.work).await;
        assert_eq!(
            (work.state, &work.queue),
            (WorkState::Ready, &Queue::Idle),
            "its next input is its next attempt"
        );
        world.deliver("d-2", "k").await;
        world.run().await;
        let third = world.executions().await.pop().unwrap();
        assert_eq!((third.retry_of, third.attempt.number()), (None, 3));
        world.end(third.id, Outcome::Failed).await;
        assert!(
            matches!(world.work(first.work).await.eligibility, Eligibility::Backoff { .. }),
            "and begins anew"
        );
    });
}
