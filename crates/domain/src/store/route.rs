//! What waits to be routed, the lanes it waits in, and the checkpoints.

use crate::id::Sequence;
use crate::lane::{LaneBlock, LaneId};
use crate::route::Checkpoint;
use crate::store::StoreError;
use crate::time::Timestamp;

/// An Event that waits to be routed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unrouted {
    /// The Event's place in the order of acceptance.
    pub sequence: Sequence,
    /// Its lane.
    pub lane: LaneId,
}

/// Reading what waits to be routed.
pub trait RouteReads {
    /// Events that may be routed, in order of acceptance: none that was parked behind a blocked lane.
    fn route_candidates(&mut self, limit: u32) -> Result<Vec<Unrouted>, StoreError>;

    /// The Event's place in the queue; none when it has been routed.
    fn unrouted(&mut self, sequence: Sequence) -> Result<Option<Unrouted>, StoreError>;

    /// The first unrouted Event in any of these lanes that was accepted before `before`.
    fn earlier_unrouted(
        &mut self,
        lanes: &[LaneId],
        before: Sequence,
    ) -> Result<Option<Sequence>, StoreError>;

    /// The first unrouted Events of a lane, parked ones included, that were accepted before `before`.
    fn unrouted_in_lane(
        &mut self,
        lane: LaneId,
        before: Sequence,
        limit: u32,
    ) -> Result<Vec<Sequence>, StoreError>;

    /// The block of a lane.
    fn lane_block(&mut self, lane: LaneId) -> Result<Option<LaneBlock>, StoreError>;

    /// Blocks whose time is up at `now`, earliest first.
    fn due_blocks(&mut self, now: Timestamp, limit: u32) -> Result<Vec<LaneBlock>, StoreError>;

    /// When the next block's time is up.
    fn next_block_due(&mut self) -> Result<Option<Timestamp>, StoreError>;

    /// Every block, oldest head first, at most `limit`.
    fn lane_blocks(&mut self, limit: u32) -> Result<Vec<LaneBlock>, StoreError>;

    /// The checkpoint of an Event.
    fn checkpoint(&mut self, sequence: Sequence) -> Result<Option<Checkpoint>, StoreError>;

    /// Checkpoints of Events that were quarantined at or after `since`, newest first.
    fn quarantined(&mut self, since: Timestamp, limit: u32) -> Result<Vec<Checkpoint>, StoreError>;

    /// How many Events wait to be routed, counted up to `limit`.
    fn count_unrouted(&mut self, limit: u32) -> Result<u32, StoreError>;
}

/// Writing what waits to be routed.
pub trait RouteWrites {
    /// Puts a new Event in the queue.
    fn insert_unrouted(&mut self, unrouted: Unrouted) -> Result<(), StoreError>;

    /// Writes an Event's checkpoint and takes it from the queue, and writes its row of the feed.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when it is not in the queue.
    fn route_off(&mut self, checkpoint: &Checkpoint) -> Result<(), StoreError>;

    /// Writes the checkpoint of an Event that never stood in the queue, and its row of the feed.
    fn insert_checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), StoreError>;

    /// Takes an Event off the list of candidates: its lane is blocked.
    fn park_unrouted(&mut self, sequence: Sequence) -> Result<(), StoreError>;

    /// Puts the first `limit` parked Events of a lane back on the list. Returns how many there were.
    fn unpark_lane(&mut self, lane: LaneId, limit: u32) -> Result<u32, StoreError>;

    /// Writes or replaces a lane's block.
    fn put_lane_block(&mut self, block: &LaneBlock) -> Result<(), StoreError>;

    /// Removes a lane's block.
    fn delete_lane_block(&mut self, lane: LaneId) -> Result<(), StoreError>;
}
