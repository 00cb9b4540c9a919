//! Intents: durable orders to one attempt, to take an Event in while it runs or to end for it.
//!
//! An intent is committed with the input and the checkpoint that it belongs to, and carried out afterwards, so it
//! may be carried out twice; its name, the attempt and the Event, is the same each time. It is never aimed at
//! another attempt: once its own has ended it is stale. What was injected stays pending input until a result
//! proves that it was taken in.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::id::{Epoch, EventId, ExecutionId, Sequence, WorkId};
use crate::time::Timestamp;

/// The type of the Event by which an operator interrupts a run.
pub const MANUAL_INTERRUPT: &str = "core.manual.interrupt";

/// How long an executor may take to answer. What it answers later is not waited for.
pub const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
/// After how long an order that was being sent is sent again, if nobody recorded an answer.
const UNANSWERED_AFTER: Duration = Duration::from_secs(15);
/// How long an order waits for an attempt that cannot be asked yet.
const NOT_YET: Duration = Duration::from_millis(250);
/// The wait after the first ambiguous answer; it doubles with each.
const AGAIN: Duration = Duration::from_secs(1);
/// The longest wait between two tries.
const AGAIN_MAX: Duration = Duration::from_mins(1);

/// What an attempt is ordered to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntentKind {
    /// To take an Event in.
    Inject,
    /// To end, so that the next attempt takes the Event in.
    Interrupt,
}

impl IntentKind {
    /// The word in API and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Inject => "inject",
            Self::Interrupt => "interrupt",
        }
    }
}

/// What an executor can do to an attempt that runs. An attempt keeps what it was pinned with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Controls {
    /// It takes Events in.
    pub inject: bool,
    /// It can be ended for an Event.
    pub interrupt: bool,
}

impl Controls {
    /// Neither.
    pub const NONE: Self = Self { inject: false, interrupt: false };
    /// Both.
    pub const BOTH: Self = Self { inject: true, interrupt: true };

    /// Whether an order of this kind can be carried out.
    pub const fn allow(self, kind: IntentKind) -> bool {
        match kind {
            IntentKind::Inject => self.inject,
            IntentKind::Interrupt => self.interrupt,
        }
    }
}

/// What happens when an executor fails at an order that it can carry out, in place of trying again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorFallback {
    /// The Event stays what it is, pending input, and the next attempt takes it in.
    Queue,
}

impl ErrorFallback {
    /// The word in configuration, API and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queue => "queue",
        }
    }
}

/// How far an intent has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntentState {
    /// It was not sent yet.
    Pending {
        /// When it is to be.
        due_at: Timestamp,
    },
    /// It is being sent, or was when the process ended.
    Dispatched {
        /// When it is sent again if no answer is recorded.
        due_at: Timestamp,
    },
    /// Whether it arrived is not known.
    Ambiguous {
        /// When it is sent again.
        due_at: Timestamp,
    },
    /// The executor has it. Of an injection that says nothing about whether it was taken in; an interrupted
    /// attempt has no authority any more and is being stopped.
    Accepted,
    /// The executor certainly did not take it. The input waits for the next attempt.
    NotAccepting,
    /// The executor failed at it, and the route's error fallback holds.
    FellBack,
    /// The attempt has proved that it took the Event in.
    Consumed,
    /// What the interrupted attempt had started has stopped.
    Delivered,
    /// Its attempt ended before it was delivered. It is not for any other.
    Stale,
}

impl IntentState {
    /// When the next try is due; none when there is none.
    pub const fn due_at(self) -> Option<Timestamp> {
        match self {
            Self::Pending { due_at } | Self::Dispatched { due_at } | Self::Ambiguous { due_at } => {
                Some(due_at)
            }
            Self::Accepted
            | Self::NotAccepting
            | Self::FellBack
            | Self::Consumed
            | Self::Delivered
            | Self::Stale => None,
        }
    }

    /// The word in API and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending { .. } => "pending",
            Self::Dispatched { .. } => "dispatched",
            Self::Ambiguous { .. } => "ambiguous",
            Self::Accepted => "accepted",
            Self::NotAccepting => "not_accepting",
            Self::FellBack => "fell_back",
            Self::Consumed => "consumed",
            Self::Delivered => "delivered",
            Self::Stale => "stale",
        }
    }
}

/// What an executor answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It has it.
    Accepted,
    /// It certainly does not have it, and will not.
    NotAccepting,
    /// That is not known.
    Ambiguous,
}

/// A durable order to one attempt. The attempt and the Event name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// The attempt, for ever.
    pub execution: ExecutionId,
    /// The Event's place in the order of acceptance.
    pub sequence: Sequence,
    /// The Event.
    pub event: EventId,
    /// The attempt's Work.
    pub work: WorkId,
    /// What is ordered.
    pub kind: IntentKind,
    /// The epoch of the attempt's lease when it was ordered.
    pub epoch: Epoch,
    /// What happens when the executor fails at it; none when it is tried again.
    pub on_error: Option<ErrorFallback>,
    /// How far it has come.
    pub state: IntentState,
    /// How often it was sent.
    pub tries: u32,
    /// When it was ordered.
    pub created_at: Timestamp,
    /// What was last said about it, in words; at most [`Intent::REASON_BYTES_MAX`] bytes.
    pub reason: Option<String>,
}

