//! Commands in the words of the field, for cases that expect them to be done.

use std::time::Duration;

use domain::id::{Epoch, EventId, ExecutionId, Sequence, WorkId};
use domain::route::CheckpointOutcome;
use domain::text::DeliveryId;

use super::{
    Answer, AttemptRecord, CheckpointRecord, Command, Delivery, Driver, EventRecord, Found, InjectAnswer,
    Registration, ScopeText, Snapshot, TurnEnd, TurnOutcome, WorkRecord, WorkWord, key,
};

impl dyn Driver + '_ {
    /// Does what must be done.
    #[track_caller]
    pub fn must(&mut self, command: Command) -> Answer {
        let said = format!("{command:?}");
        let answer = self.act(command);
        match &answer {
            Answer::Done | Answer::Accepted(_) | Answer::Original(_) | Answer::Attempts(_) => answer,
            Answer::Refused(reason) => panic!("refused with `{reason}`: {said}"),
            Answer::Lacking(what) => panic!("the driver lacks {what}: {said}"),
        }
    }

    /// Does what must be refused; the reason.
    #[track_caller]
    pub fn refused(&mut self, command: Command) -> String {
        let said = format!("{command:?}");
        match self.act(command) {
            Answer::Refused(reason) => reason,
            Answer::Lacking(what) => panic!("the driver lacks {what}: {said}"),
            answer @ (Answer::Done | Answer::Accepted(_) | Answer::Original(_) | Answer::Attempts(_)) => {
                panic!("not refused but {answer:?}: {said}")
            }
        }
    }

    /// Applies one scope.
    #[track_caller]
    pub fn configure(&mut self, scope: ScopeText) {
        self.must(Command::Configure(vec![scope]));
    }

    /// Accepts what must be a new Event.
    #[track_caller]
    pub fn accept(&mut self, delivery: Delivery) -> EventId {
        match self.must(Command::Accept(delivery)) {
            Answer::Accepted(event) => event,
            answer @ (Answer::Done
            | Answer::Original(_)
            | Answer::Attempts(_)
            | Answer::Refused(_)
            | Answer::Lacking(_)) => panic!("not a new Event but {answer:?}"),
        }
    }

    /// Accepts what was accepted before, as the Event of that time.
    #[track_caller]
    pub fn accept_again(&mut self, delivery: Delivery) -> EventId {
        match self.must(Command::Accept(delivery)) {
            Answer::Original(event) => event,
            answer @ (Answer::Done
            | Answer::Accepted(_)
            | Answer::Attempts(_)
            | Answer::Refused(_)
            | Answer::Lacking(_)) => panic!("not the original Event but {answer:?}"),
        }
    }

    /// Routes what can be routed.
    #[track_caller]
    pub fn route(&mut self) {
        self.must(Command::Route);
    }

    /// Accepts a new Event and routes what can be routed.
    #[track_caller]
    pub fn deliver(&mut self, delivery: Delivery) -> EventId {
        let event = self.accept(delivery);
        self.route();
        event
    }

    /// Claims and launches what can be started; which attempts were claimed.
    #[track_caller]
    pub fn start(&mut self) -> Vec<ExecutionId> {
        let claimed = self.attempts(Command::Claim);
        self.must(Command::Launch);
        claimed
    }

    /// Does a command that answers attempts.
    #[track_caller]
    pub fn attempts(&mut self, command: Command) -> Vec<ExecutionId> {
        match self.must(command) {
            Answer::Attempts(attempts) => attempts,
            answer @ (Answer::Done
            | Answer::Accepted(_)
            | Answer::Original(_)
            | Answer::Refused(_)
            | Answer::Lacking(_)) => panic!("no attempts but {answer:?}"),
        }
    }

    /// Starts exactly one attempt.
    #[track_caller]
    pub fn start_one(&mut self) -> ExecutionId {
        let started = self.start();
        assert_eq!(started.len(), 1, "one attempt starts");
        started[0]
    }

    /// A Work of one key whose first attempt runs.
    #[track_caller]
    pub fn running(&mut self, id: &str) -> (WorkId, ExecutionId) {
        self.deliver(super::delivery(&format!("first of {id}")).key(id));
        let execution = self.start_one();
        (self.owner(id), execution)
    }

    /// Ends a turn under the epoch in force.
    #[track_caller]
    pub fn end(&mut self, execution: ExecutionId, end: TurnEnd) {
        let epoch = self.attempt(execution).epoch;
        self.must(Command::Report { execution, epoch, end });
    }

    /// Ends a turn that waits.
    #[track_caller]
    pub fn wait(&mut self, execution: ExecutionId, registration: Registration) {
        self.end(execution, TurnEnd::of(TurnOutcome::Waiting(registration)));
    }

    /// Reports under an epoch that must have no authority, and sees that nothing changes.
    #[track_caller]
    pub fn stale(&mut self, execution: ExecutionId, epoch: Epoch, end: TurnEnd) {
        let before = self.snapshot();
        self.refused(Command::Report { execution, epoch, end });
        let after = self.snapshot();
        assert_eq!(after.works, before.works, "a report without authority changes no Work");
        assert_eq!(after.attempts, before.attempts, "a report without authority changes no attempt");
        assert_eq!(after.events, before.events, "a report without authority announces nothing");
    }

    /// Lets time pass.
    #[track_caller]
    pub fn advance(&mut self, by: Duration) {
        self.must(Command::Advance(by));
    }

    /// Lets timers fire that are due.
    #[track_caller]
    pub fn fire(&mut self) {
        self.must(Command::Fire);
    }

    /// Presents intents, which are answered like this.
    #[track_caller]
    pub fn dispatch(&mut self, answer: InjectAnswer) {
        self.must(Command::Dispatch(answer));
    }

    /// Recovers what lost its lease; which attempts.
    #[track_caller]
    pub fn recover(&mut self, found: Found) -> Vec<ExecutionId> {
        self.attempts(Command::Recover(found))
    }

    /// Asks for the next attempt; the Event of it.
    #[track_caller]
    pub fn retry(&mut self, work: WorkId, id: &str) -> EventId {
        match self.must(Command::Retry { work, delivery: DeliveryId::known(id) }) {
            Answer::Accepted(event) | Answer::Original(event) => event,
            answer @ (Answer::Done | Answer::Attempts(_) | Answer::Refused(_) | Answer::Lacking(_)) => {
                panic!("no Event but {answer:?}")
            }
        }
    }

    /// The place of the last accepted Event.
    pub fn last(&mut self) -> Sequence {
        self.snapshot().events.last().map_or(Sequence::ZERO, |event| event.sequence)
    }

    /// A Work.
    #[track_caller]
    pub fn work(&mut self, id: WorkId) -> WorkRecord {
        self.snapshot().work(id).clone()
    }

    /// The owner of a key.
    #[track_caller]
    pub fn owner(&mut self, id: &str) -> WorkId {
        self.snapshot().owner(id).expect("the key has an owner").id
    }

    /// An attempt.
    #[track_caller]
    pub fn attempt(&mut self, id: ExecutionId) -> AttemptRecord {
        self.snapshot().attempt(id).clone()
    }

    /// What became of an Event; none while it is not routed.
    #[track_caller]
    pub fn outcome(&mut self, id: EventId) -> Option<CheckpointOutcome> {
        self.snapshot().event(id).checkpoint.as_ref().map(|checkpoint| checkpoint.outcome)
    }
}

