//! Calls of attempts, what they declare, report and acknowledge, and the Works that they create.

use domain::execution::Execution;
use domain::feed::Change;
use domain::id::{EventId, ExecutionId, Sequence, WorkId};
use domain::text::CallId;
use domain::toolbelt::{Call, Declared, Fingerprint, Operation, Parentage, Progress, TokenDigest, Toolbelt};
use domain::wait::Registration;

use super::StoreDriver;
use super::sample::{conflicts, read, second, start, write};

const RUN: ExecutionId = ExecutionId::from_number(1);

fn call(id: &str, number: i64, operation: Operation) -> Call {
    Call {
        execution: RUN,
        id: CallId::known(id),
        number,
        operation,
        request: Fingerprint::of(operation, &[id.as_bytes()]),
        answer: br#"{"a":[1,2]}"#.to_vec(),
        at: second(number),
    }
}

/// A call is found by its name with every byte of its answer, and the newest number counts them.
pub async fn call_reads_back_as_written(driver: &impl StoreDriver) {
    let store = driver.store();
    assert_eq!(read(store, |snapshot| snapshot.calls_made(RUN)).await, 0);
    let calls: Vec<Call> =
        (1..).zip(Operation::ALL).map(|(n, operation)| call(operation.as_str(), n, operation)).collect();
    let written = calls.clone();
    write(store, move |tx| written.iter().try_for_each(|call| tx.insert_call(call))).await;
    for expected in calls {
        let id = expected.id.clone();
        assert_eq!(read(store, move |snapshot| snapshot.call(RUN, &id)).await, Some(expected));
    }
    assert_eq!(read(store, |snapshot| snapshot.calls_made(RUN)).await, 6);
    let other = ExecutionId::from_number(2);
    assert_eq!(read(store, move |snapshot| snapshot.call(other, &CallId::known("emit"))).await, None);
    assert_eq!(read(store, move |snapshot| snapshot.calls_made(other)).await, 0);
}

/// One attempt has one call of a name, and one of a number.
pub async fn call_is_kept_once(driver: &impl StoreDriver) {
    let store = driver.store();
    let first = call("a", 1, Operation::Emit);
    write(store, move |tx| tx.insert_call(&first)).await;
    conflicts(store, |tx| tx.insert_call(&call("a", 2, Operation::Wait))).await;
    conflicts(store, |tx| tx.insert_call(&call("b", 1, Operation::Wait))).await;
    let kept = read(store, |snapshot| snapshot.call(RUN, &CallId::known("a"))).await;
    let kept = kept.expect("the first of them is kept");
    assert_eq!((kept.number, kept.operation), (1, Operation::Emit));
}

/// The token and what was declared are written with the attempt, and taken away with it.
pub async fn token_and_declaration_follow_their_attempt(driver: &impl StoreDriver) {
    let store = driver.store();
    let started = write(store, |tx| start(tx, 1)).await.execution;
    let wait = Registration { timeout_seconds: Some(5), ..Registration::default() };
    let declared = Declared { wait: Some(Box::new(wait)), acknowledged: true };
    let toolbelt = Toolbelt { token: Some(TokenDigest::new([0xff; 32])), declared };
    let said = Execution { toolbelt, ..started.clone() };
    let silent = Execution { toolbelt: Toolbelt::default(), ..said.clone() };
    for (from, to) in [(started, said.clone()), (said, silent)] {
        let (id, next) = (to.id, to.clone());
        write(store, move |tx| tx.update_execution(&next, &from)).await;
        assert_eq!(read(store, move |snapshot| snapshot.execution(id)).await, Some(to));
    }
}

/// The newest line replaces the one before.
pub async fn progress_is_replaced(driver: &impl StoreDriver) {
    let store = driver.store();
    assert_eq!(read(store, |snapshot| snapshot.progress_of(RUN)).await, None);
    for (at, percent) in [(1, Some(40)), (2, None)] {
        let progress = Progress { text: format!("step {at}"), percent };
        let written = progress.clone();
        write(store, move |tx| tx.put_progress(RUN, &written, second(at))).await;
        let found = read(store, |snapshot| snapshot.progress_of(RUN)).await;
        assert_eq!(found, Some((progress, second(at))));
    }
}

