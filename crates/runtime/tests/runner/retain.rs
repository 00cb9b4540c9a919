//! What is kept of runs: content goes with its time, history stays, and a crash in between changes nothing.

use std::sync::Arc;
use std::time::Duration;

use domain::id::{EventId, ExecutionId};
use domain::outcome::Outcome;
use domain::retention::Content;
use domain::route::ActivePolicy;
use domain::scope::{EffectiveScope, Settings};
use domain::store::StoreError;
use domain::text::CallId;
use domain::toolbelt::{Call as ToolCall, Fingerprint, Operation};
use runtime::{Progress, Stage};
use serde_json::json;

use super::budget::on_each_engine;
use super::world::{Call, World, scope};

const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);

/// A scope that keeps the content of so many runs, and of finished Work for so many days.
fn keeps(executions: u32, finished_days: Option<u32>) -> EffectiveScope {
    let usual = scope(ActivePolicy::Queue, 500);
    let settings =
        Settings { kept_executions: executions, kept_finished_days: finished_days, ..usual.settings };
    EffectiveScope { settings, ..usual }
}

/// Runs a standing Work once, and returns what triggered the run.
async fn run_once(world: &mut World, id: &str, key: &str) -> (EventId, ExecutionId) {
    let event = world.deliver(id, key).await;
    world.run().await;
    let run = world.executions().await.last().unwrap().id;
    world.end(run, Outcome::Completed).await;
    (event, run)
}

/// Steps the stage as its loop does: while it advances.
async fn retain(world: &mut World) -> Progress {
    loop {
        let progress = world.stages.retain.step().await.unwrap();
        if progress != Progress::Advanced {
            return progress;
        }
    }
}

/// The stage after time has passed.
async fn later(world: &mut World, by: Duration) {
    world.clock.advance(by);
    world.runtime.claim_loops().await.unwrap();
    retain(world).await;
}

async fn content(world: &World, run: ExecutionId) -> Content {
    world.execution(run).await.content
}

async fn has_body(world: &World, event: EventId) -> bool {
    let read = move |tx: &mut dyn domain::store::Snapshot| {
        let event = tx.event(event)?.expect("history stays");
        Ok::<_, StoreError>(tx.payload(event.sequence)?.is_some())
    };
    world.runtime.store().read("test", read).await.unwrap()
}

fn releases(world: &World) -> Vec<ExecutionId> {
    let released = |call| match call {
        Call::Release(run) => Some(run),
        Call::Run(..)
        | Call::Resume(..)
        | Call::Recover(..)
        | Call::Observe(_)
        | Call::Inject(..)
        | Call::Interrupt(_)
        | Call::Notice(..)
        | Call::Stop(_) => None,
    };
    world.executor.calls().into_iter().filter_map(released).collect()
}

#[test]
fn the_newest_runs_of_a_work_keep_their_content_and_history_stays() {
    on_each_engine(async |mut world| {
        world.apply(keeps(2, Some(1))).await;
        let mut runs = Vec::new();
        for number in 0..4 {
            runs.push(run_once(&mut world, &format!("d-{number}"), "a").await);
        }
        retain(&mut world).await;
        assert_eq!(releases(&world), [], "nothing is looked at before it is a minute old");
        later(&mut world, MINUTE).await;
        assert_eq!(releases(&world), [runs[0].1, runs[1].1]);
        let gone = [Content::Released, Content::Released, Content::Kept, Content::Kept];
        for (number, (event, run)) in runs.iter().enumerate() {
            assert_eq!(content(&world, *run).await, gone[number], "{number}");
            assert_eq!(has_body(&world, *event).await, gone[number] == Content::Kept, "{number}");
            let run = *run;
            let result = world.runtime.store().read("test", move |tx| tx.turn_result(run)).await.unwrap();
            assert!(result.is_some(), "history is never released");
        }
        // Standing Work does not end, so its days are not counted; another run ends, another goes.
        later(&mut world, DAY * 3).await;
        assert_eq!(releases(&world).len(), 2);
        run_once(&mut world, "d-4", "a").await;
        later(&mut world, MINUTE).await;
        later(&mut world, MINUTE).await;
        assert_eq!(releases(&world)[2..], [runs[2].1], "once each");
    });
}

