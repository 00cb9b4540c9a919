//! Lists for people: filters that combine, pages without repeats or gaps, and ids by their beginnings.

use domain::event::Event;
use domain::execution::{Execution, ExecutionState};
use domain::id::{EventId, ExecutionId, Sequence, WorkId};
use domain::lane::LaneId;
use domain::outcome::{Outcome, TurnResult};
use domain::route::{Checkpoint, CheckpointOutcome};
use domain::store::{EventFilter, ExecutionFilter, Outline, Snapshot, StoreError, Tx, WorkFilter};
use domain::text::{EventType, ScopeName, SourceName, WorkKind};
use domain::work::{Work, WorkState};

use super::StoreDriver;
use super::sample::{
    accept, accept_in_lane, checkpoint, completed, ended, event, key, main_scope, read, second, start,
    start_with, work, write,
};

fn sub_scope() -> ScopeName {
    ScopeName::known("main/sub")
}

/// Events 1 to 6, each of which differs from the first in one thing; 6 was routed to Work 1.
fn varied_events(tx: &mut dyn Tx) -> Result<(), StoreError> {
    tx.insert_work(&work(1))?;
    tx.insert_work(&work(2))?;
    accept(tx, &event(1))?;
    accept(tx, &Event { scope: sub_scope(), ..event(2) })?;
    accept(tx, &Event { event_type: EventType::known("build.started"), ..event(3) })?;
    accept(tx, &Event { source: SourceName::known("hook/cd"), ..event(4) })?;
    accept(tx, &Event { key: Some(key("pr/1")), work: Some(WorkId::from_number(1)), ..event(5) })?;
    let routed = accept_in_lane(tx, 6, LaneId::NONE)?;
    tx.route_off(&checkpoint(&routed, CheckpointOutcome::Routed, Some(WorkId::from_number(1))))?;
    let dropped = accept_in_lane(tx, 7, LaneId::NONE)?;
    tx.route_off(&checkpoint(&dropped, CheckpointOutcome::Dropped, None))
}

fn event_numbers(snapshot: &mut dyn Snapshot, filter: &EventFilter) -> Result<Vec<i64>, StoreError> {
    Ok(snapshot.events(filter, 100)?.iter().map(|event| event.id.number()).collect())
}

/// Events are listed newest first, and each filter keeps what it names.
pub async fn event_list_filters(driver: &impl StoreDriver) {
    write(driver.store(), |tx| varied_events(tx)).await;
    let none = EventFilter::default();
    let filters = [
        none.clone(),
        EventFilter { scope: Some(sub_scope()), ..none.clone() },
        EventFilter { event_type: Some(EventType::known("build.started")), ..none.clone() },
        EventFilter { source: Some(SourceName::known("hook/cd")), ..none.clone() },
        EventFilter { key: Some(key("pr/1")), ..none.clone() },
        EventFilter { work: Some(WorkId::from_number(1)), ..none.clone() },
        EventFilter { work: Some(WorkId::from_number(2)), ..none.clone() },
        EventFilter { outcome: Some(CheckpointOutcome::Routed), ..none.clone() },
        EventFilter { outcome: Some(CheckpointOutcome::Quarantined), ..none.clone() },
        EventFilter {
            scope: Some(main_scope()),
            work: Some(WorkId::from_number(1)),
            outcome: Some(CheckpointOutcome::Routed),
            ..none.clone()
        },
        EventFilter { scope: Some(sub_scope()), key: Some(key("pr/1")), ..none },
    ];
    let found: Vec<Vec<i64>> = read(driver.store(), move |snapshot| {
        filters.iter().map(|filter| event_numbers(snapshot, filter)).collect()
    })
    .await;
    let expect: [&[i64]; 11] =
        [&[7, 6, 5, 4, 3, 2, 1], &[2], &[3], &[4], &[5], &[6, 5], &[], &[6], &[], &[6], &[]];
    assert_eq!(found, expect);
}

/// Going on from the last Event of a page shows every older one once, whatever is accepted meanwhile.
pub async fn event_pages_neither_repeat_nor_skip(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| (1..=10).try_for_each(|number| accept(tx, &event(number)).map(drop))).await;
    let mut seen = Vec::new();
    let mut before: Option<Sequence> = None;
    loop {
        let filter = EventFilter { scope: Some(main_scope()), before, ..EventFilter::default() };
        let page = read(store, move |snapshot| snapshot.events(&filter, 3)).await;
        assert!(page.len() <= 3);
        let Some(last) = page.last() else { break };
        before = Some(last.sequence);
        seen.extend(page.iter().map(|event| event.id.number()));
        let newer = 100 + i64::try_from(seen.len()).expect("a few");
        write(store, move |tx| accept(tx, &event(newer))).await;
    }
    assert_eq!(seen, (1..=10).rev().collect::<Vec<_>>());
}

