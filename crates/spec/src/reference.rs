//! The reference: a coordinator in memory that is meant to be read and believed.
//!
//! It has lists and scans, one thread, and no cleverness. It does not share a rule with the code that the cases
//! judge. What it says of a case is what the specification says, until somebody finds a sentence that says
//! otherwise.
//!
//! Commands that are refused change nothing: the state of before is put back, and only what the specification
//! wants kept of a refusal is carried over.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use domain::event::Key;
use domain::id::{EventId, ExecutionId, Generation, Sequence, WorkId};
use domain::text::{BindingName, RouteName, ScopeName};
use domain::time::Timestamp;
use domain::work::Lifecycle;

use crate::driver::{
    Answer, AttemptRecord, Command, Delivery, Driver, EventRecord, IntentRecord, RejectionRecord, Snapshot,
    Subscription, TimerRecord, TurnEnd, WaitRecord, WorkRecord,
};

mod accept;
mod alias;
mod attempt;
mod config;
mod control;
mod crash;
mod fault;
mod line;
mod route;
mod wait;

use self::config::Scope;
use self::crash::Rest;
pub use self::fault::Fault;
pub(crate) use self::line::plain;

/// How long a lease lasts.
const LEASE: Duration = Duration::from_secs(30);

/// Why a command is refused, as a stable word.
type Refusal = &'static str;

/// In which order the reference does what begins at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As it is listed.
    Listed,
    /// The other way round.
    Reversed,
}

/// The reference coordinator.
#[derive(Debug, Clone)]
pub struct Reference {
    order: Order,
    fault: Option<Fault>,
    now: Timestamp,
    /// The last number that was given to anything.
    last: i64,
    generation: i64,
    scopes: BTreeMap<ScopeName, Scope>,
    events: Vec<EventRecord>,
    /// What was handed over of each Event, with what handlers will make of it.
    said: BTreeMap<EventId, Delivery>,
    /// How far each chain may go, by its root.
    bounds: BTreeMap<EventId, Bounds>,
    charged: BTreeMap<(EventId, i64), i64>,
    asked: BTreeMap<EventId, BTreeSet<RouteName>>,
    /// When this process asked about each Event first.
    asked_at: BTreeMap<EventId, i64>,
    open: BTreeSet<&'static str>,
    works: Vec<Work>,
    /// Everything that ever became input of a Work, with the binding that its route names.
    inputs: BTreeMap<(WorkId, EventId), BindingName>,
    attempts: Vec<Attempt>,
    timers: Vec<Timer>,
    waits: Vec<Wait>,
    intents: Vec<IntentRecord>,
    /// What was presented to executors that have not answered yet.
    under_way: Vec<UnderWay>,
    /// What a process that is about to die still does of a command.
    rest: Option<Rest>,
    subscriptions: Vec<Subscription>,
    paused: BTreeSet<ScopeName>,
    rejections: Vec<RejectionRecord>,
}

/// How far a chain may go.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    depth: i64,
    per_minute: i64,
}

#[derive(Debug, Clone)]
struct Work {
    record: WorkRecord,
    lifecycle: Lifecycle,
    /// The key that it does not share with another one that runs.
    concurrency: Option<&'static str>,
    /// When its first Event was first asked about: of Works that came to wait at the same time, the first.
    made: i64,
    /// Since when it stands in the queue.
    queued_at: Timestamp,
    /// The Event that woke it, until it is claimed.
    woken_by: Option<EventId>,
    /// The Event on whose chain it goes on after that.
    bridge: Option<EventId>,
    /// The attempt whose failure it waits out.
    failed: Option<ExecutionId>,
    /// Where it stands in a line of successors, unless it is the first.
    place: Option<Place>,
}

/// A place in a line of successors.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// The first of the line.
    first: WorkId,
    /// The number in it, from 2.
    generation: i64,
}

