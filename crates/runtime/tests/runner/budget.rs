//! Budgets: what is counted, what is held and by what it is let go, on each engine.

use std::sync::Arc;
use std::time::Duration;

use domain::budget::{Amount, Budget, LedgerId, Owner, Per, Window};
use domain::capacity::Blocker;
use domain::execution::Execution;
use domain::id::{ExecutionId, WorkId};
use domain::outcome::{Outcome, TurnResult, Usage};
use domain::route::{ActivePolicy, CheckpointOutcome};
use domain::scope::EffectiveScope;
use domain::text::{ScopeName, Unit};
use domain::time::Timestamp;
use domain::timer::TimerKind;
use domain::wait::Registration;
use domain::work::{HoldReason, Queue, Work, WorkRefusal, WorkState};
use runtime::{ControlError, Stage};
use serde_json::json;
use store::{Location, Options};

use super::server::on_database;
use super::world::{Double, HandClock, World, open, route, scope, scope_name};

const DAY: Duration = Duration::from_hours(24);

pub(super) fn whole(units: i64) -> Amount {
    Amount::of_thousandths(units * 1000)
}

pub(super) fn budget(unit: &str, per: Per, window: Window, limit: i64) -> Budget {
    Budget { unit: Unit::known(unit), per, window, limit: whole(limit), warning_percent: 80 }
}

pub(super) fn under(budgets: impl Into<Vec<Budget>>) -> EffectiveScope {
    EffectiveScope { budgets: budgets.into(), ..scope(ActivePolicy::Queue, 16) }
}

/// Runs a scenario over SQLite and over PostgreSQL.
pub(super) fn on_each_engine(scenario: impl AsyncFn(World)) {
    let rt = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    rt.block_on(async {
        let clock = HandClock::new();
        let store = open(&Location::Memory, &clock).await;
        scenario(World::over(store, clock, Arc::default(), Arc::default()).await).await;
    });
    on_database(async |dsn| {
        let clock = HandClock::new();
        let options = Options { clock: clock.shared(), own_time: true, inline: true, ..Options::default() };
        let store = store::open(&Location::Postgres(dsn.to_owned()), options).await.unwrap();
        let world = World::over(store, clock, Arc::<Double>::default(), Arc::default()).await;
        world.runtime.claim_loops().await.unwrap();
        scenario(world).await;
    });
}

pub(super) fn used(outcome: Outcome, usd: i64) -> TurnResult {
    let usage = vec![Usage { unit: "usd".to_owned(), thousandths: usd * 1000 }];
    TurnResult { usage, ..TurnResult::of(outcome) }
}

pub(super) async fn end(world: &mut World, execution: ExecutionId, result: TurnResult) {
    world.executor.end(execution, result);
    world.settle_tasks().await;
    world.run().await;
}

/// The newest attempt of the Work of a key.
pub(super) async fn newest(world: &World, key: &str) -> Execution {
    let work = world.owner(key).await.expect("it was routed").id;
    let executions = world.executions().await;
    executions.into_iter().rev().find(|execution| execution.work == work).expect("it was started")
}

/// What a ledger of today, or of all time, holds.
pub(super) async fn ledger(world: &World, owner: Owner, unit: &str, window: Window) -> Amount {
    let id =
        LedgerId { owner, unit: Unit::known(unit), window, start: window.start(world.runtime.store().now()) };
    world.runtime.store().read("test", move |tx| tx.ledger(&id)).await.unwrap()
}

pub(super) async fn start(world: &mut World, id: &str, key: &str) {
    world.deliver(id, key).await;
    world.run().await;
}

pub(super) async fn next_day(world: &World) {
    world.clock.advance(DAY);
    // Nobody has renewed the loops meanwhile.
    world.runtime.claim_loops().await.unwrap();
}

pub(super) fn is_held(work: &Work) -> bool {
    work.hold.as_ref().is_some_and(|hold| hold.because == HoldReason::Budget)
        && work.queue == Queue::Blocked(Blocker::Held(scope_name()))
}

