//! Showing, planning and applying configurations.

use serde_json::json;

use super::{CONFIG, JOB_SECRET, TestDaemon, request, send};

fn write(daemon: &TestDaemon, text: &str) {
    std::fs::write(daemon.home().root().join("conduit.toml"), text).unwrap();
}

#[tokio::test]
async fn an_edited_file_changes_nothing_until_it_is_applied() {
    let daemon = TestDaemon::start().await;
    let shown = daemon.get_json("/v1/config").await;
    assert_eq!((shown["generation"].as_i64(), shown["edited"].as_bool()), (Some(1), Some(false)));
    assert!(shown["config"]["scopes"].is_array());
    assert_eq!(daemon.get_json("/v1/config/plan").await["changes"], json!([]));

    let edited =
        CONFIG.replace("concurrency = 4", "concurrency = 5").replace("name = \"job\"", "name = \"task\"");
    write(&daemon, &edited);
    assert_eq!(daemon.get_json("/v1/status").await["config_edited"], true);
    let daemon = daemon.restart().await;
    assert_eq!(daemon.get_json("/v1/config").await["generation"], 1, "a start keeps what was applied");
    let plan = daemon.get_json("/v1/config/plan").await;
    assert!(plan["changes"].as_array().unwrap().len() >= 2, "{plan}");
    let old = format!("/hooks/main/job/{JOB_SECRET}");
    let host = daemon.hooks().to_string();
    assert_eq!(send(daemon.hooks(), &request("POST", &old, &[("Host", &host)], b"{}")).await.status, 202);

    let applied = daemon.post("/v1/config/apply", &json!({})).await;
    assert_eq!(applied.status, 200, "{}", applied.text());
    assert_eq!((&applied.json()["generation"], &applied.json()["changed"]), (&json!(2), &json!(true)));
    assert_eq!(applied.json()["restart_required"], json!([]));
    assert_eq!(send(daemon.hooks(), &request("POST", &old, &[("Host", &host)], b"{}")).await.status, 404);
    let new = format!("/hooks/main/task/{JOB_SECRET}");
    assert_eq!(send(daemon.hooks(), &request("POST", &new, &[("Host", &host)], b"{}")).await.status, 202);
    let again = daemon.unix("POST", "/v1/config/apply", &[], b"").await.json();
    assert_eq!((&again["generation"], &again["changed"]), (&json!(2), &json!(false)));
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_bad_apply_changes_nothing_and_lists_every_problem() {
    let daemon = TestDaemon::start().await;
    let bad = CONFIG.replace("concurrency = 4", "concurrency = 0\nmoon = 'S3CRET'");
    write(&daemon, &bad);
    for reply in [daemon.post("/v1/config/apply", &json!({})).await, daemon.get("/v1/config/plan").await] {
        assert_eq!((reply.status, reply.code().as_str()), (422, "invalid_config"));
        let problems = reply.json()["problems"].clone();
        assert!(problems[0]["line"].is_number() && problems[0]["path"].is_string(), "{problems}");
        assert!(!reply.text().contains("S3CRET"), "{}", reply.text());
    }
    let without_secret = CONFIG.replace(", webhook_secret = \"hook\"", "");
    let reply = daemon.post("/v1/config/apply", &json!({ "config": without_secret })).await;
    assert_eq!(reply.code(), "invalid_config");
    assert!(reply.text().contains("webhook_secret"), "{}", reply.text());
    assert_eq!(daemon.get_json("/v1/config").await["generation"], 1);
    assert_eq!(daemon.post("/v1/config/apply", &json!({ "moon": 1 })).await.code(), "bad_request");
    assert_eq!(
        daemon.post("/v1/config/apply", &json!({ "config": "", "format": "yaml" })).await.code(),
        "bad_request"
    );
    std::fs::remove_file(daemon.home().root().join("conduit.toml")).unwrap();
    assert_eq!(daemon.post("/v1/config/apply", &json!({})).await.code(), "no_config_file");
    assert_eq!(daemon.get("/v1/config/plan").await.code(), "no_config_file");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn what_is_fixed_while_it_runs_needs_a_restart() {
    let daemon = TestDaemon::start().await;
    let moved = CONFIG
        .replace("webhook_listen = \"127.0.0.1:0\"", "webhook_listen = \"off\"")
        .replace("namespace = \"hook/job\"", "namespace = \"hook/moved\"");
    let applied = daemon.post("/v1/config/apply", &json!({ "config": moved })).await.json();
    assert_eq!(applied["restart_required"].as_array().unwrap().len(), 2, "{applied}");
    let path = format!("/hooks/main/job/{JOB_SECRET}");
    let host = daemon.hooks().to_string();
    assert_eq!(send(daemon.hooks(), &request("POST", &path, &[("Host", &host)], b"{}")).await.status, 202);
    assert_eq!(
        daemon.count("/v1/events?source=hook/job").await,
        1,
        "the namespace is the one it started with"
    );
    write(&daemon, &moved);
    let daemon = daemon.restart().await;
    assert!(daemon.running.addresses().webhooks.is_none());
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn doctor_finds_what_is_wrong_and_prints_webhooks() {
    let daemon = TestDaemon::start().await;
    let doctor = daemon.get_json("/v1/doctor").await;
    assert_eq!(doctor["ok"], true, "{doctor}");
    let urls: Vec<&str> = doctor["webhooks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|webhook| webhook["url"].as_str().unwrap())
        .collect();
    assert!(urls.contains(&"https://hooks.example.com/github/main/repository"), "{urls:?}");
    assert_eq!(urls.len(), 4, "a disabled scope has none");
    let deep = daemon.get_json("/v1/doctor?check_secrets=true").await;
    assert_eq!(deep["ok"], false);
    assert!(deep.to_string().contains("`gone`") && !deep.to_string().contains(JOB_SECRET), "{deep}");

    daemon.emit(&json!({ "scope": "team/off", "type": "a.b" })).await;
    let doctor = daemon
        .until("/v1/doctor", |doctor| {
            doctor["checks"]
                .as_array()
                .unwrap()
                .iter()
                .any(|check| check["name"] == "lanes" && check["level"] == "warning")
        })
        .await;
    assert_eq!(doctor["ok"], true, "a warning is no error");
    daemon.running.stop().await.unwrap();
}
