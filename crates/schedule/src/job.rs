//! Jobs as a scope's `schedule` entry declares them.
//!
//! | key of the entry | meaning |
//! | --- | --- |
//! | `namespace` | the source of its triggers, and of the keys of its jobs; required |
//! | `scope` | the scope that holds the entry; it may be left out |
//! | `webhook_secret` | the name of the secret that signs the URLs of its jobs; required where a job takes webhooks |
//! | `jobs` | its jobs, each with a `name` |
//!
//! | key of a job | meaning |
//! | --- | --- |
//! | `name` | a lower-case letter, then up to 62 letters, digits, `_` and `-` |
//! | `every_minutes` | runs every so many minutes |
//! | `at` | runs at these times of day, `HH:MM` in UTC |
//! | `cron`, `time_zone` | runs at the slots of a [cron expression](crate::cron) in an IANA zone, UTC by default |
//! | `catch_up` | how late a slot may still run: `none`, or a time below which it may; `6h` by default |
//! | `on.events` | events of the code host, with an action or for all of them: `push`, `release.published` |
//! | `on.branches` | the [branches](crate::glob) that an event must be about |
//! | `on.paths` | the [files](crate::glob) of which a push must change one |
//! | `on.conclusions` | how a check must have ended |
//! | `on.webhook` | takes what is posted to its signed URL |
//!
//! A job with neither a time nor `on` runs by hand only. Nothing that is refused is repeated.

mod read;
#[cfg(test)]
mod tests;

use std::fmt;

use extension::{ConfigProblem, ExternalId, Key, ScopeName, SourceName};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::glob::Globs;
use crate::timing::{CatchUp, Timing};

/// The type of the entries.
pub const ENTRY_TYPE: &str = "schedule";
/// The kind of the standing Work that a job has.
pub const WORK_KIND: &str = "schedule.job";
/// The most jobs of one entry.
pub const JOBS_MAX: usize = 1000;
/// The most bytes of a job's name.
pub const NAME_BYTES_MAX: usize = 63;

/// What stands before a job's name in its key.
const KEY_PREFIX: &str = "job/";

/// The name of a job, unique within its entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JobName(String);

impl JobName {
    /// Reads a name.
    ///
    /// # Errors
    /// [`JobNameError`].
    pub fn new(text: &str) -> Result<Self, JobNameError> {
        let rest =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
        let is_name = text.len() <= NAME_BYTES_MAX
            && text.bytes().next().is_some_and(|first| first.is_ascii_lowercase())
            && text.bytes().all(rest);
        if is_name { Ok(Self(text.to_owned())) } else { Err(JobNameError) }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key of a job in its entry's namespace. Its Work owns it, however often the entry is edited.
    pub fn key(&self, namespace: &SourceName) -> Key {
        Key { source: namespace.clone(), external_id: ExternalId::known(&format!("{KEY_PREFIX}{self}")) }
    }

    /// The name of the job that a key is of, in whatever namespace; none when it is of none.
    pub fn of_key(key: &Key) -> Option<Self> {
        Self::new(key.external_id.as_str().strip_prefix(KEY_PREFIX)?).ok()
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for JobName {
    type Error = JobNameError;

    fn try_from(text: String) -> Result<Self, JobNameError> {
        Self::new(&text)
    }
}

impl From<JobName> for String {
    fn from(name: JobName) -> Self {
        name.0
    }
}

/// The text is no name of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "must be a lower-case letter, then lower-case letters, digits, `_` and `-`, {NAME_BYTES_MAX} at most"
)]
pub struct JobNameError;

/// A `schedule` entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The source of its triggers.
    pub namespace: SourceName,
    /// The name of the secret that signs its URLs.
    pub webhook_secret: Option<String>,
    /// Its jobs, in the order they are written.
    pub jobs: Vec<Job>,
}

impl Entry {
    /// Reads an entry of a scope, given the names of the secrets it may read.
    ///
    /// # Errors
    /// Every problem, each with its path. No value is repeated.
    pub fn read(
        config: &Value,
        scope: &ScopeName,
        secret_names: &[String],
    ) -> Result<Self, Vec<ConfigProblem>> {
        read::entry(config, scope, secret_names)
    }

