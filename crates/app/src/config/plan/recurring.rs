//! Which parts of entries an apply makes due at once, such as an interval that is new or was edited.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{ChangeKind, Plan};
use crate::config::model::Model;
use crate::config::problem::is_showable;
use crate::config::registry::{Registered, ingress_entry};

/// A part that is due as soon as it is armed, with what its timer is made of.
type Parts = BTreeMap<(String, String, String), Option<Value>>;

/// Adds a sentence for each part whose timer an apply makes anew and that is due at once.
pub(super) fn due_at_once(plan: &mut Plan, before: &Model, after: &Model, registry: &dyn Registered) {
    let known = parts(before, registry);
    for (key, wanted) in parts(after, registry) {
        let (scope, entry, name) = &key;
        if known.get(&key) == Some(&wanted) || !is_showable(name) {
            continue;
        }
        let sentence = format!("scope `{scope}`: `{name}` of entry `{entry}` is due at once");
        plan.add(format!("scopes.{scope}.extensions.{entry}"), ChangeKind::Changed, sentence);
    }
}

fn parts(model: &Model, registry: &dyn Registered) -> Parts {
    let mut parts = Parts::new();
    for scope in model.scopes.iter().filter(|scope| !scope.disabled) {
        for entry in scope.extensions.iter().filter(|entry| !entry.disabled) {
            let kind = entry.kind.as_deref().unwrap_or_default();
            let recurrence = registry.recurrences().iter().find(|known| known.entry_type() == kind);
            let declared = recurrence.zip(ingress_entry(scope, entry));
            let declared = declared.and_then(|(recurrence, asked)| recurrence.prepare(&asked).ok());
            for part in declared.into_iter().flat_map(|declared| declared.parts) {
                if part.starts_at_once {
                    parts.insert((scope.name.clone(), entry.name.clone(), part.name), part.wanted);
                }
            }
        }
    }
    parts
}
