//! `schedule` as an extension: its entries, its routes, and which trigger a run is for.
//!
//! It gives the rules of this crate the form in which a runtime asks for them. What a timer keeps is a [`Stored`].

use extension::{
    Armed, BoxFuture, ConfigProblem, Ensured, EntryView, EventType, Handler, HandlerError, HandlerName,
    IngressEntry, Key, Match, Passed, PreparedRoute, Publication, Recurrence, RecurrenceError, Recurrences,
    Recurring, RouteInput, Timestamp, TriggerChoice, TriggerView, WorkKind,
};
use serde_json::Value;

use crate::firing::{self, Firing, Missed, ScopeState, Stored, Wanted};
use crate::job::{ENTRY_TYPE, Entry, Job, JobName, WORK_KIND};
use crate::route::{self, HANDLER, RouteRule};
use crate::timing::Timing;
use crate::trigger::{self, Occurrence, SLOT, Trigger, TriggerKind};

/// The entries of type `schedule`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Schedules;

impl Recurrence for Schedules {
    fn entry_type(&self) -> &str {
        ENTRY_TYPE
    }

    fn prepare(&self, entry: &IngressEntry) -> Result<Recurrences, Vec<ConfigProblem>> {
        let read = Entry::read(&entry.config, &entry.scope, &entry.secret_names)?;
        let unheard = read.jobs.iter().enumerate().filter(|(_index, job)| is_started_otherwise(job));
        let problems: Vec<ConfigProblem> = unheard
            .map(|(index, _job)| {
                let message = "starts nothing in this version; give the job a time, or start it by hand";
                ConfigProblem::at(format!("jobs[{index}].on"), message)
            })
            .collect();
        if !problems.is_empty() {
            return Err(problems);
        }
        let parts = read.jobs.iter().map(|job| part(job, &read)).collect();
        Ok(Recurrences { namespace: read.namespace, parts })
    }

    fn ensure(
        &self,
        armed: Option<&Armed>,
        wanted: Option<&Value>,
        now: Timestamp,
    ) -> Result<Ensured, RecurrenceError> {
        let armed = armed.map(read).transpose()?;
        let wanted = wanted.map(stored).transpose()?;
        let wanted = wanted.as_ref().map_or(Wanted::Nothing, |it| Wanted::Timed(&it.timing, it.catch_up));
        Ok(match firing::ensure(armed.as_ref(), wanted, now) {
            firing::Ensured::Keep => Ensured::Keep,
            firing::Ensured::Arm(armed, _reason) => Ensured::Arm(written(&armed)),
            firing::Ensured::Disarm => Ensured::Disarm,
        })
    }

    fn fire(&self, key: &Key, armed: &Armed, now: Timestamp) -> Result<extension::Firing, RecurrenceError> {
        let job = JobName::of_key(key);
        let job = job.ok_or_else(|| RecurrenceError("the timer's key is no job's".to_owned()))?;
        let armed = read(armed)?;
        let fired = match firing::fire(&armed, ScopeState::Enabled, now) {
            Firing::Fires(fired) => fired,
            Firing::Rests => return Err(RecurrenceError("the timer is not due".to_owned())),
        };
        let timing = &armed.stored.timing;
        Ok(extension::Firing {
            publishes: fired.publishes.as_ref().map(|occurrence| publication(&job, timing, occurrence)),
            missed: fired.missed.iter().map(passed).collect(),
            rearmed: fired.rearmed.as_ref().map(written),
            valid_until: fired.valid_until,
        })
    }
}

fn is_started_otherwise(job: &Job) -> bool {
    !job.on.events.is_empty() || job.on.webhook
}

fn part(job: &Job, entry: &Entry) -> Recurring {
    let wanted = job.timing.clone().map(|timing| state(&Stored::new(timing, job.catch_up)));
    Recurring {
        name: job.name.to_string(),
        key: job.name.key(&entry.namespace),
        wanted,
        describe: job.to_string(),
        starts_at_once: matches!(job.timing, Some(Timing::Every(_))),
    }
}

