//! Executions: one live attempt per Work, written only at the epoch that was read, and leases that end on time.

use std::time::Duration;

use domain::execution::{Execution, ExecutionState, Handle, Turn};
use domain::id::{Attempt, Epoch, EventId, ExecutionId, Generation, Incarnation, Sequence, WorkId};
use domain::intent::Controls;
use domain::lease::Lease;
use domain::outcome::{Artifact, Outcome, TurnResult, Usage};
use domain::store::{StoreError, Tx};
use domain::text::{BindingName, EventType, ExecutorName, ScopeName};
use domain::time::Timestamp;
use domain::toolbelt::{Declared, TokenDigest, Toolbelt};
use domain::wait::Registration;
use domain::work::Work;
use domain::workspace::Workspace;

use super::StoreDriver;
use super::sample::{
    accept, completed, conflicts, event, execution, idle, key, main_scope, read, recorded, second, start,
    start_with, work, write,
};

/// The first attempt at Work 1, as number `number`, ended.
fn written_full(number: i64, trigger: (EventId, Sequence), state: ExecutionState) -> Execution {
    Execution {
        id: ExecutionId::from_number(number),
        work: WorkId::from_number(1),
        scope: ScopeName::known("team/eng"),
        attempt: Attempt::from_number(number),
        state,
        epoch: Epoch::from_number(17),
        lease: None,
        recovering: false,
        trigger: trigger.0,
        trigger_sequence: trigger.1,
        retry_of: Some(ExecutionId::from_number(88)),
        content: domain::retention::Content::Kept,
        credential: Some(domain::text::CredentialName::known("claude/team")),
        binding: BindingName::known("claude/main"),
        executor: ExecutorName::known("claude-code"),
        generation: Generation::from_number(3),
        timeout: Duration::from_micros(1_500_001),
        deadline_at: Some(second(44)),
        handle: Handle::new(&b"\x00\xff{\"pid\":1}"[..]),
        turn: Turn {
            number: 2,
            cause: EventId::from_number(61),
            used: Duration::from_micros(7),
            resumed_by: Some(EventId::from_number(62)),
            session: Handle::new(&b"\xff"[..]),
            let_through: true,
            reports: 3,
        },
        outcome: Some(Outcome::Failed),
        claimed_at: second(41),
        started_at: Some(second(42)),
        ended_at: Some(second(43)),
        unstopped: state == ExecutionState::Cancelled,
        controls: Controls { inject: false, interrupt: true },
        interrupted_by: (state == ExecutionState::Cancelled).then(|| EventId::from_number(5)),
        toolbelt: Toolbelt {
            token: Some(TokenDigest::new([7; 32])),
            declared: Declared {
                wait: Some(Box::new(Registration { timeout_seconds: Some(5), ..Registration::default() })),
                acknowledged: true,
            },
        },
        workspace: Some(std::sync::Arc::new(Workspace {
            kind: "git".to_owned(),
            reference: Some("agent/work-1".to_owned()),
            dir: "/home/x/workspaces/é".to_owned(),
            summary: "worktree on branch agent/work-1, reused".to_owned(),
            data: "a worktree".into(),
        })),
    }
}

/// Every field of an Execution comes back as it was written, in every state.
pub async fn execution_reads_back_as_written(driver: &impl StoreDriver) {
    let store = driver.store();
    let trigger = write(store, |tx| {
        let trigger = accept(tx, &event(1))?;
        tx.insert_work(&Work { scope: ScopeName::known("team/eng"), ..work(1) })?;
        Ok((trigger.id, trigger.sequence))
    })
    .await;
    let ended = ExecutionState::ALL.into_iter().filter(|state| state.is_terminal());
    let mut samples: Vec<Execution> =
        (1..).zip(ended).map(|(number, state)| written_full(number, trigger, state)).collect();
    samples.push(Execution {
        state: ExecutionState::Running,
        recovering: true,
        lease: Some(Lease { owner: Incarnation::from_number(5), until: second(99) }),
        outcome: None,
        ended_at: None,
        controls: Controls { inject: true, interrupt: false },
        ..written_full(9, trigger, ExecutionState::Running)
    });
    for sample in samples {
        let id = sample.id;
        let written = sample.clone();
        write(store, move |tx| tx.insert_execution(&written)).await;
        assert_eq!(read(store, move |snapshot| snapshot.execution(id)).await, Some(sample));
    }
    assert_eq!(read(store, |snapshot| snapshot.execution(ExecutionId::from_number(99))).await, None);
}

