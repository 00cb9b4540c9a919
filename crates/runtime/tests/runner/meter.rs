//! What a turn reports of its use while it goes on: counted once, and a limit holds in its middle.

use std::collections::BTreeMap;

use domain::budget::meter::{REPORTS_MAX, ReportRefusal};
use domain::budget::{Amount, Owner, Per, Window};
use domain::execution::ExecutionState;
use domain::id::{Epoch, ExecutionId};
use domain::lease::{Fenced, LEASE};
use domain::outcome::{Outcome, TurnResult, Usage};
use domain::retry::Eligibility;
use domain::text::{CallId, ReportId, Unit, WorkKind};
use domain::work::WorkState;
use extension::Recovery;
use runtime::toolbelt::Request;
use runtime::{MeterError, Metered, Stage};
use serde_json::json;

use super::budget::{
    budget, end, is_held, ledger, newest, next_day, on_each_engine, start, under, used, whole,
};
use super::own::two_nodes;
use super::server::on_database;
use super::world::{Call, World, rung, scope_name};

fn usd(units: i64) -> Vec<Usage> {
    vec![Usage { unit: "usd".to_owned(), thousandths: units * 1000 }]
}

async fn report(
    world: &World,
    run: ExecutionId,
    epoch: i64,
    id: &str,
    usage: &[Usage],
) -> Result<Metered, MeterError> {
    world.runtime.report_usage(run, Epoch::from_number(epoch), ReportId::known(id), usage).await
}

async fn today(world: &World) -> Amount {
    ledger(world, Owner::Scope(scope_name()), "usd", Window::Day).await
}

#[test]
fn what_a_turn_reports_counts_at_once_and_once() {
    on_each_engine(async |mut world| {
        world.apply(under([budget("usd", Per::Scope, Window::Day, 100)])).await;
        start(&mut world, "d-1", "a").await;
        let run = newest(&world, "a").await.id;
        let said = report(&world, run, 1, "r-1", &usd(3)).await.unwrap();
        assert_eq!(said, Metered::default());
        assert_eq!(today(&world).await, whole(3));
        let again = report(&world, run, 1, "r-1", &usd(3)).await.unwrap();
        assert_eq!(again, Metered { repeated: true, ..Metered::default() });
        report(&world, run, 1, "r-2", &usd(2)).await.unwrap();
        assert_eq!((today(&world).await, world.execution(run).await.turn.reports), (whole(5), 2));
        // What is used is not reserved any more.
        let reserved = world.runtime.store().read("test", |tx| tx.reserved(&Unit::known("usd"), None));
        assert_eq!(reserved.await.unwrap(), whole(95));
        // The result says less than that, so that counts; it holds it from then on.
        end(&mut world, run, used(Outcome::Handoff, 4)).await;
        assert_eq!(today(&world).await, whole(5));
        let kept = world.runtime.store().read("test", move |tx| {
            let recent = tx.recent_use(&WorkKind::known("told"), &Unit::known("usd"))?;
            Ok::<_, domain::store::StoreError>((tx.turn_result(run)?, tx.metered(run)?, recent))
        });
        let (result, metered, recent) = kept.await.unwrap();
        assert_eq!((result.unwrap().usage, metered, recent), (usd(5), BTreeMap::new(), vec![whole(5)]));
        // And where it says more, the rest is added.
        start(&mut world, "d-2", "a").await;
        let run = newest(&world, "a").await.id;
        report(&world, run, 1, "r-1", &usd(3)).await.unwrap();
        end(&mut world, run, used(Outcome::Handoff, 7)).await;
        assert_eq!(today(&world).await, whole(12), "another run's report has its own name");
    });
}

