use domain::time::Timestamp;
use jiff::tz::TimeZone;

use super::{BARS_MAX, Share, Shown, Timeline};
use crate::api::wire::{KeyBody, StretchBody, TimelineBody, TimelineRowBody, TimelineRunBody, WaitBody};
use crate::view::clock::Clock;
use crate::view::sample::{self, start};

fn clock(zone: &str, now: &str) -> Clock {
    Clock::new(TimeZone::get(zone).unwrap(), Timestamp::parse(now).unwrap())
}

fn run(number: i64, state: &str, from: &str, to: Option<&str>) -> TimelineRunBody {
    TimelineRunBody {
        id: format!("run_{number}"),
        attempt: number,
        state: state.to_owned(),
        started_at: from.to_owned(),
        ended_at: to.map(str::to_owned),
        parked: Vec::new(),
    }
}

fn row(number: i64, runs: Vec<TimelineRunBody>) -> TimelineRowBody {
    TimelineRowBody {
        work: format!("work_{number}"),
        scope: "main".to_owned(),
        keys: Vec::new(),
        trigger_type: "build.finished".to_owned(),
        runs,
        wait: None,
    }
}

/// The day before noon of 10 March 2026.
fn day(rows: Vec<TimelineRowBody>) -> TimelineBody {
    TimelineBody {
        from: "2026-03-09T12:00:00Z".to_owned(),
        until: "2026-03-10T12:00:00Z".to_owned(),
        rows,
        more: 0,
        cut: false,
        downtimes: Vec::new(),
    }
}

fn drawn(body: &TimelineBody) -> Timeline {
    Timeline::new(body, &clock("UTC", "2026-03-10T12:00:00Z"), 8)
}

#[test]
fn a_bar_goes_from_start_to_end_and_a_live_one_to_now() {
    let runs = vec![
        run(1, "completed", "2026-03-09T18:00:00Z", Some("2026-03-10T00:00:00Z")),
        run(2, "failed", "2026-03-10T06:00:00Z", Some("2026-03-10T06:00:01Z")),
        run(3, "running", "2026-03-10T11:00:00Z", None),
        run(4, "cancelled", "2026-03-08T00:00:00Z", Some("2026-03-09T13:12:00Z")),
    ];
    let row = drawn(&day(vec![row(1, runs)])).rows.remove(0);
    let bars: Vec<_> = row
        .bars
        .iter()
        .map(|bar| {
            (bar.x.to_string(), bar.width.to_string(), bar.shown, bar.path.as_str(), bar.label.as_str())
        })
        .collect();
    let bar = |x: &str, width: &str| (x.to_owned(), width.to_owned());
    let expect = [
        (
            bar("0.00%", "5.00%"),
            Shown::Other,
            "/runs/run_4",
            "Attempt 4 cancelled, Sun 00:00 to Mon 13:12, 1 day 13 h",
        ),
        (
            bar("25.00%", "25.00%"),
            Shown::Done,
            "/runs/run_1",
            "Attempt 1 completed, Mon 18:00 to 00:00:00, 6 h",
        ),
        (bar("74.50%", "0.50%"), Shown::Fail, "/runs/run_2", "Attempt 2 failed, 06:00:00 to 06:00:01, 1.0 s"),
        (bar("95.83%", "4.17%"), Shown::Run, "/runs/run_3", "Attempt 3 running since 11:00:00"),
    ];
    let expect = expect.map(|((x, width), shown, path, label)| (x, width, shown, path, label));
    assert_eq!(bars, expect);
    assert_eq!(row.bars.iter().filter(|bar| bar.mark.is_some()).count(), 1, "a failure has a mark, too");
}

