//! The toolbelt: what the process of a running attempt may ask for, under a token of its own.
//!
//! A call names itself, so that one whose answer was lost can be made again: it answers the same and does nothing
//! more. A call is refused by a value that its caller reads, and a refusal changes nothing. What a call declares
//! about the turn (what it waits for, what it took in) takes effect with the turn's result, not before; what it
//! used counts at once.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::budget::meter::{ReportRefusal, UNITS_MAX};
use crate::event::{Event, PayloadError};
use crate::execution::Execution;
use crate::id::{Epoch, EventId, ExecutionId, WorkId};
use crate::lane::Fnv;
use crate::lease::Fenced;
use crate::outcome::{Outcome, TurnResult};
use crate::text::{BindingName, CallId, Code, ScopeName, SourceName};
use crate::time::Timestamp;
use crate::wait::Registration;

/// The source of everything that an attempt emits.
pub const RUN_SOURCE: &str = "core.run";
/// The most calls with an effect that one attempt may make.
pub const CALLS_MAX: i64 = 10_000;
/// The most bytes of a line of progress that are kept.
pub const PROGRESS_BYTES_MAX: usize = 500;
/// The most keys that a Wait may watch besides its Work's own, and that a child Work may be given.
pub const KEYS_MAX: usize = 16;

/// What is kept of an attempt's token: its SHA-256. `Debug` does not show it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenDigest([u8; 32]);

impl TokenDigest {
    /// Wraps a digest.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenDigest")
    }
}

/// A token as its holder shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Presented {
    /// The attempt it says it is for.
    pub execution: ExecutionId,
    /// The epoch it says it is for.
    pub epoch: Epoch,
    /// The digest of its secret part.
    pub digest: TokenDigest,
}

/// What an attempt's process has and has said in its current turn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Toolbelt {
    /// The token of the epoch in force; none until what was started is recorded.
    pub token: Option<TokenDigest>,
    /// What it has said about the turn's end.
    pub declared: Declared,
}

/// What calls said about the turn that goes on. It counts with the turn's result.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Declared {
    /// What the turn waits for when it ends well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Box<Registration>>,
    /// Whether it acknowledged input.
    #[serde(default, skip_serializing_if = "is_false")]
    pub acknowledged: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

impl Declared {
    /// Whether nothing was said.
    pub const fn is_empty(&self) -> bool {
        self.wait.is_none() && !self.acknowledged
    }
}

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Accepts an Event on the attempt's chain.
    Emit,
    /// Says what the turn waits for when it ends.
    Wait,
    /// Creates a Work below the attempt's own.
    Child,
    /// Says how far it has come.
    Progress,
    /// Says what it used.
    Usage,
    /// Says that it took an injected Event in.
    Acknowledge,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 6] =
        [Self::Emit, Self::Wait, Self::Child, Self::Progress, Self::Usage, Self::Acknowledge];

    /// The word in API and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Emit => "emit",
            Self::Wait => "wait",
            Self::Child => "child",
            Self::Progress => "progress",
            Self::Usage => "usage",
            Self::Acknowledge => "acknowledge",
        }
    }
}

/// What was asked by a call, as far as another one under its name has to be told from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(i64);

impl Fingerprint {
    /// That of an operation and its parts, in order.
    pub fn of(operation: Operation, parts: &[&[u8]]) -> Self {
        let mut digest = Fnv::new();
        digest.write(operation.as_str().as_bytes());
        for part in parts {
            digest.write(&part.len().to_be_bytes());
            digest.write(part);
        }
        Self(digest.number())
    }

    /// The one behind a stored number.
    pub const fn from_number(number: i64) -> Self {
        Self(number)
    }

    /// The number a store keeps.
    pub const fn number(self) -> i64 {
        self.0
    }
}

