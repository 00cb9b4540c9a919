//! Tests of what an entry may say and how it is told what is wrong.

use extension::ScopeName;
use serde_json::{Value, json};

use super::{Entry, JobName};
use crate::timing::{CatchUp, Timing};

fn read(config: &Value) -> Result<Entry, Vec<String>> {
    let read = Entry::read(config, &ScopeName::known("eng"), &["hook".to_owned()]);
    read.map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

fn entry(jobs: &Value) -> Value {
    json!({ "namespace": "schedule/eng", "webhook_secret": "hook", "jobs": jobs })
}

/// What is wrong with one job.
#[track_caller]
fn refused(job: &Value) -> Vec<String> {
    read(&entry(&json!([job]))).unwrap_err()
}

#[test]
fn every_field_is_read() {
    let config = json!({
        "namespace": "schedule/eng", "scope": "eng", "webhook_secret": "hook",
        "jobs": [
            { "name": "report", "cron": "0 9,13,18 * * *", "time_zone": "Europe/London" },
            { "name": "refresh", "at": ["05:17"], "catch_up": "none" },
            { "name": "tick", "every_minutes": 60 },
            { "name": "post", "on": { "events": ["push"], "branches": ["main"],
                                      "paths": ["data/reels/*.json", "!data/reels/posted.json"] } },
            { "name": "red-main", "on": { "events": ["check_suite.completed"], "branches": ["main"],
                                          "conclusions": ["Failure", "timed_out"] } },
            { "name": "poke", "on": { "webhook": true } },
            { "name": "by-hand" },
        ]
    });
    let entry = read(&config).unwrap();
    let said: Vec<String> = entry.jobs.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "0 9,13,18 * * * in Europe/London",
            "daily at 05:17 UTC",
            "every hour",
            "on push to main that changes data/reels/*.json, !data/reels/posted.json",
            "on check_suite.completed to main that ended failure, timed_out",
            "on webhook",
            "by hand",
        ]
    );
    assert_eq!(entry.jobs[0].catch_up, CatchUp::default());
    assert_eq!(entry.jobs[1].catch_up, CatchUp::parse("none").unwrap());
    assert!(entry.jobs[6].is_by_hand() && !entry.jobs[5].is_by_hand());
    assert_eq!(entry.job(&JobName::new("tick").unwrap()).unwrap().timing, Some(Timing::Every(60)));
}

#[test]
fn everything_that_is_wrong_is_told_at_once_and_no_value_with_it() {
    let config = json!({
        "namespace": "core.hunter2", "scope": "hunter2", "webhook_secret": "hunter2", "job": [],
        "jobs": [
            { "name": "Hunter2", "cron": "hunter2 * * * *", "time_zone": "hunter2/x" },
            { "name": "a", "every_minute": 5, "on": { "paths": ["[hunter2"], "conclusions": ["hunter2"] } },
            { "name": "a", "at": ["hunter2"], "catch_up": "hunter2" },
        ]
    });
    let said = read(&config).unwrap_err();
    let paths: Vec<&str> = said.iter().map(|line| line.split('`').nth(1).unwrap()).collect();
    assert_eq!(
        paths,
        [
            "job",
            "namespace",
            "scope",
            "webhook_secret",
            "jobs[1].every_minute",
            "jobs[0].time_zone",
            "jobs[0].cron",
            "jobs[0].name",
            "jobs[1].on.paths[0]",
            "jobs[1].on.conclusions[0]",
            "jobs[1].on.paths",
            "jobs[1].on.conclusions",
            "jobs[1].on",
            "jobs[2].at[0]",
            "jobs[2].catch_up",
            "jobs[2].name",
        ]
    );
    assert!(said[0].contains("did you mean `jobs`?") && said[4].contains("did you mean `every_minutes`?"));
    assert!(!said.iter().any(|line| line.to_lowercase().contains("hunter2")), "{said:?}");
}

#[test]
fn a_job_has_one_kind_of_time() {
    let said = refused(&json!({ "name": "a", "every_minutes": 5, "at": ["05:17"], "cron": "* * * * *" }));
    assert_eq!(
        said,
        ["`jobs[0].at`: excludes `every_minutes`; a job has one of `every_minutes`, `at` and `cron`"]
    );
    let said =
        refused(&json!({ "name": "a", "every_minutes": 5, "time_zone": "Europe/London", "catch_up": "1h" }));
    assert!(said[0].contains("is for `cron` only") && said[1].contains("is for `at` and `cron`"), "{said:?}");
}

