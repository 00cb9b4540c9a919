//! Retention: how long the content of runs is kept. Content is what a run was given and left behind: the bodies of its
//! input, its log, its artifacts. What happened is history and is never released.
//!
//! The newest runs of a Work keep their content, as many as its scope says. A Work that has ended may lose all of it
//! some days later; standing Work does not end, so only the number counts there.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::retry::Eligibility;
use crate::scope::Settings;
use crate::text::ScopeName;
use crate::time::Timestamp;
use crate::work::{Lifecycle, Work, WorkState};

/// What has become of a run's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Content {
    /// It is there.
    #[default]
    Kept,
    /// It is being released, and nobody is shown it any more.
    Releasing,
    /// It is gone.
    Released,
}

impl Content {
    /// The word in API and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Releasing | Self::Released => "released",
        }
    }
}

/// What a scope keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Keeping {
    /// The content of how many of a Work's newest runs.
    pub executions: u32,
    /// That of finished Work, for how many days; for ever when none.
    pub finished_days: Option<u32>,
}

impl From<&Settings> for Keeping {
    fn from(settings: &Settings) -> Self {
        Self { executions: settings.kept_executions, finished_days: settings.kept_finished_days }
    }
}

impl Keeping {
    /// Whether less is kept than under `before`, so that what was looked at then has to be looked at again.
    pub fn is_less_than(self, before: Self) -> bool {
        let days = |keeping: Self| keeping.finished_days.unwrap_or(u32::MAX);
        self.executions < before.executions || days(self) < days(before)
    }
}

/// Whether any scope keeps less than it did. One that was not there has nothing that was looked at.
pub fn is_less(before: &BTreeMap<ScopeName, Keeping>, now: &BTreeMap<ScopeName, Keeping>) -> bool {
    now.iter().any(|(scope, keeping)| before.get(scope).is_some_and(|before| keeping.is_less_than(*before)))
}

/// When a Work loses all its content because it has ended; never for standing Work, and while it lives.
pub fn finishes_at(work: &Work, keeping: Keeping) -> Option<Timestamp> {
    match work.lifecycle {
        Lifecycle::Once | Lifecycle::RunOnce => {}
        Lifecycle::Standing => return None,
    }
    let days = Duration::from_hours(24 * u64::from(keeping.finished_days?));
    Some(work.ended_at?.after(days))
}

/// Up to which attempt the content of a Work's runs is released at `now`. A run that has not ended keeps its own and
/// counts for none, so that one which repeats another finds what that one was given.
pub fn release_until(work: &Work, keeping: Keeping, now: Timestamp) -> i64 {
    if finishes_at(work, keeping).is_some_and(|at| at <= now) {
        return work.attempts;
    }
    let may_go_on = match work.state {
        WorkState::Running { .. } | WorkState::Waiting { .. } => true,
        WorkState::Ready => matches!(work.eligibility, Eligibility::Woken { resumes: Some(_), .. }),
        WorkState::Completed | WorkState::Failed | WorkState::Cancelled => false,
    };
    (work.attempts - i64::from(may_go_on) - i64::from(keeping.executions)).max(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Keeping, finishes_at, is_less, release_until};
    use crate::id::{ExecutionId, WorkId};
    use crate::retry::Eligibility;
    use crate::text::{ScopeName, WorkKind};
    use crate::time::Timestamp;
    use crate::work::{Lifecycle, Queue, Work, WorkState};

    const DAY: i64 = 24 * 3600;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn work(lifecycle: Lifecycle, attempts: i64) -> Work {
        let (scope, kind) = (ScopeName::known("main"), WorkKind::known("job"));
        Work {
            attempts,
            queue: Queue::Idle,
            ..Work::create(WorkId::from_number(1), scope, kind, lifecycle, at(0))
        }
    }

    fn ended(lifecycle: Lifecycle) -> Work {
        Work { state: WorkState::Completed, ended_at: Some(at(0)), ..work(lifecycle, 3) }
    }

    const fn keeps(executions: u32, finished_days: Option<u32>) -> Keeping {
        Keeping { executions, finished_days }
    }

    #[test]
    fn the_newest_runs_that_ended_keep_their_content() {
        let of = |work: &Work| release_until(work, keeps(2, None), at(9));
        let idle = |attempts| work(Lifecycle::Standing, attempts);
        assert_eq!([0, 1, 2, 3, 30].map(|attempts| of(&idle(attempts))), [0, 0, 0, 1, 28]);
        let execution = ExecutionId::from_number(4);
        let running = Work { state: WorkState::Running { execution }, ..idle(3) };
        assert_eq!(of(&running), 0, "one that goes on counts for none");
        let (wait, event) = (crate::id::WaitId::from_number(1), crate::id::Sequence::FIRST);
        let woken = |resumes| Work { eligibility: Eligibility::Woken { wait, event, resumes }, ..idle(3) };
        assert_eq!([of(&woken(Some(execution))), of(&woken(None))], [0, 1]);
        assert_eq!(of(&Work { state: WorkState::Waiting { wait }, ..idle(3) }), 0);
    }

    #[test]
    fn finished_work_loses_all_of_it_some_days_later_and_standing_work_never() {
        let keeping = keeps(20, Some(7));
        let once = ended(Lifecycle::Once);
        assert_eq!(finishes_at(&once, keeping), Some(at(7 * DAY)));
        let until = |work: &Work, now| release_until(work, keeping, now);
        assert_eq!([until(&once, at(7 * DAY - 1)), until(&once, at(7 * DAY))], [0, 3]);
        assert_eq!(finishes_at(&ended(Lifecycle::Standing), keeping), None);
        assert_eq!(until(&ended(Lifecycle::Standing), at(100 * DAY)), 0);
        assert_eq!(finishes_at(&work(Lifecycle::Once, 3), keeping), None, "it lives");
        assert_eq!(finishes_at(&once, keeps(20, None)), None, "for ever");
    }

    #[test]
    fn only_what_keeps_less_is_looked_at_again() {
        let under = |keeping| BTreeMap::from([(ScopeName::known("main"), keeping)]);
        let less = |before, now| is_less(&under(before), &under(now));
        assert!(less(keeps(20, None), keeps(19, None)));
        assert!(less(keeps(20, None), keeps(20, Some(7))));
        assert!(less(keeps(20, Some(8)), keeps(30, Some(7))));
        assert!(!less(keeps(20, Some(7)), keeps(20, Some(7))));
        assert!(!less(keeps(20, Some(7)), keeps(21, None)));
        assert!(!is_less(&BTreeMap::new(), &under(keeps(1, Some(1)))));
    }
}
