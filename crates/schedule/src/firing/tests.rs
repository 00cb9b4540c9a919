//! Tests of arming, firing, editing and repairing.

use extension::Timestamp;

use super::{
    ArmReason, Armed, Ensured, Fired, Firing, LastSlot, MISSED_COUNTED_MAX, MissedReason, ScopeState, Stored,
    Wanted, ensure, fire,
};
use crate::cron::Cron;
use crate::slot::Pattern;
use crate::timing::{CatchUp, Timing};
use crate::zone::Zone;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn cron(text: &str, zone: &str) -> Timing {
    Timing::Slots(Pattern::Cron(Cron::parse(text).unwrap()), Zone::named(zone).unwrap())
}

fn wanted(timing: &Timing) -> Wanted<'_> {
    Wanted::Timed(timing, CatchUp::default())
}

/// A timer whose job ran at this slot last.
fn armed(timing: &Timing, ran: Option<&str>, due: &str) -> Armed {
    let last = ran.map(|ran| {
        let Timing::Slots(pattern, zone) = timing else { panic!("an interval has no slots") };
        let slot = pattern.latest(zone, at(ran)).unwrap();
        LastSlot { at: slot.at, name: slot.name(zone) }
    });
    let stored = Stored { last, ..Stored::new(timing.clone(), CatchUp::default()) };
    Armed { stored, due_at: at(due) }
}

#[track_caller]
fn fired(armed: &Armed, now: &str) -> Fired {
    match fire(armed, ScopeState::Enabled, at(now)) {
        Firing::Fires(fired) => *fired,
        Firing::Rests => panic!("it is due"),
    }
}

fn published(fired: &Fired) -> Option<String> {
    fired.publishes.as_ref().map(|occurrence| occurrence.at.to_string())
}

fn due(fired: &Fired) -> Option<String> {
    fired.rearmed.as_ref().map(|armed| armed.due_at.to_string())
}

/// Reason, first, last and number of what was passed over.
fn told(fired: &Fired) -> Vec<(MissedReason, String, String, u32)> {
    let row = |missed: &super::Missed| {
        (missed.reason, missed.first.at.to_string(), missed.last.at.to_string(), missed.count)
    };
    fired.missed.iter().map(row).collect()
}

#[track_caller]
fn arms(ensured: &Ensured) -> (String, ArmReason) {
    match ensured {
        Ensured::Arm(armed, reason) => (armed.due_at.to_string(), *reason),
        Ensured::Keep | Ensured::Disarm => panic!("{ensured:?}"),
    }
}

#[test]
fn a_timer_that_is_not_due_or_whose_scope_is_disabled_rests() {
    let job = armed(&cron("0 9 * * *", ""), None, "2026-06-01T09:00:00Z");
    assert_eq!(fire(&job, ScopeState::Enabled, at("2026-06-01T08:59:59.999999Z")), Firing::Rests);
    assert_eq!(fire(&job, ScopeState::Disabled, at("2026-06-01T09:00:00Z")), Firing::Rests);
    assert!(matches!(fire(&job, ScopeState::Enabled, at("2026-06-01T09:00:00Z")), Firing::Fires(_)));
}

#[test]
fn a_slot_runs_until_six_hours_later_and_not_then() {
    let job = armed(&cron("0 9 * * *", ""), Some("2026-05-31T09:00:00Z"), "2026-06-01T09:00:00Z");
    let inside = fired(&job, "2026-06-01T14:59:59.999999Z");
    assert_eq!(published(&inside).as_deref(), Some("2026-06-01T09:00:00Z"));
    assert!(inside.missed.is_empty());
    let outside = fired(&job, "2026-06-01T15:00:00Z");
    assert_eq!(published(&outside), None);
    let slot = "2026-06-01T09:00:00Z".to_owned();
    assert_eq!(told(&outside), [(MissedReason::TooLate, slot.clone(), slot, 1)]);
    assert_eq!(due(&inside), due(&outside));
}

#[test]
fn a_job_says_how_late_it_may_run() {
    let mut job = armed(&cron("0 9 * * *", ""), None, "2026-06-01T09:00:00Z");
    job.stored.catch_up = CatchUp::parse("none").unwrap();
    assert!(published(&fired(&job, "2026-06-01T09:00:59Z")).is_some());
    assert!(published(&fired(&job, "2026-06-01T09:01:00Z")).is_none());
    job.stored.catch_up = CatchUp::parse("2d").unwrap();
    assert!(published(&fired(&job, "2026-06-02T08:59:00Z")).is_some());
}

