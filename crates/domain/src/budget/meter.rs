//! Metering: what a turn reports of its use while it goes on, and what its end still has to add.
//!
//! What is reported is counted when it is reported. What the result says is the use of the whole turn; where that is
//! less than what was reported on the way, that counts.

use std::collections::BTreeMap;

use thiserror::Error;

use super::{ATTEMPTS, Amount, Standing, TURNS};
use crate::outcome::Usage;
use crate::text::{ReportId, TextError, Unit};

/// The most units that one report may name.
pub const UNITS_MAX: usize = 32;
/// The most reports of one turn.
pub const REPORTS_MAX: i64 = 10_000;
/// What the names of reports that are calls begin with.
const CALLS: &str = "call/";

/// Why a report of use was refused. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReportRefusal {
    /// It names no unit.
    #[error("a report of use names at least one unit, such as `tokens=120`")]
    Empty,
    /// It names too many units.
    #[error("a report of use names at most {UNITS_MAX} units")]
    TooMany,
    /// A unit's name is none.
    #[error(transparent)]
    Unit(#[from] TextError),
    /// The runtime counts the unit itself.
    #[error("`{0}` are counted by the daemon and cannot be reported")]
    Counted(Unit),
    /// An amount is below zero.
    #[error("an amount of `{0}` is below zero")]
    Negative(Unit),
    /// Its name is one of a call.
    #[error("names of reports that begin with `{CALLS}` are those of calls; choose another")]
    Reserved,
    /// The turn has made as many reports as it may.
    #[error("a turn may report its use {REPORTS_MAX} times; add amounts up before you report them")]
    Exhausted,
}

/// What a report says, by unit. A unit that is named twice is added up.
///
/// # Errors
/// [`ReportRefusal`] for the first thing that is wrong.
pub fn amounts(usage: &[Usage]) -> Result<BTreeMap<Unit, Amount>, ReportRefusal> {
    let mut amounts: BTreeMap<Unit, Amount> = BTreeMap::new();
    for one in usage {
        let unit = Unit::new(one.unit.as_str())?;
        if matches!(unit.as_str(), TURNS | ATTEMPTS) {
            return Err(ReportRefusal::Counted(unit));
        }
        if one.thousandths < 0 {
            return Err(ReportRefusal::Negative(unit));
        }
        let sum = amounts.entry(unit).or_default();
        *sum = sum.plus(Amount::of_thousandths(one.thousandths));
    }
    match amounts.len() {
        0 => Err(ReportRefusal::Empty),
        1..=UNITS_MAX => Ok(amounts),
        _more => Err(ReportRefusal::TooMany),
    }
}

/// The name of the report that a call of this number is.
///
/// # Panics
/// Never: a number has few digits.
pub fn report_of_call(number: i64) -> ReportId {
    ReportId::known(&format!("{CALLS}{number}"))
}

/// Checks the name of a report that is no call, so that neither is taken for the other.
///
/// # Errors
/// [`ReportRefusal::Reserved`].
pub fn check_name(report: &ReportId) -> Result<(), ReportRefusal> {
    if report.as_str().starts_with(CALLS) { Err(ReportRefusal::Reserved) } else { Ok(()) }
}

/// The use of a whole turn: of each unit what its result says, or what was reported on the way where that is more.
pub fn of_whole_turn(result: &[Usage], metered: &BTreeMap<Unit, Amount>) -> Vec<Usage> {
    let mut whole = result.to_vec();
    for (unit, amount) in metered {
        let said: i64 = result
            .iter()
            .filter(|one| one.unit == unit.as_str())
            .fold(0, |sum, one| sum.saturating_add(one.thousandths.max(0)));
        let more = amount.less(Amount::of_thousandths(said)).thousandths();
        match whole.iter_mut().find(|one| one.unit == unit.as_str()) {
            Some(one) => one.thousandths = one.thousandths.max(0).saturating_add(more),
            None => whole.push(Usage { unit: unit.to_string(), thousandths: more }),
        }
    }
    whole
}

