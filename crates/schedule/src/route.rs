//! The `schedule` route: which jobs and which triggers it takes, and the Work they lead to.
//!
//! | key of the configuration | meaning |
//! | --- | --- |
//! | `jobs` | the names of the jobs it takes; without it, every job of every `schedule` entry in the scope |
//! | `triggers` | what may have started them: `timer`, `webhook`, `event`, `manual`; without it, anything |
//!
//! One route for each binding gives each job its own command. A job has one standing Work, of kind `schedule.job`.

use extension::table::Table;
use extension::{ConfigProblem, EventType, Key, Lifecycle, Match, SourceName, WorkKind};
use serde_json::Value;

use crate::job::{Entry, JobName, WORK_KIND};
use crate::trigger::TriggerKind;

/// The name of the handler.
pub const HANDLER: &str = "schedule";
/// How unlike a name may be to be offered for an unknown one: 0 is nothing in common, 1 the same.
const LIKENESS_MIN: f64 = 0.6;

/// What a route takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RouteRule {
    /// These jobs; none means every one.
    pub jobs: Vec<JobName>,
    /// These triggers; none means every one.
    pub triggers: Vec<TriggerKind>,
}

impl RouteRule {
    /// Reads a route's own configuration.
    ///
    /// # Errors
    /// Every problem, each with its path.
    pub fn read(config: &Value) -> Result<Self, Vec<ConfigProblem>> {
        let mut problems = Vec::new();
        let table = Table::root(config, &["jobs", "triggers"], &mut problems);
        let mut rule = Self::default();
        for (path, text) in table.texts("jobs", &mut problems) {
            match JobName::new(text) {
                Ok(name) => rule.jobs.push(name),
                Err(error) => problems.push(ConfigProblem::at(path, error.to_string())),
            }
        }
        for (path, text) in table.texts("triggers", &mut problems) {
            if let Some(kind) = TriggerKind::ALL.iter().find(|kind| kind.as_str() == text) {
                rule.triggers.push(*kind);
            } else {
                let all: Vec<&str> = TriggerKind::ALL.iter().map(|kind| kind.as_str()).collect();
                problems.push(ConfigProblem::at(path, format!("must be one of `{}`", all.join("`, `"))));
            }
        }
        if problems.is_empty() { Ok(rule) } else { Err(problems) }
    }

    /// The jobs it names that no entry of its scope has, each with the nearest that one has.
    pub fn unknown_jobs(&self, entries: &[&Entry]) -> Vec<ConfigProblem> {
        let known: Vec<&str> =
            entries.iter().flat_map(|entry| &entry.jobs).map(|job| job.name.as_str()).collect();
        let mut problems = Vec::new();
        for (index, name) in self.jobs.iter().enumerate() {
            if known.contains(&name.as_str()) {
                continue;
            }
            let likeness = |known: &str| strsim::jaro_winkler(name.as_str(), known);
            let nearest = known
                .iter()
                .filter(|known| likeness(known) >= LIKENESS_MIN)
                .max_by(|left, right| likeness(left).total_cmp(&likeness(right)));
            let hint = nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default();
            let message = format!("is no job of a `schedule` entry in this scope{hint}");
            problems.push(ConfigProblem::at(format!("jobs[{index}]"), message));
        }
        problems
    }

    /// Whether it takes a trigger of a job.
    pub fn takes(&self, job: &JobName, kind: TriggerKind) -> bool {
        (self.jobs.is_empty() || self.jobs.contains(job))
            && (self.triggers.is_empty() || self.triggers.contains(&kind))
    }

    /// What it makes of an Event, given the `schedule` entries of the Event's scope. A key of a job that is there no
    /// longer matches nothing, so a late trigger never runs.
    pub fn wants(
        &self,
        entries: &[&Entry],
        event_type: &EventType,
        source: &SourceName,
        key: Option<&Key>,
    ) -> Option<Match> {
        let key = key?;
        let name = JobName::of_key(key)?;
        let entry = entries.iter().find(|entry| entry.namespace == key.source)?;
        let job = entry.job(&name)?;
        let kind = TriggerKind::of(event_type, source, &entry.namespace)?;
        self.takes(&job.name, kind).then(|| Match::Attach {
            keys: vec![key.clone()],
            kind: WorkKind::known(WORK_KIND),
            lifecycle: Lifecycle::Standing,
            concurrency: None,
            reopens: Vec::new(),
        })
    }
}

