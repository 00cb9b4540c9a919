//! The toolbelt's socket, asked with real requests: whom it lets in, and what it opens to whom.

use serde_json::{Value, json};
use tokio::net::UnixStream;

use super::super::route::{Operation, ROUTES};
use super::{Reply, TestDaemon, exchange, request};

/// A run that goes on until it is stopped, with its Work and its token.
async fn running(daemon: &TestDaemon, delivery: &str) -> (String, String, String) {
    let event = json!({ "scope": "main", "type": "hang.please", "delivery_id": delivery });
    let event = daemon.emit(&event).await["event"].as_str().unwrap().to_owned();
    let runs = |list: &Value| {
        let items = list["items"].as_array().cloned().unwrap_or_default();
        items.into_iter().find(|run| run["trigger"]["event"] == event && run["state"] == "running")
    };
    let list = daemon.until("/v1/runs", |list| runs(list).is_some()).await;
    let run = runs(&list).unwrap();
    let id = run["id"].as_str().unwrap().to_owned();
    let token = daemon.fake.tokens.lock().unwrap()[&id].clone();
    (id, run["work"].as_str().unwrap().to_owned(), token)
}

impl TestDaemon {
    /// A request on the toolbelt's socket, with this `Authorization`.
    async fn knock(&self, method: &str, path: &str, authorization: Option<&str>, body: &Value) -> Reply {
        let mut headers = vec![("Host", "localhost"), ("Content-Type", "application/json")];
        headers.extend(authorization.map(|value| ("Authorization", value)));
        let body = if method == "GET" { String::new() } else { body.to_string() };
        let stream = UnixStream::connect(self.home().toolbelt_socket()).await.unwrap();
        exchange(stream, &request(method, path, &headers, body.as_bytes())).await
    }

    async fn call(&self, token: &str, path: &str, body: &Value) -> Reply {
        self.knock("POST", path, Some(&format!("Bearer {token}")), body).await
    }
}

#[tokio::test]
async fn a_run_s_token_opens_nothing_of_the_interface_and_the_operator_s_opens_no_call() {
    let daemon = TestDaemon::start().await;
    let (run, work, token) = running(&daemon, "d-1").await;
    let bearer = format!("Bearer {token}");
    let host = daemon.api().to_string();
    for route in ROUTES.iter().filter(|route| !matches!(route.operation, Operation::Health)) {
        let id = if route.path.contains("/work/") { &work } else { &run };
        let path =
            route.path.replace("{id}", id).replace("{*path}", "out/report.html").replace("{name}", "main");
        for place in ["localhost", host.as_str()] {
            let headers =
                [("Host", place), ("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
            let bytes = request(route.method.as_str(), &path, &headers, b"{}");
            let reply = if place == host {
                super::send(daemon.api(), &bytes).await
            } else {
                exchange(UnixStream::connect(daemon.home().socket()).await.unwrap(), &bytes).await
            };
            assert_eq!((reply.status, reply.code().as_str()), (401, "unauthorized"), "{path} at {place}");
        }
    }
    let operator = format!("Bearer {}", daemon.token);
    let emission = json!({ "call": "c", "type": "report.made" });
    let forged = format!("Bearer {token}x");
    for shown in [None, Some("Bearer x"), Some(operator.as_str()), Some(forged.as_str())] {
        for (method, path) in [("GET", "/v1/context"), ("POST", "/v1/emit"), ("POST", "/v1/nowhere")] {
            let reply = daemon.knock(method, path, shown, &emission).await;
            assert_eq!((reply.status, reply.code().as_str()), (401, "unauthorized"), "{path}");
        }
    }
    assert_eq!(daemon.count("/v1/events?type=report.made").await, 0);
    let nowhere = daemon.call(&token, "/v1/status", &json!({})).await;
    assert_eq!(nowhere.status, 404, "the door has none of the interface's paths");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_token_is_its_own_run_s_and_ends_with_it() {
    let daemon = TestDaemon::start().await;
    let (run, work, token) = running(&daemon, "d-1").await;
    let (other, _other_work, others) = running(&daemon, "d-2").await;
    let context = daemon.knock("GET", "/v1/context", Some(&format!("Bearer {token}")), &Value::Null).await;
    assert_eq!((context.status, &context.json()["run"]), (200, &json!(run)));
    let as_other = token.replacen(&run, &other, 1);
    assert_ne!(as_other, token);
    let progress = json!({ "call": "p", "text": "half" });
    assert_eq!(daemon.call(&as_other, "/v1/progress", &progress).await.code(), "unauthorized");
    assert_eq!(daemon.call(&others, "/v1/progress", &progress).await.status, 201);
    assert_eq!(daemon.post(&format!("/v1/work/{work}/cancel"), &json!({})).await.status, 200);
    let over = daemon.call(&token, "/v1/progress", &progress).await;
    assert_eq!((over.status, over.code().as_str()), (403, "run_ended"));
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_call_answers_the_same_again_and_what_is_wrong_with_it_is_said() {
    let daemon = TestDaemon::start().await;
    let (_run, _work, token) = running(&daemon, "d-1").await;
    let emission = json!({ "call": "c", "type": "report.made", "payload": { "n": 1 } });
    let first = daemon.call(&token, "/v1/emit", &emission).await;
    let again = daemon.call(&token, "/v1/emit", &emission).await;
    assert_eq!((first.status, again.status, first.json()), (201, 200, again.json()));
    assert_eq!(daemon.count("/v1/events?type=report.made").await, 1);
    let large = json!({ "call": "l", "type": "report.made", "payload": "x".repeat(1 << 20) });
    for (path, body, status, code) in [
        ("/v1/emit", json!({ "call": "c", "type": "report.made" }), 409, "call_reused"),
        ("/v1/emit", json!({ "call": "d", "type": "core.retry.due" }), 403, "reserved_type"),
        ("/v1/emit", json!({ "call": "d", "type": "a.b", "scope": "team/off" }), 400, "bad_request"),
        ("/v1/emit", large, 413, "payload_too_large"),
        (
            "/v1/wait",
            json!({ "call": "d", "keys": [{ "source": "a", "external_id": "b" }] }),
            422,
            "invalid_wait",
        ),
        ("/v1/child", json!({ "call": "d", "binding": "nobody" }), 404, "unknown_binding"),
        ("/v1/child", json!({ "call": "d", "scope": "team/off" }), 403, "scope_not_writable"),
        ("/v1/usage", json!({ "call": "d", "usage": { "usd": -1 } }), 400, "bad_request"),
        ("/v1/usage", json!({ "call": "d", "usage": { "turns": 1 } }), 400, "bad_request"),
        ("/v1/progress", json!({ "call": "", "text": "half" }), 400, "bad_request"),
        ("/v1/input/ack", json!({ "call": "d", "event": first.json()["event"] }), 409, "not_injected"),
    ] {
        let reply = daemon.call(&token, path, &body).await;
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{path}: {}", reply.text());
    }
    assert_eq!(daemon.count("/v1/events?type=report.made").await, 1);
    daemon.running.stop().await.unwrap();
}
