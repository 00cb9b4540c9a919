//! Durability: what was acknowledged is there when the database is opened again, and nothing is given twice.

use std::time::Duration;

use domain::event::{Event, Payload};
use domain::id::{EventId, ExecutionId, Sequence, WorkId};
use domain::lane::{LaneBlock, LaneId};
use domain::store::{GenerationRow, StoreError, Token, Tx};
use domain::text::Code;
use domain::time::Timestamp;

use super::sample::{
    Refused, Running, accept, accept_in_lane, completed, event, key, offer, read, second, start, work, write,
};
use super::{DurableDriver, StoreDriver};

/// Everything that a process writes before it stops, as one value to compare.
#[derive(Debug, Clone, PartialEq)]
struct Kept {
    running: (Event, domain::work::Work, domain::execution::Execution),
    payload: Option<Payload>,
    unrouted: Vec<domain::store::Unrouted>,
    block: Option<LaneBlock>,
    owner: Option<WorkId>,
    inputs: Vec<domain::input::Input>,
    generation: Option<GenerationRow>,
    tokens: Vec<Token>,
    feed: Vec<domain::feed::FeedRow>,
    charged: i64,
    next_expiry: Option<Timestamp>,
}

async fn kept(driver: &impl StoreDriver) -> Kept {
    read(driver.store(), |snapshot| {
        let id = ExecutionId::from_number(1);
        let event = snapshot.event(EventId::from_number(1))?.expect("the Event is kept");
        Ok(Kept {
            payload: snapshot.payload(event.sequence)?,
            running: (
                event,
                snapshot.work(WorkId::from_number(1))?.expect("the Work is kept"),
                snapshot.execution(id)?.expect("the Execution is kept"),
            ),
            unrouted: snapshot.route_candidates(9)?,
            block: snapshot.lane_block(LaneId::from_number(7))?,
            owner: snapshot.key_owner(&key("pr/1"))?,
            inputs: snapshot.inputs_of(id, Sequence::ZERO, 9)?,
            generation: snapshot.current_generation()?,
            tokens: snapshot.tokens(9)?,
            feed: snapshot.feed_after(Sequence::ZERO, 99)?,
            charged: snapshot.derived_in_minute(EventId::from_number(1), 1)?,
            next_expiry: snapshot.next_expiry()?,
        })
    })
    .await
}

fn write_some_of_everything(tx: &mut dyn Tx) -> Result<Running, StoreError> {
    let started = start(tx, 1)?;
    let waiting = accept_in_lane(tx, 2, LaneId::from_number(7))?;
    tx.put_lane_block(&LaneBlock {
        lane: LaneId::from_number(7),
        head: waiting.sequence,
        event: waiting.id,
        blocked_until: second(60),
        tries: 1,
        code: Code::known("handler_failed"),
        reason: "no".to_owned(),
    })?;
    tx.attach_key(&key("pr/1"), started.work.id)?;
    tx.insert_generation(&GenerationRow {
        number: domain::id::Generation::FIRST,
        body: "[scope.main]\n".to_owned(),
        digest: "0".repeat(64),
        applied_at: second(1),
    })?;
    tx.insert_token(&Token {
        digest: "1".repeat(64),
        label: "laptop".to_owned(),
        created_at: second(1),
        expires_at: None,
    })?;
    tx.charge_root(started.event.id, 1, 128)?;
    Ok(started)
}

/// What was acknowledged is there after the database was opened again, every part of it.
pub async fn acknowledged_writes_outlive_the_process(driver: &mut impl DurableDriver) {
    let started = write(driver.store(), |tx| write_some_of_everything(tx)).await;
    let before = kept(driver).await;
    assert_eq!(before.running, (started.event, started.work, started.execution));
    driver.reopen().await;
    assert_eq!(kept(driver).await, before);
    driver.reopen().await;
    assert_eq!(kept(driver).await, before, "opening changes nothing");
}

/// What was refused is as absent after the database was opened again as it was before.
pub async fn refused_writes_stay_absent(driver: &mut impl DurableDriver) {
    write(driver.store(), |tx| accept(tx, &event(2))).await;
    let answer: Result<(), Refused> = driver
        .store()
        .transact("case", |tx| {
            start(tx, 1)?;
            Err(Refused::OnPurpose)
        })
        .await;
    answer.expect_err("the body refused");
    driver.reopen().await;
    let found = read(driver.store(), |snapshot| {
        Ok((
            snapshot.event(EventId::from_number(1))?,
            snapshot.work(WorkId::from_number(1))?,
            snapshot.feed_after(Sequence::ZERO, 9)?.len(),
        ))
    })
    .await;
    assert_eq!(found, (None, None, 1));
}