#[test]
fn use_is_added_up_per_work_per_scope_and_over_all_whatever_the_outcome() {
    on_each_engine(async |mut world| {
        let mut budgets = Vec::new();
        for unit in ["usd", "turns", "attempts"] {
            for (per, window) in
                [(Per::Work, Window::Life), (Per::Scope, Window::Day), (Per::All, Window::Week)]
            {
                budgets.push(budget(unit, per, window, 1000));
            }
        }
        world.apply(under(budgets)).await;
        world.executor.can_resume(true);
        let outcomes = [Outcome::Completed, Outcome::Handoff, Outcome::Failed];
        for (number, outcome) in outcomes.into_iter().enumerate() {
            start(&mut world, &format!("d-{number}"), "a").await;
            let run = newest(&world, "a").await.id;
            end(&mut world, run, used(outcome, 2)).await;
        }
        // A turn that waits, the one that goes on from there, and one that is cancelled.
        start(&mut world, "d-3", "a").await;
        let run = newest(&world, "a").await.id;
        let wait = Registration { timeout_seconds: Some(9), ..Registration::default() };
        let waits = TurnResult { usage: used(Outcome::Failed, 3).usage, ..TurnResult::waiting(wait) };
        end(&mut world, run, waits).await;
        world.clock.advance(Duration::from_secs(9));
        world.runtime.renew().await.unwrap();
        world.run().await;
        end(&mut world, run, used(Outcome::Handoff, 4)).await;
        start(&mut world, "d-4", "b").await;
        let (a, b) = (world.owner("a").await.unwrap().id, world.owner("b").await.unwrap().id);
        world.runtime.cancel(b).await.unwrap();
        world.run().await;
        let sums = [("usd", 13, 0), ("turns", 5, 1), ("attempts", 4, 1)];
        for (unit, of_a, of_b) in sums {
            let owners = [
                (Owner::Work(a), Window::Life, of_a),
                (Owner::Work(b), Window::Life, of_b),
                (Owner::Scope(scope_name()), Window::Day, of_a + of_b),
                (Owner::All, Window::Week, of_a + of_b),
            ];
            for (owner, window, sum) in owners {
                assert_eq!(ledger(&world, owner.clone(), unit, window).await, whole(sum), "{unit} {owner}");
            }
        }
        // Another day is another ledger.
        next_day(&world).await;
        let today = ledger(&world, Owner::Scope(scope_name()), "usd", Window::Day).await;
        assert_eq!(today, Amount::ZERO);
    });
}

#[test]
fn a_turn_does_not_start_at_the_limit_and_its_input_queues() {
    on_each_engine(async |mut world| {
        world.apply(under([budget("usd", Per::Scope, Window::Day, 5)])).await;
        start(&mut world, "d-1", "a").await;
        let run = newest(&world, "a").await.id;
        end(&mut world, run, used(Outcome::Completed, 5)).await;
        let late = world.deliver("d-2", "a").await;
        world.run().await;
        let later = world.deliver("d-3", "a").await;
        start(&mut world, "d-4", "b").await;
        let held = world.owner("a").await.unwrap();
        assert!(is_held(&held), "{held:?}");
        assert_eq!(held.state, WorkState::Ready);
        let reason = held.hold.clone().unwrap().reason;
        assert_eq!(reason, "the budget of usd per scope a day is used up: 5 of 5 usd");
        assert_eq!(world.pending(held.id).await, [late, later], "its input queues");
        assert!(is_held(&world.owner("b").await.unwrap()), "whoever it is");
        let runnable = world.runtime.store().read("test", |tx| tx.count_runnable(9)).await.unwrap();
        assert_eq!((world.executor.runs(), runnable), (1, 0), "nothing walks past what is held");
        // The same configuration does not let it go on.
        world.apply(under([budget("usd", Per::Scope, Window::Day, 5)])).await;
        world.run().await;
        assert!(is_held(&world.owner("a").await.unwrap()));
    });
}

