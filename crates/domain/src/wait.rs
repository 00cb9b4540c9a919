//! Waits: what a parked Work waits for, what it takes for news, and which Event ends the Wait.
//!
//! A Wait is a subscription on keys of its own Work. It begins strictly after what the execution has seen, so
//! nothing that was accepted in between is missed, and it ends once: with the matching Event that was accepted
//! first, its own timeout among them. A clock alone ends nothing; what ends a Wait is an accepted Event.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::delivery::CORE_SOURCE;
use crate::event::{Event, Key};
use crate::execution::Execution;
use crate::id::{EventId, ExecutionId, Sequence, TimerId, WaitId, WorkId};
use crate::route::canonical;
use crate::text::{DeliveryId, EventType, ScopeName};
use crate::time::Timestamp;

/// The type of the Event that a Wait's timer becomes.
pub const WAIT_TIMEOUT: &str = "core.wait.timeout";
/// The type of the Event that bridges from what ended a Wait to the turn that goes on.
pub const WAIT_WOKEN: &str = "core.wait.woken";
/// The most keys, and the most types, that one Wait may name.
pub const TERMS_MAX: usize = 64;
/// The longest timeout: 400 days.
pub const TIMEOUT_MAX: Duration = Duration::from_hours(400 * 24);

/// The identity under which the end of a Wait is announced.
pub fn woken_delivery(id: WaitId) -> DeliveryId {
    DeliveryId::known(&format!("woken/{id}"))
}

/// What a turn that ends asks to be woken by.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Registration {
    /// Keys of its own Work; none stands for all that the Work has. Empty is a Wait for its timeout alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<Key>>,
    /// Types of Events; empty stands for any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<EventType>,
    /// The highest sequence it has seen, when that is more than its input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Sequence>,
    /// After how many seconds it wakes by itself; from 1 to [`TIMEOUT_MAX`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
}

/// What the transaction knows that bears on a registration.
#[derive(Debug, Clone)]
pub struct RegistrationFacts {
    /// The id of the Wait.
    pub id: WaitId,
    /// The id of its timer, if it gets one.
    pub timer: TimerId,
    /// The Work.
    pub work: WorkId,
    /// The Work's scope.
    pub scope: ScopeName,
    /// The attempt that waits.
    pub execution: ExecutionId,
    /// The keys of the Work.
    pub keys: Vec<Key>,
    /// The highest sequence of what the attempt took in.
    pub consumed: Sequence,
    /// The first input that is pending: the attempt has not seen it.
    pub pending: Option<Sequence>,
    /// The highest accepted sequence.
    pub last: Sequence,
}

/// Why a turn may not wait for what it asked for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WaitRefusal {
    /// It did not say for what.
    #[error("the run said that it waits, but not for what")]
    Missing,
    /// A key is not its Work's.
    #[error("a key that the run waits for does not belong to its Work")]
    ForeignKey,
    /// It claims to have seen what was never accepted.
    #[error("the run says that it has seen {after}, but {last} is the newest that was accepted")]
    Ahead {
        /// What it claims.
        after: Sequence,
        /// What is accepted.
        last: Sequence,
    },
    /// Nothing could wake it.
    #[error("nothing could wake the run: it waits for no key and has no timeout")]
    Endless,
    /// Too many keys or types.
    #[error("a run may wait for at most {TERMS_MAX} keys and {TERMS_MAX} types")]
    TooMany,
    /// The timeout is out of bounds.
    #[error("a timeout is from 1 second to 400 days")]
    Timeout,
}

impl Registration {
    /// The Wait that a turn registers at `now`.
    ///
    /// It begins behind what the attempt took in, and before the first input that is still pending; a claim to
    /// have seen more moves it on, and nothing moves it back.
    ///
    /// # Errors
    /// [`WaitRefusal`]; the turn then failed.
    pub fn admit(&self, facts: RegistrationFacts, now: Timestamp) -> Result<Wait, WaitRefusal> {
        let keys = match &self.keys {
            Some(named) => {
                if named.iter().any(|key| !facts.keys.contains(key)) {
                    return Err(WaitRefusal::ForeignKey);
                }
                canonical(named.clone())
            }
            None => canonical(facts.keys),
        };
        if keys.len() > TERMS_MAX || self.types.len() > TERMS_MAX {
            return Err(WaitRefusal::TooMany);
        }
        let after = self.after.unwrap_or(Sequence::ZERO);
        if after > facts.last {
            return Err(WaitRefusal::Ahead { after, last: facts.last });
        }
        let unseen = facts.pending.map_or(i64::MAX, |first| first.number() - 1);
        let seen = facts.consumed.min(Sequence::from_number(unseen));
        let delay = self.timeout_seconds.map(Duration::from_secs);
        if delay.is_some_and(|delay| delay.is_zero() || delay > TIMEOUT_MAX) {
            return Err(WaitRefusal::Timeout);
        }
        if keys.is_empty() && delay.is_none() {
            return Err(WaitRefusal::Endless);
        }
        Ok(Wait {
            id: facts.id,
            work: facts.work,
            scope: facts.scope,
            execution: facts.execution,
            keys,
            types: self.types.clone(),
            after: after.max(seen),
            timeout: delay.map(|delay| Timeout { timer: facts.timer, due_at: now.after(delay) }),
            registered_at: now,
            state: WaitState::Active,
        })
    }
}

