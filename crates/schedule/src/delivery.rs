//! Which deliveries of the code host start a job, and why.
//!
//! Everything is answered from the facts of the delivery alone; no repository is looked at. Where the facts cannot
//! tell what changed, the job runs: a run too many is seen, one too few is not.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::job::{Conclusion, Job, On};

/// What stands before the name of a branch in a ref.
const BRANCH: &str = "refs/heads/";
/// The event whose files are looked at.
const PUSH: &str = "push";

/// The facts of a delivery that matter to a job, as a `github.delivery` Event has them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The event: `push`.
    pub event: String,
    /// What happened, for events that have several actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The full ref that it is about. Without one, no branch is known.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The commit that it is about; `after` in the delivery's own facts.
    #[serde(default, alias = "after", skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// How a check ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conclusion: Option<String>,
    /// What a push changed; `files` in the delivery's own facts.
    #[serde(default, alias = "files", skip_serializing_if = "Option::is_none")]
    pub changed_files: Option<Vec<String>>,
    /// Whether `changed_files` is certain to be all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_complete: Option<bool>,
    /// Whether a push deleted its ref.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
}

impl Delivery {
    /// The branch that it is about; none for a tag, and where no ref is named.
    pub fn branch(&self) -> Option<&str> {
        self.name.as_deref().and_then(|name| name.strip_prefix(BRANCH))
    }

    /// The event with its action: `release.published`.
    pub fn event_and_action(&self) -> String {
        match &self.action {
            Some(action) => format!("{}.{action}", self.event),
            None => self.event.clone(),
        }
    }

    /// The files it changed, when they are known whole.
    fn known_files(&self) -> Option<&[String]> {
        self.changed_files.as_deref().filter(|_files| self.files_complete == Some(true))
    }
}

/// Whether a delivery starts a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Whether it does.
    pub matches: bool,
    /// What decided.
    pub reason: Reason,
}

/// What decided whether a delivery starts a job. It reads as a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Everything that is asked for is there.
    Matches,
    /// A changed file is one of those asked for.
    File(String),
    /// What changed is not known whole.
    FilesUnknown,
    /// The job takes no events.
    NoEvents,
    /// The event is another one.
    Event(String),
    /// A ref was deleted, so nothing changed.
    Deleted,
    /// Branches are asked for, and it names none.
    NoBranch,
    /// The branch is another one.
    Branch(String),
    /// Conclusions are asked for, and it has none.
    NoConclusion,
    /// It ended in another way.
    Conclusion(String),
    /// No changed file is one of those asked for.
    Files(usize),
}

impl Reason {
    const fn matches(&self) -> bool {
        match self {
            Self::Matches | Self::File(_) | Self::FilesUnknown => true,
            Self::NoEvents
            | Self::Event(_)
            | Self::Deleted
            | Self::NoBranch
            | Self::Branch(_)
            | Self::NoConclusion
            | Self::Conclusion(_)
            | Self::Files(_) => false,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Matches => f.write_str("it is what the job is on"),
            Self::File(file) => write!(f, "`{file}` changed, which `on.paths` names"),
            Self::FilesUnknown => {
                f.write_str("what changed is not known whole, and then a job with `on.paths` runs")
            }
            Self::NoEvents => f.write_str("the job has no `on.events`"),
            Self::Event(event) => write!(f, "`{event}` is none of `on.events`"),
            Self::Deleted => f.write_str("the ref was deleted, which changes nothing"),
            Self::NoBranch => f.write_str("the job has `on.branches`, and the delivery names no branch"),
            Self::Branch(branch) => write!(f, "`{branch}` is none of `on.branches`"),
            Self::NoConclusion => {
                f.write_str("the job has `on.conclusions`, and the delivery carries no conclusion")
            }
            Self::Conclusion(conclusion) => write!(f, "`{conclusion}` is none of `on.conclusions`"),
            Self::Files(1) => f.write_str("the one file that changed is none of `on.paths`"),
            Self::Files(count) => write!(f, "none of the {count} files that changed is one of `on.paths`"),
        }
    }
}

/// Whether a delivery starts a job. It has no effect.
pub fn answer(job: &Job, delivery: &Delivery) -> Answer {
    let reason = reason(&job.on, delivery);
    Answer { matches: reason.matches(), reason }
}

fn reason(on: &On, delivery: &Delivery) -> Reason {
    if on.events.is_empty() {
        return Reason::NoEvents;
    }
    if !on.events.iter().any(|rule| rule.takes(&delivery.event, delivery.action.as_deref())) {
        return Reason::Event(delivery.event_and_action());
    }
    let is_push = delivery.event == PUSH;
    if is_push && delivery.deleted {
        return Reason::Deleted;
    }
    if let Some(branches) = &on.branches {
        match delivery.branch() {
            None => return Reason::NoBranch,
            Some(branch) if !branches.globs.take(branch) => return Reason::Branch(branch.to_owned()),
            Some(_taken) => {}
        }
    }
    if !on.conclusions.is_empty() {
        let Some(word) = &delivery.conclusion else { return Reason::NoConclusion };
        if !Conclusion::of(word).is_some_and(|conclusion| on.conclusions.contains(&conclusion)) {
            return Reason::Conclusion(word.clone());
        }
    }
    let Some(paths) = on.paths.as_ref().filter(|_paths| is_push) else { return Reason::Matches };
    let Some(files) = delivery.known_files() else { return Reason::FilesUnknown };
    match files.iter().find(|file| paths.globs.take(file)) {
        Some(file) => Reason::File(file.clone()),
        None => Reason::Files(files.len()),
    }
}
