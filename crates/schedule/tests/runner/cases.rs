//! Public reports of schedulers that failed, as small inputs: what is right here. Those about arming and editing stand
//! beside the code.

use schedule::cron::Cron;
use schedule::delivery::{Delivery, Reason, answer};
use schedule::firing::{Armed, Firing, LastSlot, ScopeState, Stored, fire};
use schedule::job::{Entry, Job};
use schedule::slot::Pattern;
use schedule::timing::{CatchUp, Timing};
use schedule::zone::Zone;
use serde_json::{Value, json};

use super::vectors::at;

fn timing(cron: &str, zone: &str) -> Timing {
    Timing::Slots(Pattern::Cron(Cron::parse(cron).unwrap()), Zone::named(zone).unwrap())
}

#[track_caller]
fn next(cron: &str, zone: &str, from: &str, expected: &[&str]) {
    let Timing::Slots(pattern, zone) = timing(cron, zone) else { panic!("it has slots") };
    let slots = pattern.slots(&zone, at(from)).take(expected.len());
    let found: Vec<String> = slots.map(|slot| slot.at.to_string()).collect();
    assert_eq!(found, expected);
}

/// What a firing publishes, and when the timer is due then, for a job that ran last at `ran`.
#[track_caller]
fn fires(timing: &Timing, ran: &str, now: &str) -> (Option<String>, String) {
    let Timing::Slots(pattern, zone) = timing else { panic!("it has slots") };
    let slot = pattern.latest(zone, at(ran)).unwrap();
    let last = Some(LastSlot { at: slot.at, name: slot.name(zone) });
    let due_at = pattern.slots(zone, at(ran)).find(|next| next.minute != slot.minute).unwrap().at;
    let stored = Stored { last, ..Stored::new(timing.clone(), CatchUp::default()) };
    let Firing::Fires(fired) = fire(&Armed { stored, due_at }, ScopeState::Enabled, at(now)) else {
        return (None, due_at.to_string());
    };
    (fired.publishes.map(|slot| slot.at.to_string()), fired.rearmed.unwrap().due_at.to_string())
}

#[test]
fn s01_a_daily_job_runs_once_when_clocks_go_back() {
    let berlin = timing("0 2 * * *", "Europe/Berlin");
    let tomorrow = "2023-10-30T01:00:00Z".to_owned();
    let first = fires(&berlin, "2023-10-28T00:00:00Z", "2023-10-29T00:00:00Z");
    assert_eq!(first, (Some("2023-10-29T00:00:00Z".to_owned()), tomorrow.clone()));
    let again = fires(&berlin, "2023-10-29T00:00:00Z", "2023-10-29T01:00:00Z");
    assert_eq!(again, (None, tomorrow));
}

#[test]
fn s02_a_time_that_the_clocks_skip_is_left_out() {
    next("0 2 * * *", "America/Los_Angeles", "2025-03-08T10:00:00Z", &["2025-03-10T09:00:00Z"]);
}

#[test]
fn s03_every_minute_of_a_repeated_hour_runs() {
    let moments = ["2025-10-26T00:59:00Z", "2025-10-26T01:00:00Z", "2025-10-26T01:01:00Z"];
    next("* * * * *", "Europe/London", "2025-10-26T00:58:30Z", &moments);
    let minutely = timing("* * * * *", "Europe/London");
    for pair in moments.windows(2) {
        assert_eq!(fires(&minutely, pair[0], pair[1]).0.as_deref(), Some(pair[1]));
    }
}

#[test]
fn s04_the_next_moment_is_later_at_a_second_of_two() {
    next("30 * * * *", "Europe/Helsinki", "2017-10-29T01:45:00Z", &["2017-10-29T02:30:00Z"]);
    next("1 0 * * *", "America/St_Johns", "2006-10-29T02:31:00Z", &["2006-10-29T03:31:00Z"]);
}

#[test]
fn s05_a_midnight_that_is_not_there_hides_no_later_time() {
    next("0 1 4 11 *", "America/Sao_Paulo", "2018-11-04T02:00:00Z", &["2018-11-04T03:00:00Z"]);
}

#[test]
fn s06_a_clock_change_stops_nothing() {
    let moments = ["2020-03-08T07:00:00Z", "2020-03-08T07:10:00Z", "2020-03-08T07:20:00Z"];
    next("*/10 * * * *", "America/New_York", "2020-03-08T06:50:00Z", &moments);
}

