//! Crashes at every commit of what runs use: their reports, credentials that are used up, and content that goes with
//! its time.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::budget::{Amount, Owner, Per, Window};
use domain::credential::UsageLimit;
use domain::id::{Epoch, ExecutionId, WorkId};
use domain::outcome::{Outcome, TurnResult, Usage};
use domain::retention::Content;
use domain::route::ActivePolicy;
use domain::scope::{EffectiveScope, Settings};
use domain::store::StoreError;
use domain::text::{CredentialName, ReportId, Unit};
use runtime::{Progress, Stage};
use serde_json::json;

use super::budget::{budget, ledger, newest};
use super::crash::{Crashes, at_every_commit};
use super::world::{World, scope, scope_name};

const MINUTE: Duration = Duration::from_mins(1);
/// When the credential is good again, and when that is believed.
const RESET: Duration = Duration::from_mins(10);
const HELD_FOR: Duration = Duration::from_mins(12);
const UNIT: &str = "usd";

/// A scope whose bindings share a credential, which counts what is used and keeps the content of one run of a Work.
fn counting() -> EffectiveScope {
    let mut declared = scope(ActivePolicy::Queue, 2);
    for binding in declared.bindings.values_mut() {
        binding.credential = Some(CredentialName::known("claude/team"));
    }
    let budgets =
        ["turns", UNIT].map(|unit| budget(unit, Per::Scope, Window::Life, 1000)).into_iter().collect();
    let settings = Settings { kept_executions: 1, ..declared.settings };
    EffectiveScope { budgets, settings, ..declared }
}

fn usage(units: i64) -> Vec<Usage> {
    vec![Usage { unit: UNIT.to_owned(), thousandths: units * 1000 }]
}

async fn say(world: &mut World, crashes: &Crashes, id: &str, key: &str) -> ExecutionId {
    let event = world.say(id, Some(key), &json!({})).await;
    crashes.acknowledge(event);
    world.run().await;
    newest(world, key).await.id
}

async fn report(world: &World, crashes: &Crashes, run: ExecutionId, id: &str, units: i64) {
    let said =
        world.runtime.report_usage(run, Epoch::FIRST, ReportId::known(id), &usage(units)).await.unwrap();
    if !said.repeated {
        crashes.report(units * 1000);
    }
}

async fn end(world: &mut World, run: ExecutionId, result: TurnResult) {
    world.executor.end(run, result);
    world.settle_tasks().await;
    world.run().await;
}

/// Runs that report, the last of which uses its credential up, and one that waits for that.
async fn uses(world: &mut World, crashes: &Crashes) {
    let first = say(world, crashes, "u-1", "u").await;
    report(world, crashes, first, "r-1", 3).await;
    report(world, crashes, first, "r-1", 3).await;
    report(world, crashes, first, "r-2", 2).await;
    // It says less than it had reported, which counts.
    end(world, first, TurnResult { usage: usage(4), ..TurnResult::of(Outcome::Handoff) }).await;
    let second = say(world, crashes, "u-2", "u").await;
    report(world, crashes, second, "r-1", 1).await;
    let usage_limit = Some(UsageLimit { resets_in_seconds: Some(RESET.as_secs()) });
    let limited = TurnResult { usage_limit, usage: usage(2), ..TurnResult::of(Outcome::Handoff) };
    end(world, second, limited).await;
    let waits = say(world, crashes, "u-3", "u").await;
    assert_eq!(waits, second, "nothing starts by what is used up");
    world.clock.advance(HELD_FOR);
    world.runtime.claim_loops().await.unwrap();
    world.runtime.renew().await.unwrap();
    world.run().await;
    let third = newest(world, "u").await.id;
    assert_ne!(third, second, "it clears by itself");
    end(world, third, TurnResult::of(Outcome::Handoff)).await;
    let fourth = say(world, crashes, "u-4", "u").await;
    report(world, crashes, fourth, "r-1", 1).await;
    report(world, crashes, fourth, "r-2", 1).await;
    end(world, fourth, TurnResult::of(Outcome::Completed)).await;
    settle(world).await;
    let used = ledger(world, Owner::Scope(scope_name()), UNIT, Window::Life).await;
    assert_eq!(used, Amount::of_thousandths(9000), "each of them happened");
    assert_eq!(world.execution(second).await.content, Content::Released);
}

/// Lets content go whose time it is.
pub(super) async fn settle(world: &mut World) {
    world.clock.advance(MINUTE);
    world.run().await;
    while world.stages.retain.step().await.unwrap() == Progress::Advanced {}
}

#[tokio::test]
async fn every_commit_of_what_a_run_uses_may_be_the_last() {
    at_every_commit(counting(), uses, false).await;
}

/// What holds of use and content, wherever a life was interrupted: so much had been reported and answered.
pub(super) async fn check(reported: i64, world: &World) {
    let active = world.runtime.generations().active();
    let counts = |scope: &EffectiveScope| scope.budgets.iter().any(|budget| budget.unit.as_str() == UNIT);
    if !active.scopes.values().any(|active| counts(&active.scope)) {
        return;
    }
    let mut said = 0;
    let mut last: BTreeMap<WorkId, ExecutionId> = BTreeMap::new();
    let runs = world.executions().await;
    for run in &runs {
        let id = run.id;
        let read = move |tx: &mut dyn domain::store::Snapshot| {
            Ok::<_, StoreError>((tx.turn_result(id)?, tx.metered(id)?))
        };
        let (result, metered) = world.runtime.store().read("test", read).await.unwrap();
        let used = result.expect("every run has ended with one").usage;
        said += used.iter().filter(|usage| usage.unit == UNIT).map(|usage| usage.thousandths).sum::<i64>();
        assert!(metered.is_empty(), "what it reported is in its result");
        last.insert(run.work, id);
    }
    let counted = ledger(world, Owner::Scope(scope_name()), UNIT, Window::Life).await;
    assert_eq!(counted, Amount::of_thousandths(said), "what runs used counts once");
    assert!(said >= reported, "what was answered is counted: {said} of {reported}");
    let reserved = world.runtime.store().read("test", |tx| tx.reserved(&Unit::known(UNIT), None)).await;
    assert_eq!(reserved.unwrap(), Amount::ZERO, "and nothing is reserved afterwards");
    for run in runs.iter().filter(|run| last[&run.work] != run.id) {
        assert_eq!(run.content, Content::Released, "{run:?}");
        let trigger = run.trigger;
        let body = world.runtime.store().read("test", move |tx| {
            let sequence = tx.event(trigger)?.expect("history stays").sequence;
            Ok::<_, StoreError>(tx.payload(sequence)?.is_some())
        });
        assert!(!body.await.unwrap(), "its content is gone, and it says so");
    }
}