#[test]
fn so_many_runs_that_they_cannot_be_told_apart_are_drawn_together() {
    let at = |second: i64| Timestamp::from_micros((1_773_057_600 + second) * 1_000_000).to_string();
    let state = |number: i64| if number == 1000 { "failed" } else { "completed" };
    let runs =
        (0..2000).map(|number| run(number, state(number), &at(number * 40), Some(&at(number * 40 + 20))));
    let row = drawn(&day(vec![row(1, runs.collect())])).rows.remove(0);
    assert!(row.bars.len() <= BARS_MAX, "{}", row.bars.len());
    let failed: Vec<_> = row.bars.iter().filter(|bar| bar.shown == Shown::Fail).collect();
    assert_eq!(failed.len(), 1, "what failed stands by itself");
    assert_eq!(failed[0].path, "/runs/run_1000");
    assert_eq!(row.bars[0].path, "/work/work_1");
    assert!(row.bars[0].label.starts_with("1000 runs completed, started "), "{}", row.bars[0].label);
}

#[test]
fn rows_that_have_no_room_are_counted() {
    let ran = || vec![run(1, "completed", "2026-03-10T06:00:00Z", Some("2026-03-10T07:00:00Z"))];
    let mut body = day((0..10).map(|number| row(number, ran())).collect());
    assert_eq!((drawn(&body).rows.len(), drawn(&body).more), (8, Some("2 Works".to_owned())));
    body.more = 5;
    assert_eq!(drawn(&body).more.as_deref(), Some("7 Works"));
    body.rows.truncate(8);
    body.more = 0;
    assert_eq!(drawn(&body).more, None);
}

#[test]
fn a_row_is_named_by_its_key_and_hidden_letters_are_spelled() {
    let mut body = day(vec![row(1, Vec::new()), row(2, Vec::new())]);
    body.rows[1].keys = vec![KeyBody { source: "hook/ci".to_owned(), external_id: "a\u{202e}b".repeat(40) }];
    let names: Vec<String> = drawn(&body).rows.into_iter().map(|row| row.name).collect();
    assert_eq!(names[0], "build.finished");
    assert!(names[1].starts_with("a\\u{202e}b") && names[1].chars().count() <= 61, "{}", names[1]);
}

#[test]
fn the_axis_stands_in_the_readers_zone_also_when_clocks_change() {
    let words = |zone: &str, from: &str, until: &str| {
        let body = TimelineBody { from: from.to_owned(), until: until.to_owned(), ..day(Vec::new()) };
        let drawn = Timeline::new(&body, &clock(zone, until), 8);
        drawn.words.into_iter().map(|word| word.text).collect::<Vec<_>>()
    };
    let (noon, next) = ("2026-03-09T12:00:00Z", "2026-03-10T12:00:00Z");
    assert_eq!(words("UTC", noon, next), ["15:00", "18:00", "21:00", "Tue 10", "03:00", "06:00", "09:00"]);
    assert_eq!(words("Asia/Kolkata", noon, next)[..3], ["21:00", "Tue 10", "03:00"].map(str::to_owned));
    // Berlin leaves out 02:00 to 03:00 that night.
    let spring = words("Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z");
    assert_eq!(spring, ["15:00", "18:00", "21:00", "Sun 29", "03:00", "06:00", "09:00", "12:00"]);
    let week = words("Europe/Berlin", "2026-03-23T12:00:00Z", "2026-03-30T12:00:00Z");
    assert_eq!(week, ["Tue 24", "Wed 25", "Thu 26", "Fri 27", "Sat 28", "Sun 29", "Mon 30"]);
    let hour = words("UTC", "2026-03-10T11:00:00Z", next);
    assert_eq!(hour, ["11:10", "11:20", "11:30", "11:40", "11:50"]);
}

#[test]
fn a_downtime_is_a_band_with_a_word_of_its_own() {
    let mut body = day(Vec::new());
    body.downtimes = vec![start()];
    let drawn = drawn(&body);
    assert_eq!(drawn.bands.len(), 1);
    let band = &drawn.bands[0];
    assert_eq!((band.x.to_string(), band.end.to_string()), ("97.01%".to_owned(), "100.00%".to_owned()));
    assert!(drawn.downtime.is_some());
    body.until = "2026-03-10T18:00:00Z".to_owned();
    let drawn = Timeline::new(&body, &clock("UTC", "2026-03-10T18:00:00Z"), 8);
    assert!(drawn.words.iter().any(|word| word.class == "down"), "{:?}", drawn.words);
}

