//! Attempts: claims, results, leases and recovery.

use std::time::Duration;

use domain::id::{Epoch, EventId, ExecutionId, WorkId};
use domain::text::{DeliveryId, EventType, ScopeName, SourceName};
use domain::time::Timestamp;
use domain::work::Lifecycle;

use super::{Attempt, Fault, LEASE, Reference, Refusal, Timer, TimerOf, Work};
use crate::driver::{
    Answer, AttemptRecord, AttemptState, Capability, Delivery, EligibilityRecord, Found, IntentKind,
    IntentState, TimerKind, TimerRecord, TurnEnd, TurnOutcome, WorkWord, delivery,
};

impl Reference {
    /// Claims every Work that may start, in the order in which they came to wait.
    pub(super) fn claim(&mut self) -> Vec<ExecutionId> {
        let mut ready: Vec<(Timestamp, i64, WorkId)> = self
            .works
            .iter()
            .filter(|work| {
                let twice = self.breaks(Fault::ClaimsTwice) && work.record.state == WorkWord::Running;
                let eligible = match work.record.eligibility {
                    EligibilityRecord::Clear | EligibilityRecord::Due(_) => true,
                    EligibilityRecord::Backoff(_) | EligibilityRecord::Exhausted => false,
                };
                let has_input = !work.record.pending.is_empty();
                let ready = work.record.state == WorkWord::Ready && eligible && has_input;
                let paused = self.paused.contains(&work.record.scope);
                (ready || twice) && work.record.held.is_none() && !paused
            })
            .map(|work| (work.queued_at, work.made, work.record.id))
            .collect();
        ready.sort();
        let mut claimed = Vec::new();
        for (_since, _made, work) in ready {
            let room = self.has_room(&self.work(work).record.scope) && self.has_its_key(work);
            if room && self.comes_to() {
                claimed.push(self.claim_one(work));
            }
        }
        claimed
    }

    fn has_room(&self, scope: &ScopeName) -> bool {
        let Some(limit) = self.scopes.get(scope).map(|scope| scope.text.concurrency) else { return false };
        let live = self.attempts.iter().filter(|attempt| {
            let active = matches!(attempt.record.state, AttemptState::Launching | AttemptState::Running);
            active && self.work(attempt.record.work).record.scope == *scope
        });
        live.count() < usize::try_from(limit).unwrap_or(usize::MAX)
    }

    /// Whether no Work of its scope runs under the key of a Work.
    fn has_its_key(&self, id: WorkId) -> bool {
        let Work { record, concurrency: Some(key), .. } = self.work(id) else { return true };
        !self.works.iter().any(|other| {
            let same = other.record.scope == record.scope && other.concurrency == Some(*key);
            same && other.record.state == WorkWord::Running
        })
    }

    fn claim_one(&mut self, id: WorkId) -> ExecutionId {
        let work = self.work(id).clone();
        let until = self.now.after(LEASE);
        let cause = work.bridge.or(work.woken_by);
        let parked = self
            .attempts
            .iter_mut()
            .find(|attempt| attempt.record.work == id && attempt.record.state == AttemptState::Parked);
        let execution = if let Some(parked) = parked {
            parked.record.state = AttemptState::Launching;
            parked.record.epoch = parked.record.epoch.next();
            parked.record.lease_until = Some(until);
            parked.record.resumed_by = work.woken_by;
            parked.cause = cause.unwrap_or(parked.cause);
            parked.record.consumed.extend(&work.record.pending);
            parked.record.id
        } else {
            let trigger = match work.record.eligibility {
                EligibilityRecord::Due(event) => Some(event),
                EligibilityRecord::Clear | EligibilityRecord::Backoff(_) | EligibilityRecord::Exhausted => {
                    None
                }
            };
            let first = work.record.pending.first().copied();
            // Only a broken reference claims a Work without input.
            let any = self.inputs.keys().find(|(of, _event)| *of == id).map(|(_of, event)| *event);
            let trigger = trigger.or(work.woken_by).or(first).or(any).expect("a Work had input");
            let binding = self.inputs[&(id, trigger)].clone();
            let scope = &self.scopes[&work.record.scope];
            let text = scope.bindings.get(&binding);
            let can = |what| text.is_some_and(|text| text.can.contains(&what));
            let (resumes, interrupts) = (can(Capability::Resume), can(Capability::Interrupt));
            let label = text.map(|text| text.label.clone()).unwrap_or_default();
            let number = self.attempts.iter().filter(|attempt| attempt.record.work == id).count() + 1;
            let execution = ExecutionId::from_number(self.number());
            self.attempts.push(Attempt {
                record: AttemptRecord {
                    id: execution,
                    work: id,
                    number: i64::try_from(number).expect("attempts are few"),
                    state: AttemptState::Launching,
                    epoch: Epoch::FIRST,
                    lease_until: Some(until),
                    recovering: false,
                    trigger,
                    resumed_by: None,
                    retry_of: work.failed,
                    interrupted_by: None,
                    consumed: work.record.pending.clone(),
                    binding,
                    label: None,
                },
                cause: cause.unwrap_or(trigger),
                settling: None,
                label,
                resumes,
                interrupts,
            });
            execution
        };
        let work = self.work_mut(id);
        work.record.state = WorkWord::Running;
        work.record.pending.clear();
        work.record.eligibility = EligibilityRecord::Clear;
        work.woken_by = None;
        work.bridge = None;
        work.failed = None;
        execution
    }

