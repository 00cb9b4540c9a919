//! Lanes: the order that routing keeps, and no more of it than it must.
//!
//! Events of one key are routed in the order of their acceptance, and so are Events addressed to one Work.
//! Everything else is free: a handler that hangs on one lane stops that lane alone. A lane is a 64-bit
//! digest of what is ordered. Two that collide only wait for each other now and then.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::event::{Event, Key};
use crate::id::{EventId, Sequence, WorkId};
use crate::text::Code;
use crate::time::Timestamp;

/// The digest of one lane. [`LaneId::NONE`] is the lane of Events that nothing orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LaneId(i64);

impl LaneId {
    /// Nothing orders an Event of this lane.
    pub const NONE: Self = Self(0);

    /// The lane behind a stored number.
    pub const fn from_number(number: i64) -> Self {
        Self(number)
    }

    /// The number a store keeps.
    pub const fn number(self) -> i64 {
        self.0
    }

    /// The lane of a key.
    pub fn of_key(key: &Key) -> Self {
        let mut digest = Fnv::new();
        digest.write(key.source.as_str().as_bytes());
        digest.write(&[0]);
        digest.write(key.external_id.as_str().as_bytes());
        digest.lane()
    }

    /// The lane of a Work, for Events addressed to it without a key.
    pub fn of_work(work: WorkId) -> Self {
        let mut digest = Fnv::new();
        digest.write(b"\0work");
        digest.write(&work.number().to_be_bytes());
        digest.lane()
    }

    /// The lane an Event waits in: its key's, else its addressed Work's, else none.
    pub fn of_event(event: &Event) -> Self {
        match (&event.key, event.work) {
            (Some(key), _) => Self::of_key(key),
            (None, Some(work)) => Self::of_work(work),
            (None, None) => Self::NONE,
        }
    }
}

/// FNV-1a, 64 bits: it is stored, so it must never change, and the standard hasher may.
pub(crate) struct Fnv(u64);

impl Fnv {
    pub(crate) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    pub(crate) const fn number(self) -> i64 {
        self.0.cast_signed()
    }

    fn lane(self) -> LaneId {
        // Zero means "no lane"; one other lane shares a neighbor's digest.
        LaneId(if self.0 == 0 { 1 } else { self.0.cast_signed() })
    }
}

/// A lane that stands still because its first Event could not be routed. Later Events of the lane leave the
/// list of candidates, so a long backlog costs nothing while it waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneBlock {
    /// The lane, or for an Event without one the negative of its sequence.
    pub lane: LaneId,
    /// The Event that could not be routed.
    pub head: Sequence,
    /// That Event's id.
    pub event: EventId,
    /// When it is tried again.
    pub blocked_until: Timestamp,
    /// How often it was tried.
    pub tries: i64,
    /// Why the last try failed.
    pub code: Code,
    /// The same in words, without payload or secret.
    pub reason: String,
}

/// Tries after which a failing Event is set aside, so that its lane goes on.
pub const QUARANTINE_TRIES: i64 = 5;

/// How long an Event waits that its scope keeps from being routed, before it is looked at again. An apply looks
/// at once.
pub const HELD_PAUSE: Duration = Duration::from_mins(1);

/// The code of a handler that cannot answer anything now, such as one whose process is gone.
pub const EXTENSION_UNAVAILABLE: &str = "extension_unavailable";

/// Whether a handler's failure counts as a try. One that answers nothing at all does not fail at this Event.
// Spec: EXT-9
pub fn counts(code: &Code) -> bool {
    code.as_str() != EXTENSION_UNAVAILABLE
}

/// How long an Event waits for an earlier one of its Work in another lane, before it is looked at again.
pub const BEHIND_PAUSE: Duration = Duration::from_secs(1);

/// The pause after the `tries`-th failure: 1, 2, 4, 8 seconds.
pub fn retry_pause(tries: i64) -> Duration {
    let doublings = u32::try_from(tries.clamp(1, QUARANTINE_TRIES) - 1).expect("clamped to a few");
    Duration::from_secs(1 << doublings)
}

/// The lane under which a block is filed: an Event without a lane blocks only itself.
pub fn block_lane(lane: LaneId, head: Sequence) -> LaneId {
    if lane == LaneId::NONE { LaneId(-head.number()) } else { lane }
}

#[cfg(test)]
mod tests {
    use super::{LaneId, retry_pause};
    use crate::event::Key;
    use crate::id::WorkId;
    use crate::text::{ExternalId, SourceName};
    use std::time::Duration;

    fn key(source: &str, id: &str) -> Key {
        Key { source: SourceName::known(source), external_id: ExternalId::known(id) }
    }

    #[test]
    fn digests_are_stored_and_must_never_change() {
        assert_eq!(LaneId::of_key(&key("hook/acme", "pr/1")).number(), PINNED_KEY);
        assert_eq!(LaneId::of_work(WorkId::from_number(7)).number(), PINNED_WORK);
    }

    const PINNED_KEY: i64 = 5_111_544_847_802_313_157;
    const PINNED_WORK: i64 = -5_739_764_430_078_241_365;

    #[test]
    fn the_boundary_between_source_and_id_counts() {
        assert_ne!(LaneId::of_key(&key("a/b", "c")), LaneId::of_key(&key("a/bc", "d")));
        assert_ne!(LaneId::of_key(&key("ab", "c")), LaneId::of_key(&key("a", "bc")));
    }

    #[test]
    fn pauses_double_and_stay_bounded() {
        let pauses: Vec<u64> = [1, 2, 3, 4, 5, 99].map(|tries| retry_pause(tries).as_secs()).to_vec();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 16]);
        assert_eq!(retry_pause(0), Duration::from_secs(1));
    }
}
