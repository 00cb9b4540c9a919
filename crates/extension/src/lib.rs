//! What an extension author sees: handlers, ingress and executors, over plain-data views.
//!
//! An extension never sees the runtime, the store or another extension. It answers questions about detached
//! snapshots and is called from a durable row, so every call may be repeated after a crash. Each trait is one
//! half of a contract; the other half is what its doc comment promises.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

pub use domain::credential::UsageLimit;
pub use domain::event::{Key, Payload};
pub use domain::id::{Attempt, Epoch, EventId, ExecutionId, Generation, Revision, Sequence, WorkId};
pub use domain::intent::Controls;
pub use domain::outcome::{Artifact, Outcome, TurnResult, Usage};
pub use domain::retry::HINT_MAX as RETRY_HINT_MAX;
pub use domain::route::{End, Match};
pub use domain::scope::SecretRef;
pub use domain::text::{
    BindingName, CallId, Code, ConcurrencyKey, DeliveryId, EntryName, EventType, ExecutorName, ExternalId,
    HandlerName, RouteName, ScopeName, SourceName, TextError, WorkKind,
};
pub use domain::time::Timestamp;
pub use domain::wait::{Registration, TERMS_MAX as WAIT_TERMS_MAX, TIMEOUT_MAX as WAIT_TIMEOUT_MAX};
pub use domain::work::Lifecycle;
pub use domain::workspace::{Ended as WorkspaceEnded, Workspace as WorkspaceFacts};

pub mod view;
pub mod secret;
pub mod table;
pub mod handler;
pub mod ingress;
pub mod executor;
pub mod gate;
pub mod recurrence;
pub mod workspace;

pub use domain::toolbelt::Operation;
pub use executor::{
    AttemptHost, Capabilities, Executor, Injected, Injection, Log, LogRequest, Notice, PinError, Recovery,
    ResumeRequest, RunError, RunRequest, Segment, Stopped,
};
pub use gate::{
    CallDecision, CallGate, CallSubject, CallView, StartDecision, StartGate, StartSettlement, StartView,
};
pub use handler::{EXTENSION_UNAVAILABLE, EntryView, Handler, HandlerError, PreparedRoute, RouteInput};
pub use ingress::{HttpDelivery, Ingress, IngressDelivery, IngressEntry, IngressRefusal, PreparedIngress};
pub use recurrence::{
    Armed, Ensured, Firing, Passed, Publication, Recurrence, RecurrenceError, Recurrences, Recurring,
    TriggerChoice, TriggerView,
};
pub use secret::{Secret, SecretError, Secrets};
pub use view::{EventView, InputView, ScopeView, WorkView};
pub use workspace::{AcquireError, KeptState, KeptWorkspace, Resource, WorkspaceProvider, WorkspaceRequest};

/// A future in a box, so that a trait of async methods can be an object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What is wrong with an extension's configuration. It never repeats a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Where, as a path below the extension's own `config`: `jobs[2].cron`. Empty for the whole.
    pub path: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl ConfigProblem {
    /// A problem at a path.
    pub fn at(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "`{}`: {}", self.path, self.message)
        }
    }
}