    /// Hands what is claimed to its executor, which records what it starts.
    pub(super) fn launch(&mut self) {
        let until = self.now.after(LEASE);
        for at in 0..self.attempts.len() {
            let record = &self.attempts[at].record;
            if record.state == AttemptState::Launching
                && self.comes_to_launch(record.id)
                && !record.recovering
                && self.is_live(record.lease_until)
            {
                let attempt = &mut self.attempts[at];
                attempt.record.state = AttemptState::Running;
                attempt.record.lease_until = Some(until);
                attempt.record.label = Some(attempt.label.clone());
            }
        }
    }

    /// Whether authority that ends then holds now. At the moment it ends, it is over.
    pub(super) fn is_live(&self, until: Option<Timestamp>) -> bool {
        let inclusive = self.breaks(Fault::ExpiryIsInclusive);
        until.is_some_and(|until| self.now < until || (inclusive && self.now == until))
    }

    fn is_active(attempt: &Attempt) -> bool {
        let active = matches!(attempt.record.state, AttemptState::Launching | AttemptState::Running);
        active && attempt.settling.is_none()
    }

    /// A report, after which outcomes are settled that wait for nothing any more: a crash may have left some.
    pub(super) fn reported(
        &mut self,
        execution: ExecutionId,
        epoch: Epoch,
        end: TurnEnd,
    ) -> Result<Answer, Refusal> {
        let answer = self.report(execution, epoch, end)?;
        self.settle_waiting();
        Ok(answer)
    }

    fn report(&mut self, execution: ExecutionId, epoch: Epoch, end: TurnEnd) -> Result<Answer, Refusal> {
        let attempt = self.find_attempt(execution).ok_or("unknown_run")?;
        if !Self::is_active(attempt) {
            return Err("ended");
        }
        if attempt.record.state != AttemptState::Running || attempt.record.recovering {
            return Err("nobody_follows");
        }
        if attempt.record.epoch != epoch && !self.breaks(Fault::EpochIsSkipped) {
            return Err("stale_epoch");
        }
        if !self.is_live(attempt.record.lease_until) {
            return Err("lease_expired");
        }
        match end.outcome.clone() {
            TurnOutcome::Waiting(registration) => {
                self.prove(execution, &end.consumed);
                match self.check_registration(execution, &registration) {
                    Ok(()) => self.park(execution, registration),
                    // Its process has ended its turn, and nothing it asked for could wake it.
                    Err(_refusal) => self.settle(execution, TurnEnd::failed()),
                }
            }
            TurnOutcome::Completed | TurnOutcome::Handoff | TurnOutcome::Failed { .. } => {
                self.prove(execution, &end.consumed);
                self.settle(execution, end);
            }
        }
        Ok(Answer::Done)
    }

    /// Consumes injected input that a result proves to have been taken in, whatever the outcome.
    fn prove(&mut self, execution: ExecutionId, proved: &[EventId]) {
        let work = self.attempt(execution).record.work;
        let without_proof = self.breaks(Fault::ConsumedWithoutProof);
        for at in 0..self.intents.len() {
            let intent = self.intents[at].clone();
            let open = match intent.state {
                IntentState::Pending | IntentState::Accepted => intent.attempted,
                IntentState::NotAccepting | IntentState::Consumed | IntentState::Stale => false,
            };
            let proves = proved.contains(&intent.event) || without_proof;
            let pending = self.work(work).record.pending.contains(&intent.event);
            if intent.execution == execution && intent.kind == IntentKind::Inject && open && proves && pending
            {
                self.intents[at].state = IntentState::Consumed;
                self.work_mut(work).record.pending.retain(|event| *event != intent.event);
                self.attempt_mut(execution).record.consumed.push(intent.event);
            }
        }
    }

