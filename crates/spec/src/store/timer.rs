//! Timers: due in order, and gone once they fired or were disarmed.

use domain::id::{ExecutionId, TimerId, WorkId};
use domain::store::Tx;
use domain::timer::{Timer, TimerKind};

use super::StoreDriver;
use super::sample::{conflicts, main_scope, read, second, write};

/// The `number`-th timer, of a Work, due that many seconds after the start of time.
fn timer(number: i64, work: i64, due: i64) -> Timer {
    Timer {
        id: TimerId::from_number(number),
        kind: TimerKind::Retry { failed: ExecutionId::from_number(number + 100) },
        scope: main_scope(),
        work: WorkId::from_number(work),
        armed_at: second(1),
        due_at: second(due),
    }
}

fn arm(tx: &mut dyn Tx) -> Result<(), domain::store::StoreError> {
    for timer in [timer(1, 7, 30), timer(2, 8, 10), timer(3, 7, 20), timer(4, 9, 10)] {
        tx.insert_timer(&timer)?;
    }
    Ok(())
}

fn numbers(timers: &[Timer]) -> Vec<i64> {
    timers.iter().map(|timer| timer.id.number()).collect()
}

/// Timers come due inclusive, earliest first, and read back as they were written.
pub async fn timers_come_due_in_order(driver: &impl StoreDriver) {
    let store = driver.store();
    assert_eq!(read(store, |snapshot| snapshot.next_timer_due()).await, None);
    write(store, arm).await;
    let (early, due, two, next) = read(store, |snapshot| {
        Ok((
            snapshot.due_timers(second(9), 9)?,
            snapshot.due_timers(second(20), 9)?,
            snapshot.due_timers(second(20), 2)?,
            snapshot.next_timer_due()?,
        ))
    })
    .await;
    assert!(early.is_empty());
    assert_eq!(due, [timer(2, 8, 10), timer(4, 9, 10), timer(3, 7, 20)]);
    assert_eq!(numbers(&two), [2, 4]);
    assert_eq!(next, Some(second(10)));
}

/// A timer fires or is disarmed once; with its Work go all of them.
pub async fn timer_is_removed_once(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, arm).await;
    conflicts(store, |tx| tx.insert_timer(&timer(1, 7, 99))).await;
    assert!(write(store, |tx| tx.delete_timer(TimerId::from_number(2))).await);
    assert!(!write(store, |tx| tx.delete_timer(TimerId::from_number(2))).await);
    assert_eq!(write(store, |tx| tx.delete_timers_of(WorkId::from_number(7))).await, 2);
    assert_eq!(write(store, |tx| tx.delete_timers_of(WorkId::from_number(7))).await, 0);
    assert_eq!(numbers(&read(store, |snapshot| snapshot.due_timers(second(99), 9)).await), [4]);
}

/// A timer can be moved, and then it is due at another time.
pub async fn rearmed_timer_is_due_later(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, arm).await;
    let moved = Timer { armed_at: second(5), ..timer(2, 8, 25) };
    let written = moved.clone();
    assert!(write(store, move |tx| tx.rearm_timer(&written)).await);
    assert!(!write(store, |tx| tx.rearm_timer(&timer(99, 8, 1))).await);
    let due = read(store, |snapshot| snapshot.due_timers(second(99), 9)).await;
    assert_eq!(numbers(&due), [4, 3, 2, 1]);
    assert_eq!(due[2], moved);
}

/// Lists of timers go on where the last one ended, and a Work's own stand apart.
pub async fn timer_pages_neither_repeat_nor_skip(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, arm).await;
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let page = read(store, move |snapshot| snapshot.timers(after, 1)).await;
        let Some(last) = page.last() else { break };
        after = Some((last.due_at, last.id));
        seen.extend(numbers(&page));
    }
    assert_eq!(seen, [2, 4, 3, 1]);
    let own = read(store, |snapshot| snapshot.timers_of(WorkId::from_number(7), 9)).await;
    assert_eq!(numbers(&own), [3, 1]);
}
