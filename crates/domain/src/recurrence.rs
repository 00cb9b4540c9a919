//! Recurring timers: what fires again and again, on an answer that was asked for outside the transaction.
//!
//! What a recurrence keeps is opaque here, and so is the calendar. Here stands when an answer may be applied, and what
//! the record is afterwards. A firing has an identity, the timer's id and its number, and happens once under it.

use crate::event::Key;
use crate::id::{EventId, TimerId};
use crate::text::{EntryName, ScopeName};
use crate::time::Timestamp;

/// A recurring timer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recurrence {
    /// Its id. A part that is removed and declared again has another one.
    pub id: TimerId,
    /// The scope its Events are accepted in.
    pub scope: ScopeName,
    /// The entry that declares it.
    pub entry: EntryName,
    /// The key of what it publishes; one timer in a scope has it.
    pub key: Key,
    /// What its extension keeps with it, as JSON text.
    pub state: Vec<u8>,
    /// Whether its scope is disabled: it stays as it is and is not asked for.
    pub rests: bool,
    /// When it was armed last.
    pub armed_at: Timestamp,
    /// When it is due, inclusive.
    pub due_at: Timestamp,
    /// How often it has fired, skips included; the number of its next firing.
    pub firings: i64,
}

/// What a timer is to be armed with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arming {
    /// What its extension keeps.
    pub state: Vec<u8>,
    /// When it is due.
    pub due_at: Timestamp,
}

/// Why an answer is not applied. It is asked for again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outdated {
    /// The timer fired, moved or changed since.
    Changed,
    /// The answer held until a moment that has come.
    Expired,
    /// It is not due any more.
    NotDue,
    /// Its scope has been disabled, or the configuration has changed.
    Configured,
}

impl Recurrence {
    /// Whether an answer that was asked for `asked` may be applied to what is stored now. (SCH-14, SCH-15)
    ///
    /// # Errors
    /// [`Outdated`].
    pub fn revalidate(
        &self,
        asked: &Self,
        valid_until: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(), Outdated> {
        if self != asked {
            return Err(Outdated::Changed);
        }
        if self.rests {
            return Err(Outdated::Configured);
        }
        if now < self.due_at {
            return Err(Outdated::NotDue);
        }
        match valid_until {
            Some(until) if until <= now => Err(Outdated::Expired),
            Some(_) | None => Ok(()),
        }
    }

    /// The record after a firing.
    #[must_use]
    pub fn fired(&self, arming: Arming, now: Timestamp) -> Self {
        Self { firings: self.firings + 1, ..self.armed(arming, now) }
    }

    /// The record after it was armed anew. Its firings keep their numbers.
    #[must_use]
    pub fn armed(&self, arming: Arming, now: Timestamp) -> Self {
        let Arming { state, due_at } = arming;
        Self { state, due_at, armed_at: now, ..self.clone() }
    }
}

/// A firing, as history has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Firing {
    /// The timer.
    pub recurrence: TimerId,
    /// Which of its firings.
    pub number: i64,
    /// When it was due.
    pub due_at: Timestamp,
    /// When it fired.
    pub fired_at: Timestamp,
    /// The Event it published, or found published under that identity; none when it passed over everything.
    pub event: Option<EventId>,
    /// What it ran and what it passed over, as JSON text.
    pub told: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::{Arming, Outdated, Recurrence};
    use crate::event::Key;
    use crate::id::TimerId;
    use crate::text::{EntryName, ExternalId, ScopeName, SourceName};
    use crate::time::Timestamp;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn timer() -> Recurrence {
        Recurrence {
            id: TimerId::from_number(1),
            scope: ScopeName::known("main"),
            entry: EntryName::known("jobs"),
            key: Key { source: SourceName::known("s"), external_id: ExternalId::known("job/a") },
            state: b"{}".to_vec(),
            rests: false,
            armed_at: at(0),
            due_at: at(100),
            firings: 3,
        }
    }

    #[test]
    fn an_answer_is_applied_to_what_it_was_asked_for_and_while_it_holds() {
        let asked = timer();
        assert_eq!(asked.revalidate(&asked, None, at(100)), Ok(()));
        assert_eq!(asked.revalidate(&asked, Some(at(101)), at(100)), Ok(()));
        assert_eq!(asked.revalidate(&asked, Some(at(100)), at(100)), Err(Outdated::Expired));
        assert_eq!(asked.revalidate(&asked, None, at(99)), Err(Outdated::NotDue));
        let resting = Recurrence { rests: true, ..timer() };
        assert_eq!(resting.revalidate(&resting, None, at(100)), Err(Outdated::Configured));
        let fired = asked.fired(Arming { state: b"{}".to_vec(), due_at: at(100) }, at(0));
        assert_eq!(fired.revalidate(&asked, None, at(100)), Err(Outdated::Changed), "it fires once");
    }

    #[test]
    fn a_firing_is_counted_and_an_arming_is_not() {
        let arming = || Arming { state: b"1".to_vec(), due_at: at(200) };
        let fired = timer().fired(arming(), at(110));
        assert_eq!((fired.firings, fired.due_at, fired.armed_at), (4, at(200), at(110)));
        assert_eq!(timer().armed(arming(), at(110)).firings, 3);
    }
}
