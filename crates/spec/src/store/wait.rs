//! Waits: one that can be woken for a Work, ended once, and kept; and what stands ready for the turn that follows.

use std::time::Duration;

use domain::event::Event;
use domain::execution::{Execution, ExecutionState, Handle, Turn};
use domain::id::{Epoch, EventId, ExecutionId, Incarnation, Sequence, TimerId, WaitId, WorkId};
use domain::lease::Lease;
use domain::outcome::{Outcome, TurnResult};
use domain::store::{ExecutionFilter, StoreError, WaitFilter};
use domain::text::{EventType, ScopeName};
use domain::time::Timestamp;
use domain::timer::{Timer, TimerKind};
use domain::wait::{Timeout, Wait, WaitState};
use domain::work::{Hold, HoldReason, Queue, Work};

use super::StoreDriver;
use super::sample::{
    accept, conflicts, event, execution, input, key, main_scope, read, recorded, running, second, start,
    work, write,
};

/// The `number`-th Wait, of a Work, that can be woken.
fn wait(number: i64, work: i64) -> Wait {
    Wait {
        id: WaitId::from_number(number),
        work: WorkId::from_number(work),
        scope: main_scope(),
        execution: ExecutionId::from_number(work),
        keys: vec![key("pr/1"), key("pr/2")],
        types: vec![EventType::known("build.finished"), EventType::known("build.failed")],
        after: Sequence::from_number(number + 50),
        timeout: Some(Timeout { timer: TimerId::from_number(number), due_at: second(number + 90) }),
        registered_at: second(number),
        state: WaitState::Active,
    }
}

fn woken(wait: &Wait) -> Wait {
    let (winner, sequence) = (EventId::from_number(70), Sequence::from_number(71));
    Wait { state: WaitState::Woken { winner, sequence, at: second(80) }, ..wait.clone() }
}

fn numbers(waits: &[Wait]) -> Vec<i64> {
    waits.iter().map(|wait| wait.id.number()).collect()
}

/// Every field of a Wait comes back as it was written, active and ended.
pub async fn wait_reads_back_as_written(driver: &impl StoreDriver) {
    let store = driver.store();
    let odd = Wait { scope: ScopeName::known("team/eng"), keys: Vec::new(), types: Vec::new(), ..wait(3, 3) };
    let cancelled = Wait { state: WaitState::Cancelled { at: second(81) }, timeout: None, ..wait(4, 4) };
    for sample in [wait(1, 1), woken(&wait(2, 2)), odd, cancelled] {
        let (id, written) = (sample.id, sample.clone());
        write(store, move |tx| tx.insert_wait(&written)).await;
        assert_eq!(read(store, move |snapshot| snapshot.wait(id)).await, Some(sample));
    }
    assert_eq!(read(store, |snapshot| snapshot.wait(WaitId::from_number(9))).await, None);
}

/// A second Wait that can be woken is refused to a Work; one that ended stands in no way.
pub async fn work_has_one_active_wait(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| tx.insert_wait(&wait(1, 7))).await;
    conflicts(store, |tx| tx.insert_wait(&wait(2, 7))).await;
    let work = WorkId::from_number(7);
    assert_eq!(read(store, move |snapshot| snapshot.active_wait(work)).await, Some(wait(1, 7)));
    write(store, |tx| {
        tx.end_wait(&woken(&wait(1, 7)))?;
        tx.insert_wait(&wait(2, 7))
    })
    .await;
    assert_eq!(read(store, move |snapshot| snapshot.active_wait(work)).await, Some(wait(2, 7)));
    let past = read(store, |snapshot| snapshot.wait(WaitId::from_number(1))).await;
    assert_eq!(past, Some(woken(&wait(1, 7))), "history stays");
}

/// A Wait ends once, whoever ends it.
pub async fn wait_ends_once(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| tx.insert_wait(&wait(1, 7))).await;
    write(store, |tx| tx.end_wait(&woken(&wait(1, 7)))).await;
    let cancelled = Wait { state: WaitState::Cancelled { at: second(99) }, ..wait(1, 7) };
    conflicts(store, move |tx| tx.end_wait(&cancelled)).await;
    conflicts(store, |tx| tx.end_wait(&woken(&wait(1, 7)))).await;
    conflicts(store, |tx| tx.end_wait(&woken(&wait(5, 7)))).await;
    let kept = read(store, |snapshot| snapshot.wait(WaitId::from_number(1))).await;
    assert_eq!(kept, Some(woken(&wait(1, 7))));
}

