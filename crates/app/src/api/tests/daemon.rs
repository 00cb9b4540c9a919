//! Starting and stopping: the home, the lock, the token and the first configuration.

use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

use serde_json::json;

use super::{CONFIG, TestDaemon, home_in, options};
use crate::daemon::{DaemonError, start};

#[tokio::test]
async fn a_home_is_private_and_its_token_is_stored_hashed() {
    let daemon = TestDaemon::start().await;
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(daemon.home().root()), 0o700);
    assert_eq!(mode(&daemon.home().token()), 0o600);
    assert_eq!(mode(&daemon.home().socket()), 0o600);
    assert!(std::fs::metadata(daemon.home().socket()).unwrap().file_type().is_socket());
    assert_eq!(daemon.token.len(), 64);
    let (home, token) = (daemon.home().clone(), daemon.token.clone());
    daemon.running.stop().await.unwrap();
    assert!(!home.socket().exists(), "a stop removes the socket");
    for entry in std::fs::read_dir(home.root()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() && path != home.token() {
            let bytes = std::fs::read(&path).unwrap();
            let found = bytes.windows(token.len()).any(|window| window == token.as_bytes());
            assert!(!found, "{} holds the token", path.display());
        }
    }
}

#[tokio::test]
async fn a_token_outlives_a_restart_and_one_that_was_removed_is_revoked() {
    let daemon = TestDaemon::start().await;
    let old = daemon.token.clone();
    let daemon = daemon.restart().await;
    assert_eq!(daemon.token, old);
    std::fs::remove_file(daemon.home().token()).unwrap();
    let daemon = daemon.restart().await;
    assert_ne!(daemon.token, old);
    let host = daemon.api().to_string();
    let stale = format!("Bearer {old}");
    let reply = daemon.tcp("GET", "/v1/status", &[("Host", &host), ("Authorization", &stale)], b"").await;
    assert_eq!(reply.status, 401);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn one_daemon_has_a_home_and_what_a_dead_one_left_is_no_hindrance() {
    let daemon = TestDaemon::start().await;
    let (options, _fake) = options(daemon.directory.path());
    let second = start(daemon.home().clone(), options).await;
    assert!(matches!(second, Err(DaemonError::AlreadyRunning)));
    assert_eq!(daemon.get("/v1/status").await.status, 200, "the first one is not disturbed");
    let socket = daemon.home().socket();
    let TestDaemon { directory, running, .. } = daemon;
    running.stop().await.unwrap();
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    assert!(socket.exists(), "a socket that nobody listens on");
    let daemon = TestDaemon::start_in(directory).await;
    assert_eq!(daemon.get("/v1/status").await.status, 200);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_first_start_refuses_a_bad_configuration_and_an_open_address() {
    for (text, word) in [
        (CONFIG.replace("concurrency = 4", "concurrency = 0"), "invalid_config"),
        (CONFIG.replace("api_listen = \"127.0.0.1:0\"", "api_listen = \"0.0.0.0:0\""), "invalid_config"),
        (
            CONFIG.replace("webhook_listen = \"127.0.0.1:0\"", "webhook_listen = \"192.0.2.1:1\""),
            "invalid_config",
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let home = home_in(directory.path());
        home.create().unwrap();
        std::fs::write(home.root().join("conduit.toml"), text).unwrap();
        let (options, _fake) = options(directory.path());
        let error = start(home.clone(), options).await.expect_err("it does not start");
        assert_eq!(error.code(), word);
        assert!(!home.socket().exists());
    }
}

#[tokio::test]
async fn without_a_configuration_it_runs_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let home = home_in(directory.path());
    home.create().unwrap();
    std::fs::write(
        home.root().join("conduit.toml"),
        "[daemon]\napi_listen = '127.0.0.1:0'\nwebhook_listen = 'off'\n",
    )
    .unwrap();
    let daemon = TestDaemon::start_in(directory).await;
    assert_eq!(
        daemon.post("/v1/events", &json!({ "scope": "main", "type": "a.b" })).await.code(),
        "unknown_scope"
    );
    assert_eq!(daemon.get_json("/v1/status").await["webhook_address"], json!(null));
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn metrics_are_what_prometheus_reads() {
    let daemon = TestDaemon::start().await;
    daemon.emit(&json!({ "scope": "main", "type": "build.finished" })).await;
    daemon.until("/v1/runs", |page| page["items"][0]["state"] == "completed").await;
    let text = daemon.get("/metrics").await.text();
    for line in ["open_conduit_events_accepted_total 1", "open_conduit_config_generation 1", "# EOF"] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
    daemon.running.stop().await.unwrap();
}
