//! Works: who owns a key, what starts next, and which input is whose.

use domain::capacity::Blocker;
use domain::event::Key;
use domain::feed::Change;
use domain::id::{Attempt, ExecutionId, Revision, Sequence, WaitId, WorkId};
use domain::input::Input;
use domain::retry::{Eligibility, Exhaustion};
use domain::store::{Store, StoreError, Tx};
use domain::text::{ConcurrencyKey, CredentialName, ExternalId, ScopeName, SourceName, WorkKind};
use domain::work::{Hold, HoldReason, Lifecycle, Queue, Work, WorkState};

use super::StoreDriver;
use super::sample::{
    accept, completed, conflicts, ended, event, execution, idle, input, key, main_scope, read, second, start,
    work, write,
};

/// Every field of a Work comes back as it was written, in every state and queue.
#[expect(clippy::too_many_lines, reason = "a table, with a line for each state and queue")]
pub async fn work_reads_back_as_written(driver: &impl StoreDriver) {
    let store = driver.store();
    let blocked = |blocker| Work { queue: Queue::Blocked(blocker), ..work(0) };
    let failed = ExecutionId::from_number(9);
    let stopping = Eligibility::Stopping { interrupted: failed, repeats: None };
    let (wait, event) = (WaitId::from_number(8), Sequence::from_number(6));
    let held = |because| {
        let reason = "it is “held”".to_owned();
        Some(Hold { because, reason, since: second(5) })
    };
    let exhausted = |because| Work {
        failures: 3,
        eligibility: Eligibility::Exhausted { failed, because },
        ..blocked(Blocker::Exhausted(main_scope()))
    };
    let samples = [
        Work { queue: Queue::Idle, ..work(0) },
        Work { lifecycle: Lifecycle::Once, attempts: 7, revision: Revision::from_number(99), ..work(0) },
        Work { lifecycle: Lifecycle::RunOnce, kind: WorkKind::known("schedule.job"), ..work(0) },
        blocked(Blocker::ScopeFull(main_scope())),
        blocked(Blocker::ScopeDisabled(ScopeName::known("team/eng"))),
        blocked(Blocker::ScopePaused(main_scope())),
        Work {
            concurrency: Some(ConcurrencyKey::known("deploy “é”: 1")),
            ..blocked(Blocker::Concurrency(main_scope(), ConcurrencyKey::known("deploy “é”: 1")))
        },
        blocked(Blocker::Unconfigured(main_scope())),
        Work {
            failures: 1,
            eligibility: Eligibility::Backoff { failed, due_at: second(77) },
            ..blocked(Blocker::Backoff(main_scope()))
        },
        Work {
            failures: 2,
            eligibility: Eligibility::Due { failed, event: Sequence::from_number(5) },
            ..work(0)
        },
        exhausted(Exhaustion::Budget),
        exhausted(Exhaustion::Causal),
        Work { eligibility: stopping, ..blocked(Blocker::Stopping(main_scope())) },
        Work {
            eligibility: Eligibility::Stopping { interrupted: failed, repeats: Some(event) },
            hold: held(HoldReason::Budget),
            ..blocked(Blocker::Held(main_scope()))
        },
        Work { state: WorkState::Waiting { wait }, queue: Queue::Idle, ..work(0) },
        Work {
            state: WorkState::Waiting { wait },
            queue: Queue::Idle,
            hold: held(HoldReason::WakeRefused),
            ..work(0)
        },
        Work { eligibility: Eligibility::Woken { wait, event, resumes: None }, ..work(0) },
        Work {
            eligibility: Eligibility::Woken { wait, event, resumes: Some(failed) },
            hold: held(HoldReason::WakeRefused),
            ..blocked(Blocker::Held(main_scope()))
        },
        Work { hold: held(HoldReason::Budget), ..blocked(Blocker::Held(main_scope())) },
        Work { hold: held(HoldReason::Gate), ..blocked(Blocker::Held(main_scope())) },
        Work { let_through: true, ..work(0) },
        blocked(Blocker::Reserved(main_scope())),
        blocked(Blocker::ReservedOverall),
        blocked(Blocker::Credential(CredentialName::known("claude/team"))),
        ended(&work(0), WorkState::Completed),
        ended(&work(0), WorkState::Failed),
        ended(&work(0), WorkState::Cancelled),
    ];
    for (number, sample) in (1..).zip(samples) {
        read_back(store, Work { id: WorkId::from_number(number), ..sample }).await;
    }
    let live = write(store, |tx| start(tx, 50)).await.work;
    assert_eq!(read(store, |snapshot| snapshot.work(WorkId::from_number(50))).await, Some(live));
    assert_eq!(read(store, |snapshot| snapshot.work(WorkId::from_number(51))).await, None);
}