#[test]
fn the_legend_names_what_is_there() {
    let ran = vec![
        run(1, "completed", "2026-03-10T06:00:00Z", Some("2026-03-10T07:00:00Z")),
        run(2, "running", "2026-03-10T08:00:00Z", None),
    ];
    assert_eq!(drawn(&day(vec![row(1, ran)])).families, [Shown::Done, Shown::Run]);
    assert_eq!(drawn(&day(Vec::new())).families, []);
}

#[test]
fn what_is_parked_rests_on_a_dotted_line_and_says_since_when() {
    let wait = WaitBody {
        run: "run_2".to_owned(),
        registered_at: "2026-03-10T06:00:00Z".to_owned(),
        ..sample::wait()
    };
    let runs = vec![
        run(2, "parked", "2026-03-10T00:00:00Z", None),
        run(1, "completed", "2026-03-09T13:00:00Z", Some("2026-03-09T14:00:00Z")),
    ];
    let parked = TimelineRowBody { wait: Some(wait.clone()), ..row(1, runs) };
    let ended = vec![run(2, "waiting", "2026-03-10T00:00:00Z", Some("2026-03-10T06:00:00Z"))];
    let waiting = TimelineRowBody { wait: Some(wait), ..row(2, ended) };
    let shown = drawn(&day(vec![parked, waiting]));
    for (row, word) in shown.rows.iter().zip(["Parked", "Waiting"]) {
        let turn = row.bars.last().unwrap();
        assert_eq!(
            (turn.shown, turn.x, turn.width),
            (Shown::Wait, Share(5000), Share(2500)),
            "its turn has ended"
        );
        let [rest] = row.rests.as_slice() else { panic!("{:?}", row.rests) };
        assert_eq!((rest.x, rest.width), (Share(7500), Share(2500)), "up to now");
        let label = format!("{word} since 06:00:00, for build.finished on key hook/ci build/7 until ");
        assert!(rest.label.starts_with(&label), "{}", rest.label);
    }
    assert_eq!(shown.families, [Shown::Done, Shown::Wait]);
}

#[test]
fn what_was_parked_has_a_bar_for_each_turn_and_a_dotted_line_between_them() {
    let at = |hour: &str| format!("2026-03-10T{hour}:00:00Z");
    let mut resumed = run(1, "completed", "2026-03-09T18:00:00Z", Some("2026-03-10T06:00:00Z"));
    let stretch = |from: &str, until: &str| StretchBody { from: at(from), until: at(until) };
    resumed.parked = vec![stretch("00", "03")];
    let mut older = run(2, "running", "2026-03-08T00:00:00Z", None);
    // Its first turn ended before the picture begins, and its second one goes on.
    older.parked = vec![StretchBody { from: "2026-03-08T01:00:00Z".to_owned(), until: at("06") }];
    let shown = drawn(&day(vec![row(1, vec![resumed]), row(2, vec![older])]));
    let places = |row: usize| -> Vec<(i64, i64)> {
        shown.rows[row].bars.iter().map(|bar| (bar.x.0, bar.width.0)).collect()
    };
    let rests = |row: usize| -> Vec<(i64, i64)> {
        shown.rows[row].rests.iter().map(|rest| (rest.x.0, rest.end.0)).collect()
    };
    assert_eq!((places(0), rests(0)), (vec![(2500, 2500), (6250, 1250)], vec![(5000, 6250)]));
    assert_eq!((places(1), rests(1)), (vec![(7500, 2500)], vec![(0, 7500)]));
    let row = &shown.rows[0];
    assert!(row.bars.iter().all(|bar| bar.path == "/runs/run_1"), "{:?}", row.bars);
    assert_eq!(row.rests[0].label, "Attempt 1 parked, 00:00:00 to 03:00:00");
    assert_eq!(row.rests[0].path, "/runs/run_1");
}
