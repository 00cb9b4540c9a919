//! Works, their keys, their places in the queues, and their input.

use crate::capacity::Blocker;
use crate::event::Key;
use crate::id::{ExecutionId, Sequence, WorkId};
use crate::input::Input;
use crate::store::StoreError;
use crate::text::{ScopeName, WorkKind};
use crate::work::Work;

/// Which Works a list shows.
#[derive(Debug, Clone, Default)]
pub struct WorkFilter {
    /// Of this scope.
    pub scope: Option<ScopeName>,
    /// Of this kind.
    pub kind: Option<WorkKind>,
    /// In this state, by its word.
    pub state: Option<String>,
    /// That owns this key.
    pub key: Option<Key>,
    /// With an id below this one.
    pub before: Option<WorkId>,
}

/// Reading Works.
pub trait WorkReads {
    /// The Work with this id.
    fn work(&mut self, id: WorkId) -> Result<Option<Work>, StoreError>;

    /// The Work that owns a key, ended or not.
    fn key_owner(&mut self, key: &Key) -> Result<Option<WorkId>, StoreError>;

    /// The keys of a Work, in canonical order.
    fn keys_of(&mut self, work: WorkId) -> Result<Vec<Key>, StoreError>;

    /// Runnable Works, in the order they were queued.
    fn runnable(&mut self, limit: u32) -> Result<Vec<WorkId>, StoreError>;

    /// Works that wait for `blocker`, in the order they were queued.
    fn blocked(&mut self, blocker: &Blocker, limit: u32) -> Result<Vec<WorkId>, StoreError>;

    /// Every reason that Works wait for, with how many do, counted up to `limit` each.
    fn blockers(&mut self, limit: u32) -> Result<Vec<(Blocker, u32)>, StoreError>;

    /// Works that failed too often in a row, in the order in which they did, at most `limit`.
    fn exhausted(&mut self, limit: u32) -> Result<Vec<Work>, StoreError>;

    /// Works that are held, longest first, at most `limit`.
    fn held(&mut self, limit: u32) -> Result<Vec<Work>, StoreError>;

    /// Works, newest first, at most `limit`.
    fn works(&mut self, filter: &WorkFilter, limit: u32) -> Result<Vec<Work>, StoreError>;

    /// Ids from `low` to `high`, at most `limit`.
    fn work_ids(&mut self, low: WorkId, high: WorkId, limit: u32) -> Result<Vec<WorkId>, StoreError>;

    /// Pending input of a Work, in order of acceptance, at most `limit`.
    fn pending_inputs(&mut self, work: WorkId, limit: u32) -> Result<Vec<Input>, StoreError>;

    /// What an Execution consumed after `after`, in order of acceptance, at most `limit`.
    fn inputs_of(
        &mut self,
        execution: ExecutionId,
        after: Sequence,
        limit: u32,
    ) -> Result<Vec<Input>, StoreError>;

    /// What a later turn of an Execution was begun with, after `after`, in order of acceptance, at most `limit`.
    fn batch_of(
        &mut self,
        execution: ExecutionId,
        turn: i64,
        after: Sequence,
        limit: u32,
    ) -> Result<Vec<Input>, StoreError>;

    /// The highest sequence of what an Execution consumed.
    fn last_input_of(&mut self, execution: ExecutionId) -> Result<Option<Sequence>, StoreError>;

    /// The input that an Event became, if it did.
    fn input(&mut self, work: WorkId, sequence: Sequence) -> Result<Option<Input>, StoreError>;

    /// How many Works are runnable, counted up to `limit`.
    fn count_runnable(&mut self, limit: u32) -> Result<u32, StoreError>;
}

/// Writing Works.
pub trait WorkWrites {
    /// Writes a new Work, and its row of the feed.
    fn insert_work(&mut self, work: &Work) -> Result<(), StoreError>;

    /// Replaces a Work, and writes a row of the feed when [`Work::shows_more_than`] says so.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when it is not at the revision of `read`.
    fn update_work(&mut self, work: &Work, read: &Work) -> Result<(), StoreError>;

    /// Does to the first `limit` runnable Works of a scope what [`Work::block`] does to one. Returns how
    /// many. The feed gets one row for all of them, which names `first`, the one whose turn it was.
    fn block_runnable(&mut self, first: &Work, blocker: &Blocker, limit: u32) -> Result<u64, StoreError>;

    /// Gives a key to a Work for ever.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when it is owned.
    fn attach_key(&mut self, key: &Key, work: WorkId) -> Result<(), StoreError>;

    /// Queues an Event on a Work.
    fn insert_input(&mut self, input: &Input) -> Result<(), StoreError>;

    /// Gives every pending input of a Work up to and including `until` to an Execution. Returns how many.
    fn consume_inputs(
        &mut self,
        work: WorkId,
        until: Sequence,
        execution: ExecutionId,
    ) -> Result<u64, StoreError>;

    /// Gives one pending input of a Work to an Execution. False when it is not pending any more, or never was.
    fn consume_input(
        &mut self,
        work: WorkId,
        sequence: Sequence,
        execution: ExecutionId,
    ) -> Result<bool, StoreError>;

    /// The same for an Execution that is resumed, as the batch that its turn begins with.
    fn consume_batch(
        &mut self,
        work: WorkId,
        until: Sequence,
        execution: ExecutionId,
        turn: i64,
    ) -> Result<u64, StoreError>;
}
