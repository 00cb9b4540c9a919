//! What an Event would do: the routing stage's own questions and rules, asked without writing anything.
//!
//! The answer is true of one moment. A later Event, another configuration or the end of a Work may change it.

use std::sync::Arc;

use domain::causal::Bounds;
use domain::delivery::{self, Delivery};
use domain::event::{Event, Key, Payload};
use domain::id::{EventId, Sequence, WorkId};
use domain::lane::{self, LaneId};
use domain::route::{ActivePolicy, CheckpointOutcome, RouteAnswer, RouteEffect};
use domain::scope::Settings;
use domain::store::{Snapshot, StoreError};
use domain::text::{BindingName, Code, HandlerName, RouteName};

use crate::accept::{self, AcceptError};
use crate::generation::{ActiveGeneration, ActiveScope};
use crate::node::Runtime;
use crate::replay;
use crate::route::Candidate;
use crate::route::apply::{self, Decided, Matched, Verdict};
use crate::route::evaluate;
use crate::wake::fact;

/// Which Event is asked about.
#[derive(Debug, Clone)]
pub enum Subject {
    /// One that was accepted, as if it were routed now.
    Accepted(EventId),
    /// One that was never sent.
    Described(Box<Delivery>),
}

/// What an Event would do.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// The Event; of a described one, the sequence is the highest there is.
    pub event: Event,
    /// The routes of its scope, in order, up to the one that decided.
    pub asked: Vec<Asked>,
    /// The route that decided, when one did.
    pub route: Option<Decider>,
    /// What would become of it.
    pub fate: Fate,
}

/// A route, and what it said.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The route.
    pub route: RouteName,
    /// Its handler.
    pub handler: HandlerName,
    /// What it takes, in one phrase for people.
    pub takes: String,
    /// What it said.
    pub answer: Answered,
}

/// What a route said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// The Event is not for it.
    NoMatch,
    /// The Event is for it, and later routes are not asked.
    Matched,
    /// Its handler failed, and later routes are not asked.
    Failed,
    /// The Event is an announcement of the runtime that it does not name.
    NotAsked,
}

/// The route that decided.
#[derive(Debug, Clone)]
pub struct Decider {
    /// The route.
    pub route: RouteName,
    /// Its binding.
    pub binding: Option<BindingName>,
    /// Its policy.
    pub policy: ActivePolicy,
}

/// What would become of an Event.
#[derive(Debug, Clone)]
pub enum Fate {
    /// No route would match it.
    Unmatched,
    /// Its scope, or a handler that answers nothing, would not route it now.
    Held {
        /// Why, as a stable word.
        code: Code,
        /// Why, in words.
        reason: String,
    },
    /// An earlier Event of the same Work or key is not routed yet and goes first.
    Waits {
        /// That Event.
        earlier: Sequence,
    },
    /// A handler would fail, and be asked again unless that is final.
    Failed {
        /// Why, as a stable word.
        code: Code,
        /// Why, in words.
        reason: String,
        /// Whether it would be set aside without another try.
        is_final: bool,
    },
    /// What its route wants contradicts what belongs to whom. It would be tried again unless that is final.
    Refused {
        /// Why, as a stable word.
        code: Code,
        /// Why, in words.
        reason: String,
        /// Whether it would be set aside without another try.
        is_final: bool,
    },
    /// It would get this checkpoint.
    Decided {
        /// What the checkpoint would say.
        outcome: CheckpointOutcome,
        /// The Work it would reach, or that it would make.
        work: Option<WorkId>,
        /// Whether it would make that Work.
        creates: bool,
        /// Keys that the Work would get.
        keys: Vec<Key>,
        /// Why there would be no effect, as a stable word and in words.
        because: Option<(Code, String)>,
    },
}

impl Fate {
    /// The word in API and pages.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Unmatched => CheckpointOutcome::Unmatched.as_str(),
            Self::Held { .. } => "held",
            Self::Waits { .. } => "waits",
            Self::Failed { .. } => "failed",
            Self::Refused { .. } => "refused",
            Self::Decided { outcome, .. } => outcome.as_str(),
        }
    }
}