    /// Ends an attempt, or leaves its outcome to wait until what is accepted for its Work is routed.
    fn settle(&mut self, execution: ExecutionId, end: TurnEnd) {
        let id = self.attempt(execution).record.work;
        let (lifecycle, pending) = {
            let work = self.work(id);
            (work.lifecycle, !work.record.pending.is_empty())
        };
        let failures = self.work(id).record.failures + 1;
        let (state, after) = match &end.outcome {
            TurnOutcome::Failed { retry_after_seconds } => {
                let after = self.after_failure(id, failures, *retry_after_seconds);
                (AttemptState::Failed, after)
            }
            TurnOutcome::Completed => match lifecycle {
                Lifecycle::Once | Lifecycle::RunOnce if !pending => {
                    (AttemptState::Completed, After::Ends(WorkWord::Completed))
                }
                Lifecycle::Once | Lifecycle::RunOnce | Lifecycle::Standing => {
                    (AttemptState::Completed, After::Goes(EligibilityRecord::Clear))
                }
            },
            TurnOutcome::Handoff | TurnOutcome::Waiting(_) => match lifecycle {
                Lifecycle::RunOnce if !pending => (AttemptState::Handoff, After::Ends(WorkWord::Completed)),
                Lifecycle::Once | Lifecycle::RunOnce | Lifecycle::Standing => {
                    (AttemptState::Handoff, After::Goes(EligibilityRecord::Clear))
                }
            },
        };
        let failed = state == AttemptState::Failed;
        if matches!(after, After::Ends(_)) && self.is_expecting(id) {
            let attempt = self.attempt_mut(execution);
            attempt.record.state = AttemptState::Running;
            attempt.record.lease_until = None;
            attempt.record.recovering = false;
            attempt.settling = Some(end);
            return;
        }
        self.end_attempt(execution, state);
        let now = self.now;
        let work = self.work_mut(id);
        work.record.failures = if failed { failures } else { 0 };
        work.queued_at = now;
        match after {
            After::Ends(state) => {
                work.record.state = state;
                work.record.eligibility = EligibilityRecord::Clear;
                self.subscriptions.retain(|subscription| subscription.work != id);
            }
            After::Goes(eligibility) => {
                work.record.state = WorkWord::Ready;
                work.record.eligibility = eligibility;
                work.failed = (eligibility != EligibilityRecord::Clear).then_some(execution);
                if let EligibilityRecord::Backoff(due_at) = eligibility {
                    let record = TimerRecord { due_at, work: id, kind: TimerKind::Retry };
                    self.timers.push(Timer { record, of: TimerOf::Failure(execution) });
                }
            }
        }
        self.announce_turn(execution);
    }

    fn after_failure(&self, id: WorkId, failures: u32, hint: Option<u64>) -> After {
        let work = self.work(id);
        let week = 7 * 24 * 60 * 60;
        let hint = hint.filter(|seconds| (1..=week).contains(seconds)).map(Duration::from_secs);
        let wait = |delay: Duration| After::Goes(EligibilityRecord::Backoff(self.now.after(delay)));
        if work.lifecycle == Lifecycle::Standing {
            return hint.map_or(After::Goes(EligibilityRecord::Clear), wait);
        }
        let scope = self.scopes.get(&work.record.scope);
        let budget = scope.map_or(3, |scope| scope.text.failure_budget);
        if failures < budget {
            let usual = Duration::from_mins(5 * u64::from(failures)).min(Duration::from_hours(1));
            return wait(hint.unwrap_or(usual));
        }
        let terminal = scope.is_some_and(|scope| scope.text.terminal_on_exhaustion);
        if terminal && work.record.pending.is_empty() {
            return After::Ends(WorkWord::Failed);
        }
        After::Goes(EligibilityRecord::Exhausted)
    }

    /// Whether something accepted that leads to a Work is not routed yet.
    fn is_expecting(&self, id: WorkId) -> bool {
        let lanes = self.lanes_of(id);
        self.events.iter().any(|event| {
            event.checkpoint.is_none() && Self::lane(event).is_some_and(|lane| lanes.contains(&lane))
        })
    }

    /// Settles outcomes that waited for input to be routed. True when there was one.
    pub(super) fn settle_waiting(&mut self) -> bool {
        let mut settled = false;
        for at in 0..self.attempts.len() {
            let id = self.attempts[at].record.id;
            if self.attempts[at].settling.is_some() && self.comes_to() {
                let end = self.attempts[at].settling.take().expect("it was there a line ago");
                self.settle(id, end);
                settled |= self.attempts[at].settling.is_none();
            }
        }
        settled
    }

