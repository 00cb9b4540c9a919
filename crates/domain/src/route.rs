//! Routing: from an Event and the first route that matches it to a checkpoint and its effects.
//!
//! A handler only says what it would match. What that means for Works and keys is decided here, from facts
//! the transaction read, and is the same whoever asked and however often.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::event::{Event, Key};
use crate::execution::Execution;
use crate::id::{EventId, Generation, Sequence, WorkId};
use crate::intent::{ErrorFallback, IntentKind};
use crate::succession::{self, Succession, TooLong};
use crate::text::{BindingName, Code, ConcurrencyKey, RouteName, ScopeName, WorkKind};
use crate::time::Timestamp;
use crate::work::{Lifecycle, Work, WorkState};

/// The Work that a match means by the Event's own address. What the runtime says about a Work names it and is addressed
/// to none: it is for whoever asks for that very Work.
pub fn addressee(event: &Event, wants: &Match) -> Option<WorkId> {
    let asks_for_it = match wants {
        Match::Addressed => true,
        Match::Attach { .. } | Match::Fresh { .. } | Match::Drop { .. } => false,
    };
    event.work.filter(|_work| asks_for_it || !event.is_announcement())
}

/// Whether a match may go on with a successor of the Work that owns its keys. What is addressed to a Work means that
/// one.
pub fn may_reopen(event: &Event, wants: &Match) -> bool {
    match wants {
        Match::Attach { reopens, .. } => !reopens.is_empty() && addressee(event, wants).is_none(),
        Match::Fresh { .. } | Match::Addressed | Match::Drop { .. } => false,
    }
}

/// What happens to a matched Event while the selected Work has a running attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActivePolicy {
    /// It waits as input of the next attempt.
    Queue,
    /// It is input, and the running attempt is asked to take it in.
    Inject,
    /// It is input, and the running attempt is ended for the next one to take it in.
    Interrupt,
    /// It is recorded and has no effect.
    Drop,
}

impl ActivePolicy {
    /// The word in configuration, API and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Inject => "inject",
            Self::Interrupt => "interrupt",
            Self::Drop => "drop",
        }
    }

    /// What it orders the running attempt to do.
    pub const fn order(self) -> Option<IntentKind> {
        match self {
            Self::Queue | Self::Drop => None,
            Self::Inject => Some(IntentKind::Inject),
            Self::Interrupt => Some(IntentKind::Interrupt),
        }
    }
}

/// What takes the place of a policy that the running attempt's executor cannot do. It is one that every executor
/// can do, so that no fallback needs another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fallback {
    /// It waits as input of the next attempt.
    Queue,
    /// It is recorded and has no effect.
    Drop,
}

impl Fallback {
    /// The policy that holds in its place.
    pub const fn policy(self) -> ActivePolicy {
        match self {
            Self::Queue => ActivePolicy::Queue,
            Self::Drop => ActivePolicy::Drop,
        }
    }
}

/// What a route falls back to. Nothing is ever inferred: without one, an order that cannot be carried out is
/// refused by the configuration, or comes back as not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Fallbacks {
    /// When the executor cannot do what the policy orders.
    pub unsupported: Option<Fallback>,
    /// When it can, and fails at it; without one it is tried again.
    pub on_error: Option<ErrorFallback>,
}

/// What happens to a match while the selected Work has a running attempt, with what takes its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WhileActive {
    /// The policy.
    pub policy: ActivePolicy,
    /// What takes its place.
    pub fallbacks: Fallbacks,
}

impl From<ActivePolicy> for WhileActive {
    fn from(policy: ActivePolicy) -> Self {
        Self { policy, fallbacks: Fallbacks::default() }
    }
}

/// A policy that holds for one Event, with what it orders and why it is not the route's own.
struct Effective {
    policy: ActivePolicy,
    order: Option<IntentKind>,
    because: Option<(Code, String)>,
}