#[derive(Debug, Clone)]
struct Attempt {
    record: AttemptRecord,
    /// The Event on whose chain its turn publishes.
    cause: EventId,
    /// The outcome that waits to be settled.
    settling: Option<TurnEnd>,
    /// The label of the binding it is pinned to.
    label: String,
    /// Whether that binding can resume.
    resumes: bool,
    /// Whether that binding can interrupt.
    interrupts: bool,
}

#[derive(Debug, Clone)]
struct Timer {
    record: TimerRecord,
    of: TimerOf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimerOf {
    /// The failure of this attempt.
    Failure(ExecutionId),
    /// The Wait of this number.
    Wait(i64),
}

#[derive(Debug, Clone)]
struct Wait {
    number: i64,
    record: WaitRecord,
    /// The Event that its timeout became.
    timeout: Option<EventId>,
    binding: BindingName,
}

/// An Event that an attempt's executor is asked about, and the orders that come after it.
#[derive(Debug, Clone)]
struct UnderWay {
    execution: ExecutionId,
    event: EventId,
    left: VecDeque<EventId>,
    /// Whether its answer is still recorded: not where the turn that was asked ended to wait.
    heard: bool,
}

/// What orders Events that go the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Lane {
    Key(Key),
    Work(WorkId),
}

impl Reference {
    /// An empty one, in the middle of a minute.
    pub fn new(order: Order) -> Self {
        Self {
            order,
            fault: None,
            now: Timestamp::from_micros(1_772_366_400_000_000),
            last: 0,
            generation: 0,
            scopes: BTreeMap::new(),
            events: Vec::new(),
            said: BTreeMap::new(),
            bounds: BTreeMap::new(),
            charged: BTreeMap::new(),
            asked: BTreeMap::new(),
            asked_at: BTreeMap::new(),
            open: BTreeSet::new(),
            works: Vec::new(),
            inputs: BTreeMap::new(),
            attempts: Vec::new(),
            timers: Vec::new(),
            waits: Vec::new(),
            intents: Vec::new(),
            under_way: Vec::new(),
            rest: None,
            subscriptions: Vec::new(),
            paused: BTreeSet::new(),
            rejections: Vec::new(),
        }
    }

    /// One that breaks a rule, to see that a case notices.
    pub fn broken(fault: Fault) -> Self {
        Self { fault: Some(fault), ..Self::new(Order::Listed) }
    }

    fn breaks(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    fn number(&mut self) -> i64 {
        self.last += 1;
        self.last
    }

    fn apply(&mut self, command: Command) -> Result<Answer, Refusal> {
        if Self::is_whole(&command) && !self.comes_to() {
            return Ok(Answer::Done);
        }
        match command {
            Command::Configure(scopes) => self.configure(&scopes),
            Command::Accept(delivery) => self.accept(delivery),
            Command::Route => {
                self.route();
                Ok(Answer::Done)
            }
            Command::Open(gate) => {
                self.open.insert(gate);
                Ok(Answer::Done)
            }
            Command::Claim => Ok(Answer::Attempts(self.claim())),
            Command::Launch => {
                self.launch();
                Ok(Answer::Done)
            }
            Command::Report { execution, epoch, end } => self.reported(execution, epoch, end),
            Command::Renew => Ok(Answer::Attempts(self.renew())),
            Command::Recover(found) => Ok(Answer::Attempts(self.recover(&found))),
            Command::Advance(by) => {
                self.now = self.now.after(by);
                Ok(Answer::Done)
            }
            Command::Fire => {
                self.fire();
                Ok(Answer::Done)
            }
            Command::Cancel(work) => self.cancel(work),
            Command::Retry { work, delivery } => self.retry(work, delivery),
            Command::Interrupt { work, delivery } => self.interrupt(work, delivery),
            Command::Dispatch(answer) => {
                self.present();
                self.acknowledge(answer);
                Ok(Answer::Done)
            }
            Command::Present => {
                self.present();
                Ok(Answer::Done)
            }
            Command::Acknowledge(answer) => {
                self.acknowledge(answer);
                Ok(Answer::Done)
            }
            Command::Subscribe(subscription) => self.subscribe(subscription),
            Command::Translate => {
                self.translate();
                Ok(Answer::Done)
            }
            Command::Release(work) => self.release(work),
            Command::Pause(scope) => self.pause(scope),
            Command::Resume(scope) => self.resume(&scope),
            Command::Reopen => {
                if self.breaks(Fault::CountersInMemory) {
                    self.charged.clear();
                }
                self.under_way.clear();
                self.asked_at.clear();
                self.let_go();
                Ok(Answer::Done)
            }
        }
    }
}

impl Driver for Reference {
    fn act(&mut self, command: Command) -> Answer {
        let before = self.clone();
        match self.apply(command) {
            Ok(answer) => answer,
            Err(reason) => {
                let rejections = std::mem::take(&mut self.rejections);
                *self = Self { rejections, ..before };
                Answer::Refused(reason.to_owned())
            }
        }
    }