async fn read_back(store: &Store, work: Work) {
    let (id, written) = (work.id, work.clone());
    write(store, move |tx| tx.insert_work(&written)).await;
    assert_eq!(read(store, move |snapshot| snapshot.work(id)).await, Some(work));
}

/// Works that failed too often are found, longest first, and those that wait or run on are not.
pub async fn exhausted_works_are_listed(driver: &impl StoreDriver) {
    let failed = ExecutionId::from_number(9);
    let exhausted = |number, at, because| Work {
        eligibility: Eligibility::Exhausted { failed, because },
        failures: 3,
        queue: Queue::Idle,
        queued_at: second(at),
        ..work(number)
    };
    let written = [
        work(1),
        exhausted(2, 50, Exhaustion::Budget),
        exhausted(3, 40, Exhaustion::Causal),
        Work {
            eligibility: Eligibility::Backoff { failed, due_at: second(9) },
            queue: Queue::Idle,
            ..work(4)
        },
        Work {
            eligibility: Eligibility::Stopping { interrupted: failed, repeats: None },
            queue: Queue::Idle,
            ..work(5)
        },
    ];
    let list = written.clone();
    write(driver.store(), move |tx| list.iter().try_for_each(|work| tx.insert_work(work))).await;
    let found = read(driver.store(), |snapshot| snapshot.exhausted(9)).await;
    assert_eq!(found, [written[2].clone(), written[1].clone()]);
    assert_eq!(read(driver.store(), |snapshot| snapshot.exhausted(1)).await.len(), 1);
}

/// A key belongs to one Work for ever: nobody gets it twice, its owner included.
pub async fn key_belongs_to_one_work_for_ever(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| {
        tx.insert_work(&work(1))?;
        tx.insert_work(&work(2))?;
        tx.attach_key(&key("pr/1"), WorkId::from_number(1))
    })
    .await;
    for number in [1, 2] {
        conflicts(store, move |tx| tx.attach_key(&key("pr/1"), WorkId::from_number(number))).await;
    }
    assert_eq!(owner(driver, key("pr/1")).await, Some(WorkId::from_number(1)));
}

/// The end of a Work does not free its keys.
pub async fn ended_work_keeps_its_keys(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| {
        tx.insert_work(&work(1))?;
        tx.attach_key(&key("pr/1"), WorkId::from_number(1))?;
        tx.update_work(&ended(&work(1), WorkState::Completed), &work(1))?;
        tx.insert_work(&work(2))
    })
    .await;
    conflicts(store, |tx| tx.attach_key(&key("pr/1"), WorkId::from_number(2))).await;
    assert_eq!(owner(driver, key("pr/1")).await, Some(WorkId::from_number(1)));
}

async fn owner(driver: &impl StoreDriver, key: Key) -> Option<WorkId> {
    read(driver.store(), move |snapshot| snapshot.key_owner(&key)).await
}

/// Keys are compared whole and by bytes: source, case, accents and wildcards all count.
pub async fn keys_are_compared_by_bytes(driver: &impl StoreDriver) {
    let store = driver.store();
    let other_source = Key { source: SourceName::known("hook/cd"), external_id: ExternalId::known("a") };
    let keys = [key("a"), other_source, key("A"), key("a "), key("%"), key("\u{e9}"), key("e\u{301}")];
    let mut canonical = keys.to_vec();
    canonical.sort();
    for (number, key) in (1..).zip(keys.clone()) {
        write(store, move |tx| {
            tx.insert_work(&work(number))?;
            tx.attach_key(&key, WorkId::from_number(number))
        })
        .await;
    }
    for (number, key) in (1..).zip(keys) {
        assert_eq!(owner(driver, key.clone()).await, Some(WorkId::from_number(number)), "{key:?}");
    }
    assert_eq!(owner(driver, key("b")).await, None);

    let all = canonical.clone();
    let found = write(store, move |tx| {
        tx.insert_work(&work(50))?;
        // Prefixed, since the keys themselves have owners; prefixing keeps their order.
        for key in all.iter().rev() {
            tx.attach_key(&prefixed(key), WorkId::from_number(50))?;
        }
        tx.keys_of(WorkId::from_number(50))
    })
    .await;
    assert_eq!(found, canonical.iter().map(prefixed).collect::<Vec<_>>(), "keys stand in canonical order");
}