impl WhileActive {
    /// The policy that holds for the attempt that runs; the configured one when none does.
    // Spec: unsupported_policy_explicit_fallback
    fn effective(self, attempt: Option<&Execution>) -> Effective {
        let configured = Effective { policy: self.policy, order: None, because: None };
        let (Some(order), Some(attempt)) = (self.policy.order(), attempt) else { return configured };
        if attempt.outcome.is_some() {
            let reason =
                format!("{} had come to its end, so there was nothing to {}", attempt.id, order.as_str());
            return Effective { because: Some((Code::known("run_over"), reason)), ..configured };
        }
        let Some(fallback) = self.fallbacks.unsupported.filter(|_| !attempt.controls.allow(order)) else {
            return Effective { order: Some(order), ..configured };
        };
        let policy = fallback.policy();
        let reason = format!(
            "the executor `{}` of {} cannot {} a run, and the route falls back to {}",
            attempt.executor,
            attempt.id,
            order.as_str(),
            policy.as_str()
        );
        Effective { policy, order: None, because: Some((Code::known("fallback"), reason)) }
    }
}

/// How a Work has ended, as a route says after which ends it reopens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It completed.
    Completed,
    /// It failed for good.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl End {
    /// The end that a Work has come to; none while it lives.
    pub const fn of(state: WorkState) -> Option<Self> {
        match state {
            WorkState::Completed => Some(Self::Completed),
            WorkState::Failed => Some(Self::Failed),
            WorkState::Cancelled => Some(Self::Cancelled),
            WorkState::Ready | WorkState::Running { .. } | WorkState::Waiting { .. } => None,
        }
    }

    /// The word in configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What a handler that matched wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Match {
    /// The Work that owns these keys, created when none does; keys it lacks are attached to it.
    Attach {
        /// At least one key. The Event's own key need not be among them.
        keys: Vec<Key>,
        /// The kind of a Work that is created.
        kind: WorkKind,
        /// The lifecycle of a Work that is created.
        lifecycle: Lifecycle,
        /// What a Work that is created shares with others that must not run at the same time.
        #[serde(default)]
        concurrency: Option<ConcurrencyKey>,
        /// After which ends of the owner a successor is created. Otherwise what has ended takes nothing.
        #[serde(default)]
        reopens: Vec<End>,
    },
    /// The Work the Event is addressed to.
    Addressed,
    /// A new Work for this Event alone.
    Fresh {
        /// Its kind.
        kind: WorkKind,
        /// Its lifecycle.
        lifecycle: Lifecycle,
        /// Keys it owns, none of which may be owned yet.
        keys: Vec<Key>,
        /// What it shares with others that must not run at the same time.
        #[serde(default)]
        concurrency: Option<ConcurrencyKey>,
    },
    /// Nothing: the Event is recorded as dropped.
    Drop {
        /// Why, as a stable word.
        code: Code,
        /// Why, in words.
        reason: String,
    },
}

/// The answer of a scope's routes for one Event.
#[derive(Debug, Clone, PartialEq)]
pub enum RouteAnswer {
    /// No route matched.
    Unmatched,
    /// This route matched first; later ones were not asked.
    Matched {
        /// The route.
        route: RouteName,
        /// Its binding.
        binding: Option<BindingName>,
        /// Its policy, with what takes its place.
        active: WhileActive,
        /// What its handler wants.
        wants: Match,
    },
    /// A handler failed. Later routes were not asked, and the Event stays unrouted.
    Failed {
        /// The route whose handler failed.
        route: RouteName,
        /// A stable word.
        code: Code,
        /// In words, without payload or secret.
        reason: String,
        /// Whether another try would fail the same way.
        is_final: bool,
    },
}

/// The durable answer to "was this Event routed". It is written once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The Event's place in the order of acceptance.
    pub sequence: Sequence,
    /// The Event.
    pub event: EventId,
    /// What became of it.
    pub outcome: CheckpointOutcome,
    /// The route that matched.
    pub route: Option<RouteName>,
    /// The policy that was in effect; not the route's own where it fell back.
    pub policy: Option<ActivePolicy>,
    /// The Work it reached.
    pub work: Option<WorkId>,
    /// The configuration the decision rests on.
    pub generation: Generation,
    /// Why it had no effect, or another than its route's policy has, as a stable word.
    pub code: Option<Code>,
    /// The same in words.
    pub reason: Option<String>,
    /// When it was decided.
    pub at: Timestamp,
}

/// What became of a routed Event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CheckpointOutcome {
    /// It is input of a Work.
    Routed,
    /// No route matched it. It is kept.
    Unmatched,
    /// A policy or a handler dropped it.
    Dropped,
    /// Its Work had ended before.
    Terminal,
    /// It was set aside after repeated failure, so that its lane goes on.
    Quarantined,
}

