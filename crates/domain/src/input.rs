//! Input: an Event that a Work has yet to see, or has seen.

use crate::id::{EventId, ExecutionId, Sequence, WorkId};
use crate::text::BindingName;

/// An Event queued on a Work. Pending inputs are taken in the order of acceptance; none replaces another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The Work.
    pub work: WorkId,
    /// The Event's place in the order of acceptance.
    pub sequence: Sequence,
    /// The Event.
    pub event: EventId,
    /// The binding of the route that queued it.
    pub binding: BindingName,
    /// The Execution that consumed it; none while it is pending.
    pub consumed_by: Option<ExecutionId>,
}
