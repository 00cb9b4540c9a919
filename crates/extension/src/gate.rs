//! Gates: whether a Work may have its first attempt, and whether a call of a running attempt may run.

use std::fmt;

use crate::{
    BindingName, BoxFuture, CallId, Code, EventType, ExecutionId, Key, Operation, Payload, Registration,
    ScopeName, WorkKind, WorkView,
};

/// Who decides whether a Work may start its first attempt.
///
/// A hold is no Wait: nothing runs and nothing asks again. Input queues, and the gate's extension settles it once,
/// from whatever it observes: it lets one start through, or has the Work cancelled. An operator may do either too.
pub trait StartGate: fmt::Debug + Send + Sync {
    /// Its name, which stands in the reason of a hold.
    fn name(&self) -> Code;

    /// Whether it has a say about Works of this kind. Others are not shown to it.
    fn guards(&self, kind: &WorkKind) -> bool;

    /// Decides. It may be asked more than once about the same start, and again after a crash; an answer counts only
    /// while the Work is as it was shown. One that takes too long is taken for a hold.
    fn decide<'a>(&'a self, start: &'a StartView) -> BoxFuture<'a, StartDecision>;
}

/// A start that a gate decides about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartView {
    /// The Work.
    pub work: WorkView,
    /// Its keys.
    pub keys: Vec<Key>,
}

/// What a gate decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartDecision {
    /// It has nothing against it.
    Start,
    /// Not now. The Work is held until that is settled.
    Hold {
        /// Why, in words for people, without a payload or a secret.
        reason: String,
    },
}

/// How an extension settles a hold of its gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartSettlement {
    /// The next start goes through, once.
    Start,
    /// The Work is cancelled.
    Cancel,
}

/// Who decides whether a call of a running attempt may run.
///
/// A call that it has wait does not run: the turn waits for what the gate says, and when the Work goes on the call is
/// made again and the gate is asked again. What it does with its own past answers is its own affair.
pub trait CallGate: fmt::Debug + Send + Sync {
    /// Its name, which stands in what the caller is answered.
    fn name(&self) -> Code;

    /// Whether it has a say about calls that do this. Others are not shown to it.
    fn guards(&self, operation: Operation) -> bool;

    /// Decides. It may be asked more than once about the same call; an answer counts only while the attempt goes on
    /// under the epoch that asked. One that takes too long lets nothing through.
    fn decide<'a>(&'a self, call: &'a CallView) -> BoxFuture<'a, CallDecision>;
}

/// A call that a gate decides about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallView {
    /// The attempt that makes it.
    pub execution: ExecutionId,
    /// Its Work.
    pub work: WorkView,
    /// The Work's keys.
    pub keys: Vec<Key>,
    /// The caller's name for it.
    pub call: CallId,
    /// What it would do.
    pub operation: Operation,
    /// About what, where that is more than its attempt.
    pub subject: CallSubject,
}

/// What a call is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallSubject {
    /// An Event to emit.
    Event {
        /// Its type.
        event_type: EventType,
        /// Its key.
        key: Option<Key>,
        /// Its body.
        payload: Payload,
    },
    /// A Work to create.
    Child {
        /// Its scope; none for the attempt's own.
        scope: Option<ScopeName>,
        /// Its kind.
        kind: WorkKind,
        /// Its binding; none for the attempt's own.
        binding: Option<BindingName>,
        /// Its keys.
        keys: Vec<Key>,
        /// What it is to work on.
        input: Payload,
    },
    /// The attempt itself.
    Attempt,
}

/// What a gate decides about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallDecision {
    /// It has nothing against it.
    Allow,
    /// Not at all. The call is refused, and nothing has changed.
    Refuse {
        /// Why, in words that the caller reads.
        reason: String,
    },
    /// Not before something has happened. The turn waits for it, if it ends well.
    Wait {
        /// Why, in words that the caller reads.
        reason: String,
        /// What the turn waits for.
        registration: Registration,
    },
}
