//! Deliveries as other programs send them: signed, to the listener for webhooks.

use std::io;
use std::net::SocketAddr;

use serde_json::json;

use super::http::{self, Endpoint, Request, Response};
use super::signature::sign;

/// What signs; the daemon finds it in its environment.
pub(super) const SECRET: &str = "a secret of the drills";

/// A delivery to the `webhook` entry, its id in the body.
pub(super) fn send_hook(address: SocketAddr, delivery: &str) -> io::Result<Response> {
    let body = json!({ "id": delivery }).to_string().into_bytes();
    let headers = [("Content-Type", "application/json"), ("X-Signature-256", &sign(SECRET, &body))];
    let request = Request { method: "POST", path: "/hooks/main/hook", headers: &headers, body: &body };
    http::exchange(&Endpoint::Tcp(address), request)
}

/// A delivery to the `github` entry.
pub(super) fn send_github(
    address: SocketAddr,
    event: &str,
    delivery: &str,
    body: &[u8],
    signature: &str,
) -> io::Result<Response> {
    let headers = [
        ("Content-Type", "application/json"),
        ("User-Agent", "GitHub-Hookshot/drill"),
        ("X-GitHub-Event", event),
        ("X-GitHub-Delivery", delivery),
        ("X-Hub-Signature-256", signature),
    ];
    let request = Request { method: "POST", path: "/github/main/repository", headers: &headers, body };
    http::exchange(&Endpoint::Tcp(address), request)
}
