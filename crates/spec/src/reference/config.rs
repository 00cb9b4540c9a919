//! Configurations: from what scopes declare to what holds in each.

use std::collections::{BTreeMap, BTreeSet};

use domain::text::{BindingName, EventType, RouteName, ScopeName};

use super::{Fault, Reference, Refusal};
use crate::driver::{Answer, BindingText, Capability, RouteText, ScopeText};

/// What a policy does to an Event while the Work runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    Queue,
    Inject,
    Interrupt,
    Drop,
}

impl Policy {
    fn parse(word: &str) -> Option<Self> {
        [Self::Queue, Self::Inject, Self::Interrupt, Self::Drop]
            .into_iter()
            .find(|known| known.word() == word)
    }

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Inject => "inject",
            Self::Interrupt => "interrupt",
            Self::Drop => "drop",
        }
    }

    /// What an executor has to be able to do for it.
    const fn needs(self) -> Option<Capability> {
        match self {
            Self::Queue | Self::Drop => None,
            Self::Inject => Some(Capability::Inject),
            Self::Interrupt => Some(Capability::Interrupt),
        }
    }
}

/// A route that holds in a scope.
#[derive(Debug, Clone)]
pub(super) struct Route {
    pub(super) name: RouteName,
    pub(super) takes: Vec<EventType>,
    pub(super) drops: bool,
    pub(super) binding: BindingName,
    /// The policy in effect.
    pub(super) policy: Policy,
    /// Whether that is the fallback of what the route says.
    pub(super) fell_back: bool,
}

/// What holds in a scope.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    pub(super) text: ScopeText,
    pub(super) routes: Vec<Route>,
    pub(super) bindings: BTreeMap<BindingName, BindingText>,
}

impl Reference {
    pub(super) fn configure(&mut self, texts: &[ScopeText]) -> Result<Answer, Refusal> {
        let mut scopes = BTreeMap::new();
        for text in texts {
            let names: BTreeSet<&RouteName> = text.routes.iter().map(|route| &route.name).collect();
            if names.len() < text.routes.len() {
                return Err("duplicate_name");
            }
            let mut routes: Vec<RouteText> = Vec::new();
            let mut bindings = BTreeMap::new();
            for declared in lineage(texts, &text.name)? {
                for route in &declared.routes {
                    match routes.iter().position(|held| held.name == route.name) {
                        Some(slot) if self.breaks(Fault::OverridesAreAppended) => {
                            routes.remove(slot);
                            routes.push(route.clone());
                        }
                        Some(slot) => routes[slot] = route.clone(),
                        None => routes.push(route.clone()),
                    }
                }
                for binding in &declared.bindings {
                    bindings.insert(binding.name.clone(), binding.clone());
                }
            }
            let routes = routes.iter().map(|route| self.bind(route, &bindings)).collect::<Result<_, _>>()?;
            scopes.insert(text.name.clone(), Scope { text: text.clone(), routes, bindings });
        }
        self.scopes = scopes;
        self.generation += 1;
        Ok(Answer::Done)
    }

    /// A route with its policy, which the binding can do, or which says what to do instead.
    fn bind(
        &self,
        route: &RouteText,
        bindings: &BTreeMap<BindingName, BindingText>,
    ) -> Result<Route, Refusal> {
        let wanted = Policy::parse(&route.policy).ok_or("unknown_policy")?;
        let binding = bindings.get(&route.binding).ok_or("unknown_binding")?;
        let can = |policy: Policy| policy.needs().is_none_or(|needed| binding.can.contains(&needed));
        let fallback = match &route.fallback {
            None => None,
            Some(word) => {
                let fallback = Policy::parse(word).ok_or("unknown_policy")?;
                // Only what every executor can do ends the search.
                if fallback.needs().is_some() {
                    return Err("unsupported_policy");
                }
                Some(fallback)
            }
        };
        let policy = match (can(wanted), fallback) {
            (true, _) => wanted,
            (false, Some(fallback)) => fallback,
            (false, None) if self.breaks(Fault::QueueIsInferred) => Policy::Queue,
            (false, None) => return Err("unsupported_policy"),
        };
        Ok(Route {
            name: route.name.clone(),
            takes: route.takes.clone(),
            drops: route.drops,
            binding: route.binding.clone(),
            policy,
            fell_back: policy != wanted,
        })
    }
}

/// A scope and those above it, the root first.
fn lineage<'a>(texts: &'a [ScopeText], name: &ScopeName) -> Result<Vec<&'a ScopeText>, Refusal> {
    let mut lineage = Vec::new();
    let mut next = Some(name);
    while let Some(name) = next {
        let text = texts.iter().find(|text| text.name == *name).ok_or("unknown_parent")?;
        if lineage.len() > texts.len() {
            return Err("parent_cycle");
        }
        lineage.push(text);
        next = text.parent.as_ref();
    }
    lineage.reverse();
    Ok(lineage)
}
