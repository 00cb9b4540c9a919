//! Ledgers of budgets: what is added stays, and what is reserved counts while its run goes on.

use std::collections::BTreeMap;

use domain::budget::{Amount, LedgerId, Owner, Window};
use domain::execution::{Execution, ExecutionState};
use domain::id::{ExecutionId, WorkId};
use domain::outcome::Outcome;
use domain::store::StoreError;
use domain::text::{ReportId, ScopeName, Unit, WorkKind};
use domain::time::Timestamp;

use super::StoreDriver;
use super::sample::{event, execution, main_scope, read, second, work, write};

fn whole(units: i64) -> Amount {
    Amount::of_thousandths(units * 1000)
}

fn usd() -> Unit {
    Unit::known("usd")
}

fn ledger(owner: Owner, window: Window, start: Timestamp) -> LedgerId {
    LedgerId { owner, unit: usd(), window, start }
}

/// What is added to a ledger stays in it, and each ledger stands by itself.
pub async fn ledgers_add_up_apart(driver: &impl StoreDriver) {
    let store = driver.store();
    let life = ledger(Owner::Work(WorkId::from_number(7)), Window::Life, Timestamp::EPOCH);
    let others = [
        ledger(Owner::Work(WorkId::from_number(8)), Window::Life, Timestamp::EPOCH),
        ledger(Owner::Scope(main_scope()), Window::Life, Timestamp::EPOCH),
        ledger(Owner::All, Window::Life, Timestamp::EPOCH),
        LedgerId { window: Window::Day, ..life.clone() },
        LedgerId { start: second(86_400), ..life.clone() },
        LedgerId { unit: Unit::known("tokens"), ..life.clone() },
    ];
    let id = life.clone();
    assert_eq!(read(store, move |tx| tx.ledger(&id)).await, Amount::ZERO);
    for (amount, before) in [(2, 0), (3, 2)] {
        let id = life.clone();
        let had = write(store, move |tx| tx.add_to_ledger(&id, whole(amount))).await;
        assert_eq!(had, whole(before), "it says what was there");
    }
    let id = life.clone();
    let twice = write(store, move |tx| {
        tx.add_to_ledger(&id, whole(1))?;
        Ok((tx.add_to_ledger(&id, whole(1))?, tx.ledger(&id)?))
    });
    assert_eq!(twice.await, (whole(6), whole(7)), "a transaction sees what it added");
    for id in others {
        let other = id.clone();
        assert_eq!(read(store, move |tx| tx.ledger(&other)).await, Amount::ZERO, "{id:?}");
    }
}

/// A reservation counts while its Execution runs and its outcome is not known, and for nothing afterwards.
pub async fn reservations_count_while_their_run_goes_on(driver: &impl StoreDriver) {
    let store = driver.store();
    let elsewhere = ScopeName::known("other");
    let run = |number: i64| execution(number, &work(number), &event(number));
    let ids: Vec<ExecutionId> = (1..=5).map(|number| run(number).id).collect();
    let (held, other) = (ids.clone(), elsewhere.clone());
    write(store, move |tx| {
        tx.insert_execution(&run(1))?;
        tx.insert_execution(&Execution { scope: other.clone(), ..run(2) })?;
        let lease = None;
        tx.insert_execution(&Execution { state: ExecutionState::Parked, lease, ..run(3) })?;
        tx.insert_execution(&Execution { outcome: Some(Outcome::Failed), lease, ..run(4) })?;
        let ended_at = Some(second(9));
        tx.insert_execution(&Execution { state: ExecutionState::Cancelled, lease, ended_at, ..run(5) })?;
        for id in &held {
            let scope = if *id == run(2).id { other.clone() } else { main_scope() };
            tx.reserve(*id, &scope, &usd(), whole(9))?;
            tx.reserve(*id, &scope, &usd(), whole(4))?;
        }
        tx.reserve(run(1).id, &main_scope(), &Unit::known("tokens"), whole(1))
    })
    .await;
    let (here, there, all, first) = read(store, move |tx| {
        let here = tx.reserved(&usd(), Some(&main_scope()))?;
        let there = tx.reserved(&usd(), Some(&elsewhere))?;
        Ok((here, there, tx.reserved(&usd(), None)?, tx.reservation(ids[0])?))
    })
    .await;
    assert_eq!((here, there, all), (whole(4), whole(4), whole(8)));
    assert_eq!(first, BTreeMap::from([(usd(), whole(4)), (Unit::known("tokens"), whole(1))]));
    let id = ExecutionId::from_number(1);
    assert!(write(store, move |tx| tx.release_reservation(id)).await);
    assert!(!write(store, move |tx| tx.release_reservation(id)).await, "once");
    assert_eq!(read(store, |tx| tx.reserved(&usd(), None)).await, whole(4));
}