impl CheckpointOutcome {
    /// Every outcome.
    pub const ALL: [Self; 5] =
        [Self::Routed, Self::Unmatched, Self::Dropped, Self::Terminal, Self::Quarantined];

    /// The word in API and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Routed => "routed",
            Self::Unmatched => "unmatched",
            Self::Dropped => "dropped",
            Self::Terminal => "terminal",
            Self::Quarantined => "quarantined",
        }
    }
}

/// What the transaction read that bears on one answer.
#[derive(Debug, Clone, Default)]
pub struct RouteFacts {
    /// The Work the Event is addressed to.
    pub addressed: Option<Work>,
    /// For each wanted key, in canonical order, its owner.
    pub owners: Vec<(Key, Option<WorkId>)>,
    /// The one Work that owns wanted keys, when there is exactly one owner.
    pub owner: Option<Work>,
    /// The live attempt of the selected Work; read where the policy gives orders to it.
    pub attempt: Option<Execution>,
    /// The id a created Work gets.
    pub proposed: Option<WorkId>,
    /// The line of the owner, when it has ended and the match may reopen it.
    pub line: Option<Line>,
}

/// An owner's place among its successors, and what a further one would inherit.
#[derive(Debug, Clone)]
pub struct Line {
    /// Its own place; none when it is the first.
    pub place: Option<Succession>,
    /// Its keys.
    pub keys: Vec<Key>,
}

/// What routing an Event changes, beside its checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteEffect {
    /// Nothing.
    None,
    /// The Event becomes input of a new Work.
    Create {
        /// The Work.
        work: Work,
        /// Keys it gets.
        attach: Vec<Key>,
    },
    /// The Event becomes input of a new Work that succeeds one which has ended.
    Succeed {
        /// The Work.
        work: Work,
        /// Its place in the line.
        place: Succession,
        /// Keys it gets.
        attach: Vec<Key>,
    },
    /// The Event becomes input of a Work that exists.
    Enqueue {
        /// The Work as it was read.
        work: Work,
        /// Keys it gets besides those it has.
        attach: Vec<Key>,
    },
}

/// Why an answer has no effect and the Event stays unrouted, for diagnosis and another try.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RouteRefusal {
    /// Two Works own keys that the handler would put on one.
    #[error("the keys already belong to different Works, {first} and {second}")]
    KeyConflict {
        /// One owner.
        first: WorkId,
        /// Another.
        second: WorkId,
    },
    /// A Work that was to be new would take a key that is owned.
    #[error("a key for a fresh Work already belongs to {owner}")]
    KeyOwned {
        /// The owner.
        owner: WorkId,
    },
    /// The Work lives in another scope, and a route grants no authority there.
    #[error("Work {work} is in scope `{scope}`, where this route has no authority")]
    CrossScope {
        /// The Work.
        work: WorkId,
        /// Its scope.
        scope: ScopeName,
    },
    /// The handler wants the addressed Work, and the Event names none.
    #[error("the handler matched the addressed Work, but the event is addressed to none")]
    NotAddressed,
    /// The handler selected another Work than the Event is addressed to.
    #[error("the event is addressed to {addressed}, but the handler's keys belong elsewhere")]
    Contradiction {
        /// The Work the Event names.
        addressed: WorkId,
    },
    /// The handler named no key.
    #[error("the handler matched by key but named none")]
    NoKey,
    /// A successor cannot have its keys.
    #[error(transparent)]
    KeyTooLong(#[from] TooLong),
    /// The route has no binding to run what it matched.
    #[error("the route has no binding, so it can only drop")]
    NoBinding,
}

impl RouteRefusal {
    /// Whether the Event and the configuration alone bring it about, so that another try is refused the same way.
    pub const fn is_final(&self) -> bool {
        match self {
            Self::NotAddressed | Self::NoKey | Self::NoBinding => true,
            Self::KeyConflict { .. }
            | Self::KeyOwned { .. }
            | Self::CrossScope { .. }
            | Self::Contradiction { .. }
            | Self::KeyTooLong(_) => false,
        }
    }

