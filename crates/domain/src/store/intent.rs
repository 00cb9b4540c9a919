//! Intents: orders to attempts.

use crate::id::{ExecutionId, Sequence};
use crate::intent::Intent;
use crate::store::StoreError;
use crate::time::Timestamp;

/// Reading intents.
pub trait IntentReads {
    /// The order to this attempt about the Event at `sequence`.
    fn intent(&mut self, execution: ExecutionId, sequence: Sequence) -> Result<Option<Intent>, StoreError>;

    /// Orders to attempts of this host that are due at `now`, inclusive, earliest first, at most `limit`.
    fn due_intents(&mut self, now: Timestamp, limit: u32) -> Result<Vec<Intent>, StoreError>;

    /// When the next order to an attempt of this host is due.
    fn next_intent_due(&mut self) -> Result<Option<Timestamp>, StoreError>;

    /// The orders to an attempt, in the order in which their Events were accepted, at most `limit`.
    fn intents_of(&mut self, execution: ExecutionId, limit: u32) -> Result<Vec<Intent>, StoreError>;
}

/// Writing intents.
pub trait IntentWrites {
    /// Writes a new order. It belongs to the host that its attempt belongs to.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the attempt has one about this Event, or does not exist.
    fn insert_intent(&mut self, intent: &Intent) -> Result<(), StoreError>;

    /// Replaces an order.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when its state or its tries are not those of `read`.
    fn update_intent(&mut self, intent: &Intent, read: &Intent) -> Result<(), StoreError>;
}