#[test]
fn finished_work_loses_all_its_content_some_days_later() {
    on_each_engine(async |mut world| {
        world.apply(keeps(20, Some(2))).await;
        let event = world.say("d-1", None, &json!({ "fresh": true, "once": true })).await;
        world.run().await;
        let run = world.executions().await.remove(0).id;
        world.end(run, Outcome::Completed).await;
        later(&mut world, MINUTE).await;
        later(&mut world, (DAY * 2).saturating_sub(MINUTE + Duration::from_micros(1))).await;
        assert_eq!(releases(&world), [], "not before");
        later(&mut world, MINUTE).await;
        assert_eq!((releases(&world), content(&world, run).await), (vec![run], Content::Released));
        assert!(!has_body(&world, event).await);
    });
}

#[test]
fn a_work_that_is_cancelled_long_after_its_last_run_is_looked_at_in_its_time() {
    on_each_engine(async |mut world| {
        world.apply(keeps(20, Some(2))).await;
        world.say("d-1", None, &json!({ "fresh": true, "once": true })).await;
        world.run().await;
        let run = world.executions().await.remove(0);
        world.end(run.id, Outcome::Handoff).await;
        later(&mut world, DAY * 9).await;
        world.runtime.cancel(run.work).await.unwrap();
        later(&mut world, DAY).await;
        assert_eq!(releases(&world), [], "its days begin with its end");
        later(&mut world, DAY).await;
        assert_eq!(releases(&world), [run.id]);
    });
}

#[test]
fn a_run_that_goes_on_counts_for_none_and_what_it_repeats_is_kept() {
    on_each_engine(async |mut world| {
        world.apply(keeps(1, None)).await;
        run_once(&mut world, "d-1", "a").await;
        let (event, failed) = run_once(&mut world, "d-2", "a").await;
        world.deliver("d-3", "a").await;
        world.run().await;
        later(&mut world, MINUTE).await;
        assert_eq!(releases(&world).len(), 1);
        assert_eq!((content(&world, failed).await, has_body(&world, event).await), (Content::Kept, true));
    });
}

#[test]
fn what_may_still_run_is_not_touched() {
    on_each_engine(async |mut world| {
        world.apply(keeps(20, Some(1))).await;
        world.say("d-1", None, &json!({ "fresh": true, "once": true })).await;
        world.run().await;
        let run = world.executions().await.remove(0);
        world.executor.cannot_verify_stops(true);
        world.runtime.cancel(run.work).await.unwrap();
        world.runtime.stop_unstopped().await.unwrap();
        later(&mut world, MINUTE).await;
        later(&mut world, DAY).await;
        assert_eq!((releases(&world), content(&world, run.id).await), (vec![], Content::Kept));
        world.executor.cannot_verify_stops(false);
        world.runtime.stop_unstopped().await.unwrap();
        later(&mut world, Duration::from_hours(1)).await;
        assert_eq!(releases(&world), [run.id]);
    });
}

#[test]
fn a_configuration_that_keeps_less_releases_what_is_past_and_one_that_keeps_more_brings_nothing_back() {
    on_each_engine(async |mut world| {
        world.apply(keeps(20, None)).await;
        for number in 0..3 {
            run_once(&mut world, &format!("d-{number}"), "a").await;
        }
        world.say("once", None, &json!({ "fresh": true, "once": true })).await;
        world.run().await;
        let once = world.executions().await.last().unwrap().id;
        world.end(once, Outcome::Completed).await;
        later(&mut world, MINUTE).await;
        assert_eq!(releases(&world), []);
        world.apply(keeps(1, Some(5))).await;
        // Its bell rings.
        retain(&mut world).await;
        later(&mut world, MINUTE).await;
        assert_eq!(releases(&world).len(), 2, "the older runs of the standing Work");
        later(&mut world, DAY * 5).await;
        assert_eq!(releases(&world)[2..], [once]);
        world.apply(keeps(20, None)).await;
        retain(&mut world).await;
        later(&mut world, MINUTE).await;
        assert_eq!(releases(&world).len(), 3);
    });
}

