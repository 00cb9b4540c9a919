//! What a case may do to an implementation of the runtime, and what it may see of it.
//!
//! A case says what happens outside and when each part of the runtime gets its turn: nothing goes on by itself.
//! Time is the driver's, and passes only at [`Command::Advance`]. What a command did is told plainly, and what
//! came of it is looked up in a [`Snapshot`]. So one text reads the same on the reference and on every engine.
//!
//! A driver that cannot do something yet answers [`Answer::Lacking`], which fails the case that asked.

use std::time::Duration;

use domain::event::Key;
use domain::id::{Epoch, EventId, ExecutionId, Sequence, WorkId};
use domain::text::{DeliveryId, EventType, ExternalId, ScopeName, SourceName};
use domain::work::Lifecycle;

mod config;
mod snapshot;
mod word;

pub use self::config::{BindingText, Capability, RouteText, ScopeText, binding, route, scope};
pub use self::snapshot::{
    AttemptRecord, AttemptState, CheckpointRecord, EligibilityRecord, EventRecord, IntentKind, IntentRecord,
    IntentState, RejectionRecord, Snapshot, TimerKind, TimerRecord, WaitRecord, WaitState, WorkRecord,
    WorkWord,
};

/// An implementation under test, empty and with nothing configured.
pub trait Driver {
    /// Does one thing.
    fn act(&mut self, command: Command) -> Answer;

    /// Does things that begin at the same time, in whatever order they come to be done. The answers are in the
    /// order of the commands.
    fn together(&mut self, commands: Vec<Command>) -> Vec<Answer>;

    /// Does one thing in a process that ends in the middle of it, and puts another together. The moment is counted
    /// in transactions: before and after each is one. A process that has done it all ends then.
    fn crash(&mut self, command: Command, at: u32);

    /// Everything there is, at one moment.
    fn snapshot(&mut self) -> Snapshot;
}

/// A driver that can tell what a crash may leave.
pub trait Model: Driver + Clone {
    /// What there may be after a process died in the middle of a command, and another was put together. `seen` is
    /// what is there in fact: it may say which parts of the command were done, and nothing else.
    fn crashed(&self, command: &Command, seen: &Snapshot) -> Vec<Self>;
}

