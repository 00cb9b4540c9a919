//! Usage limits of credentials: what they hold, across bindings, and that they clear by themselves, on each engine.

use std::sync::Arc;
use std::time::Duration;

use domain::capacity::Blocker;
use domain::credential::{CredentialHold, UsageLimit};
use domain::outcome::{Outcome, TurnResult};
use domain::retry::Eligibility;
use domain::route::ActivePolicy;
use domain::scope::{Binding, EffectiveScope};
use domain::text::{BindingName, CredentialName};
use domain::wait::Registration;
use domain::work::{Queue, WorkState};
use runtime::Stage;
use serde_json::json;

use super::budget::{end, newest, on_each_engine, start};
use super::world::{World, route, scope};

const RESET: Duration = Duration::from_mins(10);
/// Two minutes later it is believed.
const HELD_FOR: Duration = Duration::from_mins(12);
const MICROSECOND: Duration = Duration::from_micros(1);

fn account() -> CredentialName {
    CredentialName::known("claude/team")
}

fn blocker() -> Blocker {
    Blocker::Credential(account())
}

/// A scope with two bindings of one credential, of which the usual one is the first, and one without any.
fn shared(concurrency: u32) -> EffectiveScope {
    let mut declared = scope(ActivePolicy::Queue, concurrency);
    let usual = declared.bindings.values().next().unwrap().clone();
    for (name, credential) in [("double", Some(account())), ("same", Some(account())), ("other", None)] {
        let name = BindingName::known(name);
        let binding = Binding { name: name.clone(), credential, ..usual.clone() };
        declared.bindings.insert(name.clone(), binding);
        if name != usual.name {
            let mut by = route(name.as_str(), ActivePolicy::Queue, &json!({ "only": name.as_str() }));
            by.binding = Some(name);
            declared.routes.insert(0, by);
        }
    }
    declared
}

fn limited(outcome: Outcome) -> TurnResult {
    let usage_limit = Some(UsageLimit { resets_in_seconds: Some(RESET.as_secs()) });
    TurnResult { usage_limit, ..TurnResult::of(outcome) }
}

async fn hold(world: &World) -> Option<CredentialHold> {
    world.runtime.store().read("test", |tx| tx.credential_hold(&account())).await.unwrap()
}

async fn advance(world: &mut World, by: Duration) {
    world.clock.advance(by);
    world.runtime.claim_loops().await.unwrap();
    world.runtime.renew().await.unwrap();
    world.run().await;
}

/// Has a run end that says that the account is used up.
async fn use_up(world: &mut World) {
    start(world, "d-0", "first").await;
    let run = newest(world, "first").await.id;
    end(world, run, limited(Outcome::Completed)).await;
}

#[test]
fn a_usage_limit_holds_every_start_by_its_credential_until_its_reset() {
    on_each_engine(async |mut world| {
        world.apply(shared(16)).await;
        use_up(&mut world).await;
        let now = world.runtime.store().now();
        let first = newest(&world, "first").await;
        let expected = CredentialHold {
            credential: account(),
            until: now.after(HELD_FOR),
            since: now,
            reported_by: first.id,
        };
        assert_eq!(hold(&world).await, Some(expected));
        for (key, by) in [("a", "double"), ("b", "same"), ("c", "other")] {
            world.say(key, Some(key), &json!({ "for": by })).await;
            world.run().await;
        }
        for key in ["a", "b"] {
            let work = world.owner(key).await.unwrap();
            assert_eq!((&work.queue, &work.hold), (&Queue::Blocked(blocker()), &None), "{key}");
        }
        assert_eq!(newest(&world, "c").await.binding, BindingName::known("other"));
        let runnable = world.runtime.store().read("test", |tx| tx.count_runnable(9)).await.unwrap();
        assert_eq!((world.executor.runs(), runnable), (2, 0), "nothing walks past what waits");
        let other = newest(&world, "c").await.id;
        end(&mut world, other, TurnResult::of(Outcome::Completed)).await;
        advance(&mut world, HELD_FOR.saturating_sub(MICROSECOND)).await;
        assert_eq!(world.executor.runs(), 2, "not before");
        advance(&mut world, MICROSECOND).await;
        assert_eq!((world.executor.runs(), hold(&world).await), (4, None), "it clears by itself");
        assert_eq!(newest(&world, "b").await.credential, Some(account()));
    });
}