/// The budget that ends a turn which goes on: one whose ledger has come to its limit. A turn that an operator let
/// through is ended by none.
pub fn stops<'a>(standings: &[Standing<'a>], is_let_through: bool) -> Option<Standing<'a>> {
    if is_let_through { None } else { super::full(standings) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{ReportRefusal, UNITS_MAX, amounts, check_name, of_whole_turn, report_of_call, stops};
    use crate::budget::{Amount, Budget, Per, Standing, Window};
    use crate::outcome::Usage;
    use crate::text::{ReportId, Unit};

    fn usage(unit: &str, thousandths: i64) -> Usage {
        Usage { unit: unit.to_owned(), thousandths }
    }

    #[test]
    fn a_report_is_refused_whole() {
        let sums = amounts(&[usage("usd", 5), usage("tokens", 0), usage("usd", 7)]).unwrap();
        assert_eq!(sums.get(&Unit::known("usd")).copied(), Some(Amount::of_thousandths(12)), "{sums:?}");
        assert_eq!(amounts(&[]), Err(ReportRefusal::Empty));
        let unit = Unit::known("usd");
        assert_eq!(amounts(&[usage("tokens", 1), usage("usd", -1)]), Err(ReportRefusal::Negative(unit)));
        let counted = ReportRefusal::Counted(Unit::known("turns"));
        assert_eq!(amounts(&[usage("turns", 1)]), Err(counted));
        assert!(matches!(amounts(&[usage("A b", 1)]), Err(ReportRefusal::Unit(_))));
        let many: Vec<Usage> = (0..=UNITS_MAX).map(|number| usage(&format!("u{number}"), 1)).collect();
        assert_eq!(amounts(&many), Err(ReportRefusal::TooMany));
        assert_eq!(amounts(&many[1..]).unwrap().len(), UNITS_MAX);
    }

    #[test]
    fn a_report_is_never_taken_for_a_call() {
        assert_eq!(check_name(&report_of_call(7)), Err(ReportRefusal::Reserved));
        assert_ne!(report_of_call(7), report_of_call(8));
        assert_eq!(check_name(&ReportId::known("call")), Ok(()));
    }

    #[test]
    fn what_was_reported_on_the_way_is_the_least_that_a_turn_used() {
        let metered = BTreeMap::from([
            (Unit::known("usd"), Amount::of_thousandths(5)),
            (Unit::known("tokens"), Amount::of_thousandths(9)),
        ]);
        let whole = of_whole_turn(&[usage("usd", 3), usage("minutes", 1)], &metered);
        assert_eq!(whole, [usage("usd", 5), usage("minutes", 1), usage("tokens", 9)]);
        assert_eq!(of_whole_turn(&[usage("usd", 8)], &metered)[0], usage("usd", 8), "the result says more");
        assert_eq!(of_whole_turn(&[usage("usd", -8)], &metered)[0], usage("usd", 5));
        let twice = of_whole_turn(&[usage("usd", 1), usage("usd", 2)], &metered);
        assert_eq!(twice[..2], [usage("usd", 3), usage("usd", 2)], "both together are what was reported");
        assert_eq!(of_whole_turn(&[usage("usd", 3)], &BTreeMap::new()), [usage("usd", 3)]);
    }

    #[test]
    fn a_limit_that_is_reached_ends_a_turn_unless_it_was_let_through() {
        let limit = Amount::of_thousandths(10);
        let budget = Budget {
            unit: Unit::known("usd"),
            per: Per::Scope,
            window: Window::Day,
            limit,
            warning_percent: 80,
        };
        let at = |used| Standing { budget: &budget, used: Amount::of_thousandths(used), reserved: limit };
        assert_eq!(stops(&[at(9)], false), None, "what is reserved ends nothing");
        assert_eq!(stops(&[at(9), at(10)], false), Some(at(10)));
        assert_eq!(stops(&[at(12)], true), None);
    }
}
