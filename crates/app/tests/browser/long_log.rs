//! Output of 100 MB: its end is there at once, and what stands before it as soon as somebody looks for it.

use serde_json::json;

use super::chromium::{Scripts, is_left_out};
use super::home::{Home, wait_for};
use super::site::Site;

/// What a job of `do.write` runs: 100 MB of numbered lines of a usual length, and a last one.
const SCRIPT: &str =
    "seq -f 'line %.0f of very many, each as long as a build writes them' 1700000; echo the very end";
/// Bytes of output that there are at least.
const BYTES: u64 = 100_000_000;
/// How long the daemon may take to answer with its end.
const ANSWER_MS_MAX: f64 = 300.0;
/// How often it is asked for at most. A machine that has much else to do is slow now and then; a daemon that reads
/// all of the output is slow every time.
const ASKED_MAX: usize = 40;

/// A home, a run in it that has written so much, and its log's path.
fn open(scripts: Scripts) -> (Site, String) {
    let home = Home::usual();
    home.configure(
        &home.usual_config().replace("do.fail", "do.write").replace("echo oops >&2; exit 3", SCRIPT),
    );
    let site = Site::open(home, scripts);
    let run = site.begin("do.write", "1");
    wait_for("the end of the output", || {
        (site.home.json(&["runs", "show", &run])["state"] == "completed").then_some(())
    });
    let log = format!("/runs/{run}/log");
    (site, log)
}

/// The numbers of the lines that are shown.
fn numbers(site: &Site) -> Vec<u64> {
    let body = "return [...document.querySelectorAll('.log-body .ll')]\
                .map(line => /line (\\d+) of/.exec(line.textContent)?.[1]).filter(Boolean).map(Number)";
    serde_json::from_value(site.page.script(body, &[])).unwrap()
}

#[track_caller]
fn assert_side_by_side(numbers: &[u64]) {
    assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
}

#[test]
fn the_end_of_a_very_long_log_is_there_at_once() {
    if is_left_out() {
        return;
    }
    let (site, log) = open(Scripts::On);
    site.goto(&log);
    let size = site.page.script("return Number(document.querySelector('[data-log]').dataset.size)", &[]);
    assert!(size.as_u64().unwrap() > BYTES, "{size}");
    let body = "const [log, last] = [document.querySelector('.log-body'), [...document.querySelectorAll('.ll')].at(-1)];\
                const { top, bottom } = log.getBoundingClientRect(), line = last.getBoundingClientRect();\
                return last.innerText.includes('the very end') && line.top >= top && line.bottom <= bottom + 1";
    site.page.wait_for("the last line in sight", body, &[]);

    let answered = "const { requestStart, responseEnd } = performance.getEntriesByType('navigation')[0];\
                    return responseEnd - requestStart";
    let mut times = Vec::new();
    let in_time = (0..ASKED_MAX).any(|_again| {
        site.page.reload();
        times.push(site.page.script(answered, &[]).as_f64().unwrap());
        times.last().is_some_and(|time| *time < ANSWER_MS_MAX)
    });
    assert!(in_time, "the daemon took {times:?} ms");
}

#[test]
fn what_stands_before_is_there_when_the_log_is_scrolled_up() {
    if is_left_out() {
        return;
    }
    let (site, log) = open(Scripts::On);
    site.goto(&log);
    let mut first = numbers(&site)[0];
    assert!(first > 1_500_000, "only the end is there: {first}");
    for _piece in 0..3 {
        let seen = site.page.script(
            "const body = document.querySelector('.log-body'); body.scrollTop = 0;\
             return document.querySelector('.ll').id",
            &[],
        );
        let body = "return document.querySelector('.ll').id !== arguments[0]";
        site.page.wait_for("an earlier piece", body, std::slice::from_ref(&seen));
        let shown = numbers(&site);
        assert_side_by_side(&shown);
        assert!(shown[0] < first, "{} is not before {first}", shown[0]);
        first = shown[0];
        // What was looked at stays where it was.
        let body = "const [log, line] = [document.querySelector('.log-body'), document.getElementById(arguments[0])];\
                    const { top, bottom } = log.getBoundingClientRect(), { y } = line.getBoundingClientRect();\
                    return y >= top && y < bottom";
        assert_eq!(site.page.script(body, &[seen]), json!(true));
    }
}

#[test]
fn what_stands_before_is_a_link_away_without_scripts() {
    if is_left_out() {
        return;
    }
    let (site, log) = open(Scripts::Off);
    site.goto(&log);
    let end = numbers(&site);
    assert_side_by_side(&end);
    site.page.click("[data-log-earlier]");
    site.page.wait_for_text(".log-body", &format!("line {} of", end[0] - 1));
    let before = numbers(&site);
    assert_side_by_side(&before);
    assert_eq!(before.last(), Some(&(end[0] - 1)), "the pieces lie side by side");
    site.page.click("[data-log-later]");
    site.page.wait_for_text(".log-body", &format!("line {} of", end[0]));
}
