//! Lines of successors.

use crate::id::WorkId;
use crate::store::StoreError;
use crate::succession::Succession;

/// Reading lines of successors.
pub trait SuccessionReads {
    /// The place of a Work in its line; none for the first, and for one that was never succeeded.
    fn succession_of(&mut self, work: WorkId) -> Result<Option<Succession>, StoreError>;

    /// The place of the Work that succeeds another one.
    fn successor_of(&mut self, predecessor: WorkId) -> Result<Option<Succession>, StoreError>;

    /// The newest of the line that a Work began.
    fn newest_of_line(&mut self, first: WorkId) -> Result<Option<Succession>, StoreError>;

    /// A Work of this scope with this concurrency key that runs, or may still run.
    fn concurrency_holder(
        &mut self,
        scope: &crate::text::ScopeName,
        key: &crate::text::ConcurrencyKey,
    ) -> Result<Option<WorkId>, StoreError>;
}

/// Writing lines of successors.
pub trait SuccessionWrites {
    /// Notes that a Work succeeds another one.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when that one is succeeded already.
    fn insert_succession(&mut self, succession: &Succession) -> Result<(), StoreError>;
}
