//! Runs: why they started, their output, what they left, and cancelling.

use serde_json::{Value, json};

use super::{CONFIG, TestDaemon};
use crate::error_code::ErrorCode;

async fn completed(daemon: &TestDaemon) -> String {
    daemon.emit(&json!({ "scope": "main", "type": "build.finished" })).await;
    let page = daemon.until("/v1/runs", |page| page["items"][0]["state"] == "completed").await;
    page["items"][0]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_run_says_why_it_started() {
    let daemon = TestDaemon::start().await;
    let id = completed(&daemon).await;
    let run = daemon.get_json(&format!("/v1/runs/{id}")).await;
    assert_eq!((run["outcome"].as_str(), run["summary"].as_str()), (Some("completed"), Some("done")));
    assert_eq!(run["trigger"]["type"], "build.finished");
    let why = daemon.get_json(&format!("/v1/runs/{id}/why")).await;
    assert_eq!(why["chain"][0]["checkpoint"]["route"], "built");
    assert!(!why["sentences"].as_array().unwrap().is_empty());
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn output_is_plain_text_in_pieces() {
    let daemon = TestDaemon::start().await;
    let id = completed(&daemon).await;
    let whole = daemon.get(&format!("/v1/runs/{id}/log")).await;
    assert_eq!((whole.status, whole.header("content-type")), (200, "text/plain; charset=utf-8"));
    assert_eq!((whole.header("x-log-size"), whole.header("x-run-state")), ("34", "ended"));
    assert_eq!(whole.header("x-content-type-options"), "nosniff");
    let tail = daemon.get(&format!("/v1/runs/{id}/log?from=-10&bytes=9")).await;
    assert_eq!((tail.text().as_str(), tail.header("x-log-from")), ("</script>", "24"));
    for wrong in ["bytes=0", "bytes=9999999", "from=x"] {
        assert_eq!(daemon.get(&format!("/v1/runs/{id}/log?{wrong}")).await.code(), "bad_request", "{wrong}");
    }
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn artifacts_are_attachments_and_lead_nowhere_else() {
    let daemon = TestDaemon::start().await;
    let id = completed(&daemon).await;
    let reply = daemon.get(&format!("/v1/runs/{id}/artifacts/out/report.html")).await;
    assert_eq!((reply.status, reply.text().as_str()), (200, "<h1>not a page</h1>\n\n"));
    assert_eq!(reply.header("content-type"), "application/octet-stream");
    assert_eq!(reply.header("content-disposition"), "attachment; filename=\"report.html\"");
    assert_eq!(reply.header("x-content-type-options"), "nosniff");
    for path in [
        "../outside",
        "..%2foutside",
        "%2e%2e/outside",
        "out/../../outside",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "out",
        "out/",
        "gone",
        "a%00b",
    ] {
        let reply = daemon.get(&format!("/v1/runs/{id}/artifacts/{path}")).await;
        assert_eq!((reply.status, reply.code().as_str()), (404, "not_found"), "{path}");
    }
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn cancelling_ends_a_work_and_its_run_once() {
    let daemon = TestDaemon::start().await;
    daemon.emit(&json!({ "scope": "main", "type": "hang.please" })).await;
    let runs = daemon.until("/v1/runs", |page| page["items"][0]["state"] == "running").await;
    let (run, work): (&Value, &Value) = (&runs["items"][0]["id"], &runs["items"][0]["work"]);
    let path = format!("/v1/work/{}/cancel", work.as_str().unwrap());
    let reply = daemon.post(&path, &json!({})).await;
    assert_eq!((reply.status, &reply.json()["run"]), (200, run));
    let again = daemon.post(&path, &json!({})).await;
    assert_eq!((again.status, again.code().as_str()), (409, "terminal_work"));
    let shown = daemon.get_json(&format!("/v1/work/{}", work.as_str().unwrap())).await;
    assert_eq!((shown["state"].as_str(), shown["run"].is_null()), (Some("cancelled"), true));
    daemon
        .until("/v1/doctor", |doctor| {
            doctor["checks"]
                .as_array()
                .unwrap()
                .iter()
                .any(|check| check["name"] == "stopped" && check["level"] == "ok")
        })
        .await;
    assert_eq!(daemon.fake.started.lock().unwrap().len(), 1);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn running_again_is_a_new_event_from_the_operator() {
    let daemon = TestDaemon::start().await;
    let sent = daemon
        .emit(&json!({
            "scope": "main", "type": "build.finished", "payload": [1],
            "key": { "source": "demo", "external_id": "1" },
        }))
        .await;
    let page = daemon.until("/v1/runs", |page| page["items"][0]["state"] == "completed").await;
    let path = format!("/v1/runs/{}/again", page["items"][0]["id"].as_str().unwrap());
    let body = json!({ "delivery_id": "again-1" });
    let (first, second) = (daemon.post(&path, &body).await, daemon.post(&path, &body).await);
    assert_eq!((first.status, second.status), (202, 200), "{}", first.text());
    assert_eq!(
        (&second.json()["event"], &second.json()["duplicate"]),
        (&first.json()["event"], &json!(true))
    );
    let event = daemon.get_json(&format!("/v1/events/{}", first.json()["event"].as_str().unwrap())).await;
    for (field, value) in [
        ("source", json!("core.manual")),
        ("type", json!("build.finished")),
        ("scope", json!("main")),
        ("key", json!({ "source": "demo", "external_id": "1" })),
        ("payload", json!([1])),
        ("parent", json!(null)),
        ("delivery_id", json!("again-1")),
    ] {
        assert_eq!(event[field], value, "{field}");
    }
    assert_ne!(event["id"], sent["event"]);
    // Without a name of its own, each one is a new one.
    assert_eq!(daemon.unix("POST", &path, &[], b"").await.status, 202);
    assert_eq!(daemon.unix("POST", &path, &[], b"").await.status, 202);
    assert_eq!(daemon.count("/v1/events?type=build.finished").await, 4);
    assert_eq!(daemon.post(&path, &json!({ "payload": 1 })).await.code(), "bad_request");
    assert_eq!(daemon.post("/v1/runs/run_zzzzzzzzzzzzz/again", &json!({})).await.code(), "not_found");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_run_that_goes_on_or_was_started_by_the_runtime_is_not_run_again() {
    let config = CONFIG.replace(
        "[[scopes.routes]]\nname = \"hang\"",
        "[[scopes.routes]]\nname = \"after\"\nhandler = \"match\"\nbinding = \"hang\"\n\
         config = { types = [\"core.turn.ended\"], work = \"fresh\", kind = \"test.after\" }\n\
         [[scopes.routes]]\nname = \"hang\"",
    );
    let daemon = TestDaemon::start_with(&config).await;
    daemon.emit(&json!({ "scope": "main", "type": "build.finished" })).await;
    let is_after = |run: &Value| run["work_kind"] == "test.after" && run["state"] == "running";
    let runs = daemon.until("/v1/runs", |page| page["items"].as_array().unwrap().iter().any(is_after)).await;
    let run = runs["items"].as_array().unwrap().iter().find(|run| is_after(run)).unwrap();
    let path = format!("/v1/runs/{}/again", run["id"].as_str().unwrap());
    let refused = daemon.post(&path, &json!({})).await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "work_conflict"));
    let cancelled =
        daemon.post(&format!("/v1/work/{}/cancel", run["work"].as_str().unwrap()), &json!({})).await;
    assert_eq!(cancelled.status, 200, "{}", cancelled.text());
    let refused = daemon.post(&path, &json!({})).await;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (ErrorCode::ReservedType.status().as_u16(), "reserved_type")
    );
    assert_eq!(daemon.count("/v1/events?source=core.manual").await, 1);
    daemon.running.stop().await.unwrap();
}