#[test]
fn a_limit_ends_a_turn_in_its_middle_and_holds_its_work() {
    on_each_engine(async |mut world| {
        world.apply(under([budget("usd", Per::Scope, Window::Life, 5)])).await;
        start(&mut world, "d-1", "a").await;
        let run = newest(&world, "a").await;
        let work = run.work;
        world.deliver("d-2", "a").await;
        world.run().await;
        let said = report(&world, run.id, 1, "r-1", &usd(6)).await.unwrap();
        let reason = "the budget of usd per scope for life is used up: 6 of 5 usd";
        assert_eq!(said.exceeded.as_deref(), Some(reason));
        let exceeded = world.events("core.budget.exceeded").await.remove(0);
        let ended = world.execution(run.id).await;
        assert_eq!((ended.state, ended.interrupted_by), (ExecutionState::Cancelled, Some(exceeded.id)));
        let held = world.work(work).await;
        assert!(is_held(&held), "{held:?}");
        assert_eq!(held.hold.unwrap().reason, reason);
        // It has no authority any more, whatever it goes on to say.
        let late = report(&world, run.id, 1, "r-2", &usd(1)).await;
        assert!(matches!(late, Err(MeterError::Fenced(Fenced::Ended))), "{late:?}");
        world.executor.end(run.id, used(Outcome::Completed, 9));
        world.run().await;
        assert_eq!((world.work(work).await.state, world.executor.runs()), (WorkState::Ready, 1));
        let life = ledger(&world, Owner::Scope(scope_name()), "usd", Window::Life).await;
        assert_eq!(life, whole(6));
        // Released, it starts once what runs has stopped, and repeats what was cut off.
        world.runtime.release(work).await.unwrap();
        world.run().await;
        let stopping = Eligibility::Stopping { interrupted: run.id, repeats: Some(run.trigger_sequence) };
        assert_eq!((world.work(work).await.eligibility, world.executor.runs()), (stopping, 1));
        world.runtime.stop_unstopped().await.unwrap();
        assert!(world.executor.calls().contains(&Call::Interrupt(run.id)));
        world.run().await;
        let next = newest(&world, "a").await;
        assert_eq!((next.attempt.number(), next.retry_of, next.trigger), (2, Some(run.id), run.trigger));
        let given = world.executor.calls().into_iter().rev().find_map(|call| {
            let Call::Run(id, inputs) = call else { return None };
            (id == next.id).then_some(inputs.len())
        });
        assert_eq!(given, Some(2), "what the first took in, and what came meanwhile");
        // It was let through, and no limit ends it.
        let said = report(&world, next.id, 1, "r-1", &usd(9)).await.unwrap();
        assert_eq!((said.exceeded, today(&world).await), (None, Amount::ZERO));
        end(&mut world, next.id, TurnResult::of(Outcome::Completed)).await;
        assert_eq!(world.work(work).await.failures, 0);
        let life = ledger(&world, Owner::Scope(scope_name()), "usd", Window::Life).await;
        assert_eq!(life, whole(15));
    });
}

#[tokio::test]
async fn a_hold_in_the_middle_of_a_turn_ends_with_its_day_and_the_turn_is_repeated() {
    let mut world = World::with(under([budget("usd", Per::Scope, Window::Day, 5)])).await;
    start(&mut world, "d-1", "a").await;
    let run = newest(&world, "a").await;
    rung(&world.runtime.hints().wake).await;
    report(&world, run.id, 1, "r", &usd(5)).await.unwrap();
    assert!(rung(&world.runtime.hints().wake).await, "it has to hear of a timer that is armed");
    world.runtime.stop_unstopped().await.unwrap();
    world.run().await;
    assert!(is_held(&world.work(run.work).await), "what stopped is held still");
    next_day(&world).await;
    world.run().await;
    let next = newest(&world, "a").await;
    assert_eq!((next.attempt.number(), next.retry_of, next.turn.let_through), (2, Some(run.id), false));
}

#[test]
fn a_limit_that_others_reached_ends_a_turn_at_its_next_report() {
    on_each_engine(async |mut world| {
        world.apply(under([budget("usd", Per::Scope, Window::Life, 10)])).await;
        start(&mut world, "d-1", "a").await;
        let run = newest(&world, "a").await.id;
        end(&mut world, run, used(Outcome::Completed, 1)).await;
        for key in ["a", "b"] {
            start(&mut world, &format!("next-{key}"), key).await;
        }
        let (a, b) = (newest(&world, "a").await, newest(&world, "b").await);
        let said = report(&world, a.id, 1, "r", &usd(9)).await.unwrap();
        assert!(said.exceeded.is_some());
        assert_eq!(world.execution(b.id).await.state, ExecutionState::Running, "it has used nothing");
        let said = report(&world, b.id, 1, "r", &usd(0)).await.unwrap();
        assert!(said.exceeded.is_some() && is_held(&world.work(b.work).await));
        assert_eq!(world.events("core.budget.exceeded").await.len(), 1, "it is said once");
        // A raised limit lifts both, and each goes on once it has stopped.
        world.apply(under([budget("usd", Per::Scope, Window::Life, 100)])).await;
        world.runtime.stop_unstopped().await.unwrap();
        world.run().await;
        assert_eq!(newest(&world, "a").await.retry_of, Some(a.id));
        assert_eq!(newest(&world, "b").await.retry_of, Some(b.id));
    });
}