/// When a Wait ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeout {
    /// The timer. It may have fired and be gone; the name stays in history.
    pub timer: TimerId,
    /// When it is due, inclusive.
    pub due_at: Timestamp,
}

/// Where a Wait is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitState {
    /// It can be woken.
    Active,
    /// It was woken, once.
    Woken {
        /// The Event that won.
        winner: EventId,
        /// That Event's place in the order of acceptance.
        sequence: Sequence,
        /// When.
        at: Timestamp,
    },
    /// Its Work was cancelled first.
    Cancelled {
        /// When.
        at: Timestamp,
    },
}

impl WaitState {
    /// Whether it can still be woken.
    pub const fn is_active(self) -> bool {
        match self {
            Self::Active => true,
            Self::Woken { .. } | Self::Cancelled { .. } => false,
        }
    }

    /// The word in API and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Woken { .. } => "woken",
            Self::Cancelled { .. } => "cancelled",
        }
    }
}

/// A subscription of a Work that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// Its id.
    pub id: WaitId,
    /// The Work.
    pub work: WorkId,
    /// The Work's scope.
    pub scope: ScopeName,
    /// The attempt whose turn ended in it.
    pub execution: ExecutionId,
    /// The keys, in canonical order. None is a Wait for its timeout alone.
    pub keys: Vec<Key>,
    /// The types; empty stands for any.
    pub types: Vec<EventType>,
    /// What the attempt had seen. Only what was accepted after it matches.
    pub after: Sequence,
    /// When it ends by itself.
    pub timeout: Option<Timeout>,
    /// When it was registered.
    pub registered_at: Timestamp,
    /// Where it is in its life.
    pub state: WaitState,
}

/// What may end a Wait, as one transaction sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Candidates {
    /// The first accepted Event that matches.
    pub matched: Option<Sequence>,
    /// The Wait's timeout, when it was accepted.
    pub timeout: Option<Sequence>,
}

/// What ends a Wait now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arbitration {
    /// Nothing does.
    Goes,
    /// The accepted Event at this sequence.
    Won(Sequence),
    /// Its timeout, which is due and becomes an Event in the same transaction.
    TimedOut,
}

impl Wait {
    /// Whether an accepted Event is news that this Wait is for.
    ///
    /// Keys and types are alternatives among themselves, and both must agree. What the Work's own executions
    /// published is no news to it, and neither is what is addressed to another Work or scope.
    pub fn matches(&self, event: &Event) -> bool {
        let addressed = event.work.is_none_or(|work| work == self.work);
        let published = event.emitted_by.is_some() || event.is_announcement();
        let own = event.work == Some(self.work) && published;
        event.sequence > self.after
            && event.scope == self.scope
            && event.key.as_ref().is_some_and(|key| self.keys.contains(key))
            && (self.types.is_empty() || self.types.contains(&event.event_type))
            && addressed
            && !own
    }

    /// Whether an attempt that published an Event is one of this Wait's own Work, to which that is no news.
    pub fn is_of(&self, publisher: &Execution) -> bool {
        publisher.work == self.work
    }

    /// The identity under which its timeout is accepted, however often it fires.
    pub fn timeout_delivery(&self) -> DeliveryId {
        DeliveryId::known(&format!("wait/{}", self.id))
    }

    /// Whether an Event is this Wait's timeout. It needs no timer to be recognized.
    pub fn is_timed_out_by(&self, event: &Event) -> bool {
        event.source.as_str() == CORE_SOURCE && event.delivery_id == self.timeout_delivery()
    }

    /// What ends it at `now`: of what is accepted, the lowest sequence, whatever happened first outside. Only
    /// where nothing is accepted does a timeout that is due come in.
    pub fn arbitrate(&self, candidates: Candidates, now: Timestamp) -> Arbitration {
        if !self.state.is_active() {
            return Arbitration::Goes;
        }
        let first = [candidates.matched, candidates.timeout].into_iter().flatten().min();
        match (first, self.timeout) {
            (Some(sequence), _) => Arbitration::Won(sequence),
            (None, Some(timeout)) if timeout.due_at <= now => Arbitration::TimedOut,
            (None, _) => Arbitration::Goes,
        }
    }

    /// Ends it with the Event that won. None when it has ended: there is no second end.
    #[must_use]
    pub fn wake(&self, winner: &Event, now: Timestamp) -> Option<Self> {
        let state = WaitState::Woken { winner: winner.id, sequence: winner.sequence, at: now };
        self.state.is_active().then(|| Self { state, ..self.clone() })
    }

    /// Ends it with its Work. None when it has ended, which no cancellation rewrites.
    #[must_use]
    pub fn cancel(&self, now: Timestamp) -> Option<Self> {
        self.state.is_active().then(|| Self { state: WaitState::Cancelled { at: now }, ..self.clone() })
    }
}

#[cfg(test)]
mod tests;
