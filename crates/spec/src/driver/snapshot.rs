//! What is there, as plain records.

use std::collections::{BTreeMap, BTreeSet};

use domain::event::Key;
use domain::id::{Epoch, EventId, ExecutionId, Generation, Sequence, WorkId};
use domain::route::CheckpointOutcome;
use domain::text::{BindingName, DeliveryId, EventType, RouteName, ScopeName, SourceName};
use domain::time::Timestamp;

use super::Subscription;

/// Everything, at one moment. Lists are in the order in which things came to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The time.
    pub now: Timestamp,
    /// Events, in the order of acceptance.
    pub events: Vec<EventRecord>,
    /// Works.
    pub works: Vec<WorkRecord>,
    /// Attempts.
    pub attempts: Vec<AttemptRecord>,
    /// Timers that are armed, in the order in which they are due.
    pub timers: Vec<TimerRecord>,
    /// Waits, ended ones too.
    pub waits: Vec<WaitRecord>,
    /// Intents, settled ones too.
    pub intents: Vec<IntentRecord>,
    /// What the bounds of chains refused.
    pub rejections: Vec<RejectionRecord>,
    /// How many derived Events each root had in each UTC minute.
    pub charged: BTreeMap<(EventId, i64), i64>,
    /// The configuration in force.
    pub generation: Generation,
    /// Scopes that an operator has paused.
    pub paused: BTreeSet<ScopeName>,
    /// Subscriptions that go on, by their names.
    pub subscriptions: BTreeMap<String, Subscription>,
    /// Which routes' handlers were asked about each Event.
    pub asked: BTreeMap<EventId, BTreeSet<RouteName>>,
}

/// An accepted Event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRecord {
    /// Its id.
    pub id: EventId,
    /// Its place in the order of acceptance.
    pub sequence: Sequence,
    /// Its source.
    pub source: SourceName,
    /// The source's name for the delivery.
    pub delivery: DeliveryId,
    /// What happened.
    pub event_type: EventType,
    /// Its scope.
    pub scope: ScopeName,
    /// Its key.
    pub key: Option<Key>,
    /// The Work it is addressed to.
    pub work: Option<WorkId>,
    /// What caused it.
    pub parent: Option<EventId>,
    /// The first of its chain.
    pub root: EventId,
    /// How far from it.
    pub depth: i64,
    /// The attempt that published it.
    pub emitted_by: Option<ExecutionId>,
    /// How often its delivery came again.
    pub redelivered: i64,
    /// What routing did with it.
    pub checkpoint: Option<CheckpointRecord>,
}

/// What routing did with an Event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointRecord {
    /// What became of it.
    pub outcome: CheckpointOutcome,
    /// The route that matched.
    pub route: Option<RouteName>,
    /// The policy in effect, by its word.
    pub policy: Option<String>,
    /// The Work it reached.
    pub work: Option<WorkId>,
    /// The configuration it was decided under.
    pub generation: Generation,
    /// Why it had no effect, or another than its route says.
    pub code: Option<String>,
}

/// A Work's state, without what it carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkWord {
    /// No attempt is live.
    Ready,
    /// One is.
    Running,
    /// It is parked.
    Waiting,
    /// It ended well.
    Completed,
    /// It ended badly.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl WorkWord {
    /// Whether it is final.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Ready | Self::Running | Self::Waiting => false,
            Self::Completed | Self::Failed | Self::Cancelled => true,
        }
    }
}

/// A Work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkRecord {
    /// Its id.
    pub id: WorkId,
    /// Its scope.
    pub scope: ScopeName,
    /// Where it is in its life.
    pub state: WorkWord,
    /// Its keys.
    pub keys: BTreeSet<Key>,
    /// Input that no attempt has consumed, in order of acceptance.
    pub pending: Vec<EventId>,
    /// What its failures mean for its next attempt.
    pub eligibility: EligibilityRecord,
    /// How many of its attempts failed in a row.
    pub failures: u32,
    /// Why an operator has to let it go on.
    pub held: Option<String>,
}