#[test]
fn an_answer_holds_until_the_next_slot_or_the_end_of_the_catch_up() {
    let daily = armed(&cron("0 9 * * *", ""), None, "2026-06-01T09:00:00Z");
    let answer = fired(&daily, "2026-06-01T10:00:00Z");
    assert_eq!(answer.valid_until, Some(at("2026-06-01T15:00:00Z")));
    assert_eq!(fired(&daily, "2026-06-01T15:00:00Z").valid_until, Some(at("2026-06-02T09:00:00Z")));
    let hourly = armed(&cron("0 * * * *", ""), None, "2026-06-01T09:00:00Z");
    assert_eq!(fired(&hourly, "2026-06-01T09:00:01Z").valid_until, Some(at("2026-06-01T10:00:00Z")));
}

#[test]
fn a_second_moment_of_one_name_is_neither_run_nor_missed() {
    let job = armed(&cron("30 1 * * *", "Europe/London"), None, "2026-10-25T00:30:00Z");
    let first = fired(&job, "2026-10-25T00:30:00Z");
    assert_eq!(published(&first).as_deref(), Some("2026-10-25T00:30:00Z"));
    assert_eq!(due(&first).as_deref(), Some("2026-10-26T01:30:00Z"));
    let over_both = fired(&job, "2026-10-25T02:00:00Z");
    assert_eq!(published(&over_both).as_deref(), Some("2026-10-25T01:30:00Z"));
    assert!(over_both.missed.is_empty(), "{:?}", over_both.missed);
}

#[test]
fn what_is_passed_over_is_counted_up_to_a_bound() {
    let minutely = armed(&cron("* * * * *", ""), None, "2026-06-01T00:00:00Z");
    let short = fired(&minutely, "2026-06-01T00:10:30Z");
    let (first, last) = ("2026-06-01T00:00:00Z".to_owned(), "2026-06-01T00:09:00Z".to_owned());
    assert_eq!(told(&short), [(MissedReason::Older, first.clone(), last, 10)]);
    let long = fired(&minutely, "2026-07-01T00:00:00Z");
    let last = "2026-06-30T23:59:00Z".to_owned();
    assert_eq!(told(&long), [(MissedReason::Older, first, last, MISSED_COUNTED_MAX)]);
}

#[test]
fn a_slot_from_before_the_timer_was_due_is_not_told_to_be_missed() {
    // The zone data changed while it was armed, so that it is due at no slot.
    let job = armed(&cron("0 9 * * *", ""), None, "2026-06-01T12:00:00Z");
    let late = fired(&job, "2026-06-01T16:00:00Z");
    assert_eq!(published(&late), None);
    assert!(late.missed.is_empty(), "{:?}", late.missed);
}

#[test]
fn an_interval_keeps_its_grid_until_an_outage() {
    let job = armed(&Timing::Every(60), None, "2026-06-01T10:07:13Z");
    let regular = fired(&job, "2026-06-01T10:07:15Z");
    assert_eq!(published(&regular).as_deref(), Some("2026-06-01T10:07:13Z"));
    assert_eq!(due(&regular).as_deref(), Some("2026-06-01T11:07:13Z"));
    assert_eq!(regular.valid_until, Some(at("2026-06-01T11:07:13Z")));
    let at_the_edge = fired(&job, "2026-06-01T11:07:13Z");
    assert_eq!(due(&at_the_edge).as_deref(), Some("2026-06-01T12:07:13Z"));
    let after_an_outage = fired(&job, "2026-06-03T00:00:00Z");
    assert_eq!(published(&after_an_outage).as_deref(), Some("2026-06-01T10:07:13Z"));
    assert_eq!(due(&after_an_outage).as_deref(), Some("2026-06-03T01:00:00Z"));
}

#[test]
fn a_new_time_waits_and_a_new_interval_runs_at_once() {
    let now = at("2026-06-01T09:30:00Z");
    let slots = ensure(None, wanted(&cron("0 9 * * *", "")), now);
    assert_eq!(arms(&slots), ("2026-06-02T09:00:00Z".to_owned(), ArmReason::New));
    let interval = ensure(None, wanted(&Timing::Every(60)), now);
    assert_eq!(arms(&interval), ("2026-06-01T09:30:00Z".to_owned(), ArmReason::New));
}

