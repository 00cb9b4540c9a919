//! Acceptance: a delivery is one Event, whoever sends it how often, in the order of commits.

use domain::causal::Bounds;
use domain::event::{Causation, Event, PAYLOAD_BYTES_MAX, Payload};
use domain::id::{EventId, ExecutionId, Sequence, WorkId};
use domain::store::{StoreError, Tx};
use domain::text::{DeliveryId, EventType, SourceName};

use super::StoreDriver;
use super::sample::{accept, event, key, offer, read, second, start, write};
use super::together::{Request, in_one_batch};

/// A delivery that comes again writes nothing; its Event is the one of the first time.
pub async fn same_delivery_is_one_event(driver: &impl StoreDriver) {
    let store = driver.store();
    let first = write(store, |tx| accept(tx, &event(1))).await;
    let again = Event { id: EventId::from_number(2), ..event(1) };
    let second = write(store, move |tx| offer(tx, &again)).await;
    assert_eq!(second, None, "the delivery was accepted before");

    let Event { source, delivery_id, .. } = first.clone();
    let (found, other, feed) = read(store, move |snapshot| {
        Ok((
            snapshot.event_of_delivery(&source, &delivery_id)?,
            snapshot.event(EventId::from_number(2))?,
            snapshot.feed_after(Sequence::ZERO, 10)?,
        ))
    })
    .await;
    assert_eq!(found, Some(first));
    assert_eq!(other, None);
    assert_eq!(feed.len(), 1, "the second delivery changed nothing: {feed:?}");
}

/// The same delivery twice in one transaction is one Event as well.
pub async fn same_delivery_twice_in_one_transaction_is_one_event(driver: &impl StoreDriver) {
    let answers = write(driver.store(), |tx| {
        let again = Event { id: EventId::from_number(2), ..event(1) };
        Ok((offer(tx, &event(1))?.is_some(), offer(tx, &again)?.is_some()))
    })
    .await;
    assert_eq!(answers, (true, false));
}

/// A delivery id means something only within its source.
pub async fn other_source_is_another_delivery(driver: &impl StoreDriver) {
    let store = driver.store();
    let here = write(store, |tx| accept(tx, &event(1))).await;
    let elsewhere =
        Event { id: EventId::from_number(2), source: SourceName::known("hook/other"), ..event(1) };
    let there = write(store, move |tx| accept(tx, &elsewhere)).await;
    assert_eq!(here.delivery_id, there.delivery_id);
    let found =
        read(store, move |snapshot| snapshot.event_of_delivery(&there.source, &there.delivery_id)).await;
    assert_eq!(found.map(|event| event.id), Some(EventId::from_number(2)));
}

/// Deliveries that race are one Event, and everyone is told which.
pub async fn concurrent_duplicates_become_one_event(driver: &impl StoreDriver) {
    let store = driver.store();
    let requests = (1..=16).map(|number| {
        let store = store.clone();
        let proposed = Event { id: EventId::from_number(number), ..event(1) };
        let request: Request<(bool, EventId)> = Box::pin(async move {
            write(&store, move |tx| {
                let new = offer(tx, &proposed)?.is_some();
                let original = tx.event_of_delivery(&proposed.source, &proposed.delivery_id)?;
                Ok((new, original.expect("it was just offered").id))
            })
            .await
        });
        request
    });
    let answers = in_one_batch(store, requests.collect()).await;
    assert_eq!(answers.iter().filter(|(new, _id)| *new).count(), 1, "{answers:?}");
    assert!(answers.iter().all(|(_new, id)| *id == answers[0].1), "{answers:?}");
    assert_eq!(answers[0], (true, EventId::from_number(1)), "requests run in the order of submission");
}

/// Sequences rise in the order in which requests commit.
pub async fn sequence_order_is_commit_order(driver: &impl StoreDriver) {
    let store = driver.store();
    let requests = (1..=32).map(|number| {
        let store = store.clone();
        let request: Request<Sequence> =
            Box::pin(async move { write(&store, move |tx| Ok(accept(tx, &event(number))?.sequence)).await });
        request
    });
    let taken = in_one_batch(store, requests.collect()).await;
    assert!(taken.is_sorted_by(|low, high| low < high), "{taken:?}");
    let (feed, newest) = read(store, |snapshot| {
        Ok((snapshot.feed_after(Sequence::ZERO, 100)?, snapshot.event_at(Sequence::ZERO)?))
    })
    .await;
    let rows: Vec<Sequence> = feed.iter().map(|row| row.sequence).collect();
    assert_eq!(rows, taken, "an Event's row of the feed stands at its sequence");
    assert_eq!(newest, None, "no Event stands at zero");
}

