//! How a browser gets in, and how it doesn't.

use super::checks;
use super::chromium::{Scripts, is_left_out};
use super::home::Home;
use super::page::{Page, Theme};
use super::site::Site;

#[test]
fn a_link_logs_in_once() {
    if is_left_out() {
        return;
    }
    let site = Site::open(Home::usual(), Scripts::On);
    assert_eq!(site.path(), "/");
    let link = site.link();

    // Another browser has no part in it.
    let mut other = Page::open(Scripts::On);
    other.goto(&link.replace("/login", "/work?x=/login"));
    assert!(other.url().contains("/login?next="), "{}", other.url());
    other.wait_for_text("h1", "Log in");

    // A link that was followed by two can be used by one.
    other.goto(&link);
    site.page.goto(&link);
    site.page.click("main form button");
    site.page.wait_for_text("h1", "Runs");
    other.expect_in_console("the server responded with a status of");
    other.click("main form button");
    other.wait_for_text("[role=alert]", "was used");
    other.fill("#code", "not-a-code");
    other.click("main form button");
    other.wait_for_text("[role=alert]", "That code is wrong");
    for (width, theme) in [(360, Theme::Dark), (1280, Theme::Light)] {
        other.look(width, theme);
        assert_eq!(checks::problems(&other), [""; 0]);
    }
    assert_eq!(checks::tab_problems(&other), [""; 0]);
}