#[test]
fn a_warning_is_a_notice_to_the_run_and_nothing_else() {
    on_each_engine(async |mut world| {
        world.apply(under([budget("usd", Per::Scope, Window::Day, 10)])).await;
        start(&mut world, "d-1", "a").await;
        let run = newest(&world, "a").await;
        let words = "of the budget of usd per scope a day, 8 of 10 usd is used";
        for id in ["r-1", "r-1"] {
            let said = report(&world, run.id, 1, id, &usd(8)).await.unwrap();
            assert_eq!((said.warnings, said.exceeded), (vec![words.to_owned()], None));
            world.run().await;
        }
        let notices = world.executor.calls().into_iter().filter(|call| matches!(call, Call::Notice(..)));
        let notices: Vec<Call> = notices.collect();
        assert_eq!(notices, [Call::Notice(run.id, format!("budget_warning: {words}"))], "once");
        assert!(world.pending(run.work).await.is_empty() && world.intents(run.id).await.is_empty());
        assert_eq!(world.events("core.budget.warning").await.len(), 1);
        end(&mut world, run.id, used(Outcome::Completed, 8)).await;
        assert_eq!(world.events("core.budget.warning").await.len(), 1, "the end crosses nothing again");
    });
}

#[test]
fn a_report_counts_only_under_the_epoch_in_force() {
    on_each_engine(async |mut world| {
        world.apply(under([budget("usd", Per::Scope, Window::Day, 10)])).await;
        start(&mut world, "d-1", "a").await;
        let run = newest(&world, "a").await.id;
        let refused =
            async |world: &World, epoch, id| report(world, run, epoch, id, &usd(1)).await.unwrap_err();
        let ahead = refused(&world, 2, "r").await;
        assert!(matches!(ahead, MeterError::Fenced(Fenced::Epoch { .. })), "{ahead}");
        world.clock.advance(LEASE);
        let expired = refused(&world, 1, "r").await;
        assert!(matches!(expired, MeterError::Fenced(Fenced::Expired)), "{expired}");
        world.executor.on_recover(Recovery::Alive);
        world.runtime.claim_loops().await.unwrap();
        world.run().await;
        let stale = refused(&world, 1, "r").await;
        assert!(matches!(stale, MeterError::Fenced(Fenced::Epoch { .. })), "{stale}");
        assert_eq!(today(&world).await, Amount::ZERO, "nothing of that counts");
        report(&world, run, 2, "r", &usd(1)).await.unwrap();
        end(&mut world, run, TurnResult::of(Outcome::Completed)).await;
        let over = refused(&world, 2, "r-2").await;
        assert!(matches!(over, MeterError::Fenced(Fenced::Ended)), "{over}");
        assert_eq!(today(&world).await, whole(1));
        let nobody = ExecutionId::from_number(7);
        let unknown = report(&world, nobody, 1, "r", &usd(1)).await;
        assert!(matches!(unknown, Err(MeterError::Unknown(id)) if id == nobody), "{unknown:?}");
    });
}

#[tokio::test]
async fn a_bad_report_changes_nothing_and_their_number_is_bounded() {
    let mut world = World::with(under([budget("usd", Per::Scope, Window::Day, 1_000_000)])).await;
    start(&mut world, "d-1", "a").await;
    let run = newest(&world, "a").await.id;
    let mut bad = usd(1);
    bad.push(Usage { unit: "turns".to_owned(), thousandths: 1 });
    let counted = report(&world, run, 1, "r", &bad).await;
    assert!(matches!(counted, Err(MeterError::Refused(ReportRefusal::Counted(_)))), "{counted:?}");
    assert_eq!((today(&world).await, world.execution(run).await.turn.reports), (Amount::ZERO, 0));
    let read = world.execution(run).await;
    let mut next = read.clone();
    next.turn.reports = REPORTS_MAX - 1;
    let almost = move |tx: &mut dyn domain::store::Tx| tx.update_execution(&next, &read);
    world.runtime.store().transact("test", almost).await.unwrap();
    report(&world, run, 1, "the last", &usd(1)).await.unwrap();
    let many = report(&world, run, 1, "one more", &usd(1)).await;
    assert!(matches!(many, Err(MeterError::Refused(ReportRefusal::Exhausted))), "{many:?}");
    assert_eq!(today(&world).await, whole(1));
}

