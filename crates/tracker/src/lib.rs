//! The domain of what people track, and its part of the storage contract.
//!
//! It stands apart from `domain` so that the runtime's rules never learn its words. So far it has no records
//! of its own; the trait is here because the seam is: `store` shows each transaction's changes to observers
//! over `&mut dyn IssueTx`, in that transaction.

use domain::store::Tx;

/// A transaction that also reaches this module's tables.
pub trait IssueTx: Tx {}