#[test]
fn a_release_lets_one_more_turn_through() {
    on_each_engine(async |mut world| {
        world.apply(under([budget("turns", Per::Work, Window::Life, 1)])).await;
        for turn in 1..4 {
            start(&mut world, &format!("d-{turn}"), "a").await;
            let work = world.owner("a").await.unwrap();
            if turn > 1 {
                assert!(is_held(&work), "turn {turn}");
                world.runtime.release(work.id).await.unwrap();
                world.run().await;
            }
            let run = newest(&world, "a").await;
            assert_eq!(run.attempt.number(), turn);
            assert!(!world.work(work.id).await.let_through, "it is used up with the turn");
            end(&mut world, run.id, TurnResult::of(Outcome::Completed)).await;
        }
        let work = world.owner("a").await.unwrap();
        let again = world.runtime.release(work.id).await;
        assert!(matches!(again, Err(ControlError::Refused(WorkRefusal::NotHeld))), "{again:?}");
        let total = ledger(&world, Owner::Work(work.id), "turns", Window::Life).await;
        assert_eq!(total, whole(3), "what is let through counts");
    });
}

/// A world whose Work `a` is held by a budget of one turn.
async fn held(mut world: World) -> (World, Work) {
    world.apply(under([budget("turns", Per::Scope, Window::Day, 1)])).await;
    start(&mut world, "d-1", "a").await;
    let run = newest(&world, "a").await.id;
    end(&mut world, run, TurnResult::of(Outcome::Completed)).await;
    start(&mut world, "d-2", "a").await;
    let work = world.owner("a").await.unwrap();
    assert!(is_held(&work));
    (world, work)
}

#[test]
fn a_raised_limit_lifts_its_hold_and_lets_nothing_else_through() {
    on_each_engine(async |world| {
        let (mut world, work) = held(world).await;
        world.apply(under([budget("turns", Per::Scope, Window::Day, 2)])).await;
        let lifted = world.work(work.id).await;
        assert_eq!((lifted.hold, lifted.let_through), (None, false));
        assert!(timers(&world, work.id).await.is_empty(), "what was to look again is gone with the hold");
        world.run().await;
        assert_eq!(world.executor.runs(), 2);
        let run = newest(&world, "a").await.id;
        end(&mut world, run, TurnResult::of(Outcome::Completed)).await;
        start(&mut world, "d-3", "a").await;
        assert!(is_held(&world.work(work.id).await), "the raised limit holds too");
        world.apply(under([])).await;
        world.run().await;
        assert_eq!(world.executor.runs(), 3, "without a budget nothing is held by one");
    });
}

/// What will look at a Work again, and when.
async fn timers(world: &World, work: WorkId) -> Vec<(TimerKind, Timestamp)> {
    let timers = world.runtime.store().read("test", move |tx| tx.timers_of(work, 9)).await.unwrap();
    timers.into_iter().map(|timer| (timer.kind, timer.due_at)).collect()
}

#[test]
fn a_hold_of_a_day_or_a_week_ends_with_it() {
    on_each_engine(async |mut world| {
        let at = |text| Timestamp::parse(text).unwrap();
        // From a Sunday to a Monday.
        next_day(&world).await;
        let day = |limit| budget("turns", Per::Scope, Window::Day, limit);
        let week = budget("turns", Per::Scope, Window::Week, 2);
        world.apply(under([day(1), week.clone()])).await;
        for (number, key) in [(1, "a"), (2, "a"), (3, "b")] {
            start(&mut world, &format!("d-{number}"), key).await;
            if number == 1 {
                let run = newest(&world, key).await.id;
                end(&mut world, run, TurnResult::of(Outcome::Completed)).await;
            }
        }
        let (a, b) = (world.owner("a").await.unwrap(), world.owner("b").await.unwrap());
        assert!(is_held(&a) && is_held(&b));
        let midnight = at("2026-03-03T00:00:00Z");
        assert_eq!(timers(&world, a.id).await, [(TimerKind::BudgetWindow, midnight)]);
        let next = midnight.since(world.runtime.store().now());
        world.clock.advance(next.saturating_sub(Duration::from_micros(1)));
        world.runtime.claim_loops().await.unwrap();
        world.run().await;
        assert!(is_held(&world.work(a.id).await), "not before");
        world.clock.advance(Duration::from_micros(1));
        world.run().await;
        // One of them fits into the day, and the other waits for the week now.
        let run = newest(&world, "a").await;
        assert_eq!((world.executor.runs(), run.attempt.number()), (2, 2), "whoever waited longest");
        assert_eq!(world.owner("b").await.unwrap().queue, Queue::Blocked(Blocker::Reserved(scope_name())));
        end(&mut world, run.id, TurnResult::of(Outcome::Completed)).await;
        let held = world.work(b.id).await;
        assert!(is_held(&held));
        assert_eq!(timers(&world, b.id).await, [(TimerKind::BudgetWindow, at("2026-03-04T00:00:00Z"))]);
        next_day(&world).await;
        world.run().await;
        let held = world.work(b.id).await;
        assert!(is_held(&held), "the week is used up as well");
        assert!(held.hold.unwrap().reason.starts_with("the budget of turns per scope a week is used up"));
        assert_eq!(timers(&world, b.id).await, [(TimerKind::BudgetWindow, at("2026-03-09T00:00:00Z"))]);
        for _ in 0..6 {
            next_day(&world).await;
        }
        world.run().await;
        assert_eq!((world.executor.runs(), newest(&world, "b").await.attempt.number()), (3, 1));
        assert!(timers(&world, b.id).await.is_empty());
    });
}

