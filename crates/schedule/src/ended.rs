//! What the end of a job's run tells, and the `job:` waits that it ends.
//!
//! Each ended run is announced once, on the job's own key, by an Event whose type says how it ended. No route takes
//! these. A Work that waits for a job waits for that key and all four types, from now on, so that the next run wakes it
//! and not an earlier one.

use extension::{Attempt, Code, DeliveryId, EventType, ExecutionId, Key, ScopeName, SourceName, WorkId};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::job::{Entry, JobName};

/// The version of the payload.
pub const SCHEMA: &str = "schedule.run.v1";
/// What stands before the name of a job in a condition.
const CONDITION: &str = "job:";

/// How a run that is over ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// It did what it was for.
    Completed,
    /// It failed.
    Failed,
    /// Somebody ended it.
    Cancelled,
    /// It hands its Work back.
    Handoff,
}

impl RunEnd {
    /// Every one.
    pub const ALL: &[Self] = &[Self::Completed, Self::Failed, Self::Cancelled, Self::Handoff];

    /// The end of an outcome's word. A turn that ended to wait is not over, and is passed over.
    pub fn of(outcome: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|end| end.as_str() == outcome)
    }

    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Handoff => "handoff",
        }
    }

    /// The type of the Event that tells it.
    pub fn event_type(self) -> EventType {
        EventType::known(&format!("schedule.run.{}", self.as_str()))
    }
}

/// The payload of such an Event, `schedule.run.v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedRun {
    /// [`SCHEMA`].
    pub schema: String,
    /// The job.
    pub job: JobName,
    /// Its Work.
    pub work: WorkId,
    /// The run.
    pub execution: ExecutionId,
    /// Its number.
    pub attempt: Attempt,
    /// How it ended.
    pub outcome: RunEnd,
    /// What it says of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

impl EndedRun {
    /// The Event's identity: a repeated announcement is the same one.
    pub fn delivery_id(&self) -> DeliveryId {
        DeliveryId::known(&format!("ended/{}", self.execution))
    }

    /// What it says to whoever waited for it: `a run of the backup job ended: failed`.
    pub fn sentence(&self) -> String {
        format!("a run of the {} job ended: {}", self.job, self.outcome.as_str())
    }
}

/// What a Work waits for that waits for a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The job's scope.
    pub scope: ScopeName,
    /// The job's key. It is another Work's, so what waits subscribes to it.
    pub key: Key,
    /// The types of Events that end the wait.
    pub types: Vec<EventType>,
}

/// A scope's entries, for finding a job.
#[derive(Debug, Clone, Copy)]
pub struct ScopeJobs<'a> {
    /// The scope.
    pub scope: &'a ScopeName,
    /// Its `schedule` entries.
    pub entries: &'a [Entry],
}

/// Why a condition names no job that can be waited for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TargetError {
    /// It does not begin with `job:`.
    #[error("not a job; write `job:<name>`, or `<scope>/job:<name>` for one of another scope")]
    Form,
    /// There is no such job.
    #[error("there is no job of that name in scope `{scope}`")]
    NoJob {
        /// Where it was looked for.
        scope: String,
    },
    /// The scope may not be read.
    #[error("the job is in another scope, which is none of this one's `read_scopes`")]
    NotReadable,
    /// Two entries have one.
    #[error("two `schedule` entries of scope `{scope}` have a job of that name")]
    Ambiguous {
        /// Where it was looked for.
        scope: String,
    },
}

impl TargetError {
    /// The stable word.
    pub fn code(&self) -> Code {
        Code::known(match self {
            Self::Form => "no_condition",
            Self::NoJob { .. } => "no_job",
            Self::NotReadable => "scope_not_readable",
            Self::Ambiguous { .. } => "ambiguous_job",
        })
    }
}

