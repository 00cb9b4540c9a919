//! What goes over the wire about orders to a run: to take an Event in, or to end for it.

use domain::event::Payload;
use domain::intent::{Controls, Intent, IntentKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An order to a run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct OrderBody {
    /// The Event that it is about.
    pub(crate) event: String,
    /// `inject` or `interrupt`.
    pub(crate) order: String,
    /// `pending`, `dispatched` or `ambiguous` while it is not settled; `accepted`, `not_accepting`, `fell_back`,
    /// `consumed`, `delivered` or `stale`.
    pub(crate) state: String,
    /// How often it was sent.
    pub(crate) tries: u32,
    pub(crate) created_at: String,
    /// When it is sent next.
    pub(crate) due_at: Option<String>,
    /// What was last said about it.
    pub(crate) reason: Option<String>,
}

impl From<&Intent> for OrderBody {
    fn from(intent: &Intent) -> Self {
        Self {
            event: intent.event.to_string(),
            order: intent.kind.as_str().to_owned(),
            state: intent.state.as_str().to_owned(),
            tries: intent.tries,
            created_at: intent.created_at.to_string(),
            due_at: intent.state.due_at().map(|at| at.to_string()),
            reason: intent.reason.clone(),
        }
    }
}

/// The words for what can be done to a run.
pub(crate) fn controls(controls: Controls) -> Vec<String> {
    let kinds = [IntentKind::Inject, IntentKind::Interrupt].into_iter();
    kinds.filter(|kind| controls.allow(*kind)).map(|kind| kind.as_str().to_owned()).collect()
}

/// What an operator gives to the run of a Work.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct InjectBody {
    /// The type of the Event that it becomes; `manual.message` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "type")]
    pub(crate) event_type: Option<String>,
    /// Its payload; `null` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) payload: Option<Value>,
    /// The idempotency key; the `Idempotency-Key` header when absent, else a fresh one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delivery_id: Option<String>,
}

impl InjectBody {
    /// The type when none is given.
    pub(crate) const TYPE: &'static str = "manual.message";

    /// Its payload as it is kept; none when it is too large.
    pub(crate) fn payload(&self) -> Option<Payload> {
        let Some(value) = &self.payload else { return Some(Payload::null()) };
        Payload::new(value.to_string().into_bytes()).ok()
    }
}

/// What an operator's order was accepted as.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct OrderedBody {
    pub(crate) event: String,
    pub(crate) sequence: i64,
    /// True when the same order was given before; then nothing new happened.
    pub(crate) duplicate: bool,
    pub(crate) work: String,
    /// The run that it is for; none for one that was given before.
    pub(crate) run: Option<String>,
}