#[test]
fn what_looks_again_at_a_hold_ends_with_it_and_outlives_an_operator_s_retry() {
    on_each_engine(async |world| {
        let (mut world, work) = held(world).await;
        let armed = timers(&world, work.id).await;
        assert_eq!(armed.len(), 1);
        // There has to be something to repeat.
        world.runtime.release(work.id).await.unwrap();
        assert!(timers(&world, work.id).await.is_empty(), "released");
        world.run().await;
        let run = newest(&world, "a").await.id;
        end(&mut world, run, TurnResult::failed("exit_status", "the test says so")).await;
        start(&mut world, "d-3", "a").await;
        world.runtime.retry(work.id, domain::text::DeliveryId::known("again")).await.unwrap();
        world.run().await;
        assert!(is_held(&world.work(work.id).await), "what is tried again is under the budget");
        assert_eq!(timers(&world, work.id).await, armed);
        world.runtime.retry(work.id, domain::text::DeliveryId::known("again-2")).await.unwrap();
        assert!(is_held(&world.work(work.id).await));
        assert_eq!(timers(&world, work.id).await, armed, "what looks again is no timer of the retry");
        world.runtime.cancel(work.id).await.unwrap();
        assert!(timers(&world, work.id).await.is_empty(), "cancelled");
    });
}

#[test]
fn a_budget_for_life_is_not_looked_at_again_and_one_that_takes_its_place_is() {
    on_each_engine(async |mut world| {
        world.apply(under([budget("turns", Per::Scope, Window::Life, 1)])).await;
        start(&mut world, "d-1", "a").await;
        let run = newest(&world, "a").await.id;
        end(&mut world, run, TurnResult::of(Outcome::Completed)).await;
        start(&mut world, "d-2", "a").await;
        let work = world.owner("a").await.unwrap();
        assert!(is_held(&work) && timers(&world, work.id).await.is_empty());
        // What is counted of a day begins with its budget, so somebody has to use that up first.
        let day = budget("turns", Per::Scope, Window::Day, 1);
        world.apply(under([budget("turns", Per::Scope, Window::Life, 2), day.clone()])).await;
        world.run().await;
        let run = newest(&world, "a").await.id;
        end(&mut world, run, TurnResult::of(Outcome::Completed)).await;
        start(&mut world, "d-3", "a").await;
        assert!(is_held(&world.work(work.id).await));
        world.apply(under([day])).await;
        let held = world.work(work.id).await;
        assert!(held.hold.unwrap().reason.starts_with("the budget of turns per scope a day"), "it says so");
        assert_eq!(timers(&world, work.id).await.len(), 1);
        next_day(&world).await;
        world.run().await;
        assert_eq!(world.executor.runs(), 3);
    });
}