#[test]
fn a_run_says_for_which_credential_its_start_waited_and_how_long() {
    on_each_engine(async |mut world| {
        world.apply(shared(16)).await;
        use_up(&mut world).await;
        advance(&mut world, Duration::from_secs(20)).await;
        start(&mut world, "d-1", "a").await;
        let since = world.runtime.store().now();
        advance(&mut world, HELD_FOR.saturating_sub(Duration::from_secs(20))).await;
        let run = newest(&world, "a").await;
        let runtime = world.runtime.clone();
        let waited = move |run| {
            let store = runtime.store().clone();
            async move {
                store.read("test", move |tx| runtime::why::why(tx, run)).await.unwrap().unwrap().credentials
            }
        };
        let told = waited(run.id).await;
        assert_eq!(told.len(), 1);
        assert_eq!((&told[0].wait.credential, told[0].wait.since, told[0].over), (&account(), since, true));
        assert_eq!(told[0].until, Some(since.after(HELD_FOR.saturating_sub(Duration::from_secs(20)))));
        // A start that waits for nothing says nothing, and what the next one waits for is its own.
        assert_eq!(waited(newest(&world, "first").await.id).await, []);
        end(&mut world, run.id, limited(Outcome::Completed)).await;
        start(&mut world, "d-2", "a").await;
        assert_eq!(waited(run.id).await, told);
        let next = world.owner("a").await.unwrap();
        let (id, attempt) = (next.id, next.attempts + 1);
        let open =
            world.runtime.store().read("test", move |tx| tx.credential_waits(id, attempt, 9)).await.unwrap();
        assert_eq!((open.len(), open[0].until), (1, None));
        // Another account lets it go at once, and then it waited until it began.
        advance(&mut world, Duration::from_secs(5)).await;
        let mut other = shared(16);
        for binding in other.bindings.values_mut() {
            binding.credential = Some(CredentialName::known("other"));
        }
        world.apply(other).await;
        world.run().await;
        let begun = newest(&world, "a").await;
        assert_ne!(begun.id, run.id);
        let told = waited(begun.id).await;
        assert_eq!((told[0].over, told[0].until), (true, Some(begun.claimed_at)));
    });
}

#[test]
fn another_limit_that_is_met_meanwhile_holds_for_longer() {
    on_each_engine(async |mut world| {
        world.apply(shared(16)).await;
        start(&mut world, "d-1", "late").await;
        use_up(&mut world).await;
        start(&mut world, "d-2", "a").await;
        world.clock.advance(Duration::from_secs(20));
        let late = newest(&world, "late").await.id;
        end(&mut world, late, limited(Outcome::Completed)).await;
        advance(&mut world, HELD_FOR.saturating_sub(Duration::from_secs(20))).await;
        assert_eq!(world.executor.runs(), 2, "the first reset is past");
        advance(&mut world, Duration::from_secs(20)).await;
        assert_eq!((world.executor.runs(), hold(&world).await), (3, None));
    });
}

