//! What operators do, and orders to live attempts.

use std::collections::{BTreeMap, VecDeque};

use domain::id::{EventId, ExecutionId, Sequence, WorkId};
use domain::route::CheckpointOutcome;
use domain::text::{DeliveryId, EventType, ScopeName, SourceName};

use super::{Fault, Reference, Refusal, TimerOf, UnderWay};
use crate::driver::{
    Answer, AttemptState, Delivery, EligibilityRecord, InjectAnswer, IntentKind, IntentRecord, IntentState,
    WaitState, WorkWord, delivery,
};

impl Reference {
    /// Ends a Work and everything that could still act for it, together.
    pub(super) fn cancel(&mut self, id: WorkId) -> Result<Answer, Refusal> {
        let state = self.find_work(id).ok_or("unknown_work")?.record.state;
        if state.is_terminal() {
            return Err("terminal_work");
        }
        let live: Vec<_> = self
            .attempts
            .iter()
            .filter(|attempt| attempt.record.work == id && !attempt.record.state.is_terminal())
            .map(|attempt| attempt.record.id)
            .collect();
        for execution in live {
            self.end_attempt(execution, AttemptState::Cancelled);
        }
        if !self.breaks(Fault::CancelKeepsWaits) {
            for wait in self.waits.iter_mut().filter(|wait| wait.record.work == id) {
                if wait.record.state == WaitState::Active {
                    wait.record.state = WaitState::Cancelled;
                }
            }
        }
        if !self.breaks(Fault::CancelKeepsTimers) {
            self.timers.retain(|timer| timer.record.work != id);
        }
        self.subscriptions.retain(|subscription| subscription.work != id);
        let work = self.work_mut(id);
        work.record.state = WorkWord::Cancelled;
        work.record.eligibility = EligibilityRecord::Clear;
        Ok(Answer::Done)
    }

    /// Asks for the next attempt after a failure, whatever stands against it.
    pub(super) fn retry(&mut self, id: WorkId, delivery_id: DeliveryId) -> Result<Answer, Refusal> {
        if let Some(known) = self.manual(&delivery_id) {
            return Ok(Answer::Original(known));
        }
        let state = self.find_work(id).ok_or("unknown_work")?.record.state;
        let last = self.attempts.iter().rfind(|attempt| attempt.record.work == id);
        let last = last.map(|attempt| attempt.record.clone()).ok_or("nothing_to_retry")?;
        match (state, last.state) {
            (WorkWord::Running | WorkWord::Waiting, _) => return Err("running"),
            (WorkWord::Completed | WorkWord::Failed | WorkWord::Cancelled, _) => return Err("terminal_work"),
            (WorkWord::Ready, AttemptState::Failed | AttemptState::Cancelled) => {}
            (
                WorkWord::Ready,
                AttemptState::Launching
                | AttemptState::Running
                | AttemptState::Parked
                | AttemptState::Completed
                | AttemptState::Handoff
                | AttemptState::Waiting,
            ) => return Err("nothing_to_retry"),
        }
        let event = self.control(id, delivery_id, "core.retry.requested", "retry_requested")?;
        self.timers.retain(|timer| timer.of != TimerOf::Failure(last.id));
        self.queue(id, event, &last.binding);
        let now = self.now;
        let work = self.work_mut(id);
        work.record.failures = 0;
        work.record.eligibility = EligibilityRecord::Due(event);
        work.failed = Some(last.id);
        work.queued_at = now;
        Ok(Answer::Accepted(event))
    }

    /// Orders the live attempt of a Work to stop. It is a control, and no input.
    pub(super) fn interrupt(&mut self, id: WorkId, delivery_id: DeliveryId) -> Result<Answer, Refusal> {
        if let Some(known) = self.manual(&delivery_id) {
            return Ok(Answer::Original(known));
        }
        if self.find_work(id).ok_or("unknown_work")?.record.state != WorkWord::Running {
            return Err("not_running");
        }
        let live = self.attempts.iter().find(|attempt| {
            attempt.record.work == id && !attempt.record.state.is_terminal() && attempt.settling.is_none()
        });
        if !live.ok_or("not_running")?.interrupts {
            return Err("unsupported");
        }
        let event = self.control(id, delivery_id, "core.manual.interrupt", "control")?;
        let checkpoint = self.event_mut(event).checkpoint.as_mut();
        checkpoint.expect("a control has its checkpoint").policy = Some("interrupt".to_owned());
        self.intend(IntentKind::Interrupt, event, id);
        Ok(Answer::Accepted(event))
    }

    fn manual(&mut self, delivery_id: &DeliveryId) -> Option<EventId> {
        let known = self
            .events
            .iter_mut()
            .find(|event| event.source.as_str() == "core.manual" && event.delivery == *delivery_id);
        known.map(|event| {
            event.redelivered += 1;
            event.id
        })
    }

    /// An operator's Event about a Work, with its checkpoint. It begins a chain of its own.
    fn control(
        &mut self,
        id: WorkId,
        delivery_id: DeliveryId,
        event_type: &str,
        code: &str,
    ) -> Result<EventId, Refusal> {
        let said = Delivery {
            source: SourceName::known("core.manual"),
            id: delivery_id,
            event_type: EventType::known(event_type),
            scope: self.work(id).record.scope.clone(),
            ..delivery("replaced").to(id)
        };
        let Answer::Accepted(event) = self.accept(said)? else { return Err("said_before") };
        self.mark(event, CheckpointOutcome::Routed, Some(id), Some(code));
        Ok(event)
    }

