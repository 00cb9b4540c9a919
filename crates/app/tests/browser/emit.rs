//! Sending an Event, and asking what one would do, with scripts and without.

use super::chromium::{Scripts, is_left_out};
use super::home::{Home, text};
use super::site::Site;

/// Fills the form of an Event.
fn describe(site: &Site, event_type: &str) {
    for (field, text) in [
        ("#f-scope", "main"),
        ("#f-type", event_type),
        ("#f-key-source", "test"),
        ("#f-key-id", "by hand"),
        ("#f-payload", "{\"by\": \"hand\"}"),
    ] {
        site.page.fill(field, text);
    }
}

/// What an operator sent. The runtime has Events of its own about what came of it.
fn events(site: &Site) -> Vec<serde_json::Value> {
    site.home.json(&["events", "list", "--source", "core.manual"])["items"].as_array().unwrap().clone()
}

fn emits(scripts: Scripts) {
    if is_left_out() {
        return;
    }
    let mut site = Site::open(Home::usual(), scripts);
    site.goto("/events");
    site.page.click(".page-head a[href='/events/new']");
    site.page.wait_for_text("h1", "Emit an Event");
    // What is wrong is said, and what was typed stays.
    describe(&site, "say.hello");
    site.page.fill("#f-payload", "{");
    site.page.expect_in_console("the server responded with a status of 400");
    site.page.click("form .btn.primary");
    site.page.wait_for_text("[role=alert]", "payload");
    assert!(events(&site).is_empty(), "what is wrong sends nothing");
    assert_eq!(site.page.script("return document.querySelector('#f-key-id').value", &[]), "by hand");

    site.page.fill("#f-payload", "{\"by\": \"hand\"}");
    site.page.click("form .btn.primary");
    site.page.wait_for_text("h1", "say.hello");
    let sent = events(&site);
    let [sent] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(site.path(), format!("/events/{}", text(sent, "/id")));
    assert_eq!((text(sent, "/source"), text(sent, "/key/external_id")), ("core.manual", "by hand"));
    let shown = site.home.json(&["events", "show", text(sent, "/id")]);
    assert_eq!(shown["payload"]["by"], "hand", "{shown}");
    let run = site.run_of("test", "by hand");
    if scripts == Scripts::Off {
        site.goto(&site.path());
    }
    site.page.wait_for_text("#event-chain", &run);
}

#[test]
fn an_event_is_sent_from_the_page() {
    emits(Scripts::On);
}

#[test]
fn an_event_is_sent_without_scripts() {
    emits(Scripts::Off);
}

fn explains(scripts: Scripts) {
    if is_left_out() {
        return;
    }
    let site = Site::open(Home::usual(), scripts);
    site.goto("/events/new");
    describe(&site, "do.fail");
    site.page.click("form button[formaction='/events/explain']");
    site.page.wait_for_text("h1", "What would an Event do?");
    site.page.wait_for_text(".answer .chain li:nth-child(2)", "1. hello");
    site.page.wait_for_text(".answer .chain li:nth-child(3)", "2. fail");
    site.page.wait_for_text(".answer .chain .here", "A run of it would use binding fail.");

    // Another question, under the file that is edited and not applied.
    let config = site.home.usual_config();
    site.home.configure(&config.replace("\"do.fail\"", "\"do.other\""));
    site.page.click("label:has(input[value=file])");
    site.page.click("form[action='/events/explain'] .btn.primary");
    site.page.wait_for(
        "the answer",
        "return !document.querySelector('.answer').innerText.includes('binding')",
        &[],
    );
    site.page.wait_for_text(".answer", "Under the edited file");
    site.page.wait_for_text(".answer .chain .here", "Unmatched");
    assert!(events(&site).is_empty(), "a question sends nothing");

    // An Event that is there is asked about from its own page.
    let sent = site.home.json(&super::home::emit("say.hello", "1"));
    site.goto(&format!("/events/{}", text(&sent, "/event")));
    site.page.click(".asks a");
    site.page.wait_for_text(".answer .chain .here", "A run of it would use binding hello.");
    assert_eq!(events(&site).len(), 1);
}

#[test]
fn what_an_event_would_do_is_told_and_nothing_is_done() {
    explains(Scripts::On);
}

#[test]
fn what_an_event_would_do_is_told_without_scripts() {
    explains(Scripts::Off);
}
