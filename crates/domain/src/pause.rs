//! Pauses: an operator's word that a scope starts nothing, until the operator takes it back.
//!
//! A pause is no configuration: it is kept beside it, survives restarts and applies, and holds for every scope
//! that descends from the paused one. Everything but starts goes on. What runs ends, Events are accepted and
//! routed, input queues, timers fire and Waits end; what they make ready waits for the scope.

use std::collections::BTreeSet;

use crate::text::ScopeName;
use crate::time::Timestamp;

/// A scope that an operator has paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// The scope. It need not be in the configuration in force.
    pub scope: ScopeName,
    /// Since when.
    pub since: Timestamp,
}

/// The scope that pauses another one: the first of its `lineage`, root first and itself last, that is paused.
// Spec: ROU-22
pub fn paused_by<'l>(lineage: &'l [ScopeName], paused: &BTreeSet<ScopeName>) -> Option<&'l ScopeName> {
    lineage.iter().find(|scope| paused.contains(*scope))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::paused_by;
    use crate::text::ScopeName;

    #[test]
    fn paused_by_is_the_scope_itself_or_any_above_it() {
        let [root, team, eng, other] = ["root", "team", "eng", "other"].map(ScopeName::known);
        let lineage = [root.clone(), team.clone(), eng.clone()];
        let by = |paused: &[&ScopeName]| {
            let paused: BTreeSet<ScopeName> = paused.iter().copied().cloned().collect();
            paused_by(&lineage, &paused).cloned()
        };
        assert_eq!(by(&[]), None);
        assert_eq!(by(&[&other]), None, "what stands beside it pauses nothing");
        assert_eq!(by(&[&eng]), Some(eng.clone()));
        assert_eq!(by(&[&eng, &root]), Some(root), "the one furthest up is named: it has to go first");
    }
}