#[test]
fn several_first_turns_at_once_cannot_go_past_a_limit() {
    on_each_engine(async |mut world| {
        world.apply(under([budget("usd", Per::Scope, Window::Life, 10)])).await;
        for key in ["a", "b", "c", "d"] {
            start(&mut world, key, key).await;
        }
        assert_eq!(world.executor.runs(), 1, "what it may use is not known, so it may be all");
        let waiting = world.owner("b").await.unwrap();
        assert_eq!(
            (&waiting.hold, &waiting.queue),
            (&None, &Queue::Blocked(Blocker::Reserved(scope_name())))
        );
        let run = newest(&world, "a").await.id;
        end(&mut world, run, used(Outcome::Completed, 4)).await;
        assert_eq!(world.executor.runs(), 3, "then it is: four and the two that are left");
    });
}

#[test]
fn release_raise_and_cancel_agree_in_every_order() {
    let orders = [
        "release raise",
        "raise release",
        "release cancel",
        "cancel release",
        "cancel raise",
        "raise cancel",
    ];
    on_each_engine(async |mut world| {
        for order in orders {
            let key = order.replace(' ', "-");
            world.apply(under([budget("turns", Per::Work, Window::Life, 1)])).await;
            start(&mut world, &format!("{key}-1"), &key).await;
            let run = newest(&world, &key).await.id;
            end(&mut world, run, TurnResult::of(Outcome::Completed)).await;
            start(&mut world, &format!("{key}-2"), &key).await;
            let work = world.owner(&key).await.unwrap();
            assert!(is_held(&work), "{order}");
            let before = world.executor.runs();
            let mut refusals = Vec::new();
            for step in order.split(' ') {
                match step {
                    "release" => refusals.extend(world.runtime.release(work.id).await.err()),
                    "cancel" => refusals.extend(world.runtime.cancel(work.id).await.err()),
                    _raise => world.apply(under([budget("turns", Per::Work, Window::Life, 9)])).await,
                }
            }
            world.run().await;
            let now = world.work(work.id).await;
            let is_cancelled = order.contains("cancel");
            assert_eq!(now.state == WorkState::Cancelled, is_cancelled, "{order}");
            assert_eq!((now.hold.clone(), now.let_through), (None, false), "{order}: {now:?}");
            assert_eq!(world.executor.runs() - before, usize::from(!is_cancelled), "{order}");
            let refused = matches!(order, "raise release" | "cancel release");
            assert_eq!(refusals.len(), usize::from(refused), "{order}: {refusals:?}");
        }
    });
}

#[test]
fn a_crossing_is_a_root_event_once_and_never_input_of_its_own_work() {
    on_each_engine(async |mut world| {
        let mut declared = under([budget("usd", Per::Scope, Window::Day, 10)]);
        let types = ["core.budget.warning", "core.budget.exceeded"];
        // One route leads back to the Work that crossed it, one to another.
        let own = route("own", ActivePolicy::Queue, &json!({"types": [types[0]], "other": "a"}));
        let other = route("other", ActivePolicy::Queue, &json!({"types": [types[1]], "other": "watch"}));
        declared.routes.splice(0..0, [own, other]);
        world.apply(declared.clone()).await;
        for (number, usd) in [7, 2, 2].into_iter().enumerate() {
            start(&mut world, &format!("d-{number}"), "a").await;
            let run = newest(&world, "a").await.id;
            end(&mut world, run, used(Outcome::Completed, usd)).await;
        }
        let a = world.owner("a").await.unwrap();
        for (event_type, sum) in types.into_iter().zip(["9", "11"]) {
            let events = world.events(event_type).await;
            assert_eq!(events.len(), 1, "{event_type}");
            let event = &events[0];
            assert_eq!((event.causation.parent, event.causation.depth), (None, 0), "it begins a chain");
            assert_eq!((event.work, &event.scope), (Some(a.id), &scope_name()));
            let sequence = event.sequence;
            let body =
                world.runtime.store().read("test", move |tx| tx.payload(sequence)).await.unwrap().unwrap();
            let body: serde_json::Value = serde_json::from_slice(body.as_bytes()).unwrap();
            assert_eq!(
                (&body["used"], &body["limit"], &body["unit"]),
                (&json!(sum), &json!("10"), &json!("usd"))
            );
        }
        let warning = world.events(types[0]).await.remove(0);
        assert_eq!(world.outcome(warning.id).await, Some(CheckpointOutcome::Dropped));
        assert!(world.pending(a.id).await.is_empty(), "it is no news to the Work that caused it");
        let exceeded = world.events(types[1]).await.remove(0);
        assert_eq!(world.outcome(exceeded.id).await, Some(CheckpointOutcome::Routed));
        let watch = world.owner("watch").await.expect("a route acts on it");
        assert_eq!(world.pending(watch.id).await, [exceeded.id]);
        assert!(is_held(&watch), "and the budget holds for that too");
        // A limit that comes down to what is used is crossed by that, and a raised one can be crossed again.
        declared.budgets = vec![budget("usd", Per::Scope, Window::Day, 9)];
        world.apply(declared.clone()).await;
        start(&mut world, "low", "b").await;
        assert_eq!(world.events(types[1]).await.len(), 2);
        start(&mut world, "low-again", "c").await;
        assert_eq!(world.events(types[1]).await.len(), 2, "once");
    });
}