fn prefixed(key: &Key) -> Key {
    let external_id = ExternalId::known(&format!("x{}", key.external_id));
    Key { source: key.source.clone(), external_id }
}

/// A Work that was written since it was read is not overwritten.
pub async fn stale_revision_is_refused(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| {
        tx.insert_work(&work(1))?;
        tx.update_work(&idle(&work(1)), &work(1))
    })
    .await;
    conflicts(store, |tx| tx.update_work(&ended(&work(1), WorkState::Cancelled), &work(1))).await;
    conflicts(store, |tx| tx.update_work(&idle(&work(2)), &work(2))).await;
    assert_eq!(
        read(store, |snapshot| snapshot.work(WorkId::from_number(1))).await,
        Some(idle(&work(1))),
        "the refused write left nothing"
    );
}

/// Two requests that read the same Work cannot both write it.
pub async fn work_is_not_written_twice_from_one_reading(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| tx.insert_work(&work(1))).await;
    let request = |state| {
        let store = store.clone();
        let body = move |tx: &mut dyn Tx| tx.update_work(&ended(&work(1), state), &work(1));
        let request: super::together::Request<Result<(), StoreError>> =
            Box::pin(async move { store.transact("case", body).await });
        request
    };
    let requests = vec![request(WorkState::Completed), request(WorkState::Cancelled)];
    let mut answers = super::together::in_one_batch(store, requests).await.into_iter();
    answers.next().expect("two answers").expect("the first one writes");
    super::sample::assert_conflict(answers.next().expect("two answers"));
    let found = read(store, |snapshot| snapshot.work(WorkId::from_number(1))).await;
    assert_eq!(found.map(|work| work.state), Some(WorkState::Completed));
}

/// Runnable Works start in the order they were queued, then by id, and others do not stand there.
pub async fn runnable_works_stand_in_queue_order(driver: &impl StoreDriver) {
    let store = driver.store();
    let queued = |number, at| Work { queued_at: second(at), ..work(number) };
    write(store, move |tx| {
        for sample in [queued(4, 20), queued(3, 30), queued(2, 20), queued(1, 40)] {
            tx.insert_work(&sample)?;
        }
        tx.insert_work(&Work { queue: Queue::Idle, ..work(5) })?;
        tx.insert_work(&Work { queue: Queue::Blocked(Blocker::ScopeFull(main_scope())), ..work(6) })?;
        tx.insert_work(&ended(&work(7), WorkState::Failed))?;
        start(tx, 8)
    })
    .await;
    let (all, two, counts) = read(store, |snapshot| {
        let counts = [snapshot.count_runnable(0)?, snapshot.count_runnable(3)?, snapshot.count_runnable(9)?];
        Ok((snapshot.runnable(9)?, snapshot.runnable(2)?, counts))
    })
    .await;
    assert_eq!(all, [2, 4, 3, 1].map(WorkId::from_number));
    assert_eq!(two, [2, 4].map(WorkId::from_number));
    assert_eq!(counts, [0, 3, 4]);
}

