//! How the daemon is, as a page.

use serde_json::json;

use super::{ask, has, page};
use crate::api::tests::TestDaemon;

#[tokio::test]
async fn a_daemon_that_is_well_says_so_with_its_figures() {
    let daemon = TestDaemon::start().await;
    let text = page(&daemon, "/health").await;
    has(
        &text,
        &[
            "<h1>Health</h1>",
            "Write-ahead log",
            "Memory",
            " free<",
            "<dt>Journal</dt><dd>wal</dd>",
            "<dt>To route</dt><dd>no Event</dd>",
            "https://hooks.example.com/github/main/repository",
            "open-conduit doctor --check-secrets",
            "no client follows",
            &format!("http://{}", daemon.api()),
        ],
    );
    assert!(!text.contains("Lanes that stand still"), "none does");
    assert_eq!(ask(&daemon, "/health?moon=1").await.status, 400);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn what_stands_still_is_named_with_its_next_try() {
    let daemon = TestDaemon::start().await;
    let emitted = daemon.emit(&json!({ "scope": "team/off", "type": "a.b" })).await;
    let event = emitted["event"].as_str().unwrap();
    daemon.until("/v1/status", |status| status["lanes"][0].is_object()).await;
    for _ in 0..6 {
        daemon.emit(&json!({ "scope": "main", "type": "hang.please" })).await;
    }
    daemon.until("/v1/status", |status| status["blocked"][0]["works"] == 2).await;
    let text = page(&daemon, "/health").await;
    has(
        &text,
        &[
            "Lanes that stand still",
            &format!("href=\"/events/{event}\""),
            "1 thing to look at<",
            "<dt>Blocked</dt><dd>2 Works<small>",
            "has waited for longest, since",
            "2 Works are blocked. It starts when scope <code>main</code> runs less",
            "<dt>Running</dt><dd>4 runs</dd>",
        ],
    );
    let warning = text.find(">Warning<").unwrap();
    assert!(warning < text.find(">Ok<").unwrap(), "what needs a person comes first");
    daemon.running.stop().await.unwrap();
}
