//! Transactions: all of a request or nothing of it, one after the other, whoever shares its commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::execution::ExecutionState;
use domain::feed::Change;
use domain::id::{EventId, ExecutionId, Sequence, WorkId};
use domain::input::Input;
use domain::lane::LaneId;
use domain::route::CheckpointOutcome;
use domain::store::{EventFilter, Priority, Store, StoreError, Tx};
use domain::text::SourceName;
use domain::work::{Work, WorkState};

use super::StoreDriver;
use super::sample::{
    Refused, accept, accept_in_lane, checkpoint, event, execution, input, main_scope, read, running, start,
    work, write,
};
use super::together::{Request, all, in_one_batch};

/// Writes something of everything, as number `number`.
fn write_everything(tx: &mut dyn Tx, number: i64) -> Result<(), StoreError> {
    let lane = LaneId::from_number(number);
    start(tx, number)?;
    let routed = accept_in_lane(tx, number + 1, lane)?;
    tx.route_off(&checkpoint(&routed, CheckpointOutcome::Unmatched, None))?;
    accept_in_lane(tx, number + 2, lane)?;
    tx.charge_root(EventId::from_number(number), 1, 128).map(|_charged| ())
}

async fn assert_untouched(store: &Store) {
    let (feed, live, waiting, works, events, charged) = read(store, |snapshot| {
        Ok((
            snapshot.feed_after(Sequence::ZERO, 9)?,
            snapshot.count_live(&main_scope(), 9)?,
            snapshot.count_unrouted(9)?,
            snapshot.works(&domain::store::WorkFilter::default(), 9)?,
            snapshot.events(&EventFilter::default(), 9)?,
            snapshot.derived_in_minute(EventId::from_number(1), 1)?,
        ))
    })
    .await;
    assert_eq!(feed, []);
    assert_eq!((live, waiting, charged), (0, 0, 0));
    assert_eq!(works, []);
    assert_eq!(events, []);
}

/// A body that refuses after it wrote leaves nothing, and its reason reaches the caller.
pub async fn refusal_after_writes_leaves_nothing(driver: &impl StoreDriver) {
    let store = driver.store();
    let answer: Result<(), Refused> = store
        .transact("case", |tx| {
            write_everything(tx, 1)?;
            Err(Refused::OnPurpose)
        })
        .await;
    assert!(matches!(answer, Err(Refused::OnPurpose)), "{answer:?}");
    assert_untouched(store).await;
    // The same records can be written now: not even a unique index remembers them.
    write(store, |tx| write_everything(tx, 1)).await;
}

/// A request of the given kind that writes Work `number`.
fn request(store: &Store, number: i64, fate: Fate) -> Request<Result<(), Refused>> {
    let store = store.clone();
    Box::pin(async move {
        store
            .transact("case", move |tx| {
                tx.insert_work(&work(number))?;
                match fate {
                    Fate::Commits => Ok(()),
                    Fate::Refuses => Err(Refused::OnPurpose),
                    Fate::Conflicts => Ok(tx.update_work(&work(number), &work(99))?),
                    Fate::Panics => panic!("on purpose"),
                }
            })
            .await
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Commits,
    Refuses,
    Conflicts,
    Panics,
}

/// In one batch, what refuses, conflicts or panics is undone, and every other request commits.
pub async fn failed_request_does_not_disturb_its_batch(driver: &impl StoreDriver) {
    let store = driver.store();
    let fates = [
        Fate::Commits,
        Fate::Refuses,
        Fate::Commits,
        Fate::Conflicts,
        Fate::Panics,
        Fate::Commits,
        Fate::Refuses,
    ];
    let requests = (1..).zip(fates).map(|(number, fate)| request(store, number, fate));
    let answers = in_one_batch(store, requests.collect()).await;
    for (fate, answer) in fates.iter().zip(&answers) {
        let as_expected = match fate {
            Fate::Commits => answer.is_ok(),
            Fate::Refuses => matches!(answer, Err(Refused::OnPurpose)),
            Fate::Conflicts => matches!(answer, Err(Refused::Store(StoreError::Conflict { .. }))),
            Fate::Panics => matches!(answer, Err(Refused::Store(StoreError::Panicked { .. }))),
        };
        assert!(as_expected, "{fate:?}: {answer:?}");
    }
    let kept = read(store, |snapshot| snapshot.runnable(99)).await;
    assert_eq!(kept, [1, 3, 6].map(WorkId::from_number));
}

/// What the database refused is undone even when the body takes no notice and answers well.
pub async fn ignored_refusal_is_undone_all_the_same(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| start(tx, 10)).await;
    let live = running(&work(10), ExecutionId::from_number(10));

    let answer: Result<(), StoreError> = store
        .transact("case", move |tx| {
            let trigger = accept(tx, &event(11))?;
            let _belt = tx.insert_execution(&execution(11, &live, &trigger));
            Ok(())
        })
        .await;
    answer.expect_err("a second live Execution was refused");

    let answer: Result<(), StoreError> = store
        .transact("case", move |tx| {
            accept(tx, &event(11))?;
            let _conflict = tx.update_work(&work(10), &work(10));
            Ok(())
        })
        .await;
    answer.expect_err("a stale write was refused");

    let left = read(store, |snapshot| snapshot.event(EventId::from_number(11))).await;
    assert_eq!(left, None);
    write(store, |tx| accept(tx, &event(11))).await;
}

/// After a refused statement, an error of the body's own does not save the writes before it either.
pub async fn own_error_after_a_refused_statement_is_undone(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| start(tx, 10)).await;
    let live = running(&work(10), ExecutionId::from_number(10));
    let answer: Result<(), Refused> = store
        .transact("case", move |tx| {
            let trigger = accept(tx, &event(11))?;
            let _belt = tx.insert_execution(&execution(11, &live, &trigger));
            Err(Refused::OnPurpose)
        })
        .await;
    answer.expect_err("the body refused");
    let left = read(store, |snapshot| snapshot.event(EventId::from_number(11))).await;
    assert_eq!(left, None);
}

