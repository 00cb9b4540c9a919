//! Who is let in, asked with real requests.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{SOON, TestDaemon, request};

fn event() -> Vec<u8> {
    json!({ "scope": "main", "type": "say.hello" }).to_string().into_bytes()
}

#[tokio::test]
async fn nothing_but_healthz_answers_without_a_token() {
    let daemon = TestDaemon::start().await;
    let host = daemon.api().to_string();
    let health = daemon.tcp("GET", "/healthz", &[("Host", &host)], b"").await;
    assert_eq!((health.status, health.text().as_str()), (200, r#"{"ok":true}"#));
    for path in [
        "/v1/status",
        "/v1/events",
        "/v1/stream",
        "/v1/openapi.json",
        "/metrics",
        "/v1/nowhere",
        "/v1/sessions",
        "/v1/doctor",
    ] {
        let wrong = [("Host", host.as_str()), ("Authorization", "Bearer wrong")];
        for headers in [&wrong[..1], &wrong[..]] {
            let reply = daemon.tcp("GET", path, headers, b"").await;
            assert_eq!((reply.status, reply.code().as_str()), (401, "unauthorized"), "{path}");
            assert_eq!(reply.header("www-authenticate"), "Bearer");
        }
    }
    for path in ["/", "/nowhere", "/login"] {
        let reply = daemon.tcp("GET", path, &[("Host", &host)], b"").await;
        assert_eq!((reply.status, reply.code().as_str()), (421, "not_the_page"), "{path}");
    }
    let over_socket = daemon.unix("GET", "/v1/status", &[("Authorization", "Bearer other")], b"").await;
    assert_eq!(over_socket.status, 401, "two tokens are none");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_rebinding_host_is_refused_with_a_valid_token() {
    let daemon = TestDaemon::start().await;
    let port = daemon.api().port();
    let bearer = format!("Bearer {}", daemon.token);
    for host in [
        "evil.test".to_owned(),
        format!("evil.test:{port}"),
        "localhost:1".to_owned(),
        "hooks.example.com".to_owned(),
    ] {
        for path in ["/v1/status", "/healthz"] {
            let reply = daemon.tcp("GET", path, &[("Host", &host), ("Authorization", &bearer)], b"").await;
            assert_eq!((reply.status, reply.code().as_str()), (403, "foreign_host"), "{host}{path}");
        }
    }
    for host in [format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("[::1]:{port}")] {
        let reply =
            daemon.tcp("GET", "/v1/status", &[("Host", &host), ("Authorization", &bearer)], b"").await;
        assert_eq!(reply.status, 200, "{host}");
    }
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_foreign_page_is_refused_with_a_valid_token() {
    let daemon = TestDaemon::start().await;
    let host = format!("localhost:{}", daemon.api().port());
    let bearer = format!("Bearer {}", daemon.token);
    let own = [("Host", host.as_str()), ("Authorization", &bearer), ("Content-Type", "application/json")];
    let foreign = [
        ("Origin", "http://evil.test"),
        ("Origin", "null"),
        ("Origin", "http://localhost:3000"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
    ];
    for header in foreign {
        let headers = [own.as_slice(), &[header]].concat();
        let reply = daemon.tcp("POST", "/v1/events", &headers, &event()).await;
        assert_eq!((reply.status, reply.code().as_str()), (403, "foreign_origin"), "{header:?}");
        assert!(!reply.headers.keys().any(|name| name.starts_with("access-control")));
    }
    let upgrade = [("Origin", "http://evil.test"), ("Upgrade", "websocket")];
    let reply = daemon.tcp("GET", "/v1/stream", &[own.as_slice(), &upgrade].concat(), b"").await;
    assert_eq!(reply.code(), "foreign_origin");
    let preflight =
        [("Host", host.as_str()), ("Origin", "http://evil.test"), ("Access-Control-Request-Method", "POST")];
    let reply = daemon.tcp("OPTIONS", "/v1/events", &preflight, b"").await;
    assert_eq!(reply.status, 403);
    assert_eq!(daemon.count("/v1/events").await, 0, "nothing was stored");

    let same = format!("http://{host}");
    let headers = [own.as_slice(), &[("Origin", same.as_str()), ("Sec-Fetch-Site", "same-origin")]].concat();
    assert_eq!(daemon.tcp("POST", "/v1/events", &headers, &event()).await.status, 202);
    assert_eq!(
        daemon.tcp("POST", "/v1/events", &own, &event()).await.status,
        202,
        "a program sends no Origin"
    );
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_form_cannot_post_and_a_foreign_server_cannot_be_named() {
    let daemon = TestDaemon::start().await;
    let host = format!("localhost:{}", daemon.api().port());
    let bearer = format!("Bearer {}", daemon.token);
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
        let headers = [("Host", host.as_str()), ("Authorization", &bearer), ("Content-Type", kind)];
        for path in ["/v1/events", "/v1/config/apply", "/v1/events/explain"] {
            let reply = daemon.tcp("POST", path, &headers, &event()).await;
            assert_eq!((reply.status, reply.code().as_str()), (415, "unsupported_media_type"), "{path}");
        }
    }
    let reply = daemon.get("/v1/status?server=http://evil.test").await;
    assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"));
    assert!(!reply.text().contains("evil"), "{}", reply.text());
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn every_answer_is_hardened() {
    let daemon = TestDaemon::start().await;
    let host = daemon.api().to_string();
    let replies = [
        daemon.get("/v1/status").await,
        daemon.get("/nowhere").await,
        daemon.tcp("GET", "/v1/status", &[("Host", &host)], b"").await,
        daemon.tcp("GET", "/healthz", &[("Host", "evil.test")], b"").await,
        super::send(daemon.hooks(), &request("POST", "/x", &[("Host", &daemon.hooks().to_string())], b""))
            .await,
    ];
    for reply in replies {
        assert_eq!(reply.header("x-content-type-options"), "nosniff");
        assert_eq!(reply.header("x-frame-options"), "DENY");
        assert!(reply.header("content-security-policy").starts_with("default-src 'self'"));
        assert!(reply.header("content-security-policy").contains("frame-ancestors 'none'"));
        assert!(!reply.headers.keys().any(|name| name.starts_with("access-control")));
    }
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_large_body_is_refused_unread_however_it_is_sent() {
    let daemon = TestDaemon::start().await;
    let host = format!("localhost:{}", daemon.api().port());
    let bearer = format!("Bearer {}", daemon.token);
    let head = |length: &str| {
        format!(
            "POST /v1/events HTTP/1.1\r\nHost: {host}\r\nAuthorization: {bearer}\r\n\
             Content-Type: application/json\r\n{length}\r\n\r\n"
        )
    };
    // Nothing of the body is sent: an answer shows that none was waited for.
    let declared = super::send(daemon.api(), head("Content-Length: 1100000").as_bytes()).await;
    assert_eq!((declared.status, declared.code().as_str()), (413, "payload_too_large"));
    assert_eq!(declared.header("connection"), "close");

    // The last chunk never comes: an answer shows that reading stopped at the bound.
    let mut chunked = head("Transfer-Encoding: chunked").into_bytes();
    for _ in 0..20 {
        chunked.extend_from_slice(format!("{:x}\r\n", 64 << 10).as_bytes());
        chunked.extend_from_slice(&vec![b' '; 64 << 10]);
        chunked.extend_from_slice(b"\r\n");
    }
    let reply = super::send(daemon.api(), &chunked).await;
    assert_eq!((reply.status, reply.code().as_str()), (413, "payload_too_large"));
    assert_eq!(daemon.count("/v1/events").await, 0);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_slow_client_holds_up_nobody_and_the_stop_ends_it() {
    let daemon = TestDaemon::start().await;
    let mut slow = TcpStream::connect(daemon.api()).await.unwrap();
    slow.write_all(b"POST /v1/events HTTP/1.1\r\nHost: loc").await.unwrap();
    assert_eq!(daemon.get("/v1/status").await.status, 200);
    daemon.running.stop().await.unwrap();
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(SOON, slow.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "the connection ended with the daemon");
}
