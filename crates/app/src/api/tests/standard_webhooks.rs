//! Standard Webhooks, signed with the secrets of a real home and sent to a real listener.

use std::os::unix::fs::PermissionsExt as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;

use super::webhook::{Hook, events, mac};
use super::{Reply, TestDaemon, home_in};

const CONFIG: &str = r#"
[daemon]
api_listen = "127.0.0.1:0"
webhook_listen = "127.0.0.1:0"

[[scopes]]
name = "main"
[scopes.secrets]
old = "file:old"
new = "file:new"
[[scopes.bindings]]
name = "fake"
executor = "fake"
[[scopes.routes]]
name = "built"
handler = "match"
binding = "fake"
config = { types = ["build.finished"], work = "fresh", kind = "test.build" }
[[scopes.extensions]]
name = "sender"
type = "webhook"
secret_names = ["old", "new"]
config = { namespace = "hook/sender", verify = { standard_webhooks = { secrets = ["old", "new"] } } }
"#;

const OLD: &[u8] = b"the secret that has been there";
const NEW: &[u8] = b"the secret that takes its place, and longer";
const PATH: &str = "/hooks/main/sender";
const BODY: &[u8] = b"{ \"type\":\"build.finished\",  \"data\":{\"n\":1.0} }\n";

async fn start() -> TestDaemon {
    let directory = tempfile::tempdir().unwrap();
    let home = home_in(directory.path());
    home.create().unwrap();
    std::fs::write(home.root().join("conduit.toml"), CONFIG).unwrap();
    for (name, secret) in [("old", OLD), ("new", NEW)] {
        let path = home.root().join(name);
        std::fs::write(&path, format!("whsec_{}\n", BASE64.encode(secret))).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    TestDaemon::start_in(directory).await
}

/// One attempt of a sender.
struct Attempt<'a> {
    id: &'a str,
    secret: &'a [u8],
    /// Seconds between the daemon's clock and the time that is written.
    late: i64,
    body: &'a [u8],
}

impl<'a> Attempt<'a> {
    const fn of(id: &'a str) -> Self {
        Self { id, secret: OLD, late: 0, body: BODY }
    }

