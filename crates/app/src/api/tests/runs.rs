//! Runs: why they started, their output, what they left, and cancelling.

use serde_json::{Value, json};

use super::TestDaemon;

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
