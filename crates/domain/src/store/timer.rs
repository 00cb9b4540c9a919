//! Timers.

use crate::id::{TimerId, WorkId};
use crate::store::StoreError;
use crate::time::Timestamp;
use crate::timer::Timer;

/// Reading timers.
pub trait TimerReads {
    /// Timers that are due at `now`, inclusive, earliest first, at most `limit`.
    fn due_timers(&mut self, now: Timestamp, limit: u32) -> Result<Vec<Timer>, StoreError>;

    /// When the next timer is due.
    fn next_timer_due(&mut self) -> Result<Option<Timestamp>, StoreError>;

    /// The timers of a Work, earliest first, at most `limit`.
    fn timers_of(&mut self, work: WorkId, limit: u32) -> Result<Vec<Timer>, StoreError>;

    /// Every timer behind `after`, in the order in which they are due, at most `limit`.
    fn timers(&mut self, after: Option<(Timestamp, TimerId)>, limit: u32) -> Result<Vec<Timer>, StoreError>;
}

/// Writing timers.
pub trait TimerWrites {
    /// Arms a timer.
    fn insert_timer(&mut self, timer: &Timer) -> Result<(), StoreError>;

    /// Moves a timer to another time. False when it is gone.
    fn rearm_timer(&mut self, timer: &Timer) -> Result<bool, StoreError>;

    /// Removes a timer. False when it is gone, because it fired or was disarmed.
    fn delete_timer(&mut self, id: TimerId) -> Result<bool, StoreError>;

    /// Removes every timer of a Work. Returns how many there were.
    fn delete_timers_of(&mut self, work: WorkId) -> Result<u64, StoreError>;
}
