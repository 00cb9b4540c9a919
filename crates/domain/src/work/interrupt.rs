//! What an interruption does to a Work: its attempt ends, and the next one waits until that has stopped.

use super::{Queue, Work, WorkRefusal};
use crate::id::ExecutionId;
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
        self.rest(pending, Eligibility::Stopping { interrupted: execution }, now);
        Ok(self.bumped())
    }

    /// Lets the next attempt start: nothing of `interrupted` runs any more.
    ///
    /// # Errors
    /// [`WorkRefusal`] when the Work does not wait for that.
    pub fn stopped(mut self, interrupted: ExecutionId, now: Timestamp) -> Result<Self, WorkRefusal> {
        self.require_ready()?;
        match self.eligibility {
            Eligibility::Stopping { interrupted: awaited } if awaited == interrupted => {}
            Eligibility::Clear
            | Eligibility::Backoff { .. }
            | Eligibility::Due { .. }
            | Eligibility::Woken { .. }
            | Eligibility::Exhausted { .. }
            | Eligibility::Stopping { .. } => return Err(WorkRefusal::NotLive),
        }
        let pending = self.queue != Queue::Idle;
        self.rest(pending, Eligibility::Clear, now);
        Ok(self.bumped())
    }
}