/// Lists of Waits narrow by what is asked for, and go on where the last page ended.
pub async fn wait_list_filters_and_pages(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| {
        for number in 1..=5 {
            tx.insert_work(&work(number))?;
            tx.insert_wait(&wait(number, number))?;
        }
        tx.attach_key(&key("pr/9"), WorkId::from_number(4))?;
        tx.end_wait(&woken(&wait(2, 2)))?;
        tx.insert_wait(&Wait { scope: ScopeName::known("other"), ..wait(6, 2) })
    })
    .await;
    let list = async |filter: WaitFilter, limit| {
        numbers(&read(store, move |snapshot| snapshot.waits(&filter, limit)).await)
    };
    let all = WaitFilter::default;
    assert_eq!(list(all(), 9).await, [6, 5, 4, 3, 2, 1]);
    assert_eq!(list(WaitFilter { active: true, ..all() }, 9).await, [6, 5, 4, 3, 1]);
    assert_eq!(list(WaitFilter { work: Some(WorkId::from_number(2)), ..all() }, 9).await, [6, 2]);
    assert_eq!(list(WaitFilter { scope: Some(ScopeName::known("other")), ..all() }, 9).await, [6]);
    assert_eq!(list(WaitFilter { key: Some(key("pr/9")), ..all() }, 9).await, [4]);
    assert_eq!(
        list(WaitFilter { active: true, before: Some(WaitId::from_number(4)), ..all() }, 1).await,
        [3]
    );
    let counts = read(store, |snapshot| Ok((snapshot.count_waits(9)?, snapshot.count_waits(2)?))).await;
    assert_eq!(counts, (5, 2));
}

/// A timer of a Wait comes back as it was written.
pub async fn wait_timer_reads_back_as_written(driver: &impl StoreDriver) {
    let store = driver.store();
    let timer = Timer {
        id: TimerId::from_number(1),
        kind: TimerKind::Wait { wait: WaitId::from_number(5) },
        scope: main_scope(),
        work: WorkId::from_number(7),
        armed_at: second(1),
        due_at: second(2),
    };
    let written = timer.clone();
    write(store, move |tx| tx.insert_timer(&written)).await;
    assert_eq!(read(store, |snapshot| snapshot.due_timers(second(2), 9)).await, [timer]);
}

/// Events of a key stand in the order of acceptance, strictly behind the sequence that is given.
pub async fn events_of_a_key_follow_a_sequence(driver: &impl StoreDriver) {
    let store = driver.store();
    let events: Vec<Event> = write(store, |tx| {
        let keyed = |number, id| Event { key: Some(key(id)), ..event(number) };
        [keyed(1, "a"), keyed(2, "b"), keyed(3, "a"), event(4), keyed(5, "a")]
            .iter()
            .map(|event| accept(tx, event))
            .collect()
    })
    .await;
    let of_a = async |after, limit| {
        read(store, move |snapshot| snapshot.events_of_key(&key("a"), after, limit)).await
    };
    let of = |numbers: &[usize]| numbers.iter().map(|number| events[number - 1].clone()).collect::<Vec<_>>();
    assert_eq!(of_a(Sequence::ZERO, 9).await, of(&[1, 3, 5]));
    assert_eq!(of_a(events[0].sequence, 9).await, of(&[3, 5]));
    assert_eq!(of_a(events[0].sequence, 1).await, of(&[3]));
    assert_eq!(of_a(events[4].sequence, 9).await, of(&[]));
}

/// A parked attempt.
fn parked(execution: &Execution) -> Execution {
    Execution {
        state: ExecutionState::Parked,
        lease: None,
        turn: Turn {
            used: Duration::from_micros(77),
            session: Handle::new(&b"\x00session"[..]),
            ..execution.turn.clone()
        },
        ..execution.clone()
    }
}

