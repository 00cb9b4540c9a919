//! Cancelling asks first, with scripts and without.

use super::chromium::{Scripts, is_left_out};
use super::home::{Home, wait_for};
use super::site::Site;

fn cancels(scripts: Scripts) {
    if is_left_out() {
        return;
    }
    let site = Site::open(Home::usual(), scripts);
    let run = site.begin("do.slow", "1");
    site.goto(&format!("/runs/{run}"));
    let is_running = || site.home.json(&["runs", "show", &run])["state"] == "running";
    let open = ".page-head a[href$='/cancel']";

    site.page.click(open);
    site.page.wait_for_text("h1", "Cancel Work");
    site.page.click("main footer a.btn");
    site.page.wait_for("the Work", "return location.pathname.match('^/work/[^/]+$')", &[]);
    assert!(is_running(), "it was kept");

    site.goto(&format!("/runs/{run}"));
    site.page.click(open);
    site.page.wait_for_text("h1", "Cancel Work");
    site.page.click("main footer .btn.danger");
    site.page.wait_for_text(".page-head .state", "Cancelled");
    wait_for("the end of the run", || {
        (site.home.json(&["runs", "show", &run])["state"] == "cancelled").then_some(())
    });
    site.goto(&format!("/runs/{run}"));
    site.page.wait_for_text(".page-head .state", "Cancelled");
    assert_eq!(site.page.count(open), 0, "what has ended cannot be cancelled");
}

#[test]
fn a_run_is_cancelled_after_a_question() {
    cancels(Scripts::On);
}

#[test]
fn a_run_is_cancelled_after_a_question_without_scripts() {
    cancels(Scripts::Off);
}
