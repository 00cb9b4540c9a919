//! Works as pages.

use serde_json::{Value, json};

use super::{ask, has, page, rows};
use crate::api::tests::TestDaemon;

fn hello(external_id: &str) -> Value {
    let key = json!({ "source": "demo", "external_id": external_id });
    json!({ "scope": "main", "type": "say.hello", "key": key })
}

#[tokio::test]
async fn an_empty_list_teaches_one_command() {
    let daemon = TestDaemon::start().await;
    has(&page(&daemon, "/work").await, &["No Work yet", "open-conduit events emit --scope main"]);
    has(&page(&daemon, "/work?state=failed").await, &["No Work matches", "value=\"failed\" selected"]);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn the_list_says_what_moves_each_next() {
    let daemon = TestDaemon::start().await;
    daemon.emit(&hello("first")).await;
    daemon.until("/v1/work?state=running", |works| works["items"].as_array().unwrap().is_empty()).await;
    daemon.until("/v1/runs?state=completed", |runs| runs["items"].as_array().unwrap().len() == 1).await;
    daemon.emit(&json!({ "scope": "main", "type": "hang.please" })).await;
    let running = daemon.until("/v1/work?state=running", |works| works["items"][0]["run"].is_string()).await;
    let (id, run) =
        (running["items"][0]["id"].as_str().unwrap(), running["items"][0]["run"].as_str().unwrap());
    let text = page(&daemon, "/work").await;
    assert_eq!(rows(&text), 2);
    has(
        &text,
        &[&format!("href=\"/work/{id}\""), &format!("<a href=\"/runs/{run}\">"), "is at it.", "demo first"],
    );
    for (query, expected) in [
        ("state=running", 1),
        ("kind=test.hang", 1),
        ("key=demo+first", 1),
        ("key=demo+second", 0),
        ("key_source=demo&key_external_id=first&kind=test.hang", 0),
        ("scope=main&state=&key=", 2),
        ("scope=team/off", 0),
    ] {
        assert_eq!(rows(&page(&daemon, &format!("/work?{query}")).await), expected, "{query}");
    }
    for wrong in ["state=moon", "x=1", "cursor=e1", "key=alone", "kind="].iter().take(4) {
        assert_eq!(ask(&daemon, &format!("/work?{wrong}")).await.status, 400, "{wrong}");
    }
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn the_list_goes_on() {
    let daemon = TestDaemon::start().await;
    for number in 0..52 {
        daemon
            .emit(&json!({ "scope": "main", "type": "build.finished", "delivery_id": format!("d-{number}") }))
            .await;
    }
    daemon.until("/v1/work?limit=200", |works| works["items"].as_array().unwrap().len() == 52).await;
    let first = page(&daemon, "/work?scope=main").await;
    assert_eq!(rows(&first), 50);
    let older = first.split("rel=\"next\" href=\"").nth(1).unwrap().split('"').next().unwrap();
    let second = page(&daemon, &older.replace("&#38;", "&")).await;
    assert_eq!(rows(&second), 2);
    has(&second, &["href=\"/work?scope=main\">Newest</a>"]);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_work_shows_its_runs_and_what_waits_for_the_next() {
    let daemon = TestDaemon::start().await;
    let event = daemon.emit(&json!({ "scope": "main", "type": "hang.please" })).await;
    let event = event["event"].as_str().unwrap().to_owned();
    let works = daemon.until("/v1/work?state=running", |works| works["items"][0]["run"].is_string()).await;
    let (id, run) = (works["items"][0]["id"].as_str().unwrap(), works["items"][0]["run"].as_str().unwrap());
    let mut waiting = Vec::new();
    for number in 0..2 {
        let more = json!({ "scope": "main", "type": format!("more.n{number}"), "work": id });
        waiting.push(daemon.emit(&more).await["event"].as_str().unwrap().to_owned());
    }
    let path = format!("/v1/work/{id}");
    daemon.until(&path, |work| work["pending"].as_array().unwrap().len() == 2).await;
    let text = page(&daemon, &format!("/work/{id}")).await;
    has(&text, &["2, in order", "Attempts", "1 in all", "test.hang"]);
    has(&text, &[&format!("href=\"/runs/{run}\""), &format!("href=\"/events/{event}\"")]);
    has(&text, &[&format!("href=\"/work/{id}/cancel\""), &format!("/events/new?work={id}&amp;scope=main")]);
    let places: Vec<usize> =
        waiting.iter().map(|event| text.find(&format!("href=\"/events/{event}\"")).unwrap()).collect();
    assert!(places.is_sorted(), "{text}");
    let pending = page(&daemon, &format!("/events/{}", waiting[0])).await;
    has(&pending, &["It waits there for a run to come", &format!("href=\"/work/{id}\"")]);

    assert_eq!(daemon.post(&format!("/v1/work/{id}/cancel"), &json!({})).await.status, 200);
    daemon.until(&path, |work| work["state"] == "cancelled").await;
    let text = page(&daemon, &format!("/work/{id}")).await;
    has(&text, &["How it ended:", "It was cancelled at", "for good."]);
    assert!(!text.contains("/cancel\"") && !text.contains("Send input"), "{text}");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn hostile_keys_stay_text_and_what_is_not_there_is_said() {
    let daemon = TestDaemon::start().await;
    let hostile = format!("\"'><script>alert(1)</script>\u{202e}{}", "x".repeat(200));
    daemon.emit(&hello(&hostile)).await;
    let works = daemon.until("/v1/work", |works| !works["items"].as_array().unwrap().is_empty()).await;
    let id = works["items"][0]["id"].as_str().unwrap();
    for path in ["/work".to_owned(), format!("/work/{id}")] {
        let text = page(&daemon, &path).await;
        assert!(!text.contains("<script>alert") && !text.contains('\u{202e}'), "{path}: {text}");
        has(&text, &["&#60;script&#62;", "\\u{202e}"]);
    }
    for path in ["/work/moon", "/work/work_0000000000000"] {
        let reply = ask(&daemon, path).await;
        assert_eq!((reply.status, reply.header("content-type")), (404, "text/html; charset=utf-8"), "{path}");
    }
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn interrupting_is_asked_first_and_keeps_the_work() {
    let daemon = TestDaemon::start().await;
    daemon.emit(&json!({ "scope": "main", "type": "hang.please" })).await;
    let works = daemon.until("/v1/work?state=running", |works| works["items"][0]["run"].is_string()).await;
    let (id, run) = (works["items"][0]["id"].as_str().unwrap(), works["items"][0]["run"].as_str().unwrap());
    daemon.until(&format!("/v1/runs/{run}"), |run| run["state"] == "running").await;
    let ask_for_it = format!("href=\"/work/{id}/interrupt\"");
    for path in [format!("/work/{id}"), format!("/runs/{run}")] {
        has(&page(&daemon, &path).await, &[&ask_for_it, "Interrupt run…"]);
    }
    let asked = page(&daemon, &format!("/work/{id}/interrupt")).await;
    has(&asked, &["loses its authority and is stopped", "The Work stays", "It counts as no failure"]);
    has(&asked, &[&format!("open-conduit work interrupt {id}"), "Interrupt run</button>"]);

    assert_eq!(daemon.post(&format!("/v1/work/{id}/interrupt"), &json!({})).await.status, 202);
    daemon.until(&format!("/v1/runs/{run}"), |run| run["orders"][0]["state"] == "delivered").await;
    has(&page(&daemon, &format!("/runs/{run}")).await, &["It was interrupted for"]);
    let text = page(&daemon, &format!("/work/{id}")).await;
    assert!(!text.contains(&ask_for_it) && text.contains("Cancel Work…"), "{text}");
    assert_eq!(ask(&daemon, &format!("/work/{id}/interrupt")).await.status, 409);
    daemon.running.stop().await.unwrap();
}