/// A call that had its effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The attempt that made it.
    pub execution: ExecutionId,
    /// Its caller's name for it, unique within the attempt.
    pub id: CallId,
    /// Its place among the attempt's calls, from 1.
    pub number: i64,
    /// What it did.
    pub operation: Operation,
    /// What was asked.
    pub request: Fingerprint,
    /// What was answered, as JSON.
    pub answer: Vec<u8>,
    /// When.
    pub at: Timestamp,
}

/// How far an attempt says it has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// In words, one line.
    pub text: String,
    /// In hundredths of the whole, when it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
}

/// Where a Work that an attempt created belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parentage {
    /// The Work.
    pub child: WorkId,
    /// The Work whose attempt created it.
    pub parent: WorkId,
    /// The attempt.
    pub execution: ExecutionId,
}

/// Why a call had no effect.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CallRefusal {
    /// The token is nobody's.
    #[error("the token is not one of a run that is going on")]
    UnknownToken,
    /// The token's time is over.
    #[error(transparent)]
    Fenced(#[from] Fenced),
    /// Another call had this name.
    #[error("a call of this run had this id and asked for something else; choose another id")]
    Reused,
    /// The attempt has made too many calls.
    #[error("the run has made {CALLS_MAX} calls, which is all that one may")]
    TooMany,
    /// There is no such Event.
    #[error("no Event {0} was accepted")]
    UnknownEvent(EventId),
    /// The Event may not be cited.
    #[error(
        "Event {0} cannot be cited: a cause is an Event of the run's own scope with a key in a namespace in which \
         the run's Work has one"
    )]
    ForeignCause(EventId),
    /// The type belongs to the runtime.
    #[error("types that begin with `core.` belong to the runtime; choose another type")]
    ReservedType,
    /// A key's namespace belongs to the runtime.
    #[error("keys in sources that begin with `core.` belong to the runtime; choose another source")]
    ReservedSource,
    /// A key belongs to another Work.
    #[error("a key that the new Work was to have belongs to another Work")]
    KeyTaken,
    /// The body is too large.
    #[error(transparent)]
    TooLarge(#[from] PayloadError),
    /// Too many keys.
    #[error("at most {KEYS_MAX} keys may be named in one call")]
    TooManyKeys,
    /// The Work has no key of its own.
    #[error("the run's Work has no key of its own, under which news of another one's could reach it")]
    NoKey,
    /// The scope has no such binding.
    #[error("the scope has no binding called `{0}`")]
    UnknownBinding(BindingName),
    /// The Event was not injected into this attempt.
    #[error("Event {0} was not given to this run while it ran, so there is nothing to acknowledge")]
    NotInjected(EventId),
    /// An amount is none.
    #[error("usage is one to {UNITS_MAX} units, each with an amount from 0 to 9000000000000")]
    Amount,
    /// A gate is against it.
    #[error("gate `{gate}` refuses the call: {reason}")]
    Gate {
        /// Which one.
        gate: Code,
        /// Why, in its words.
        reason: String,
    },
    /// A gate failed, or took too long. The same call may be made again.
    #[error("gate `{0}` did not answer, and without its word the call is not made")]
    GateSilent(Code),
    /// A Work may not be created there.
    #[error(
        "scope `{from}` may not create Works in scope `{scope}`; add it to the `write_scopes` of `{from}`"
    )]
    ScopeNotWritable {
        /// The attempt's scope.
        from: ScopeName,
        /// The other one.
        scope: ScopeName,
    },
    /// What it used is not reported like that.
    #[error(transparent)]
    Report(#[from] ReportRefusal),
    /// A line of progress says nothing.
    #[error("say in a line how far the run has come, and a percentage from 0 to 100 if it knows")]
    Progress,
}