/// A panic in a body is undone and answered as what it is, and the store goes on.
pub async fn panic_is_undone_and_answered(driver: &impl StoreDriver) {
    let store = driver.store();
    let answer: Result<(), StoreError> = store
        .transact("panicking case", |tx| {
            write_everything(tx, 1)?;
            panic!("the {} of the case", "bug");
        })
        .await;
    match answer {
        Err(StoreError::Panicked { label, message }) => {
            assert_eq!(label, "panicking case");
            assert_eq!(message, "the bug of the case");
        }
        other => panic!("not answered as a panic: {other:?}"),
    }
    assert_untouched(store).await;
    write(store, |tx| write_everything(tx, 1)).await;
}

/// A panic in a read is answered as what it is, and the store goes on.
pub async fn panic_in_a_read_is_answered(driver: &impl StoreDriver) {
    let store = driver.store();
    let answer: Result<(), StoreError> = store.read("panicking read", |_snapshot| panic!("on purpose")).await;
    assert!(matches!(answer, Err(StoreError::Panicked { label: "panicking read", .. })), "{answer:?}");
    assert_untouched(store).await;
    write(store, |tx| accept(tx, &event(1))).await;
}

/// A transaction reads what it wrote itself.
pub async fn transaction_reads_its_own_writes(driver: &impl StoreDriver) {
    write(driver.store(), |tx| {
        let started = start(tx, 1)?;
        assert_eq!(tx.event(started.event.id)?, Some(started.event.clone()));
        assert_eq!(tx.work(started.work.id)?, Some(started.work.clone()));
        assert_eq!(tx.execution(started.execution.id)?, Some(started.execution.clone()));
        assert_eq!(tx.inputs_of(started.execution.id, Sequence::ZERO, 9)?.len(), 1);
        assert_eq!(tx.runnable(9)?, []);
        Ok(())
    })
    .await;
}

/// The last sequence is the one that was taken last, by this transaction or one before it.
pub async fn last_sequence_counts_this_transaction(driver: &impl StoreDriver) {
    let store = driver.store();
    let (last, taken) = write(store, |tx| {
        let before = tx.last_sequence();
        let taken = tx.next_sequence();
        assert!(before < taken);
        assert_eq!(tx.last_sequence(), taken);
        accept(tx, &event(1))?;
        Ok((tx.last_sequence(), taken))
    })
    .await;
    assert!(taken < last);
    let (seen, next) = write(store, |tx| Ok((tx.last_sequence(), tx.next_sequence()))).await;
    assert!(last <= seen && seen < next, "{last} {seen} {next}");
}

