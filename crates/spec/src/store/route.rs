//! Routing: the queue of unrouted Events, its lanes and their blocks, and the one checkpoint of each Event.

use domain::event::Event;
use domain::id::{EventId, Generation, Sequence, WorkId};
use domain::lane::{LaneBlock, LaneId};
use domain::route::{ActivePolicy, Checkpoint, CheckpointOutcome};
use domain::store::{Snapshot, StoreError, Unrouted};
use domain::text::{Code, RouteName};
use domain::time::Timestamp;

use super::StoreDriver;
use super::sample::{accept, accept_in_lane, checkpoint, conflicts, event, read, second, work, write};

const RED: LaneId = LaneId::from_number(7);
const BLUE: LaneId = LaneId::from_number(-8);

/// Accepts Events 1, 2, … in these lanes, one transaction each.
async fn accept_in(driver: &impl StoreDriver, lanes: &[LaneId]) -> Vec<Event> {
    let mut events = Vec::new();
    for (number, lane) in (1..).zip(lanes.iter().copied()) {
        events.push(write(driver.store(), move |tx| accept_in_lane(tx, number, lane)).await);
    }
    events
}

fn candidates(snapshot: &mut dyn Snapshot) -> Result<Vec<Sequence>, StoreError> {
    Ok(snapshot.route_candidates(100)?.into_iter().map(|candidate| candidate.sequence).collect())
}

fn sequences(events: &[&Event]) -> Vec<Sequence> {
    events.iter().map(|event| event.sequence).collect()
}

/// Events wait to be routed in the order of their acceptance, whatever their lanes.
pub async fn candidates_stand_in_acceptance_order(driver: &impl StoreDriver) {
    let events = accept_in(driver, &[RED, LaneId::NONE, BLUE, RED]).await;
    let (found, first_two) =
        read(driver.store(), |snapshot| Ok((snapshot.route_candidates(100)?, snapshot.route_candidates(2)?)))
            .await;
    let lanes = [RED, LaneId::NONE, BLUE, RED];
    let expect: Vec<Unrouted> =
        events.iter().zip(lanes).map(|(event, lane)| Unrouted { sequence: event.sequence, lane }).collect();
    assert_eq!(found, expect);
    assert_eq!(first_two, expect[..2]);
}

/// A checkpoint is written once; a second one is refused, and the first stays.
pub async fn event_is_routed_once(driver: &impl StoreDriver) {
    let store = driver.store();
    let events = accept_in(driver, &[RED]).await;
    let first = checkpoint(&events[0], CheckpointOutcome::Unmatched, None);
    let written = first.clone();
    write(store, move |tx| tx.route_off(&written)).await;
    let again = Checkpoint { outcome: CheckpointOutcome::Dropped, ..first.clone() };
    conflicts(store, move |tx| tx.route_off(&again)).await;

    let sequence = first.sequence;
    let (kept, queued, waiting) = read(store, move |snapshot| {
        Ok((snapshot.checkpoint(sequence)?, snapshot.unrouted(sequence)?, snapshot.count_unrouted(9)?))
    })
    .await;
    assert_eq!(kept, Some(first));
    assert_eq!(queued, None);
    assert_eq!(waiting, 0);
}

/// An Event that does not stand in the queue cannot be taken from it, and gets no checkpoint that way.
pub async fn checkpoint_of_an_event_outside_the_queue_is_refused(driver: &impl StoreDriver) {
    let store = driver.store();
    let outside = write(store, |tx| accept(tx, &event(1))).await;
    let refused = checkpoint(&outside, CheckpointOutcome::Unmatched, None);
    let sequence = refused.sequence;
    conflicts(store, move |tx| tx.route_off(&refused)).await;
    assert_eq!(read(store, move |snapshot| snapshot.checkpoint(sequence)).await, None);

    // What is decided at acceptance has a way of its own.
    let decided = checkpoint(&outside, CheckpointOutcome::Dropped, None);
    let written = decided.clone();
    write(store, move |tx| tx.insert_checkpoint(&written)).await;
    assert_eq!(read(store, move |snapshot| snapshot.checkpoint(sequence)).await, Some(decided));
}

/// Routing a later Event first leaves the earlier one in the queue.
pub async fn later_event_may_be_routed_first(driver: &impl StoreDriver) {
    let store = driver.store();
    let events = accept_in(driver, &[RED, BLUE, RED]).await;
    let second = checkpoint(&events[1], CheckpointOutcome::Unmatched, None);
    write(store, move |tx| tx.route_off(&second)).await;
    let left = read(store, |snapshot| candidates(snapshot)).await;
    assert_eq!(left, sequences(&[&events[0], &events[2]]));
}