    fn headers(&self, daemon: &TestDaemon) -> [(&'static str, String); 3] {
        let time = (daemon.running.daemon().store().now().as_seconds() - self.late).to_string();
        let signed = [self.id.as_bytes(), b".", time.as_bytes(), b".", self.body].concat();
        let signature = format!("v1a,bm90IGxvb2tlZCBhdA== v1,{}", BASE64.encode(mac(self.secret, &signed)));
        [("webhook-id", self.id.to_owned()), ("webhook-timestamp", time), ("webhook-signature", signature)]
    }

    async fn send(&self, daemon: &TestDaemon) -> Reply {
        send(daemon, &self.headers(daemon), self.body).await
    }
}

async fn send(daemon: &TestDaemon, headers: &[(&str, String)], body: &[u8]) -> Reply {
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    Hook::new(daemon).post(PATH, &headers, body).await
}

#[track_caller]
fn is_refused(reply: &Reply) {
    assert_eq!((reply.status, reply.code().as_str()), (401, "unauthorized"), "{}", reply.text());
}

#[tokio::test]
async fn a_signed_request_is_durable_when_it_is_answered_and_runs_what_it_matches() {
    let daemon = start().await;
    let reply = Attempt::of("msg_1").send(&daemon).await;
    assert_eq!(reply.status, 202, "{}", reply.text());
    let id = reply.json()["events"][0].as_str().unwrap().to_owned();
    daemon.until("/v1/runs", |page| page["items"][0]["state"] == "completed").await;
    let daemon = daemon.restart().await;
    let text = daemon.get(&format!("/v1/events/{id}")).await.text();
    assert!(text.contains(r#""payload":{ "type":"build.finished",  "data":{"n":1.0} }"#), "{text}");
    let event: Value = serde_json::from_str(&text).unwrap();
    let [source, delivery, kind] =
        ["source", "delivery_id", "type"].map(|name| event[name].as_str().unwrap());
    assert_eq!((source, delivery, kind), ("hook/sender", "msg_1", "build.finished"));
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn either_secret_may_sign_while_one_replaces_the_other() {
    let daemon = start().await;
    for (id, secret) in [("msg_old", OLD), ("msg_new", NEW)] {
        let reply = Attempt { secret, ..Attempt::of(id) }.send(&daemon).await;
        assert_eq!(reply.status, 202, "{}", reply.text());
    }
    is_refused(&Attempt { secret: b"nobody's secret", ..Attempt::of("msg_3") }.send(&daemon).await);
    std::fs::remove_file(daemon.home().root().join("old")).unwrap();
    assert_eq!(Attempt { secret: NEW, ..Attempt::of("msg_4") }.send(&daemon).await.status, 202);
    let reply = Attempt::of("msg_5").send(&daemon).await;
    assert_eq!((reply.status, reply.code().as_str()), (503, "entry_unavailable"), "it may be told later");
    assert_eq!(events(&daemon).await.len(), 3);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn what_is_missing_doubled_old_or_not_as_signed_has_no_effect() {
    let daemon = start().await;
    let right = Attempt::of("msg_1").headers(&daemon);
    for index in 0..right.len() {
        let mut fewer = right.to_vec();
        fewer.remove(index);
        is_refused(&send(&daemon, &fewer, BODY).await);
        let mut doubled = right.to_vec();
        doubled.push(right[index].clone());
        is_refused(&send(&daemon, &doubled, BODY).await);
    }
    is_refused(&send(&daemon, &right, &BODY[..BODY.len() - 1]).await);
    is_refused(&send(&daemon, &right, b"not json").await);
    for late in [400, -400] {
        is_refused(&Attempt { late, ..Attempt::of("msg_1") }.send(&daemon).await);
    }
    let mut moved = right.to_vec();
    moved[1].1 = "1614265330".to_owned();
    is_refused(&send(&daemon, &moved, BODY).await);
    assert!(events(&daemon).await.is_empty());
    // Only what is authentic is read, and said to be no JSON.
    let reply = Attempt { body: b"not json", ..Attempt::of("msg_2") }.send(&daemon).await;
    assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"));
    assert!(events(&daemon).await.is_empty());
    assert_eq!(send(&daemon, &right, BODY).await.status, 202, "the refused attempts had no effect");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_retry_is_a_duplicate_whatever_time_or_body_it_has() {
    let daemon = start().await;
    let first = Attempt { late: 200, ..Attempt::of("msg_1") }.send(&daemon).await;
    assert_eq!(first.json()["duplicates"], 0, "{}", first.text());
    let again = Attempt::of("msg_1").send(&daemon).await;
    let other = Attempt { body: b"{\"type\":\"build.failed\"}", ..Attempt::of("msg_1") }.send(&daemon).await;
    for reply in [&again, &other] {
        assert_eq!((reply.status, &reply.json()["duplicates"]), (202, &Value::from(1)), "{}", reply.text());
        assert_eq!(reply.json()["events"], first.json()["events"]);
    }
    let stored = events(&daemon).await;
    assert_eq!((stored.len(), &stored[0]["redelivered"]["count"]), (1, &Value::from(2)));
    assert_eq!(stored[0]["type"], "build.finished", "the first body stands");
    daemon.until("/v1/runs", |page| page["items"][0]["state"] == "completed").await;
    assert_eq!(daemon.count("/v1/runs").await, 1);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn what_is_too_large_or_elsewhere_is_refused_whole() {
    let daemon = start().await;
    let large = format!("{{\"type\":\"a.b\",\"x\":\"{}\"}}", "x".repeat(1 << 20)).into_bytes();
    let reply = Attempt { body: &large, ..Attempt::of("msg_1") }.send(&daemon).await;
    assert_eq!((reply.status, reply.code().as_str()), (413, "payload_too_large"));
    let headers = Attempt::of("msg_1").headers(&daemon);
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let nowhere = Hook::new(&daemon).post("/hooks/main/nobody", &headers, BODY).await;
    let below = Hook::new(&daemon).post("/hooks/main/sender/more", &headers, BODY).await;
    assert_eq!((nowhere.status, nowhere.code().as_str()), (404, "not_found"));
    assert_eq!((below.status, &below.body), (404, &nowhere.body));
    assert!(events(&daemon).await.is_empty());
    daemon.running.stop().await.unwrap();
}
