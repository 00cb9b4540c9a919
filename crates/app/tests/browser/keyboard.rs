//! The pages without a pointer.

use super::chromium::{Scripts, is_left_out};
use super::home::Home;
use super::page::{ENTER, ESCAPE};
use super::site::Site;

#[test]
fn keys_are_listed_and_do_what_the_list_says() {
    if is_left_out() {
        return;
    }
    let site = Site::open(Home::usual(), Scripts::On);
    site.home.emit("say.hello", "1");
    let older = site.run_of("test", "1");
    let newer = site.begin("say.hello", "2");
    site.goto("/");

    site.page.press('?');
    site.page.wait_for_text("dialog[open]", "Next and previous row");
    site.page.press(ESCAPE);
    site.page.wait_for("the end of the list", "return !document.querySelector('dialog[open]')", &[]);

    for (key, run) in [('j', &newer), ('j', &older), ('k', &newer), ('j', &older)] {
        site.page.press(key);
        let body = "return document.activeElement.getAttribute('href') === arguments[0]";
        site.page.wait_for("the row", body, &[format!("/runs/{run}").into()]);
    }
    site.page.press(ENTER);
    site.page.wait_for_text(".page-head .state", "Completed");
    assert_eq!(site.path(), format!("/runs/{older}"));

    for (key, title, path) in [
        ('e', "Events", "/events"),
        ('w', "Work", "/work"),
        ('c', "Config", "/config"),
        ('h', "Health", "/health"),
        ('r', "Runs", "/"),
    ] {
        site.page.press('g');
        site.page.press(key);
        site.page.wait_for_text("h1", title);
        assert_eq!(site.path(), path);
    }

    site.page.press('/');
    let body = "return document.activeElement.matches('[data-search]')";
    site.page.wait_for("the focus in the search", body, &[]);
    site.page.press('?');
    assert_eq!(site.page.count("dialog[open]"), 0, "who types a question mark gets one");
}
