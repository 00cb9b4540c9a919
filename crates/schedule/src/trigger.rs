//! What starts a job: the Event's type, its identity, and the payload that says so.
//!
//! | trigger | type | delivery id |
//! | --- | --- | --- |
//! | a slot, or an interval | `schedule.slot` | `slot/<job>/<UTC moment>` |
//! | a POST to the job's URL | `schedule.webhook` | `webhook/<job>/<the sender's id, or a new one>` |
//! | a delivery of the code host | `schedule.event` | `event/<job>/<the delivery's Event>` |
//! | an operator | any that is not the runtime's, from `core.manual` | the operator's |
//!
//! The source is the entry's namespace, but for an operator's. The key is the job's.

mod render;
#[cfg(test)]
mod tests;

use extension::{DeliveryId, EventId, EventType, SourceName, Timestamp};
pub use render::{FILES_MAX, WEBHOOK_BYTES_MAX, render};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::delivery::Delivery;
use crate::job::JobName;
use crate::slot::{Pattern, Slot, SlotName};
use crate::timing::Timing;

/// The type of a slot.
pub const SLOT: &str = "schedule.slot";
/// The type of a POST to a job's URL.
pub const WEBHOOK: &str = "schedule.webhook";
/// The type of what is derived from a delivery of the code host.
pub const EVENT: &str = "schedule.event";
/// The source of what operators send.
const MANUAL_SOURCE: &str = "core.manual";
/// The version of the payload.
pub const SCHEMA: &str = "schedule.trigger.v1";
/// How many digits of a commit a label shows.
const COMMIT_DIGITS: usize = 7;
/// Bytes of a sender's own id that are taken as they are; a job's name and its own parts fit beside it.
const SENDER_ID_BYTES_MAX: usize = 400;

/// What kind of thing starts a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerKind {
    /// A slot, or an interval.
    Timer,
    /// A POST to its URL.
    Webhook,
    /// A delivery of the code host.
    Event,
    /// An operator.
    Manual,
}

impl TriggerKind {
    /// Every kind.
    pub const ALL: &[Self] = &[Self::Timer, Self::Webhook, Self::Event, Self::Manual];

    /// The word in configuration, payloads and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timer => "timer",
            Self::Webhook => "webhook",
            Self::Event => "event",
            Self::Manual => "manual",
        }
    }

    /// The kind of an Event with a job's key, by its type and source; none when it starts no job.
    pub fn of(event_type: &EventType, source: &SourceName, namespace: &SourceName) -> Option<Self> {
        if source.as_str() == MANUAL_SOURCE {
            return (!event_type.is_core()).then_some(Self::Manual);
        }
        if source != namespace {
            return None;
        }
        match event_type.as_str() {
            SLOT => Some(Self::Timer),
            WEBHOOK => Some(Self::Webhook),
            EVENT => Some(Self::Event),
            _other => None,
        }
    }

    /// Whether somebody delivered something, rather than asked for a run.
    pub const fn is_delivery(self) -> bool {
        match self {
            Self::Webhook | Self::Event => true,
            Self::Timer | Self::Manual => false,
        }
    }
}

/// The payload of a trigger, `schedule.trigger.v1`. A field that a kind does not have is left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    /// [`SCHEMA`].
    pub schema: String,
    /// The job.
    pub job: JobName,
    /// What started it.
    pub kind: TriggerKind,
    /// What started it, in words: `cron 2026-10-25 01:30 Europe/London`, `push abc1234`.
    pub label: String,
    /// The slot, for a timer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<TriggerSlot>,
    /// The facts of the code host's delivery.
    #[serde(flatten)]
    pub delivery: Option<Delivery>,
    /// What was posted, when it is JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// What was posted, when it is other text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A slot as a payload has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerSlot {
    /// The moment, as RFC 3339 writes it.
    pub at: String,
    /// What the wall clock shows; none for an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<SlotName>,
}