#[test]
fn an_edited_timing_is_armed_anew() {
    let now = at("2026-06-01T09:30:00Z");
    let job = armed(&cron("0 9 * * *", ""), Some("2026-06-01T09:00:00Z"), "2026-06-02T09:00:00Z");
    let to = |timing: &Timing| arms(&ensure(Some(&job), wanted(timing), now)).0;
    assert_eq!(to(&Timing::Every(5)), "2026-06-01T09:30:00Z");
    assert_eq!(to(&cron("15 9 * * *", "")), "2026-06-01T09:15:00Z", "its latest slot runs once");
    assert_eq!(to(&cron("30 3 * * *", "")), "2026-06-02T03:30:00Z", "exactly six hours is too late");
    assert_eq!(
        to(&cron("0 9 * * 1", "")),
        "2026-06-08T09:00:00Z",
        "the slot that ran last does not run again"
    );
    assert_eq!(
        to(&cron("0 10 * * *", "Europe/London")),
        "2026-06-02T09:00:00Z",
        "nor does its moment by another name"
    );
    let never = cron("0 0 31 2 *", "");
    assert_eq!(ensure(Some(&job), wanted(&never), now), Ensured::Disarm);
    assert_eq!(ensure(None, wanted(&never), now), Ensured::Keep);
    let edited = ensure(Some(&job), wanted(&cron("15 9 * * *", "")), now);
    let Ensured::Arm(edited, ArmReason::Edited) = edited else { panic!("{edited:?}") };
    let run = fired(&edited, "2026-06-01T09:30:00Z");
    assert_eq!(published(&run).as_deref(), Some("2026-06-01T09:15:00Z"));
    assert!(run.missed.is_empty());
}

#[test]
fn another_spelling_and_other_triggers_do_not_move_a_timer() {
    let now = at("2026-06-01T10:00:00Z");
    let job = armed(&cron("0 9 * * *", "UTC"), Some("2026-06-01T09:00:00Z"), "2026-06-02T09:00:00Z");
    assert_eq!(ensure(Some(&job), wanted(&cron("00 9 */1 * ?", "")), now), Ensured::Keep);
    let later = Wanted::Timed(&job.stored.timing, CatchUp::parse("1h").unwrap());
    let updated = ensure(Some(&job), later, now);
    assert_eq!(arms(&updated), ("2026-06-02T09:00:00Z".to_owned(), ArmReason::Updated));
}

#[test]
fn a_removed_job_loses_its_timer_and_a_disabled_scope_keeps_it() {
    let job = armed(&Timing::Every(5), None, "2026-06-01T09:00:00Z");
    let now = at("2026-06-01T10:00:00Z");
    assert_eq!(ensure(Some(&job), Wanted::Nothing, now), Ensured::Disarm);
    assert_eq!(ensure(Some(&job), Wanted::Disabled, now), Ensured::Keep);
    assert_eq!(ensure(None, Wanted::Nothing, now), Ensured::Keep);
    assert_eq!(ensure(None, Wanted::Disabled, now), Ensured::Keep);
}

#[test]
fn what_is_stored_is_read_again() {
    let job =
        armed(&cron("0 9 * * *", "Europe/London"), Some("2026-06-01T08:00:00Z"), "2026-06-02T08:00:00Z");
    let text = serde_json::to_string(&job.stored).unwrap();
    assert_eq!(serde_json::from_str::<Stored>(&text).unwrap(), job.stored, "{text}");
}

