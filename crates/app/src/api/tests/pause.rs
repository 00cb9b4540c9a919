//! Pausing and resuming scopes over the interface.

use serde_json::json;

use super::TestDaemon;
use super::document::conforms;

#[tokio::test]
async fn a_paused_scope_says_so_everywhere_and_starts_again() {
    let daemon = TestDaemon::start().await;
    let paused = daemon.post("/v1/scopes/main/pause", &json!({})).await.json();
    assert_eq!((&paused["paused_by"], &paused["changed"]), (&json!("main"), &json!(true)));
    let again = daemon.post("/v1/scopes/main/pause", &json!({})).await.json();
    assert_eq!((&again["since"], &again["changed"]), (&paused["since"], &json!(false)));

    daemon.emit(&json!({ "scope": "main", "type": "build.finished" })).await;
    let works = daemon.until("/v1/work", |works| works["items"][0]["queue"] == "blocked").await;
    assert_eq!(works["items"][0]["blocked_by"], "scope_paused:main");
    let scope = daemon.get_json("/v1/scopes?name=main").await;
    assert_eq!(scope["items"][0]["paused"]["since"], paused["since"]);
    let config = daemon.get_json("/v1/config").await;
    assert_eq!(config["tree"][0]["paused"]["scope"], "main");
    let status = daemon.get_json("/v1/status").await;
    assert_eq!(status["paused"], json!([{ "scope": "main", "since": paused["since"] }]));
    let doctor = daemon.get_json("/v1/doctor").await;
    let check = doctor["checks"].as_array().unwrap().iter().find(|check| check["name"] == "pauses").unwrap();
    assert!(check["sentence"].as_str().unwrap().contains("scope resume main"), "{check}");
    let asked = json!({ "scope": "main", "type": "build.finished" });
    let explained = daemon.post("/v1/events/explain", &asked).await;
    conforms(&explained, "post", "/v1/events/explain");
    let explained = explained.json();
    assert_eq!((&explained["outcome"], &explained["paused"]["scope"]), (&json!("routed"), &json!("main")));
    let last = explained["sentences"].as_array().unwrap().last().unwrap().as_str().unwrap();
    assert!(last.contains("would wait as input") && last.contains("scope resume main"), "{last}");
    let metrics = daemon.get("/metrics").await;
    assert!(metrics.text().contains("open_conduit_scopes_paused 1"), "{}", metrics.text());

    let resumed = daemon.post("/v1/scopes/main/resume", &json!({})).await.json();
    assert_eq!((&resumed["paused_by"], &resumed["changed"]), (&json!(null), &json!(true)));
    daemon.until("/v1/runs", |runs| runs["items"][0]["state"] == "completed").await;
    assert_eq!(daemon.get_json("/v1/status").await["paused"], json!([]));
    let explained = daemon.post("/v1/events/explain", &asked).await.json();
    assert_eq!(explained["paused"], json!(null));
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_scope_that_there_is_not_cannot_be_paused() {
    let daemon = TestDaemon::start().await;
    for verb in ["pause", "resume"] {
        let reply = daemon.post(&format!("/v1/scopes/no%2Fwhere/{verb}"), &json!({})).await;
        assert_eq!(reply.json()["code"], "unknown_scope");
    }
    daemon.running.stop().await.unwrap();
}