/// Works are listed newest first, and each filter keeps what it names.
pub async fn work_list_filters(driver: &impl StoreDriver) {
    write(driver.store(), |tx| {
        tx.insert_work(&work(1))?;
        tx.insert_work(&Work { scope: sub_scope(), ..work(2) })?;
        tx.insert_work(&Work { kind: WorkKind::known("schedule.job"), ..work(3) })?;
        tx.insert_work(&ended(&work(4), WorkState::Failed))?;
        tx.attach_key(&key("pr/1"), WorkId::from_number(4))?;
        start(tx, 5)
    })
    .await;
    let none = WorkFilter::default();
    let state = |word: &str| WorkFilter { state: Some(word.to_owned()), ..WorkFilter::default() };
    let filters = [
        none.clone(),
        WorkFilter { scope: Some(sub_scope()), ..none.clone() },
        WorkFilter { kind: Some(WorkKind::known("schedule.job")), ..none.clone() },
        state("ready"),
        state("running"),
        state("failed"),
        state("completed"),
        WorkFilter { key: Some(key("pr/1")), ..none.clone() },
        WorkFilter { key: Some(key("pr/2")), ..none.clone() },
        WorkFilter { before: Some(WorkId::from_number(3)), ..none.clone() },
        WorkFilter { scope: Some(main_scope()), before: Some(WorkId::from_number(5)), ..state("ready") },
        WorkFilter { key: Some(key("pr/1")), ..state("ready") },
    ];
    let found: Vec<Vec<i64>> = read(driver.store(), move |snapshot| {
        let numbers = |works: Vec<Work>| works.iter().map(|work| work.id.number()).collect();
        filters.iter().map(|filter| snapshot.works(filter, 100).map(numbers)).collect()
    })
    .await;
    let expect: [&[i64]; 12] =
        [&[5, 4, 3, 2, 1], &[2], &[3], &[3, 2, 1], &[5], &[4], &[], &[4], &[], &[2, 1], &[3, 1], &[]];
    assert_eq!(found, expect);
}

/// Going on from the last Work of a page shows every older one once.
pub async fn work_pages_neither_repeat_nor_skip(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| (1..=10).try_for_each(|number| tx.insert_work(&work(number)))).await;
    let mut seen = Vec::new();
    let mut before: Option<WorkId> = None;
    loop {
        let filter = WorkFilter { before, ..WorkFilter::default() };
        let page = read(store, move |snapshot| snapshot.works(&filter, 4)).await;
        let Some(last) = page.last() else { break };
        before = Some(last.id);
        seen.extend(page.iter().map(|work| work.id.number()));
    }
    assert_eq!(seen, (1..=10).rev().collect::<Vec<_>>());
}

/// Executions are listed newest first, and each filter keeps what it names.
pub async fn execution_list_filters(driver: &impl StoreDriver) {
    write(driver.store(), |tx| {
        start(tx, 1)?;
        start_with(tx, &Work { scope: sub_scope(), ..work(2) }, |_execution| ())?;
        start_with(tx, &Work { kind: WorkKind::known("schedule.job"), ..work(3) }, |_execution| ())?;
        start_with(tx, &work(4), |execution| execution.state = ExecutionState::Running)?;
        let last = start(tx, 5)?.execution;
        tx.update_execution(&completed(&last), &last)
    })
    .await;
    let none = ExecutionFilter::default();
    let state = |state| ExecutionFilter { state: Some(state), ..ExecutionFilter::default() };
    let filters = [
        none.clone(),
        ExecutionFilter { scope: Some(sub_scope()), ..none.clone() },
        ExecutionFilter { work_kind: Some(WorkKind::known("schedule.job")), ..none.clone() },
        ExecutionFilter { work: Some(WorkId::from_number(4)), ..none.clone() },
        state(ExecutionState::Launching),
        state(ExecutionState::Running),
        state(ExecutionState::Completed),
        state(ExecutionState::Cancelled),
        ExecutionFilter { before: Some(ExecutionId::from_number(3)), ..none.clone() },
        ExecutionFilter {
            scope: Some(main_scope()),
            work_kind: Some(WorkKind::known("manual.work")),
            ..state(ExecutionState::Launching)
        },
        ExecutionFilter { work: Some(WorkId::from_number(9)), ..none },
    ];
    let found: Vec<Vec<i64>> = read(driver.store(), move |snapshot| {
        let numbers = |found: Vec<Execution>| found.iter().map(|execution| execution.id.number()).collect();
        filters.iter().map(|filter| snapshot.executions(filter, 100).map(numbers)).collect()
    })
    .await;
    let expect: [&[i64]; 11] =
        [&[5, 4, 3, 2, 1], &[2], &[3], &[4], &[3, 2, 1], &[4], &[5], &[], &[2, 1], &[1], &[]];
    assert_eq!(found, expect);
}

