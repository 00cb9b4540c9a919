//! Lines of successors, concurrency keys and replays: what is found by an index of its own.

use domain::event::{Causation, Event, Payload};
use domain::id::{EventId, ExecutionId, WorkId};
use domain::succession::Succession;
use domain::text::{ConcurrencyKey, EventType, ScopeName};
use domain::work::Work;

use super::StoreDriver;
use super::sample::{conflicts, event, execution, main_scope, read, running, work, write};

/// The type of the Events that repeat another one.
const REPLAY: &str = "core.replay.requested";

fn place(work: i64, predecessor: i64, generation: i64) -> Succession {
    let [work, predecessor, first] = [work, predecessor, 1].map(WorkId::from_number);
    Succession { work, predecessor, first, generation }
}

/// From a Work to its place, from one to the next, and from the first to the newest.
pub async fn a_line_of_successors_is_found_from_everywhere(driver: &impl StoreDriver) {
    let store = driver.store();
    let line: Vec<Succession> = (2..=11).map(|number| place(number, number - 1, number)).collect();
    let written = line.clone();
    write(store, move |tx| written.iter().try_for_each(|place| tx.insert_succession(place))).await;
    let found = read(store, |snapshot| {
        let [first, second, newest] = [1, 2, 11].map(WorkId::from_number);
        let own = [snapshot.succession_of(first)?, snapshot.succession_of(newest)?];
        let next = [snapshot.successor_of(second)?, snapshot.successor_of(newest)?];
        Ok((own, next, snapshot.newest_of_line(first)?, snapshot.newest_of_line(second)?))
    })
    .await;
    // Generations are compared as numbers: 11 follows 9.
    let newest = Some(line[9]);
    assert_eq!(found, ([None, newest], [Some(line[1]), None], newest, None));
}

/// A second successor of one Work is refused, whichever generation it says.
pub async fn a_work_is_succeeded_once(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| tx.insert_succession(&place(2, 1, 2))).await;
    conflicts(store, |tx| tx.insert_succession(&place(3, 1, 3))).await;
    conflicts(store, |tx| tx.insert_succession(&place(4, 9, 2))).await;
}

fn keyed(number: i64) -> Work {
    Work { concurrency: Some(ConcurrencyKey::known("deploy")), ..work(number) }
}

/// Whoever runs under a key holds it, and so does what ended and may still run; another scope's is another.
pub async fn a_concurrency_key_is_held_by_what_runs_and_what_may_still_run(driver: &impl StoreDriver) {
    let store = driver.store();
    let key = ConcurrencyKey::known("deploy");
    let holder = async |scope: ScopeName| {
        let key = key.clone();
        read(store, move |snapshot| snapshot.concurrency_holder(&scope, &key)).await
    };
    let run = ExecutionId::from_number(1);
    write(store, |tx| {
        tx.insert_work(&keyed(1))?;
        tx.insert_work(&keyed(2))
    })
    .await;
    assert_eq!(holder(main_scope()).await, None, "nobody runs");
    write(store, move |tx| {
        tx.insert_execution(&execution(1, &keyed(1), &event(1)))?;
        tx.update_work(&running(&keyed(1), run), &keyed(1))
    })
    .await;
    assert_eq!(holder(main_scope()).await, Some(WorkId::from_number(1)));
    assert_eq!(holder(ScopeName::known("other")).await, None);
    write(store, move |tx| {
        let read = tx.execution(run)?.expect("it was written");
        let now = tx.now();
        let ended = read.clone().cancel(now).expect("it is live");
        tx.update_execution(&ended, &read)?;
        let work = tx.work(WorkId::from_number(1))?.expect("it was written");
        tx.update_work(&work.clone().cancel(now).expect("it is live"), &work)
    })
    .await;
    assert_eq!(holder(main_scope()).await, Some(WorkId::from_number(1)), "it may still run");
    write(store, move |tx| tx.mark_stopped(run)).await;
    assert_eq!(holder(main_scope()).await, None);
}

/// The belt: whatever asked before, the second of them is refused.
pub async fn two_works_of_one_concurrency_key_cannot_be_written_as_running(driver: &impl StoreDriver) {
    let store = driver.store();
    let run = ExecutionId::from_number;
    write(store, move |tx| {
        for number in [1, 2] {
            tx.insert_work(&keyed(number))?;
            tx.insert_execution(&execution(number, &keyed(number), &event(number)))?;
        }
        tx.update_work(&running(&keyed(1), run(1)), &keyed(1))
    })
    .await;
    let second =
        store.transact("second", move |tx| tx.update_work(&running(&keyed(2), run(2)), &keyed(2))).await;
    assert!(second.is_err(), "{second:?}");
}

/// Replays of one Event, in order, and nothing else that it caused.
pub async fn replays_of_an_event_are_found(driver: &impl StoreDriver) {
    let store = driver.store();
    let child = |number: i64, event_type: &str| {
        let parent = event(1);
        let causation = Causation { parent: Some(parent.id), root: parent.id, depth: 1, ..parent.causation };
        Event { event_type: EventType::known(event_type), causation, ..event(number) }
    };
    let (first, other, second) = (child(2, REPLAY), child(3, "core.turn.ended"), child(4, REPLAY));
    let all = [event(1), first.clone(), other, second.clone()];
    write(store, move |tx| {
        for event in &all {
            let mut event = event.clone();
            event.sequence = tx.next_sequence();
            tx.insert_event(&event, &Payload::null())?;
        }
        Ok(())
    })
    .await;
    let parent: EventId = event(1).id;
    let found = read(store, move |snapshot| snapshot.replays_of(parent, 9)).await;
    assert_eq!(found.iter().map(|event| event.id).collect::<Vec<_>>(), [first.id, second.id]);
    assert_eq!(read(store, move |snapshot| snapshot.replays_of(parent, 1)).await.len(), 1);
}