/// Each reason has a list of its own, in queue order, and a Work leaves it when it is written as runnable.
pub async fn blocked_works_stand_in_one_list_per_reason(driver: &impl StoreDriver) {
    let store = driver.store();
    let full = Blocker::ScopeFull(main_scope());
    let elsewhere = Blocker::ScopeFull(ScopeName::known("main/sub"));
    let disabled = Blocker::ScopeDisabled(main_scope());
    let blocked = |number, at, blocker: &Blocker| Work {
        queue: Queue::Blocked(blocker.clone()),
        queued_at: second(at),
        ..work(number)
    };
    let samples = [
        blocked(1, 30, &full),
        blocked(2, 10, &full),
        blocked(3, 20, &elsewhere),
        blocked(4, 20, &disabled),
        blocked(5, 20, &full),
    ];
    let freed = samples[1].clone();
    write(store, move |tx| samples.iter().try_for_each(|work| tx.insert_work(work))).await;
    let asked = [full.clone(), elsewhere.clone(), disabled.clone(), Blocker::Unconfigured(main_scope())];
    let (lists, two, mut reasons) = read(store, move |snapshot| {
        let lists: Result<Vec<_>, _> = asked.iter().map(|blocker| snapshot.blocked(blocker, 9)).collect();
        Ok((lists?, snapshot.blocked(&asked[0], 2)?, snapshot.blockers(2)?))
    })
    .await;
    let ids = |numbers: &[i64]| numbers.iter().copied().map(WorkId::from_number).collect::<Vec<_>>();
    assert_eq!(lists, [ids(&[2, 5, 1]), ids(&[3]), ids(&[4]), ids(&[])]);
    assert_eq!(two, ids(&[2, 5]));
    reasons.sort();
    assert_eq!(reasons, [(full.clone(), 2), (elsewhere, 1), (disabled, 1)], "counted up to two each");

    let runnable = Work { queue: Queue::Runnable, revision: freed.revision.next(), ..freed.clone() };
    write(store, move |tx| tx.update_work(&runnable, &freed)).await;
    let (left, runs) =
        read(store, move |snapshot| Ok((snapshot.blocked(&full, 9)?, snapshot.runnable(9)?))).await;
    assert_eq!(left, ids(&[5, 1]));
    assert_eq!(runs, ids(&[2]));
}

/// Runnable Works of one scope move to their list in queue order, as many as asked for, and no others do.
pub async fn works_of_a_full_scope_move_together(driver: &impl StoreDriver) {
    let store = driver.store();
    let full = Blocker::ScopeFull(main_scope());
    let queued = |number, at, queue| Work { queue, queued_at: second(at), ..work(number) };
    let elsewhere = Work { scope: ScopeName::known("main/sub"), ..queued(4, 5, Queue::Runnable) };
    let samples = [
        queued(1, 30, Queue::Runnable),
        queued(2, 10, Queue::Runnable),
        queued(3, 20, Queue::Runnable),
        elsewhere,
        queued(5, 1, Queue::Idle),
    ];
    let moved_from = samples[1].clone();
    write(store, move |tx| samples.iter().try_for_each(|work| tx.insert_work(work))).await;
    let list = full.clone();
    let first = moved_from.clone();
    let told =
        Sequence::from_number(read(store, |tx| tx.feed_bounds()).await.map_or(0, |(_, last)| last.number()));
    let moved = write(store, move |tx| tx.block_runnable(&first, &list, 2)).await;
    assert_eq!(moved, 2);
    let rows = read(store, move |tx| tx.feed_after(told, 9)).await;
    let rows: Vec<_> = rows.into_iter().map(|row| row.change).collect();
    assert_eq!(rows, [Change::Work { id: moved_from.id, state: WorkState::Ready }], "one row, of the first");
    let list = full.clone();
    let (blocked, runnable, one) = read(store, move |snapshot| {
        let one = snapshot.work(WorkId::from_number(2))?;
        Ok((snapshot.blocked(&list, 9)?, snapshot.runnable(9)?, one))
    })
    .await;
    let ids = |numbers: &[i64]| numbers.iter().copied().map(WorkId::from_number).collect::<Vec<_>>();
    assert_eq!(blocked, ids(&[2, 3]));
    assert_eq!(runnable, ids(&[4, 1]));
    let revision = moved_from.revision.next();
    assert_eq!(one, Some(Work { queue: Queue::Blocked(full.clone()), revision, ..moved_from }));
    let list = full;
    let first = work(1);
    assert_eq!(write(store, move |tx| tx.block_runnable(&first, &list, 9)).await, 1);
}

/// A Work with `count` pending inputs, the Events 1, 2, ….
async fn with_inputs(driver: &impl StoreDriver, count: i64) -> Vec<Input> {
    write(driver.store(), move |tx| {
        tx.insert_work(&work(1))?;
        let mut inputs = Vec::new();
        for number in 1..=count {
            let input = input(&work(1), &accept(tx, &event(number))?);
            tx.insert_input(&input)?;
            inputs.push(input);
        }
        Ok(inputs)
    })
    .await
}

