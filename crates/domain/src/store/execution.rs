//! Executions, their leases and their results.

use crate::event::Key;
use crate::execution::{Execution, ExecutionState};
use crate::id::{ExecutionId, WorkId};
use crate::outcome::TurnResult;
use crate::store::StoreError;
use crate::text::{EventType, ScopeName, SourceName, WorkKind};
use crate::time::Timestamp;

/// Which Executions a list shows.
#[derive(Debug, Clone, Default)]
pub struct ExecutionFilter {
    /// Of this scope.
    pub scope: Option<ScopeName>,
    /// Of Works of this kind.
    pub work_kind: Option<WorkKind>,
    /// Of this Work.
    pub work: Option<WorkId>,
    /// In this state.
    pub state: Option<ExecutionState>,
    /// Only those that run or are about to, or only the others: ended or parked.
    pub live: Option<bool>,
    /// With an id below this one.
    pub before: Option<ExecutionId>,
}

/// What a search looks at of an Execution: what people remember of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// The Execution.
    pub execution: ExecutionId,
    /// Its state.
    pub state: ExecutionState,
    /// The kind of its Work.
    pub work_kind: WorkKind,
    /// The type of the Event that triggered it.
    pub event_type: EventType,
    /// The source of that Event.
    pub source: SourceName,
    /// The keys of its Work.
    pub keys: Vec<Key>,
    /// The line for people in its result.
    pub summary: Option<String>,
}

/// An Execution that only another host can look after, and that host is silent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranded {
    /// The Execution.
    pub execution: ExecutionId,
    /// Its host, as people call it.
    pub host: String,
    /// When its lease ended.
    pub since: Timestamp,
}

/// Reading Executions.
pub trait ExecutionReads {
    /// The Execution with this id.
    fn execution(&mut self, id: ExecutionId) -> Result<Option<Execution>, StoreError>;

    /// How many attempts run in a scope or are about to, counted up to `limit`. What is parked takes no room.
    fn count_live(&mut self, scope: &ScopeName, limit: u32) -> Result<u32, StoreError>;

    /// Live Executions of this host without a live lease and without a stored outcome, longest expired first.
    ///
    /// An Execution belongs for ever to the host on which it was inserted: the place, given when the store was
    /// opened, that has whatever its executor leaves. Where one process has the database alone, that is all of
    /// them.
    fn expired(&mut self, now: Timestamp, limit: u32) -> Result<Vec<Execution>, StoreError>;

    /// When the next lease of a live Execution of this host ends.
    fn next_expiry(&mut self) -> Result<Option<Timestamp>, StoreError>;

    /// Live Executions whose stored outcome waits to be settled, oldest first, behind `after` when one is given.
    fn unsettled(&mut self, after: Option<ExecutionId>, limit: u32) -> Result<Vec<Execution>, StoreError>;

    /// Ended Executions of this host that are still marked [`Execution::unstopped`], oldest first, behind
    /// `after` when one is given.
    fn unstopped(&mut self, after: Option<ExecutionId>, limit: u32) -> Result<Vec<Execution>, StoreError>;

    /// Live Executions of other hosts whose lease is over: nobody here can tell whether they still run, so they
    /// keep their place until their host comes back. In order of their ids.
    fn stranded(&mut self, now: Timestamp, limit: u32) -> Result<Vec<Stranded>, StoreError>;

    /// Executions, newest first, at most `limit`.
    fn executions(&mut self, filter: &ExecutionFilter, limit: u32) -> Result<Vec<Execution>, StoreError>;

    /// Outlines of the newest `limit` Executions that the filter's `scope`, `work`, `live` and `before` leave,
    /// newest first. Its other fields would make the cost depend on how much does not match, so they are left
    /// to whoever reads the outlines.
    fn outlines(&mut self, filter: &ExecutionFilter, limit: u32) -> Result<Vec<Outline>, StoreError>;

    /// Executions that ended at or after `since`, the last to end first.
    fn ended_since(&mut self, since: Timestamp, limit: u32) -> Result<Vec<Execution>, StoreError>;

    /// Ids from `low` to `high`, at most `limit`.
    fn execution_ids(
        &mut self,
        low: ExecutionId,
        high: ExecutionId,
        limit: u32,
    ) -> Result<Vec<ExecutionId>, StoreError>;

    /// The result an Execution reported.
    fn turn_result(&mut self, id: ExecutionId) -> Result<Option<TurnResult>, StoreError>;
}

/// Writing Executions.
pub trait ExecutionWrites {
    /// Writes a new Execution, and its row of the feed.
    fn insert_execution(&mut self, execution: &Execution) -> Result<(), StoreError>;

    /// Replaces a live Execution, and writes a row of the feed when its state changed.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when it has ended or is not at the epoch of `read`.
    fn update_execution(&mut self, execution: &Execution, read: &Execution) -> Result<(), StoreError>;

    /// Takes the mark [`Execution::unstopped`] off an ended Execution. False when it had none.
    fn mark_stopped(&mut self, id: ExecutionId) -> Result<bool, StoreError>;

    /// Keeps the result an Execution reported, once.
    fn insert_turn_result(&mut self, id: ExecutionId, result: &TurnResult) -> Result<(), StoreError>;

    /// Replaces the result of an earlier turn by that of the Execution as a whole.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when no turn of it has reported one.
    fn replace_turn_result(&mut self, id: ExecutionId, result: &TurnResult) -> Result<(), StoreError>;
}
