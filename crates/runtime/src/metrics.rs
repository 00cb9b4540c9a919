//! Every metric: its name, its labels, its meaning.

use std::fmt;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// A label whose values are a fixed few words.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Outcome {
    /// The word.
    pub outcome: &'static str,
}

/// Counters since the process started. Clones share them.
#[derive(Clone, Default)]
pub struct Metrics {
    /// Deliveries that became Events.
    pub accepted: Counter,
    /// Deliveries that had been accepted before.
    pub duplicates: Counter,
    /// Events routed, by what became of them.
    pub routed: Family<Outcome, Counter>,
    /// Attempts to route that failed and will be made again.
    pub route_failures: Counter,
    /// Attempts claimed.
    pub claimed: Counter,
    /// Attempts that ended, by how.
    pub ended: Family<Outcome, Counter>,
    /// Reports that came without authority and had no effect.
    pub stale: Counter,
    /// Attempts claimed again because their lease was over.
    pub recovered: Counter,
    /// What recovery did, by what it found.
    pub recoveries: Family<Outcome, Counter>,
    /// Orders to running attempts, by what came of them.
    pub orders: Family<Outcome, Counter>,
    /// Timers that became Events.
    pub timers_fired: Counter,
    /// Events that the bounds of their chain refused.
    pub causal_refusals: Counter,
    /// Works held because a budget is used up.
    pub budget_holds: Counter,
    /// Starts put off because other runs have reserved what is left of a budget.
    pub budget_deferrals: Counter,
    /// Warning thresholds and limits that ledgers came to.
    pub budget_crossings: Counter,
    /// Results that said that the account of their credential is used up.
    pub usage_limits: Counter,
    /// Runs whose content was removed.
    pub content_released: Counter,
    /// Leases renewed.
    pub renewed: Counter,
    /// Leases found lost at renewal.
    pub lost: Counter,
}

impl Metrics {
    /// Registers every metric under its public name.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("open_conduit");
        let counters = [
            ("events_accepted", "Deliveries that became Events", &self.accepted),
            ("deliveries_duplicate", "Deliveries that had been accepted before", &self.duplicates),
            ("route_failures", "Attempts to route that failed and will be made again", &self.route_failures),
            ("runs_claimed", "Attempts claimed", &self.claimed),
            ("reports_stale", "Reports that came without authority and had no effect", &self.stale),
            ("runs_recovered", "Attempts claimed again because their lease was over", &self.recovered),
            ("timers_fired", "Timers that became Events", &self.timers_fired),
            ("causal_refusals", "Timers whose Event the bounds of its chain refused", &self.causal_refusals),
            ("budget_holds", "Works held because a budget is used up", &self.budget_holds),
            ("budget_deferrals", "Starts put off by what other runs have reserved", &self.budget_deferrals),
            ("budget_crossings", "Warning thresholds and limits that were reached", &self.budget_crossings),
            ("usage_limits", "Runs that met the usage limit of their credential", &self.usage_limits),
            ("content_released", "Runs whose log, artifacts and input were removed", &self.content_released),
            ("leases_renewed", "Leases renewed", &self.renewed),
            ("leases_lost", "Leases found lost at renewal", &self.lost),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        registry.register("events_routed", "Events routed, by what became of them", self.routed.clone());
        registry.register("runs_ended", "Attempts that ended, by how", self.ended.clone());
        let orders = "Orders to running attempts, by what came of them";
        registry.register("orders", orders, self.orders.clone());
        registry.register("recoveries", "What recovery did, by what it found", self.recoveries.clone());
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// Adds one to a word's counter.
pub(crate) fn count(family: &Family<Outcome, Counter>, outcome: &'static str) {
    family.get_or_create(&Outcome { outcome }).inc();
}
