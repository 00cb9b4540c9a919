//! Subscriptions to what other Works own. One that has ended stays, so that its id is not used again.

use crate::alias::Subscription;
use crate::event::Key;
use crate::id::{Sequence, WorkId};
use crate::store::StoreError;
use crate::text::SubscriptionId;
use crate::time::Timestamp;

/// Reading subscriptions.
pub trait AliasReads {
    /// The subscription with this id, even if it has ended.
    fn subscription(&mut self, id: &SubscriptionId) -> Result<Option<Subscription>, StoreError>;

    /// Whether any subscription goes on. It costs one probe, however many there are or have been.
    fn is_subscribed(&mut self) -> Result<bool, StoreError>;

    /// Subscriptions that go on, watch this key and have not observed `sequence`, at most `limit`; those that are
    /// furthest behind first.
    fn subscriptions_on(
        &mut self,
        watched: &Key,
        sequence: Sequence,
        limit: u32,
    ) -> Result<Vec<Subscription>, StoreError>;

    /// Subscriptions of a dependent Work that go on, at most `limit`.
    fn subscriptions_of(&mut self, work: WorkId, limit: u32) -> Result<Vec<Subscription>, StoreError>;
}

/// Writing subscriptions.
pub trait AliasWrites {
    /// Installs a subscription.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when there is or was one of its id.
    fn insert_subscription(&mut self, subscription: &Subscription) -> Result<(), StoreError>;

    /// Writes the checkpoint and the end of a subscription.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when it has ended.
    fn update_subscription(&mut self, subscription: &Subscription) -> Result<(), StoreError>;

    /// Ends every subscription of a dependent Work. Returns how many went on.
    fn end_subscriptions_of(&mut self, work: WorkId, at: Timestamp) -> Result<u64, StoreError>;
}
