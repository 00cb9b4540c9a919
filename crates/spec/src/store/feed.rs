//! The change feed: one row per Event and per transition, in the order of commits, resumable and pruned.

use std::time::Duration;

use domain::execution::ExecutionState;
use domain::feed::{Change, FeedRow};
use domain::id::{Epoch, Revision, Sequence};
use domain::intent::{Intent, IntentKind, IntentState};
use domain::lane::LaneId;
use domain::lease::Lease;
use domain::route::CheckpointOutcome;
use domain::work::{Hold, HoldReason, Work, WorkState};

use super::StoreDriver;
use super::sample::{
    Running, accept, accept_in_lane, checkpoint, completed, event, idle, input, read, second, start, work,
    write,
};

async fn feed(driver: &impl StoreDriver, after: Sequence) -> Vec<FeedRow> {
    read(driver.store(), move |snapshot| snapshot.feed_after(after, 100)).await
}

fn changes(rows: &[FeedRow]) -> Vec<Change> {
    rows.iter().map(|row| row.change).collect()
}

/// What starting and ending an attempt shows, in order.
fn told(started: &Running) -> [Change; 6] {
    let Running { event, work, execution } = started;
    let attempt = |from, to| Change::Execution { id: execution.id, work: work.id, from, to };
    [
        Change::Event { id: event.id },
        Change::Work { id: work.id, state: WorkState::Ready },
        attempt(None, ExecutionState::Launching),
        Change::Work { id: work.id, state: WorkState::Running { execution: execution.id } },
        attempt(Some(ExecutionState::Launching), ExecutionState::Completed),
        Change::Work { id: work.id, state: WorkState::Ready },
    ]
}

/// Each transition is one row, in the order in which it was written, at rising sequences.
pub async fn feed_tells_each_transition_once(driver: &impl StoreDriver) {
    let store = driver.store();
    let started = write(store, |tx| start(tx, 1)).await;
    let end = started.clone();
    write(store, move |tx| {
        tx.update_execution(&completed(&end.execution), &end.execution)?;
        tx.update_work(&idle(&end.work), &end.work)
    })
    .await;
    let rows = feed(driver, Sequence::ZERO).await;
    assert_eq!(changes(&rows), told(&started));
    assert!(rows.is_sorted_by(|low, high| low.sequence < high.sequence), "{rows:?}");
    assert!(rows.is_sorted_by_key(|row| row.at), "{rows:?}");
    assert_eq!(rows[0].sequence, started.event.sequence);
}

/// A write after which nobody would see anything else is not told: a renewal, a move between queues, new input.
pub async fn feed_is_silent_about_what_shows_nothing(driver: &impl StoreDriver) {
    let store = driver.store();
    let started = write(store, |tx| {
        tx.insert_work(&work(2))?;
        start(tx, 1)
    })
    .await;
    let before = feed(driver, Sequence::ZERO).await.last().expect("there are rows").sequence;
    write(store, move |tx| {
        let execution = &started.execution;
        let lease = execution.lease.map(|lease| Lease { until: second(900), ..lease });
        let renewed = domain::execution::Execution { lease, ..execution.clone() };
        tx.update_execution(&renewed, execution)?;
        let again = domain::execution::Execution { epoch: Epoch::from_number(2), ..renewed.clone() };
        tx.update_execution(&again, &renewed)?;
        tx.update_work(
            &Work { revision: started.work.revision.next(), ..started.work.clone() },
            &started.work,
        )?;
        tx.update_work(&idle(&work(2)), &work(2))?;
        let late = accept(tx, &event(3))?;
        tx.insert_input(&input(&work(2), &late))
    })
    .await;
    let rows = feed(driver, before).await;
    assert_eq!(changes(&rows), [Change::Event { id: event(3).id }]);
}

/// Routing an Event shows, with what became of it, whichever way its checkpoint was written.
pub async fn feed_tells_each_checkpoint(driver: &impl StoreDriver) {
    write(driver.store(), |tx| {
        let queued = accept_in_lane(tx, 1, LaneId::NONE)?;
        let decided = accept(tx, &event(2))?;
        tx.insert_checkpoint(&checkpoint(&decided, CheckpointOutcome::Dropped, None))?;
        tx.route_off(&checkpoint(&queued, CheckpointOutcome::Unmatched, None))
    })
    .await;
    let rows = feed(driver, Sequence::ZERO).await;
    assert_eq!(
        changes(&rows),
        [
            Change::Event { id: event(1).id },
            Change::Event { id: event(2).id },
            Change::Checkpoint { event: event(2).id, outcome: CheckpointOutcome::Dropped },
            Change::Checkpoint { event: event(1).id, outcome: CheckpointOutcome::Unmatched },
        ]
    );
}