/// Every field of an Event comes back as it was written.
pub async fn event_reads_back_as_written(driver: &impl StoreDriver) {
    let store = driver.store();
    let full = Event {
        source: SourceName::known("hook/Ünïcode 🦀 \"quoted\" 'single'"),
        delivery_id: DeliveryId::known("\u{202e}rtl\u{202c} שלום; DROP TABLE x; -- %_\\ $1 ?1"),
        event_type: EventType::known("build.finished-2"),
        key: Some(key("e\u{301} is not \u{e9}")),
        work: Some(WorkId::from_number(1)),
        causation: Causation {
            parent: Some(EventId::from_number(1)),
            root: EventId::from_number(1),
            depth: 1,
            bounds: Bounds { max_depth: 1024, per_minute: 100_000 },
        },
        emitted_by: Some(ExecutionId::from_number(1)),
        occurred_at: Some(second(-5)),
        ..event(2)
    };
    let written = write(store, move |tx| {
        start(tx, 1)?;
        accept(tx, &full)
    })
    .await;
    let wanted = written.clone();
    let (by_id, by_sequence, by_delivery) = read(store, move |snapshot| {
        Ok((
            snapshot.event(wanted.id)?,
            snapshot.event_at(wanted.sequence)?,
            snapshot.event_of_delivery(&wanted.source, &wanted.delivery_id)?,
        ))
    })
    .await;
    assert_eq!(by_id.as_ref(), Some(&written));
    assert_eq!(by_sequence.as_ref(), Some(&written));
    assert_eq!(by_delivery.as_ref(), Some(&written));
}

/// A payload comes back byte for byte: spaces, order and doubles of keys, any plane of Unicode, any size.
pub async fn payload_is_kept_byte_for_byte(driver: &impl StoreDriver) {
    let largest = format!("\"{}\"", "x".repeat(PAYLOAD_BYTES_MAX - 2));
    let texts = [
        "null".to_owned(),
        "\"\"".to_owned(),
        " { \"b\" : 1,\n\t\"a\": 1.0e+2, \"b\": 1 } ".to_owned(),
        "\"\\u0000 \u{1f980} \u{202e}\u{5e9} e\u{301} \\ud83e\\udd80 '' $1 ?1 %_\"".to_owned(),
        "123456789012345678901234567890.000".to_owned(),
        largest,
    ];
    for (number, text) in (1..).zip(texts) {
        let payload = Payload::new(text.into_bytes()).expect("the sample is JSON of a size that is allowed");
        let written = payload.clone();
        let found = write(driver.store(), move |tx: &mut dyn Tx| {
            let event = Event { sequence: tx.next_sequence(), ..event(number) };
            assert!(tx.insert_event(&event, &written)?);
            Ok(event.sequence)
        })
        .await;
        let kept = read(driver.store(), move |snapshot| snapshot.payload(found)).await;
        assert!(kept.as_ref() == Some(&payload), "sample {number} changed: {kept:?}");
    }
}

/// An Event that was never accepted has no payload and no count of redeliveries.
pub async fn absent_event_reads_as_none(driver: &impl StoreDriver) {
    let found = read(driver.store(), |snapshot| {
        let sequence = Sequence::from_number(99);
        Ok((
            snapshot.event(EventId::from_number(99))?,
            snapshot.event_at(sequence)?,
            snapshot.payload(sequence)?,
            snapshot.checkpoint(sequence)?,
        ))
    })
    .await;
    assert_eq!(found, (None, None, None, None));
}

/// Redeliveries are counted apart from the Event, with the time of the last one.
pub async fn redeliveries_are_counted(driver: &impl StoreDriver) {
    let store = driver.store();
    let accepted = write(store, |tx| accept(tx, &event(1))).await;
    let sequence = accepted.sequence;
    for at in [second(5), second(8)] {
        write(store, move |tx| tx.count_redelivery(sequence, at)).await;
    }
    let (redelivery, now) =
        read(store, move |snapshot| Ok((snapshot.redelivery(sequence)?, snapshot.event_at(sequence)?))).await;
    let redelivery = redelivery.expect("the delivery came again");
    assert_eq!((redelivery.count, redelivery.last_at), (2, second(8)));
    assert_eq!(now, Some(accepted), "the Event itself never changes");
}

/// Derived Events are counted per root and minute.
pub async fn derived_events_are_counted_per_root_and_minute(driver: &impl StoreDriver) {
    let store = driver.store();
    let (one, two) = (EventId::from_number(1), EventId::from_number(2));
    let counts = write(store, move |tx| {
        accept(tx, &event(1))?;
        accept(tx, &event(2))?;
        for (root, minute) in [(one, 7), (one, 7), (one, 8), (two, 7)] {
            assert!(tx.charge_root(root, minute, 128)?);
        }
        counts(tx, one, two)
    })
    .await;
    assert_eq!(counts, [2, 1, 0, 1], "a transaction sees what it counted");
}

/// What a chain has had in a minute is not counted past its share, and the next minute has its own.
pub async fn a_full_minute_takes_no_more(driver: &impl StoreDriver) {
    let store = driver.store();
    let root = EventId::from_number(1);
    let charged = write(store, move |tx| {
        accept(tx, &event(1))?;
        let mut charged = Vec::new();
        for minute in [7, 7, 7, 8, 7] {
            charged.push(tx.charge_root(root, minute, 2)?);
        }
        Ok((charged, tx.derived_in_minute(root, 7)?))
    })
    .await;
    assert_eq!(charged, (vec![true, true, false, true, false], 2));
    assert!(write(store, move |tx| tx.charge_root(root, 7, 3)).await, "a larger share has room again");
}

fn counts(tx: &mut dyn Tx, one: EventId, two: EventId) -> Result<[i64; 4], StoreError> {
    Ok([
        tx.derived_in_minute(one, 7)?,
        tx.derived_in_minute(one, 8)?,
        tx.derived_in_minute(one, 9)?,
        tx.derived_in_minute(two, 7)?,
    ])
}
