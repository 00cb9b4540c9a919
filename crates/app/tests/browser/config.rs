//! An edited configuration is looked at and put in force, with scripts and without.

use super::chromium::{Scripts, is_left_out};
use super::home::Home;
use super::site::Site;

fn applies(scripts: Scripts) {
    if is_left_out() {
        return;
    }
    let mut site = Site::open(Home::usual(), scripts);
    let usual = site.home.usual_config();
    let generation = |site: &Site| site.home.json(&["status"])["generation"].as_i64().unwrap();
    let edited = |number: u32| {
        let settings = format!("name = \"main\"\n\n[scopes.settings]\nconcurrency = {number}\n");
        usual.replacen("name = \"main\"\n", &settings, 1)
    };
    site.goto("/config");
    assert_eq!(site.page.count("a[href='/config/apply']"), 0, "there is nothing to apply");
    site.home.configure(&edited(7));
    site.page.reload();
    site.page.wait_for_text("#file", "Not applied");
    site.page.wait_for_text("#file", "concurrency");
    site.page.click("a[href='/config/apply']");
    site.page.wait_for_text(".effects", "concurrency");
    site.page.click("main footer a.btn");
    site.page.wait_for_text("h1", "Config");
    assert_eq!(generation(&site), 1, "it was kept");

    // What is applied is what was shown: a file that is another by now is not.
    site.page.click("a[href='/config/apply']");
    site.page.wait_for_text(".effects", "7");
    site.home.configure(&edited(9));
    site.page.expect_in_console("the server responded with a status of 409");
    site.page.click("main footer .btn.primary");
    site.page.wait_for_text("main", "config_conflict");
    assert_eq!(generation(&site), 1, "nobody has seen that one");

    site.goto("/config/apply");
    site.page.wait_for_text(".effects", "9");
    site.page.click("main footer .btn.primary");
    site.page.wait_for_text(".page-head .sub", "Generation 2, applied");
    assert_eq!(site.path(), "/config");
    assert_eq!(generation(&site), 2);
    assert_eq!(site.page.count("#file"), 0, "file and generation are the same again");
    site.page.wait_for_text(".aside .kv", "9");
}

#[test]
fn an_edited_configuration_is_applied_as_it_was_shown() {
    applies(Scripts::On);
}

#[test]
fn an_edited_configuration_is_applied_without_scripts() {
    applies(Scripts::Off);
}
