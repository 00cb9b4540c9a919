//! Events, their payloads, and what each chain has published.

use crate::delivery::Redelivery;
use crate::event::{Event, Key, Payload};
use crate::id::{EventId, Sequence, WorkId};
use crate::route::CheckpointOutcome;
use crate::store::StoreError;
use crate::text::{DeliveryId, EventType, ScopeName, SourceName};
use crate::time::Timestamp;

/// Which Events a list shows.
#[derive(Debug, Clone, Default)]
pub struct EventFilter {
    /// Of this scope.
    pub scope: Option<ScopeName>,
    /// Of this type.
    pub event_type: Option<EventType>,
    /// Of this source.
    pub source: Option<SourceName>,
    /// With this key.
    pub key: Option<Key>,
    /// Addressed to this Work or routed to it.
    pub work: Option<WorkId>,
    /// With this outcome.
    pub outcome: Option<CheckpointOutcome>,
    /// Accepted before this one.
    pub before: Option<Sequence>,
}

/// Reading Events.
pub trait EventReads {
    /// The Event with this id.
    fn event(&mut self, id: EventId) -> Result<Option<Event>, StoreError>;

    /// The Event with this sequence.
    fn event_at(&mut self, sequence: Sequence) -> Result<Option<Event>, StoreError>;

    /// The Event of this delivery.
    fn event_of_delivery(
        &mut self,
        source: &SourceName,
        delivery_id: &DeliveryId,
    ) -> Result<Option<Event>, StoreError>;

    /// The payload of the Event with this sequence; none when it was released.
    fn payload(&mut self, sequence: Sequence) -> Result<Option<Payload>, StoreError>;

    /// How often the Event's delivery came again.
    fn redelivery(&mut self, sequence: Sequence) -> Result<Option<Redelivery>, StoreError>;

    /// How many derived Events `root` had in `minute`.
    fn derived_in_minute(&mut self, root: EventId, minute: i64) -> Result<i64, StoreError>;

    /// Events, newest first, at most `limit`.
    fn events(&mut self, filter: &EventFilter, limit: u32) -> Result<Vec<Event>, StoreError>;

    /// Events that were accepted after `after`, in order of acceptance, at most `limit`.
    fn events_after(&mut self, after: Sequence, limit: u32) -> Result<Vec<Event>, StoreError>;

    /// Events with a key that were accepted after `after`, in order of acceptance, at most `limit`.
    fn events_of_key(&mut self, key: &Key, after: Sequence, limit: u32) -> Result<Vec<Event>, StoreError>;

    /// Replays of an Event, in order of acceptance, at most `limit`.
    fn replays_of(&mut self, id: EventId, limit: u32) -> Result<Vec<Event>, StoreError>;

    /// Ids from `low` to `high`, at most `limit`: those a shortened id may mean.
    fn event_ids(&mut self, low: EventId, high: EventId, limit: u32) -> Result<Vec<EventId>, StoreError>;
}

/// Writing Events.
pub trait EventWrites {
    /// Writes a new Event with its payload, and its row of the feed. False, and nothing written, when its
    /// delivery was accepted before.
    fn insert_event(&mut self, event: &Event, payload: &Payload) -> Result<bool, StoreError>;

    /// Writes an Event whose delivery was looked for before, or whose delivery id is made by what happens once.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when its delivery was accepted before.
    fn insert_new_event(&mut self, event: &Event, payload: &Payload) -> Result<(), StoreError>;

    /// Counts a delivery that came again.
    fn count_redelivery(&mut self, sequence: Sequence, at: Timestamp) -> Result<(), StoreError>;

    /// Counts one derived Event of `root` in `minute`. False, and nothing counted, when it has had `per_minute`.
    fn charge_root(&mut self, root: EventId, minute: i64, per_minute: u32) -> Result<bool, StoreError>;
}