/// A request that accepts Event 2 for Work 1; answers whether it found the Work running.
fn acceptance(store: &Store) -> Request<(Sequence, bool)> {
    let store = store.clone();
    Box::pin(async move {
        write(&store, |tx| {
            let target = tx.work(WorkId::from_number(1))?.expect("the Work was written before");
            let event = accept(tx, &event(2))?;
            tx.insert_input(&input(&target, &event))?;
            Ok((event.sequence, target.state.is_running()))
        })
        .await
    })
}

/// A request that claims Work 1 with what is pending; answers the last sequence it saw and how many it took.
fn claim(store: &Store, trigger: &Input) -> Request<(Sequence, u64)> {
    let (store, id, cause) = (store.clone(), trigger.work, trigger.event);
    Box::pin(async move {
        write(&store, move |tx| {
            let seen = tx.last_sequence();
            let before = tx.work(id)?.expect("the Work was written before");
            let trigger = tx.event(cause)?.expect("the Event was written before");
            let execution = execution(1, &before, &trigger);
            tx.insert_execution(&execution)?;
            tx.update_work(&running(&before, execution.id), &before)?;
            Ok((seen, tx.consume_inputs(before.id, seen, execution.id)?))
        })
        .await
    })
}

/// Work 1 with one pending input, its trigger.
async fn ready_work(store: &Store) -> Input {
    write(store, |tx| {
        tx.insert_work(&work(1))?;
        let trigger = input(&work(1), &accept(tx, &event(1))?);
        tx.insert_input(&trigger)?;
        Ok(trigger)
    })
    .await
}

/// What is accepted just before a claim, in the same batch, is seen and consumed by it.
pub async fn claim_sees_an_acceptance_before_it(driver: &impl StoreDriver) {
    let store = driver.store().clone();
    let trigger = ready_work(&store).await;
    let (accepting, claiming) = (acceptance(&store), claim(&store, &trigger));
    let requests: Vec<Request<Seen>> = vec![
        Box::pin(async move { Seen::Acceptance(accepting.await) }),
        Box::pin(async move { Seen::Claim(claiming.await) }),
    ];
    let answers = in_one_batch(&store, requests).await;
    let [Seen::Acceptance((sequence, found_running)), Seen::Claim((seen, taken))] = answers[..] else {
        panic!("answers stand in the order of requests: {answers:?}");
    };
    assert!(!found_running);
    assert!(sequence <= seen);
    assert_eq!(taken, 2);
    let left = read(&store, |snapshot| snapshot.pending_inputs(WorkId::from_number(1), 9)).await;
    assert_eq!(left, []);
}

/// What is accepted just after a claim, in the same batch, finds the Work running and stays pending.
pub async fn acceptance_sees_a_claim_before_it(driver: &impl StoreDriver) {
    let store = driver.store().clone();
    let trigger = ready_work(&store).await;
    let (claiming, accepting) = (claim(&store, &trigger), acceptance(&store));
    let requests: Vec<Request<Seen>> = vec![
        Box::pin(async move { Seen::Claim(claiming.await) }),
        Box::pin(async move { Seen::Acceptance(accepting.await) }),
    ];
    let answers = in_one_batch(&store, requests).await;
    let [Seen::Claim((seen, taken)), Seen::Acceptance((sequence, found_running))] = answers[..] else {
        panic!("answers stand in the order of requests: {answers:?}");
    };
    assert!(found_running);
    assert!(seen < sequence, "what follows a claim stands after what the claim saw");
    assert_eq!(taken, 1);
    let left = read(&store, |snapshot| snapshot.pending_inputs(WorkId::from_number(1), 9)).await;
    assert_eq!(left.iter().map(|input| input.sequence).collect::<Vec<_>>(), [sequence]);
}

#[derive(Debug, Clone, Copy)]
enum Seen {
    Acceptance((Sequence, bool)),
    Claim((Sequence, u64)),
}

/// A request of high priority goes before those of normal priority that wait.
pub async fn high_priority_goes_first(driver: &impl StoreDriver) {
    let store = driver.store();
    let request = |number, priority| {
        let store = store.clone();
        let request: Request<Sequence> = Box::pin(async move {
            let body = move |tx: &mut dyn Tx| Ok::<_, StoreError>(accept(tx, &event(number))?.sequence);
            store.transact_at(priority, "case", body).await.expect("the write commits")
        });
        request
    };
    let requests =
        vec![request(1, Priority::Normal), request(2, Priority::Normal), request(3, Priority::High)];
    let taken = in_one_batch(store, requests).await;
    assert!(taken[2] < taken[0] && taken[0] < taken[1], "{taken:?}");
}

