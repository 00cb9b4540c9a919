//! Starts of a daemon: each is noted once, and counts what recovery found.

use std::time::Duration;

use domain::id::Incarnation;
use domain::store::{LastSeen, Recovered, RecoveryTally, StartFilter, StartRow, Store};

use super::StoreDriver;
use super::sample::{conflicts, read, second, write};

const fn life(number: i64) -> Incarnation {
    Incarnation::from_number(number)
}

async fn starts(store: &Store, filter: StartFilter, limit: u32) -> Vec<StartRow> {
    read(store, move |snapshot| snapshot.starts(&filter, limit)).await
}

/// Starts are listed newest first, each as it was noted: at the time of its transaction, on this host.
pub async fn starts_read_back_as_noted(driver: &impl StoreDriver) {
    let store = driver.store();
    assert_eq!(starts(store, StartFilter::default(), 9).await, []);
    let killed = LastSeen { at: second(5), stopped: false };
    let stopped = LastSeen { at: second(7), stopped: true };
    let mut times = Vec::new();
    for (number, before) in [(1, None), (2, Some(killed)), (3, Some(stopped))] {
        let noted = move |tx: &mut dyn domain::store::Tx| {
            tx.insert_start(life(number), before)?;
            Ok(tx.now())
        };
        times.push(write(store, noted).await);
        driver.advance(Duration::from_mins(1));
    }
    let found = starts(store, StartFilter::default(), 9).await;
    let noted: Vec<_> =
        found.iter().map(|row| (row.incarnation, row.started_at, row.before, row.here)).collect();
    assert_eq!(
        noted,
        [
            (life(3), times[2], Some(stopped), true),
            (life(2), times[1], Some(killed), true),
            (life(1), times[0], None, true),
        ]
    );
    assert!(found.iter().all(|row| row.recovered == RecoveryTally::default()));
    assert_eq!(starts(store, StartFilter { here: true, before: None }, 2).await, found[..2]);
    assert_eq!(starts(store, StartFilter { here: true, before: Some(life(2)) }, 9).await, found[2..]);
}

/// A life begins once.
pub async fn start_is_noted_once(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| tx.insert_start(life(1), None)).await;
    conflicts(store, |tx| tx.insert_start(life(1), Some(LastSeen { at: second(1), stopped: true }))).await;
    let found = starts(store, StartFilter::default(), 9).await;
    assert_eq!(found.iter().map(|row| row.before).collect::<Vec<_>>(), [None]);
}

/// Each finding is counted for the life that found it, and an undone one for none.
pub async fn recovered_runs_are_counted_for_their_life(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| {
        tx.insert_start(life(1), None)?;
        tx.insert_start(life(2), None)
    })
    .await;
    let found = [
        Recovered::Adopted,
        Recovered::Relaunched,
        Recovered::Adopted,
        Recovered::Finished,
        Recovered::Interrupted,
        Recovered::Adopted,
    ];
    for one in found {
        assert!(write(store, move |tx| tx.count_recovered(life(2), one)).await);
    }
    let undone: Result<(), super::sample::Refused> = store
        .transact("case", |tx| {
            tx.count_recovered(life(2), Recovered::Relaunched)?;
            Err(super::sample::Refused::OnPurpose)
        })
        .await;
    undone.expect_err("it was refused");
    assert!(!write(store, |tx| tx.count_recovered(life(3), Recovered::Adopted)).await, "no such start");
    let tallies: Vec<RecoveryTally> =
        starts(store, StartFilter::default(), 9).await.into_iter().map(|row| row.recovered).collect();
    let counted = RecoveryTally { adopted: 3, relaunched: 1, finished: 1, interrupted: 1 };
    assert_eq!(tallies, [counted, RecoveryTally::default()]);
}
