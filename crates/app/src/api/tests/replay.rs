//! Replaying Events over the interface.

use serde_json::json;

use super::TestDaemon;

#[tokio::test]
async fn a_replay_is_seen_with_the_event_it_repeats() {
    let daemon = TestDaemon::start().await;
    let event =
        daemon.emit(&json!({ "scope": "main", "type": "build.finished", "payload": { "n": 1 } })).await;
    let id = event["event"].as_str().unwrap().to_owned();
    let path = format!("/v1/events/{id}");
    daemon.until(&path, |event| event["led_to"]["run"]["state"] == "completed").await;
    let replay = format!("{path}/replay");
    let headers = [("Content-Type", "application/json"), ("Idempotency-Key", "once")];
    let first = daemon.unix("POST", &replay, &headers, b"").await;
    assert_eq!(first.status, 202, "{}", first.text());
    let again = daemon.unix("POST", &replay, &headers, b"").await;
    assert_eq!((again.status, &again.json()["event"]), (200, &first.json()["event"]));
    let new = first.json()["event"].as_str().unwrap().to_owned();
    let shown = daemon
        .until(&format!("/v1/events/{new}"), |event| event["led_to"]["run"]["state"] == "completed")
        .await;
    assert_eq!((&shown["type"], &shown["parent"]), (&json!("core.replay.requested"), &json!(id)));
    assert_eq!((&shown["payload"], &shown["replays"]), (&json!({ "n": 1 }), &json!(id)));
    let original = daemon.get_json(&path).await;
    let led: Vec<_> =
        original["led_to"]["events"].as_array().unwrap().iter().map(|led| &led["event"]).collect();
    assert!(led.contains(&&json!(new)), "{led:?}");
    let run = shown["led_to"]["run"]["run"].as_str().unwrap();
    let why = daemon.get_json(&format!("/v1/runs/{run}/why")).await;
    let sentences = why["sentences"].to_string();
    assert!(sentences.contains(&format!("An operator had it replayed: {new}")), "{sentences}");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_replayed_says_why() {
    let daemon = TestDaemon::start().await;
    let off = daemon.emit(&json!({ "scope": "team/off", "type": "a.b" })).await;
    let path = format!("/v1/events/{}/replay", off["event"].as_str().unwrap());
    let reply = daemon.post(&path, &json!({})).await;
    assert_eq!((reply.status, reply.json()["code"].as_str()), (409, Some("not_replayable")));
    let reply = daemon.post("/v1/events/ev_0/replay", &json!({})).await;
    assert_eq!(reply.json()["code"], "not_found");
    daemon.running.stop().await.unwrap();
}