/// Going on from the last Execution of a page shows every older one once.
pub async fn execution_pages_neither_repeat_nor_skip(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| (1..=7).try_for_each(|number| start(tx, number).map(drop))).await;
    let mut seen = Vec::new();
    let mut before: Option<ExecutionId> = None;
    loop {
        let filter = ExecutionFilter { scope: Some(main_scope()), before, ..ExecutionFilter::default() };
        let page = read(store, move |snapshot| snapshot.executions(&filter, 3)).await;
        let Some(last) = page.last() else { break };
        before = Some(last.id);
        seen.extend(page.iter().map(|execution| execution.id.number()));
    }
    assert_eq!(seen, (1..=7).rev().collect::<Vec<_>>());
}

fn execution_numbers(
    snapshot: &mut dyn Snapshot,
    filter: &ExecutionFilter,
    limit: u32,
) -> Result<Vec<i64>, StoreError> {
    Ok(snapshot.executions(filter, limit)?.iter().map(|execution| execution.id.number()).collect())
}

/// Executions 1 to 5: 2 and 4 have ended, 4 in the other scope.
fn live_and_ended(tx: &mut dyn Tx) -> Result<(), StoreError> {
    for number in 1..=5 {
        let scope = if number == 4 { sub_scope() } else { main_scope() };
        let live = start_with(tx, &Work { scope, ..work(number) }, |_execution| ())?.execution;
        if number % 2 == 0 {
            let ended_at = Some(second(1_000 + number));
            tx.update_execution(&Execution { ended_at, ..completed(&live) }, &live)?;
        }
    }
    Ok(())
}

/// A list of what is live leaves out what has ended, and the other way round, with pages and filters as ever.
pub async fn live_and_ended_executions_are_listed_apart(driver: &impl StoreDriver) {
    write(driver.store(), |tx| live_and_ended(tx)).await;
    let live = ExecutionFilter { live: Some(true), ..ExecutionFilter::default() };
    let ended = ExecutionFilter { live: Some(false), ..ExecutionFilter::default() };
    let before = Some(ExecutionId::from_number(4));
    let filters = [
        (live.clone(), 9),
        (live.clone(), 2),
        (ExecutionFilter { before, ..live.clone() }, 9),
        (ExecutionFilter { scope: Some(sub_scope()), ..live }, 9),
        (ended.clone(), 9),
        (ExecutionFilter { before, ..ended.clone() }, 9),
        (ExecutionFilter { scope: Some(sub_scope()), ..ended }, 9),
    ];
    let found: Vec<Vec<i64>> = read(driver.store(), move |snapshot| {
        filters.iter().map(|(filter, limit)| execution_numbers(snapshot, filter, *limit)).collect()
    })
    .await;
    let expect: [&[i64]; 7] = [&[5, 3, 1], &[5, 3], &[3, 1], &[], &[4, 2], &[2], &[4]];
    assert_eq!(found, expect);
}

/// An outline has the trigger's type and source, every key of the Work, and the summary of a result.
pub async fn outlines_say_what_people_remember(driver: &impl StoreDriver) {
    let result =
        TurnResult { summary: Some("all “good” 🦀".to_owned()), ..TurnResult::of(Outcome::Completed) };
    let kept = result.clone();
    write(driver.store(), move |tx| {
        start(tx, 1)?;
        let live = start(tx, 2)?.execution;
        tx.attach_key(&key("pr/2"), live.work)?;
        tx.attach_key(&key("build/2"), live.work)?;
        tx.insert_turn_result(live.id, &kept)?;
        tx.update_execution(&completed(&live), &live)?;
        start_with(
            tx,
            &Work { scope: sub_scope(), kind: WorkKind::known("test.other"), ..work(3) },
            |_live| (),
        )
        .map(drop)
    })
    .await;
    let none = ExecutionFilter::default();
    let filters = [
        (none.clone(), 9),
        (none.clone(), 2),
        (
            ExecutionFilter {
                scope: Some(main_scope()),
                before: Some(ExecutionId::from_number(2)),
                ..none.clone()
            },
            9,
        ),
        (ExecutionFilter { work: Some(WorkId::from_number(3)), ..none.clone() }, 9),
        (ExecutionFilter { live: Some(true), ..none }, 9),
    ];
    let found: Vec<Vec<Outline>> = read(driver.store(), move |snapshot| {
        filters.iter().map(|(filter, limit)| snapshot.outlines(filter, *limit)).collect()
    })
    .await;
    let outline = |number: i64| Outline {
        execution: ExecutionId::from_number(number),
        state: ExecutionState::Launching,
        work_kind: WorkKind::known("manual.work"),
        event_type: EventType::known("build.finished"),
        source: SourceName::known("hook/ci"),
        keys: Vec::new(),
        summary: None,
    };
    let second = Outline {
        state: ExecutionState::Completed,
        keys: vec![key("build/2"), key("pr/2")],
        summary: result.summary,
        ..outline(2)
    };
    let third = Outline { work_kind: WorkKind::known("test.other"), ..outline(3) };
    assert_eq!(found[0], [third.clone(), second.clone(), outline(1)]);
    assert_eq!(found[1], [third.clone(), second]);
    assert_eq!(found[2], [outline(1)]);
    assert_eq!(found[3], std::slice::from_ref(&third));
    assert_eq!(found[4], [third, outline(1)]);
}

