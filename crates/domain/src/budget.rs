//! Budgets: how much of a named unit may be used, over which Works and how long, and what that means for a turn.
//!
//! A ledger adds up what turns have used of one unit. A turn is admitted while every ledger that a budget looks at
//! is below its limit; it reserves what turns of its kind usually use, capped to what is left. What others have
//! reserved can only defer a start, for it clears by itself. A ledger at its limit holds the Work.
//!
//! Amounts are whole thousandths of their unit. The runtime counts turns and attempts; every other unit is what
//! executors report.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::id::WorkId;
use crate::outcome::Usage;
use crate::text::{DeliveryId, EventType, ScopeName, Unit};
use crate::time::Timestamp;

mod amount;
pub mod meter;
#[cfg(test)]
mod tests;

pub use amount::{Amount, AmountError};

/// The type of the Event that says a ledger has reached the warning threshold of a budget.
pub const BUDGET_WARNING: &str = "core.budget.warning";
/// The type of the Event that says a ledger has reached the limit of a budget.
pub const BUDGET_EXCEEDED: &str = "core.budget.exceeded";

/// The unit in which the runtime counts turns.
pub const TURNS: &str = "turns";
/// The unit in which the runtime counts attempts.
pub const ATTEMPTS: &str = "attempts";

/// At which share of its limit a budget warns, in percent, where it does not say.
pub const WARNING_PERCENT: u32 = 80;
/// How many of the newest turns of a kind an estimate is made of.
pub const ESTIMATED_FROM: usize = 5;

const DAY: i64 = 24 * 3600 * 1_000_000;
/// From a Monday to the epoch, which was a Thursday.
const MONDAY: i64 = 3 * DAY;

/// Whether a type is that of an Event about a budget. It names the Work that used it up and is addressed to none.
pub fn is_event_of(event_type: &EventType) -> bool {
    matches!(event_type.as_str(), BUDGET_WARNING | BUDGET_EXCEEDED)
}

/// Whose use a budget adds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Per {
    /// That of each Work by itself.
    Work,
    /// That of each scope by itself, all its Works together.
    Scope,
    /// That of every scope together.
    All,
}

impl Per {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Work, Self::Scope, Self::All];

    /// The word in configuration, API and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Scope => "scope",
            Self::All => "all",
        }
    }

    /// The one behind a word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|per| per.as_str() == word)
    }
}

/// Over which time a budget adds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Window {
    /// For ever.
    Life,
    /// A UTC day.
    Day,
    /// A UTC week, from Monday on.
    Week,
}

impl Window {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Life, Self::Day, Self::Week];

    /// The word in configuration, API and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Life => "life",
            Self::Day => "day",
            Self::Week => "week",
        }
    }

    /// The one behind a word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|window| window.as_str() == word)
    }

    /// When the window that `now` lies in began.
    pub fn start(self, now: Timestamp) -> Timestamp {
        let micros = now.as_micros();
        let start = match self {
            Self::Life => 0,
            Self::Day => micros - micros.rem_euclid(DAY),
            Self::Week => micros - (micros.saturating_add(MONDAY)).rem_euclid(7 * DAY),
        };
        Timestamp::from_micros(start)
    }

    /// When the window that `now` lies in ends, exclusive; never for a life.
    pub fn end(self, now: Timestamp) -> Option<Timestamp> {
        let days = match self {
            Self::Life => return None,
            Self::Day => 1,
            Self::Week => 7,
        };
        Some(self.start(now).after(Duration::from_hours(24 * days)))
    }
}

/// A limit on what may be used of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// The unit.
    pub unit: Unit,
    /// Whose use counts.
    pub per: Per,
    /// Over which time.
    pub window: Window,
    /// At which amount no further turn starts.
    pub limit: Amount,
    /// At which share of the limit it warns, in percent from 1 to 100.
    pub warning_percent: u32,
}

/// What makes two budgets of one scope the same one: a later one replaces the earlier.
pub type BudgetKey = (Unit, Per, Window);