/// A second live Execution of a Work is refused whole, and what the request wrote before it is undone.
pub async fn work_has_one_live_execution(driver: &impl StoreDriver) {
    let store = driver.store();
    let first = write(store, |tx| start(tx, 1)).await;
    let target = first.work.clone();
    let answer: Result<(), StoreError> = store
        .transact("case", move |tx| {
            let trigger = accept(tx, &event(2))?;
            tx.insert_execution(&execution(2, &target, &trigger))
        })
        .await;
    answer.expect_err("the Work has a live Execution");
    let (refused, before, live) = read(store, |snapshot| {
        Ok((
            snapshot.execution(ExecutionId::from_number(2))?,
            snapshot.event(EventId::from_number(2))?,
            snapshot.count_live(&main_scope(), 9)?,
        ))
    })
    .await;
    assert_eq!((refused, before, live), (None, None, 1));
}

/// When the live Execution has ended, the next one may begin.
pub async fn next_execution_follows_the_end_of_the_last(driver: &impl StoreDriver) {
    let live = write(driver.store(), |tx| {
        let first = start(tx, 1)?;
        tx.update_execution(&completed(&first.execution), &first.execution)?;
        let next = execution(2, &first.work, &first.event);
        tx.insert_execution(&Execution { attempt: Attempt::from_number(2), ..next })?;
        tx.count_live(&main_scope(), 9)
    })
    .await;
    assert_eq!(live, 1);
}

/// Whoever read an Execution before it was claimed again cannot write it.
pub async fn stale_epoch_is_refused(driver: &impl StoreDriver) {
    let store = driver.store();
    let read_before = write(store, |tx| start(tx, 1)).await.execution;
    let taken_over = Execution {
        epoch: Epoch::from_number(2),
        lease: Some(Lease { owner: Incarnation::from_number(2), until: second(90) }),
        recovering: true,
        ..read_before.clone()
    };
    let (from, to) = (read_before.clone(), taken_over.clone());
    write(store, move |tx| tx.update_execution(&to, &from)).await;
    for late in [recorded(&read_before, Outcome::Completed), completed(&read_before)] {
        let from = read_before.clone();
        conflicts(store, move |tx| tx.update_execution(&late, &from)).await;
    }
    let id = taken_over.id;
    assert_eq!(read(store, move |snapshot| snapshot.execution(id)).await, Some(taken_over));
}

/// An Execution that has ended is never written again, at whatever epoch.
pub async fn ended_execution_is_never_written(driver: &impl StoreDriver) {
    let store = driver.store();
    let first = write(store, |tx| {
        let first = start(tx, 1)?;
        tx.update_execution(&completed(&first.execution), &first.execution)?;
        Ok(first.execution)
    })
    .await;
    let end = completed(&first);
    for (to, from) in [
        (recorded(&first, Outcome::Failed), first.clone()),
        (Execution { state: ExecutionState::Failed, ..end.clone() }, end.clone()),
        (first.clone(), end.clone()),
    ] {
        conflicts(store, move |tx| tx.update_execution(&to, &from)).await;
    }
    let absent = Execution { id: ExecutionId::from_number(2), ..first.clone() };
    conflicts(store, move |tx| tx.update_execution(&absent, &absent)).await;
    assert_eq!(read(store, move |snapshot| snapshot.execution(first.id)).await, Some(end));
}