#[tokio::test]
async fn what_is_reported_is_in_the_result_without_a_budget_too() {
    let mut world = World::new().await;
    start(&mut world, "d-1", "a").await;
    let run = newest(&world, "a").await;
    report(&world, run.id, 1, "r", &usd(3)).await.unwrap();
    let so_far = async |world: &World| {
        let execution = world.execution(run.id).await;
        let read = move |tx: &mut dyn domain::store::Snapshot| runtime::meter::so_far(tx, &execution);
        world.runtime.store().read("test", read).await.unwrap()
    };
    assert_eq!(so_far(&world).await, usd(3));
    assert_eq!(today(&world).await, Amount::ZERO, "without a budget nothing is counted");
    end(&mut world, run.id, TurnResult::of(Outcome::Handoff)).await;
    let id = run.id;
    let result = world.runtime.store().read("test", move |tx| tx.turn_result(id)).await.unwrap();
    assert_eq!((result.unwrap().usage, so_far(&world).await), (usd(3), Vec::new()));
    // What is cancelled has no result, and what it reported is told all the same.
    start(&mut world, "d-2", "b").await;
    let run = newest(&world, "b").await;
    report(&world, run.id, 1, "r", &usd(2)).await.unwrap();
    world.runtime.cancel(run.work).await.unwrap();
    let execution = world.execution(run.id).await;
    let read = move |tx: &mut dyn domain::store::Snapshot| runtime::meter::so_far(tx, &execution);
    assert_eq!(world.runtime.store().read("test", read).await.unwrap(), usd(2));
}

#[test]
fn each_turn_of_a_resumed_attempt_reports_by_itself() {
    on_each_engine(async |mut world| {
        world.apply(under([budget("usd", Per::Scope, Window::Day, 100)])).await;
        world.executor.can_resume(true);
        start(&mut world, "d-1", "a").await;
        let run = newest(&world, "a").await.id;
        report(&world, run, 1, "r", &usd(3)).await.unwrap();
        let wait = domain::wait::Registration { timeout_seconds: Some(9), ..Default::default() };
        end(&mut world, run, TurnResult::waiting(wait)).await;
        world.clock.advance(std::time::Duration::from_secs(9));
        world.runtime.claim_loops().await.unwrap();
        world.run().await;
        let resumed = world.execution(run).await;
        assert_eq!((resumed.turn.number, resumed.turn.reports, resumed.epoch.number()), (2, 0, 2));
        let said = report(&world, run, 2, "r", &usd(4)).await.unwrap();
        assert!(!said.repeated, "the names of another turn are not this one's");
        end(&mut world, run, TurnResult::of(Outcome::Handoff)).await;
        let result = world.runtime.store().read("test", move |tx| tx.turn_result(run)).await.unwrap();
        assert_eq!((result.unwrap().usage, today(&world).await), (usd(7), whole(7)));
    });
}

#[test]
fn a_turn_that_ends_at_a_process_of_an_older_generation_counts() {
    on_database(async |dsn| {
        let (mut cellar, mut attic) = two_nodes(dsn).await;
        let under_a_budget = under([budget("usd", Per::Scope, Window::Day, 100)]);
        start(&mut cellar, "d-1", "a").await;
        start(&mut cellar, "d-2", "b").await;
        let (a, b) = (newest(&cellar, "a").await, newest(&cellar, "b").await);
        attic.apply(under_a_budget).await;
        let behind = cellar.runtime.generations().active().number;
        assert!(behind < attic.runtime.generations().active().number, "nobody has told it");
        cellar.executor.end(a.id, used(Outcome::Handoff, 3));
        cellar.settle_tasks().await;
        cellar.stages.complete.step().await.unwrap();
        assert_eq!(today(&attic).await, whole(3));
        // So it does where it is cut off.
        attic.apply(under([budget("turns", Per::Scope, Window::Day, 100)])).await;
        cellar.runtime.cancel(b.work).await.unwrap();
        let turns = ledger(&attic, Owner::Scope(scope_name()), "turns", Window::Day).await;
        assert_eq!(turns, whole(1));
    });
}