/// What a condition such as `job:backup` or `site/job:backup` waits for, asked by a Work of `scope`. Only the next run
/// ends such a wait, so it begins at the moment it is registered.
///
/// # Errors
/// [`TargetError`].
pub fn target(
    condition: &str,
    scope: &ScopeName,
    read_scopes: &[ScopeName],
    known: &[ScopeJobs<'_>],
) -> Result<Target, TargetError> {
    let (named, job) = match condition.strip_prefix(CONDITION) {
        Some(job) => (None, job),
        None => condition
            .rsplit_once('/')
            .and_then(|(named, rest)| Some((Some(named), rest.strip_prefix(CONDITION)?)))
            .ok_or(TargetError::Form)?,
    };
    let wanted = named.unwrap_or(scope.as_str());
    if wanted != scope.as_str() && !read_scopes.iter().any(|readable| readable.as_str() == wanted) {
        return Err(TargetError::NotReadable);
    }
    let no_job = || TargetError::NoJob { scope: wanted.to_owned() };
    let job = JobName::new(job).map_err(|_source| no_job())?;
    let of_scope = known.iter().filter(|jobs| jobs.scope.as_str() == wanted);
    let mut found = of_scope.flat_map(|jobs| {
        let having = jobs.entries.iter().filter(|entry| entry.job(&job).is_some());
        having.map(|entry| (jobs.scope.clone(), entry.namespace.clone()))
    });
    let (scope, namespace): (ScopeName, SourceName) = found.next().ok_or_else(no_job)?;
    if found.next().is_some() {
        return Err(TargetError::Ambiguous { scope: wanted.to_owned() });
    }
    let types = RunEnd::ALL.iter().map(|end| end.event_type()).collect();
    Ok(Target { scope, key: job.key(&namespace), types })
}

#[cfg(test)]
mod tests {
    use extension::{Attempt, ExecutionId, ScopeName, WorkId};
    use serde_json::json;

    use super::{EndedRun, RunEnd, SCHEMA, ScopeJobs, TargetError, target};
    use crate::job::{Entry, JobName};

    fn entry(namespace: &str, job: &str) -> Entry {
        let config = json!({ "namespace": namespace, "jobs": [{ "name": job }] });
        Entry::read(&config, &ScopeName::known("any"), &[]).unwrap()
    }

    #[test]
    fn the_end_of_a_run_has_one_identity_and_a_type_for_how_it_ended() {
        let ended = EndedRun {
            schema: SCHEMA.to_owned(),
            job: JobName::new("backup").unwrap(),
            work: WorkId::from_number(1),
            execution: ExecutionId::from_number(2),
            attempt: Attempt::from_number(3),
            outcome: RunEnd::Failed,
            summary: None,
        };
        assert_eq!(ended.delivery_id().as_str(), format!("ended/{}", ended.execution));
        assert_eq!(ended.outcome.event_type().as_str(), "schedule.run.failed");
        assert_eq!(ended.sentence(), "a run of the backup job ended: failed");
        let written = serde_json::to_value(&ended).unwrap();
        assert_eq!((&written["schema"], &written["outcome"]), (&json!("schedule.run.v1"), &json!("failed")));
        assert_eq!(RunEnd::of("waiting"), None);
        assert_eq!(RunEnd::of("handoff"), Some(RunEnd::Handoff));
    }

    #[test]
    fn a_job_wait_is_for_its_key_and_every_end() {
        let (here, there, closed) =
            (ScopeName::known("eng"), ScopeName::known("ops"), ScopeName::known("hr"));
        let (eng, ops) = ([entry("schedule/eng", "backup")], [entry("schedule/ops", "deploy")]);
        let twice = [entry("schedule/a", "x"), entry("schedule/b", "x")];
        let known = [
            ScopeJobs { scope: &here, entries: &eng },
            ScopeJobs { scope: &there, entries: &ops },
            ScopeJobs { scope: &closed, entries: &twice },
        ];
        let ask = |condition: &str| target(condition, &here, &[ScopeName::known("ops")], &known);
        let found = ask("job:backup").unwrap();
        assert_eq!(
            (found.key.source.as_str(), found.key.external_id.as_str()),
            ("schedule/eng", "job/backup")
        );
        let types: Vec<&str> = found.types.iter().map(extension::EventType::as_str).collect();
        let ends = ["completed", "failed", "cancelled", "handoff"].map(|end| format!("schedule.run.{end}"));
        assert_eq!(types, ends);
        assert_eq!(ask("eng/job:backup").unwrap(), found);
        assert_eq!(ask("ops/job:deploy").unwrap().scope, there);

        let code = |condition: &str| ask(condition).unwrap_err().code().to_string();
        assert_eq!(code("job:deploy"), "no_job");
        assert_eq!(code("job:NOT A NAME"), "no_job");
        assert_eq!(code("hr/job:x"), "scope_not_readable");
        assert_eq!(code("gone/job:x"), "scope_not_readable");
        assert_eq!(ask("backup"), Err(TargetError::Form));
        assert_eq!(ask("ops/deploy"), Err(TargetError::Form));
        let inside = target("job:x", &closed, &[], &known).unwrap_err();
        assert_eq!(inside.code().as_str(), "ambiguous_job");
    }
}
