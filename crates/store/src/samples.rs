//! Records that the tests of this crate write.

use domain::causal::Bounds;
use domain::event::{Causation, Event, Payload};
use domain::id::{EventId, Sequence};
use domain::store::{StoreError, Tx};
use domain::text::{DeliveryId, EventType, ScopeName, SourceName};
use domain::time::Timestamp;

/// A root Event without a key, of the delivery `name`.
pub(crate) fn event(sequence: Sequence, at: Timestamp, name: &str) -> Event {
    let id = EventId::from_number(sequence.number());
    Event {
        id,
        sequence,
        source: SourceName::known("test"),
        delivery_id: DeliveryId::known(name),
        event_type: EventType::known("test.happened"),
        scope: ScopeName::known("main"),
        key: None,
        work: None,
        causation: Causation::root(id, Bounds { max_depth: 32, per_minute: 128 }),
        emitted_by: None,
        occurred_at: None,
        accepted_at: at,
    }
}

/// Accepts an Event. False when it was before.
pub(crate) fn accept<T: Tx + ?Sized>(tx: &mut T, name: &str) -> Result<bool, StoreError> {
    let event = event(tx.next_sequence(), tx.now(), name);
    tx.insert_event(&event, &Payload::null())
}

/// The deliveries of Events, oldest first.
pub(crate) fn delivery_ids(events: &[Event]) -> Vec<String> {
    let mut events: Vec<&Event> = events.iter().collect();
    events.sort_by_key(|event| event.sequence);
    events.iter().map(|event| event.delivery_id.to_string()).collect()
}
