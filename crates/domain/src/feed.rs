//! The change feed: one row for each accepted Event and each transition, in the order of commits.
//!
//! A stream over it resumes from any row. It is pruned; whoever comes back later than that starts over.

use std::time::Duration;

use crate::execution::ExecutionState;
use crate::id::{EventId, ExecutionId, Sequence, WorkId};
use crate::route::CheckpointOutcome;
use crate::time::Timestamp;
use crate::work::WorkState;

/// How long the feed keeps a row.
pub const FEED_KEPT: Duration = Duration::from_hours(7 * 24);

/// One thing that changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// An Event was accepted.
    Event {
        /// The Event.
        id: EventId,
    },
    /// An Event was routed.
    Checkpoint {
        /// The Event.
        event: EventId,
        /// What became of it.
        outcome: CheckpointOutcome,
    },
    /// A Work was created, or changed its state or what keeps it in that state.
    ///
    /// Works of a scope that are moved together have one row, which names the first.
    Work {
        /// The Work.
        id: WorkId,
        /// The state it is in now.
        state: WorkState,
    },
    /// An Execution was created or changed its state, or, when both states are the same, something that is told about
    /// it: what it was asked to take in, a step it told.
    Execution {
        /// The Execution.
        id: ExecutionId,
        /// Its Work.
        work: WorkId,
        /// The state it left; none when it is new.
        from: Option<ExecutionState>,
        /// The state it entered.
        to: ExecutionState,
    },
}

/// A row of the feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedRow {
    /// Its place in the order of commits.
    pub sequence: Sequence,
    /// When it was committed.
    pub at: Timestamp,
    /// What changed.
    pub change: Change,
}
