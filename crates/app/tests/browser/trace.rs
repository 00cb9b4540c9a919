//! From a run to what caused it, and back, with scripts and without.

use super::chromium::{Scripts, is_left_out};
use super::home::{Home, text};
use super::site::Site;

fn traces(scripts: Scripts) {
    if is_left_out() {
        return;
    }
    let site = Site::open(Home::usual(), scripts);
    let words = ["events", "emit", "--scope", "main", "--type", "say.hello", "--delivery-id", "one"];
    let words = [&words[..], &["--key-source", "test", "--key-external-id", "1"]].concat();
    let first = site.home.json(&words);
    assert_eq!(site.home.json(&words)["duplicate"], true);
    let (event, run) = (text(&first, "/event").to_owned(), site.run_of("test", "1"));

    site.goto("/");
    site.page.click(&format!("a[href='/runs/{run}']"));
    site.page.wait_for_text(".chain", "say.hello");
    site.page.wait_for_text(".chain .stubs", "came 1 more time");
    site.page.click(&format!(".chain a[href='/events/{event}']"));
    site.page.wait_for_text(".chain .stubs", "more time");
    assert_eq!(site.path(), format!("/events/{event}"));
    site.page.click(&format!("main a[href='/runs/{run}']"));
    site.page.wait_for_text(".page-head .state", "Completed");
    assert_eq!(site.path(), format!("/runs/{run}"));
}

#[test]
fn a_duplicate_is_traced_from_run_to_event_and_back() {
    traces(Scripts::On);
}

#[test]
fn a_duplicate_is_traced_without_scripts() {
    traces(Scripts::Off);
}
