//! Aliases: how a Work learns of what happens to a key that is not its own.
//!
//! A key belongs to one Work, and no other Work may wait for it. What another Work has to know is translated: a
//! subscription watches the key, and each Event it is for becomes an alias, an Event of its own that carries a key
//! of the dependent Work and has the original as its cause. The right to read is asked of the configuration in
//! force, at the installation and again for every Event; a right to write never comes with it.

use serde::Serialize;
use thiserror::Error;

use crate::causal::Origin;
use crate::delivery::Delivery;
use crate::event::{Event, Key, Payload};
use crate::id::{EventId, Sequence, WaitId, WorkId};
use crate::text::{DeliveryId, EventType, ScopeName, SourceName, SubscriptionId};
use crate::time::Timestamp;
use crate::wait::{TERMS_MAX, Wait};
use crate::work::Work;

/// The namespace of every alias. No sender may deliver in it.
pub const ALIAS_SOURCE: &str = "core.alias";
/// The most Events of the watched key that an installation looks through.
pub const SCAN_MAX: u32 = 256;

/// What an installation asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscribe {
    /// The subscription's name, for ever. Whoever installs it puts its own namespace in front.
    pub id: SubscriptionId,
    /// The dependent Work.
    pub work: WorkId,
    /// The key that is watched. It may be anyone's but the dependent Work's own.
    pub watched: Key,
    /// The types that are translated, at most [`TERMS_MAX`]; empty stands for any.
    pub types: Vec<EventType>,
    /// The key of the dependent Work that each alias carries.
    pub own: Key,
    /// The type of each alias.
    pub becomes: EventType,
    /// Up to where the dependent Work has seen everything.
    pub after: Sequence,
}

/// What the transaction knows that bears on an installation.
#[derive(Debug, Clone)]
pub struct SubscribeFacts {
    /// The dependent Work, when it exists.
    pub work: Option<Work>,
    /// What it waits for at this moment.
    pub wait: Option<WaitId>,
    /// Who owns the key that its aliases are to carry.
    pub own: Option<WorkId>,
    /// Who owns the watched key, with that Work's scope.
    pub watched: Option<(WorkId, ScopeName)>,
    /// The subscription of that name, when there is one.
    pub known: Option<Subscription>,
    /// The highest accepted sequence.
    pub last: Sequence,
}

/// Why a subscription was not installed. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SubscribeRefusal {
    /// The dependent Work does not exist.
    #[error("no Work {0} exists; `work list` shows those that do")]
    UnknownWork(WorkId),
    /// The dependent Work has ended.
    #[error("{0} has ended and learns nothing any more")]
    TerminalWork(WorkId),
    /// The aliases would carry a key of somebody else.
    #[error("the key that the aliases are to carry does not belong to {0}; name one of its own")]
    ForeignKey(WorkId),
    /// It watches a key of the dependent Work itself.
    #[error("the watched key is the Work's own; it can wait for that without a subscription")]
    OwnKey,
    /// The dependent Work's scope may not read the watched one.
    #[error("scope `{reader}` may not read scope `{scope}`; add it to the `read_scopes` of `{reader}`")]
    NotAuthorized {
        /// The dependent Work's scope.
        reader: ScopeName,
        /// The scope of the watched key's owner.
        scope: ScopeName,
    },
    /// The aliases would have a type of the runtime's own.
    #[error("types that begin with `core.` belong to the runtime; choose another type for the aliases")]
    ReservedType,
    /// It names too many types.
    #[error("a subscription may name at most {TERMS_MAX} types")]
    TooMany,
    /// It claims to have seen what was never accepted.
    #[error("the subscription is to begin after {after}, but {last} is the newest that was accepted")]
    Ahead {
        /// What it claims.
        after: Sequence,
        /// What is accepted.
        last: Sequence,
    },
    /// It begins too far back.
    #[error("the watched key had more than {SCAN_MAX} Events since {after}; begin later")]
    Behind {
        /// Where it is to begin.
        after: Sequence,
    },
    /// Its name stands for another subscription.
    #[error("a subscription of this id exists with other terms; choose another id")]
    Taken,
    /// It has ended, and its name with it.
    #[error("the subscription of this id has ended; choose another id")]
    Over,
}

impl SubscribeRefusal {
    /// The stable word for this refusal.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::UnknownWork(_) => "unknown_work",
            Self::TerminalWork(_) => "terminal_work",
            Self::ForeignKey(_) => "foreign_key",
            Self::OwnKey => "own_key",
            Self::NotAuthorized { .. } => "not_authorized",
            Self::ReservedType => "reserved_type",
            Self::TooMany => "too_many_types",
            Self::Ahead { .. } => "ahead",
            Self::Behind { .. } => "behind",
            Self::Taken => "subscription_taken",
            Self::Over => "subscription_over",
        }
    }
}

/// Whether a scope that was given `reads` may read another one. Every scope may read itself.
pub fn may_read(reader: &ScopeName, reads: &[ScopeName], scope: &ScopeName) -> bool {
    reader == scope || reads.contains(scope)
}