    /// Presents every intent that is not settled to its own attempt, and to no other. An attempt is asked about one
    /// Event at a time, in order.
    pub(super) fn present(&mut self) {
        let mut orders: BTreeMap<ExecutionId, BTreeMap<Sequence, EventId>> = BTreeMap::new();
        for intent in &self.intents {
            let asked = self.under_way.iter().any(|asked| asked.execution == intent.execution);
            if intent.state == IntentState::Pending && !asked {
                let sequence = self.event(intent.event).sequence;
                orders.entry(intent.execution).or_default().insert(sequence, intent.event);
            }
        }
        for (execution, events) in orders {
            self.carry_out(execution, events.into_values().collect());
        }
    }

    /// Carries orders out until one has to be answered.
    fn carry_out(&mut self, execution: ExecutionId, mut left: VecDeque<EventId>) {
        while let Some(event) = left.pop_front() {
            let at = self.order(execution, event);
            if self.intents[at].state != IntentState::Pending {
                continue;
            }
            let attempt = self.attempt(execution);
            let record = &attempt.record;
            if record.state.is_terminal()
                || record.state == AttemptState::Parked
                || attempt.settling.is_some()
            {
                if !self.comes_to_hear((execution, event), IntentState::Stale) {
                    return;
                }
                self.intents[at].state = IntentState::Stale;
                continue;
            }
            let runs = record.state == AttemptState::Running
                && !record.recovering
                && self.is_live(record.lease_until);
            match self.intents[at].kind {
                // Nobody is asked: it loses its authority, and what it had started is stopped.
                IntentKind::Interrupt => {
                    if !self.comes_to_send((execution, event)) {
                        return;
                    }
                    self.intents[at].attempted = true;
                    if !self.comes_to_hear((execution, event), IntentState::Accepted) {
                        return;
                    }
                    self.intents[at].state = IntentState::Accepted;
                    self.fence(execution, event);
                }
                IntentKind::Inject if runs => {
                    if !self.comes_to_send((execution, event)) {
                        return;
                    }
                    self.intents[at].attempted = true;
                    self.under_way.push(UnderWay { execution, event, left, heard: true });
                    return;
                }
                // It waits until its attempt can be asked.
                IntentKind::Inject => {}
            }
        }
    }

    fn order(&self, execution: ExecutionId, event: EventId) -> usize {
        let of = |intent: &IntentRecord| intent.execution == execution && intent.event == event;
        self.intents.iter().position(of).expect("the order was given")
    }

    /// Records what executors answered, and carries out what comes after it.
    pub(super) fn acknowledge(&mut self, answer: InjectAnswer) {
        while let Some(UnderWay { execution, event, left, heard }) = self.under_way.pop() {
            let at = self.order(execution, event);
            let becomes = match answer {
                // Nobody knows, so it is presented again, or was for an attempt that has ended.
                InjectAnswer::Ambiguous => self.intents[at].state,
                InjectAnswer::Accepted => IntentState::Accepted,
                InjectAnswer::NotAccepting => IntentState::NotAccepting,
            };
            let open = match self.intents[at].state {
                IntentState::Pending => true,
                // What was under way as its attempt ended was delivered or not all the same.
                IntentState::Stale => heard,
                IntentState::Accepted | IntentState::NotAccepting | IntentState::Consumed => false,
            };
            if open && becomes != self.intents[at].state {
                if !self.comes_to_hear((execution, event), becomes) {
                    continue;
                }
                self.intents[at].state = becomes;
            }
            self.carry_out(execution, left);
        }
    }

    /// Ends an attempt that was interrupted. Its Work stays ready, with its input.
    fn fence(&mut self, execution: ExecutionId, by: EventId) {
        self.end_attempt(execution, AttemptState::Cancelled);
        self.attempt_mut(execution).record.interrupted_by = Some(by);
        let (id, now) = (self.attempt(execution).record.work, self.now);
        let work = self.work_mut(id);
        work.record.state = WorkWord::Ready;
        work.queued_at = now;
    }

    /// Lets a scope start nothing more. What runs goes on, and what arrives is routed.
    pub(super) fn pause(&mut self, scope: ScopeName) -> Result<Answer, Refusal> {
        if !self.scopes.contains_key(&scope) {
            return Err("unknown_scope");
        }
        self.paused.insert(scope);
        Ok(Answer::Done)
    }

    /// Takes a pause back.
    pub(super) fn resume(&mut self, scope: &ScopeName) -> Result<Answer, Refusal> {
        if !self.paused.remove(scope) && !self.scopes.contains_key(scope) {
            return Err("unknown_scope");
        }
        Ok(Answer::Done)
    }

    /// Lets a Work go on that an operator had to look at.
    pub(super) fn release(&mut self, id: WorkId) -> Result<Answer, Refusal> {
        let record = &self.find_work(id).ok_or("unknown_work")?.record;
        if record.held.is_none() || record.state.is_terminal() {
            return Err("not_held");
        }
        let now = self.now;
        let work = self.work_mut(id);
        work.record.held = None;
        // While it was held it did not wait for room.
        work.queued_at = now;
        self.release_wait(id)?;
        Ok(Answer::Done)
    }
}
