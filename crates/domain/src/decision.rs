//! Decisions that are asked outside a transaction and revalidated inside it.
//!
//! A handler, a recurrence or a gate may live in another process, and a transaction cannot call out. So the
//! question is asked on a detached snapshot, and the answer comes back with what it rests on. The
//! transaction compares that with what is true now: either it still holds, or the question is asked again.

use thiserror::Error;

use crate::id::{Generation, Revision, Sequence, WorkId};
use crate::time::Timestamp;

/// Which Work an answer looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looked {
    /// At none: it looked at the Event alone.
    Nowhere,
    /// At the Work the Event leads to, and there was none.
    AtNone,
    /// At this Work, at this revision.
    At(WorkId, Revision),
}

/// What an answer rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Basis {
    /// The configuration it was asked under.
    pub generation: Generation,
    /// The Work it looked at.
    pub work: Looked,
    /// The highest pending input it saw, when it chose among inputs.
    pub input_high: Option<Sequence>,
    /// The moment it stops being true by itself, exclusive.
    pub valid_until: Option<Timestamp>,
}

impl Basis {
    /// The basis of an answer that depends on the configuration alone.
    pub const fn of(generation: Generation) -> Self {
        Self { generation, work: Looked::Nowhere, input_high: None, valid_until: None }
    }
}

/// What is true inside the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Present {
    /// The transaction's admission time.
    pub now: Timestamp,
    /// The configuration in force.
    pub generation: Generation,
    /// The Work that the answer is about, and its revision; none when there is none.
    pub work: Option<(WorkId, Revision)>,
    /// The highest pending input of that Work.
    pub input_high: Option<Sequence>,
}

/// Why an answer no longer holds. It is asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Stale {
    /// Another configuration is in force.
    #[error("another configuration generation is in force")]
    Generation,
    /// The Work changed.
    #[error("the Work changed since it was looked at")]
    Work,
    /// More input is pending.
    #[error("more input arrived since it was looked at")]
    Input,
    /// The answer's own time is over.
    #[error("the answer was valid for a limited time, which is over")]
    Expired,
}

/// An answer and what it rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision<T> {
    /// The answer.
    pub answer: T,
    /// What it rests on.
    pub basis: Basis,
}

impl<T> Decision<T> {
    /// The answer, if it still holds.
    ///
    /// # Errors
    /// [`Stale`] says what changed.
    pub fn revalidate(self, present: &Present) -> Result<T, Stale> {
        let Basis { generation, work, input_high, valid_until } = self.basis;
        if generation != present.generation {
            return Err(Stale::Generation);
        }
        let still = match work {
            Looked::Nowhere => true,
            Looked::AtNone => present.work.is_none(),
            Looked::At(id, revision) => present.work == Some((id, revision)),
        };
        if !still {
            return Err(Stale::Work);
        }
        if input_high.is_some() && present.input_high != input_high {
            return Err(Stale::Input);
        }
        if valid_until.is_some_and(|until| present.now >= until) {
            return Err(Stale::Expired);
        }
        Ok(self.answer)
    }
}

#[cfg(test)]
mod tests {
    use super::{Basis, Decision, Looked, Present, Stale};
    use crate::id::{Generation, Revision, Sequence, WorkId};
    use crate::time::Timestamp;

    const NOW: Timestamp = Timestamp::from_micros(100);

    fn basis() -> Basis {
        Basis {
            generation: Generation::from_number(3),
            work: Looked::At(WorkId::from_number(1), Revision::from_number(8)),
            input_high: Some(Sequence::from_number(40)),
            valid_until: Some(Timestamp::from_micros(101)),
        }
    }

    fn present() -> Present {
        Present {
            now: NOW,
            generation: Generation::from_number(3),
            work: Some((WorkId::from_number(1), Revision::from_number(8))),
            input_high: Some(Sequence::from_number(40)),
        }
    }

    #[track_caller]
    fn check(basis: Basis, present: &Present, expect: Result<(), Stale>) {
        assert_eq!(Decision { answer: (), basis }.revalidate(present), expect);
    }

    #[test]
    fn revalidate_finds_every_change() {
        check(basis(), &present(), Ok(()));
        check(
            basis(),
            &Present { generation: Generation::from_number(4), ..present() },
            Err(Stale::Generation),
        );
        for (id, revision) in [(1, 9), (2, 8)] {
            let work = Some((WorkId::from_number(id), Revision::from_number(revision)));
            check(basis(), &Present { work, ..present() }, Err(Stale::Work));
        }
        check(Basis { work: Looked::AtNone, ..basis() }, &present(), Err(Stale::Work));
        check(Basis { work: Looked::AtNone, ..basis() }, &Present { work: None, ..present() }, Ok(()));
        check(basis(), &Present { work: None, ..present() }, Err(Stale::Work));
        check(
            basis(),
            &Present { input_high: Some(Sequence::from_number(41)), ..present() },
            Err(Stale::Input),
        );
        check(basis(), &Present { now: Timestamp::from_micros(101), ..present() }, Err(Stale::Expired));
    }

    #[test]
    fn revalidate_ignores_what_the_answer_did_not_look_at() {
        let changed = Present { work: None, input_high: None, now: Timestamp::MAX, ..present() };
        check(Basis::of(Generation::from_number(3)), &changed, Ok(()));
    }
}