/// A sequence is taken once over all lives of the process, pruned rows and empty transactions included.
pub async fn sequences_are_never_used_again(driver: &mut impl DurableDriver) {
    let mut last = Sequence::ZERO;
    for number in 1..=4 {
        let taken = write(driver.store(), move |tx| {
            let event = accept(tx, &event(number))?;
            tx.insert_work(&work(number))?;
            Ok((event.sequence, tx.last_sequence()))
        })
        .await;
        assert!(last < taken.0 && taken.0 < taken.1, "{last} {taken:?}");
        last = taken.1;
        driver.advance(Duration::from_mins(1));
        write(driver.store(), |tx| tx.prune_feed(Timestamp::MAX, 99)).await;
        driver.reopen().await;
        let seen = write(driver.store(), |tx| Ok(tx.last_sequence())).await;
        assert!(last <= seen, "{last} {seen}");
    }
}

/// A delivery that was accepted by an earlier life of the process is still a duplicate.
pub async fn deduplication_outlives_the_process(driver: &mut impl DurableDriver) {
    write(driver.store(), |tx| accept(tx, &event(1))).await;
    driver.reopen().await;
    let again = Event { id: EventId::from_number(2), ..event(1) };
    assert_eq!(write(driver.store(), move |tx| offer(tx, &again)).await, None);
}

/// Each life of a process has an incarnation of its own, and makes ids of its own.
pub async fn incarnations_are_never_used_again(driver: &mut impl DurableDriver) {
    let mut seen = Vec::new();
    for _ in 0..4 {
        let store = driver.store();
        let made = store.ids(domain::id::IdMaker::event);
        seen.push((store.incarnation(), made));
        driver.reopen().await;
    }
    let mut distinct = seen.clone();
    distinct.sort_by_key(|(incarnation, _made)| *incarnation);
    distinct.dedup_by_key(|(incarnation, _made)| *incarnation);
    assert_eq!(distinct.len(), seen.len(), "{seen:?}");
    distinct.sort_by_key(|(_incarnation, made)| *made);
    distinct.dedup_by_key(|(_incarnation, made)| *made);
    assert_eq!(distinct.len(), seen.len(), "{seen:?}");
}

/// An attempt that was live stays live, with its lease, and can be ended by whoever reads it.
pub async fn live_execution_outlives_the_process(driver: &mut impl DurableDriver) {
    let started = write(driver.store(), |tx| start(tx, 1)).await;
    driver.reopen().await;
    let lease_end = started.execution.lease.expect("it was written with one").until;
    let expired = read(driver.store(), move |snapshot| snapshot.expired(lease_end, 9)).await;
    assert_eq!(expired, std::slice::from_ref(&started.execution));
    write(driver.store(), move |tx| tx.update_execution(&completed(&started.execution), &started.execution))
        .await;
    driver.reopen().await;
    let expired = read(driver.store(), move |snapshot| snapshot.expired(lease_end, 9)).await;
    assert_eq!(expired, []);
}

/// The store's time does not go back when the database is opened again.
pub async fn time_does_not_go_back_over_a_reopen(driver: &mut impl DurableDriver) {
    let mut last = Timestamp::EPOCH;
    for _ in 0..3 {
        driver.advance(Duration::from_secs(1));
        let now = write(driver.store(), |tx| Ok(tx.now())).await;
        assert!(last <= now, "{last} {now}");
        last = now;
        driver.reopen().await;
    }
}

/// A closed store refuses what comes later, and says so.
pub async fn closed_store_refuses_and_says_so(driver: &mut impl DurableDriver) {
    let store = driver.store().clone();
    write(&store, |tx| accept(tx, &event(1))).await;
    store.close().await.expect("closing succeeds");
    let answer: Result<Event, StoreError> = store.transact("case", |tx| accept(tx, &event(2))).await;
    assert!(matches!(answer, Err(StoreError::Closed)), "{answer:?}");
    driver.reopen().await;
    let found = read(driver.store(), |snapshot| {
        Ok((snapshot.event(EventId::from_number(1))?.is_some(), snapshot.event(EventId::from_number(2))?))
    })
    .await;
    assert_eq!(found, (true, None));
}
