//! Recurring timers and their firings.

use crate::id::TimerId;
use crate::recurrence::{Firing, Recurrence};
use crate::store::StoreError;
use crate::time::Timestamp;

/// Reading recurring timers.
pub trait RecurrenceReads {
    /// Those that are due at `now`, inclusive, and don't rest, earliest first, at most `limit`.
    fn due_recurrences(&mut self, now: Timestamp, limit: u32) -> Result<Vec<Recurrence>, StoreError>;

    /// When the next one is due that doesn't rest.
    fn next_recurrence_due(&mut self) -> Result<Option<Timestamp>, StoreError>;

    /// One of them.
    fn recurrence(&mut self, id: TimerId) -> Result<Option<Recurrence>, StoreError>;

    /// All behind `after`, in the order of their ids, at most `limit`.
    fn recurrences(&mut self, after: Option<TimerId>, limit: u32) -> Result<Vec<Recurrence>, StoreError>;

    /// How many there are.
    fn count_recurrences(&mut self) -> Result<u64, StoreError>;

    /// The firings of one, newest first, at most `limit`.
    fn firings(&mut self, id: TimerId, limit: u32) -> Result<Vec<Firing>, StoreError>;
}

/// Writing recurring timers.
pub trait RecurrenceWrites {
    /// Arms a new one. False when its scope has one of that key.
    fn insert_recurrence(&mut self, recurrence: &Recurrence) -> Result<bool, StoreError>;

    /// Writes one over what was read. False when it fired or was armed meanwhile.
    fn update_recurrence(&mut self, next: &Recurrence, read: &Recurrence) -> Result<bool, StoreError>;

    /// Removes one, unless it fired or was armed meanwhile. Its firings stay.
    fn delete_recurrence(&mut self, read: &Recurrence) -> Result<bool, StoreError>;

    /// Notes a firing. There is one of each number.
    fn insert_firing(&mut self, firing: &Firing) -> Result<(), StoreError>;
}
