//! Forms that send an Event, or ask what one would do.

use serde_json::json;

use super::{ask, has};
use crate::api::tests::TestDaemon;
use crate::api::tests::sessions::Browser;

fn form(fields: &[(&str, &str)]) -> String {
    let encode = |text: &str| {
        percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
    };
    let pairs: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
    pairs.join("&")
}

/// What the form asks under a proposed configuration.
fn under(text: &str) -> [(&str, &str); 5] {
    [("scope", "new"), ("type", "a.b"), ("config", "text"), ("format", "toml"), ("text", text)]
}

fn hidden(text: &str, name: &str) -> String {
    let mark = format!("name=\"{name}\" value=\"");
    text.split(&mark).nth(1).unwrap().split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_form_that_is_sent_twice_sends_once() {
    let daemon = TestDaemon::start().await;
    let browser = Browser::logged_in(&daemon).await;
    let page = browser.get(&daemon, "/events/new?scope=main&type=say.hello").await.text();
    has(
        &page,
        &["value=\"main\"", "open-conduit events emit --scope main --type say.hello --delivery-id fresh/ev_"],
    );
    let delivery = hidden(&page, "delivery_id");
    let sent = form(&[
        ("delivery_id", &delivery),
        ("scope", "main"),
        ("type", " say.hello "),
        ("key_source", "demo"),
        ("key_external_id", "first"),
        ("work", ""),
        ("payload", "{\"b\": 1.50,\r\n \"a\": 2}"),
    ]);
    let first = browser.submit(&daemon, "/events/new", &sent).await;
    let again = browser.submit(&daemon, "/events/new", &sent).await;
    assert_eq!((first.status, again.status), (303, 303), "{}", first.text());
    assert_eq!(first.header("location"), again.header("location"));
    let events = daemon.get_json("/v1/events?source=core.manual").await;
    assert_eq!(events["items"].as_array().unwrap().len(), 1);
    assert_eq!(events["items"][0]["delivery_id"], delivery);
    assert_eq!(events["items"][0]["key"], json!({ "source": "demo", "external_id": "first" }));
    let kept = browser.get(&daemon, &format!("{}/payload", first.header("location"))).await;
    assert_eq!(kept.text(), "{\"b\": 1.50,\n \"a\": 2}", "as it was typed");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_form_that_is_wrong_sends_nothing_and_keeps_what_was_typed() {
    let daemon = TestDaemon::start().await;
    let browser = Browser::logged_in(&daemon).await;
    let base = [("delivery_id", "d-1"), ("scope", "main"), ("type", "say.hello")];
    let with = |more: &[(&'static str, &'static str)]| {
        let kept = base.iter().filter(|(name, _value)| more.iter().all(|(other, _value)| other != name));
        form(&kept.chain(more).copied().collect::<Vec<_>>())
    };
    for (sent, status, said) in [
        (
            with(&[("payload", "{\n\"secret\": hunter2}")]),
            400,
            "The payload is not JSON, at line 2, column 11",
        ),
        (with(&[("key_source", "demo")]), 400, "A key is both"),
        (with(&[("scope", "moon")]), 404, "unknown_scope"),
        (with(&[("type", "core.turn.ended")]), 403, "reserved_type"),
        (with(&[("type", "Not A Type")]), 400, "event type"),
        (with(&[("work", "work_zzz")]), 404, "no Work has an id"),
    ] {
        let reply = browser.submit(&daemon, "/events/new", &sent).await;
        assert_eq!(reply.status, status, "{sent}: {}", reply.text());
        let text = reply.text();
        let at = text.split("role=\"alert\"").nth(1).unwrap_or_else(|| panic!("no banner: {text}"));
        let banner = at.split("</div></div>").next().unwrap();
        assert!(banner.to_lowercase().contains(&said.to_lowercase()), "{said}: {banner}");
        assert!(!banner.contains("hunter2"), "{banner}");
        assert_eq!(hidden(&text, "delivery_id"), "d-1");
    }
    for (sent, status) in [
        (with(&[("x", "1")]), 400),
        (form(&base[1..]), 400),
        (format!("{}&scope=main", form(&base)), 400),
        (form(&[("payload", &"x".repeat(70_000))]), 413),
    ] {
        assert_eq!(browser.submit(&daemon, "/events/new", &sent).await.status, status);
    }
    assert_eq!(daemon.count("/v1/events").await, 0);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn nobody_else_sends_the_form() {
    let daemon = TestDaemon::start().await;
    let browser = Browser::logged_in(&daemon).await;
    let sent = form(&[("delivery_id", "d-1"), ("scope", "main"), ("type", "say.hello")]);
    let own = browser.origin();
    let kind = ("Content-Type", "application/x-www-form-urlencoded");
    for path in ["/events/new", "/events/explain"] {
        for headers in [
            vec![kind, ("Origin", "http://evil.example")],
            vec![kind, ("Origin", "null")],
            vec![kind],
            vec![kind, ("Origin", &own), ("Sec-Fetch-Site", "cross-site")],
            vec![("Origin", &own), ("Content-Type", "text/plain")],
        ] {
            let reply = browser.ask(&daemon, ("POST", path), &headers, sent.as_bytes()).await;
            assert!(matches!(reply.status, 401 | 403 | 415), "{path} {headers:?}: {}", reply.text());
        }
        let stranger = Browser::new(&daemon);
        assert_ne!(stranger.submit(&daemon, path, &sent).await.status, 200, "{path}");
    }
    assert_eq!(daemon.count("/v1/events").await, 0);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_command_can_be_pasted_or_is_not_shown() {
    let daemon = TestDaemon::start().await;
    let key = json!({ "source": "demo", "external_id": "-it's $(reboot)" });
    let body = json!({ "scope": "main", "type": "a.b", "key": key, "payload": ["\u{202e}"] });
    let event = daemon.emit(&body).await["event"].as_str().unwrap().to_owned();
    let text = ask(&daemon, &format!("/events/new?event={event}")).await.text();
    let quoted = "--key-external-id=&#39;-it&#39;\\&#39;&#39;s $(reboot)&#39; --payload payload.json";
    has(&text, &[quoted, ">\n[&#34;\\u202e&#34;]</textarea>"]);
    let text =
        ask(&daemon, "/events/new?scope=main&type=a.b&key_external_id=a%E2%80%AEb&key_source=x").await.text();
    has(&text, &["no command is shown to copy"]);
    assert!(!text.contains("<code>open-conduit events emit"), "{text}");
    for wrong in ["event=moon", "source=x"] {
        assert!(matches!(ask(&daemon, &format!("/events/new?{wrong}")).await.status, 400 | 404), "{wrong}");
    }
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn an_accepted_event_is_asked_about_by_a_link() {
    let daemon = TestDaemon::start().await;
    let body = json!({ "scope": "main", "type": "build.finished", "payload": { "a": 1 } });
    let event = daemon.emit(&body).await["event"].as_str().unwrap().to_owned();
    let path = format!("/events/explain?event={event}");
    let text = ask(&daemon, &path).await.text();
    has(
        &text,
        &[
            "1. hang",
            "2. built",
            "does not match",
            "Routed",
            "Under generation 1",
            ">\n{&#34;a&#34;:1}</textarea>",
        ],
    );
    has(&text, &[&format!("open-conduit events explain {event}</code>"), "binding <code>fake</code>"]);
    let said = daemon.post("/v1/events/explain", &json!({ "event": event })).await.json();
    assert_eq!(said["sentences"].as_array().unwrap().len(), 3, "a line for each step: {said}");

    let config = std::fs::read_to_string(daemon.home().root().join("conduit.toml")).unwrap();
    let edited = config.replace("types = [\"build.finished\"]", "types = [\"build.never\"]");
    std::fs::write(daemon.home().root().join("conduit.toml"), edited).unwrap();
    let text = ask(&daemon, &format!("{path}&config=file")).await.text();
    has(&text, &["3. manual", "Under the edited file", "value=\"file\" checked"]);
    assert_eq!(ask(&daemon, "/events/explain?event=moon").await.status, 404);
    assert_eq!(ask(&daemon, "/events/explain?config=moon").await.status, 400);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_described_event_is_asked_about_and_nothing_happens() {
    let daemon = TestDaemon::start().await;
    let browser = Browser::logged_in(&daemon).await;
    has(&browser.get(&daemon, "/events/explain").await.text(), &["Describe an Event"]);
    let ask = async |fields: &[(&str, &str)]| browser.submit(&daemon, "/events/explain", &form(fields)).await;
    let event = [("scope", "main"), ("type", "build.finished"), ("payload", "{\"a\":1}")];
    let answer = ask(&event).await;
    assert_eq!(answer.status, 200);
    has(&answer.text(), &["2. built", "It would make a new Work and be its first input."]);
    let proposed = "[[scopes]]\nname = \"new\"\n[[scopes.bindings]]\nname = \"b\"\nexecutor = \"fake\"\n\
                    [[scopes.routes]]\nname = \"all\"\nhandler = \"match\"\nbinding = \"b\"\n\
                    config = { types = [\"*\"], work = \"fresh\" }\n";
    let answer = ask(&under(proposed)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    has(&answer.text(), &["1. all", "Under the text below", "--config proposed.toml"]);

    for (wrong, place) in [
        ("[scopes.secrets]\nhook = \"hunter2\"\n", "scopes[0].secrets.hook, line 4"),
        ("[scopes.settings]\ntimeout_seconds = \"hunter2\"\n", "scopes[0].settings.timeout_seconds, line 4"),
        ("hunter2", "Line 3"),
    ] {
        let text = format!("[[scopes]]\nname = \"new\"\n{wrong}");
        let wrong = ask(&under(&text)).await;
        assert_eq!(wrong.status, 422);
        let text = wrong.text();
        let banner = text.split("role=\"alert\"").nth(1).unwrap().split("</div></div>").next().unwrap();
        has(banner, &[place, "invalid_config"]);
        assert!(!banner.contains("hunter2"), "{banner}");
        has(&text, &["the question could not be asked"]);
    }
    for (fields, status) in [
        (&[("scope", "moon"), ("type", "a.b")][..], 404),
        (&[("scope", "main")], 400),
        (&[("scope", "main"), ("type", "a.b"), ("payload", "{")], 400),
        (&[("scope", "main"), ("type", "a.b"), ("config", "moon")], 400),
    ] {
        assert_eq!(ask(fields).await.status, status, "{fields:?}");
    }
    assert_eq!(daemon.count("/v1/events").await, 0);
    daemon.running.stop().await.unwrap();
}
