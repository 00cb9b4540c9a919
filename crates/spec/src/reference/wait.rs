//! Waits and timers: what is waited for, and exactly one wake.

use std::time::Duration;

use domain::event::Key;
use domain::id::{EventId, ExecutionId, Sequence, WorkId};
use domain::route::CheckpointOutcome;
use domain::text::{DeliveryId, EventType, SourceName};

use super::{Fault, Reference, Refusal, Timer, TimerOf, Wait};
use crate::driver::{
    AttemptState, Delivery, EligibilityRecord, EventRecord, Registration, TimerKind, TimerRecord, WaitRecord,
    WaitState, WorkWord, delivery,
};

/// How long a timeout waits that something accepted comes before.
const BEHIND: Duration = Duration::from_secs(1);

impl Reference {
    /// A registration names keys of its Work, and a watermark that was accepted.
    pub(super) fn check_registration(
        &self,
        execution: ExecutionId,
        registration: &Registration,
    ) -> Result<(), Refusal> {
        if registration.after > self.last_sequence() {
            return Err("watermark_beyond_history");
        }
        let own = self.keys_to(self.attempt(execution).record.work);
        if registration.keys.iter().any(|key| !own.contains(key)) {
            return Err("foreign_key");
        }
        if registration.keys.is_empty() && registration.timeout.is_none() {
            return Err("endless");
        }
        Ok(())
    }

    /// Parks an attempt, or ends it where nothing could resume it, and looks at what is accepted already.
    pub(super) fn park(&mut self, execution: ExecutionId, registration: Registration) {
        let (id, binding, resumes) = {
            let attempt = self.attempt(execution);
            (attempt.record.work, attempt.record.binding.clone(), attempt.resumes)
        };
        if resumes {
            let attempt = self.attempt_mut(execution);
            attempt.record.state = AttemptState::Parked;
            attempt.record.lease_until = None;
            attempt.record.recovering = false;
            self.retire_intents(execution);
            for asked in self.under_way.iter_mut().filter(|asked| asked.execution == execution) {
                asked.heard = false;
            }
        } else {
            self.end_attempt(execution, AttemptState::Waiting);
        }
        let work = self.work_mut(id);
        work.record.state = WorkWord::Waiting;
        // A turn that ends to wait has not failed.
        work.record.failures = 0;
        let number = self.number();
        if let Some(timeout) = registration.timeout {
            let record = TimerRecord { due_at: self.now.after(timeout), work: id, kind: TimerKind::Wait };
            self.timers.push(Timer { record, of: TimerOf::Wait(number) });
        }
        let record = WaitRecord {
            work: id,
            execution,
            keys: registration.keys,
            types: registration.types,
            after: registration.after.max(self.seen_by(execution)),
            state: WaitState::Active,
        };
        self.waits.push(Wait { number, record, timeout: None, binding });
        self.announce_turn(execution);
        self.arbitrate(id);
    }

    /// Up to where an attempt has seen everything: what it took in, and nothing from what is pending on.
    fn seen_by(&self, execution: ExecutionId) -> Sequence {
        let record = &self.attempt(execution).record;
        let taken = record.consumed.iter().map(|event| self.event(*event).sequence).max();
        let taken = taken.unwrap_or(Sequence::ZERO);
        let pending = self.work(record.work).record.pending.first();
        let unseen = pending.map(|event| self.event(*event).sequence.number() - 1);
        unseen.map_or(taken, |unseen| taken.min(Sequence::from_number(unseen)))
    }

    /// Whether an Event is what a Wait waits for.
    fn matches(&self, wait: &Wait, event: &EventRecord) -> bool {
        if wait.timeout == Some(event.id) {
            return true;
        }
        let inclusive = self.breaks(Fault::WatermarkIsInclusive) && event.sequence == wait.record.after;
        let has_key = |key: &Key| wait.record.keys.contains(key);
        let is_lost = event.checkpoint.as_ref().is_some_and(|checkpoint| match checkpoint.outcome {
            CheckpointOutcome::Routed => checkpoint.work != Some(wait.record.work),
            // What no route takes is news all the same.
            CheckpointOutcome::Unmatched => false,
            CheckpointOutcome::Dropped | CheckpointOutcome::Terminal | CheckpointOutcome::Quarantined => true,
        });
        let is_own =
            event.emitted_by.is_some_and(|execution| self.attempt(execution).record.work == wait.record.work);
        let is_consumed = !inclusive
            && self.attempts.iter().any(|attempt| {
                attempt.record.work == wait.record.work && attempt.record.consumed.contains(&event.id)
            });
        (event.sequence > wait.record.after || inclusive)
            && event.key.as_ref().is_some_and(has_key)
            && (wait.record.types.is_empty() || wait.record.types.contains(&event.event_type))
            && event.work.is_none_or(|work| work == wait.record.work)
            && event.scope == self.work(wait.record.work).record.scope
            && !is_lost
            && !is_own
            && !is_consumed
    }

    /// Whether a Work waits for an Event.
    pub(super) fn is_waited_for(&self, id: WorkId, event: &EventRecord) -> bool {
        let active = |wait: &&Wait| wait.record.work == id && wait.record.state == WaitState::Active;
        self.waits.iter().find(active).is_some_and(|wait| self.matches(wait, event))
    }

