//! Calls of attempts, and what they said beside their effects.

use crate::id::{EventId, ExecutionId, Sequence, WorkId};
use crate::store::StoreError;
use crate::text::CallId;
use crate::time::Timestamp;
use crate::toolbelt::{Call, Parentage, Progress};

/// Reading what attempts asked for.
pub trait ToolbeltReads {
    /// The call that an attempt made under an id.
    fn call(&mut self, execution: ExecutionId, id: &CallId) -> Result<Option<Call>, StoreError>;

    /// The number of an attempt's newest call; zero when it made none.
    fn calls_made(&mut self, execution: ExecutionId) -> Result<i64, StoreError>;

    /// How far an attempt last said that it had come, and when.
    fn progress_of(&mut self, execution: ExecutionId) -> Result<Option<(Progress, Timestamp)>, StoreError>;

    /// The Events that an attempt acknowledged, in the order of their acceptance, at most `limit`.
    fn acknowledged_by(&mut self, execution: ExecutionId, limit: u32) -> Result<Vec<EventId>, StoreError>;

    /// Where a Work belongs that an attempt created; none for any other.
    fn parentage_of(&mut self, child: WorkId) -> Result<Option<Parentage>, StoreError>;

    /// The Works that attempts of a Work created, newest first, at most `limit`.
    fn children_of(&mut self, parent: WorkId, limit: u32) -> Result<Vec<Parentage>, StoreError>;
}

/// Writing what attempts asked for.
pub trait ToolbeltWrites {
    /// Keeps a call with its answer.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when its attempt made one under this id, or of this number.
    fn insert_call(&mut self, call: &Call) -> Result<(), StoreError>;

    /// Replaces how far an attempt says that it has come.
    fn put_progress(
        &mut self,
        execution: ExecutionId,
        progress: &Progress,
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// Notes that an attempt acknowledged an Event. Again is fine.
    fn put_acknowledgement(
        &mut self,
        execution: ExecutionId,
        sequence: Sequence,
        event: EventId,
    ) -> Result<(), StoreError>;

    /// Notes where a new Work belongs.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when that is noted.
    fn insert_parentage(&mut self, parentage: &Parentage) -> Result<(), StoreError>;
}