#[tokio::test]
async fn a_crash_between_a_decision_and_its_removal_loses_nothing() {
    let mut world = World::with(keeps(1, None)).await;
    let (event, run) = run_once(&mut world, "d-1", "a").await;
    run_once(&mut world, "d-2", "a").await;
    retain(&mut world).await;
    world.clock.advance(MINUTE);
    // The decision, and then the process is gone.
    assert_eq!(world.stages.retain.step().await.unwrap(), Progress::Advanced);
    assert_eq!((content(&world, run).await, has_body(&world, event).await), (Content::Releasing, true));
    let (store, clock) = (world.runtime.store().clone(), Arc::clone(&world.clock));
    let (executor, texts) = (Arc::clone(&world.executor), world.texts());
    let mut next = World::over(store, clock, executor, texts).await;
    next.executor.cannot_release(true);
    retain(&mut next).await;
    assert_eq!(content(&next, run).await, Content::Releasing, "it is tried again");
    next.executor.cannot_release(false);
    later(&mut next, Duration::from_hours(1)).await;
    assert_eq!((releases(&next), content(&next, run).await), (vec![run, run], Content::Released));
    assert!(!has_body(&next, event).await);
}

#[tokio::test]
async fn much_that_is_due_goes_a_few_at_a_time_and_with_nothing_due_nobody_looks() {
    let mut world = World::with(keeps(1, None)).await;
    for number in 0..150 {
        run_once(&mut world, &format!("d-{number}"), "a").await;
    }
    later(&mut world, MINUTE).await;
    assert_eq!(releases(&world).len(), 149);
    assert_eq!(
        retain(&mut world).await,
        Progress::Idle { due_at: Some(world.runtime.store().now().after(MINUTE)) }
    );
    world.clock.advance(MINUTE);
    assert_eq!(retain(&mut world).await, Progress::Idle { due_at: None }, "it sleeps until something ends");
}

/// Has a run make so many calls, before it ends.
async fn calls(world: &mut World, id: &str, number: i64) -> ExecutionId {
    world.deliver(id, "a").await;
    world.run().await;
    let run = world.executions().await.last().unwrap().id;
    let now = world.runtime.store().now();
    let made = move |tx: &mut dyn domain::store::Tx| {
        (1..=number).try_for_each(|number| {
            tx.insert_call(&ToolCall {
                execution: run,
                id: CallId::known(&format!("c{number}")),
                number,
                operation: Operation::Progress,
                request: Fingerprint::from_number(number),
                answer: b"{}".to_vec(),
                at: now,
            })
        })
    };
    world.runtime.store().transact("test", made).await.unwrap();
    world.end(run, Outcome::Completed).await;
    run
}

#[test]
fn the_calls_of_a_run_go_with_its_content_a_page_at_a_time() {
    on_each_engine(async |mut world| {
        world.apply(keeps(1, Some(1))).await;
        let old = calls(&mut world, "d-1", 300).await;
        let kept = calls(&mut world, "d-2", 3).await;
        let left = async |world: &World, run| {
            world.runtime.store().read("test", move |tx| tx.call(run, &CallId::known("c300"))).await.unwrap()
        };
        assert!(left(&world, old).await.is_some());
        world.clock.advance(MINUTE);
        world.runtime.claim_loops().await.unwrap();
        while content(&world, old).await == Content::Kept {
            assert_eq!(world.stages.retain.step().await.unwrap(), Progress::Advanced);
        }
        assert_eq!(content(&world, old).await, Content::Releasing, "more are left than go at once");
        assert!(left(&world, old).await.is_some());
        retain(&mut world).await;
        assert_eq!((content(&world, old).await, left(&world, old).await), (Content::Released, None));
        let made = world.runtime.store().read("test", move |tx| tx.calls_made(kept)).await.unwrap();
        assert_eq!((content(&world, kept).await, made), (Content::Kept, 3));
    });
}
