//! What follows from something: what an Event led to, and where a Work has got to.

use domain::event::Event;
use domain::execution::Execution;
use domain::input::Input;
use domain::retry::Eligibility;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an Event led to so far.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LedToBody {
    /// The run that took it in.
    pub(crate) run: Option<LastRunBody>,
    /// Whether its Work keeps it for a run to come.
    pub(crate) pending: bool,
    /// Events whose parent it is, oldest first.
    pub(crate) events: Vec<LedEventBody>,
}

/// An Event that another one led to, in short.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LedEventBody {
    pub(crate) event: String,
    #[serde(rename = "type")]
    pub(crate) event_type: String,
    pub(crate) accepted_at: String,
}

impl From<runtime::why::LedTo> for LedToBody {
    fn from(led: runtime::why::LedTo) -> Self {
        let event = |event: &Event| LedEventBody {
            event: event.id.to_string(),
            event_type: event.event_type.to_string(),
            accepted_at: event.accepted_at.to_string(),
        };
        Self {
            run: led.run.as_ref().map(LastRunBody::from),
            pending: led.pending,
            events: led.events.iter().map(event).collect(),
        }
    }
}

/// What the failures of a Work mean for its next attempt.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RetryBody {
    /// `backoff` while a wait goes on, `due` once it is over, `exhausted` when only an operator starts the next
    /// attempt.
    pub(crate) state: String,
    /// The attempt that failed.
    pub(crate) run: String,
    /// When the wait is over.
    pub(crate) due_at: Option<String>,
    /// Why it is exhausted: `failure_budget` or `causal_bounds`.
    pub(crate) because: Option<String>,
}

impl RetryBody {
    pub(crate) fn of(eligibility: Eligibility) -> Option<Self> {
        let (state, due_at, because) = match eligibility {
            // What has yet to stop is told by its run.
            Eligibility::Clear | Eligibility::Woken { .. } | Eligibility::Stopping { .. } => return None,
            Eligibility::Backoff { due_at, .. } => ("backoff", Some(due_at.to_string()), None),
            Eligibility::Due { .. } => ("due", None, None),
            Eligibility::Exhausted { because, .. } => ("exhausted", None, Some(because.as_str().to_owned())),
        };
        let run = eligibility.failed()?.to_string();
        Some(Self { state: state.to_owned(), run, due_at, because })
    }
}

/// A run in short.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LastRunBody {
    pub(crate) run: String,
    pub(crate) attempt: i64,
    /// As on the run itself.
    pub(crate) state: String,
    pub(crate) claimed_at: String,
    pub(crate) ended_at: Option<String>,
}

impl From<&Execution> for LastRunBody {
    fn from(execution: &Execution) -> Self {
        Self {
            run: execution.id.to_string(),
            attempt: execution.attempt.number(),
            state: execution.state.as_str().to_owned(),
            claimed_at: execution.claimed_at.to_string(),
            ended_at: execution.ended_at.map(|at| at.to_string()),
        }
    }
}

/// Input of a Work that no run has taken in.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PendingInputBody {
    pub(crate) event: String,
    #[serde(rename = "type")]
    pub(crate) event_type: String,
    pub(crate) source: String,
    pub(crate) accepted_at: String,
    /// What the run that takes it in is carried out by.
    pub(crate) binding: String,
}

impl PendingInputBody {
    pub(crate) fn new(input: &Input, event: &Event) -> Self {
        Self {
            event: event.id.to_string(),
            event_type: event.event_type.to_string(),
            source: event.source.to_string(),
            accepted_at: event.accepted_at.to_string(),
            binding: input.binding.to_string(),
        }
    }
}
