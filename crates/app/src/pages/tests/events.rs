//! Events as pages: the list, one of them with its causes, and its payload.

use serde_json::{Value, json};

use super::{ask, has, page, rows};
use crate::api::tests::TestDaemon;

/// Text that would be a page's undoing if it were not escaped, in each direction.
const HOSTILE: &str = "\"'><script>alert(1)</script>\u{202e}שלום\u{200b}";

async fn emit(daemon: &TestDaemon, body: &Value) -> String {
    daemon.emit(body).await["event"].as_str().unwrap().to_owned()
}

/// Emits an Event that starts a run which completes, and says which.
async fn completed(daemon: &TestDaemon) -> (String, String) {
    let event = emit(daemon, &json!({ "scope": "main", "type": "build.finished" })).await;
    let page = daemon.until("/v1/runs", |page| page["items"][0]["state"] == "completed").await;
    (event, page["items"][0]["id"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn an_empty_list_teaches_one_command() {
    let daemon = TestDaemon::start().await;
    let text = page(&daemon, "/events").await;
    has(&text, &["Nothing arrived yet", "open-conduit events emit --scope main --type say.hello"]);
    let none = page(&daemon, "/events?type=a.b").await;
    has(&none, &["No Event matches", "href=\"/events\"", "value=\"a.b\""]);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn the_list_goes_on_and_is_narrowed() {
    let daemon = TestDaemon::start().await;
    for number in 0..52 {
        emit(&daemon, &json!({ "scope": "team/off", "type": "a.b", "delivery_id": format!("d-{number}") }))
            .await;
    }
    let first = page(&daemon, "/events?scope=team/off").await;
    assert_eq!(rows(&first), 50);
    let older = first.split("rel=\"next\" href=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(older.starts_with("/events?scope=team%2Foff&#38;cursor="), "it keeps what was asked: {older}");
    let second = page(&daemon, &older.replace("&#38;", "&")).await;
    assert_eq!(rows(&second), 2);
    has(&second, &["href=\"/events?scope=team%2Foff\">Newest</a>"]);

    let (event, _run) = completed(&daemon).await;
    emit(
        &daemon,
        &json!({ "scope": "main", "type": "c.d", "key": { "source": "hook/x", "external_id": "a b" } }),
    )
    .await;
    // Both have run, and each end was announced.
    let ended = |runs: &Value| runs["items"].as_array().unwrap().len() == 2;
    daemon.until("/v1/runs?state=completed", ended).await;
    for (query, expected) in [
        ("type=build.finished", 1),
        ("source=core", 2),
        ("source=core.manual&scope=main", 2),
        ("key=hook/x+a+b", 1),
        ("key=hook/x+a", 0),
        ("key_source=hook/x&key_external_id=a%20b", 1),
        ("outcome=dropped", 0),
        ("scope=&type=&key=&outcome=", 50),
    ] {
        assert_eq!(rows(&page(&daemon, &format!("/events?{query}")).await), expected, "{query}");
    }
    has(&page(&daemon, "/events?key=hook/x+a+b").await, &["value=\"hook/x a b\"", ">Clear</a>"]);
    let work = daemon.get_json("/v1/work").await["items"][1]["id"].as_str().unwrap().to_owned();
    let of_work = page(&daemon, &format!("/events?work={work}")).await;
    has(&of_work, &[&event, &format!("href=\"/work/{work}\"")]);
    for wrong in ["x=1", "type=a.b&type=c.d", "scope=%ff"] {
        assert_eq!(ask(&daemon, &format!("/events?{wrong}")).await.status, 400, "{wrong}");
    }
    for wrong in ["outcome=moon", "cursor=w1", "key=alone", "type=A%20B", "source=%07"] {
        let reply = ask(&daemon, &format!("/events?{wrong}")).await;
        assert_eq!(
            (reply.status, reply.header("content-type")),
            (400, "text/html; charset=utf-8"),
            "{wrong}"
        );
    }
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn what_came_again_and_what_waits_is_said() {
    let daemon = TestDaemon::start().await;
    let twice = json!({ "scope": "main", "type": "x.y", "delivery_id": "again" });
    let event = emit(&daemon, &twice).await;
    for _ in 0..2 {
        assert_eq!(emit(&daemon, &twice).await, event);
    }
    has(&page(&daemon, "/events").await, &["came 3 times"]);
    let text = page(&daemon, &format!("/events/{event}")).await;
    has(
        &text,
        &["came 3 times, accepted once", "The same delivery came 2 more times", "What did not happen here"],
    );

    let waiting = emit(&daemon, &json!({ "scope": "team/off", "type": "x.y" })).await;
    let text = page(&daemon, &format!("/events/{waiting}")).await;
    has(&text, &["Waiting", "It waits to be routed.", "If it were routed now: It would wait:"]);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_cause_is_two_clicks_from_any_run_and_back() {
    let daemon = TestDaemon::start().await;
    let (event, run) = completed(&daemon).await;
    has(&page(&daemon, &format!("/runs/{run}")).await, &[&format!("href=\"/events/{event}\"")]);
    let text = page(&daemon, &format!("/events/{event}")).await;
    let work = daemon.get_json("/v1/work").await["items"][0]["id"].as_str().unwrap().to_owned();
    let (to_run, to_work) = (format!("href=\"/runs/{run}\""), format!("href=\"/work/{work}\""));
    has(&text, &[&to_run, &to_work, "Route <code>built</code>", "Attempt 1", "Completed"]);
    let led = daemon.get_json("/v1/events?source=core").await["items"][0]["id"].as_str().unwrap().to_owned();
    has(&text, &[&format!("That led to <a href=\"/events/{led}\">")]);
    let text = page(&daemon, &format!("/events/{led}")).await;
    has(&text, &[&format!("href=\"/events/{event}\""), &to_run, "Depth 1", "core.turn.ended"]);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn hostile_text_stays_text() {
    let daemon = TestDaemon::start().await;
    let body = json!({
        "scope": "main", "type": "x.y", "delivery_id": HOSTILE,
        "key": { "source": HOSTILE, "external_id": format!("{HOSTILE}{}", "x".repeat(200)) },
        "payload": { HOSTILE: [HOSTILE, { "__proto__": "javascript:alert(1)" }] },
    });
    let event = emit(&daemon, &body).await;
    daemon.until("/v1/events", |page| page["items"][0]["checkpoint"].is_object()).await;
    for path in ["/events".to_owned(), format!("/events/{event}"), format!("/events/new?event={event}")] {
        let text = page(&daemon, &path).await;
        assert!(!text.contains("<script>alert"), "{path}: {text}");
        has(&text, &["&#60;script&#62;alert(1)&#60;/script&#62;"]);
    }
    for path in ["/events".to_owned(), format!("/events/{event}")] {
        let text = page(&daemon, &path).await;
        assert!(!text.contains(['\u{202e}', '\u{200b}']), "{path}: {text}");
        has(&text, &["\\u{202e}", "\\u{200b}", "שלום"]);
    }
    has(&page(&daemon, &format!("/events/{event}")).await, &["<span class=\"x\">\\u{202e}</span>"]);
    // However long names are and however they are written, a list has its size.
    let quotes = "\"".repeat(400);
    for number in 0..50 {
        let key = json!({ "source": "\"".repeat(150), "external_id": format!("{quotes}{number}") });
        let body = json!({ "scope": "main", "type": "x.y", "delivery_id": format!("q{number}"), "key": key });
        emit(&daemon, &body).await;
    }
    assert_eq!(rows(&page(&daemon, "/events").await), 50);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_payload_is_shown_in_part_and_kept_whole() {
    let daemon = TestDaemon::start().await;
    let written = r#"{"b": 1.50,"a" :"<b>","b":2}"#;
    let body = format!(r#"{{"scope":"main","type":"x.y","payload":{written}}}"#);
    let sent = daemon.unix("POST", "/v1/events", &[], body.as_bytes()).await.json();
    let event = sent["event"].as_str().unwrap();
    let path = format!("/events/{event}");
    let shown = "<span class=\"k\">&#34;b&#34;</span>: <span class=\"n\">1.50</span>";
    has(&page(&daemon, &path).await, &[shown, "28 bytes", &format!("href=\"{path}/payload\"")]);
    let kept = ask(&daemon, &format!("{path}/payload")).await;
    assert_eq!((kept.status, kept.text().as_str()), (200, written));
    assert_eq!(kept.header("content-type"), "application/octet-stream");
    assert_eq!(kept.header("content-disposition"), format!("attachment; filename=\"{event}.json\""));
    assert_eq!(kept.header("x-content-type-options"), "nosniff");

    let large = json!({ "scope": "main", "type": "x.y", "payload": vec!["\"\u{202e}"; 100_000] });
    let event = emit(&daemon, &large).await;
    let text = page(&daemon, &format!("/events/{event}")).await;
    has(&text, &["This is the beginning.", "KiB"]);
    assert_eq!(ask(&daemon, &format!("/events/{event}/payload")).await.json(), large["payload"]);
    let none = emit(&daemon, &json!({ "scope": "main", "type": "x.y" })).await;
    has(&page(&daemon, &format!("/events/{none}")).await, &["It has none."]);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn what_is_not_there_is_a_page_that_says_so() {
    let daemon = TestDaemon::start().await;
    for path in ["/events/ev_0000000000000", "/events/moon", "/events/moon/payload", "/events/%3Cscript%3E"] {
        let reply = ask(&daemon, path).await;
        assert_eq!((reply.status, reply.header("content-type")), (404, "text/html; charset=utf-8"), "{path}");
        assert!(!reply.text().contains("<script>") && reply.text().contains("Back to the runs"), "{path}");
    }
    assert_eq!(ask(&daemon, "/events/moon?x=1").await.status, 400);
    daemon.running.stop().await.unwrap();
}