/// One thing that happens.
#[derive(Debug, Clone)]
pub enum Command {
    /// An operator applies a configuration.
    Configure(Vec<ScopeText>),
    /// A source, an executor or the runtime itself hands a delivery over.
    Accept(Delivery),
    /// Accepted Events are routed, as far as that goes now, and what waited for it is settled.
    Route,
    /// Handlers that stand at this gate go on, from now on.
    Open(&'static str),
    /// Every Work that may start is claimed.
    Claim,
    /// What is claimed is handed to its executor, which records what it starts.
    Launch,
    /// An executor's turn ends. It presents the epoch it was started or adopted under.
    Report {
        /// The attempt.
        execution: ExecutionId,
        /// The epoch.
        epoch: Epoch,
        /// How it ended.
        end: TurnEnd,
    },
    /// Whoever speaks for an attempt renews its lease. The answer are those whose lease now ends later.
    Renew,
    /// Attempts whose lease is over are claimed for recovery, and their executors answer this.
    Recover(Found),
    /// Time passes. Nothing happens by that alone.
    Advance(Duration),
    /// Timers that are due fire.
    Fire,
    /// An operator cancels a Work.
    Cancel(WorkId),
    /// An operator asks for the next attempt after a failure.
    Retry {
        /// The Work.
        work: WorkId,
        /// What the request is known by.
        delivery: DeliveryId,
    },
    /// An operator interrupts the live attempt of a Work.
    Interrupt {
        /// The Work.
        work: WorkId,
        /// What the request is known by.
        delivery: DeliveryId,
    },
    /// Intents that are not settled are presented to their executors, and what they answer is recorded.
    Dispatch(InjectAnswer),
    /// Intents that are not settled are presented to their executors; the answers are under way.
    Present,
    /// The answers to what was presented come in.
    Acknowledge(InjectAnswer),
    /// An extension installs a subscription to what another Work owns.
    Subscribe(Subscription),
    /// Extensions translate what their subscriptions match.
    Translate,
    /// An operator releases the hold on a Work.
    Release(WorkId),
    /// An operator lets a scope start nothing more.
    Pause(ScopeName),
    /// An operator takes that back.
    Resume(ScopeName),
    /// The process ends, and another is put together over what is durable.
    Reopen,
}

/// What a command did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It was done.
    Done,
    /// The delivery is this new Event.
    Accepted(EventId),
    /// The delivery was accepted before, as this Event.
    Original(EventId),
    /// It was done to these attempts.
    Attempts(Vec<ExecutionId>),
    /// It was refused, for this reason as a stable word, and changed nothing else.
    Refused(String),
    /// The driver has not got this yet.
    Lacking(&'static str),
}

/// A delivery, with what the handlers will make of it.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The namespace.
    pub source: SourceName,
    /// Its id there.
    pub id: DeliveryId,
    /// What happened.
    pub event_type: EventType,
    /// The scope.
    pub scope: ScopeName,
    /// The key it correlates by.
    pub key: Option<Key>,
    /// The Work it is addressed to.
    pub work: Option<WorkId>,
    /// The Event that caused it.
    pub parent: Option<EventId>,
    /// The attempt that published it.
    pub emitted_by: Option<ExecutionId>,
    /// What a handler that takes its type answers.
    pub wish: Wish,
    /// What the Work is like that it creates.
    pub lifecycle: Lifecycle,
    /// The key under which one Work of a scope runs at a time, of the Work that it creates.
    pub concurrency: Option<&'static str>,
    /// The gate at which handlers stand before they answer.
    pub gate: Option<&'static str>,
}

/// What a handler wants of an Event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// The Work that owns its key; without a key, the Work it is addressed to; else nothing.
    Usual,
    /// The Work that owns these keys.
    Keys(Vec<Key>),
    /// A new Work with these keys.
    Fresh(Vec<Key>),
    /// A new Work with these keys, in succession to one that has ended.
    Successor {
        /// The Work that has ended.
        of: WorkId,
        /// Keys of the new generation.
        keys: Vec<Key>,
    },
    /// The newest Work of the line that its key leads to, or a successor when that has ended.
    Reopen,
    /// The Event has no effect.
    Drop,
    /// The handler fails.
    Fail,
    /// The handler fails, and says that it always will.
    Poison,
}

/// How a turn ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnEnd {
    /// Its outcome.
    pub outcome: TurnOutcome,
    /// Injected Events that the process proves to have taken in.
    pub consumed: Vec<EventId>,
}

/// The outcome of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnOutcome {
    /// It did what it was started for.
    Completed,
    /// It hands the Work back.
    Handoff,
    /// It did not do it.
    Failed {
        /// When another try is worth it, in seconds, as far as the executor knows.
        retry_after_seconds: Option<u64>,
    },
    /// It waits.
    Waiting(Registration),
}

/// What a turn waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// Keys of its Work; any of them.
    pub keys: Vec<Key>,
    /// Types; any of them, and any at all when there are none.
    pub types: Vec<EventType>,
    /// The watermark: everything up to it was seen.
    pub after: Sequence,
    /// How long at most.
    pub timeout: Option<Duration>,
}

/// What an executor finds of an attempt whose authority was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It lives, and goes on under the new epoch.
    Alive,
    /// It has ended like this.
    Finished(TurnEnd),
    /// Nothing was ever started.
    NothingStarted,
    /// It cannot be taken over.
    NotAdoptable {
        /// Whether nothing of it runs any more, for certain.
        stopped: bool,
    },
}