    fn together(&mut self, commands: Vec<Command>) -> Vec<Answer> {
        match self.order {
            Order::Listed => commands.into_iter().map(|command| self.act(command)).collect(),
            Order::Reversed => {
                let mut answers: Vec<Answer> =
                    commands.into_iter().rev().map(|command| self.act(command)).collect();
                answers.reverse();
                answers
            }
        }
    }

    fn crash(&mut self, command: Command, _at: u32) {
        let _unheard = self.act(command);
        let _reopened = self.act(Command::Reopen);
    }

    fn snapshot(&mut self) -> Snapshot {
        let mut timers: Vec<TimerRecord> = self.timers.iter().map(|timer| timer.record.clone()).collect();
        timers.sort();
        Snapshot {
            now: self.now,
            events: self.events.clone(),
            works: self.works.iter().map(|work| work.record.clone()).collect(),
            attempts: self.attempts.iter().map(|attempt| attempt.record.clone()).collect(),
            timers,
            waits: self.waits.iter().map(|wait| wait.record.clone()).collect(),
            intents: self.intents.clone(),
            rejections: self.rejections.clone(),
            charged: self.charged.clone(),
            generation: Generation::from_number(self.generation),
            paused: self.paused.clone(),
            subscriptions: self.subscriptions.iter().map(|it| (it.id.clone(), it.clone())).collect(),
            asked: self.asked.clone(),
        }
    }
}

/// Looking things up. What is asked for is there, or the reference has a bug.
impl Reference {
    fn event(&self, id: EventId) -> &EventRecord {
        self.events.iter().find(|event| event.id == id).expect("the Event was accepted")
    }

    fn event_mut(&mut self, id: EventId) -> &mut EventRecord {
        self.events.iter_mut().find(|event| event.id == id).expect("the Event was accepted")
    }

    fn find_work(&self, id: WorkId) -> Option<&Work> {
        self.works.iter().find(|work| work.record.id == id)
    }

    fn work(&self, id: WorkId) -> &Work {
        self.find_work(id).expect("the Work was created")
    }

    fn work_mut(&mut self, id: WorkId) -> &mut Work {
        self.works.iter_mut().find(|work| work.record.id == id).expect("the Work was created")
    }

    fn find_attempt(&self, id: ExecutionId) -> Option<&Attempt> {
        self.attempts.iter().find(|attempt| attempt.record.id == id)
    }

    fn attempt(&self, id: ExecutionId) -> &Attempt {
        self.find_attempt(id).expect("the attempt was claimed")
    }

    fn attempt_mut(&mut self, id: ExecutionId) -> &mut Attempt {
        self.attempts.iter_mut().find(|attempt| attempt.record.id == id).expect("the attempt was claimed")
    }

    fn owner(&self, key: &Key) -> Option<WorkId> {
        let owner = self.works.iter().find(|work| work.record.keys.contains(key));
        owner.map(|work| work.record.id)
    }

    fn last_sequence(&self) -> Sequence {
        self.events.last().map_or(Sequence::ZERO, |event| event.sequence)
    }
}

#[cfg(test)]
mod tests;