/// Every field of a checkpoint comes back as it was written.
pub async fn checkpoint_reads_back_as_written(driver: &impl StoreDriver) {
    let store = driver.store();
    let events = accept_in(driver, &[LaneId::NONE; 5]).await;
    let target = work(1);
    write(store, move |tx| tx.insert_work(&target)).await;
    for (event, outcome) in events.iter().zip(CheckpointOutcome::ALL) {
        let full = Checkpoint {
            sequence: event.sequence,
            event: event.id,
            outcome,
            route: Some(RouteName::known("team/ci")),
            policy: Some(ActivePolicy::Drop),
            work: Some(WorkId::from_number(1)),
            generation: Generation::from_number(12),
            code: Some(Code::known("active_drop")),
            reason: Some("the “Work” was running; it's 'busy' 🦀".to_owned()),
            at: second(77),
        };
        let written = full.clone();
        write(store, move |tx| tx.route_off(&written)).await;
        let sequence = full.sequence;
        assert_eq!(read(store, move |snapshot| snapshot.checkpoint(sequence)).await, Some(full));
    }
}

/// A parked Event waits behind its lane's block: no candidate, still unrouted, and back when it is unparked.
pub async fn parked_events_come_back_a_few_at_a_time(driver: &impl StoreDriver) {
    let store = driver.store();
    let events = accept_in(driver, &[RED, BLUE, RED, RED]).await;
    let red = sequences(&[&events[0], &events[2], &events[3]]);
    let parked = red.clone();
    write(store, move |tx| parked.iter().try_for_each(|sequence| tx.park_unrouted(*sequence))).await;
    let (left, waiting) =
        read(store, |snapshot| Ok((candidates(snapshot)?, snapshot.count_unrouted(9)?))).await;
    assert_eq!(left, sequences(&[&events[1]]));
    assert_eq!(waiting, 4);

    assert_eq!(write(store, |tx| tx.unpark_lane(RED, 2)).await, 2);
    let left = read(store, |snapshot| candidates(snapshot)).await;
    assert_eq!(
        left,
        sequences(&[&events[0], &events[1], &events[2]]),
        "the first ones of the lane come first"
    );
    assert_eq!(write(store, |tx| tx.unpark_lane(RED, 2)).await, 1);
    assert_eq!(write(store, |tx| tx.unpark_lane(RED, 2)).await, 0);
    assert_eq!(
        read(store, |snapshot| candidates(snapshot)).await,
        sequences(&events.iter().collect::<Vec<_>>())
    );
}

/// A parked Event can be routed without being unparked: a quarantine does that.
pub async fn parked_event_can_be_routed(driver: &impl StoreDriver) {
    let store = driver.store();
    let events = accept_in(driver, &[RED]).await;
    let set_aside = checkpoint(&events[0], CheckpointOutcome::Quarantined, None);
    write(store, move |tx| {
        tx.park_unrouted(set_aside.sequence)?;
        tx.route_off(&set_aside)
    })
    .await;
    assert_eq!(read(store, |snapshot| snapshot.count_unrouted(9)).await, 0);
}

/// What stands before an Event is asked for by lanes, parked Events included, the Event itself not.
pub async fn earlier_unrouted_looks_at_the_given_lanes(driver: &impl StoreDriver) {
    let store = driver.store();
    let events = accept_in(driver, &[RED, BLUE, RED]).await;
    let [first, second, third] = [0, 1, 2].map(|index: usize| events[index].sequence);
    write(store, move |tx| tx.park_unrouted(first)).await;
    let found = read(store, move |snapshot| {
        Ok([
            snapshot.earlier_unrouted(&[RED], third)?,
            snapshot.earlier_unrouted(&[BLUE], third)?,
            snapshot.earlier_unrouted(&[BLUE, RED], third)?,
            snapshot.earlier_unrouted(&[RED], first)?,
            snapshot.earlier_unrouted(&[BLUE], second)?,
            snapshot.earlier_unrouted(&[LaneId::from_number(1)], third)?,
            snapshot.earlier_unrouted(&[], third)?,
        ])
    })
    .await;
    assert_eq!(found, [Some(first), Some(second), Some(first), None, None, None, None]);
}

/// A lane's backlog lists parked Events too, first ones first, and ends before the Event that was named.
pub async fn lane_backlog_lists_parked_events_too(driver: &impl StoreDriver) {
    let store = driver.store();
    let events = accept_in(driver, &[RED, BLUE, RED, RED]).await;
    let [first, third, fourth] = [0, 2, 3].map(|index: usize| events[index].sequence);
    write(store, move |tx| tx.park_unrouted(third)).await;
    let (before, limited, all) = read(store, move |snapshot| {
        Ok((
            snapshot.unrouted_in_lane(RED, fourth, 9)?,
            snapshot.unrouted_in_lane(RED, fourth, 1)?,
            snapshot.unrouted_in_lane(RED, fourth.next(), 9)?,
        ))
    })
    .await;
    assert_eq!(before, [first, third]);
    assert_eq!(limited, [first]);
    assert_eq!(all, [first, third, fourth]);
}