fn state(stored: &Stored) -> Value {
    serde_json::to_value(stored).expect("a struct of plain values is JSON")
}

fn stored(state: &Value) -> Result<Stored, RecurrenceError> {
    let read = serde_json::from_value(state.clone());
    read.map_err(|_source| RecurrenceError("what is kept with the timer cannot be read".to_owned()))
}

fn read(armed: &Armed) -> Result<firing::Armed, RecurrenceError> {
    Ok(firing::Armed { stored: stored(&armed.state)?, due_at: armed.due_at })
}

fn written(armed: &firing::Armed) -> Armed {
    Armed { state: state(&armed.stored), due_at: armed.due_at }
}

fn publication(job: &JobName, timing: &Timing, occurrence: &Occurrence) -> Publication {
    let trigger = Trigger::slot(job, timing, occurrence);
    Publication {
        delivery_id: trigger::slot_delivery(job, occurrence.at),
        event_type: EventType::known(SLOT),
        occurred_at: occurrence.at,
        label: trigger.label.clone(),
        payload: serde_json::to_value(trigger).expect("a struct of plain values is JSON"),
    }
}

fn passed(missed: &Missed) -> Passed {
    let words = |occurrence: &Occurrence| match &occurrence.name {
        Some(name) => name.to_string(),
        None => occurrence.at.to_string(),
    };
    Passed {
        reason: missed.reason.as_str().to_owned(),
        first: words(&missed.first),
        last: words(&missed.last),
        count: missed.count,
    }
}

/// The routes of handler `schedule`.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScheduleRoutes;

impl Handler for ScheduleRoutes {
    fn name(&self) -> HandlerName {
        HandlerName::known(HANDLER)
    }

    fn prepare(&self, config: &Value) -> Result<Box<dyn PreparedRoute>, Vec<ConfigProblem>> {
        self.prepare_in(config, &[])
    }

    fn prepare_in(
        &self,
        config: &Value,
        entries: &[EntryView],
    ) -> Result<Box<dyn PreparedRoute>, Vec<ConfigProblem>> {
        let rule = RouteRule::read(config)?;
        let ours = entries.iter().filter(|view| view.entry_type == ENTRY_TYPE).map(|view| &view.entry);
        // An entry that is wrong is told of by itself.
        let read =
            ours.filter_map(|entry| Entry::read(&entry.config, &entry.scope, &entry.secret_names).ok());
        Ok(Box::new(Prepared { rule, entries: read.collect() }))
    }
}

/// A route with the entries of the scope that it is asked in.
#[derive(Debug)]
struct Prepared {
    rule: RouteRule,
    entries: Vec<Entry>,
}

impl PreparedRoute for Prepared {
    fn describe(&self) -> String {
        let jobs: Vec<&str> = self.rule.jobs.iter().map(JobName::as_str).collect();
        let kinds: Vec<&str> = self.rule.triggers.iter().map(|kind| kind.as_str()).collect();
        let jobs = if jobs.is_empty() { "every job".to_owned() } else { format!("job {}", jobs.join(", ")) };
        if kinds.is_empty() { jobs } else { format!("{jobs}, by {}", kinds.join(", ")) }
    }

    fn leads_to(&self) -> String {
        format!("one standing Work for each job, of kind `{WORK_KIND}`")
    }

    fn ignores_work(&self) -> bool {
        true
    }

    fn takes_announcement(&self, _event_type: &EventType) -> bool {
        false
    }

    fn decide<'a>(&'a self, input: &'a RouteInput) -> BoxFuture<'a, Result<Option<Match>, HandlerError>> {
        let entries: Vec<&Entry> = self.entries.iter().collect();
        let event = &input.event;
        let decided = self.rule.wants(&entries, &event.event_type, &event.source, event.key.as_ref());
        Box::pin(std::future::ready(Ok(decided)))
    }
}

/// Which input of a batch a job's run is for.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewestDelivery;

