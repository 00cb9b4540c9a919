//! Causal chains: where an Event's ancestry comes from, and what its chain has published.
//!
//! Depth and the per-minute count are written for every derived Event from the first release on. The limits
//! that refuse one stand in the settings and come with the rules that enforce them.

use crate::event::{Causation, Event};
use crate::id::{EventId, ExecutionId};
use crate::time::Timestamp;

/// Where a delivery's ancestry comes from. Only the runtime makes one; a client cannot choose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Trusted ingress, an operator, or the runtime's own schedule: the first Event of a chain.
    Root,
    /// Something an accepted Event caused.
    Derived {
        /// The Event that caused it.
        parent: EventId,
        /// The Execution that published it, when one did.
        emitted_by: Option<ExecutionId>,
    },
}

impl Causation {
    /// The chain of an Event `id` that begins one.
    pub const fn root(id: EventId) -> Self {
        Self { parent: None, root: id, depth: 0 }
    }

    /// The chain of an Event that `parent` caused.
    pub const fn derived(parent: &Event) -> Self {
        Self {
            parent: Some(parent.id),
            root: parent.causation.root,
            depth: parent.causation.depth.saturating_add(1),
        }
    }
}

/// The fixed UTC minute a derived Event is counted in: whole minutes since 1970.
pub const fn minute_of(at: Timestamp) -> i64 {
    at.as_seconds().div_euclid(60)
}

#[cfg(test)]
mod tests {
    use super::minute_of;
    use crate::time::Timestamp;

    #[test]
    fn minutes_are_fixed_and_utc() {
        assert_eq!(minute_of(Timestamp::from_micros(59_999_999)), 0);
        assert_eq!(minute_of(Timestamp::from_micros(60_000_000)), 1);
        assert_eq!(minute_of(Timestamp::from_micros(-1)), -1);
    }
}
