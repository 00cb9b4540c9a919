use super::{
    Admission, Amount, Budget, Crossing, Owner, Per, Standing, Window, admit, estimate, full, remembered,
    used,
};
use crate::id::WorkId;
use crate::outcome::Usage;
use crate::text::{ScopeName, Unit};
use crate::time::Timestamp;

fn whole(units: i64) -> Amount {
    Amount::of_thousandths(units * 1000)
}

fn budget(unit: &str, limit: i64) -> Budget {
    Budget {
        unit: Unit::known(unit),
        per: Per::Scope,
        window: Window::Day,
        limit: whole(limit),
        warning_percent: 80,
    }
}

fn standing(budget: &Budget, used: i64, reserved: i64) -> Standing<'_> {
    Standing { budget, used: whole(used), reserved: whole(reserved) }
}

fn reserves(admission: &Admission<'_>, unit: &str) -> Option<Amount> {
    match admission {
        Admission::Admitted(reserved) => reserved.get(&Unit::known(unit)).copied(),
        Admission::Deferred(_) | Admission::Held(_) => None,
    }
}

#[test]
fn a_turn_below_its_limit_reserves_its_estimate_and_never_more_than_is_left() {
    let usd = budget("usd", 10);
    let asked = |used, reserved| admit(&[standing(&usd, used, reserved)], false, |_unit| whole(3));
    assert_eq!(reserves(&asked(0, 0), "usd"), Some(whole(3)));
    assert_eq!(reserves(&asked(8, 0), "usd"), Some(whole(2)), "capped to what is left");
    assert_eq!(reserves(&asked(5, 4), "usd"), Some(whole(1)));
}

#[test]
fn a_turn_of_which_nothing_is_known_reserves_all_that_is_left() {
    let usd = budget("usd", 10);
    let asked =
        |used, reserved| admit(&[standing(&usd, used, reserved)], false, |unit| estimate(unit, true, &[]));
    assert_eq!(reserves(&asked(3, 2), "usd"), Some(whole(5)));
    assert_eq!(asked(3, 7), Admission::Deferred(&usd), "the next waits for it");
}

#[test]
fn what_holds_is_the_first_ledger_at_its_limit_and_what_is_reserved_holds_nothing() {
    let (usd, tokens) = (budget("usd", 10), budget("tokens", 10));
    let of = |usd_used, tokens_used| {
        full(&[standing(&usd, usd_used, 10), standing(&tokens, tokens_used, 0)]).map(|full| full.budget)
    };
    assert_eq!([of(9, 0), of(9, 10), of(10, 11)], [None, Some(&tokens), Some(&usd)]);
    assert_eq!(
        [7, 8, 9, 10].map(|used| standing(&usd, used, 0).is_past_warning()),
        [false, true, true, false]
    );
    let words = "of the budget of usd per scope a day, 8 of 10 usd is used";
    assert_eq!(standing(&usd, 8, 0).words(), words);
}

#[test]
fn a_limit_that_is_reached_holds_and_what_others_reserved_only_defers() {
    let usd = budget("usd", 10);
    let asked = |used, reserved| admit(&[standing(&usd, used, reserved)], false, |_unit| whole(3));
    assert_eq!(asked(10, 0), Admission::Held(standing(&usd, 10, 0)));
    assert_eq!(asked(11, 5), Admission::Held(standing(&usd, 11, 5)));
    assert_eq!(asked(9, 1), Admission::Deferred(&usd));
    assert_eq!(asked(0, 12), Admission::Deferred(&usd));
}

#[test]
fn a_hold_is_never_hidden_behind_a_deferral() {
    let (crowded, full) = (budget("usd", 10), budget("tokens", 10));
    let standings = [standing(&crowded, 5, 5), standing(&full, 10, 0)];
    assert_eq!(admit(&standings, false, |_unit| whole(1)), Admission::Held(standings[1]));
}

#[test]
fn a_turn_that_was_let_through_starts_whatever_a_ledger_says() {
    let usd = budget("usd", 10);
    for (used, reserved) in [(10, 0), (12, 0), (5, 5)] {
        let admission = admit(&[standing(&usd, used, reserved)], true, |_unit| whole(3));
        assert_eq!(reserves(&admission, "usd"), Some(Amount::ZERO));
    }
}

#[test]
fn the_tightest_budget_of_a_unit_caps_what_is_reserved() {
    let (wide, tight) = (budget("usd", 100), Budget { per: Per::Work, ..budget("usd", 4) });
    for order in [[&wide, &tight], [&tight, &wide]] {
        let standings = order.map(|budget| standing(budget, 2, 0));
        assert_eq!(reserves(&admit(&standings, false, |_unit| whole(50)), "usd"), Some(whole(2)));
    }
}

#[test]
fn an_estimate_is_the_median_of_the_last_five() {
    let tokens = Unit::known("tokens");
    let of = |recent: &[i64]| {
        let recent: Vec<Amount> = recent.iter().copied().map(whole).collect();
        estimate(&tokens, true, &recent)
    };
    assert_eq!(of(&[]), Amount::MAX, "nothing is known");
    assert_eq!(of(&[7]), whole(7));
    assert_eq!(of(&[1, 9]), whole(9), "the larger of the middle two");
    assert_eq!(of(&[9, 1, 5, 100, 2]), whole(5));
    assert_eq!(of(&[1, 1, 1, 1, 1, 90, 90, 90, 90, 90]), whole(1), "older ones are forgotten");
    assert_eq!(remembered(whole(6), &[1, 2, 3, 4, 5].map(whole)), [6, 1, 2, 3, 4].map(whole));
}