/// A report is noted once for each run and counted with it, under the epoch in force and while the run goes on.
pub async fn reports_of_use_count_once_while_their_run_goes_on(driver: &impl StoreDriver) {
    let store = driver.store();
    let run = |number: i64| execution(number, &work(number), &event(number));
    let (first, second) = (run(1), run(2));
    let (id, epoch, other) = (first.id, first.epoch, second.id);
    write(store, move |tx| {
        tx.insert_execution(&first)?;
        tx.insert_execution(&second)
    })
    .await;
    let report = |text| ReportId::known(text);
    let noted = write(store, move |tx| {
        let noted = [
            tx.insert_report(id, epoch, &report("a"))?,
            tx.insert_report(id, epoch, &report("a"))?,
            tx.insert_report(id, epoch, &report("b"))?,
            tx.insert_report(other, epoch, &report("a"))?,
        ];
        tx.put_metered(id, &usd(), whole(2))?;
        tx.put_metered(id, &usd(), whole(5))?;
        Ok(noted)
    });
    assert_eq!(noted.await, [true, false, true, true]);
    let seen = async || {
        read(store, move |tx| {
            let reports = [id, other].map(|id| tx.execution(id).map(|it| it.map(|it| it.turn.reports)));
            Ok((reports.into_iter().collect::<Result<Vec<_>, _>>()?, tx.metered(id)?, tx.metered(other)?))
        })
        .await
    };
    let sums = BTreeMap::from([(usd(), whole(5))]);
    assert_eq!(seen().await, (vec![Some(2), Some(1)], sums.clone(), BTreeMap::new()));
    let stale = move |tx: &mut dyn domain::store::Tx| tx.insert_report(id, epoch.next(), &report("c"));
    let refused = store.transact("case", stale).await;
    assert!(matches!(refused, Err(StoreError::Conflict { .. })), "{refused:?}");
    assert_eq!(seen().await.0, [Some(2), Some(1)], "a refused report is not noted");
    // The names go with the turn, and the amounts when its result holds them.
    write(store, move |tx| tx.forget_reports(id)).await;
    assert_eq!(seen().await.1, sums);
    let (again, others) = write(store, move |tx| {
        Ok((tx.insert_report(id, epoch, &report("a"))?, tx.insert_report(other, epoch, &report("a"))?))
    })
    .await;
    assert_eq!((again, others), (true, false));
    write(store, move |tx| tx.delete_metered(id)).await;
    assert_eq!(seen().await.1, BTreeMap::new());
}

/// What turns of a kind used lately is kept by kind and unit, newest first.
pub async fn recent_use_is_kept_by_kind_and_unit(driver: &impl StoreDriver) {
    let store = driver.store();
    let kind = WorkKind::known("told");
    let ask = kind.clone();
    assert_eq!(read(store, move |tx| tx.recent_use(&ask, &usd())).await, []);
    for recent in [vec![whole(1)], vec![whole(3), whole(1)]] {
        let (kind, put) = (kind.clone(), recent.clone());
        write(store, move |tx| tx.put_recent_use(&kind, &usd(), &put)).await;
        let kind = WorkKind::known("told");
        assert_eq!(read(store, move |tx| tx.recent_use(&kind, &usd())).await, recent);
    }
    let other = WorkKind::known("other");
    assert_eq!(read(store, move |tx| tx.recent_use(&other, &usd())).await, []);
    assert_eq!(read(store, move |tx| tx.recent_use(&kind, &Unit::known("tokens"))).await, []);
}