/// An attempt is parked and goes on in its next turn; all of that reads back, and it stays the Work's only one.
pub async fn parked_attempt_goes_on(driver: &impl StoreDriver) {
    let store = driver.store();
    let first = write(store, |tx| start(tx, 1)).await;
    let id = first.execution.id;
    let waits = recorded(&first.execution, Outcome::Waiting);
    let found = parked(&Execution { outcome: None, ..waits.clone() });
    let next = found.clone();
    write(store, move |tx| {
        tx.update_execution(&waits, &first.execution)?;
        tx.update_execution(&next, &waits)
    })
    .await;
    assert_eq!(read(store, move |snapshot| snapshot.execution(id)).await, Some(found.clone()));
    let (room, expired, unsettled, live) = read(store, |snapshot| {
        let live = ExecutionFilter { live: Some(true), ..ExecutionFilter::default() };
        Ok((
            snapshot.count_live(&main_scope(), 9)?,
            snapshot.expired(Timestamp::MAX, 9)?,
            snapshot.unsettled(None, 9)?,
            snapshot.executions(&live, 9)?,
        ))
    })
    .await;
    assert_eq!((room, expired.len(), unsettled.len(), live.len()), (0, 0, 0, 0), "it takes nothing up");
    let target = running(&work(1), ExecutionId::from_number(1));
    store
        .transact("case", move |tx| {
            let trigger = accept(tx, &event(2))?;
            tx.insert_execution(&execution(2, &target, &trigger))
        })
        .await
        .expect_err("no other attempt begins beside it");
    let resumed = Execution {
        state: ExecutionState::Launching,
        epoch: Epoch::from_number(2),
        lease: Some(Lease { owner: Incarnation::FIRST, until: second(500) }),
        turn: Turn {
            number: 2,
            cause: EventId::from_number(31),
            resumed_by: Some(EventId::from_number(30)),
            ..found.turn.clone()
        },
        ..found.clone()
    };
    let written = resumed.clone();
    write(store, move |tx| tx.update_execution(&written, &found)).await;
    assert_eq!(read(store, move |snapshot| snapshot.execution(id)).await, Some(resumed));
}

/// What a later turn begins with is told from what the attempt took in before.
pub async fn batch_of_a_turn_stands_apart(driver: &impl StoreDriver) {
    let store = driver.store();
    let first = write(store, |tx| start(tx, 1)).await;
    let (id, target) = (first.execution.id, first.work.clone());
    let taken = write(store, move |tx| {
        let mut later = Vec::new();
        for number in [2, 3, 4] {
            let event = accept(tx, &event(number))?;
            tx.insert_input(&input(&target, &event))?;
            later.push(event.sequence);
        }
        let count = tx.consume_batch(target.id, later[1], id, 2)?;
        Ok((count, later))
    })
    .await;
    let (count, later) = taken;
    assert_eq!(count, 2);
    let (batch, rest, all, last, pending) = read(store, move |snapshot| {
        Ok((
            snapshot.batch_of(id, 2, Sequence::ZERO, 9)?,
            snapshot.batch_of(id, 2, later[0], 9)?,
            snapshot.inputs_of(id, Sequence::ZERO, 9)?.len(),
            snapshot.last_input_of(id)? == Some(later[1]),
            snapshot.pending_inputs(WorkId::from_number(1), 9)?.len(),
        ))
    })
    .await;
    let events =
        |inputs: &[domain::input::Input]| inputs.iter().map(|input| input.event.number()).collect::<Vec<_>>();
    assert_eq!((events(&batch), events(&rest)), (vec![2, 3], vec![3]));
    assert_eq!((all, last, pending), (3, true, 1));
    let none = read(store, |snapshot| snapshot.last_input_of(ExecutionId::from_number(9))).await;
    assert_eq!(none, None);
}

/// The result of an earlier turn is replaced by that of the whole, and only where there is one.
pub async fn result_of_a_later_turn_replaces_it(driver: &impl StoreDriver) {
    let store = driver.store();
    let id = write(store, |tx| start(tx, 1)).await.execution.id;
    let whole = TurnResult::of(Outcome::Completed);
    let early = whole.clone();
    conflicts(store, move |tx| tx.replace_turn_result(id, &early)).await;
    let written = whole.clone();
    write(store, move |tx| {
        tx.insert_turn_result(id, &TurnResult::of(Outcome::Waiting))?;
        tx.replace_turn_result(id, &written)
    })
    .await;
    assert_eq!(read(store, move |snapshot| snapshot.turn_result(id)).await, Some(whole));
}

/// Works that are held are listed, longest first, until they are not.
pub async fn held_works_are_listed(driver: &impl StoreDriver) {
    let store = driver.store();
    let held = |number, since| Work {
        queue: Queue::Idle,
        hold: Some(Hold {
            because: HoldReason::WakeRefused,
            reason: "the chain is 32 Events deep already".to_owned(),
            since: second(since),
        }),
        ..work(number)
    };
    write(store, move |tx| {
        for work in [work(1), held(2, 20), held(3, 10)] {
            tx.insert_work(&work)?;
        }
        Ok::<_, StoreError>(())
    })
    .await;
    assert_eq!(read(store, |snapshot| snapshot.held(9)).await, [held(3, 10), held(2, 20)]);
    assert_eq!(read(store, |snapshot| snapshot.held(1)).await, [held(3, 10)]);
    write(store, move |tx| {
        let read = held(3, 10);
        tx.update_work(&Work { hold: None, revision: read.revision.next(), ..read.clone() }, &read)
    })
    .await;
    assert_eq!(read(store, |snapshot| snapshot.held(9)).await, [held(2, 20)]);
}
