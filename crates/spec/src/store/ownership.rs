//! Who owns the loops: kept with the commit that set it, and seen by the request after.

use domain::id::Incarnation;
use domain::lease::Lease;
use domain::ownership::Ownership;
use domain::store::{Store, StoreError};
use domain::time::Timestamp;

use super::sample::{Refused, accept, event, write};
use super::{DurableDriver, StoreDriver};

/// An ownership that no engine makes by itself.
fn given(epoch: i64) -> Ownership {
    let lease = Lease { owner: Incarnation::from_number(70), until: Timestamp::from_micros(epoch * 1000) };
    Ownership { epoch: domain::id::Epoch::from_number(epoch), lease: Some(lease) }
}

async fn ownership(store: &Store) -> Ownership {
    write(store, |tx| Ok(tx.ownership())).await
}

/// Setting it is a write, although it needs no statement of its own.
pub async fn ownership_reads_back_as_written(driver: &impl StoreDriver) {
    let store = driver.store();
    for next in [given(900), Ownership { lease: None, ..given(901) }, given(902)] {
        write(store, move |tx| {
            tx.put_ownership(next);
            assert_eq!(tx.ownership(), next, "it is seen at once");
            Ok(())
        })
        .await;
        assert_eq!(ownership(store).await, next);
        // What other requests write leaves it alone.
        write(store, move |tx| accept(tx, &event(next.epoch.number()))).await;
        assert_eq!(ownership(store).await, next);
    }
}

/// A body that refuses leaves it as it was, whether or not it wrote anything else.
pub async fn refused_ownership_is_undone(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| {
        tx.put_ownership(given(900));
        Ok(())
    })
    .await;
    for writes in [false, true] {
        let answer: Result<(), Refused> = store
            .transact("case", move |tx| {
                tx.put_ownership(given(901));
                if writes {
                    accept(tx, &event(1))?;
                }
                Err(Refused::OnPurpose)
            })
            .await;
        assert!(matches!(answer, Err(Refused::OnPurpose)), "{answer:?}");
        assert_eq!(ownership(store).await, given(900));
    }
}

/// A transaction under a tenure that is over is refused, and leaves nothing.
pub async fn stale_tenure_is_refused(driver: &impl StoreDriver) {
    let store = driver.store();
    let now = write(store, |tx| Ok(tx.now())).await;
    let held = Ownership {
        lease: given(900).lease.map(|lease| Lease { until: Timestamp::MAX, ..lease }),
        ..given(900)
    };
    let ended = Ownership { lease: held.lease.map(|lease| Lease { until: now, ..lease }), ..held };
    let tenure = held.tenure().expect("somebody has it");
    let act = async || -> Result<(), StoreError> {
        store
            .transact("case", move |tx| {
                domain::store::fence(tx, tenure)?;
                accept(tx, &event(5)).map(|_event| ())
            })
            .await
    };
    for over in [Ownership { lease: None, ..held }, ended, Ownership { epoch: held.epoch.next(), ..held }] {
        write(store, move |tx| {
            tx.put_ownership(over);
            Ok(())
        })
        .await;
        let answer = act().await;
        assert!(matches!(answer, Err(StoreError::NotOwner(_))), "{over:?}: {answer:?}");
    }
    write(store, move |tx| {
        tx.put_ownership(held);
        Ok(())
    })
    .await;
    act().await.expect("the tenure is in force, and nothing of the refused ones is there");
}

/// The count of owners never goes back, so no tenure of an earlier life is ever in force again.
pub async fn ownership_epoch_outlives_the_process(driver: &mut impl DurableDriver) {
    let first = write(driver.store(), |tx| {
        let next = Ownership { lease: None, epoch: tx.ownership().epoch.next() };
        tx.put_ownership(next);
        Ok(next)
    })
    .await;
    driver.reopen().await;
    let after = ownership(driver.store()).await;
    assert!(after.epoch > first.epoch || after == first, "{first:?} {after:?}");
}
