//! What a job's timer does: when it is armed, what a firing publishes, what it passes over, and when it fires next.
//!
//! Each function is asked outside a transaction, on what is stored and the time of asking. An answer says until when
//! it holds; a transaction that begins later asks again. Nothing here is random, so asking twice gives the same.

#[cfg(test)]
mod tests;

use extension::Timestamp;
use serde::{Deserialize, Serialize};

use crate::slot::{Pattern, Slot, SlotName};
use crate::timing::{CatchUp, Timing, interval};
use crate::trigger::Occurrence;
use crate::zone::Zone;

/// How many missed slots a firing counts before it says only that there are more.
pub const MISSED_COUNTED_MAX: u32 = 1000;

/// What is stored with a job's timer. It is opaque to the core, and is all that a firing needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// When it runs.
    pub timing: Timing,
    /// How late a slot may still run.
    #[serde(default)]
    pub catch_up: CatchUp,
    /// The slot that ran last, when one has; none for an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<LastSlot>,
}

impl Stored {
    /// What is stored of a job that has not run.
    pub const fn new(timing: Timing, catch_up: CatchUp) -> Self {
        Self { timing, catch_up, last: None }
    }
}

/// A slot that ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastSlot {
    /// Its moment.
    pub at: Timestamp,
    /// Its name.
    pub name: SlotName,
}

/// A job's timer: what is stored, and when it is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Armed {
    /// What is stored with it.
    pub stored: Stored,
    /// When it is due, inclusive.
    pub due_at: Timestamp,
}

/// Whether the scope of a job takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeState {
    /// It does.
    Enabled,
    /// It is disabled: its timers stay as they are, and fire when it is enabled again.
    Disabled,
}

/// What comes of looking at a timer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Firing {
    /// It is not due, or its scope is disabled: nothing changes.
    Rests,
    /// It fires.
    Fires(Box<Fired>),
}

/// What a firing does. All of it belongs in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fired {
    /// What is published; none when nothing may run any more.
    pub publishes: Option<Occurrence>,
    /// What was passed over, the oldest first. It is told and nothing else.
    pub missed: Vec<Missed>,
    /// The timer afterwards; none when it has nothing to wait for.
    pub rearmed: Option<Armed>,
    /// Until when the answer holds, exclusive; none when nothing comes that would change it.
    pub valid_until: Option<Timestamp>,
}

/// Slots that were passed over for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missed {
    /// Why.
    pub reason: MissedReason,
    /// The first of them.
    pub first: Occurrence,
    /// The last of them.
    pub last: Occurrence,
    /// How many there are; at most [`MISSED_COUNTED_MAX`], and that number means as many or more.
    pub count: u32,
}

/// Why a slot was passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissedReason {
    /// A later slot ran in its place, or was the latest.
    Older,
    /// It was the latest, and too late to run.
    TooLate,
}

impl MissedReason {
    /// The word in facts and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Older => "older",
            Self::TooLate => "too_late",
        }
    }
}

/// Looks at a timer.
pub fn fire(armed: &Armed, scope: ScopeState, now: Timestamp) -> Firing {
    match scope {
        ScopeState::Disabled => return Firing::Rests,
        ScopeState::Enabled if now < armed.due_at => return Firing::Rests,
        ScopeState::Enabled => {}
    }
    Firing::Fires(Box::new(match &armed.stored.timing {
        Timing::Every(minutes) => fire_interval(armed, *minutes, now),
        Timing::Slots(pattern, zone) => fire_slot(armed, pattern, zone, now),
    }))
}

/// An interval publishes the moment it was due at, and is due again one interval later; when that is past, one
/// interval from now, so that an outage is followed by one run.
fn fire_interval(armed: &Armed, minutes: u32, now: Timestamp) -> Fired {
    let step = interval(minutes);
    let planned = armed.due_at.after(step);
    let due_at = if planned > now { planned } else { now.after(step) };
    Fired {
        publishes: Some(Occurrence { at: armed.due_at, name: None }),
        missed: Vec::new(),
        rearmed: Some(Armed { stored: armed.stored.clone(), due_at }),
        valid_until: Some(due_at),
    }
}

/// A pattern publishes its latest slot, when that is not too late and its name is not the one that ran last.
fn fire_slot(armed: &Armed, pattern: &Pattern, zone: &Zone, now: Timestamp) -> Fired {
    let stored = &armed.stored;
    let latest = pattern.latest(zone, now);
    let new = latest.filter(|slot| !has_name(stored.last.as_ref(), *slot, zone));
    let runs = new.filter(|slot| stored.catch_up.reaches(slot.at, now));
    let last =
        runs.map(|slot| LastSlot { at: slot.at, name: slot.name(zone) }).or_else(|| stored.last.clone());
    let due_at = next_other(pattern, zone, last.as_ref(), now);
    let missed = missed(armed, pattern, zone, new, runs.is_some());
    let after = Stored { last, ..stored.clone() };
    let ends = [pattern.next(zone, now).map(|slot| slot.at), runs.map(|slot| stored.catch_up.until(slot.at))];
    Fired {
        publishes: runs.map(|slot| Occurrence::of(slot, zone)),
        missed,
        rearmed: due_at.map(|due_at| Armed { stored: after, due_at }),
        valid_until: ends.into_iter().flatten().min(),
    }
}

