//! Causal chains: where an Event's ancestry comes from, and how far a chain may go.
//!
//! A chain has bounds that are pinned when its root is accepted and travel with it, so that no scope further
//! down can raise them: how deep it may get, and how many derived Events its root may have in a UTC minute.
//! The window is fixed, so a burst across a minute's border may have twice the allowance.

use std::fmt;

use thiserror::Error;

use crate::event::{Causation, Event};
use crate::id::{EventId, ExecutionId};
use crate::scope::Settings;
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

/// How far a chain may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The deepest an Event may stand; a root stands at zero.
    pub max_depth: u32,
    /// The most derived Events the root may have in one UTC minute.
    pub per_minute: u32,
}

impl Bounds {
    /// Those of a scope.
    pub const fn of(settings: &Settings) -> Self {
        Self { max_depth: settings.causal_max_depth, per_minute: settings.causal_per_minute }
    }
}

/// A chain may not go further. What it was to become is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CausalRefusal {
    /// It would stand too deep.
    #[error("the chain is {depth} Events deep already, which is its `causal_max_depth`")]
    Depth {
        /// The deepest it may stand.
        depth: u32,
    },
    /// Its root has had its share of this minute.
    #[error("the chain has had {per_minute} Events in this minute, which is its `causal_per_minute`")]
    Rate {
        /// The share of a minute.
        per_minute: u32,
    },
}

impl CausalRefusal {
    /// The stable word.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Depth { .. } => "depth_limit",
            Self::Rate { .. } => "rate_limit",
        }
    }
}

impl Causation {
    /// The chain of an Event `id` that begins one.
    pub const fn root(id: EventId, bounds: Bounds) -> Self {
        Self { parent: None, root: id, depth: 0, bounds }
    }

    /// The chain of an Event that `parent` caused.
    ///
    /// # Errors
    /// [`CausalRefusal::Depth`] when it would stand too deep.
    pub fn derived(parent: &Event) -> Result<Self, CausalRefusal> {
        let before = parent.causation;
        let depth = before.depth.saturating_add(1);
        if depth > i64::from(before.bounds.max_depth) {
            return Err(CausalRefusal::Depth { depth: before.bounds.max_depth });
        }
        Ok(Self { parent: Some(parent.id), root: before.root, depth, bounds: before.bounds })
    }

    /// The chain of an Event that an attempt emits and says `cause` caused, where `floor` is what the attempt itself
    /// follows from. It stands on the cause's chain, deeper than both, and keeps to the stricter of both depths, so
    /// that no citing makes a chain shorter. (CAU-12)
    ///
    /// # Errors
    /// [`CausalRefusal::Depth`] when it would stand too deep.
    pub fn cited(cause: &Event, floor: &Event) -> Result<Self, CausalRefusal> {
        let (own, other) = (cause.causation, floor.causation);
        let depth = own.depth.max(other.depth).saturating_add(1);
        let max_depth = own.bounds.max_depth.min(other.bounds.max_depth);
        if depth > i64::from(max_depth) {
            return Err(CausalRefusal::Depth { depth: max_depth });
        }
        Ok(Self { parent: Some(cause.id), root: own.root, depth, bounds: own.bounds })
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} deep, {} a minute", self.max_depth, self.per_minute)
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
