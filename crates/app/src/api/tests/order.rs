//! Orders of an operator to a run, over the interface.

use serde_json::{Value, json};

use super::TestDaemon;

/// A Work whose run hangs until it is stopped, and that run.
async fn hanging(daemon: &TestDaemon) -> (String, String) {
    daemon.emit(&json!({ "scope": "main", "type": "hang.please" })).await;
    let works = daemon.until("/v1/work?state=running", |works| works["items"][0]["run"].is_string()).await;
    let word = |name: &str| works["items"][0][name].as_str().unwrap().to_owned();
    let run = word("run");
    daemon.until(&format!("/v1/runs/{run}"), |run| run["state"] == "running").await;
    (word("id"), run)
}

fn json_of(body: &str) -> Value {
    serde_json::from_str(body).unwrap()
}

#[tokio::test]
async fn an_interrupt_ends_the_run_once_and_keeps_the_work() {
    let daemon = TestDaemon::start().await;
    let (work, run) = hanging(&daemon).await;
    let shown = daemon.get_json(&format!("/v1/work/{work}")).await;
    assert_eq!(shown["controls"], json!(["inject", "interrupt"]));
    let path = format!("/v1/work/{work}/interrupt");
    let named = [("Idempotency-Key", "i-1"), ("Content-Type", "application/json")];
    let first = daemon.unix("POST", &path, &named, b"{}").await;
    let again = daemon.unix("POST", &path, &named, b"{}").await;
    assert_eq!((first.status, again.status), (202, 200), "{}", again.text());
    let (first, again) = (json_of(&first.text()), json_of(&again.text()));
    assert_eq!((&first["run"], &first["event"]), (&json!(run), &again["event"]));
    let ended =
        daemon.until(&format!("/v1/runs/{run}"), |run| run["orders"][0]["state"] == "delivered").await;
    assert_eq!((&ended["state"], &ended["interrupt_event_id"]), (&json!("cancelled"), &first["event"]));
    assert_eq!(ended["controls"], json!([]));
    let work = daemon.get_json(&format!("/v1/work/{work}")).await;
    assert_eq!((&work["state"], &work["queue"]), (&json!("ready"), &json!("idle")));
    let why = daemon.get_json(&format!("/v1/runs/{run}/why")).await;
    assert!(why["sentences"].to_string().contains("It was interrupted for"), "{why}");
    let event = daemon.get_json(&format!("/v1/events/{}", first["event"].as_str().unwrap())).await;
    assert_eq!(event["type"], "core.manual.interrupt");
    assert_eq!(event["checkpoint"]["code"], "operator_interrupt");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn what_is_injected_is_input_until_it_is_proved() {
    let daemon = TestDaemon::start().await;
    let (work, run) = hanging(&daemon).await;
    let body = json!({ "payload": { "text": "look again" }, "delivery_id": "m-1" });
    let reply = daemon.post(&format!("/v1/work/{work}/inject"), &body).await;
    assert_eq!(reply.status, 202, "{}", reply.text());
    let event = json_of(&reply.text())["event"].clone();
    // This executor has no way in after all, and says so.
    let shown =
        daemon.until(&format!("/v1/work/{work}"), |work| work["orders"][0]["state"] == "not_accepting").await;
    assert_eq!(shown["pending"], json!([event]));
    assert_eq!(shown["pending_inputs"][0]["type"], "manual.message");
    let why = daemon.get_json(&format!("/v1/runs/{run}/why")).await;
    assert!(why["sentences"].to_string().contains("it is input of the next run"), "{why}");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn orders_that_cannot_be_meant_are_refused_and_leave_nothing() {
    let daemon = TestDaemon::start().await;
    daemon.emit(&json!({ "scope": "main", "type": "build.finished" })).await;
    let works = daemon.until("/v1/work", |works| works["items"][0]["last_run"]["state"] == "completed").await;
    let idle = works["items"][0]["id"].as_str().unwrap();
    let code = |text: String| json_of(&text)["code"].clone();
    let ended = works["items"][0]["ended_at"].is_string();
    let reply = daemon.post(&format!("/v1/work/{idle}/interrupt"), &json!({})).await;
    assert_eq!(code(reply.text()), if ended { "terminal_work" } else { "no_live_run" });
    let (work, _run) = hanging(&daemon).await;
    let inject = format!("/v1/work/{work}/inject");
    for (body, expected) in [
        (json!({ "type": "core.manual.interrupt" }), "reserved_type"),
        (json!({ "type": "not a type" }), "bad_request"),
        (json!({ "surprise": 1 }), "bad_request"),
    ] {
        let reply = daemon.post(&inject, &body).await;
        assert_eq!(code(reply.text()), expected, "{body}");
    }
    let missing = daemon.post("/v1/work/work_0000000000001/interrupt", &json!({})).await;
    assert_eq!(missing.status, 404);
    assert!(daemon.get_json(&format!("/v1/work/{work}")).await["orders"].is_null());
    daemon.running.stop().await.unwrap();
}
