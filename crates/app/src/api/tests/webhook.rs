//! The webhook listener, with real signatures over real bodies.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::{CONFIG, HOOK_SECRET, JOB_SECRET, Reply, TestDaemon, request, send};

/// HMAC-SHA-256, written from its definition, so that the tests do not share the code they check.
pub(super) fn mac(secret: &[u8], body: &[u8]) -> Vec<u8> {
    use sha2::{Digest as _, Sha256};
    let mut key = [0_u8; 64];
    key[..secret.len()].copy_from_slice(secret);
    let pad = |byte: u8| key.map(|key| key ^ byte);
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(body).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().to_vec()
}

/// The same in hex.
fn hmac(secret: &str, body: &[u8]) -> String {
    mac(secret.as_bytes(), body).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

pub(super) struct Hook<'a> {
    daemon: &'a TestDaemon,
    host: String,
}

impl<'a> Hook<'a> {
    pub(super) fn new(daemon: &'a TestDaemon) -> Self {
        Self { daemon, host: daemon.hooks().to_string() }
    }

    pub(super) async fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let all = [&[("Host", self.host.as_str())], headers].concat();
        send(self.daemon.hooks(), &request("POST", path, &all, body)).await
    }

    async fn signed(&self, delivery: &str, body: &[u8]) -> Reply {
        let signature = format!("sha256={}", hmac(HOOK_SECRET, body));
        self.post("/hooks/main/builds", &[("X-Delivery", delivery), ("X-Signature", &signature)], body).await
    }

    async fn github(&self, delivery: &str, signature: Option<&str>, body: &[u8]) -> Reply {
        let mut headers = vec![
            ("X-GitHub-Delivery", delivery),
            ("X-GitHub-Event", "issue_comment"),
            ("Content-Type", "application/json"),
        ];
        headers.extend(signature.map(|signature| ("X-Hub-Signature-256", signature)));
        self.post("/github/main/repository", &headers, body).await
    }
}

pub(super) async fn events(daemon: &TestDaemon) -> Vec<Value> {
    let page = daemon.get_json("/v1/events?limit=200").await;
    let events = page["items"].as_array().unwrap().iter();
    events.filter(|event| event["source"] != "core").cloned().collect()
}

