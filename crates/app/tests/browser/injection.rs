//! What others wrote is text, wherever it is shown.

use super::chromium::{Scripts, is_left_out};
use super::home::Home;
use super::site::Site;

/// Runs a script if any part of it is taken for markup.
const HOSTILE: &str = "\"><img src=/x onerror=alert(1)><script>alert(2)</script><b class=hostile>x</b>";

#[test]
fn hostile_text_is_shown_and_never_run() {
    if is_left_out() {
        return;
    }
    let home = Home::usual();
    let printed = home.file("printed", HOSTILE);
    home.configure(&format!(
        "{}\n[[scopes.bindings]]\nname = \"print\"\nexecutor = \"shell\"\n\
         config = {{ argv = [\"cat\", \"{}\"] }}\n\
         [[scopes.routes]]\nname = \"print\"\nhandler = \"match\"\nbinding = \"print\"\n\
         config = {{ types = [\"do.print\"] }}\n",
        home.usual_config(),
        printed.display()
    ));
    let site = Site::open(home, Scripts::On);
    let payload = serde_json::json!({"title": HOSTILE, "</script>": [HOSTILE]}).to_string();
    let emitted = site.home.json(&[
        "events",
        "emit",
        "--scope",
        "main",
        "--type",
        "do.print",
        "--delivery-id",
        HOSTILE,
        "--key-source",
        "test",
        "--key-external-id",
        HOSTILE,
        "--payload-json",
        &payload,
    ]);
    let (event, run) = (emitted["event"].as_str().unwrap(), site.run_of("test", HOSTILE));
    let work = site.home.json(&["runs", "show", &run])["work"].as_str().unwrap().to_owned();

    for path in ["/", "/events", "/work"] {
        site.goto(path);
        assert_harmless(&site, path);
    }
    for (path, place) in [
        (format!("/runs/{run}"), ".log-body"),
        (format!("/runs/{run}/log"), ".log-body"),
        (format!("/runs/{run}/again"), "main"),
        (format!("/events/{event}"), "pre"),
        (format!("/work/{work}"), "main"),
    ] {
        site.goto(&path);
        site.page.wait_for_text(place, "onerror=alert(1)");
        assert_harmless(&site, &path);
    }
    for path in [format!("/events/new?event={event}"), format!("/events/explain?event={event}")] {
        site.goto(&path);
        let filled = "return document.querySelector('[name=payload]').value.includes('onerror=alert(1)')";
        assert_eq!(site.page.script(filled, &[]), true, "{path}");
        assert_harmless(&site, &path);
    }
    let mut site = site;
    site.page.expect_in_console("responded with a status of 40");
    let query = percent(HOSTILE);
    for path in [
        format!("/?q={query}"),
        format!("/?state={query}"),
        format!("/events?type={query}"),
        format!("/events/new?event={query}"),
        format!("/work?state={query}"),
        format!("/runs/{query}"),
        format!("/{query}"),
    ] {
        site.goto(&path);
        assert_harmless(&site, &path);
    }
}

#[track_caller]
fn assert_harmless(site: &Site, path: &str) {
    assert!(!site.page.has_alert(), "{path}");
    assert_eq!(site.page.count("img, .hostile, script:not([src])"), 0, "{path}");
}

fn percent(text: &str) -> String {
    percent_encoding::percent_encode(text.as_bytes(), percent_encoding::NON_ALPHANUMERIC).to_string()
}