#[test]
fn turns_and_attempts_are_counted_and_not_reported() {
    let usage = |unit: &str, units: i64| Usage { unit: unit.to_owned(), thousandths: units * 1000 };
    let reported = [usage("turns", 50), usage("attempts", 50), usage("usd", 2), usage("usd", -9)];
    let of = |unit: &str, is_first| used(&Unit::known(unit), is_first, &reported);
    assert_eq!([of("turns", true), of("turns", false)], [Amount::ONE; 2]);
    assert_eq!([of("attempts", true), of("attempts", false)], [Amount::ONE, Amount::ZERO]);
    assert_eq!([of("usd", true), of("tokens", true)], [whole(2), Amount::ZERO]);
    assert_eq!(estimate(&Unit::known("turns"), false, &[whole(9)]), Amount::ONE);
    assert_eq!(estimate(&Unit::known("attempts"), false, &[]), Amount::ZERO);
}

#[test]
fn a_crossing_is_where_a_ledger_comes_to_its_threshold() {
    let usd = budget("usd", 10);
    let crossed = |before, after| usd.crossed(whole(before), whole(after));
    assert_eq!(crossed(0, 7), []);
    assert_eq!(crossed(7, 8), [Crossing::Warning]);
    assert_eq!(crossed(8, 9), [], "once");
    assert_eq!(crossed(9, 10), [Crossing::Limit]);
    assert_eq!(crossed(10, 30), []);
    assert_eq!(crossed(0, 10), [Crossing::Warning, Crossing::Limit]);
    let late = Budget { warning_percent: 100, ..usd.clone() };
    assert_eq!(late.crossed(whole(0), whole(10)), [Crossing::Limit]);
}

#[test]
fn a_crossing_has_one_identity_for_each_ledger_stretch_and_threshold() {
    let (work, scope) = (WorkId::from_number(1), ScopeName::known("main"));
    let at = |text| Timestamp::parse(text).unwrap();
    let usd = budget("usd", 10);
    let id = |budget: &Budget, now| Crossing::Limit.delivery(&budget.ledger(work, &scope, now), budget);
    let (morning, evening, next) =
        (at("2026-03-01T00:00:00Z"), at("2026-03-01T23:59:59Z"), at("2026-03-02T00:00:00Z"));
    assert_eq!(id(&usd, morning), id(&usd, evening));
    assert_ne!(id(&usd, evening), id(&usd, next));
    assert_ne!(id(&usd, evening), id(&budget("usd", 20), evening), "a raised limit can be crossed again");
    let ledger = usd.ledger(work, &scope, morning);
    assert_ne!(Crossing::Warning.delivery(&ledger, &usd), Crossing::Limit.delivery(&ledger, &usd));
}

#[test]
fn windows_begin_at_midnight_and_on_monday() {
    let at = |text| Timestamp::parse(text).unwrap();
    // A Sunday.
    let now = at("2026-03-01T12:00:00Z");
    assert_eq!(Window::Day.start(now), at("2026-03-01T00:00:00Z"));
    assert_eq!(Window::Day.end(now), Some(at("2026-03-02T00:00:00Z")));
    assert_eq!(Window::Week.start(now), at("2026-02-23T00:00:00Z"));
    assert_eq!(Window::Week.end(now), Some(at("2026-03-02T00:00:00Z")));
    assert_eq!(Window::Week.start(at("2026-03-02T00:00:00Z")), at("2026-03-02T00:00:00Z"));
    assert_eq!((Window::Life.start(now), Window::Life.end(now)), (Timestamp::EPOCH, None));
}

#[test]
fn each_budget_looks_at_its_own_ledger() {
    let (work, scope) = (WorkId::from_number(7), ScopeName::known("main"));
    let now = Timestamp::parse("2026-03-01T12:00:00Z").unwrap();
    let owner = |per| Budget { per, ..budget("usd", 1) }.ledger(work, &scope, now).owner;
    assert_eq!(owner(Per::Work), Owner::Work(work));
    assert_eq!(owner(Per::Scope), Owner::Scope(scope.clone()));
    assert_eq!(owner(Per::All), Owner::All);
}

#[test]
fn amounts_are_decimals_of_three_places() {
    for (text, thousandths) in [("0", 0), ("2.5", 2500), ("10", 10_000), ("0.001", 1), ("1.050", 1050)] {
        assert_eq!(text.parse(), Ok(Amount::of_thousandths(thousandths)), "{text}");
    }
    for bad in ["", "-1", "1.", ".5", "1.2345", "1e3", "NaN", "99999999999999999999"] {
        assert!(bad.parse::<Amount>().is_err(), "{bad}");
    }
    assert_eq!(Amount::of_thousandths(1050).to_string(), "1.05");
    assert_eq!(whole(20).to_string(), "20");
    assert_eq!(whole(1).less(whole(2)), Amount::ZERO);
    assert_eq!(Amount::of_thousandths(1).percent(80), Amount::of_thousandths(1), "rounded up");
}
