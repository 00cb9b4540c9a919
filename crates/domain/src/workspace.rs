//! Workspaces: the directory that a provider made ready for an attempt, as history tells of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::execution::{Execution, ExecutionState};
use crate::time::Timestamp;
use crate::work::Work;

/// The directory that an attempt works in, as its provider describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// The provider: `git`.
    pub kind: String,
    /// What of the provider's it stands on: a branch, or a commit.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The directory.
    pub dir: String,
    /// One line for people; at most [`Workspace::SUMMARY_CHARS_MAX`] characters.
    pub summary: String,
    /// What the provider adds; a few hundred bytes.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

impl Workspace {
    /// The most characters of a summary that are kept.
    pub const SUMMARY_CHARS_MAX: usize = 300;

    /// The same with a summary that is one line and not too long, whatever a program put into it.
    #[must_use]
    pub fn in_one_line(mut self) -> Self {
        let line = self.summary.chars().map(|c| if c.is_control() { ' ' } else { c });
        self.summary = line.take(Self::SUMMARY_CHARS_MAX).collect();
        self
    }
}

/// How an attempt ended, as far as it matters to what it worked in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Whether it ended well.
    pub well: bool,
    /// Whether its Work has ended, too.
    pub work_ended: bool,
    /// When.
    pub at: Timestamp,
}

/// Whether what an attempt worked in may be given back, and how it ended then (rule WSP-6).
///
/// It may not while the attempt goes on or is parked, nor while something it had started may still run.
pub fn may_give_back(execution: &Execution, work: Option<&Work>) -> Option<Ended> {
    let at = execution.ended_at.filter(|_at| execution.state.is_terminal() && !execution.unstopped)?;
    Some(Ended {
        well: match execution.state {
            ExecutionState::Completed | ExecutionState::Handoff | ExecutionState::Waiting => true,
            ExecutionState::Launching
            | ExecutionState::Running
            | ExecutionState::Parked
            | ExecutionState::Failed
            | ExecutionState::Cancelled => false,
        },
        work_ended: work.is_none_or(|work| work.state.is_terminal()),
        at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machines;

    #[test]
    fn may_give_back_waits_for_the_end_and_for_the_tree() {
        for state in ExecutionState::ALL {
            let ended_at = state.is_terminal().then_some(Timestamp::from_micros(7));
            let execution = Execution { state, ended_at, ..machines::execution() };
            let ended = may_give_back(&execution, None);
            assert_eq!(ended.is_some(), state.is_terminal(), "{state:?}");
            if let Some(ended) = ended {
                let well = [ExecutionState::Completed, ExecutionState::Handoff, ExecutionState::Waiting];
                assert_eq!(ended.well, well.contains(&state), "{state:?}");
            }
            assert_eq!(may_give_back(&Execution { unstopped: true, ..execution }, None), None, "{state:?}");
        }
    }

    #[test]
    fn in_one_line_takes_control_characters_out_and_cuts() {
        let workspace = Workspace {
            kind: "git".to_owned(),
            reference: None,
            dir: "/x".to_owned(),
            summary: format!("a\n\u{1b}[31m{}", "é".repeat(400)),
            data: Value::Null,
        };
        let summary = workspace.in_one_line().summary;
        assert_eq!(summary.chars().count(), Workspace::SUMMARY_CHARS_MAX);
        assert!(summary.starts_with("a  [31mé"), "{summary}");
    }
}