impl Budget {
    /// What it limits.
    pub fn key(&self) -> BudgetKey {
        (self.unit.clone(), self.per, self.window)
    }

    /// The ledger that it looks at for a turn of `work` in `scope`.
    pub fn ledger(&self, work: WorkId, scope: &ScopeName, now: Timestamp) -> LedgerId {
        let owner = match self.per {
            Per::Work => Owner::Work(work),
            Per::Scope => Owner::Scope(scope.clone()),
            Per::All => Owner::All,
        };
        LedgerId { owner, unit: self.unit.clone(), window: self.window, start: self.window.start(now) }
    }

    /// From which amount on it warns; none where that is the limit itself.
    pub fn warns_at(&self) -> Option<Amount> {
        (self.warning_percent < 100).then(|| self.limit.percent(self.warning_percent))
    }

    /// What is crossed when its ledger grows from `before` to `after`.
    pub fn crossed(&self, before: Amount, after: Amount) -> Vec<Crossing> {
        let passes = |threshold: Amount| before < threshold && after >= threshold;
        let mut crossings = Vec::new();
        if self.warns_at().is_some_and(passes) {
            crossings.push(Crossing::Warning);
        }
        if passes(self.limit) {
            crossings.push(Crossing::Limit);
        }
        crossings
    }

    /// Why a Work is held by it, in words.
    pub fn reason(&self, used: Amount) -> String {
        format!("the budget of {self} is used up: {used} of {} {}", self.limit, self.unit)
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = match self.per {
            Per::Work => "per Work",
            Per::Scope => "per scope",
            Per::All => "over all scopes",
        };
        let how_long = match self.window {
            Window::Life => "for life",
            Window::Day => "a day",
            Window::Week => "a week",
        };
        write!(f, "{} {whose} {how_long}", self.unit)
    }
}

/// Whose use a ledger adds up. Its text is stored.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// A Work's.
    Work(WorkId),
    /// A scope's.
    Scope(ScopeName),
    /// Everybody's.
    All,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Work(work) => write!(f, "work:{work}"),
            Self::Scope(scope) => write!(f, "scope:{scope}"),
            Self::All => f.write_str("all"),
        }
    }
}

/// One ledger: whose use of what, over which stretch of time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LedgerId {
    /// Whose.
    pub owner: Owner,
    /// Of what.
    pub unit: Unit,
    /// Over which time.
    pub window: Window,
    /// When that stretch began.
    pub start: Timestamp,
}

/// What a ledger crossed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Crossing {
    /// The threshold at which a budget warns.
    Warning,
    /// Its limit.
    Limit,
}

impl Crossing {
    /// The type of the Event that says so.
    pub const fn event_type(self) -> &'static str {
        match self {
            Self::Warning => BUDGET_WARNING,
            Self::Limit => BUDGET_EXCEEDED,
        }
    }

    /// The identity under which the Event is accepted: one for each ledger, stretch of time and threshold, however
    /// often it is said.
    pub fn delivery(self, ledger: &LedgerId, budget: &Budget) -> DeliveryId {
        let (word, threshold) = match self {
            Self::Warning => ("warning", budget.limit.percent(budget.warning_percent)),
            Self::Limit => ("exceeded", budget.limit),
        };
        let LedgerId { owner, unit, window, start } = ledger;
        let (window, start) = (window.as_str(), start.as_seconds());
        DeliveryId::known(&format!("budget/{word}/{owner}/{unit}/{window}/{start}/{threshold}"))
    }
}

/// A budget, and how its ledger stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing<'a> {
    /// The budget.
    pub budget: &'a Budget,
    /// What has been used.
    pub used: Amount,
    /// What turns that run have reserved.
    pub reserved: Amount,
}

