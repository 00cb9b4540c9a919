//! The columns of a Work that say what its next turn hangs on: failures, Waits, and what holds it.

use domain::id::{ExecutionId, Sequence, WaitId};
use domain::retry::{Eligibility, Exhaustion};
use domain::store::StoreError;
use domain::time::Timestamp;
use domain::work::{Hold, Work, WorkState};

use super::code;
use crate::db::{Columns, Value, int, maybe_int, maybe_text, maybe_time};

const CLEAR: i64 = 0;
const BACKOFF: i64 = 1;
const DUE: i64 = 2;
const WOKEN: i64 = 3;
const EXHAUSTED: i64 = 4;
const CHAIN_EXHAUSTED: i64 = 5;
const STOPPING: i64 = 6;

/// What the columns from `eligibility` to `resumes` hold.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stored {
    word: i64,
    failed: Option<ExecutionId>,
    due_at: Option<Timestamp>,
    event: Option<Sequence>,
    pub(super) wait: Option<WaitId>,
    resumes: Option<ExecutionId>,
}

impl Stored {
    pub(super) fn decode(columns: &mut Columns<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            word: columns.int()?,
            failed: columns.maybe_int()?.map(ExecutionId::from_number),
            due_at: columns.maybe_time()?,
            event: columns.maybe_int()?.map(Sequence::from_number),
            wait: columns.maybe_int()?.map(WaitId::from_number),
            resumes: columns.maybe_int()?.map(ExecutionId::from_number),
        })
    }

    pub(super) fn of(work: &Work) -> Self {
        let failed = work.eligibility.failed();
        let plain = |word| Self { word, failed, ..Self::default() };
        let stored = match work.eligibility {
            Eligibility::Clear => plain(CLEAR),
            Eligibility::Backoff { due_at, .. } => Self { due_at: Some(due_at), ..plain(BACKOFF) },
            Eligibility::Due { event, .. } => Self { event: Some(event), ..plain(DUE) },
            Eligibility::Woken { wait, event, resumes } => {
                Self { event: Some(event), wait: Some(wait), resumes, ..plain(WOKEN) }
            }
            Eligibility::Exhausted { because: Exhaustion::Budget, .. } => plain(EXHAUSTED),
            Eligibility::Exhausted { because: Exhaustion::Causal, .. } => plain(CHAIN_EXHAUSTED),
            Eligibility::Stopping { interrupted, repeats } => {
                Self { failed: Some(interrupted), event: repeats, ..plain(STOPPING) }
            }
        };
        match work.state {
            WorkState::Waiting { wait } => Self { wait: Some(wait), ..stored },
            WorkState::Ready
            | WorkState::Running { .. }
            | WorkState::Completed
            | WorkState::Failed
            | WorkState::Cancelled => stored,
        }
    }

    /// The eligibility, of a Work whose `wait` is not that of its state.
    pub(super) const fn eligibility(self) -> Option<Eligibility> {
        let Self { word, failed, due_at, event, wait, resumes } = self;
        Some(match (word, failed, due_at, event, wait, resumes) {
            (CLEAR, None, None, None, None, None) => Eligibility::Clear,
            (BACKOFF, Some(failed), Some(due_at), None, None, None) => {
                Eligibility::Backoff { failed, due_at }
            }
            (DUE, Some(failed), None, Some(event), None, None) => Eligibility::Due { failed, event },
            (WOKEN, None, None, Some(event), Some(wait), resumes) => {
                Eligibility::Woken { wait, event, resumes }
            }
            (EXHAUSTED, Some(failed), None, None, None, None) => {
                Eligibility::Exhausted { failed, because: Exhaustion::Budget }
            }
            (CHAIN_EXHAUSTED, Some(failed), None, None, None, None) => {
                Eligibility::Exhausted { failed, because: Exhaustion::Causal }
            }
            (STOPPING, Some(interrupted), None, repeats, None, None) => {
                Eligibility::Stopping { interrupted, repeats }
            }
            _ => return None,
        })
    }

    pub(super) fn columns(self) -> [Value<'static>; 6] {
        [
            int(self.word),
            maybe_int(self.failed.map(ExecutionId::number)),
            maybe_time(self.due_at),
            maybe_int(self.event.map(Sequence::number)),
            maybe_int(self.wait.map(WaitId::number)),
            maybe_int(self.resumes.map(ExecutionId::number)),
        ]
    }
}

pub(super) fn hold(columns: &mut Columns<'_>) -> Result<Option<Hold>, StoreError> {
    let because = columns.maybe_word(code::hold_reason_of)?;
    match (because, columns.maybe_text()?, columns.maybe_time()?) {
        (None, None::<String>, None) => Ok(None),
        (Some(because), Some(reason), Some(since)) => Ok(Some(Hold { because, reason, since })),
        _ => Err(columns.corrupt("half a hold")),
    }
}

pub(super) fn hold_columns(hold: Option<&Hold>) -> [Value<'_>; 3] {
    [
        maybe_int(hold.map(|hold| code::hold_reason(hold.because))),
        maybe_text(hold.map(|hold| hold.reason.as_str())),
        maybe_time(hold.map(|hold| hold.since)),
    ]
}