    /// The job of a name.
    pub fn job(&self, name: &JobName) -> Option<&Job> {
        self.jobs.iter().find(|job| job.name == *name)
    }
}

/// A job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its name.
    pub name: JobName,
    /// When it runs by time.
    pub timing: Option<Timing>,
    /// How late a slot may still run.
    pub catch_up: CatchUp,
    /// What else starts it.
    pub on: On,
}

impl Job {
    /// Whether it runs by hand only.
    pub fn is_by_hand(&self) -> bool {
        self.timing.is_none() && self.on.events.is_empty() && !self.on.webhook
    }
}

/// When it runs, in words: `every hour; on push to main`.
impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = self.timing.as_ref().map(ToString::to_string);
        let events = (!self.on.events.is_empty()).then(|| self.on.to_string());
        let webhook = self.on.webhook.then(|| "on webhook".to_owned());
        let parts: Vec<String> = [time, events, webhook].into_iter().flatten().collect();
        f.write_str(&if parts.is_empty() { "by hand".to_owned() } else { parts.join("; ") })
    }
}

/// What starts a job besides time and hand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct On {
    /// Events of the code host. Without any, none does.
    pub events: Vec<EventRule>,
    /// The branches they must be about.
    pub branches: Option<Rules>,
    /// The files of which a push must change one.
    pub paths: Option<Rules>,
    /// How a check must have ended.
    pub conclusions: Vec<Conclusion>,
    /// What is posted to its URL.
    pub webhook: bool,
}

impl fmt::Display for On {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let events: Vec<String> = self.events.iter().map(ToString::to_string).collect();
        write!(f, "on {}", events.join(", "))?;
        if let Some(branches) = &self.branches {
            write!(f, " to {}", branches.texts.join(", "))?;
        }
        if let Some(paths) = &self.paths {
            write!(f, " that changes {}", paths.texts.join(", "))?;
        }
        if !self.conclusions.is_empty() {
            let words: Vec<&str> = self.conclusions.iter().map(|conclusion| conclusion.as_str()).collect();
            write!(f, " that ended {}", words.join(", "))?;
        }
        Ok(())
    }
}

/// A list of patterns, also as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// The patterns.
    pub globs: Globs,
    /// As they were written.
    pub texts: Vec<String>,
}

/// An event of the code host that a job takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRule {
    /// The event, such as `push`.
    pub event: String,
    /// The action; none takes every one.
    pub action: Option<String>,
}

impl EventRule {
    /// Whether a delivery is one of these.
    pub fn takes(&self, event: &str, action: Option<&str>) -> bool {
        self.event == event && self.action.as_deref().is_none_or(|wanted| action == Some(wanted))
    }
}

impl fmt::Display for EventRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.action {
            Some(action) => write!(f, "{}.{action}", self.event),
            None => f.write_str(&self.event),
        }
    }
}

/// How a check suite or run ended, in GitHub's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    /// It passed.
    Success,
    /// It failed.
    Failure,
    /// It says neither.
    Neutral,
    /// Somebody ended it.
    Cancelled,
    /// It was not needed.
    Skipped,
    /// It took too long.
    TimedOut,
    /// It waits for somebody.
    ActionRequired,
    /// GitHub gave up on it.
    Stale,
    /// It could not begin.
    StartupFailure,
}

impl Conclusion {
    /// Every one.
    pub const ALL: &[Self] = &[
        Self::Success,
        Self::Failure,
        Self::Neutral,
        Self::Cancelled,
        Self::Skipped,
        Self::TimedOut,
        Self::ActionRequired,
        Self::Stale,
        Self::StartupFailure,
    ];

    /// GitHub's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Neutral => "neutral",
            Self::Cancelled => "cancelled",
            Self::Skipped => "skipped",
            Self::TimedOut => "timed_out",
            Self::ActionRequired => "action_required",
            Self::Stale => "stale",
            Self::StartupFailure => "startup_failure",
        }
    }

    /// The one of a word, in whatever case.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|conclusion| conclusion.as_str().eq_ignore_ascii_case(word))
    }
}