    /// Wakes a Work by the first accepted Event that its Wait matches, if there is one.
    pub(super) fn arbitrate(&mut self, id: WorkId) {
        if self.breaks(Fault::WakeIsSuppressed) {
            return;
        }
        let active = |wait: &&Wait| wait.record.work == id && wait.record.state == WaitState::Active;
        let Some(wait) = self.waits.iter().find(active).cloned() else { return };
        let first = self.events.iter().find(|event| self.matches(&wait, event));
        // What is not routed yet ends it in its turn, if it still is news then.
        if let Some(winner) = first.filter(|event| event.checkpoint.is_some()).map(|event| event.id) {
            self.wake(&wait, winner);
        }
    }

    fn wake(&mut self, wait: &Wait, winner: EventId) {
        let (id, now) = (wait.record.work, self.now);
        for known in self.waits.iter_mut().filter(|known| known.number == wait.number) {
            known.record.state = WaitState::Woken(winner);
        }
        self.timers.retain(|timer| timer.of != TimerOf::Wait(wait.number));
        self.queue(id, winner, &wait.binding);
        let work = self.work_mut(id);
        work.record.state = WorkWord::Ready;
        work.woken_by = Some(winner);
        // Whatever held it as its timeout was refused, a fact has come first.
        work.record.held = None;
        work.queued_at = now;
        // What goes on is charged to the winner's chain.
        let said = Delivery {
            source: SourceName::known("core"),
            id: DeliveryId::known(&format!("woken/{}", wait.number)),
            event_type: EventType::known("core.wait.woken"),
            scope: self.work(id).record.scope.clone(),
            emitted_by: Some(wait.record.execution),
            ..delivery("replaced").to(id).because(winner)
        };
        match self.announce(said) {
            Ok(bridge) => self.work_mut(id).bridge = Some(bridge),
            Err(reason) => self.work_mut(id).record.held = Some(reason.to_owned()),
        }
    }

    /// Fires every timer that is due, the earliest first.
    pub(super) fn fire(&mut self) {
        loop {
            let due = self.timers.iter().filter(|timer| timer.record.due_at <= self.now);
            let Some(timer) = due.min_by_key(|timer| timer.record.due_at).cloned() else { return };
            if !self.comes_to() {
                return;
            }
            self.timers.retain(|other| other.of != timer.of);
            match timer.of {
                TimerOf::Failure(failed) => self.fire_retry(timer.record.work, failed),
                TimerOf::Wait(number) => self.fire_timeout(number),
            }
        }
    }

    fn fire_retry(&mut self, id: WorkId, failed: ExecutionId) {
        let work = self.work(id);
        let waits_it_out = work.record.state == WorkWord::Ready
            && matches!(work.record.eligibility, EligibilityRecord::Backoff(_))
            && work.failed == Some(failed);
        if !waits_it_out {
            return;
        }
        let (trigger, binding) = {
            let failed = self.attempt(failed);
            (failed.cause, failed.record.binding.clone())
        };
        let said = self.say(&format!("retry/{failed}"), "core.retry.due", id, Some(trigger));
        let now = self.now;
        match said {
            Ok(event) => {
                self.queue(id, event, &binding);
                let work = self.work_mut(id);
                work.record.eligibility = EligibilityRecord::Due(event);
                work.queued_at = now;
            }
            Err(_recorded) => self.work_mut(id).record.eligibility = EligibilityRecord::Exhausted,
        }
    }

    fn fire_timeout(&mut self, number: i64) {
        let Some(wait) = self.waits.iter().find(|wait| wait.number == number).cloned() else { return };
        let id = wait.record.work;
        // What was accepted before wins, even at the deadline.
        if !self.breaks(Fault::DeadlineWins) {
            self.arbitrate(id);
        }
        let active = |wait: &&Wait| wait.number == number && wait.record.state == WaitState::Active;
        if self.waits.iter().find(active).is_none() {
            return;
        }
        let unrouted = |event: &&EventRecord| event.checkpoint.is_none() && self.matches(&wait, event);
        if !self.breaks(Fault::DeadlineWins) && self.events.iter().any(|event| unrouted(&event)) {
            // What is accepted comes first, and has to be routed.
            let record = TimerRecord { due_at: self.now.after(BEHIND), work: id, kind: TimerKind::Wait };
            self.timers.push(Timer { record, of: TimerOf::Wait(number) });
            return;
        }
        let cause = self.attempt(wait.record.execution).cause;
        let event = match self.say(&format!("wait/{number}"), "core.wait.timeout", id, Some(cause)) {
            Ok(event) => event,
            Err(reason) => {
                self.work_mut(id).record.held = Some(reason.to_owned());
                return;
            }
        };
        for known in self.waits.iter_mut().filter(|known| known.number == number) {
            known.timeout = Some(event);
        }
        if self.breaks(Fault::DeadlineWins) {
            self.wake(&wait, event);
        } else {
            self.arbitrate(id);
        }
    }

    /// Ends a Wait whose timeout was refused, on an operator's word, which needs no room in a chain.
    pub(super) fn release_wait(&mut self, id: WorkId) -> Result<(), Refusal> {
        let active = |wait: &&Wait| wait.record.work == id && wait.record.state == WaitState::Active;
        let Some(wait) = self.waits.iter().find(active).cloned() else { return Ok(()) };
        let event = self.say(&format!("wait/{}", wait.number), "core.wait.timeout", id, None)?;
        self.wake(&wait, event);
        Ok(())
    }
}