#[test]
fn a_parked_run_goes_on_after_the_reset_of_the_credential_it_is_pinned_to() {
    on_each_engine(async |mut world| {
        world.apply(shared(16)).await;
        world.executor.can_resume(true);
        start(&mut world, "d-1", "a").await;
        let run = newest(&world, "a").await;
        let wait = Registration { timeout_seconds: Some(9), ..Registration::default() };
        end(&mut world, run.id, TurnResult::waiting(wait)).await;
        use_up(&mut world).await;
        // Its binding names no account any more, and the attempt does.
        let mut changed = shared(16);
        for binding in changed.bindings.values_mut() {
            binding.credential = None;
        }
        world.apply(changed).await;
        advance(&mut world, Duration::from_secs(9)).await;
        let woken = world.work(run.work).await;
        assert!(matches!(woken.eligibility, Eligibility::Woken { resumes: Some(_), .. }), "{woken:?}");
        assert_eq!(woken.queue, Queue::Blocked(blocker()));
        advance(&mut world, HELD_FOR).await;
        assert_eq!(world.work(run.work).await.state, WorkState::Running { execution: run.id });
    });
}

#[test]
fn a_run_that_fails_at_a_limit_is_tried_again_after_its_reset() {
    on_each_engine(async |mut world| {
        world.apply(shared(16)).await;
        // Once, so that its failures count.
        world.say("d-1", None, &json!({ "fresh": true, "once": true })).await;
        world.run().await;
        let run = world.executions().await.remove(0);
        let now = world.runtime.store().now();
        end(&mut world, run.id, limited(Outcome::Failed)).await;
        let waits = world.work(run.work).await.eligibility;
        assert_eq!(waits, Eligibility::Backoff { failed: run.id, due_at: now.after(HELD_FOR) });
        advance(&mut world, HELD_FOR).await;
        assert_eq!(world.executions().await.last().unwrap().retry_of, Some(run.id));
    });
}

#[test]
fn a_configuration_that_names_another_account_lets_go_what_waits() {
    on_each_engine(async |mut world| {
        world.apply(shared(16)).await;
        use_up(&mut world).await;
        start(&mut world, "d-1", "a").await;
        world.apply(shared(16)).await;
        world.run().await;
        assert_eq!(
            world.owner("a").await.unwrap().queue,
            Queue::Blocked(blocker()),
            "the same lets nothing go"
        );
        let mut changed = shared(16);
        for binding in changed.bindings.values_mut() {
            binding.credential = Some(CredentialName::known("another"));
        }
        world.apply(changed).await;
        world.run().await;
        assert_eq!(world.executor.runs(), 2);
    });
}

#[tokio::test]
async fn a_binding_without_a_credential_holds_nobody() {
    let mut world = World::with(scope(ActivePolicy::Queue, 16)).await;
    use_up(&mut world).await;
    start(&mut world, "d-1", "a").await;
    let holds = world.runtime.store().read("test", |tx| tx.credential_holds(None, 9)).await.unwrap();
    assert_eq!((world.executor.runs(), holds.len()), (2, 0));
}

#[tokio::test]
async fn everybody_comes_back_a_few_at_a_time_and_after_a_restart() {
    const WORKS: usize = 150;
    let mut world = World::with(shared(500)).await;
    use_up(&mut world).await;
    for number in 0..WORKS {
        let key = format!("k-{number}");
        start(&mut world, &key, &key).await;
    }
    let waiting = |world: &World| {
        let store = world.runtime.store().clone();
        async move { store.read("test", |tx| tx.blocked(&blocker(), 1000)).await.unwrap().len() }
    };
    assert_eq!(waiting(&world).await, WORKS);
    world.clock.advance(HELD_FOR);
    // One step brings some of them back, and then the process is gone.
    world.stages.wake.step().await.unwrap();
    let left = waiting(&world).await;
    assert!((1..WORKS).contains(&left), "{left}");
    assert!(hold(&world).await.is_some(), "it is there as long as somebody waits");
    let (store, clock, executor, texts) =
        (world.runtime.store().clone(), Arc::clone(&world.clock), Arc::clone(&world.executor), world.texts());
    let mut next = World::over(store, clock, executor, texts).await;
    next.run().await;
    assert_eq!((waiting(&next).await, hold(&next).await), (0, None));
    assert_eq!(next.executor.runs(), WORKS + 1);
}