/// A moment that a timing runs at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// The moment. It is the identity of the slot.
    pub at: Timestamp,
    /// What the wall clock shows; none for an interval.
    pub name: Option<SlotName>,
}

impl Occurrence {
    /// The occurrence of a slot of a timing.
    pub(crate) fn of(slot: Slot, zone: &crate::zone::Zone) -> Self {
        Self { at: slot.at, name: Some(slot.name(zone)) }
    }
}

impl Trigger {
    fn new(job: &JobName, kind: TriggerKind, label: String) -> Self {
        let schema = SCHEMA.to_owned();
        let job = job.clone();
        Self { schema, job, kind, label, slot: None, delivery: None, body: None, text: None }
    }

    /// The trigger of an occurrence.
    pub fn slot(job: &JobName, timing: &Timing, occurrence: &Occurrence) -> Self {
        let label = match (timing, &occurrence.name) {
            (Timing::Every(minutes), _no_name) => format!("every {minutes}m"),
            (Timing::Slots(Pattern::Cron(_), _), Some(name)) => format!("cron {name}"),
            (Timing::Slots(Pattern::Daily(_), _), Some(name)) => format!("at {name}"),
            (Timing::Slots(..), None) => format!("slot {}", occurrence.at),
        };
        let slot = TriggerSlot { at: occurrence.at.to_string(), name: occurrence.name.clone() };
        Self { slot: Some(slot), ..Self::new(job, TriggerKind::Timer, label) }
    }

    /// The trigger of a POST. A body that is JSON stays JSON, and other bytes become text.
    pub fn webhook(job: &JobName, body: &[u8]) -> Self {
        let json = serde_json::from_slice(body).ok();
        let text = (json.is_none() && !body.is_empty()).then(|| String::from_utf8_lossy(body).into_owned());
        Self { body: json, text, ..Self::new(job, TriggerKind::Webhook, "webhook".to_owned()) }
    }

    /// The trigger of a delivery of the code host.
    pub fn event(job: &JobName, delivery: &Delivery) -> Self {
        let mut label = delivery.event_and_action();
        let commit = delivery.commit.as_deref().unwrap_or_default();
        let commit: String = commit.chars().take(COMMIT_DIGITS).collect();
        for part in [commit.as_str(), delivery.conclusion.as_deref().unwrap_or_default()] {
            if !part.is_empty() {
                label.push(' ');
                label.push_str(part);
            }
        }
        Self { delivery: Some(delivery.clone()), ..Self::new(job, TriggerKind::Event, label) }
    }

    /// The trigger of an operator's Event, whatever it says.
    pub fn manual(job: &JobName, payload: &Value) -> Self {
        let body = Some(payload.clone()).filter(|payload| !payload.is_null());
        Self { body, ..Self::new(job, TriggerKind::Manual, "manual".to_owned()) }
    }
}

/// The identity of a slot: its moment, which is the same after any restart and edit.
pub fn slot_delivery(job: &JobName, at: Timestamp) -> DeliveryId {
    DeliveryId::known(&format!("slot/{job}/{at}"))
}

/// The identity of a POST: the sender's own id for it, or `fresh` when it gave none that can be one.
pub fn webhook_delivery(job: &JobName, sender_id: Option<&str>, fresh: EventId) -> DeliveryId {
    let given = sender_id.filter(|id| id.len() <= SENDER_ID_BYTES_MAX);
    let given = given.and_then(|id| DeliveryId::new(format!("webhook/{job}/{id}")).ok());
    given
        .filter(|_id| sender_id != Some(""))
        .unwrap_or_else(|| DeliveryId::known(&format!("webhook/{job}/{fresh}")))
}

/// The identity of what a delivery of the code host starts.
pub fn event_delivery(job: &JobName, parent: EventId) -> DeliveryId {
    DeliveryId::known(&format!("event/{job}/{parent}"))
}
