//! What an interruption does to a Work: its attempt ends, and the next one waits until that has stopped.

use super::{Hold, Queue, Work, WorkRefusal};
use crate::id::{ExecutionId, Sequence};
use crate::retry::Eligibility;
use crate::time::Timestamp;

impl Work {
    /// Ends the live attempt for an Event and stays nonterminal. The next attempt waits until it is established
    /// that nothing of this one runs; see [`Self::stopped`]. It counts neither as a failure nor as a success.
    ///
    /// # Errors
    /// [`WorkRefusal`] when the Work has ended or `execution` is not its live attempt.
    pub fn interrupt(
        mut self,
        execution: ExecutionId,
        pending: bool,
        now: Timestamp,
    ) -> Result<Self, WorkRefusal> {
        self.require_live(execution)?;
        self.rest(pending, Eligibility::Stopping { interrupted: execution, repeats: None }, now);
        Ok(self.bumped())
    }

    /// Ends the live attempt in the middle of its turn, for a reason that holds the Work. When the hold is over and
    /// nothing of the attempt runs, the next one repeats it: it goes by `trigger` and is given what this one took in.
    ///
    /// # Errors
    /// [`WorkRefusal`] when the Work has ended or `execution` is not its live attempt.
    pub fn stop_and_hold(
        mut self,
        execution: ExecutionId,
        trigger: Sequence,
        hold: Hold,
        now: Timestamp,
    ) -> Result<Self, WorkRefusal> {
        self.require_live(execution)?;
        self.hold = Some(hold);
        self.let_through = false;
        self.rest(true, Eligibility::Stopping { interrupted: execution, repeats: Some(trigger) }, now);
        Ok(self.bumped())
    }

    /// Lets the next attempt start: nothing of `interrupted` runs any more.
    ///
    /// # Errors
    /// [`WorkRefusal`] when the Work does not wait for that.
    pub fn stopped(mut self, interrupted: ExecutionId, now: Timestamp) -> Result<Self, WorkRefusal> {
        self.require_ready()?;
        let next = match self.eligibility {
            Eligibility::Stopping { interrupted: awaited, repeats } if awaited == interrupted => {
                repeats.map_or(Eligibility::Clear, |event| Eligibility::Due { failed: interrupted, event })
            }
            Eligibility::Clear
            | Eligibility::Backoff { .. }
            | Eligibility::Due { .. }
            | Eligibility::Woken { .. }
            | Eligibility::Exhausted { .. }
            | Eligibility::Stopping { .. } => return Err(WorkRefusal::NotLive),
        };
        let pending = self.queue != Queue::Idle;
        self.rest(pending, next, now);
        Ok(self.bumped())
    }
}
