//! Ownership of the loops: which of the processes on one database routes and schedules.
//!
//! A database has one owner at a time. It holds a lease that runs out, and an epoch that counts who came
//! before. Every transaction of a loop presents the tenure it acts under, so that an owner which was paused,
//! or cut off, for longer than its lease has no effect when it comes back.

use std::time::Duration;

use thiserror::Error;

use crate::id::{Epoch, Incarnation};
use crate::lease::Lease;
use crate::time::Timestamp;

/// How long an ownership lasts from its claim or renewal.
pub const OWNERSHIP: Duration = Duration::from_secs(15);
/// How often an owner renews it.
pub const OWNERSHIP_RENEWAL: Duration = Duration::from_secs(5);
/// How long before the end an owner stops by its own clock. What it began just before has that long to get
/// to the database, where an end that has come refuses it.
pub const OWNERSHIP_MARGIN: Duration = Duration::from_secs(2);

/// Who owns the loops of a database, as the database has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ownership {
    /// How often the loops have changed hands. Zero before the first owner.
    pub epoch: Epoch,
    /// The owner, and until when; none before the first, and after a release.
    pub lease: Option<Lease>,
}

/// An ownership, as its holder presents it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tenure {
    /// The process that presents it.
    pub owner: Incarnation,
    /// The epoch it took the loops over at.
    pub epoch: Epoch,
}

/// The loops belong to another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("process {} runs the loops until {}", lease.owner.number(), lease.until)]
pub struct Owned {
    /// By whom, and until when unless it renews.
    pub lease: Lease,
}

/// The presented tenure is over. What came with it has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("this process does not own the loops, or no longer does")]
pub struct NotOwner;

impl Ownership {
    /// Before the first owner.
    pub const NONE: Self = Self { epoch: Epoch::from_number(0), lease: None };

    /// The next one, for a process that has the database to itself: it owns the loops as long as it lives.
    #[must_use]
    pub fn exclusive(self, owner: Incarnation) -> Self {
        Self { epoch: self.epoch.next(), lease: Some(Lease { owner, until: Timestamp::MAX }) }
    }

    /// Takes the loops over when nobody has them, or extends what `by` has. The owner's own lease that has
    /// run out is taken over like anybody's, at a higher epoch.
    ///
    /// # Errors
    /// [`Owned`] when another process has a live lease.
    pub fn claim(self, by: Incarnation, now: Timestamp) -> Result<Self, Owned> {
        let until = now.after(OWNERSHIP);
        match self.lease {
            Some(lease) if lease.is_live(now) && lease.owner != by => Err(Owned { lease }),
            Some(lease) if lease.is_live(now) => {
                // Never shorter: who has the database alone has it for ever.
                let lease = Lease { owner: by, until: until.max(lease.until) };
                Ok(Self { lease: Some(lease), ..self })
            }
            Some(_) | None => Ok(Self { epoch: self.epoch.next(), lease: Some(Lease { owner: by, until }) }),
        }
    }

    /// Gives the loops up, if `tenure` still has them. The epoch stays, so the next owner's is higher.
    #[must_use]
    pub fn release(self, tenure: Tenure) -> Self {
        if self.tenure() == Some(tenure) { Self { lease: None, ..self } } else { self }
    }

    /// Checks that a transaction at `now` may act for the loops under `tenure`.
    ///
    /// # Errors
    /// [`NotOwner`] when it was taken over or released, or its lease is over. At its end it is over already.
    pub fn authorize(self, tenure: Tenure, now: Timestamp) -> Result<(), NotOwner> {
        let live = self.lease.is_some_and(|lease| lease.is_live(now));
        if live && self.tenure() == Some(tenure) { Ok(()) } else { Err(NotOwner) }
    }

    /// The tenure in force, whether or not its lease has run out.
    pub fn tenure(self) -> Option<Tenure> {
        self.lease.map(|lease| Tenure { owner: lease.owner, epoch: self.epoch })
    }
}