impl Snapshot {
    /// A Work.
    #[track_caller]
    pub fn work(&self, id: WorkId) -> &WorkRecord {
        self.works.iter().find(|work| work.id == id).expect("the Work is there")
    }

    /// The owner of a key.
    pub fn owner(&self, id: &str) -> Option<&WorkRecord> {
        self.works.iter().find(|work| work.keys.contains(&key(id)))
    }

    /// An attempt.
    #[track_caller]
    pub fn attempt(&self, id: ExecutionId) -> &AttemptRecord {
        self.attempts.iter().find(|attempt| attempt.id == id).expect("the attempt is there")
    }

    /// The attempts of a Work, in the order of their numbers.
    pub fn attempts_of(&self, work: WorkId) -> Vec<&AttemptRecord> {
        self.attempts.iter().filter(|attempt| attempt.work == work).collect()
    }

    /// An Event.
    #[track_caller]
    pub fn event(&self, id: EventId) -> &EventRecord {
        self.events.iter().find(|event| event.id == id).expect("the Event is there")
    }

    /// The Events of a type.
    pub fn events_of(&self, event_type: &str) -> Vec<&EventRecord> {
        self.events.iter().filter(|event| event.event_type.as_str() == event_type).collect()
    }

    /// The checkpoint of an Event.
    #[track_caller]
    pub fn checkpoint(&self, id: EventId) -> &CheckpointRecord {
        self.event(id).checkpoint.as_ref().expect("the Event is routed")
    }

    /// How many Works are in a state.
    pub fn count(&self, state: WorkWord) -> usize {
        self.works.iter().filter(|work| work.state == state).count()
    }
}