impl CallRefusal {
    /// The stable word for this refusal.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::UnknownToken => "unauthorized",
            Self::Fenced(fenced) => fenced.code(),
            Self::Reused => "call_reused",
            Self::TooMany | Self::Report(ReportRefusal::Exhausted) => "too_many_calls",
            Self::UnknownEvent(_) => "unknown_event",
            Self::ForeignCause(_) => "foreign_cause",
            Self::ReservedType => "reserved_type",
            Self::ReservedSource => "reserved_source",
            Self::KeyTaken => "key_conflict",
            Self::TooLarge(_) => "payload_too_large",
            Self::TooManyKeys | Self::Amount | Self::Report(_) | Self::Progress => "invalid_call",
            Self::Gate { .. } => "gate_refused",
            Self::GateSilent(_) => "gate_silent",
            Self::ScopeNotWritable { .. } => "scope_not_writable",
            Self::NoKey => "no_key",
            Self::UnknownBinding(_) => "unknown_binding",
            Self::NotInjected(_) => "not_injected",
        }
    }
}

impl Execution {
    /// Checks that a token speaks for this Execution at `now`: it is that of the epoch in force, and the lease of
    /// that epoch is live, whichever process holds it. (TOO-1)
    ///
    /// # Errors
    /// [`CallRefusal::UnknownToken`] and [`CallRefusal::Fenced`].
    pub fn admit(&self, token: Presented, now: Timestamp) -> Result<(), CallRefusal> {
        if token.execution != self.id || token.epoch > self.epoch {
            return Err(CallRefusal::UnknownToken);
        }
        if token.epoch < self.epoch {
            return Err(Fenced::Epoch { presented: token.epoch, current: self.epoch }.into());
        }
        // Digests of what nobody can guess: how long comparing them takes tells nothing of use.
        if self.toolbelt.token != Some(token.digest) {
            return Err(CallRefusal::UnknownToken);
        }
        if self.outcome.is_some() || !self.state.is_going_on() {
            return Err(Fenced::Ended.into());
        }
        match self.lease {
            Some(lease) if lease.is_live(now) => Ok(()),
            Some(_) | None => Err(Fenced::Expired.into()),
        }
    }

    /// Gives the epoch in force its token.
    #[must_use]
    pub fn equip(mut self, token: Option<TokenDigest>) -> Self {
        self.toolbelt.token = token;
        self
    }
}

/// Whether an attempt may cite an Event as the cause of what it emits: it is of the attempt's own scope, and its key
/// is in the namespace of a key of the attempt's Work. Its own trigger it cites without being asked. (CAU-12)
pub fn may_cite(execution: &Execution, cause: &Event, namespaces: &[SourceName]) -> bool {
    let known = cause.key.as_ref().is_some_and(|key| namespaces.contains(&key.source));
    cause.id == execution.turn.cause || (cause.scope == execution.scope && known)
}

/// What a turn's result is with what its calls declared: a turn that ends well waits for what it declared, unless it
/// says itself what it waits for. (TOO-9; TOO-8 is the runtime's, which knows what was acknowledged.)
#[must_use]
pub fn settled(result: TurnResult, declared: &Declared) -> TurnResult {
    let mut result = result;
    match (result.outcome, &declared.wait) {
        (Outcome::Completed | Outcome::Handoff, Some(wait)) => {
            result.outcome = Outcome::Waiting;
            result.wait = Some(wait.clone());
        }
        (Outcome::Completed | Outcome::Handoff, None) | (Outcome::Waiting | Outcome::Failed, _) => {}
    }
    result
}

impl Progress {
    /// A line, as it is kept.
    ///
    /// # Errors
    /// [`CallRefusal::Progress`] when it is empty, or the percentage is none.
    pub fn new(text: &str, percent: Option<u8>) -> Result<Self, CallRefusal> {
        let text = crate::text::plain(text.trim(), PROGRESS_BYTES_MAX);
        if text.is_empty() || percent.is_some_and(|percent| percent > 100) {
            return Err(CallRefusal::Progress);
        }
        Ok(Self { text, percent })
    }
}

#[cfg(test)]
mod tests;