/// Why an intent stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum IntentRefusal {
    /// It has come to its end.
    #[error("the order is settled ({state})")]
    Settled {
        /// Its state.
        state: &'static str,
    },
    /// It was not sent, so nothing can have come of it.
    #[error("the order was never sent")]
    NeverSent,
    /// It is an order of the other kind.
    #[error("the order is not one to {wanted}")]
    OtherKind {
        /// The kind that was meant.
        wanted: &'static str,
    },
}

impl Intent {
    /// The most bytes of a reason that are kept.
    pub const REASON_BYTES_MAX: usize = 1000;

    /// Notes that it is sent now. From here on it may have an effect.
    ///
    /// # Errors
    /// [`IntentRefusal::Settled`] when it is not to be sent any more.
    pub fn dispatch(mut self, now: Timestamp) -> Result<Self, IntentRefusal> {
        self.require_open()?;
        self.state = IntentState::Dispatched { due_at: now.after(UNANSWERED_AFTER) };
        self.tries = self.tries.saturating_add(1);
        Ok(self)
    }

    /// Puts it off, as its attempt cannot be asked yet: it is being launched, or recovered.
    ///
    /// # Errors
    /// [`IntentRefusal::Settled`] when it is not to be sent any more.
    pub fn put_off(mut self, now: Timestamp) -> Result<Self, IntentRefusal> {
        self.require_open()?;
        let due_at = now.after(NOT_YET);
        self.state = match self.state {
            IntentState::Pending { .. } => IntentState::Pending { due_at },
            // What was sent may have arrived, whoever sent it.
            IntentState::Dispatched { .. } | IntentState::Ambiguous { .. } => {
                IntentState::Ambiguous { due_at }
            }
            IntentState::Accepted
            | IntentState::NotAccepting
            | IntentState::FellBack
            | IntentState::Consumed
            | IntentState::Delivered
            | IntentState::Stale => return Err(self.settled()),
        };
        Ok(self)
    }

    /// Takes an executor's answer. One that comes late changes nothing: what was proved stays proved.
    ///
    /// # Errors
    /// [`IntentRefusal`] when it was never sent, or is settled.
    pub fn answered(mut self, answer: Answer, now: Timestamp) -> Result<Self, IntentRefusal> {
        match self.state {
            IntentState::Pending { .. } => return Err(IntentRefusal::NeverSent),
            IntentState::Dispatched { .. } | IntentState::Ambiguous { .. } => {}
            IntentState::Accepted
            | IntentState::NotAccepting
            | IntentState::FellBack
            | IntentState::Consumed
            | IntentState::Delivered
            | IntentState::Stale => return Err(self.settled()),
        }
        self.state = match (answer, self.on_error) {
            (Answer::Accepted, _) => IntentState::Accepted,
            (Answer::NotAccepting, _) => IntentState::NotAccepting,
            (Answer::Ambiguous, Some(ErrorFallback::Queue)) => IntentState::FellBack,
            (Answer::Ambiguous, None) => IntentState::Ambiguous { due_at: now.after(self.pause()) },
        };
        Ok(self)
    }

    /// Notes that a result of its attempt proves that the Event was taken in.
    ///
    /// # Errors
    /// [`IntentRefusal`] when that cannot be: it was never sent, was certainly not taken, or is proved already.
    pub fn consumed(mut self) -> Result<Self, IntentRefusal> {
        match self.kind {
            IntentKind::Inject => {}
            IntentKind::Interrupt => {
                return Err(IntentRefusal::OtherKind { wanted: IntentKind::Inject.as_str() });
            }
        }
        if self.tries == 0 {
            return Err(IntentRefusal::NeverSent);
        }
        match self.state {
            IntentState::NotAccepting
            | IntentState::Consumed
            | IntentState::Delivered
            | IntentState::Stale => Err(self.settled()),
            // The proof may be there before the answer is.
            IntentState::Pending { .. }
            | IntentState::Dispatched { .. }
            | IntentState::Ambiguous { .. }
            | IntentState::Accepted
            | IntentState::FellBack => {
                self.state = IntentState::Consumed;
                Ok(self)
            }
        }
    }

    /// Notes that everything of the interrupted attempt has stopped.
    ///
    /// # Errors
    /// [`IntentRefusal`] when it is no interruption, or did not end the attempt.
    pub fn delivered(mut self) -> Result<Self, IntentRefusal> {
        match (self.kind, self.state) {
            (IntentKind::Inject, _) => {
                Err(IntentRefusal::OtherKind { wanted: IntentKind::Interrupt.as_str() })
            }
            (IntentKind::Interrupt, IntentState::Accepted) => {
                self.state = IntentState::Delivered;
                Ok(self)
            }
            (IntentKind::Interrupt, IntentState::Pending { .. }) => Err(IntentRefusal::NeverSent),
            (
                IntentKind::Interrupt,
                IntentState::Dispatched { .. }
                | IntentState::Ambiguous { .. }
                | IntentState::NotAccepting
                | IntentState::FellBack
                | IntentState::Consumed
                | IntentState::Delivered
                | IntentState::Stale,
            ) => Err(self.settled()),
        }
    }