/// Acknowledged Events stand in the order of acceptance, each once.
pub async fn acknowledgements_stand_once_in_acceptance_order(driver: &impl StoreDriver) {
    let store = driver.store();
    let event = EventId::from_number;
    write(store, move |tx| {
        for (sequence, id) in [(30, 3), (10, 9), (30, 3)] {
            tx.put_acknowledgement(RUN, Sequence::from_number(sequence), event(id))?;
        }
        tx.put_acknowledgement(ExecutionId::from_number(2), Sequence::from_number(20), event(5))
    })
    .await;
    assert_eq!(read(store, |snapshot| snapshot.acknowledged_by(RUN, 9)).await, [event(9), event(3)]);
    assert_eq!(read(store, |snapshot| snapshot.acknowledged_by(RUN, 1)).await, [event(9)]);
}

/// A child leads to its parent, and a parent to its children, the newest first.
pub async fn parents_and_children_are_found(driver: &impl StoreDriver) {
    let store = driver.store();
    let belongs = |child: i64, parent: i64| Parentage {
        child: WorkId::from_number(child),
        parent: WorkId::from_number(parent),
        execution: RUN,
    };
    write(store, move |tx| {
        [belongs(2, 1), belongs(3, 1), belongs(4, 2)].iter().try_for_each(|one| tx.insert_parentage(one))
    })
    .await;
    conflicts(store, move |tx| tx.insert_parentage(&belongs(2, 4))).await;
    let parent = read(store, |snapshot| snapshot.parentage_of(WorkId::from_number(2))).await;
    assert_eq!(parent, Some(belongs(2, 1)));
    assert_eq!(read(store, |snapshot| snapshot.parentage_of(WorkId::from_number(1))).await, None);
    let children = read(store, |snapshot| snapshot.children_of(WorkId::from_number(1), 9)).await;
    assert_eq!(children, [belongs(3, 1), belongs(2, 1)]);
}

/// The oldest calls go first, as many as are asked for, and only those of their attempt.
pub async fn calls_go_a_page_at_a_time(driver: &impl StoreDriver) {
    let store = driver.store();
    let other = Call { execution: ExecutionId::from_number(2), ..call("a", 1, Operation::Emit) };
    let kept = other.clone();
    write(store, move |tx| {
        (1..=3)
            .try_for_each(|number| tx.insert_call(&call(&format!("c{number}"), number, Operation::Emit)))?;
        tx.insert_call(&other)
    })
    .await;
    assert_eq!(write(store, |tx| tx.drop_calls(RUN, 2)).await, 2);
    let left = read(store, |tx| Ok((tx.call(RUN, &CallId::known("c2"))?, tx.calls_made(RUN)?))).await;
    assert_eq!(left, (None, 3), "the newest is there");
    assert_eq!(write(store, |tx| tx.drop_calls(RUN, 2)).await, 1);
    assert_eq!(read(store, |tx| tx.calls_made(RUN)).await, 0);
    let theirs = read(store, |tx| tx.call(ExecutionId::from_number(2), &CallId::known("a"))).await;
    assert_eq!(theirs, Some(kept));
}

/// A call is told with its run, once, whatever the run's state is.
pub async fn feed_tells_a_call_with_its_run(driver: &impl StoreDriver) {
    let store = driver.store();
    let started = write(store, |tx| start(tx, 1)).await.execution;
    let before = read(store, |snapshot| snapshot.feed_bounds()).await.expect("it started").1;
    let made = Call { execution: started.id, ..call("a", 1, Operation::Progress) };
    write(store, move |tx| tx.insert_call(&made)).await;
    let rows = read(store, move |snapshot| snapshot.feed_after(before, 9)).await;
    let (work, state) = (started.work, started.state);
    let told = Change::Execution { id: started.id, work, from: Some(state), to: state };
    assert_eq!(rows.iter().map(|row| row.change).collect::<Vec<_>>(), [told]);
}