#[test]
fn s08_an_expression_is_right_or_wrong_by_its_text_alone() {
    next("0 2 * * *", "Europe/Copenhagen", "2018-10-22T10:00:00Z", &["2018-10-23T00:00:00Z"]);
    next("0 0 31 2 *", "Europe/Copenhagen", "2018-10-22T10:00:00Z", &[]);
    assert_eq!(timing("0 0 31 2 *", "").next(at("2018-10-22T10:00:00Z")), None);
}

#[test]
fn s09_however_many_were_missed_the_latest_runs_and_the_job_goes_on() {
    let answer = fires(&timing("* * * * *", ""), "2026-06-01T00:00:00Z", "2026-06-01T12:00:30Z");
    assert_eq!(answer, (Some("2026-06-01T12:00:00Z".to_owned()), "2026-06-01T12:01:00Z".to_owned()));
}

#[test]
fn s10_a_clock_put_forward_is_one_run_of_an_interval() {
    let stored = Stored::new(Timing::Every(1), CatchUp::default());
    let armed = Armed { stored, due_at: at("2026-06-01T10:01:00Z") };
    let Firing::Fires(fired) = fire(&armed, ScopeState::Enabled, at("2026-06-01T11:00:30Z")) else {
        panic!("it is due")
    };
    let rearmed = fired.rearmed.unwrap();
    assert_eq!(rearmed.due_at, at("2026-06-01T11:01:30Z"));
    assert_eq!(fire(&rearmed, ScopeState::Enabled, at("2026-06-01T11:00:30Z")), Firing::Rests);
}

#[test]
fn s12_three_days_asleep_is_one_run_within_six_hours_and_none_at_six() {
    let daily = timing("0 4 * * *", "America/New_York");
    let tomorrow = "2026-02-10T09:00:00Z".to_owned();
    let awake = |now: &str| fires(&daily, "2026-02-06T09:00:00Z", now);
    let today = Some("2026-02-09T09:00:00Z".to_owned());
    assert_eq!(awake("2026-02-09T12:00:00Z"), (today.clone(), tomorrow.clone()));
    assert_eq!(awake("2026-02-09T14:59:59Z"), (today, tomorrow.clone()));
    assert_eq!(awake("2026-02-09T15:00:00Z"), (None, tomorrow));
}

#[test]
fn s13_a_restart_runs_nothing_that_has_run() {
    for hour in 6..=10 {
        for minute in [0, 20, 40] {
            let daily = timing(&format!("{minute} {hour} * * *"), "");
            let ran = format!("2026-06-01T{hour:02}:{minute:02}:00Z");
            for restart in ["2026-06-01T11:30:00Z", "2026-06-02T00:00:00Z"] {
                assert_eq!(fires(&daily, &ran, restart).0, None, "{ran} {restart}");
            }
        }
    }
}

#[test]
fn s14_a_short_outage_of_a_minutely_job_is_one_run() {
    let answer = fires(&timing("* * * * *", ""), "2026-06-01T16:40:00Z", "2026-06-01T16:44:42Z");
    assert_eq!(answer, (Some("2026-06-01T16:44:00Z".to_owned()), "2026-06-01T16:45:00Z".to_owned()));
}

fn job(on: &Value) -> Job {
    let config = json!({ "namespace": "schedule/t", "jobs": [{ "name": "a", "on": on }] });
    Entry::read(&config, &extension::ScopeName::known("t"), &[]).unwrap().jobs.remove(0)
}

#[track_caller]
fn starts(on: &Value, delivery: Value, expected: bool) -> Reason {
    let delivery: Delivery = serde_json::from_value(delivery).unwrap();
    let answer = answer(&job(on), &delivery);
    assert_eq!(answer.matches, expected, "{on} {delivery:?}: {}", answer.reason);
    answer.reason
}

fn push(name: &str, files: &[&str]) -> Value {
    json!({ "event": "push", "ref": name, "after": "abc", "files": files, "files_complete": true })
}

#[test]
fn s30_a_deleted_branch_starts_nothing() {
    let mut deleted = push("refs/heads/main", &[]);
    deleted["deleted"] = json!(true);
    for on in [
        json!({ "events": ["push"] }),
        json!({ "events": ["push"], "branches": ["main"] }),
        json!({ "events": ["push"], "paths": ["**"] }),
    ] {
        assert_eq!(starts(&on, deleted.clone(), false), Reason::Deleted);
    }
}