/// Pending input stands in the order of acceptance, each piece once, whatever order it was routed in.
pub async fn pending_inputs_stand_in_acceptance_order(driver: &impl StoreDriver) {
    let inputs = write(driver.store(), |tx| {
        tx.insert_work(&work(1))?;
        tx.insert_work(&work(2))?;
        let first = input(&work(1), &accept(tx, &event(1))?);
        let other = input(&work(2), &accept(tx, &event(2))?);
        let last = input(&work(1), &accept(tx, &event(3))?);
        for input in [&last, &other, &first] {
            tx.insert_input(input)?;
        }
        Ok([first, last])
    })
    .await;
    let (all, one) = read(driver.store(), |snapshot| {
        let work = WorkId::from_number(1);
        Ok((snapshot.pending_inputs(work, 9)?, snapshot.pending_inputs(work, 1)?))
    })
    .await;
    assert_eq!(all, inputs);
    assert_eq!(one, inputs[..1]);
}

/// Consuming up to an input leaves what was accepted later pending.
pub async fn consuming_leaves_later_input_pending(driver: &impl StoreDriver) {
    let store = driver.store();
    let inputs = with_inputs(driver, 4).await;
    let until = inputs[1].sequence;
    let id = ExecutionId::from_number(9);
    let taken = write(store, move |tx| {
        let trigger = tx.event_at(until)?.expect("it was accepted");
        tx.insert_execution(&execution(9, &work(1), &trigger))?;
        tx.consume_inputs(WorkId::from_number(1), until, id)
    })
    .await;
    assert_eq!(taken, 2);
    let (pending, consumed, after, limited) = read(store, move |snapshot| {
        Ok((
            snapshot.pending_inputs(WorkId::from_number(1), 9)?,
            snapshot.inputs_of(id, Sequence::ZERO, 9)?,
            snapshot.inputs_of(id, until, 9)?,
            snapshot.inputs_of(id, Sequence::ZERO, 1)?,
        ))
    })
    .await;
    assert_eq!(pending, inputs[2..]);
    let given = |input: &Input| Input { consumed_by: Some(id), ..input.clone() };
    assert_eq!(consumed, [given(&inputs[0]), given(&inputs[1])]);
    assert_eq!(after, []);
    assert_eq!(limited, [given(&inputs[0])]);
}

/// Consumed input stays with the Execution that took it, and cannot be queued again.
pub async fn consumed_input_stays_where_it_is(driver: &impl StoreDriver) {
    let store = driver.store();
    let first = write(store, |tx| start(tx, 1)).await;
    let (sequence, first_id) = (first.event.sequence, first.execution.id);
    let taken = write(store, move |tx| {
        let ready = idle(&first.work);
        tx.update_execution(&completed(&first.execution), &first.execution)?;
        tx.update_work(&ready, &first.work)?;
        let trigger = accept(tx, &event(2))?;
        let next = execution(2, &ready, &trigger);
        tx.insert_input(&input(&ready, &trigger))?;
        tx.insert_execution(&domain::execution::Execution { attempt: Attempt::from_number(2), ..next })?;
        tx.consume_inputs(ready.id, trigger.sequence, ExecutionId::from_number(2))
    })
    .await;
    assert_eq!(taken, 1, "only what was pending");
    let (input, of_first) = read(store, move |snapshot| {
        Ok((
            snapshot.input(WorkId::from_number(1), sequence)?,
            snapshot.inputs_of(first_id, Sequence::ZERO, 9)?,
        ))
    })
    .await;
    let input = input.expect("the Event became input");
    assert_eq!(input.consumed_by, Some(first_id));
    assert_eq!(of_first, std::slice::from_ref(&input));

    let again = Input { consumed_by: None, ..input };
    let refused = store.transact("case", move |tx| tx.insert_input(&again)).await;
    let refused: Result<(), StoreError> = refused;
    refused.expect_err("an Event is input of a Work once");
    assert_eq!(read(store, |snapshot| snapshot.pending_inputs(WorkId::from_number(1), 9)).await, []);
}

/// An Event that did not become input of a Work is none.
pub async fn absent_input_reads_as_none(driver: &impl StoreDriver) {
    let inputs = with_inputs(driver, 1).await;
    let sequence = inputs[0].sequence;
    let found = read(driver.store(), move |snapshot| {
        Ok((
            snapshot.input(WorkId::from_number(1), sequence)?,
            snapshot.input(WorkId::from_number(1), sequence.next())?,
            snapshot.input(WorkId::from_number(2), sequence)?,
        ))
    })
    .await;
    assert_eq!(found, (Some(inputs[0].clone()), None, None));
}