#[test]
fn reservations_of_others_defer_a_start_and_never_hold_it() {
    on_each_engine(async |mut world| {
        world.apply(under([budget("usd", Per::Scope, Window::Life, 10)])).await;
        // What a turn of this kind uses is known from one that ended.
        start(&mut world, "d-0", "a").await;
        let run = newest(&world, "a").await.id;
        end(&mut world, run, used(Outcome::Completed, 3)).await;
        for number in 1..7 {
            start(&mut world, &format!("d-{number}"), &format!("k-{number}")).await;
        }
        let reserved = async |world: &World| {
            world.runtime.store().read("test", |tx| tx.reserved(&Unit::known("usd"), None)).await.unwrap()
        };
        // Seven are left: three, three and the one that is left then.
        assert_eq!((world.executor.runs(), reserved(&world).await), (4, whole(7)));
        let waiting = world.owner("k-4").await.unwrap();
        assert_eq!(
            (&waiting.hold, &waiting.queue),
            (&None, &Queue::Blocked(Blocker::Reserved(scope_name())))
        );
        // One that used less than it reserved makes room for the one that waited longest.
        let first = newest(&world, "k-1").await.id;
        end(&mut world, first, used(Outcome::Completed, 1)).await;
        assert_eq!((world.executor.runs(), newest(&world, "k-4").await.work), (5, waiting.id));
        assert_eq!(reserved(&world).await, whole(6), "four are used");
        // So does one that is cancelled.
        let second = world.owner("k-2").await.unwrap();
        world.runtime.cancel(second.id).await.unwrap();
        world.run().await;
        assert_eq!((world.executor.runs(), newest(&world, "k-5").await.attempt.number()), (6, 1));
        // One that uses the rest up turns a deferral into a hold.
        let third = newest(&world, "k-3").await.id;
        end(&mut world, third, used(Outcome::Completed, 6)).await;
        let held = world.owner("k-6").await.unwrap();
        assert!(is_held(&held), "{held:?}");
        let left = world.runtime.store().read("test", |tx| tx.blockers(9)).await.unwrap();
        assert_eq!(left, [(Blocker::Held(scope_name()), 1)]);
    });
}

#[test]
fn a_budget_over_all_scopes_counts_and_defers_across_them() {
    on_each_engine(async |mut world| {
        let other = ScopeName::known("other");
        let main = under([budget("turns", Per::All, Window::Day, 2)]);
        let elsewhere = |budgets: Vec<Budget>| EffectiveScope {
            name: other.clone(),
            lineage: vec![other.clone()],
            ..under(budgets)
        };
        world.apply_all(vec![main.clone(), elsewhere(Vec::new())]).await;
        let there = async |world: &mut World, id: &str, key: &str| {
            let delivery = world.delivery(id, Some(key), &json!({}));
            world.accept(domain::delivery::Delivery { scope: other.clone(), ..delivery }).await.unwrap();
            world.run().await;
        };
        // The other scope has no budget, and its turns count all the same.
        there(&mut world, "d-1", "x").await;
        let run = newest(&world, "x").await.id;
        end(&mut world, run, TurnResult::of(Outcome::Completed)).await;
        assert_eq!(ledger(&world, Owner::All, "turns", Window::Day).await, whole(1));
        let both = vec![main.clone(), elsewhere(main.budgets.clone())];
        world.apply_all(both).await;
        there(&mut world, "d-2", "x").await;
        start(&mut world, "d-3", "a").await;
        let deferred = world.owner("a").await.unwrap();
        assert_eq!(deferred.queue, Queue::Blocked(Blocker::ReservedOverall));
        let run = newest(&world, "x").await.id;
        end(&mut world, run, TurnResult::of(Outcome::Completed)).await;
        assert!(is_held(&world.owner("a").await.unwrap()), "the other scope's turn used it up");
    });
}

