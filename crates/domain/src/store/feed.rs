//! The change feed. Rows are written by the writes they report.

use crate::feed::FeedRow;
use crate::id::Sequence;
use crate::store::StoreError;
use crate::time::Timestamp;

/// Reading the feed.
pub trait FeedReads {
    /// Rows after `after`, oldest first, at most `limit`.
    fn feed_after(&mut self, after: Sequence, limit: u32) -> Result<Vec<FeedRow>, StoreError>;

    /// The first and the last row that is kept.
    fn feed_bounds(&mut self) -> Result<Option<(Sequence, Sequence)>, StoreError>;
}

/// Pruning the feed.
pub trait FeedWrites {
    /// Deletes at most `limit` rows older than `before`. Returns how many.
    fn prune_feed(&mut self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
