//! Intents: orders to attempts, due in order and found by their attempt.

use domain::id::{Epoch, ExecutionId, Sequence, WorkId};
use domain::intent::{ErrorFallback, Intent, IntentKind, IntentState};
use domain::store::{StoreError, Tx};
use domain::time::Timestamp;

use super::StoreDriver;
use super::sample::{Running, accept, conflicts, event, input, read, second, start, write};

/// The order to `running` about the Event at `sequence`, in `state`.
fn intent(running: &Running, sequence: i64, state: IntentState) -> Intent {
    let pending = matches!(state, IntentState::Pending { .. });
    Intent {
        execution: running.execution.id,
        sequence: Sequence::from_number(sequence),
        event: running.event.id,
        work: running.work.id,
        kind: IntentKind::Inject,
        epoch: Epoch::from_number(7),
        on_error: None,
        state,
        tries: if pending { 0 } else { 3 },
        created_at: second(5),
        reason: None,
    }
}

fn pending(running: &Running, sequence: i64, due: i64) -> Intent {
    intent(running, sequence, IntentState::Pending { due_at: second(due) })
}

fn sequences(intents: &[Intent]) -> Vec<i64> {
    intents.iter().map(|intent| intent.sequence.number()).collect()
}

/// Two attempts, with orders that are due at different times and one that is settled.
fn order(tx: &mut dyn Tx) -> Result<(Running, Running), StoreError> {
    let (one, two) = (start(tx, 1)?, start(tx, 2)?);
    for order in [
        pending(&one, 11, 30),
        pending(&two, 12, 10),
        intent(&one, 13, IntentState::Ambiguous { due_at: second(20) }),
        intent(&one, 14, IntentState::Accepted),
        intent(&two, 15, IntentState::Dispatched { due_at: second(20) }),
    ] {
        tx.insert_intent(&order)?;
    }
    Ok((one, two))
}

/// Every field of an intent comes back as it was written, in every state.
pub async fn intent_reads_back_as_written(driver: &impl StoreDriver) {
    let store = driver.store();
    let running = write(store, |tx| start(tx, 1)).await;
    let due_at = second(9);
    let states = [
        IntentState::Pending { due_at },
        IntentState::Dispatched { due_at },
        IntentState::Ambiguous { due_at },
        IntentState::Accepted,
        IntentState::NotAccepting,
        IntentState::FellBack,
        IntentState::Consumed,
        IntentState::Stale,
    ];
    let mut written: Vec<Intent> =
        (20..).zip(states).map(|(at, state)| intent(&running, at, state)).collect();
    written.push(Intent {
        kind: IntentKind::Interrupt,
        on_error: Some(ErrorFallback::Queue),
        reason: Some("stopped \u{e9} it".to_owned()),
        ..intent(&running, 40, IntentState::Delivered)
    });
    let list = written.clone();
    write(store, move |tx| list.iter().try_for_each(|one| tx.insert_intent(one))).await;
    let id = running.execution.id;
    assert_eq!(read(store, move |snapshot| snapshot.intents_of(id, 99)).await, written);
    assert_eq!(read(store, move |snapshot| snapshot.intents_of(id, 2)).await, written[..2]);
    for one in written {
        let at = one.sequence;
        assert_eq!(read(store, move |snapshot| snapshot.intent(id, at)).await, Some(one));
    }
    let absent = read(store, move |snapshot| snapshot.intent(id, Sequence::from_number(99))).await;
    assert_eq!(absent, None);
}

/// Intents come due inclusive, earliest first; one that is settled never does.
pub async fn intents_come_due_in_order(driver: &impl StoreDriver) {
    let store = driver.store();
    assert_eq!(read(store, |snapshot| snapshot.next_intent_due()).await, None);
    write(store, order).await;
    let due = |at: Timestamp, limit| read(store, move |snapshot| snapshot.due_intents(at, limit));
    assert!(due(second(9), 9).await.is_empty());
    assert_eq!(sequences(&due(second(20), 9).await), [12, 13, 15]);
    assert_eq!(sequences(&due(second(99), 2).await), [12, 13]);
    assert_eq!(read(store, |snapshot| snapshot.next_intent_due()).await, Some(second(10)));
}

/// An attempt has one order about an Event, and none is given to an attempt that does not exist.
pub async fn attempt_has_one_intent_for_an_event(driver: &impl StoreDriver) {
    let store = driver.store();
    let (one, two) = write(store, order).await;
    let again = pending(&one, 11, 99);
    conflicts(store, move |tx| tx.insert_intent(&again)).await;
    let nobody = Intent { execution: ExecutionId::from_number(99), ..pending(&one, 50, 1) };
    conflicts(store, move |tx| tx.insert_intent(&nobody)).await;
    // The same Event may be ordered of another attempt.
    let other = pending(&two, 11, 40);
    write(store, move |tx| tx.insert_intent(&other)).await;
    assert_eq!(
        sequences(&read(store, move |snapshot| snapshot.intents_of(two.execution.id, 9)).await),
        [11, 12, 15]
    );
}

/// An intent is written from what was read: whoever comes second finds it changed.
pub async fn stale_intent_is_refused(driver: &impl StoreDriver) {
    let store = driver.store();
    let (one, _two) = write(store, order).await;
    let first = pending(&one, 11, 30);
    let sent = Intent { state: IntentState::Dispatched { due_at: second(45) }, tries: 1, ..first.clone() };
    let (next, before) = (sent.clone(), first.clone());
    write(store, move |tx| tx.update_intent(&next, &before)).await;
    let (late, before) = (Intent { state: IntentState::Stale, ..first.clone() }, first);
    conflicts(store, move |tx| tx.update_intent(&late, &before)).await;
    let again = Intent { tries: 2, ..sent.clone() };
    let (next, before) = (again.clone(), sent.clone());
    write(store, move |tx| tx.update_intent(&next, &before)).await;
    let (late, before) = (Intent { state: IntentState::Accepted, ..sent.clone() }, sent);
    conflicts(store, move |tx| tx.update_intent(&late, &before)).await;
    let id = one.execution.id;
    assert_eq!(read(store, move |snapshot| snapshot.intent(id, again.sequence)).await, Some(again));
}

/// One input is consumed by itself and once; those around it stay pending.
pub async fn one_input_is_consumed_by_itself(driver: &impl StoreDriver) {
    let store = driver.store();
    let running = write(store, |tx| {
        let running = start(tx, 1)?;
        for number in [2, 3, 4] {
            let event = accept(tx, &event(number))?;
            tx.insert_input(&input(&running.work, &event))?;
        }
        Ok(running)
    })
    .await;
    let (work, execution) = (running.work.id, running.execution.id);
    let pending = |work: WorkId| read(store, move |snapshot| snapshot.pending_inputs(work, 9));
    let at = pending(work).await[1].sequence;
    assert!(write(store, move |tx| tx.consume_input(work, at, execution)).await);
    assert!(!write(store, move |tx| tx.consume_input(work, at, execution)).await);
    assert!(!write(store, move |tx| tx.consume_input(work, Sequence::from_number(99), execution)).await);
    let left: Vec<i64> = pending(work).await.iter().map(|input| input.event.number()).collect();
    assert_eq!(left, [2, 4]);
    let taken = read(store, move |snapshot| snapshot.inputs_of(execution, Sequence::ZERO, 9)).await;
    assert_eq!(taken.iter().map(|input| input.event.number()).collect::<Vec<_>>(), [1, 3]);
}