#[tokio::test]
async fn a_signed_cloud_event_is_read_as_the_guide_says() {
    let verify = "verify = { hmac = { header = \"X-Signature\", secret = \"hook\", prefix = \"sha256=\" } }";
    let entry = |name: &str, read: &str| {
        format!(
            "[[scopes.extensions]]\nname = \"{name}\"\ntype = \"webhook\"\nsecret_names = [\"hook\"]\n\
             config = {{ namespace = \"hook/{name}\", {read}, {verify} }}\n\n[[scopes]]\nname = \"team/off\""
        )
    };
    let fields =
        "type = { field = \"/type\" }, delivery_id = { field = \"/id\" }, key = { field = \"/subject\" }";
    let headers = "type = { header = \"ce-type\" }, delivery_id = { header = \"ce-id\" }";
    let off = "[[scopes]]\nname = \"team/off\"";
    let config = CONFIG.replace(off, &entry("structured", fields)).replace(off, &entry("binary", headers));
    let daemon = TestDaemon::start_with(&config).await;
    let hook = Hook::new(&daemon);
    let whole =
        br#"{"specversion":"1.0","id":"42","source":"/ci","type":"build.over","subject":"builds/42"}"#;
    let data = br#"{"state":"green"}"#;
    for duplicates in [0, 1] {
        let signature = format!("sha256={}", hmac(HOOK_SECRET, whole));
        let reply = hook.post("/hooks/main/structured", &[("X-Signature", &signature)], whole).await;
        assert_eq!(
            (reply.status, &reply.json()["duplicates"]),
            (202, &json!(duplicates)),
            "{}",
            reply.text()
        );
        let signature = format!("sha256={}", hmac(HOOK_SECRET, data));
        let headers = [("X-Signature", signature.as_str()), ("ce-id", "42"), ("ce-type", "build.over")];
        let reply = hook.post("/hooks/main/binary", &headers, data).await;
        assert_eq!(
            (reply.status, &reply.json()["duplicates"]),
            (202, &json!(duplicates)),
            "{}",
            reply.text()
        );
    }
    let events = events(&daemon).await;
    let seen: Vec<_> = events.iter().map(|event| (&event["source"], &event["type"], &event["key"])).collect();
    let key = json!({ "source": "hook/structured", "external_id": "builds/42" });
    assert_eq!(
        seen,
        [
            (&json!("hook/binary"), &json!("build.over"), &Value::Null),
            (&json!("hook/structured"), &json!("build.over"), &key),
        ]
    );
    let other = br#"{"id":"43","type":"com.example.SomeEvent"}"#;
    let signature = format!("sha256={}", hmac(HOOK_SECRET, other));
    let reply = hook.post("/hooks/main/structured", &[("X-Signature", &signature)], other).await;
    assert_eq!(reply.status, 202, "{}", reply.text());
    assert_eq!(self::events(&daemon).await[0]["type"], "com.example.someevent");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn raw_bytes_are_what_is_signed() {
    let daemon = TestDaemon::start().await;
    let hook = Hook::new(&daemon);
    let bodies: [&[u8]; 3] = [
        "{\"action\":\"created\",\"comment\":{\"body\":\"ok 😊 ç\"}}".as_bytes(),
        br#"{"action":"created","comment":{"body":"ok \ud83d\ude0a \u00e7"}}"#,
        b"{ \"b\":1,  \"a\":1.0, \"a\":2 }\n",
    ];
    for (number, body) in bodies.into_iter().enumerate() {
        let reply = hook.signed(&format!("hook-{number}"), body).await;
        assert_eq!(reply.status, 202, "{}", reply.text());
        assert_eq!(reply.json()["events"].as_array().unwrap().len(), 1);
        let signature = format!("sha256={}", hmac(HOOK_SECRET, body));
        let reply = hook.github(&format!("gh-{number}"), Some(&signature), body).await;
        assert_eq!(reply.status, 202, "{}", reply.text());
    }
    let not_utf8 = hook.signed("hook-bad", b"{\"a\":\"\xff\"}").await;
    assert_eq!((not_utf8.status, not_utf8.code().as_str()), (400, "bad_request"));
    assert_eq!(events(&daemon).await.len(), 6);

    let mut changed = bodies[2].to_vec();
    let signature = format!("sha256={}", hmac(HOOK_SECRET, &changed));
    changed[2] ^= 1;
    let reply = hook.github("gh-changed", Some(&signature), &changed).await;
    assert_eq!((reply.status, reply.code().as_str()), (401, "unauthorized"));
    assert_eq!(events(&daemon).await.len(), 6, "nothing was stored");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn without_a_right_signature_nothing_is_stored() {
    let daemon = TestDaemon::start().await;
    let hook = Hook::new(&daemon);
    let body = b"{}";
    let sha1 = format!("sha1={}", hmac(HOOK_SECRET, body));
    let empty_key = format!("sha256={}", hmac("", body));
    for signature in [None, Some(""), Some("sha256="), Some(sha1.as_str()), Some(empty_key.as_str())] {
        let reply = hook.github("gh-1", signature, body).await;
        assert_eq!((reply.status, reply.code().as_str()), (401, "unauthorized"), "{signature:?}");
    }
    let mute = hook.post("/hooks/main/mute/anything", &[], body).await;
    assert_eq!((mute.status, mute.code().as_str()), (503, "entry_unavailable"));
    assert!(!mute.text().contains("NOT_THERE"), "{}", mute.text());
    assert!(events(&daemon).await.is_empty());
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_wrong_secret_looks_like_no_entry() {
    let daemon = TestDaemon::start().await;
    let hook = Hook::new(&daemon);
    let right = hook.post(&format!("/hooks/main/job/{JOB_SECRET}"), &[], b"{}").await;
    assert_eq!(right.status, 202, "{}", right.text());
    let nowhere = hook.post("/hooks/main/nowhere", &[], b"{}").await;
    assert_eq!(nowhere.status, 404);
    for path in [
        "/hooks/main/job/wrong",
        "/hooks/main/job",
        "/hooks/main/job/",
        "/hooks/moon/job",
        "/hooks/team/off/builds/hook-s3cret",
        "/github/main/builds",
        "/github/main/repository/more",
        "/v1/events",
        "/healthz",
        "/",
        "/%ff",
    ] {
        let reply = hook
            .post(path, &[("X-Hub-Signature-256", &format!("sha256={}", hmac("no", b"{}")))], b"{}")
            .await;
        assert_eq!((reply.status, &reply.body), (404, &nowhere.body), "{path}");
    }
    let get = send(daemon.hooks(), &request("GET", "/hooks/main/job", &[("Host", &hook.host)], b"")).await;
    assert_eq!((get.status, get.code().as_str()), (405, "method_not_allowed"));
    assert_eq!(events(&daemon).await.len(), 1);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn only_known_hosts_are_served() {
    let daemon = TestDaemon::start().await;
    let path = format!("/hooks/main/job/{JOB_SECRET}");
    for (host, status) in [("evil.test", 403), ("hooks.example.com", 202), ("hooks.example.com:443", 202)] {
        let reply = send(daemon.hooks(), &request("POST", &path, &[("Host", host)], b"{}")).await;
        assert_eq!(reply.status, status, "{host}");
    }
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn twenty_equal_deliveries_at_once_are_one_event_and_one_run() {
    let daemon = std::sync::Arc::new(TestDaemon::start().await);
    let mut posts = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let daemon = std::sync::Arc::clone(&daemon);
        posts.spawn(async move { Hook::new(&daemon).signed("same", b"{\"n\":1}").await });
    }
    let replies = posts.join_all().await;
    assert!(replies.iter().all(|reply| reply.status == 202));
    let duplicates: u64 = replies.iter().map(|reply| reply.json()["duplicates"].as_u64().unwrap()).sum();
    assert_eq!(duplicates, 19);
    let ids: std::collections::BTreeSet<String> =
        replies.iter().map(|reply| reply.json()["events"][0].to_string()).collect();
    assert_eq!(ids.len(), 1);
    let runs = daemon.until("/v1/runs", |page| page["items"][0]["state"] == "completed").await;
    assert_eq!(runs["items"].as_array().unwrap().len(), 1);
    let path = format!("/hooks/main/job/{JOB_SECRET}");
    let other = Hook::new(&daemon).post(&path, &[("Idempotency-Key", "same")], b"{}").await;
    assert_eq!(other.json()["duplicates"], 0, "the same id at another entry is another delivery");
}

#[tokio::test]
async fn bodies_have_the_bound_of_their_entry() {
    let daemon = TestDaemon::start().await;
    let hook = Hook::new(&daemon);
    let path = format!("/hooks/main/job/{JOB_SECRET}");
    let body = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2)).into_bytes();
    let largest = hook.post(&path, &[], &body(1 << 20)).await;
    assert_eq!(largest.status, 202, "{}", largest.text());
    let larger = hook.post(&path, &[], &body((1 << 20) + 1)).await;
    assert_eq!((larger.status, larger.code().as_str()), (413, "payload_too_large"));
    let mut chunked =
        format!("POST {path} HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\n\r\n", hook.host)
            .into_bytes();
    for _ in 0..17 {
        chunked.extend_from_slice(format!("{:x}\r\n", 64 << 10).as_bytes());
        chunked.extend_from_slice(&vec![b' '; 64 << 10]);
        chunked.extend_from_slice(b"\r\n");
    }
    assert_eq!(send(daemon.hooks(), &chunked).await.code(), "payload_too_large");

    let commits: Vec<Value> =
        (0..900).map(|number| json!({ "id": number, "message": "x".repeat(3300) })).collect();
    let push =
        json!({ "ref": "refs/heads/main", "repository": { "full_name": "acme/site" }, "commits": commits });
    let push = push.to_string().into_bytes();
    assert!(push.len() > 2_900_000);
    let signature = format!("sha256={}", hmac(HOOK_SECRET, &push));
    let reply = hook.github("gh-push", Some(&signature), &push).await;
    assert_eq!(reply.status, 202, "{}", reply.text());
    let head = format!(
        "POST /github/main/repository HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n",
        hook.host,
        (25 << 20) + 1
    );
    assert_eq!(send(daemon.hooks(), head.as_bytes()).await.code(), "payload_too_large");
    assert_eq!(events(&daemon).await.len(), 2);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_202_is_durable() {
    let daemon = TestDaemon::start().await;
    for number in 0..20 {
        assert_eq!(Hook::new(&daemon).signed(&format!("d-{number}"), b"{}").await.status, 202);
    }
    // A copy of the files at this moment is what a crash would leave.
    let crashed = tempfile::tempdir().unwrap();
    std::fs::create_dir(crashed.path().join("home")).unwrap();
    for entry in std::fs::read_dir(daemon.home().root()).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), crashed.path().join("home").join(entry.file_name())).unwrap();
        }
    }
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(crashed.path().join("home"), mode).unwrap();
    daemon.running.stop().await.unwrap();
    let after = TestDaemon::start_in(crashed).await;
    let from_hook = events(&after).await.into_iter().filter(|event| event["source"] == "hook/builds").count();
    assert_eq!(from_hook, 20);
    after.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_slow_sender_holds_up_nobody() {
    let daemon = TestDaemon::start().await;
    let hook = Hook::new(&daemon);
    let mut slow = TcpStream::connect(daemon.hooks()).await.unwrap();
    let head =
        format!("POST /hooks/main/builds HTTP/1.1\r\nHost: {}\r\nContent-Length: 100\r\n\r\n", hook.host);
    slow.write_all(head.as_bytes()).await.unwrap();
    slow.write_all(b"{").await.unwrap();
    assert_eq!(hook.signed("fast", b"{}").await.status, 202);
    drop(slow);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_fork_is_recorded_and_starts_nothing() {
    let daemon = TestDaemon::start().await;
    let body = br#"{"pull_request":{"number":7,"head":{"repo":{"id":2}},"base":{"repo":{"id":1}}},"repository":{"id":1}}"#;
    let signature = format!("sha256={}", hmac(HOOK_SECRET, body));
    let headers = [
        ("X-GitHub-Delivery", "gh-fork"),
        ("X-GitHub-Event", "pull_request"),
        ("Content-Type", "application/json"),
        ("X-Hub-Signature-256", signature.as_str()),
    ];
    let reply = Hook::new(&daemon).post("/github/main/repository", &headers, body).await;
    assert_eq!(reply.status, 202, "{}", reply.text());
    let event = &events(&daemon).await[0];
    assert_eq!(
        (event["checkpoint"]["outcome"].as_str(), event["checkpoint"]["code"].as_str()),
        (Some("dropped"), Some("fork"))
    );
    assert_eq!(daemon.count("/v1/runs").await, 0);
    daemon.running.stop().await.unwrap();
}