    /// The stable word for this refusal.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::KeyConflict { .. } => "key_conflict",
            Self::KeyOwned { .. } => "key_owned",
            Self::CrossScope { .. } => "cross_scope",
            Self::NotAddressed => "not_addressed",
            Self::Contradiction { .. } => "contradiction",
            Self::NoKey => "no_key",
            Self::KeyTooLong(_) => "key_too_long",
            Self::NoBinding => "no_binding",
        }
    }
}

/// A checkpoint's outcome with the effect that commits beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routing {
    /// What the checkpoint says.
    pub outcome: CheckpointOutcome,
    /// The Work it names.
    pub work: Option<WorkId>,
    /// The policy that holds, when one was asked.
    pub policy: Option<ActivePolicy>,
    /// What the running attempt is ordered to do.
    pub order: Option<IntentKind>,
    /// Why there is no effect, or another than the policy's, as a stable word and in words.
    pub because: Option<(Code, String)>,
    /// The effect.
    pub effect: RouteEffect,
}

impl Routing {
    fn without_effect(outcome: CheckpointOutcome, work: Option<WorkId>, code: &str, reason: String) -> Self {
        let because = Some((Code::known(code), reason));
        Self { outcome, work, policy: None, order: None, because, effect: RouteEffect::None }
    }
}

/// Keys in the one order in which every transaction looks at them, without repeats.
pub fn canonical(mut keys: Vec<Key>) -> Vec<Key> {
    keys.sort();
    keys.dedup();
    keys
}

/// What a matched route does to an Event, by the facts of the transaction.
///
/// # Errors
/// A [`RouteRefusal`] when the match contradicts ownership. Then nothing of it may be written.
pub fn route(
    event: &Event,
    wants: &Match,
    active: WhileActive,
    has_binding: bool,
    facts: &RouteFacts,
    now: Timestamp,
) -> Result<Routing, RouteRefusal> {
    let (target, attach, create) = match wants {
        Match::Drop { code, reason } => {
            let work = facts.addressed.as_ref().or(facts.owner.as_ref()).map(|work| work.id);
            return Ok(Routing::without_effect(
                CheckpointOutcome::Dropped,
                work,
                code.as_str(),
                reason.clone(),
            ));
        }
        Match::Addressed => {
            let work = facts.addressed.clone().ok_or(RouteRefusal::NotAddressed)?;
            (Some(work), Vec::new(), None)
        }
        Match::Attach { kind, lifecycle, concurrency, reopens, .. } => {
            let (target, attach) = attach(facts)?;
            if let Some(ended) = &target
                && End::of(ended.state).is_some_and(|end| reopens.contains(&end))
                && let Some(line) = &facts.line
            {
                let kind = (kind, *lifecycle, concurrency);
                return succeed(event, ended, line, kind, (has_binding, facts, now));
            }
            (target, attach, Some((kind, *lifecycle, concurrency)))
        }
        Match::Fresh { kind, lifecycle, concurrency, .. } => {
            if let Some(owner) = facts.owners.iter().find_map(|(_key, owner)| *owner) {
                return Err(RouteRefusal::KeyOwned { owner });
            }
            if let Some(addressed) = addressee(event, wants) {
                return Err(RouteRefusal::Contradiction { addressed });
            }
            let keys = facts.owners.iter().map(|(key, _owner)| key.clone()).collect();
            (None, keys, Some((kind, *lifecycle, concurrency)))
        }
    };
    if let Some(work) = target {
        let effective = active.effective(facts.attempt.as_ref());
        return existing(event, work, attach, effective, has_binding);
    }
    if !has_binding {
        return Err(RouteRefusal::NoBinding);
    }
    let kind = create.expect("only an addressed match cannot create, and it has a target");
    let work = created(event, kind, facts, now);
    Ok(Routing {
        outcome: CheckpointOutcome::Routed,
        work: Some(work.id),
        policy: None,
        order: None,
        because: None,
        effect: RouteEffect::Create { work, attach },
    })
}

/// The kind, the lifecycle and the concurrency key of a Work to create.
type Kind<'a> = (&'a WorkKind, Lifecycle, &'a Option<ConcurrencyKey>);