impl TriggerChoice for NewestDelivery {
    fn work_kind(&self) -> WorkKind {
        WorkKind::known(WORK_KIND)
    }

    fn choose(&self, batch: &[TriggerView]) -> usize {
        let kinds: Vec<TriggerKind> = batch.iter().map(kind).collect();
        route::select(&kinds)
    }
}

/// What an input is; what starts no job by itself counts as a request.
fn kind(view: &TriggerView) -> TriggerKind {
    let namespace = view.key.as_ref().map_or(&view.source, |key| &key.source);
    TriggerKind::of(&view.event_type, &view.source, namespace).unwrap_or(TriggerKind::Manual)
}

#[cfg(test)]
mod tests {
    use extension::{
        Ensured, EntryName, EventType, IngressEntry, Key, Recurrence, ScopeName, SourceName, Timestamp,
        TriggerChoice, TriggerView,
    };
    use serde_json::{Value, json};

    use super::{NewestDelivery, Schedules};

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn entry(jobs: &Value) -> IngressEntry {
        IngressEntry {
            name: EntryName::known("jobs"),
            scope: ScopeName::known("t"),
            secret_names: vec!["hook".to_owned()],
            config: json!({ "namespace": "schedule/t", "webhook_secret": "hook", "jobs": jobs }),
        }
    }

    #[test]
    fn a_timer_is_armed_fires_and_is_rearmed_over_what_is_stored() {
        let jobs = json!([{ "name": "report", "cron": "30 9 * * *", "time_zone": "Europe/London" }]);
        let declared = Schedules.prepare(&entry(&jobs)).unwrap();
        let part = &declared.parts[0];
        let now = at("2026-06-01T10:00:00Z");
        let Ensured::Arm(armed) = Schedules.ensure(None, part.wanted.as_ref(), now).unwrap() else {
            panic!("a new job is armed");
        };
        assert_eq!(armed.due_at, at("2026-06-02T08:30:00Z"));
        let late = at("2026-06-03T10:12:00Z");
        let fired = Schedules.fire(&part.key, &armed, late).unwrap();
        let published = fired.publishes.unwrap();
        assert_eq!(published.delivery_id.as_str(), "slot/report/2026-06-03T08:30:00Z");
        assert_eq!(published.label, "cron 2026-06-03 09:30 Europe/London");
        assert_eq!(published.payload["kind"], "timer");
        assert_eq!(fired.missed.len(), 1);
        assert_eq!(fired.missed[0].first, "2026-06-02 09:30 Europe/London");
        let rearmed = fired.rearmed.unwrap();
        assert_eq!(rearmed.due_at, at("2026-06-04T08:30:00Z"));
        assert_eq!(
            Schedules.ensure(Some(&rearmed), part.wanted.as_ref(), late).unwrap(),
            Ensured::Keep,
            "what is stored means what is configured"
        );
        assert_eq!(Schedules.ensure(Some(&rearmed), None, late).unwrap(), Ensured::Disarm);
    }

    #[test]
    fn what_cannot_start_a_job_yet_is_refused() {
        let jobs = json!([{ "name": "a", "at": ["05:17"] }, { "name": "b", "on": { "webhook": true } }]);
        let problems = Schedules.prepare(&entry(&jobs)).unwrap_err();
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].path, "jobs[1].on");
    }

    #[test]
    fn a_delivery_is_chosen_before_a_request() {
        let view = |event_type: &str, source: &str| TriggerView {
            event_type: EventType::known(event_type),
            source: SourceName::known(source),
            key: Some(Key {
                source: SourceName::known("schedule/t"),
                external_id: extension::ExternalId::known("job/a"),
            }),
        };
        let batch = [
            view("schedule.slot", "schedule/t"),
            view("schedule.webhook", "schedule/t"),
            view("schedule.run", "core.manual"),
        ];
        assert_eq!(NewestDelivery.choose(&batch), 1);
        assert_eq!(NewestDelivery.choose(&batch[2..]), 0);
    }
}
