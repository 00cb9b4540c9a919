//! What is kept of runs: what ended is followed in order, and content goes once, with the bodies of what was taken in.

use domain::execution::{Execution, ExecutionState};
use domain::id::{ExecutionId, Sequence, WorkId};
use domain::retention::Content;
use domain::store::retention::Retained;

use super::StoreDriver;
use super::sample::{accept, event, execution, input, read, second, work, write};

/// An attempt of a Work that ended.
fn ended(number: i64, of: i64, at: i64) -> Execution {
    Execution {
        state: ExecutionState::Completed,
        lease: None,
        ended_at: Some(second(at)),
        attempt: domain::id::Attempt::from_number(number),
        ..execution(number, &work(of), &event(number))
    }
}

/// What ended is followed in the order in which it did, and of one Work by its attempts.
pub async fn ended_executions_are_followed_in_order(driver: &impl StoreDriver) {
    let store = driver.store();
    let written = [ended(3, 1, 10), ended(4, 1, 20), ended(5, 2, 10), ended(6, 1, 30)];
    let live = execution(7, &work(1), &event(7));
    write(store, move |tx| {
        tx.insert_execution(&live)?;
        written.iter().try_for_each(|execution| tx.insert_execution(execution))
    })
    .await;
    let follow = async |after: (i64, i64), until: i64, limit| {
        let after = (second(after.0), ExecutionId::from_number(after.1));
        let found = read(store, move |tx| tx.ended_after(after, second(until), limit)).await;
        found.into_iter().map(|ended| (ended.id.number(), ended.work.number())).collect::<Vec<_>>()
    };
    assert_eq!(follow((0, 0), 99, 9).await, [(3, 1), (5, 2), (4, 1), (6, 1)]);
    assert_eq!(follow((10, 3), 99, 2).await, [(5, 2), (4, 1)]);
    assert_eq!(follow((10, 5), 20, 9).await, [(4, 1)], "until is inclusive");
    assert_eq!(follow((30, 6), 99, 9).await, []);
    let of = async |after: Option<i64>, until, limit| {
        let (id, after) = (WorkId::from_number(1), after.map(ExecutionId::from_number));
        let found = read(store, move |tx| tx.ended_of(id, after, until, limit)).await;
        found.into_iter().map(|ended| (ended.id.number(), ended.attempt)).collect::<Vec<_>>()
    };
    assert_eq!(of(None, 9, 9).await, [(3, 3), (4, 4), (6, 6)]);
    assert_eq!(of(Some(3), 5, 9).await, [(4, 4)]);
    assert_eq!(of(None, 9, 1).await, [(3, 3)]);
}

/// Content is released once and in two steps, of what has ended only, and the bodies of what was taken in with it.
pub async fn content_is_released_once(driver: &impl StoreDriver) {
    let store = driver.store();
    let (over, live) = (ended(3, 1, 10), execution(4, &work(2), &event(4)));
    let (id, other) = (over.id, live.id);
    let sequences = write(store, move |tx| {
        tx.insert_work(&work(1))?;
        tx.insert_execution(&over)?;
        tx.insert_execution(&live)?;
        let mut sequences = Vec::new();
        for number in 1..=4 {
            let accepted = accept(tx, &event(number))?;
            tx.insert_input(&input(&work(1), &accepted))?;
            sequences.push(accepted.sequence);
        }
        tx.consume_inputs(WorkId::from_number(1), sequences[2], id)?;
        Ok(sequences)
    })
    .await;
    assert!(!write(store, move |tx| tx.release_content(other)).await, "it has not ended");
    assert!(!write(store, move |tx| tx.content_released(id)).await, "it has not begun");
    assert_eq!(read(store, |tx| tx.releasing(None, 9)).await, []);
    for began in [true, false] {
        assert_eq!(write(store, move |tx| tx.release_content(id)).await, began);
    }
    let listed = read(store, |tx| tx.releasing(None, 9)).await;
    assert_eq!(
        listed.iter().map(|run| (run.id, run.content)).collect::<Vec<_>>(),
        [(id, Content::Releasing)]
    );
    assert_eq!(read(store, move |tx| tx.releasing(Some(id), 9)).await, []);
    let dropped = [
        write(store, move |tx| tx.drop_bodies(id, 2)).await,
        write(store, move |tx| tx.drop_bodies(id, 9)).await,
    ];
    assert_eq!(dropped, [2, 1], "a few at a time");
    let bodies = async |sequence: Sequence| read(store, move |tx| tx.payload(sequence)).await.is_some();
    let mut left = Vec::new();
    for sequence in sequences {
        left.push(bodies(sequence).await);
    }
    assert_eq!(left, [false, false, false, true], "what was not taken in keeps its body");
    for was_noted in [true, false] {
        assert_eq!(write(store, move |tx| tx.content_released(id)).await, was_noted);
    }
    let gone = read(store, move |tx| tx.execution(id)).await.map(|run| run.content);
    assert_eq!((gone, read(store, |tx| tx.releasing(None, 9)).await.len()), (Some(Content::Released), 0));
}

/// How far a Work's runs have lost their content reads back, and Works come due in order.
pub async fn what_is_kept_of_a_work_comes_due_in_order(driver: &impl StoreDriver) {
    let store = driver.store();
    let of = |number, look_at: Option<i64>| Retained {
        work: WorkId::from_number(number),
        released: number,
        run: (number > 1).then(|| ExecutionId::from_number(number)),
        look_at: look_at.map(second),
    };
    let written = [of(1, Some(50)), of(2, Some(40)), of(3, None), of(4, Some(9)), of(4, Some(60))];
    write(store, move |tx| written.iter().try_for_each(|retained| tx.put_retained(retained))).await;
    for retained in [of(1, Some(50)), of(3, None), of(4, Some(60))] {
        assert_eq!(read(store, move |tx| tx.retained(retained.work)).await, Some(retained));
    }
    assert_eq!(read(store, |tx| tx.retained(WorkId::from_number(9))).await, None);
    let due = |now, limit| async move {
        let found = read(store, move |tx| tx.retention_due(second(now), limit)).await;
        found.into_iter().map(WorkId::number).collect::<Vec<_>>()
    };
    assert_eq!((due(50, 9).await, due(50, 1).await, due(39, 9).await), (vec![2, 1], vec![2], vec![]));
    assert_eq!(read(store, |tx| tx.next_retention_due()).await, Some(second(40)));
}