    /// Takes an attempt's authority away for good. What was still to be presented to it never will be.
    pub(super) fn end_attempt(&mut self, execution: ExecutionId, state: AttemptState) {
        let attempt = self.attempt_mut(execution);
        attempt.record.state = state;
        attempt.record.lease_until = None;
        attempt.record.recovering = false;
        attempt.settling = None;
        self.retire_intents(execution);
    }

    pub(super) fn retire_intents(&mut self, execution: ExecutionId) {
        for intent in self.intents.iter_mut().filter(|intent| intent.execution == execution) {
            if intent.state == IntentState::Pending {
                intent.state = IntentState::Stale;
            }
        }
    }

    pub(super) fn announce_turn(&mut self, execution: ExecutionId) {
        let Attempt { record, cause, .. } = self.attempt(execution).clone();
        let said = Delivery {
            source: SourceName::known("core"),
            id: DeliveryId::known(&format!("turn/{}/{}", record.id, record.epoch)),
            event_type: EventType::known("core.turn.ended"),
            scope: self.work(record.work).record.scope.clone(),
            emitted_by: Some(record.id),
            ..delivery("replaced").to(record.work).because(cause)
        };
        // Whether its chain takes it is nobody's concern.
        let _announced = self.announce(said);
    }

    /// Renews the lease of every attempt that somebody still speaks for.
    pub(super) fn renew(&mut self) -> Vec<ExecutionId> {
        let until = self.now.after(LEASE);
        let mut renewed = Vec::new();
        for at in 0..self.attempts.len() {
            let attempt = &self.attempts[at];
            // Of one that may still run without anybody following it, nobody speaks.
            let followed = Self::is_active(attempt) && !attempt.record.recovering;
            let later = attempt.record.lease_until < Some(until);
            let id = attempt.record.id;
            if followed && later && self.is_live(attempt.record.lease_until) && self.comes_to() {
                renewed.push(id);
                self.attempts[at].record.lease_until = Some(until);
            }
        }
        renewed
    }

    /// Ends the leases of a process that ends, so that the next one need not wait for them.
    pub(super) fn let_go(&mut self) {
        for at in 0..self.attempts.len() {
            let attempt = &self.attempts[at];
            if Self::is_active(attempt) && self.is_live(attempt.record.lease_until) {
                self.attempts[at].record.lease_until = Some(self.now);
            }
        }
    }

    /// Claims attempts whose lease is over at a higher epoch, and does what their executors find.
    pub(super) fn recover(&mut self, found: &Found) -> Vec<ExecutionId> {
        let mut recovered = Vec::new();
        for at in 0..self.attempts.len() {
            let attempt = &self.attempts[at];
            if Self::is_active(attempt) && !self.is_live(attempt.record.lease_until) {
                recovered.push(attempt.record.id);
            }
        }
        // Those that were lost first come first.
        recovered.sort_by_key(|execution| self.attempt(*execution).record.lease_until);
        let until = self.now.after(LEASE);
        if !recovered.is_empty() && !self.comes_to() {
            return Vec::new();
        }
        for execution in &recovered {
            let attempt = self.attempt_mut(*execution);
            attempt.record.epoch = attempt.record.epoch.next();
            attempt.record.lease_until = Some(until);
            attempt.record.recovering = true;
        }
        for execution in &recovered {
            if !self.comes_to_find(*execution) {
                continue;
            }
            let attempt = self.attempt_mut(*execution);
            let epoch = attempt.record.epoch;
            match found {
                Found::Alive => {
                    attempt.record.state = AttemptState::Running;
                    attempt.record.recovering = false;
                }
                Found::NothingStarted => {
                    attempt.record.state = AttemptState::Launching;
                    attempt.record.recovering = false;
                }
                Found::Finished(end) => {
                    attempt.record.state = AttemptState::Running;
                    attempt.record.recovering = false;
                    // One that claims what it may not is left to be asked again.
                    let _refused = self.report(*execution, epoch, end.clone());
                }
                Found::NotAdoptable { stopped: true } => self.settle(*execution, TurnEnd::failed()),
                // It may still run, so it keeps its place.
                Found::NotAdoptable { stopped: false } => {}
            }
        }
        self.settle_waiting();
        recovered
    }
}

/// What the end of an attempt makes of its Work.
enum After {
    /// It ends.
    Ends(WorkWord),
    /// It goes on, under this.
    Goes(EligibilityRecord),
}
