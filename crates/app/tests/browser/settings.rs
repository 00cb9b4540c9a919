//! The settings: how the page looks, and who is logged in.

use super::chromium::{Scripts, is_left_out};
use super::home::Home;
use super::page::{Page, Theme};
use super::site::Site;

/// The color behind the page, as it is seen.
fn ground(page: &Page) -> String {
    let ground = page.script("return getComputedStyle(document.body).backgroundColor", &[]);
    ground.as_str().unwrap().to_owned()
}

fn switches_theme(scripts: Scripts) {
    if is_left_out() {
        return;
    }
    let site = Site::open(Home::usual(), scripts);
    let light = ground(&site.page);
    site.page.look(1280, Theme::Dark);
    let dark = ground(&site.page);
    assert_ne!(light, dark, "the system's colors are taken");

    // What is chosen goes before the system's, on every page and from then on.
    for (system, choice, expected) in
        [(Theme::Dark, "light", &light), (Theme::Light, "dark", &dark), (Theme::Light, "system", &light)]
    {
        site.page.look(1280, system);
        site.goto("/settings");
        site.page.click(&format!("label:has(input[value={choice}])"));
        site.page.click("form[action='/settings/theme'] button");
        site.page.wait_for(
            choice,
            "return document.querySelector(`[value=${arguments[0]}]`).defaultChecked",
            &[choice.into()],
        );
        assert_eq!(&ground(&site.page), expected, "{choice}");
        for path in ["/", "/health"] {
            site.goto(path);
            assert_eq!(&ground(&site.page), expected, "{choice} at {path}");
        }
    }
}

#[test]
fn a_theme_is_switched_and_stays() {
    switches_theme(Scripts::On);
}

#[test]
fn a_theme_is_switched_without_scripts() {
    switches_theme(Scripts::Off);
}

#[test]
fn a_session_that_is_ended_is_logged_out_where_it_stands() {
    if is_left_out() {
        return;
    }
    let site = Site::open(Home::usual(), Scripts::On);
    let mut other = Page::open(Scripts::On);
    other.goto(&site.link());
    other.click("main form button");
    other.wait_for_text("h1", "Runs");
    // It tries to follow, and is refused.
    other.expect_in_console("the server responded with a status of 401");

    site.goto("/settings");
    assert_eq!(site.page.count("form[action$='/revoke']"), 1, "one other is logged in");
    site.page.click("form[action$='/revoke'] button");
    site.page.wait_for("the end of it", "return !document.querySelector('form[action$=\"/revoke\"]')", &[]);
    other.wait_for_text("h1", "Log in");
    assert!(other.url().contains("/login"), "{}", other.url());
    site.goto("/");
    site.page.wait_for_text("h1", "Runs");
    other.goto(&site.link().replace("/login", "/events?x=/login"));
    other.wait_for_text("h1", "Log in");
}