/// A lease is over at its very end and not a microsecond earlier. The longest expired comes first. What has
/// ended, and what only waits to be settled, holds no lease and is not listed.
pub async fn expired_leases_are_listed_exclusive_and_ordered(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| {
        for (number, until) in [(1, 50), (2, 40), (3, 60), (4, 10), (5, 10)] {
            start_with(tx, &work(number), |execution| {
                execution.lease = Some(Lease { owner: Incarnation::FIRST, until: second(until) });
            })?;
        }
        let stored = |tx: &mut dyn Tx, number| {
            let found = tx.execution(ExecutionId::from_number(number))?;
            Ok::<_, StoreError>(found.expect("it was written"))
        };
        let ended = stored(tx, 4)?;
        tx.update_execution(&completed(&ended), &ended)?;
        let settling = stored(tx, 5)?;
        tx.update_execution(&recorded(&settling, Outcome::Completed), &settling)
    })
    .await;
    let before = Timestamp::from_micros(second(50).as_micros() - 1);
    let ids = |executions: Vec<Execution>| executions.iter().map(|one| one.id.number()).collect::<Vec<_>>();
    let (early, exact, late, limited, next) = read(store, move |snapshot| {
        Ok((
            ids(snapshot.expired(before, 9)?),
            ids(snapshot.expired(second(50), 9)?),
            ids(snapshot.expired(second(99), 9)?),
            ids(snapshot.expired(second(99), 2)?),
            snapshot.next_expiry()?,
        ))
    })
    .await;
    assert_eq!(early, [2]);
    assert_eq!(exact, [2, 1]);
    assert_eq!(late, [2, 1, 3]);
    assert_eq!(limited, [2, 1]);
    assert_eq!(next, Some(second(40)));
}

/// Without a live lease there is no next expiry.
pub async fn nothing_live_means_no_next_expiry(driver: &impl StoreDriver) {
    let store = driver.store();
    assert_eq!(read(store, |snapshot| snapshot.next_expiry()).await, None);
    write(store, |tx| {
        let first = start(tx, 1)?;
        tx.update_execution(&completed(&first.execution), &first.execution)
    })
    .await;
    assert_eq!(read(store, |snapshot| snapshot.next_expiry()).await, None);
}

/// A renewal moves the expiry.
pub async fn renewed_lease_expires_later(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| {
        let before = start(tx, 1)?.execution;
        let lease = Some(Lease { owner: Incarnation::FIRST, until: second(500) });
        tx.update_execution(&Execution { lease, ..before.clone() }, &before)
    })
    .await;
    let (expired, next) =
        read(store, |snapshot| Ok((snapshot.expired(second(499), 9)?, snapshot.next_expiry()?))).await;
    assert_eq!(expired, []);
    assert_eq!(next, Some(second(500)));
}

/// Live attempts are counted per scope, no further than asked; one that waits to be settled still counts.
pub async fn live_executions_are_counted_up_to_the_limit(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| {
        for number in 1..=4 {
            start(tx, number)?;
        }
        start_with(tx, &Work { scope: ScopeName::known("main/sub"), ..work(5) }, |_execution| ())?;
        let stored = |tx: &mut dyn Tx, number| {
            let found = tx.execution(ExecutionId::from_number(number))?;
            Ok::<_, StoreError>(found.expect("it was written"))
        };
        let settling = stored(tx, 1)?;
        tx.update_execution(&recorded(&settling, Outcome::Handoff), &settling)?;
        let ended = stored(tx, 2)?;
        tx.update_execution(&completed(&ended), &ended)
    })
    .await;
    let counts = read(store, |snapshot| {
        let sub = ScopeName::known("main/sub");
        Ok([
            snapshot.count_live(&main_scope(), 0)?,
            snapshot.count_live(&main_scope(), 2)?,
            snapshot.count_live(&main_scope(), 3)?,
            snapshot.count_live(&main_scope(), 9)?,
            snapshot.count_live(&sub, 9)?,
            snapshot.count_live(&ScopeName::known("other"), 9)?,
        ])
    })
    .await;
    assert_eq!(counts, [0, 2, 3, 3, 1, 0]);
}

/// What has its outcome and waits to be settled is listed oldest first, until it ends.
pub async fn unsettled_executions_are_listed_until_they_end(driver: &impl StoreDriver) {
    let store = driver.store();
    let settling = write(store, |tx| {
        let mut settling = Vec::new();
        for number in [2, 1, 3, 4] {
            let live = start(tx, number)?.execution;
            if number != 4 {
                let waits = recorded(&live, Outcome::Completed);
                tx.update_execution(&waits, &live)?;
                settling.push(waits);
            }
        }
        let ended = &settling[2];
        tx.update_execution(&completed(ended), ended)?;
        Ok(settling)
    })
    .await;
    let (all, one) =
        read(store, |snapshot| Ok((snapshot.unsettled(None, 9)?, snapshot.unsettled(None, 1)?))).await;
    assert_eq!(all, [settling[1].clone(), settling[0].clone()]);
    assert_eq!(one, [settling[1].clone()]);
    let after = Some(one[0].id);
    let rest = read(store, move |snapshot| snapshot.unsettled(after, 9)).await;
    assert_eq!(rest, [settling[0].clone()]);
}

