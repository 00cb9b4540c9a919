//! Waits. What a Work waited for stays as history.

use crate::event::Key;
use crate::id::{WaitId, WorkId};
use crate::store::StoreError;
use crate::text::ScopeName;
use crate::wait::Wait;

/// Which Waits a list shows.
#[derive(Debug, Clone, Default)]
pub struct WaitFilter {
    /// Of this scope.
    pub scope: Option<ScopeName>,
    /// Of this Work.
    pub work: Option<WorkId>,
    /// Of the Work that owns this key.
    pub key: Option<Key>,
    /// Only those that can still be woken.
    pub active: bool,
    /// With an id below this one.
    pub before: Option<WaitId>,
}

/// Reading Waits.
pub trait WaitReads {
    /// The Wait with this id.
    fn wait(&mut self, id: WaitId) -> Result<Option<Wait>, StoreError>;

    /// The Wait of a Work that can still be woken; there is at most one.
    fn active_wait(&mut self, work: WorkId) -> Result<Option<Wait>, StoreError>;

    /// Waits, newest first, at most `limit`.
    fn waits(&mut self, filter: &WaitFilter, limit: u32) -> Result<Vec<Wait>, StoreError>;

    /// How many Waits can still be woken, counted up to `limit`.
    fn count_waits(&mut self, limit: u32) -> Result<u32, StoreError>;
}

/// Writing Waits.
pub trait WaitWrites {
    /// Registers a Wait.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when its Work has one that can still be woken.
    fn insert_wait(&mut self, wait: &Wait) -> Result<(), StoreError>;

    /// Ends a Wait, as its state says.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when it has ended.
    fn end_wait(&mut self, wait: &Wait) -> Result<(), StoreError>;
}