/// What failures mean for the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EligibilityRecord {
    /// Nothing.
    Clear,
    /// It waits until then.
    Backoff(Timestamp),
    /// The wait is over, and this Event is the trigger.
    Due(EventId),
    /// An operator has to ask for the next attempt.
    Exhausted,
}

/// Where an attempt is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptState {
    /// Claimed.
    Launching,
    /// Started, or its outcome waits to be settled.
    Running,
    /// It waits, and will be resumed.
    Parked,
    /// It ended well.
    Completed,
    /// It handed its Work back.
    Handoff,
    /// It ended in a Wait that the next attempt continues from.
    Waiting,
    /// It ended badly.
    Failed,
    /// It was cancelled, or interrupted.
    Cancelled,
}

impl AttemptState {
    /// Whether it is final.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Launching | Self::Running | Self::Parked => false,
            Self::Completed | Self::Handoff | Self::Waiting | Self::Failed | Self::Cancelled => true,
        }
    }
}

/// An attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRecord {
    /// Its id.
    pub id: ExecutionId,
    /// Its Work.
    pub work: WorkId,
    /// Its number.
    pub number: i64,
    /// Where it is in its life.
    pub state: AttemptState,
    /// The epoch of its newest claim.
    pub epoch: Epoch,
    /// When its authority ends; none when nobody has it.
    pub lease_until: Option<Timestamp>,
    /// Whether its newest claim is a recovery that has found nothing out yet.
    pub recovering: bool,
    /// The Event that triggered it.
    pub trigger: EventId,
    /// The Event that its newest resumption was requested by.
    pub resumed_by: Option<EventId>,
    /// The attempt that it repeats.
    pub retry_of: Option<ExecutionId>,
    /// The Event whose interrupt ended it.
    pub interrupted_by: Option<EventId>,
    /// What it consumed, in order of acceptance.
    pub consumed: Vec<EventId>,
    /// The binding it runs by.
    pub binding: BindingName,
    /// The label of the binding that its executor was handed; none before it was launched.
    pub label: Option<String>,
}

/// What a timer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerKind {
    /// The wait after a failure.
    Retry,
    /// The timeout of a Wait.
    Wait,
}

/// A timer that is armed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimerRecord {
    /// When it is due.
    pub due_at: Timestamp,
    /// Its Work.
    pub work: WorkId,
    /// What it is for.
    pub kind: TimerKind,
}

/// Where a Wait is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitState {
    /// It waits.
    Active,
    /// It was woken by this Event.
    Woken(EventId),
    /// It was cancelled.
    Cancelled,
}

/// A Wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitRecord {
    /// Its Work.
    pub work: WorkId,
    /// The attempt that registered it.
    pub execution: ExecutionId,
    /// The keys it matches.
    pub keys: Vec<Key>,
    /// The types it matches; any at all when there are none.
    pub types: Vec<EventType>,
    /// The watermark.
    pub after: Sequence,
    /// Where it is in its life.
    pub state: WaitState,
}

/// What an intent asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntentKind {
    /// That the attempt takes in the Event.
    Inject,
    /// That the attempt stops.
    Interrupt,
}

/// Where an intent is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntentState {
    /// It is to be presented; or again, as nobody knows what came of it.
    Pending,
    /// It is delivered.
    Accepted,
    /// It is certainly not delivered.
    NotAccepting,
    /// The attempt proved to have taken it in.
    Consumed,
    /// Its attempt has ended.
    Stale,
}

/// A durable order to an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentRecord {
    /// The Event that it is about.
    pub event: EventId,
    /// The attempt.
    pub execution: ExecutionId,
    /// The epoch it was written under.
    pub epoch: Epoch,
    /// What it asks for.
    pub kind: IntentKind,
    /// Whether it was ever presented.
    pub attempted: bool,
    /// Where it is in its life.
    pub state: IntentState,
}

/// Something that a chain's bounds refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectionRecord {
    /// The source of what was refused.
    pub source: SourceName,
    /// Its id there.
    pub delivery: DeliveryId,
    /// What would have caused it.
    pub parent: EventId,
    /// The first of the chain.
    pub root: EventId,
    /// Where it would have stood.
    pub depth: i64,
    /// Why, as a stable word.
    pub code: String,
}