/// What ended while something of it may still run is listed until it is confirmed to have stopped, once.
pub async fn unstopped_executions_are_listed_until_they_stop(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| {
        for number in [3, 1, 2] {
            let live = start(tx, number)?.execution;
            let state = ExecutionState::Cancelled;
            let end = Execution { state, outcome: None, unstopped: number != 2, ..completed(&live) };
            tx.update_execution(&end, &live)?;
        }
        start(tx, 4)
    })
    .await;
    let ids = |found: Vec<Execution>| found.iter().map(|one| one.id.number()).collect::<Vec<_>>();
    let (all, one) = read(store, move |snapshot| {
        Ok((ids(snapshot.unstopped(None, 9)?), ids(snapshot.unstopped(None, 1)?)))
    })
    .await;
    assert_eq!(all, [1, 3]);
    assert_eq!(one, [1]);

    for (number, marked) in [(1, true), (1, false), (2, false), (4, false), (9, false)] {
        let had = write(store, move |tx| tx.mark_stopped(ExecutionId::from_number(number))).await;
        assert_eq!(had, marked, "{number}");
    }
    let (left, first) = read(store, move |snapshot| {
        Ok((ids(snapshot.unstopped(None, 9)?), snapshot.execution(ExecutionId::from_number(1))?))
    })
    .await;
    assert_eq!(left, [3]);
    let first = first.expect("it is kept");
    assert!(!first.unstopped && first.state == ExecutionState::Cancelled, "{first:?}");
}

/// The result of an Execution is kept once, whole.
pub async fn turn_result_is_kept_once(driver: &impl StoreDriver) {
    let store = driver.store();
    let id = write(store, |tx| start(tx, 1)).await.execution.id;
    assert_eq!(read(store, move |snapshot| snapshot.turn_result(id)).await, None);
    let full = TurnResult {
        retry_after_seconds: Some(90),
        usage_limit: Some(domain::credential::UsageLimit { resets_in_seconds: Some(600) }),
        outcome: Outcome::Failed,
        summary: Some("it “failed”\n\u{202e}\t🦀 '\\".to_owned()),
        code: Some("exit_status".to_owned()),
        exit_status: Some(-9),
        status: Some("BLOCKED".to_owned()),
        usage: vec![Usage { unit: "tokens".to_owned(), thousandths: i64::MAX }],
        artifacts: vec![Artifact { path: "out/ö.txt".to_owned(), bytes: 1 << 40 }],
        consumed_inputs: vec![EventId::from_number(1)],
        wait: Some(Box::new(Registration {
            keys: Some(vec![key("pr/1")]),
            types: vec![EventType::known("build.finished")],
            after: Some(Sequence::from_number(9)),
            timeout_seconds: Some(60),
        })),
    };
    let written = full.clone();
    write(store, move |tx| tx.insert_turn_result(id, &written)).await;
    let again: Result<(), StoreError> = store
        .transact("case", move |tx| tx.insert_turn_result(id, &TurnResult::of(Outcome::Completed)))
        .await;
    again.expect_err("a result is written once");
    assert_eq!(read(store, move |snapshot| snapshot.turn_result(id)).await, Some(full));
}

/// The end of an attempt and what it makes of its Work commit together or not at all.
pub async fn attempt_and_work_end_together(driver: &impl StoreDriver) {
    let store = driver.store();
    let first = write(store, |tx| start(tx, 1)).await;
    let stale = first.clone();
    conflicts(store, move |tx| {
        tx.update_execution(&completed(&stale.execution), &stale.execution)?;
        // A Work as it stood before the claim: this is what has to fail.
        tx.update_work(&idle(&work(1)), &work(1))
    })
    .await;
    let found = read(store, |snapshot| {
        Ok((snapshot.execution(ExecutionId::from_number(1))?, snapshot.work(WorkId::from_number(1))?))
    })
    .await;
    assert_eq!(found, (Some(first.execution), Some(first.work)));
}
