//! What an Event led to, and where a Work has got to.

use serde_json::json;

use super::TestDaemon;

#[tokio::test]
async fn an_event_says_what_it_led_to() {
    let daemon = TestDaemon::start().await;
    let event = daemon.emit(&json!({ "scope": "main", "type": "build.finished" })).await;
    let path = format!("/v1/events/{}", event["event"].as_str().unwrap());
    let shown = daemon.until(&path, |event| event["led_to"]["events"][0].is_object()).await;
    let led = &shown["led_to"];
    assert_eq!((led["run"]["state"].as_str(), led["run"]["attempt"].as_i64()), (Some("completed"), Some(1)));
    assert_eq!(
        (led["pending"].as_bool(), led["events"][0]["type"].as_str()),
        (Some(false), Some("core.turn.ended"))
    );
    let derived =
        daemon.get_json(&format!("/v1/events/{}", led["events"][0]["event"].as_str().unwrap())).await;
    assert_eq!((&derived["parent"], &derived["emitted_by"]), (&shown["id"], &led["run"]["run"]));
    assert_eq!(derived["led_to"], json!({ "run": null, "pending": false, "events": [] }));
    assert!(daemon.get_json("/v1/events").await["items"][0].get("led_to").is_none());
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn input_that_waits_is_pending_until_its_work_ends() {
    let daemon = TestDaemon::start().await;
    daemon.emit(&json!({ "scope": "main", "type": "hang.please" })).await;
    let works = daemon.until("/v1/work", |works| works["items"][0]["run"].is_string()).await;
    let work = &works["items"][0];
    assert_eq!(work["last_run"]["run"], work["run"]);
    let id = work["id"].as_str().unwrap();
    let more = daemon.emit(&json!({ "scope": "main", "type": "a.b", "work": id })).await;
    let path = format!("/v1/events/{}", more["event"].as_str().unwrap());
    daemon.until(&path, |event| event["led_to"]["pending"] == true).await;
    let shown = daemon.get_json(&format!("/v1/work/{id}")).await;
    let input = &shown["pending_inputs"][0];
    assert_eq!((&input["event"], &input["type"]), (&more["event"], &json!("a.b")));
    assert_eq!((&input["source"], &input["binding"]), (&json!("core.manual"), &json!("fake")));
    assert_eq!(shown["pending"], json!([more["event"]]));
    daemon.post(&format!("/v1/work/{id}/cancel"), &json!({})).await;
    daemon.until(&path, |event| event["led_to"]["pending"] == false).await;
    daemon.running.stop().await.unwrap();
}