fn created(
    event: &Event,
    (kind, lifecycle, concurrency): Kind<'_>,
    facts: &RouteFacts,
    now: Timestamp,
) -> Work {
    let id = facts.proposed.expect("the caller proposes an id with every matched answer");
    let work = Work::create(id, event.scope.clone(), kind.clone(), lifecycle, now);
    Work { concurrency: concurrency.clone(), ..work }
}

/// A successor of a Work that has ended: it gets every key of that one in the next generation.
// Spec: ROU-20
fn succeed(
    event: &Event,
    ended: &Work,
    line: &Line,
    kind: Kind<'_>,
    (has_binding, facts, now): (bool, &RouteFacts, Timestamp),
) -> Result<Routing, RouteRefusal> {
    if ended.scope != event.scope {
        return Err(RouteRefusal::CrossScope { work: ended.id, scope: ended.scope.clone() });
    }
    if !has_binding {
        return Err(RouteRefusal::NoBinding);
    }
    let work = created(event, kind, facts, now);
    let place = Succession::after(ended.id, line.place, work.id);
    let wanted = facts.owners.iter().map(|(key, _owner)| key);
    let mut attach = Vec::with_capacity(line.keys.len());
    for key in line.keys.iter().chain(wanted) {
        attach.push(succession::qualified(key, place.generation)?);
    }
    let outcome = CheckpointOutcome::Routed;
    let effect = RouteEffect::Succeed { work, place, attach: canonical(attach) };
    Ok(Routing { outcome, work: Some(place.work), policy: None, order: None, because: None, effect })
}

/// The Work that owns the wanted keys, and the keys it lacks.
fn attach(facts: &RouteFacts) -> Result<(Option<Work>, Vec<Key>), RouteRefusal> {
    if facts.owners.is_empty() {
        return Err(RouteRefusal::NoKey);
    }
    let mut owners = facts.owners.iter().filter_map(|(_key, owner)| *owner);
    if let Some(first) = owners.next()
        && let Some(second) = owners.find(|other| *other != first)
    {
        return Err(RouteRefusal::KeyConflict { first, second });
    }
    let missing = facts.owners.iter().filter(|(_key, owner)| owner.is_none());
    let missing = missing.map(|(key, _owner)| key.clone()).collect();
    match (&facts.addressed, &facts.owner) {
        (Some(addressed), Some(owner)) if addressed.id != owner.id => {
            Err(RouteRefusal::Contradiction { addressed: addressed.id })
        }
        (Some(work), _) | (None, Some(work)) => Ok((Some(work.clone()), missing)),
        (None, None) => Ok((None, missing)),
    }
}

/// Routing to a Work that exists: it may have ended, live elsewhere, or be busy under `drop`.
fn existing(
    event: &Event,
    work: Work,
    attach: Vec<Key>,
    effective: Effective,
    has_binding: bool,
) -> Result<Routing, RouteRefusal> {
    if work.scope != event.scope {
        return Err(RouteRefusal::CrossScope { work: work.id, scope: work.scope });
    }
    if work.state.is_terminal() {
        let reason = format!("{} had ended ({})", work.id, work.state.as_str());
        let outcome = CheckpointOutcome::Terminal;
        return Ok(Routing::without_effect(outcome, Some(work.id), "terminal_work", reason));
    }
    if event.is_announcement() && event.work == Some(work.id) {
        let reason = format!("{} published it itself, and a Work is never news to itself", work.id);
        let outcome = CheckpointOutcome::Dropped;
        return Ok(Routing::without_effect(outcome, Some(work.id), "own_news", reason));
    }
    let Effective { policy, order, because } = effective;
    if policy == ActivePolicy::Drop && work.state.is_running() {
        let reason = format!("{} was running, and the route drops what arrives meanwhile", work.id);
        let outcome = CheckpointOutcome::Dropped;
        let dropped = Routing::without_effect(outcome, Some(work.id), "active_drop", reason);
        let because = because.or(dropped.because);
        return Ok(Routing { policy: Some(policy), because, ..dropped });
    }
    if !has_binding {
        return Err(RouteRefusal::NoBinding);
    }
    Ok(Routing {
        outcome: CheckpointOutcome::Routed,
        work: Some(work.id),
        policy: Some(policy),
        order: order.filter(|_order| work.state.is_running()),
        because,
        effect: RouteEffect::Enqueue { work, attach },
    })
}

#[cfg(test)]
mod tests;