#[test]
fn a_report_at_a_process_of_an_older_generation_counts() {
    on_database(async |dsn| {
        let (mut cellar, mut attic) = two_nodes(dsn).await;
        start(&mut cellar, "d-1", "a").await;
        let run = newest(&cellar, "a").await.id;
        attic.apply(under([budget("usd", Per::Scope, Window::Day, 2)])).await;
        let said = report(&cellar, run, 1, "r", &usd(3)).await.unwrap();
        assert!(said.exceeded.is_some());
    });
}

#[test]
fn what_a_call_reports_counts_once_even_where_its_turn_is_cut_off() {
    on_each_engine(async |mut world| {
        world.apply(under([budget("usd", Per::Scope, Window::Day, 10)])).await;
        start(&mut world, "d-1", "a").await;
        let run = newest(&world, "a").await;
        let token = *world.executor.tokens(run.id).last().unwrap();
        let call = async |world: &World, name, usage| {
            let answered =
                world.runtime.call(token, CallId::known(name), Request::Usage(usage)).await.unwrap();
            serde_json::from_slice::<serde_json::Value>(&answered.answer).unwrap()
        };
        let said = call(&world, "one", usd(3)).await;
        assert_eq!((&said["warnings"], &said["exceeded"]), (&json!([]), &json!(null)));
        assert_eq!((today(&world).await, call(&world, "one", usd(3)).await), (whole(3), said));
        assert_eq!(today(&world).await, whole(3), "made again it counts nothing");
        let said = call(&world, "two", usd(5)).await;
        assert_eq!(said["usage"], json!([{ "unit": "usd", "thousandths": 8000 }]));
        assert_eq!(said["warnings"], json!(["of the budget of usd per scope a day, 8 of 10 usd is used"]));
        world.runtime.cancel(run.work).await.unwrap();
        world.run().await;
        assert_eq!(today(&world).await, whole(8), "what is cancelled is charged with what it reported, once");
        // The end of another charges no more than its calls have.
        start(&mut world, "d-2", "b").await;
        let next = newest(&world, "b").await;
        let token = *world.executor.tokens(next.id).last().unwrap();
        let report = Request::Usage(usd(1));
        world.runtime.call(token, CallId::known("one"), report).await.unwrap();
        end(&mut world, next.id, used(Outcome::Completed, 1)).await;
        assert_eq!(today(&world).await, whole(9));
    });
}

#[test]
fn a_call_that_takes_a_ledger_to_its_limit_ends_its_turn() {
    on_each_engine(async |mut world| {
        world.apply(under([budget("usd", Per::Scope, Window::Life, 5)])).await;
        start(&mut world, "d-1", "a").await;
        let run = newest(&world, "a").await;
        let token = *world.executor.tokens(run.id).last().unwrap();
        let call = async |name| world.runtime.call(token, CallId::known(name), Request::Usage(usd(6))).await;
        let said = call("one").await.unwrap();
        let said: serde_json::Value = serde_json::from_slice(&said.answer).unwrap();
        assert_eq!(said["exceeded"], "the budget of usd per scope for life is used up: 6 of 5 usd");
        assert_eq!(world.execution(run.id).await.state, ExecutionState::Cancelled);
        assert!(is_held(&world.work(run.work).await));
        assert_eq!(call("two").await.unwrap_err().code(), "run_ended");
        let life = ledger(&world, Owner::Scope(scope_name()), "usd", Window::Life).await;
        assert_eq!(life, whole(6));
    });
}

#[tokio::test]
async fn a_call_that_reports_no_use_is_refused_and_counts_nothing() {
    let mut world = World::with(under([budget("usd", Per::Scope, Window::Day, 10)])).await;
    start(&mut world, "d-1", "a").await;
    let run = newest(&world, "a").await.id;
    let token = *world.executor.tokens(run).last().unwrap();
    for (name, unit, thousandths) in [("counted", "turns", 1), ("negative", "usd", -1), ("named", "A b", 1)] {
        let mut usage = usd(1);
        usage.push(Usage { unit: unit.to_owned(), thousandths });
        let refused =
            world.runtime.call(token, CallId::known(name), Request::Usage(usage)).await.unwrap_err();
        assert_eq!(refused.code(), "invalid_call", "{name}");
    }
    assert_eq!((today(&world).await, world.execution(run).await.turn.reports), (Amount::ZERO, 0));
    let taken = report(&world, run, 1, "call/1", &usd(1)).await;
    assert!(matches!(taken, Err(MeterError::Refused(ReportRefusal::Reserved))), "{taken:?}");
}
