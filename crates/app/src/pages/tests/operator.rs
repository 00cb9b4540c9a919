//! What an operator does from a page to scopes and Events: pausing, resuming, replaying.

use serde_json::json;

use super::has;
use crate::api::tests::TestDaemon;
use crate::api::tests::sessions::Browser;

#[tokio::test]
async fn a_scope_is_paused_and_resumed_from_its_page() {
    let daemon = TestDaemon::start().await;
    let browser = Browser::logged_in(&daemon).await;
    let page = browser.get(&daemon, "/config?scope=main").await.text();
    has(&page, &["href=\"/scopes/main/pause\"", "Pause…</a>"]);
    let page = browser.get(&daemon, "/scopes/main/pause").await.text();
    has(&page, &["Pause scope main?", "What runs now goes on", "open-conduit scope pause main"]);
    let reply = browser.submit(&daemon, "/scopes/main/pause", "").await;
    assert_eq!((reply.status, reply.header("location")), (303, "/config?scope=main"));
    let page = browser.get(&daemon, "/config?scope=main").await.text();
    has(
        &page,
        &[
            "It is paused since",
            "<span class=\"tag\">paused</span>",
            "href=\"/scopes/main/resume\"",
            "Resume main…",
        ],
    );
    assert!(!page.contains("Pause…</a>"));
    let page = browser.get(&daemon, "/scopes/main/resume").await.text();
    has(&page, &["Resume scope main?", "open-conduit scope resume main"]);
    has(&browser.get(&daemon, "/health").await.text(), &["is paused since"]);
    daemon.emit(&json!({ "scope": "main", "type": "build.finished" })).await;
    let works = daemon.until("/v1/work", |works| works["items"][0]["queue"] == "blocked").await;
    let work = format!("/work/{}", works["items"][0]["id"].as_str().unwrap());
    has(&browser.get(&daemon, &work).await.text(), &["It starts when scope <code>main</code> goes on"]);
    let reply = browser.submit(&daemon, "/scopes/main/resume", "").await;
    assert_eq!(reply.status, 303);
    daemon.until("/v1/runs", |runs| runs["items"][0]["state"] == "completed").await;
    let off = browser.submit(&daemon, "/scopes/team%2Foff/pause", "").await;
    assert_eq!(off.header("location"), "/config?scope=team%2Foff");
    assert_eq!(browser.submit(&daemon, "/scopes/nowhere/pause", "").await.status, 404);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn an_event_is_replayed_from_its_page_once() {
    let daemon = TestDaemon::start().await;
    let event = daemon.emit(&json!({ "scope": "main", "type": "build.finished" })).await;
    let path = format!("/events/{}", event["event"].as_str().unwrap());
    daemon.until(&format!("/v1{path}"), |event| event["led_to"]["run"]["state"] == "completed").await;
    let browser = Browser::logged_in(&daemon).await;
    let page = browser.get(&daemon, &path).await.text();
    has(&page, &["Replay…</a>"]);
    let page = browser.get(&daemon, &format!("{path}/replay")).await.text();
    has(&page, &["Replay build.finished?", "It would ", "open-conduit events replay"]);
    let request = page.split("name=\"delivery_id\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let form = format!("delivery_id={}", request.replace('/', "%2F"));
    let first = browser.submit(&daemon, &format!("{path}/replay"), &form).await;
    let again = browser.submit(&daemon, &format!("{path}/replay"), &form).await;
    assert_eq!((first.status, first.header("location")), (303, again.header("location")));
    let replay = first.header("location").to_owned();
    has(
        &browser.get(&daemon, &replay).await.text(),
        &["an operator had its parent looked at again", path.as_str()],
    );
    has(&browser.get(&daemon, &path).await.text(), &["core.replay.requested", replay.as_str()]);
    let waits = daemon.emit(&json!({ "scope": "team/off", "type": "a.b" })).await;
    let waits = format!("/events/{}", waits["event"].as_str().unwrap());
    assert!(!browser.get(&daemon, &waits).await.text().contains("Replay…</a>"));
    assert_eq!(browser.get(&daemon, &format!("{waits}/replay")).await.status, 409);
    daemon.running.stop().await.unwrap();
}