impl Subscribe {
    /// The subscription that is in force once this is installed at `now`, where the dependent Work's scope may read
    /// `reads`. Installed again, it goes on from what it has observed.
    ///
    /// # Errors
    /// [`SubscribeRefusal`].
    pub fn admit(
        &self,
        facts: SubscribeFacts,
        reads: &[ScopeName],
        now: Timestamp,
    ) -> Result<Subscription, SubscribeRefusal> {
        let work = facts.work.ok_or(SubscribeRefusal::UnknownWork(self.work))?;
        if work.state.is_terminal() {
            return Err(SubscribeRefusal::TerminalWork(work.id));
        }
        if facts.own != Some(work.id) {
            return Err(SubscribeRefusal::ForeignKey(work.id));
        }
        if let Some((owner, scope)) = facts.watched {
            if owner == work.id {
                return Err(SubscribeRefusal::OwnKey);
            }
            if !may_read(&work.scope, reads, &scope) {
                return Err(SubscribeRefusal::NotAuthorized { reader: work.scope, scope });
            }
        }
        if self.becomes.is_core() {
            return Err(SubscribeRefusal::ReservedType);
        }
        if self.types.len() > TERMS_MAX {
            return Err(SubscribeRefusal::TooMany);
        }
        if self.after > facts.last {
            return Err(SubscribeRefusal::Ahead { after: self.after, last: facts.last });
        }
        let asked = Subscription {
            id: self.id.clone(),
            work: work.id,
            wait: facts.wait,
            scope: work.scope,
            watched: self.watched.clone(),
            types: self.types.clone(),
            own: self.own.clone(),
            becomes: self.becomes.clone(),
            after: self.after,
            installed_at: now,
            ended_at: None,
        };
        match facts.known {
            None => Ok(asked),
            Some(known) if !known.has_terms_of(&asked) => Err(SubscribeRefusal::Taken),
            Some(known) if known.ended_at.is_some() => Err(SubscribeRefusal::Over),
            Some(known) => Ok(known.observed(asked.after)),
        }
    }
}

/// A translation of what a watched key sees into Events of a dependent Work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// Its name, for ever.
    pub id: SubscriptionId,
    /// The dependent Work.
    pub work: WorkId,
    /// What that Work waited for when it was installed. It outlives that Wait.
    pub wait: Option<WaitId>,
    /// The dependent Work's scope.
    pub scope: ScopeName,
    /// The key that is watched.
    pub watched: Key,
    /// The types that are translated; empty stands for any.
    pub types: Vec<EventType>,
    /// The key of the dependent Work that each alias carries.
    pub own: Key,
    /// The type of each alias.
    pub becomes: EventType,
    /// Its checkpoint: what was accepted up to here has been observed.
    pub after: Sequence,
    /// When it was installed first.
    pub installed_at: Timestamp,
    /// When it ended: by itself, or with its Work.
    pub ended_at: Option<Timestamp>,
}

/// The body of an alias. Nothing of the original's payload is in it: its reader may be of another scope.
#[derive(Debug, Serialize)]
struct AliasBody<'a> {
    event: EventId,
    #[serde(rename = "type")]
    event_type: &'a str,
    source: &'a str,
}

impl Subscription {
    fn has_terms_of(&self, other: &Self) -> bool {
        (self.work, &self.watched, &self.types, &self.own, &self.becomes)
            == (other.work, &other.watched, &other.types, &other.own, &other.becomes)
    }

    /// Whether an accepted Event is to be translated, where the dependent Work's scope may read `reads`. What the
    /// dependent Work's own executions published is no news to it, and neither is an Event that is looked at again.
    pub fn matches(&self, event: &Event, reads: &[ScopeName]) -> bool {
        let own = event.work == Some(self.work) && event.emitted_by.is_some();
        self.ended_at.is_none()
            && event.sequence > self.after
            && event.key.as_ref() == Some(&self.watched)
            && (self.types.is_empty() || self.types.contains(&event.event_type))
            && may_read(&self.scope, reads, &event.scope)
            && !event.event_type.is_core()
            && !own
    }

    /// The alias of an Event, which will be the Event `id`. Its identity is the subscription's with the original's,
    /// so that it is accepted once, however often it is made.
    pub fn translate(&self, original: &Event, id: EventId) -> Delivery {
        let body = AliasBody {
            event: original.id,
            event_type: original.event_type.as_str(),
            source: original.source.as_str(),
        };
        Delivery {
            id,
            source: SourceName::known(ALIAS_SOURCE),
            delivery_id: DeliveryId::known(&format!("{}/{}", self.id, original.id)),
            event_type: self.becomes.clone(),
            scope: self.scope.clone(),
            key: Some(self.own.clone()),
            work: Some(self.work),
            occurred_at: original.occurred_at,
            payload: Payload::stored(serde_json::to_vec(&body).expect("a struct of plain values is JSON")),
            origin: Origin::Derived { parent: original.id, emitted_by: None },
        }
    }

    /// It, once everything up to `sequence` has been observed. A checkpoint never goes back.
    #[must_use]
    pub fn observed(self, sequence: Sequence) -> Self {
        Self { after: self.after.max(sequence), ..self }
    }

    /// Ends it. None when it has ended.
    #[must_use]
    pub fn end(&self, now: Timestamp) -> Option<Self> {
        self.ended_at.is_none().then(|| Self { ended_at: Some(now), ..self.clone() })
    }

    /// Whether a Wait of its Work is for what it makes.
    pub fn feeds(&self, wait: &Wait) -> bool {
        self.ended_at.is_none()
            && self.work == wait.work
            && wait.keys.contains(&self.own)
            && (wait.types.is_empty() || wait.types.contains(&self.becomes))
    }
}

#[cfg(test)]
mod tests;