/// What ended at a moment or after it is listed, the last to end first; what is live is not.
pub async fn executions_that_ended_lately_are_listed(driver: &impl StoreDriver) {
    write(driver.store(), |tx| live_and_ended(tx)).await;
    for (since, limit, expect) in
        [(0, 9, &[4, 2][..]), (1_002, 9, &[4, 2]), (1_003, 9, &[4]), (0, 1, &[4]), (1_005, 9, &[])]
    {
        let found = read(driver.store(), move |snapshot| snapshot.ended_since(second(since), limit)).await;
        let numbers: Vec<i64> = found.iter().map(|execution| execution.id.number()).collect();
        assert_eq!(numbers, expect, "since {since}");
    }
}

/// Quarantined Events are listed from a moment on, newest first, and no others are.
pub async fn quarantined_events_are_listed_by_time(driver: &impl StoreDriver) {
    write(driver.store(), |tx| {
        for number in 1..=4 {
            let event = accept_in_lane(tx, number, LaneId::NONE)?;
            let outcome =
                if number == 2 { CheckpointOutcome::Dropped } else { CheckpointOutcome::Quarantined };
            tx.route_off(&Checkpoint { at: second(number), ..checkpoint(&event, outcome, None) })?;
        }
        Ok(())
    })
    .await;
    for (since, limit, expect) in [(0, 9, &[4, 3, 1][..]), (3, 9, &[4, 3]), (0, 1, &[4]), (5, 9, &[])] {
        let found = read(driver.store(), move |snapshot| snapshot.quarantined(second(since), limit)).await;
        let numbers: Vec<i64> = found.iter().map(|checkpoint| checkpoint.event.number()).collect();
        assert_eq!(numbers, expect, "since {since}");
        assert!(found.iter().all(|checkpoint| checkpoint.outcome == CheckpointOutcome::Quarantined));
    }
}

/// A shortened id stands for a range, both ends included, over the whole span of ids.
pub async fn shortened_ids_find_their_range(driver: &impl StoreDriver) {
    let store = driver.store();
    let numbers = [0, 31, 32, 1 << 40, (1 << 62) + 5, i64::MAX];
    write(store, move |tx| {
        for number in numbers {
            let ready = work(1);
            let event = accept(tx, &event(number))?;
            let ready = Work { id: WorkId::from_number(number), ..ready };
            tx.insert_work(&ready)?;
            let execution = super::sample::execution(1, &ready, &event);
            tx.insert_execution(&Execution { id: ExecutionId::from_number(number), ..execution })?;
        }
        Ok(())
    })
    .await;
    for (low, high, limit, expect) in [
        (0, i64::MAX, 9, &numbers[..]),
        (31, 32, 9, &numbers[1..3]),
        (33, (1 << 62) + 5, 9, &numbers[3..5]),
        (0, i64::MAX, 2, &numbers[..2]),
        (33, 34, 9, &[]),
    ] {
        let (events, works, executions) = read(store, move |snapshot| {
            let of = |number| (EventId::from_number(number), WorkId::from_number(number));
            let run = ExecutionId::from_number;
            Ok((
                snapshot.event_ids(of(low).0, of(high).0, limit)?,
                snapshot.work_ids(of(low).1, of(high).1, limit)?,
                snapshot.execution_ids(run(low), run(high), limit)?,
            ))
        })
        .await;
        assert_eq!(events, expect.iter().copied().map(EventId::from_number).collect::<Vec<_>>());
        assert_eq!(works, expect.iter().copied().map(WorkId::from_number).collect::<Vec<_>>());
        assert_eq!(executions, expect.iter().copied().map(ExecutionId::from_number).collect::<Vec<_>>());
    }
}
