//! What failed is tried again by a button, with scripts and without.

use super::chromium::{Scripts, is_left_out};
use super::home::{Home, text, wait_for};
use super::site::Site;

/// A home whose `do.fail` fails until the gate is open.
fn home() -> Home {
    let home = Home::usual();
    let mends = format!("[ -e {} ] || exit 3; echo mended", home.gate().display());
    home.configure(&home.usual_config().replace("echo oops >&2; exit 3", &mends));
    home
}

/// Starts a run that fails, and gives it and its Work.
fn fail(site: &Site) -> (String, String) {
    let run = site.begin("do.fail", "1");
    let failed = wait_for("the failure", || {
        Some(site.home.json(&["runs", "show", &run])).filter(|run| run["state"] == "failed")
    });
    (run, text(&failed, "/work").to_owned())
}

fn tries_again(scripts: Scripts) {
    if is_left_out() {
        return;
    }
    let site = Site::open(home(), scripts);
    let (_run, work) = fail(&site);
    let path = format!("/work/{work}");
    site.goto(&path);
    site.page.wait_for_text("#work-runs", "Failed");
    assert_eq!(site.page.count("#work-runs tr[data-row]"), 1);
    site.home.open_gate();
    let open = ".page-head a[href$='/retry']";
    site.page.click(open);
    site.page.wait_for_text("h1", "Retry Work");
    site.page.wait_for_text("main", &format!("open-conduit work retry {work}"));
    assert_eq!(site.home.json(&["work", "show", &work])["attempts"], 1, "it was asked only");
    site.page.click("main footer .btn:not(a)");
    site.page.wait_for("the Work's page", "return document.querySelector('#work-runs')", &[]);

    let runs = ["runs", "list", "--work", &work];
    wait_for("the next run", || {
        let runs = site.home.json(&runs);
        let states = (runs["items"].as_array()?.len(), runs["items"][0]["state"].as_str()?.to_owned());
        (states == (2, "completed".to_owned())).then_some(())
    });
    assert_eq!(site.path(), path);
    if scripts == Scripts::Off {
        site.page.reload();
    }
    site.page.wait_for_text("#work-runs tr[data-row]:first-child", "Completed");
    assert_eq!(site.page.count("#work-runs tr[data-row]"), 2, "one more, and no more than that");
    assert_eq!(site.page.count(open), 0, "what went well is not tried again");
}

#[test]
fn a_failed_work_is_tried_again_by_its_button() {
    tries_again(Scripts::On);
}

#[test]
fn a_failed_work_is_tried_again_without_scripts() {
    tries_again(Scripts::Off);
}

#[test]
fn a_failed_run_is_run_again_after_it_was_said_what_that_does() {
    if is_left_out() {
        return;
    }
    let site = Site::open(home(), Scripts::On);
    let (run, _work) = fail(&site);
    site.goto(&format!("/runs/{run}"));
    site.home.open_gate();
    site.page.click(".page-head a[href$='/again']");
    site.page.wait_for_text(".effects", "A new Event is sent, from you.");
    site.page.click("main footer a.btn");
    site.page.wait_for_text(".page-head .state", "Failed");
    assert_eq!(
        site.home.json(&["events", "list", "--type", "do.fail"])["items"].as_array().unwrap().len(),
        1
    );

    site.page.click(".page-head a[href$='/again']");
    site.page.wait_for_text(".effects", "A new Event is sent, from you.");
    site.page.click("main footer .btn.primary");
    site.page.wait_for_text("#event-chain", "Completed");
    assert_eq!(
        site.home.json(&["events", "list", "--type", "do.fail"])["items"].as_array().unwrap().len(),
        2
    );
}
