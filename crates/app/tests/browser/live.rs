//! What happens shows by itself.

use super::chromium::{Scripts, is_left_out};
use super::home::Home;
use super::site::{Site, assert_not_loaded_again, mark, row};

#[test]
fn a_run_appears_and_finishes_without_a_reload() {
    if is_left_out() {
        return;
    }
    let site = Site::open(Home::usual(), Scripts::On);
    mark(&site.page);
    let run = site.begin("do.slow", "1");
    site.page.wait_for_text(&row(&run), "Running");
    site.home.open_gate();
    site.page.wait_for_text(&row(&run), "Completed");
    assert_not_loaded_again(&site.page);
}

#[test]
fn a_log_is_followed_while_it_is_written() {
    if is_left_out() {
        return;
    }
    let site = Site::open(Home::usual(), Scripts::On);
    let run = site.begin("do.slow", "1");
    site.goto(&format!("/runs/{run}"));
    mark(&site.page);
    site.page.wait_for_text(".log-body", "begun");
    assert!(!site.page.text(".log-body").contains("ended"));
    site.home.open_gate();
    site.page.wait_for_text(".log-body", "ended");
    site.page.wait_for_text(".page-head .state", "Completed");
    assert_not_loaded_again(&site.page);
}