/// What becomes of a turn that is to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission<'a> {
    /// It starts, and reserves this much of each unit.
    Admitted(BTreeMap<Unit, Amount>),
    /// What others have reserved leaves nothing of this budget now. That clears by itself.
    Deferred(&'a Budget),
    /// The ledger of this budget has reached its limit. The Work is held.
    Held(Standing<'a>),
}

/// Decides about a turn, given every budget it is under. A turn that an operator let through is held and deferred
/// by none, and reserves what is left.
///
/// A limit that is reached comes before what only passes by, so that a hold is never hidden behind a deferral. What
/// is not known yet may be all that is left, so of turns that nothing is known about one runs at a time.
pub fn admit<'a>(
    standings: &[Standing<'a>],
    is_let_through: bool,
    mut estimate: impl FnMut(&Unit) -> Amount,
) -> Admission<'a> {
    if !is_let_through {
        if let Some(full) = full(standings) {
            return Admission::Held(full);
        }
        if let Some(crowded) = standings.iter().find(|standing| standing.left() == Amount::ZERO) {
            return Admission::Deferred(crowded.budget);
        }
    }
    let mut reserved: BTreeMap<Unit, Amount> = BTreeMap::new();
    for standing in standings {
        let unit = &standing.budget.unit;
        let wanted = reserved.get(unit).copied().unwrap_or_else(|| estimate(unit));
        reserved.insert(unit.clone(), wanted.min(standing.left()));
    }
    Admission::Admitted(reserved)
}

/// The budget that holds a Work, or goes on holding it: the first whose ledger has come to its limit. None where
/// nothing does, because a limit was raised, a budget is gone, or another day or week has begun.
pub fn full<'a>(standings: &[Standing<'a>]) -> Option<Standing<'a>> {
    standings.iter().find(|standing| standing.used >= standing.budget.limit).copied()
}

impl Standing<'_> {
    /// Whether its ledger is past the threshold at which the budget warns, and not at its limit.
    pub fn is_past_warning(&self) -> bool {
        self.used < self.budget.limit
            && self.budget.warns_at().is_some_and(|threshold| self.used >= threshold)
    }

    /// How it stands, in words.
    pub fn words(&self) -> String {
        let Budget { unit, limit, .. } = self.budget;
        format!("of the budget of {}, {} of {limit} {unit} is used", self.budget, self.used)
    }

    /// What neither has been used nor is reserved.
    pub fn left(&self) -> Amount {
        self.budget.limit.less(self.used).less(self.reserved)
    }
}

/// What a turn is expected to use, from what the newest turns of its kind used: their median, the larger of the
/// middle two. Where nothing is known it may be anything. A turn and an attempt count one.
pub fn estimate(unit: &Unit, is_first_turn: bool, recent: &[Amount]) -> Amount {
    if let Some(counted) = counted(unit, is_first_turn) {
        return counted;
    }
    let mut sorted: Vec<Amount> = recent.iter().copied().take(ESTIMATED_FROM).collect();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(Amount::MAX)
}

/// What one turn uses of a unit that the runtime counts itself; none for any other unit.
fn counted(unit: &Unit, is_first_turn: bool) -> Option<Amount> {
    match unit.as_str() {
        TURNS => Some(Amount::ONE),
        ATTEMPTS => Some(if is_first_turn { Amount::ONE } else { Amount::ZERO }),
        _reported => None,
    }
}

/// What a turn that ended has used of a unit. What an executor says about a unit that the runtime counts is
/// ignored, and so is an amount below zero.
pub fn used(unit: &Unit, is_first_turn: bool, usage: &[Usage]) -> Amount {
    counted(unit, is_first_turn).unwrap_or_else(|| {
        let of_unit = usage.iter().filter(|one| one.unit == unit.as_str());
        of_unit.fold(Amount::ZERO, |sum, one| sum.plus(Amount::of_thousandths(one.thousandths)))
    })
}

/// The newest amounts with one more in front, as many as an estimate is made of.
pub fn remembered(newest: Amount, recent: &[Amount]) -> Vec<Amount> {
    std::iter::once(newest).chain(recent.iter().copied()).take(ESTIMATED_FROM).collect()
}
