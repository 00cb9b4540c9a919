//! What is kept of runs, and how far a Work's runs have been looked at for that.

use crate::execution::Execution;
use crate::id::{ExecutionId, WorkId};
use crate::store::StoreError;
use crate::time::Timestamp;

/// How far the runs of a Work have lost their content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retained {
    /// The Work.
    pub work: WorkId,
    /// The number of the newest attempt whose content is released; zero before the first.
    pub released: i64,
    /// That attempt.
    pub run: Option<ExecutionId>,
    /// When it is looked at again whatever else ends; never when none.
    pub look_at: Option<Timestamp>,
}

/// A run that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The run.
    pub id: ExecutionId,
    /// Its Work.
    pub work: WorkId,
    /// Its number among the Work's attempts.
    pub attempt: i64,
    /// When it ended.
    pub ended_at: Timestamp,
    /// Whether something of it may still run.
    pub unstopped: bool,
}

/// Reading what is kept.
pub trait RetentionReads {
    /// How far a Work's runs have lost their content; none where none has, and nothing is due.
    fn retained(&mut self, work: WorkId) -> Result<Option<Retained>, StoreError>;

    /// Works that are to be looked at by `now`, inclusive, earliest first, at most `limit`.
    fn retention_due(&mut self, now: Timestamp, limit: u32) -> Result<Vec<WorkId>, StoreError>;

    /// When the next Work is to be looked at.
    fn next_retention_due(&mut self) -> Result<Option<Timestamp>, StoreError>;

    /// Runs that ended behind `after` and by `until`, inclusive, in the order in which they did, at most `limit`.
    fn ended_after(
        &mut self,
        after: (Timestamp, ExecutionId),
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<Ended>, StoreError>;

    /// The runs of a Work that ended, behind the run `after` and up to an attempt, oldest first, at most `limit`.
    fn ended_of(
        &mut self,
        work: WorkId,
        after: Option<ExecutionId>,
        until: i64,
        limit: u32,
    ) -> Result<Vec<Ended>, StoreError>;

    /// Runs of this host whose content is being released, behind `after`, at most `limit`.
    fn releasing(&mut self, after: Option<ExecutionId>, limit: u32) -> Result<Vec<Execution>, StoreError>;
}

/// Writing what is kept.
pub trait RetentionWrites {
    /// Writes how far a Work's runs have lost their content.
    fn put_retained(&mut self, retained: &Retained) -> Result<(), StoreError>;

    /// Begins to release a run's content. False when that has begun before, or it has not ended.
    fn release_content(&mut self, id: ExecutionId) -> Result<bool, StoreError>;

    /// Drops bodies of what a run took in, at most `limit`. Returns how many there were.
    fn drop_bodies(&mut self, id: ExecutionId, limit: u32) -> Result<u64, StoreError>;

    /// Forgets the oldest calls of an attempt, at most `limit`. Returns how many.
    fn drop_calls(&mut self, id: ExecutionId, limit: u32) -> Result<u64, StoreError>;

    /// Notes that a run's content is gone. False when that was noted before.
    fn content_released(&mut self, id: ExecutionId) -> Result<bool, StoreError>;
}