impl Runtime {
    /// Says what an Event would do under a configuration, without any effect. None when there is no such Event.
    ///
    /// # Errors
    /// [`AcceptError`] when a described Event would not be accepted, or the store fails.
    pub async fn explain(
        &self,
        active: &Arc<ActiveGeneration>,
        subject: Subject,
    ) -> Result<Option<Explanation>, AcceptError> {
        if let Subject::Described(delivery) = &subject
            && active.scope(&delivery.scope).is_none()
        {
            return Err(AcceptError::UnknownScope(delivery.scope.clone()));
        }
        let proposed = self.store().ids(|maker, now| (maker.work(now), maker.event(now)));
        let bounds = match &subject {
            Subject::Described(delivery) => active.bounds(&delivery.scope),
            // What is accepted has its own.
            Subject::Accepted(_) => Bounds::of(&Settings::default()),
        };
        let candidate =
            self.store().read("explain", move |tx| candidate(tx, subject, bounds, proposed)).await?;
        let Some(candidate) = candidate else { return Ok(None) };
        let item = evaluate::evaluate(self, active, candidate).await.item().await;
        let event = item.candidate.event.clone();
        let scope = active.scope(&event.scope);
        let decision = match item.verdict {
            Verdict::Held { code } => {
                let reason = format!("scope `{}` does not route now", event.scope);
                let fate = Fate::Held { code, reason };
                return Ok(Some(Explanation { event, asked: Vec::new(), route: None, fate }));
            }
            Verdict::Decided(decision) => decision,
        };
        let asked = |decided: Option<(&RouteName, Answered)>| {
            scope.map_or_else(Vec::new, |scope| asked(scope, &event, decided))
        };
        Ok(Some(match decision.answer {
            RouteAnswer::Unmatched => {
                let asked = asked(None);
                let candidate = item.candidate;
                let fate = self.store().read("explain", move |tx| unmatched(tx, &candidate)).await?;
                Explanation { asked, route: None, fate, event }
            }
            RouteAnswer::Failed { route, code, reason, is_final } => {
                let asked = asked(Some((&route, Answered::Failed)));
                let counts = lane::counts(&code);
                let fate = if counts {
                    Fate::Failed { code, reason, is_final }
                } else {
                    Fate::Held { code, reason }
                };
                Explanation { asked, route: None, fate, event }
            }
            RouteAnswer::Matched { route, binding, active, wants } => {
                let asked = asked(Some((&route, Answered::Matched)));
                let decider =
                    Decider { route: route.clone(), binding: binding.clone(), policy: active.policy };
                let matched = Matched { route, binding, active, wants };
                let candidate = item.candidate;
                let fate = self.store().read("explain", move |tx| fate(tx, &candidate, &matched)).await?;
                Explanation { asked, route: Some(decider), fate, event }
            }
        }))
    }
}

fn candidate(
    tx: &mut dyn Snapshot,
    subject: Subject,
    bounds: Bounds,
    (proposed, woken): (WorkId, EventId),
) -> Result<Option<Candidate>, AcceptError> {
    let (event, payload) = match subject {
        Subject::Described(delivery) => {
            let facts = accept::facts(tx, &delivery, bounds)?;
            // Whatever waits to be routed was accepted before it.
            let sequence = Sequence::from_number(i64::MAX);
            (delivery::admit(&delivery, &facts, sequence, tx.now())?, delivery.payload)
        }
        Subject::Accepted(id) => {
            let Some(event) = tx.event(id)? else { return Ok(None) };
            let payload = tx.payload(event.sequence)?.unwrap_or_else(Payload::null);
            (replay::seen(tx, event)?, payload)
        }
    };
    let work = apply::work_of(tx, &event)?;
    let lane = LaneId::of_event(&event);
    Ok(Some(Candidate { event, payload, lane, work, proposed, woken }))
}

/// What becomes of an Event that no route matches: a Work may wait for it.
fn unmatched(tx: &mut dyn Snapshot, candidate: &Candidate) -> Result<Fate, StoreError> {
    let Some(wait) = fact::waited_for(tx, &candidate.event)? else { return Ok(Fate::Unmatched) };
    let because = Some((Code::known(fact::WAITED_FOR), fact::waited_for_in_words()));
    let (outcome, work) = (CheckpointOutcome::Routed, Some(wait.work));
    Ok(Fate::Decided { outcome, work, creates: false, keys: Vec::new(), because })
}

fn fate(tx: &mut dyn Snapshot, candidate: &Candidate, matched: &Matched) -> Result<Fate, StoreError> {
    Ok(match apply::decide(tx, candidate, matched)? {
        Decided::Earlier(earlier) => Fate::Waits { earlier },
        Decided::Refused(refusal) => {
            let (code, reason) = (Code::known(refusal.code()), refusal.to_string());
            Fate::Refused { code, reason, is_final: refusal.is_final() }
        }
        Decided::Routing(routing) => {
            let (creates, keys) = match routing.effect {
                RouteEffect::None => (false, Vec::new()),
                RouteEffect::Create { attach, .. } | RouteEffect::Succeed { attach, .. } => (true, attach),
                RouteEffect::Enqueue { attach, .. } => (false, attach),
            };
            let (outcome, work, because) = (routing.outcome, routing.work, routing.because);
            Fate::Decided { outcome, work, creates, keys, because }
        }
    })
}

/// The routes up to the one that decided: those before it did not match, or were not asked.
fn asked(scope: &ActiveScope, event: &Event, decided: Option<(&RouteName, Answered)>) -> Vec<Asked> {
    let announced = event.event_type.is_core();
    let mut asked = Vec::new();
    for active in &scope.routes {
        let own = decided.filter(|(route, _answer)| **route == active.route.name);
        let answer = match own {
            Some((_route, answer)) => answer,
            None if announced && !active.prepared.takes_announcement(&event.event_type) => Answered::NotAsked,
            None => Answered::NoMatch,
        };
        asked.push(Asked {
            route: active.route.name.clone(),
            handler: active.route.handler.clone(),
            takes: active.prepared.describe(),
            answer,
        });
        if own.is_some() {
            break;
        }
    }
    asked
}