/// What an executor answers to what it is presented with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectAnswer {
    /// It is delivered; or, to an interrupt, the attempt has stopped.
    Accepted,
    /// It is certainly not delivered.
    NotAccepting,
    /// Anything else.
    Ambiguous,
}

/// A translation of what another Work's key sees into Events of a dependent Work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// Its name, for ever.
    pub id: String,
    /// The dependent Work.
    pub work: WorkId,
    /// The key that is watched, which belongs to anyone.
    pub watched: Key,
    /// Types that are translated; any at all when there are none.
    pub types: Vec<EventType>,
    /// The dependent Work's own key.
    pub own: Key,
    /// The type of what it is translated to.
    pub becomes: EventType,
    /// The last Event that has been observed.
    pub after: Sequence,
}

impl Subscription {
    /// Whether it is the same but for what has been observed.
    pub fn has_terms_of(&self, other: &Self) -> bool {
        (self.work, &self.watched, &self.types, &self.own, &self.becomes)
            == (other.work, &other.watched, &other.types, &other.own, &other.becomes)
    }

    /// Whether an Event is of the watched key, and is not observed yet.
    pub fn watched_after(&self, event: &EventRecord) -> bool {
        event.key.as_ref() == Some(&self.watched) && event.sequence > self.after
    }
}

/// A key in the namespace of the cases.
pub fn key(id: &str) -> Key {
    Key { source: SourceName::known("test"), external_id: ExternalId::known(id) }
}

/// The type of an Event of the cases.
pub fn kind(word: &str) -> EventType {
    EventType::known(word)
}

/// A delivery to the scope `main`.
pub fn delivery(id: &str) -> Delivery {
    Delivery {
        source: SourceName::known("test"),
        id: DeliveryId::known(id),
        event_type: EventType::known("test.happened"),
        scope: ScopeName::known("main"),
        key: None,
        work: None,
        parent: None,
        emitted_by: None,
        wish: Wish::Usual,
        lifecycle: Lifecycle::Once,
        concurrency: None,
        gate: None,
    }
}

impl Delivery {
    /// With a key.
    #[must_use]
    pub fn key(self, id: &str) -> Self {
        Self { key: Some(key(id)), ..self }
    }

    /// Addressed to a Work.
    #[must_use]
    pub fn to(self, work: WorkId) -> Self {
        Self { work: Some(work), ..self }
    }

    /// Of a type.
    #[must_use]
    pub fn of(self, event_type: &str) -> Self {
        Self { event_type: EventType::known(event_type), ..self }
    }

    /// To another scope.
    #[must_use]
    pub fn scope(self, name: &str) -> Self {
        Self { scope: ScopeName::known(name), ..self }
    }

    /// Caused by an Event.
    #[must_use]
    pub fn because(self, parent: EventId) -> Self {
        Self { parent: Some(parent), ..self }
    }

    /// Answered like this by whichever handler takes it.
    #[must_use]
    pub fn wish(self, wish: Wish) -> Self {
        Self { wish, ..self }
    }

    /// With a Work that outlives its attempts.
    #[must_use]
    pub fn standing(self) -> Self {
        Self { lifecycle: Lifecycle::Standing, ..self }
    }

    /// With handlers that stand at a gate.
    #[must_use]
    pub fn gate(self, gate: &'static str) -> Self {
        Self { gate: Some(gate), ..self }
    }
}

impl TurnEnd {
    /// An end that proves nothing.
    pub const fn of(outcome: TurnOutcome) -> Self {
        Self { outcome, consumed: Vec::new() }
    }

    /// A failure without a hint.
    pub const fn failed() -> Self {
        Self::of(TurnOutcome::Failed { retry_after_seconds: None })
    }

    /// With proof of having taken Events in.
    #[must_use]
    pub fn proving(self, consumed: &[EventId]) -> Self {
        Self { consumed: consumed.to_vec(), ..self }
    }
}