#[test]
fn s31_a_branch_is_matched_whole() {
    let pushed = || push("refs/heads/bugfix/master", &["a"]);
    for (pattern, expected) in [("master", false), ("*", false), ("**", true), ("bugfix/*", true)] {
        let _reason = starts(&json!({ "events": ["push"], "branches": [pattern] }), pushed(), expected);
    }
}

#[test]
fn s32_a_list_that_may_be_cut_counts_as_unknown() {
    let on = json!({ "events": ["push"], "paths": ["site/**"] });
    let mut files: Vec<String> = (0..467).map(|n| format!("docs/{n}")).collect();
    let whole = |files: &[String], complete: bool| json!({ "event": "push", "ref": "refs/heads/main", "files": files, "files_complete": complete });
    assert_eq!(starts(&on, whole(&files, true), false), Reason::Files(467));
    assert_eq!(starts(&on, whole(&files, false), true), Reason::FilesUnknown);
    files.push("site/last".to_owned());
    assert_eq!(starts(&on, whole(&files, true), true), Reason::File("site/last".to_owned()));
}

#[test]
fn s33_the_last_pattern_that_matches_decides() {
    let on = |paths: Value| json!({ "events": ["push"], "paths": paths });
    let but_posted = on(json!(["data/reels/*.json", "!data/reels/posted.json"]));
    let posted = "data/reels/posted.json";
    starts(&but_posted, push("refs/heads/main", &[posted]), false);
    starts(&but_posted, push("refs/heads/main", &[posted, "data/reels/a.json"]), true);
    starts(&but_posted, push("refs/heads/main", &["data/reels/x/y.json"]), false);
    let taken_again = on(json!(["!data/reels/posted.json", "data/reels/*.json"]));
    starts(&taken_again, push("refs/heads/main", &[posted]), true);
}

#[test]
fn s34_a_check_that_names_no_branch_starts_no_job_with_branches() {
    let check = |name: Value| json!({ "event": "check_suite", "action": "completed", "conclusion": "failure", "ref": name, "after": "abc" });
    let on_main = json!({ "events": ["check_suite.completed"], "branches": ["main"], "conclusions": ["failure", "timed_out"] });
    assert_eq!(starts(&on_main, check(Value::Null), false), Reason::NoBranch);
    starts(&on_main, check(json!("refs/heads/main")), true);
}

#[test]
fn s35_only_the_conclusions_that_are_named_start_a_job() {
    let on = json!({ "events": ["check_run", "push"], "conclusions": ["failure", "timed_out"] });
    let check =
        |conclusion: Value| json!({ "event": "check_run", "action": "completed", "conclusion": conclusion });
    for (conclusion, expected) in
        [("cancelled", false), ("FAILURE", true), ("Timed_Out", true), ("skipped", false), ("other", false)]
    {
        let _reason = starts(&on, check(json!(conclusion)), expected);
    }
    assert_eq!(starts(&on, check(Value::Null), false), Reason::NoConclusion);
    assert_eq!(starts(&on, push("refs/heads/main", &["a"]), false), Reason::NoConclusion);
}

#[test]
fn a_tag_has_no_branch_and_its_files_are_unknown() {
    let tag = || json!({ "event": "push", "ref": "refs/tags/main", "files": [], "files_complete": false });
    assert_eq!(starts(&json!({ "events": ["push"], "branches": ["**"] }), tag(), false), Reason::NoBranch);
    assert_eq!(
        starts(&json!({ "events": ["push"], "paths": ["site/**"] }), tag(), true),
        Reason::FilesUnknown
    );
}

#[test]
fn an_event_is_taken_by_its_name_and_action() {
    let release = |action: &str| json!({ "event": "release", "action": action });
    let on = json!({ "events": ["release.published", "issues"], "paths": ["site/**"] });
    assert_eq!(starts(&on, release("published"), true), Reason::Matches);
    assert_eq!(starts(&on, release("created"), false), Reason::Event("release.created".to_owned()));
    assert_eq!(starts(&on, json!({ "event": "issues", "action": "opened" }), true), Reason::Matches);
    assert_eq!(
        starts(&json!({ "webhook": false, "events": ["push"] }), release("published"), false).to_string(),
        "`release.published` is none of `on.events`"
    );
}
