//! Start gates: whether a Work may have its first attempt.

use std::fmt;

use crate::{BoxFuture, Code, Key, WorkKind, WorkView};

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
