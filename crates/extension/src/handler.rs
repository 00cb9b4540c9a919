//! Route handlers: does this Event match, and what Work is it about.

use std::fmt;
use std::sync::OnceLock;

use serde_json::Value;
use thiserror::Error;

use crate::{
    BoxFuture, Code, ConfigProblem, EventType, EventView, HandlerName, IngressEntry, Match, Payload,
    ScopeView, WorkView,
};

/// A kind of route.
pub trait Handler: fmt::Debug + Send + Sync {
    /// The name routes refer to it by.
    fn name(&self) -> HandlerName;

    /// Checks a route's own configuration and prepares it, once for each generation.
    ///
    /// # Errors
    /// Every [`ConfigProblem`] found.
    fn prepare(&self, config: &Value) -> Result<Box<dyn PreparedRoute>, Vec<ConfigProblem>>;

    /// The same for a scope, given the entries that it declares itself. Few kinds of routes look at them.
    ///
    /// # Errors
    /// As [`Self::prepare`].
    fn prepare_in(
        &self,
        config: &Value,
        _entries: &[EntryView],
    ) -> Result<Box<dyn PreparedRoute>, Vec<ConfigProblem>> {
        self.prepare(config)
    }
}

/// An extension entry of a scope, with its type.
#[derive(Debug, Clone)]
pub struct EntryView {
    /// Its `type`.
    pub entry_type: String,
    /// The entry.
    pub entry: IngressEntry,
}

/// A handler with a route's configuration. Deterministic, bounded in time and size, and it never calls out.
pub trait PreparedRoute: fmt::Debug + Send + Sync {
    /// What the route takes, in one phrase for people: "push to main".
    fn describe(&self) -> String;

    /// What Work it leads to, in one phrase for people: "a new Work for each".
    fn leads_to(&self) -> String {
        "the Work that its handler names".to_owned()
    }

    /// Whether the answer depends on the Event alone, so that the Work's revision need not be checked.
    fn ignores_work(&self) -> bool;

    /// Whether deciding may take more than a moment, so that it should not hold up the Events beside it.
    fn may_take_long(&self) -> bool {
        false
    }

    /// Whether the route asks for this announcement of the runtime by name. Others never reach it.
    fn takes_announcement(&self, event_type: &EventType) -> bool;

    /// Decides. `None` means it does not match and the next route is asked.
    fn decide<'a>(&'a self, input: &'a RouteInput) -> BoxFuture<'a, Result<Option<Match>, HandlerError>>;
}

/// The code of a handler that cannot answer anything now, such as one whose process is gone. It is not the Event's
/// fault: the Event is held and tried again for as long as that lasts, and is never set aside for it.
pub use domain::lane::EXTENSION_UNAVAILABLE;

/// A handler could not decide. The Event stays unrouted and is tried again, a few times at most unless the code is
/// [`EXTENSION_UNAVAILABLE`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct HandlerError {
    /// A stable word.
    pub code: Code,
    /// In words, without payload or secret.
    pub reason: String,
    /// Whether the Event and the configuration alone make it fail, so that another try would fail the same way.
    /// Then there is none: the Event is set aside at once.
    pub is_final: bool,
}

/// What a handler decides by.
#[derive(Debug)]
pub struct RouteInput {
    /// The Event.
    pub event: EventView,
    /// Its scope.
    pub scope: ScopeView,
    /// The Work the Event is addressed to or whose key it carries.
    pub work: Option<WorkView>,
    payload: Payload,
    parsed: OnceLock<Value>,
}

impl RouteInput {
    /// Puts an input together.
    pub const fn new(event: EventView, payload: Payload, scope: ScopeView, work: Option<WorkView>) -> Self {
        Self { event, scope, work, payload, parsed: OnceLock::new() }
    }

    /// The body as it was accepted: JSON text.
    pub fn payload_bytes(&self) -> &[u8] {
        self.payload.as_bytes()
    }

    /// The body, parsed at the first call. `null` when it does not parse, which acceptance prevents.
    pub fn payload(&self) -> &Value {
        self.parsed.get_or_init(|| serde_json::from_slice(self.payload.as_bytes()).unwrap_or(Value::Null))
    }
}