    /// Gives it up, as its attempt has ended.
    ///
    /// # Errors
    /// [`IntentRefusal::Settled`] when it is not waiting to be sent or answered.
    pub fn stale(mut self) -> Result<Self, IntentRefusal> {
        self.require_open()?;
        self.state = IntentState::Stale;
        Ok(self)
    }

    /// With what was said about it.
    #[must_use]
    pub fn because(mut self, reason: &str) -> Self {
        self.reason = Some(crate::text::plain(reason, Self::REASON_BYTES_MAX));
        self
    }

    /// The wait after the tries so far: 1, 2, 4 seconds and so on, at most a minute.
    fn pause(&self) -> Duration {
        let doublings = self.tries.saturating_sub(1).min(16);
        AGAIN.saturating_mul(1 << doublings).min(AGAIN_MAX)
    }

    const fn require_open(&self) -> Result<(), IntentRefusal> {
        match self.state.due_at() {
            Some(_due) => Ok(()),
            None => Err(self.settled()),
        }
    }

    const fn settled(&self) -> IntentRefusal {
        IntentRefusal::Settled { state: self.state.as_str() }
    }

    /// Holds what must be true of every intent, before it is written and after it is read.
    ///
    /// # Panics
    /// When the record contradicts itself.
    pub fn check(&self) {
        let id = self.execution;
        match self.state {
            IntentState::Dispatched { .. }
            | IntentState::Ambiguous { .. }
            | IntentState::NotAccepting
            | IntentState::FellBack => {
                assert!(self.tries > 0, "{id}: what was answered was sent");
            }
            IntentState::Consumed => {
                assert!(self.tries > 0, "{id}: what was proved was sent");
                assert_eq!(self.kind, IntentKind::Inject, "{id}: only an injection is proved");
            }
            IntentState::Delivered => {
                assert_eq!(self.kind, IntentKind::Interrupt, "{id}: only an interruption stops a run");
            }
            IntentState::Pending { .. } | IntentState::Accepted | IntentState::Stale => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Answer, ErrorFallback, Intent, IntentKind, IntentRefusal, IntentState};
    use crate::machines::{NOW, intent};

    fn sent() -> Intent {
        intent(IntentKind::Inject, IntentState::Pending { due_at: NOW }).dispatch(NOW).unwrap()
    }

    fn again_after(intent: &Intent) -> Duration {
        intent.state.due_at().expect("it is sent again").since(NOW)
    }

    #[test]
    fn an_ambiguous_send_is_repeated_with_growing_pauses_up_to_a_minute() {
        let mut next = sent();
        let mut pauses = Vec::new();
        for _ in 0..9 {
            let ambiguous = next.answered(Answer::Ambiguous, NOW).unwrap();
            pauses.push(again_after(&ambiguous).as_secs());
            next = ambiguous.dispatch(NOW).unwrap();
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[test]
    fn an_error_fallback_ends_the_tries_at_the_first_ambiguous_answer() {
        let falls = Intent { on_error: Some(ErrorFallback::Queue), ..sent() };
        assert_eq!(falls.answered(Answer::Ambiguous, NOW).unwrap().state, IntentState::FellBack);
        let refused = Intent { on_error: Some(ErrorFallback::Queue), ..sent() };
        assert_eq!(refused.answered(Answer::NotAccepting, NOW).unwrap().state, IntentState::NotAccepting);
    }

    #[test]
    fn a_proof_before_the_answer_stands_and_the_late_answer_changes_nothing() {
        let proved = sent().consumed().unwrap();
        for late in [Answer::Accepted, Answer::NotAccepting, Answer::Ambiguous] {
            let refused = proved.clone().answered(late, NOW);
            assert_eq!(refused, Err(IntentRefusal::Settled { state: "consumed" }));
        }
    }

    #[test]
    fn what_was_never_sent_or_certainly_not_taken_is_not_proved() {
        let pending = intent(IntentKind::Inject, IntentState::Pending { due_at: NOW });
        assert_eq!(pending.consumed(), Err(IntentRefusal::NeverSent));
        let not_taken = sent().answered(Answer::NotAccepting, NOW).unwrap();
        assert!(not_taken.consumed().is_err());
        let interrupt = Intent { kind: IntentKind::Interrupt, ..sent() };
        assert!(interrupt.consumed().is_err());
    }

    #[test]
    fn an_order_that_waited_for_its_attempt_keeps_what_may_have_arrived() {
        let put_off = sent().put_off(NOW).unwrap();
        assert!(matches!(put_off.state, IntentState::Ambiguous { .. }));
        assert_eq!(put_off.consumed().unwrap().state, IntentState::Consumed);
    }
}