/// A transaction knows what it has changed so far, in order, and starts with nothing.
pub async fn changes_are_visible_in_order(driver: &impl StoreDriver) {
    write(driver.store(), |tx| {
        assert_eq!(tx.changes(), []);
        let started = start(tx, 1)?;
        let id = started.execution.id;
        let expect = [
            Change::Event { id: started.event.id },
            Change::Work { id: started.work.id, state: WorkState::Ready },
            Change::Execution { id, work: started.work.id, from: None, to: ExecutionState::Launching },
            Change::Work { id: started.work.id, state: WorkState::Running { execution: id } },
        ];
        assert_eq!(tx.changes(), expect);
        Ok(())
    })
    .await;
    write(driver.store(), |tx| {
        assert_eq!(tx.changes(), [], "changes are those of this transaction");
        Ok(())
    })
    .await;
}

/// A read sees all of a commit or nothing of it, however many commits run beside it.
pub async fn read_never_sees_half_a_commit(driver: &impl StoreDriver) {
    let store = driver.store();
    let beside = SourceName::known("hook/beside");
    let mut requests: Vec<Request<()>> = Vec::new();
    for number in 1..=40 {
        let (writer, reader) = (store.clone(), store.clone());
        let (written, counted) = (beside.clone(), beside.clone());
        requests.push(Box::pin(async move {
            write(&writer, move |tx| {
                accept(tx, &event(number))?;
                accept(tx, &domain::event::Event { source: written.clone(), ..event(100 + number) })
            })
            .await;
        }));
        requests.push(Box::pin(async move {
            let of = |source| EventFilter { source: Some(source), ..EventFilter::default() };
            let (first, second, feed) = read(&reader, move |snapshot| {
                let first = snapshot.events(&of(SourceName::known("hook/ci")), 99)?.len();
                let second = snapshot.events(&of(counted), 99)?.len();
                Ok((first, second, snapshot.feed_after(Sequence::ZERO, 999)?.len()))
            })
            .await;
            assert_eq!(first, second);
            assert_eq!(feed, first + second);
        }));
    }
    all(requests).await;
}

/// Whoever was answered finds what was written, from any task, at once.
pub async fn answered_write_is_visible_to_the_next_read(driver: &impl StoreDriver) {
    let store = driver.store();
    for number in 1..=20 {
        write(store, move |tx| tx.insert_work(&work(number))).await;
        let found = read(store, move |snapshot| snapshot.work(WorkId::from_number(number))).await;
        assert_eq!(found, Some(work(number)));
    }
}

/// A transaction's time is the store's, moves with it, and never goes back from one commit to the next.
pub async fn admission_time_follows_the_clock(driver: &impl StoreDriver) {
    let store = driver.store();
    let before = write(store, |tx| Ok(tx.now())).await;
    driver.advance(Duration::from_hours(1));
    let (after, again) = write(store, |tx| Ok((tx.now(), tx.now()))).await;
    assert!(after.since(before) >= Duration::from_hours(1), "{before} {after}");
    assert_eq!(after, again, "a transaction has one time");
    assert!(store.now().since(before) >= Duration::from_hours(1));
    let read_at = read(store, |snapshot| Ok(snapshot.now())).await;
    assert!(read_at >= after, "{after} {read_at}");
    let mut last = after;
    for _ in 0..20 {
        let now = write(store, |tx| Ok(tx.now())).await;
        assert!(last <= now);
        last = now;
    }
}

/// A request whose caller no longer waits is carried out whole or not at all, and disturbs nobody.
pub async fn abandoned_request_is_whole_or_absent(driver: &impl StoreDriver) {
    let store = driver.store();
    let ran = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&ran);
    let abandoned = store.backend().submit(
        "abandoned case",
        Priority::Normal,
        Box::new(move |tx| {
            seen.store(true, Ordering::SeqCst);
            match write_everything(tx, 1) {
                Ok(()) => domain::store::Flow::Commit,
                Err(_error) => domain::store::Flow::Undo,
            }
        }),
    );
    drop(abandoned);
    // A later request runs after it, if it runs at all.
    write(store, |tx| tx.insert_work(&Work { scope: main_scope(), ..work(50) })).await;
    let (live, waiting) =
        read(store, |snapshot| Ok((snapshot.count_live(&main_scope(), 9)?, snapshot.count_unrouted(9)?)))
            .await;
    let whole = u32::from(ran.load(Ordering::SeqCst));
    assert_eq!((live, waiting), (whole, whole));
}
