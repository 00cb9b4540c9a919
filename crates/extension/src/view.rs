//! Detached snapshots: plain data, true at one moment.

use serde::Serialize;

use crate::{
    DeliveryId, EventId, EventType, ExecutionId, Key, Payload, Revision, ScopeName, Sequence, SourceName,
    Timestamp, WorkId, WorkKind,
};

/// An Event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EventView {
    /// Its id.
    pub id: EventId,
    /// Its place in the order of acceptance.
    pub sequence: Sequence,
    /// The namespace that delivered it.
    pub source: SourceName,
    /// The source's name for the delivery.
    pub delivery_id: DeliveryId,
    /// What happened.
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// The scope it targets.
    pub scope: ScopeName,
    /// The key it correlates by.
    pub key: Option<Key>,
    /// The Work it was addressed to.
    pub work: Option<WorkId>,
    /// The Event that caused it.
    pub parent: Option<EventId>,
    /// The first Event of its chain.
    pub root: EventId,
    /// Its distance from the root.
    pub depth: i64,
    /// The Execution that published it.
    pub emitted_by: Option<ExecutionId>,
    /// When the source says it happened.
    pub occurred_at: Option<Timestamp>,
    /// When it was accepted.
    pub accepted_at: Timestamp,
}

impl From<&domain::event::Event> for EventView {
    fn from(event: &domain::event::Event) -> Self {
        Self {
            id: event.id,
            sequence: event.sequence,
            source: event.source.clone(),
            delivery_id: event.delivery_id.clone(),
            event_type: event.event_type.clone(),
            scope: event.scope.clone(),
            key: event.key.clone(),
            work: event.work,
            parent: event.causation.parent,
            root: event.causation.root,
            depth: event.causation.depth,
            emitted_by: event.emitted_by,
            occurred_at: event.occurred_at,
            accepted_at: event.accepted_at,
        }
    }
}

/// An Event that an attempt is given, with its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputView {
    /// The Event.
    pub event: EventView,
    /// Its body. None when it was released, or when the batch is too large to hand over whole; the Event's
    /// id still leads to it.
    pub payload: Option<Payload>,
    /// Whether an earlier attempt, which this one repeats, took it in already.
    pub is_context: bool,
}

/// A scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScopeView {
    /// Its name.
    pub name: ScopeName,
    /// Its ancestors, root first, itself last.
    pub lineage: Vec<ScopeName>,
}

/// A Work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkView {
    /// Its id.
    pub id: WorkId,
    /// Its kind.
    pub kind: WorkKind,
    /// Its scope.
    pub scope: ScopeName,
    /// Its state's word.
    pub state: &'static str,
    /// The revision that was seen.
    pub revision: Revision,
}

impl From<&domain::work::Work> for WorkView {
    fn from(work: &domain::work::Work) -> Self {
        Self {
            id: work.id,
            kind: work.kind.clone(),
            scope: work.scope.clone(),
            state: work.state.as_str(),
            revision: work.revision,
        }
    }
}