/// Reading on after any row shows every later row once.
pub async fn feed_resumes_after_any_row(driver: &impl StoreDriver) {
    let store = driver.store();
    for number in 1..=3 {
        write(store, move |tx| start(tx, number)).await;
    }
    let all = feed(driver, Sequence::ZERO).await;
    for (read_so_far, row) in (1..).zip(&all) {
        assert_eq!(feed(driver, row.sequence).await, all[read_so_far..]);
    }
    let mut paged = Vec::new();
    let mut after = Sequence::ZERO;
    loop {
        let page = read(store, move |snapshot| snapshot.feed_after(after, 5)).await;
        assert!(page.len() <= 5);
        let Some(last) = page.last() else { break };
        after = last.sequence;
        paged.extend(page);
    }
    assert_eq!(paged, all);
}

/// Pruning deletes what is older than a moment, oldest first, a few rows at a time, and shows in the bounds.
pub async fn feed_is_pruned_by_age(driver: &impl StoreDriver) {
    let store = driver.store();
    assert_eq!(read(store, |snapshot| snapshot.feed_bounds()).await, None);
    for number in 1..=3 {
        write(store, move |tx| accept(tx, &event(number))).await;
    }
    driver.advance(Duration::from_mins(1));
    write(store, |tx| accept(tx, &event(4))).await;
    let rows = feed(driver, Sequence::ZERO).await;
    let newest = rows[3];
    let bounds = read(store, |snapshot| snapshot.feed_bounds()).await;
    assert_eq!(bounds, Some((rows[0].sequence, newest.sequence)));

    assert_eq!(write(store, move |tx| tx.prune_feed(newest.at, 2)).await, 2);
    assert_eq!(feed(driver, Sequence::ZERO).await, rows[2..]);
    assert_eq!(write(store, move |tx| tx.prune_feed(newest.at, 9)).await, 1);
    assert_eq!(write(store, move |tx| tx.prune_feed(newest.at, 9)).await, 0, "a row of that moment stays");
    let bounds = read(store, |snapshot| snapshot.feed_bounds()).await;
    assert_eq!(bounds, Some((newest.sequence, newest.sequence)));
    let kept = read(store, |snapshot| snapshot.event(event(1).id)).await;
    assert!(kept.is_some(), "the feed is pruned, history is not");
}

/// A record that is written at once in a later state shows as entering that state.
pub async fn feed_tells_a_terminal_state(driver: &impl StoreDriver) {
    for (number, state) in (1..).zip([WorkState::Completed, WorkState::Failed, WorkState::Cancelled]) {
        write(driver.store(), move |tx| {
            let end = Work {
                state,
                queue: domain::work::Queue::Idle,
                revision: Revision::FIRST.next(),
                ended_at: Some(second(5)),
                ..work(number)
            };
            tx.insert_work(&work(number))?;
            tx.update_work(&end, &work(number))
        })
        .await;
        let rows = feed(driver, Sequence::ZERO).await;
        let last = rows.last().expect("there are rows").change;
        assert_eq!(last, Change::Work { id: work(number).id, state });
    }
}

fn intent_to(running: &Running) -> Intent {
    Intent {
        execution: running.execution.id,
        sequence: Sequence::from_number(11),
        event: running.event.id,
        work: running.work.id,
        kind: IntentKind::Inject,
        epoch: running.execution.epoch,
        on_error: None,
        state: IntentState::Pending { due_at: second(9) },
        tries: 0,
        created_at: second(5),
        reason: None,
    }
}

/// A Work that is held, released or put off stays in its state and is told all the same: whoever looks at it sees
/// something else. So is a run with an intent that is settled.
pub async fn feed_tells_what_keeps_a_work(driver: &impl StoreDriver) {
    let store = driver.store();
    let running = write(store, |tx| {
        let running = start(tx, 1)?;
        tx.insert_intent(&intent_to(&running))?;
        tx.insert_work(&work(2))?;
        Ok(running)
    })
    .await;
    let told = feed(driver, Sequence::ZERO).await.last().expect("there are rows").sequence;
    let run = running.clone();
    write(store, move |tx| {
        let hold = Hold { because: HoldReason::Budget, reason: "used up".to_owned(), since: second(5) };
        let held = work(2).hold(hold).expect("a runnable Work can be held");
        tx.update_work(&held, &work(2))?;
        let released = held.clone().release(second(6)).expect("a held Work can be released");
        tx.update_work(&released, &held)?;
        let accepted = Intent { state: IntentState::Accepted, ..intent_to(&run) };
        tx.update_intent(&accepted, &intent_to(&run))
    })
    .await;
    let (id, state) = (work(2).id, WorkState::Ready);
    let execution = running.execution;
    let same = Change::Execution {
        id: execution.id,
        work: execution.work,
        from: Some(execution.state),
        to: execution.state,
    };
    let rows = feed(driver, told).await;
    assert_eq!(changes(&rows), [Change::Work { id, state }, Change::Work { id, state }, same]);
}
