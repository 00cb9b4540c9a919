//! Small records by namespace and key, for whoever owns the namespace.

use crate::store::StoreError;
use crate::time::Timestamp;

/// The namespace of what was refused by the bounds of its chain. Each is kept under the source and the delivery
/// id of what was not accepted.
pub const CAUSAL_REJECTIONS: &str = "core.causal.rejections";

/// The namespace of how far the stage that makes aliases has come.
pub const ALIASES: &str = "core.aliases";

/// The namespace of how far the stage that releases content has come.
pub const RETENTION: &str = "core.retention";

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvRow {
    /// Its key, unique in its namespace.
    pub key: String,
    /// What it holds, as JSON text.
    pub body: Vec<u8>,
    /// When it was written last.
    pub at: Timestamp,
}

/// Reading records.
pub trait KvReads {
    /// The record under a key.
    fn kv(&mut self, namespace: &str, key: &str) -> Result<Option<KvRow>, StoreError>;

    /// The records of a namespace behind the key `after`, in the order of their keys' bytes, at most `limit`.
    fn kv_after(&mut self, namespace: &str, after: &str, limit: u32) -> Result<Vec<KvRow>, StoreError>;
}

/// Writing records.
pub trait KvWrites {
    /// Writes or replaces a record.
    fn put_kv(&mut self, namespace: &str, row: &KvRow) -> Result<(), StoreError>;

    /// Removes a record. False when there is none.
    fn delete_kv(&mut self, namespace: &str, key: &str) -> Result<bool, StoreError>;
}