#[test]
fn bounds_hold() {
    for job in [
        json!({ "name": "a", "every_minutes": 0 }),
        json!({ "name": "a", "every_minutes": 1.5 }),
        json!({ "name": "a", "every_minutes": 527_041 }),
        json!({ "name": "a", "at": ["24:00"] }),
        json!({ "name": "a", "at": ["5:17"] }),
        json!({ "name": "a", "at": [] }),
        json!({ "name": "a", "at": ["05:17"], "catch_up": "59s" }),
        json!({ "name": "a", "at": ["05:17"], "catch_up": "32d" }),
        json!({ "name": "a", "at": ["05:17"], "catch_up": "" }),
        json!({ "name": "a".repeat(64) }),
        json!({ "name": "" }),
        json!({ "name": "9a" }),
        json!({}),
        json!({ "name": "a", "on": {} }),
        json!({ "name": "a", "on": { "events": ["Push"] } }),
        json!({ "name": "a", "on": { "events": ["push."] } }),
        json!({ "name": "a", "on": { "branches": ["main"], "webhook": true } }),
    ] {
        assert_eq!(refused(&job).len(), 1, "{job}");
    }
    for job in [
        json!({ "name": "a".repeat(63), "every_minutes": 527_040 }),
        json!({ "name": "a-b_9", "at": ["00:00", "23:59"], "catch_up": "31d" }),
        json!({ "name": "a", "cron": "0 0 31 2 *" }),
    ] {
        assert!(read(&entry(&json!([job]))).is_ok(), "{job}");
    }
    assert!(read(&json!({ "namespace": "schedule/eng" })).unwrap().jobs.is_empty());
}

#[test]
fn the_same_time_of_day_twice_is_refused() {
    let said = refused(&json!({ "name": "a", "at": ["05:17", "06:00", "05:17"] }));
    assert_eq!(said, ["`jobs[0].at[2]`: is there already; name each time once"]);
}

#[test]
fn patterns_that_only_take_back_are_refused() {
    let said = refused(&json!({ "name": "a", "on": { "events": ["push"], "paths": ["!docs/**"] } }));
    assert!(said[0].starts_with("`jobs[0].on.paths`: takes nothing"), "{said:?}");
}

#[test]
fn s07_a_zone_in_front_is_refused_and_not_repeated() {
    for cron in ["TZ=UTC", "CRON_TZ=Europe/London 0 9 * * *", "TZ="] {
        let said = refused(&json!({ "name": "a", "cron": cron }));
        assert!(said[0].contains("`time_zone`") && !said[0].contains("Europe"), "{said:?}");
    }
    let said = refused(&json!({ "name": "a", "cron": "@every 5m" }));
    assert!(said[0].contains("`every_minutes`"), "{said:?}");
}

#[test]
fn s27_a_job_that_takes_webhooks_needs_the_secret() {
    let config =
        json!({ "namespace": "schedule/eng", "jobs": [{ "name": "poke", "on": { "webhook": true } }] });
    let said = read(&config).unwrap_err();
    assert!(said[0].starts_with("`jobs[0].on.webhook`: needs the entry's `webhook_secret`"), "{said:?}");
}

#[test]
fn s35_a_conclusion_is_one_of_githubs_words_in_any_case() {
    let with = |word: &str| json!({ "name": "a", "on": { "events": ["check_run"], "conclusions": [word] } });
    assert!(read(&entry(&json!([with("Failure")]))).is_ok());
    for word in ["failed", ""] {
        let said = refused(&with(word));
        assert_eq!(said[0].matches('`').count(), 2 + 2 * 9, "it names all nine: {said:?}");
    }
}

#[test]
fn a_timing_that_is_written_is_read_again() {
    let jobs = json!([
        { "name": "a", "every_minutes": 7 },
        { "name": "b", "at": ["05:17", "23:59"] },
        { "name": "c", "cron": "*/5 * * * mon", "time_zone": "Europe/London" },
    ]);
    for job in read(&entry(&jobs)).unwrap().jobs {
        let timing = job.timing.unwrap();
        let written = serde_json::to_string(&timing).unwrap();
        assert_eq!(serde_json::from_str::<Timing>(&written).unwrap(), timing, "{written}");
    }
    for other in
        ["{}", r#"{"every_minutes":0}"#, r#"{"cron":"x"}"#, r#"{"cron":"* * * * *","time_zone":"X/Y"}"#]
    {
        assert!(serde_json::from_str::<Timing>(other).is_err(), "{other}");
    }
}