/// Which input of a batch a run is for: the newest delivery, else the earliest request. The batch is in order of
/// acceptance, and all of it is consumed by the one run, so nothing is dropped and one run at most is pending.
pub fn select(batch: &[TriggerKind]) -> usize {
    batch.iter().rposition(|kind| kind.is_delivery()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use extension::{EventType, ExternalId, Key, Match, ScopeName, SourceName};
    use serde_json::json;

    use super::{RouteRule, select};
    use crate::job::{Entry, JobName};
    use crate::trigger::TriggerKind::{self, Event, Manual, Timer, Webhook};

    fn entry() -> Entry {
        let config =
            json!({ "namespace": "schedule/t", "jobs": [{ "name": "report" }, { "name": "backup" }] });
        Entry::read(&config, &ScopeName::known("t"), &[]).unwrap()
    }

    fn wants(config: &serde_json::Value, event_type: &str, source: &str, key: (&str, &str)) -> Option<Match> {
        let key = Key { source: SourceName::known(key.0), external_id: ExternalId::known(key.1) };
        let rule = RouteRule::read(config).unwrap();
        rule.wants(&[&entry()], &EventType::known(event_type), &SourceName::known(source), Some(&key))
    }

    const REPORT: (&str, &str) = ("schedule/t", "job/report");

    #[test]
    fn a_trigger_leads_to_the_standing_work_of_its_job() {
        let Some(Match::Attach { keys, kind, lifecycle, .. }) =
            wants(&json!({}), "schedule.slot", "schedule/t", REPORT)
        else {
            panic!("it matches");
        };
        assert_eq!(keys[0].external_id.as_str(), "job/report");
        assert_eq!((kind.as_str(), lifecycle), ("schedule.job", extension::Lifecycle::Standing));
    }

    #[test]
    fn a_route_takes_the_jobs_and_triggers_it_names() {
        let narrow = || json!({ "jobs": ["report"], "triggers": ["timer", "manual"] });
        assert!(wants(&narrow(), "schedule.slot", "schedule/t", REPORT).is_some());
        assert!(wants(&narrow(), "schedule.run", "core.manual", REPORT).is_some());
        assert!(wants(&narrow(), "schedule.webhook", "schedule/t", REPORT).is_none());
        assert!(wants(&narrow(), "schedule.slot", "schedule/t", ("schedule/t", "job/backup")).is_none());
        assert!(wants(&json!({}), "schedule.event", "schedule/t", ("schedule/t", "job/backup")).is_some());
    }

    #[test]
    fn what_starts_no_job_matches_nothing() {
        for (event_type, source, key) in [
            ("schedule.slot", "schedule/t", ("schedule/t", "job/removed")),
            ("schedule.slot", "schedule/t", ("schedule/other", "job/report")),
            ("schedule.slot", "schedule/other", REPORT),
            ("schedule.slot", "schedule/t", ("schedule/t", "report")),
            ("schedule.run.completed", "schedule/t", REPORT),
            ("core.retry.due", "core.manual", REPORT),
        ] {
            assert!(wants(&json!({}), event_type, source, key).is_none(), "{event_type} {source} {key:?}");
        }
        let rule = RouteRule::default();
        let slot = EventType::known("schedule.slot");
        assert!(rule.wants(&[&entry()], &slot, &SourceName::known("schedule/t"), None).is_none());
    }

    #[test]
    fn a_route_that_is_wrong_says_all_of_it() {
        let config = json!({ "jobs": ["Report"], "triggers": ["timers", "webhook"], "job": 1 });
        let problems = RouteRule::read(&config).unwrap_err();
        let paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(paths, ["job", "jobs[0]", "triggers[0]"]);
        let rule = RouteRule { jobs: vec![JobName::new("reprot").unwrap()], triggers: Vec::new() };
        let unknown = rule.unknown_jobs(&[&entry()]);
        assert!(unknown[0].to_string().ends_with("did you mean `report`?"), "{unknown:?}");
    }

    #[test]
    fn the_newest_delivery_is_what_a_run_is_for_else_the_earliest_request() {
        let check = |batch: &[TriggerKind], expected| assert_eq!(select(batch), expected, "{batch:?}");
        check(&[Timer], 0);
        check(&[Timer, Timer, Manual], 0);
        check(&[Manual, Timer], 0);
        check(&[Timer, Webhook, Timer], 1);
        check(&[Event, Webhook, Event, Manual, Timer], 2);
        check(&[Webhook, Timer], 0);
    }

    #[test]
    fn s21_the_last_of_three_pushes_is_what_the_one_pending_run_is_for() {
        assert_eq!(select(&[Event, Event, Event]), 2);
    }

    #[test]
    fn s23_a_webhook_wins_over_the_timer_and_the_hand_that_waited_before() {
        assert_eq!(select(&[Timer, Manual, Webhook]), 2);
    }
}