#[tokio::test]
async fn what_was_offered_to_one_that_cannot_start_goes_to_the_next() {
    for cancelled in [false, true] {
        let mut declared = under([budget("usd", Per::Scope, Window::Life, 12)]);
        let mut gone = route("gone", ActivePolicy::Queue, &json!({"only": "gone"}));
        gone.binding = Some(domain::text::BindingName::known("gone"));
        declared.routes.insert(0, gone);
        let mut world = World::with(declared).await;
        start(&mut world, "d-0", "a").await;
        let run = newest(&world, "a").await.id;
        end(&mut world, run, used(Outcome::Completed, 4)).await;
        // Two reserve four each, and two more wait, the first of them by a binding that is not there.
        let says =
            [("k-1", json!({})), ("k-2", json!({})), ("k-3", json!({"for": "gone"})), ("k-4", json!({}))];
        for (key, says) in says {
            world.say(key, Some(key), &says).await;
            world.run().await;
        }
        let first = world.owner("k-3").await.unwrap();
        assert_eq!(first.queue, Queue::Blocked(Blocker::Reserved(scope_name())));
        let run = newest(&world, "k-1").await.id;
        world.executor.end(run, used(Outcome::Completed, 0));
        world.settle_tasks().await;
        world.stages.complete.step().await.unwrap();
        assert_eq!(world.work(first.id).await.queue, Queue::Runnable, "it waited longest");
        if cancelled {
            world.runtime.cancel(first.id).await.unwrap();
        }
        world.run().await;
        assert_eq!(newest(&world, "k-4").await.attempt.number(), 1, "cancelled: {cancelled}");
    }
}

#[tokio::test]
async fn a_lost_run_keeps_its_reservation_until_it_ends() {
    let mut world = World::with(under([budget("turns", Per::Scope, Window::Life, 1)])).await;
    start(&mut world, "d-1", "a").await;
    start(&mut world, "d-2", "b").await;
    let run = newest(&world, "a").await.id;
    world.executor.on_recover(extension::Recovery::Alive);
    world.clock.advance(domain::lease::LEASE);
    world.run().await;
    assert_eq!(world.owner("b").await.unwrap().queue, Queue::Blocked(Blocker::Reserved(scope_name())));
    let interrupted = TurnResult::failed("interrupted", "the test says so");
    world.executor.on_recover(extension::Recovery::Finished(interrupted));
    world.clock.advance(domain::lease::LEASE);
    world.run().await;
    assert!(world.execution(run).await.state.is_terminal());
    assert!(is_held(&world.owner("b").await.unwrap()), "a turn that was interrupted counts");
}

#[tokio::test]
async fn without_a_budget_nothing_is_added_up() {
    let mut world = World::new().await;
    start(&mut world, "d-1", "a").await;
    let run = newest(&world, "a").await.id;
    end(&mut world, run, used(Outcome::Completed, 5)).await;
    for owner in [Owner::Work(world.owner("a").await.unwrap().id), Owner::Scope(scope_name()), Owner::All] {
        assert_eq!(ledger(&world, owner, "usd", Window::Life).await, Amount::ZERO);
    }
    let recent = |tx: &mut dyn domain::store::Snapshot| {
        tx.recent_use(&domain::text::WorkKind::known("told"), &Unit::known("usd"))
    };
    assert!(world.runtime.store().read("test", recent).await.unwrap().is_empty());
}
