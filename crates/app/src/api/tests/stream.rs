//! The change feed as a client sees it.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::sessions::Browser;
use super::{SOON, TestDaemon};

/// A client of the stream that reads event by event.
struct Client {
    stream: UnixStream,
    text: String,
}

/// One event: its id, its name and its data.
type Message = (String, String, Value);

impl Client {
    async fn open(daemon: &TestDaemon, path: &str, headers: &[(&str, &str)]) -> Self {
        let mut head =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n", daemon.token);
        for (name, value) in headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        head.push_str("\r\n");
        let mut stream = UnixStream::connect(daemon.home().socket()).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut client = Self { stream, text: String::new() };
        let head = client.until("\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.to_lowercase().contains("content-type: text/event-stream"), "{head}");
        client
    }

    /// Takes the text up to an end.
    async fn until(&mut self, end: &str) -> String {
        loop {
            if let Some(at) = self.text.find(end) {
                let taken = self.text[..at].to_owned();
                self.text.drain(..at + end.len());
                return taken;
            }
            let mut buffer = [0; 4096];
            let read = tokio::time::timeout(SOON, self.stream.read(&mut buffer))
                .await
                .expect("more in time")
                .unwrap();
            assert!(read > 0, "the stream ended after {:?}", self.text);
            self.text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        }
    }

    /// The next event; comments are passed over.
    async fn next(&mut self) -> Message {
        loop {
            let block = self.until("\n\n").await;
            let field = |name: &str| {
                let line = block.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
                line.unwrap_or_default().to_owned()
            };
            if !field("data").is_empty() {
                return (field("id"), field("event"), serde_json::from_str(&field("data")).unwrap());
            }
        }
    }

    /// Whether the daemon has ended the stream.
    async fn ended(mut self) -> bool {
        let mut rest = Vec::new();
        tokio::time::timeout(SOON, self.stream.read_to_end(&mut rest)).await.is_ok()
    }
}

fn build() -> Value {
    json!({ "scope": "main", "type": "build.finished" })
}

#[tokio::test]
async fn a_stream_tells_what_happens_from_now_on() {
    let daemon = TestDaemon::start().await;
    daemon.emit(&build()).await;
    daemon.until("/v1/runs", |page| page["items"][0]["state"] == "completed").await;
    let mut client = Client::open(&daemon, "/v1/stream?kinds=event,run", &[]).await;
    let accepted = daemon.emit(&build()).await;
    let (_id, name, data) = client.next().await;
    assert_eq!((name.as_str(), data["kind"].as_str()), ("change", Some("event")));
    assert_eq!(data["id"], accepted["event"]);
    let mut states = Vec::new();
    while states.last() != Some(&"completed".to_owned()) {
        let (_id, _name, data) = client.next().await;
        if data["kind"] == "run" {
            states.push(data["state"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(states, ["launching", "running", "completed"]);
    daemon.running.stop().await.unwrap();
    assert!(client.ended().await, "a stop ends streams");
}

#[tokio::test]
async fn a_client_that_comes_back_misses_nothing() {
    let daemon = TestDaemon::start().await;
    let mut first = Client::open(&daemon, "/v1/stream?kinds=event", &[]).await;
    let one = daemon.emit(&build()).await;
    let (cursor, _name, data) = first.next().await;
    assert_eq!(data["id"], one["event"]);
    drop(first);
    let two = daemon.emit(&build()).await;
    let daemon = daemon.restart().await;
    let three = daemon.emit(&build()).await;
    let mut again = Client::open(&daemon, "/v1/stream?kinds=event", &[("Last-Event-ID", &cursor)]).await;
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let (_id, _name, data) = again.next().await;
        // What the runtime itself announces is an Event, too.
        if [&two["event"], &three["event"]].contains(&&data["id"]) {
            seen.push(data["id"].clone());
        }
    }
    assert_eq!(seen, [two["event"].clone(), three["event"].clone()]);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_cursor_that_is_not_known_is_told_to_read_everything_again() {
    let daemon = TestDaemon::start().await;
    daemon.emit(&build()).await;
    for cursor in ["moon", "f7fffffffffffffff", "e1", "f0"] {
        let mut client = Client::open(&daemon, "/v1/stream", &[("Last-Event-ID", cursor)]).await;
        let (id, name, _data) = client.next().await;
        assert_eq!(name, "reset", "{cursor}");
        let mut resumed = Client::open(&daemon, &format!("/v1/stream?cursor={id}&kinds=event"), &[]).await;
        let accepted = daemon.emit(&json!({ "scope": "main", "type": "nobody.cares" })).await;
        loop {
            let (_id, name, data) = resumed.next().await;
            assert_eq!(name, "change", "the cursor of a reset is a good one");
            if data["id"] == accepted["event"] {
                break;
            }
        }
    }
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_stream_can_be_narrowed_to_a_scope() {
    let daemon = TestDaemon::start().await;
    let mut client = Client::open(&daemon, "/v1/stream?scope=team/off", &[]).await;
    daemon.emit(&build()).await;
    let other = daemon.emit(&json!({ "scope": "team/off", "type": "a.b" })).await;
    let (_id, _name, data) = client.next().await;
    assert_eq!(data["id"], other["event"]);
    assert_eq!(daemon.get("/v1/stream?kinds=moon").await.code(), "bad_request");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn streams_are_counted_and_bounded() {
    let daemon = TestDaemon::start().await;
    let mut clients = Vec::new();
    for _ in 0..128 {
        clients.push(Client::open(&daemon, "/v1/stream", &[]).await);
    }
    let reply = daemon.get("/v1/stream").await;
    assert_eq!((reply.status, reply.code().as_str()), (503, "too_many_streams"));
    assert!(!reply.header("retry-after").is_empty());
    drop(clients);
    let freed = tokio::time::timeout(SOON, async {
        while daemon.running.daemon().streams_open() > 0 {
            tokio::task::yield_now().await;
        }
    });
    assert!(freed.await.is_ok(), "a client that is gone frees its place");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_page_says_from_where_on_it_does_not_know_what_happened() {
    let daemon = TestDaemon::start().await;
    daemon.emit(&json!({ "scope": "main", "type": "no.such" })).await;
    let browser = Browser::logged_in(&daemon).await;
    let page = browser.get(&daemon, "/").await.text();
    let cursor = page.split("data-cursor=\"").nth(1).unwrap().split('"').next().unwrap();
    // What happens before the page's script has opened its stream is told all the same.
    let event = daemon.emit(&json!({ "scope": "main", "type": "no.such" })).await;
    let mut client = Client::open(&daemon, &format!("/v1/stream?kinds=event&cursor={cursor}"), &[]).await;
    let (_id, name, data) = client.next().await;
    assert_eq!((name.as_str(), &data["id"]), ("change", &event["event"]));
    daemon.running.stop().await.unwrap();
}
