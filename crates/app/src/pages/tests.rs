//! Pages, asked with real requests against a daemon in the test's own process.

mod config;
mod health;
mod settings;
mod events;
mod emit;
mod work;
mod run;
mod operator;
mod runs;
mod weight;

use crate::api::tests::sessions::Browser;
use crate::api::tests::{Reply, TestDaemon};

/// The most bytes of a page.
const PAGE_BYTES_MAX: usize = 150_000;

/// Asks for a page at its own address, with the token.
async fn ask(daemon: &TestDaemon, path: &str) -> Reply {
    let (host, token) = (Browser::new(daemon).host, format!("Bearer {}", daemon.token));
    daemon.tcp("GET", path, &[("Host", &host), ("Authorization", &token)], b"").await
}

/// A page that is there.
async fn page(daemon: &TestDaemon, path: &str) -> String {
    let reply = ask(daemon, path).await;
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    assert_eq!(reply.header("content-type"), "text/html; charset=utf-8", "{path}");
    assert!(reply.body.len() < PAGE_BYTES_MAX, "{path} has {} bytes", reply.body.len());
    reply.text()
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing in {text}");
    }
}

/// How many rows a list has.
fn rows(text: &str) -> usize {
    text.matches("<tr data-row").count()
}
