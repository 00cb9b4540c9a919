//! A recurrence that knows no calendar: every part beats each so many seconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::text::{DeliveryId, EventType, ExternalId, SourceName};
use domain::time::Timestamp;
use extension::{
    Armed, ConfigProblem, Ensured, Firing, IngressEntry, Key, Passed, Publication, Recurrence,
    RecurrenceError, Recurrences, Recurring, TriggerChoice, TriggerView, WorkKind,
};
use serde_json::{Value, json};

use super::clock::HandClock;

/// The type of its entries.
pub(super) const PULSE: &str = "pulse";
/// The namespace of what it publishes.
pub(super) const NAMESPACE: &str = "pulse/main";

/// How many questions every pulse of this thread's test was asked.
#[derive(Debug)]
pub(super) struct Pulse {
    clock: Arc<HandClock>,
    /// What the next answers wait for, in seconds, before they are given.
    asked: AtomicU64,
}

impl Pulse {
    pub(super) fn new(clock: Arc<HandClock>) -> Self {
        Self { clock, asked: AtomicU64::new(0) }
    }
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_default()
}

impl Recurrence for Pulse {
    fn entry_type(&self) -> &'static str {
        PULSE
    }

    /// `{ "parts": { "name": { "every": seconds, .. } } }`
    fn prepare(&self, entry: &IngressEntry) -> Result<Recurrences, Vec<ConfigProblem>> {
        let namespace = SourceName::known(NAMESPACE);
        let parts = entry.config["parts"].as_object().expect("the test names its parts");
        let part = |(name, wanted): (&String, &Value)| Recurring {
            name: name.clone(),
            key: Key { source: SourceName::known(NAMESPACE), external_id: ExternalId::known(name) },
            wanted: Some(wanted.clone()),
            describe: "every so many seconds".to_owned(),
            starts_at_once: false,
        };
        Ok(Recurrences { namespace, parts: parts.iter().map(part).collect() })
    }

    fn ensure(
        &self,
        armed: Option<&Armed>,
        wanted: Option<&Value>,
        now: Timestamp,
    ) -> Result<Ensured, RecurrenceError> {
        let Some(wanted) = wanted else { return Ok(Ensured::Disarm) };
        if armed.is_some_and(|armed| armed.state == *wanted) {
            return Ok(Ensured::Keep);
        }
        let due_at = now.after(Duration::from_secs(number(wanted, "every")));
        Ok(Ensured::Arm(Armed { state: wanted.clone(), due_at }))
    }

    fn fire(&self, key: &Key, armed: &Armed, now: Timestamp) -> Result<Firing, RecurrenceError> {
        let asked = self.asked.fetch_add(1, Ordering::SeqCst);
        let every = Duration::from_secs(number(&armed.state, "every"));
        if armed.state["broken"] == json!(true) {
            return Err(RecurrenceError("the test says so".to_owned()));
        }
        if asked == 0 {
            // Time may go by between the question and the transaction.
            self.clock.advance(Duration::from_secs(number(&armed.state, "first_answer_takes")));
        }
        let (mut latest, mut missed) = (armed.due_at, 0);
        while latest.after(every) <= now {
            latest = latest.after(every);
            missed += 1;
        }
        let next = latest.after(every);
        let passed = Passed {
            reason: "older".to_owned(),
            first: armed.due_at.to_string(),
            last: "later".to_owned(),
            count: missed,
        };
        let publication = Publication {
            delivery_id: DeliveryId::known(&format!("beat/{}/{latest}", key.external_id)),
            event_type: EventType::known("pulse.beat"),
            occurred_at: latest,
            label: format!("beat {latest}"),
            payload: json!({ "at": latest.to_string() }),
        };
        let publishes = (armed.state["skips"] != json!(true)).then_some(publication);
        let missed = if missed == 0 { Vec::new() } else { vec![passed] };
        let rearmed = Some(Armed { state: armed.state.clone(), due_at: next });
        Ok(Firing { publishes, missed, rearmed, valid_until: Some(next) })
    }
}

/// The kind of the Works whose trigger is chosen.
pub(super) const URGENT: &str = "urgent";

/// Chooses the last urgent input of a batch, or else the first of all.
#[derive(Debug)]
pub(super) struct Urgent;

impl TriggerChoice for Urgent {
    fn work_kind(&self) -> WorkKind {
        WorkKind::known(URGENT)
    }

    fn choose(&self, batch: &[TriggerView]) -> usize {
        batch.iter().rposition(|view| view.event_type.as_str() == "test.urgent").unwrap_or(0)
    }
}
