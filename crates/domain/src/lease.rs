//! Leases: who may speak for an Execution, and until when.

use std::time::Duration;

use thiserror::Error;

use crate::id::{Epoch, Incarnation};
use crate::time::Timestamp;

/// How long a lease lasts from its claim or renewal.
pub const LEASE: Duration = Duration::from_secs(30);
/// How often a holder renews it.
pub const RENEWAL: Duration = Duration::from_secs(10);

/// A limited authority over one Execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The process that holds it.
    pub owner: Incarnation,
    /// When it is lost. At that very moment it is lost already.
    pub until: Timestamp,
}

impl Lease {
    /// A lease that `owner` takes now.
    pub fn taken(owner: Incarnation, now: Timestamp) -> Self {
        Self { owner, until: now.after(LEASE) }
    }

    /// Whether the lease gives authority at `now`: expiry is exclusive.
    pub fn is_live(self, now: Timestamp) -> bool {
        now < self.until
    }
}

/// An authority over one Execution, as its holder presents it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// The process that presents it.
    pub owner: Incarnation,
    /// The epoch it was claimed at.
    pub epoch: Epoch,
}

/// The presented authority no longer holds. What came with it has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Fenced {
    /// The Execution was claimed again.
    #[error("the run was taken over at epoch {current}; epoch {presented} has no authority")]
    Epoch {
        /// The epoch that was presented.
        presented: Epoch,
        /// The epoch in force.
        current: Epoch,
    },
    /// The lease ran out or was released.
    #[error("the lease on the run is over")]
    Expired,
    /// Another process holds it at this epoch.
    #[error("another process holds the lease on the run")]
    Owner,
    /// The Execution has ended.
    #[error("the run has ended")]
    Ended,
}

impl Fenced {
    /// The stable word for this refusal.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Epoch { .. } => "stale_epoch",
            Self::Expired => "lease_lost",
            Self::Owner => "lease_held_elsewhere",
            Self::Ended => "run_ended",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LEASE, Lease};
    use crate::id::Incarnation;
    use crate::time::Timestamp;

    #[test]
    fn expiry_is_exclusive() {
        let lease = Lease::taken(Incarnation::FIRST, Timestamp::EPOCH);
        let end = Timestamp::EPOCH.after(LEASE);
        assert!(lease.is_live(Timestamp::from_micros(end.as_micros() - 1)));
        assert!(!lease.is_live(end));
    }
}