/// Nothing orders an Event without a lane: it stands behind no other, and a block of it is its own, filed
/// under the negative of its sequence.
pub async fn event_without_a_lane_stands_alone(driver: &impl StoreDriver) {
    let store = driver.store();
    let events = accept_in(driver, &[LaneId::NONE, LaneId::NONE]).await;
    let [first, second] = [0, 1].map(|index: usize| events[index].sequence);
    let alone = LaneId::from_number(-second.number());
    write(store, move |tx| {
        tx.park_unrouted(first)?;
        tx.park_unrouted(second)
    })
    .await;
    let (earlier, backlog, none) = read(store, move |snapshot| {
        Ok((
            snapshot.earlier_unrouted(&[LaneId::NONE], second)?,
            snapshot.unrouted_in_lane(alone, second.next(), 9)?,
            snapshot.unrouted_in_lane(LaneId::NONE, second.next(), 9)?,
        ))
    })
    .await;
    assert_eq!(earlier, None);
    assert_eq!(backlog, [second]);
    assert_eq!(none, []);
    assert_eq!(write(store, move |tx| tx.unpark_lane(alone, 9)).await, 1);
    assert_eq!(read(store, |snapshot| candidates(snapshot)).await, [second]);
}

/// How many wait is counted no further than asked.
pub async fn unrouted_count_stops_at_its_limit(driver: &impl StoreDriver) {
    accept_in(driver, &[RED, BLUE, RED]).await;
    let counts = read(driver.store(), |snapshot| {
        Ok([snapshot.count_unrouted(0)?, snapshot.count_unrouted(2)?, snapshot.count_unrouted(9)?])
    })
    .await;
    assert_eq!(counts, [0, 2, 3]);
}

fn block(lane: LaneId, head: &Event, until: Timestamp) -> LaneBlock {
    LaneBlock {
        lane,
        head: head.sequence,
        event: head.id,
        blocked_until: until,
        tries: 1,
        code: Code::known("handler_failed"),
        reason: "the handler said “no”, it's 'busy' 🦀".to_owned(),
    }
}

/// Blocks come due by time, at that very moment and not before, and are listed by the age of their heads.
pub async fn lane_blocks_come_due_in_order(driver: &impl StoreDriver) {
    let store = driver.store();
    let events = accept_in(driver, &[RED, BLUE, LaneId::NONE]).await;
    let alone = LaneId::from_number(-events[2].sequence.number());
    let blocks = [
        block(RED, &events[0], second(30)),
        block(BLUE, &events[1], second(10)),
        block(alone, &events[2], second(20)),
    ];
    let written = blocks.clone();
    write(store, move |tx| written.iter().try_for_each(|block| tx.put_lane_block(block))).await;
    let [red, blue, free] = blocks;

    let before = Timestamp::from_micros(second(20).as_micros() - 1);
    let (one, two, limited, next, all) = read(store, move |snapshot| {
        Ok((
            snapshot.due_blocks(before, 9)?,
            snapshot.due_blocks(second(20), 9)?,
            snapshot.due_blocks(second(99), 2)?,
            snapshot.next_block_due()?,
            snapshot.lane_blocks(9)?,
        ))
    })
    .await;
    assert_eq!(one, std::slice::from_ref(&blue));
    assert_eq!(two, [blue.clone(), free.clone()]);
    assert_eq!(limited, [blue.clone(), free.clone()]);
    assert_eq!(next, Some(second(10)));
    assert_eq!(all, [red, blue, free]);
}

/// A lane has one block: a later one replaces it, and removing it leaves the others.
pub async fn lane_has_one_block(driver: &impl StoreDriver) {
    let store = driver.store();
    let events = accept_in(driver, &[RED, BLUE]).await;
    let first = block(RED, &events[0], second(10));
    let again = LaneBlock { tries: 2, blocked_until: second(40), ..first.clone() };
    let other = block(BLUE, &events[1], second(50));
    let written = [first, again.clone(), other.clone()];
    write(store, move |tx| written.iter().try_for_each(|block| tx.put_lane_block(block))).await;
    let (red, next) =
        read(store, |snapshot| Ok((snapshot.lane_block(RED)?, snapshot.next_block_due()?))).await;
    assert_eq!(red, Some(again));
    assert_eq!(next, Some(second(40)));

    write(store, |tx| tx.delete_lane_block(RED)).await;
    let (red, all) = read(store, |snapshot| Ok((snapshot.lane_block(RED)?, snapshot.lane_blocks(9)?))).await;
    assert_eq!(red, None);
    assert_eq!(all, [other]);
    write(store, |tx| tx.delete_lane_block(BLUE)).await;
    assert_eq!(read(store, |snapshot| snapshot.next_block_due()).await, None);
}

/// What was never accepted stands in no queue.
pub async fn absent_event_is_not_unrouted(driver: &impl StoreDriver) {
    let found = read(driver.store(), |snapshot| {
        Ok((snapshot.unrouted(Sequence::from_number(5))?, snapshot.event(EventId::from_number(5))?))
    })
    .await;
    assert_eq!(found, (None, None));
}
