//! Whether every route's executor can do what the route's policy orders of it.
//!
//! It is asked of what scopes resolve to: a route that is inherited runs the binding of that name in its own scope.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::scope::{EffectiveScope, Route};
use domain::text::ScopeName;
use extension::Executor;

use super::model::Model;
use super::problem::Problem;
use super::registry::Registered;

/// Every route that orders of a run what its binding's executor cannot do, and has no fallback.
// Spec: unsupported_policy_explicit_fallback
pub(crate) fn check(
    model: &Model,
    scopes: &BTreeMap<ScopeName, Arc<EffectiveScope>>,
    registry: &dyn Registered,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, declared) in model.scopes.iter().enumerate() {
        let Some(scope) = scopes.values().find(|scope| scope.name.as_str() == declared.name) else {
            continue;
        };
        for route in &scope.routes {
            let Some(message) = problem(scope, route, registry.executors()) else { continue };
            let own = declared.routes.iter().position(|own| !own.disabled && own.name == route.name.as_str());
            let at = match own.filter(|_own| route.declared_in == scope.name) {
                Some(at) => format!("scopes[{index}].routes[{at}].active_policy"),
                None => format!("scopes[{index}].routes"),
            };
            problems.push(Problem::new(at, "unsupported_policy", message));
        }
    }
    problems
}

fn problem(scope: &EffectiveScope, route: &Route, executors: &[Arc<dyn Executor>]) -> Option<String> {
    let order = route.active_policy.order()?;
    if route.fallbacks.unsupported.is_some() {
        return None;
    }
    let (name, word) = (&route.name, order.as_str());
    let Some(binding) = route.binding.as_ref().and_then(|binding| scope.bindings.get(binding)) else {
        return Some(format!("route `{name}` runs nothing that it could {word}; give it a `binding`"));
    };
    let executor = executors.iter().find(|known| known.name() == binding.executor)?;
    if executor.capabilities().controls.allow(order) {
        return None;
    }
    let able = executors.iter().filter(|other| other.capabilities().controls.allow(order));
    let able: Vec<String> = able.map(|other| format!("`{}`", other.name())).collect();
    let others =
        if able.is_empty() { String::new() } else { format!("; those that can: {}", able.join(", ")) };
    Some(format!(
        "the executor `{}` of binding `{}`, which route `{name}` runs, cannot {word} a run; set `fallback` to `queue` or \
         `drop`, or use the policy `queue`{others}",
        binding.executor, binding.name
    ))
}