#[cfg(test)]
mod tests {
    use super::{NotOwner, OWNERSHIP, OWNERSHIP_MARGIN, OWNERSHIP_RENEWAL, Owned, Ownership, Tenure};
    use crate::id::{Epoch, Incarnation};
    use crate::lease::Lease;
    use crate::time::Timestamp;

    const ONE: Incarnation = Incarnation::FIRST;
    const START: Timestamp = Timestamp::EPOCH;

    fn two() -> Incarnation {
        ONE.next()
    }

    fn just_before(at: Timestamp) -> Timestamp {
        Timestamp::from_micros(at.as_micros() - 1)
    }

    fn held_by_one() -> (Ownership, Tenure, Timestamp) {
        let held = Ownership::NONE.claim(ONE, START).unwrap();
        (held, held.tenure().unwrap(), START.after(OWNERSHIP))
    }

    #[test]
    fn the_first_claim_is_the_first_epoch() {
        let (held, tenure, end) = held_by_one();
        assert_eq!(held.lease, Some(Lease { owner: ONE, until: end }));
        assert_eq!(tenure, Tenure { owner: ONE, epoch: Epoch::FIRST });
        assert_eq!(held.authorize(tenure, START), Ok(()));
    }

    #[test]
    fn a_live_lease_is_not_taken_and_one_that_ends_now_is() {
        let (held, tenure, end) = held_by_one();
        let refused = held.claim(two(), just_before(end));
        assert_eq!(refused, Err(Owned { lease: Lease { owner: ONE, until: end } }));
        let taken = held.claim(two(), end).unwrap();
        assert_eq!(taken.epoch, held.epoch.next());
        assert_eq!(taken.authorize(tenure, end), Err(NotOwner));
        assert_eq!(taken.authorize(taken.tenure().unwrap(), end), Ok(()));
    }

    #[test]
    fn authority_ends_at_the_very_moment_the_lease_does() {
        let (held, tenure, end) = held_by_one();
        assert_eq!(held.authorize(tenure, just_before(end)), Ok(()));
        assert_eq!(held.authorize(tenure, end), Err(NotOwner));
    }

    #[test]
    fn a_renewal_keeps_the_epoch_and_a_late_one_does_not() {
        let (held, tenure, end) = held_by_one();
        let renewed = held.claim(ONE, START.after(OWNERSHIP_RENEWAL)).unwrap();
        assert_eq!(renewed.tenure(), Some(tenure));
        assert_eq!(renewed.lease.unwrap().until, end.after(OWNERSHIP_RENEWAL));
        let late = held.claim(ONE, end).unwrap();
        assert_eq!(late.epoch, tenure.epoch.next());
        assert_eq!(late.authorize(tenure, end), Err(NotOwner));
    }

    #[test]
    fn a_release_frees_the_loops_and_only_the_holder_can() {
        let (held, tenure, _end) = held_by_one();
        assert_eq!(held.release(Tenure { owner: two(), ..tenure }), held);
        assert_eq!(held.release(Tenure { epoch: tenure.epoch.next(), ..tenure }), held);
        let free = held.release(tenure);
        assert_eq!(free, Ownership { lease: None, ..held });
        assert_eq!(free.authorize(tenure, START), Err(NotOwner));
        assert_eq!(free.claim(two(), START).unwrap().epoch, tenure.epoch.next());
    }

    #[test]
    fn a_process_that_is_alone_owns_for_ever() {
        let (held, _tenure, _end) = held_by_one();
        let alone = held.exclusive(two());
        assert_eq!(alone.epoch, held.epoch.next());
        let renewed = alone.claim(two(), START).unwrap();
        assert_eq!(renewed, alone);
    }

    #[test]
    fn an_owner_has_several_chances_to_renew_before_it_stops() {
        assert!(OWNERSHIP_RENEWAL * 2 + OWNERSHIP_MARGIN < OWNERSHIP);
    }
}
