//! Recurrences: what an entry wants to happen by time, and what a timer of it does when it is due.
//!
//! The runtime knows no calendar. It keeps what a recurrence stores, asks outside a transaction what follows from it,
//! and applies the answer in one, while the answer holds. All that travels is plain data, and an answer depends on
//! what was asked alone, so that asking again gives the same.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::{ConfigProblem, DeliveryId, EventType, IngressEntry, Key, SourceName, Timestamp, WorkKind};

/// A kind of extension entry whose parts recur.
pub trait Recurrence: fmt::Debug + Send + Sync {
    /// The `type` of its entries.
    fn entry_type(&self) -> &str;

    /// Reads an entry, once for each generation.
    ///
    /// # Errors
    /// Every [`ConfigProblem`] found.
    fn prepare(&self, entry: &IngressEntry) -> Result<Recurrences, Vec<ConfigProblem>>;

    /// What becomes of a timer, given what is stored of it and what is configured now.
    ///
    /// # Errors
    /// [`RecurrenceError`] when what is stored or configured cannot be read; then the timer stays as it is.
    fn ensure(
        &self,
        armed: Option<&Armed>,
        wanted: Option<&Value>,
        now: Timestamp,
    ) -> Result<Ensured, RecurrenceError>;

    /// What a timer does that is due.
    ///
    /// # Errors
    /// [`RecurrenceError`] when what is stored cannot be read; then it stays due.
    fn fire(&self, key: &Key, armed: &Armed, now: Timestamp) -> Result<Firing, RecurrenceError>;
}

/// What an entry declares.
#[derive(Debug, Clone, PartialEq)]
pub struct Recurrences {
    /// The source of what its timers publish. No other entry, and no client, may deliver in it.
    pub namespace: SourceName,
    /// Its parts, in the order they are written.
    pub parts: Vec<Recurring>,
}

/// A part of an entry that has a key of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Recurring {
    /// Its name, for people.
    pub name: String,
    /// The key of what it publishes.
    pub key: Key,
    /// What its timer is made of; none when it has none.
    pub wanted: Option<Value>,
    /// When it happens, in one phrase for people.
    pub describe: String,
    /// Whether a timer that is new to it is due at once.
    pub starts_at_once: bool,
}

/// A timer as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Armed {
    /// What the recurrence keeps with it; the runtime doesn't look inside.
    pub state: Value,
    /// When it is due, inclusive.
    pub due_at: Timestamp,
}

/// What becomes of a timer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ensured {
    /// It stays as it is.
    Keep,
    /// It becomes this.
    Arm(Armed),
    /// It ends.
    Disarm,
}

/// What a firing does, all of it in one transaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Firing {
    /// What it publishes; none when nothing may happen any more.
    pub publishes: Option<Publication>,
    /// What it passes over, the oldest first.
    pub missed: Vec<Passed>,
    /// The timer afterwards; none when it has nothing to wait for.
    pub rearmed: Option<Armed>,
    /// Until when the answer holds, exclusive; none when it does for ever.
    pub valid_until: Option<Timestamp>,
}

/// An Event that a firing publishes, on the key and in the namespace of its part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Publication {
    /// Its identity: the same however often the firing is repeated.
    pub delivery_id: DeliveryId,
    /// Its type.
    pub event_type: EventType,
    /// The moment it is about.
    pub occurred_at: Timestamp,
    /// The same in words.
    pub label: String,
    /// Its body.
    pub payload: Value,
}

/// What a firing passed over for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// Why, as a stable word.
    pub reason: String,
    /// The first moment, in words.
    pub first: String,
    /// The last moment, in words.
    pub last: String,
    /// How many.
    pub count: u32,
}

/// A recurrence could not answer. It repeats nothing that was stored.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct RecurrenceError(pub String);

/// Chooses which input of a batch a run is for. All of it is the run's input either way.
pub trait TriggerChoice: fmt::Debug + Send + Sync {
    /// The kind of the Works that it chooses for.
    fn work_kind(&self) -> WorkKind;

    /// The place of the trigger in a batch, which is in the order of acceptance and never empty. It is asked inside
    /// a transaction, so it is a plain function of what it is given.
    fn choose(&self, batch: &[TriggerView]) -> usize;
}

/// What a choice sees of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerView {
    /// The type of its Event.
    pub event_type: EventType,
    /// The namespace it was delivered in.
    pub source: SourceName,
    /// Its key.
    pub key: Option<Key>,
}