/// What is passed over: every name between the moment the timer was due and the latest slot, and that slot itself
/// when it is too late. A moment that only repeats a name was never to run, so it is not missed.
fn missed(armed: &Armed, pattern: &Pattern, zone: &Zone, new: Option<Slot>, runs: bool) -> Vec<Missed> {
    let Some(new) = new.filter(|slot| slot.at >= armed.due_at) else { return Vec::new() };
    let occurrence = |slot: Slot| Occurrence::of(slot, zone);
    let just_before = Timestamp::from_micros(armed.due_at.as_micros().saturating_sub(1));
    let mut before: Option<i64> = None;
    let mut older: Option<Missed> = None;
    for slot in pattern.slots(zone, just_before).take_while(|slot| slot.at < new.at) {
        let is_again = before.replace(slot.minute) == Some(slot.minute) || slot.minute == new.minute;
        if is_again || has_name(armed.stored.last.as_ref(), slot, zone) {
            continue;
        }
        match &mut older {
            None => {
                let first = occurrence(slot);
                older = Some(Missed { reason: MissedReason::Older, last: first.clone(), first, count: 1 });
            }
            Some(older) => {
                older.count += 1;
                older.last = occurrence(slot);
                if older.count == MISSED_COUNTED_MAX {
                    break;
                }
            }
        }
    }
    if let Some(older) = older.as_mut().filter(|older| older.count == MISSED_COUNTED_MAX) {
        let until = Timestamp::from_micros(new.at.as_micros() - 1);
        older.last = pattern.latest(zone, until).map_or_else(|| older.last.clone(), occurrence);
    }
    let first = occurrence(new);
    let late =
        (!runs).then(|| Missed { reason: MissedReason::TooLate, last: first.clone(), first, count: 1 });
    older.into_iter().chain(late).collect()
}

/// Whether a slot has the name of the one that ran last.
fn has_name(last: Option<&LastSlot>, slot: Slot, zone: &Zone) -> bool {
    last.is_some_and(|last| last.name == slot.name(zone))
}

/// The first slot after a moment whose name is not that of the one that ran last.
fn next_other(pattern: &Pattern, zone: &Zone, last: Option<&LastSlot>, now: Timestamp) -> Option<Timestamp> {
    pattern.slots(zone, now).find(|slot| !has_name(last, *slot, zone)).map(|slot| slot.at)
}

/// What becomes of a job's timer when a configuration is committed, at a start, and in the repair that follows every
/// minute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ensured {
    /// It stays as it is.
    Keep,
    /// It becomes this.
    Arm(Armed, ArmReason),
    /// It ends. A run that goes on is not touched.
    Disarm,
}

/// Why a timer is armed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArmReason {
    /// The job is new.
    New,
    /// Its timing was edited.
    Edited,
    /// Something else of it was edited, which does not move it.
    Updated,
    /// The clock was set back, and it would wait for too long.
    Repaired,
}

/// What the configuration in force says of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// Its scope is disabled: its timer is not touched.
    Disabled,
    /// There is no such job, or it has no timing.
    Nothing,
    /// It runs by time.
    Timed(&'a Timing, CatchUp),
}

/// What becomes of a job's timer. It is asked of every job that is configured or has a timer.
pub fn ensure(armed: Option<&Armed>, wanted: Wanted<'_>, now: Timestamp) -> Ensured {
    let (timing, catch_up) = match (wanted, armed) {
        (Wanted::Disabled, _) | (Wanted::Nothing, None) => return Ensured::Keep,
        (Wanted::Nothing, Some(_)) => return Ensured::Disarm,
        (Wanted::Timed(timing, catch_up), _) => (timing, catch_up),
    };
    let Some(armed) = armed else {
        let stored = Stored::new(timing.clone(), catch_up);
        // A new interval runs at once; a new time waits, since its last slot may have run elsewhere.
        let due_at = match timing {
            Timing::Every(_) => Some(now),
            Timing::Slots(pattern, zone) => pattern.next(zone, now).map(|slot| slot.at),
        };
        let arm = |due_at| Ensured::Arm(Armed { stored, due_at }, ArmReason::New);
        return due_at.map_or(Ensured::Keep, arm);
    };
    let stored = Stored { timing: timing.clone(), catch_up, last: armed.stored.last.clone() };
    if armed.stored.timing != *timing {
        let due_at = edited(&stored, now);
        return due_at
            .map_or(Ensured::Disarm, |due_at| Ensured::Arm(Armed { stored, due_at }, ArmReason::Edited));
    }
    let earlier = repaired(armed, now);
    let due_at = earlier.unwrap_or(armed.due_at);
    match (earlier, stored == armed.stored) {
        (Some(_), _) => Ensured::Arm(Armed { stored, due_at }, ArmReason::Repaired),
        (None, false) => Ensured::Arm(Armed { stored, due_at }, ArmReason::Updated),
        (None, true) => Ensured::Keep,
    }
}

/// When an edited timing is due: an interval at once, and a pattern at its latest slot when that may still run and is
/// not the one that ran last.
fn edited(stored: &Stored, now: Timestamp) -> Option<Timestamp> {
    match &stored.timing {
        Timing::Every(_) => Some(now),
        Timing::Slots(pattern, zone) => {
            let last = stored.last.as_ref();
            let ran = |slot: Slot| has_name(last, slot, zone) || last.is_some_and(|last| last.at == slot.at);
            let latest = pattern.latest(zone, now);
            let runs = latest.filter(|slot| !ran(*slot) && stored.catch_up.reaches(slot.at, now));
            runs.map(|slot| slot.at).or_else(|| next_other(pattern, zone, last, now))
        }
    }
}

/// When a timer is due that waits for longer than it ever should: the clock was set back. A slot that ran before is
/// published again then under the same identity, so it does not run again.
fn repaired(armed: &Armed, now: Timestamp) -> Option<Timestamp> {
    let latest = match &armed.stored.timing {
        Timing::Every(minutes) => Some(now.after(interval(*minutes))),
        Timing::Slots(pattern, zone) => next_other(pattern, zone, armed.stored.last.as_ref(), now),
    };
    latest.filter(|latest| *latest < armed.due_at)
}