#[test]
fn s11_a_clock_that_was_set_back_leaves_no_timer_waiting_for_the_old_future() {
    let five = cron("*/5 * * * *", "");
    let job = armed(&five, Some("2026-06-01T10:55:00Z"), "2026-06-01T11:00:00Z");
    let back = ensure(Some(&job), wanted(&five), at("2026-06-01T09:56:00Z"));
    assert_eq!(arms(&back), ("2026-06-01T10:00:00Z".to_owned(), ArmReason::Repaired));
    let job = armed(&five, Some("2097-12-31T23:55:00Z"), "2098-01-01T00:00:00Z");
    let back = ensure(Some(&job), wanted(&five), at("2026-06-01T00:01:00Z"));
    assert_eq!(arms(&back).0, "2026-06-01T00:05:00Z");
    let Ensured::Arm(back, _) = back else { panic!("it is armed") };
    let run = fired(&back, "2026-06-01T00:05:00Z");
    assert_eq!(published(&run).as_deref(), Some("2026-06-01T00:05:00Z"));
    assert!(run.missed.is_empty(), "nothing was passed over: {:?}", run.missed);
    let every = armed(&Timing::Every(5), None, "2098-01-01T00:00:00Z");
    let back = ensure(Some(&every), wanted(&Timing::Every(5)), at("2026-06-01T00:00:00Z"));
    assert_eq!(arms(&back), ("2026-06-01T00:05:00Z".to_owned(), ArmReason::Repaired));
    // A name that ran last is not waited for again, so the second before a slot changes nothing.
    let daily = cron("0 9 * * *", "");
    let job = armed(&daily, Some("2026-06-01T09:00:00Z"), "2026-06-02T09:00:00Z");
    assert_eq!(ensure(Some(&job), wanted(&daily), at("2026-06-01T08:59:59Z")), Ensured::Keep);
}

#[test]
fn s16_an_edit_runs_what_is_due_within_six_hours_and_nothing_older() {
    let weekly = armed(&cron("30 11 * * 5", ""), Some("2017-12-29T11:30:00Z"), "2018-01-05T11:30:00Z");
    let edited = ensure(Some(&weekly), wanted(&cron("0 11 * * 5", "")), at("2018-01-04T23:49:00Z"));
    assert_eq!(arms(&edited), ("2018-01-05T11:00:00Z".to_owned(), ArmReason::Edited));
    let hourly = armed(&cron("0 * * * *", ""), Some("2026-06-01T10:00:00Z"), "2026-06-01T11:00:00Z");
    let timing = cron("15 * * * *", "");
    let edited = ensure(Some(&hourly), wanted(&timing), at("2026-06-01T10:20:00Z"));
    assert_eq!(arms(&edited).0, "2026-06-01T10:15:00Z");
    let Ensured::Arm(edited, _) = edited else { panic!("it is armed") };
    let run = fired(&edited, "2026-06-01T10:20:00Z");
    let again = run.rearmed.unwrap();
    assert_eq!(ensure(Some(&again), wanted(&timing), at("2026-06-01T10:21:00Z")), Ensured::Keep);
}

#[test]
fn s17_an_apply_that_leaves_the_time_alone_fires_nothing() {
    let daily = cron("0 9 * * *", "");
    let job = armed(&daily, Some("2026-06-01T09:00:00Z"), "2026-06-02T09:00:00Z");
    assert_eq!(ensure(Some(&job), wanted(&daily), at("2026-06-01T10:00:00Z")), Ensured::Keep);
}

#[test]
fn s18_a_restart_does_not_reset_an_interval() {
    let job = armed(&Timing::Every(60), None, "2026-06-01T11:00:00Z");
    for restart in ["2026-06-01T10:55:00Z", "2026-06-01T10:58:00Z"] {
        assert_eq!(ensure(Some(&job), wanted(&Timing::Every(60)), at(restart)), Ensured::Keep);
    }
    assert_eq!(published(&fired(&job, "2026-06-01T11:00:00Z")).as_deref(), Some("2026-06-01T11:00:00Z"));
}

#[test]
fn s19_a_new_job_waits_for_its_next_slot_even_within_six_hours() {
    let monthly = cron("0 0 1 * *", "");
    let fresh = |now: &str| arms(&ensure(None, wanted(&monthly), at(now))).0;
    assert_eq!(fresh("2026-06-17T10:00:00Z"), "2026-07-01T00:00:00Z");
    assert_eq!(fresh("2026-07-01T02:00:00Z"), "2026-08-01T00:00:00Z");
}

#[test]
fn s20_what_a_disabled_scope_missed_is_one_run_at_most() {
    let job = armed(&cron("0 * * * *", ""), Some("2026-06-01T09:00:00Z"), "2026-06-01T10:00:00Z");
    assert_eq!(fire(&job, ScopeState::Disabled, at("2026-06-01T13:09:00Z")), Firing::Rests);
    let run = fired(&job, "2026-06-01T13:10:00Z");
    assert_eq!(published(&run).as_deref(), Some("2026-06-01T13:00:00Z"));
    assert_eq!(due(&run).as_deref(), Some("2026-06-01T14:00:00Z"));
}
