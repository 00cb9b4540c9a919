//! The OpenAPI document: it has every route, and every answer is as it says.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::sessions::{Browser, sessions};
use super::{Reply, TestDaemon};
use crate::api::openapi::document;
use crate::api::route::ROUTES;

#[test]
fn the_document_and_the_router_have_the_same_routes() {
    let routed: BTreeSet<(String, String)> = ROUTES
        .iter()
        .map(|route| (route.path.replace("{*", "{"), route.method.as_str().to_ascii_lowercase()))
        .collect();
    assert_eq!(routed.len(), ROUTES.len(), "no route twice");
    let described: BTreeSet<(String, String)> = document()["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(|method| (path.clone(), method.clone()))
        })
        .collect();
    assert_eq!(described, routed);
    let ids: BTreeSet<&str> = document()["paths"]
        .as_object()
        .unwrap()
        .values()
        .flat_map(|methods| methods.as_object().unwrap().values())
        .map(|operation| operation["operationId"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), ROUTES.len(), "each operation has a name of its own");
}

#[test]
fn every_reference_leads_somewhere() {
    fn walk(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").map(|target| target.as_str().unwrap().to_owned()));
                fields.values().for_each(|value| walk(value, found));
            }
            Value::Array(elements) => elements.iter().for_each(|value| walk(value, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut found = Vec::new();
    walk(document(), &mut found);
    assert!(found.len() > 20);
    for target in found {
        let pointer = target.strip_prefix('#').unwrap();
        assert!(document().pointer(pointer).is_some(), "{target}");
    }
}

/// Checks a value against a schema of the document, as far as these schemas go, and stricter in one way: a field
/// that the schema does not name is an error.
fn check(value: &Value, schema: &Value, at: &str) {
    if schema == &json!(true) || schema.as_object().is_some_and(serde_json::Map::is_empty) {
        return;
    }
    if let Some(target) = schema["$ref"].as_str() {
        return check(value, document().pointer(target.strip_prefix('#').unwrap()).unwrap(), at);
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        // An option is a type or null.
        let wanted = choices.iter().find(|choice| (choice["type"] == "null") == value.is_null());
        return check(value, wanted.unwrap_or_else(|| panic!("{at} has none of its types")), at);
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    match &schema["type"] {
        Value::String(wanted) => assert_eq!(wanted, kind, "{at}"),
        Value::Array(wanted) => assert!(wanted.contains(&json!(kind)), "{at} is {kind}, not {wanted:?}"),
        // Whatever JSON it is.
        Value::Null => return,
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => panic!("{at}: a type is a word"),
    }
    if let Value::Array(elements) = value {
        elements
            .iter()
            .enumerate()
            .for_each(|(index, element)| check(element, &schema["items"], &format!("{at}[{index}]")));
    }
    if let Value::Object(fields) = value {
        for name in schema["required"].as_array().into_iter().flatten() {
            assert!(fields.contains_key(name.as_str().unwrap()), "{at} has no {name}");
        }
        for (name, field) in fields {
            let known = schema["properties"]
                .get(name)
                .or_else(|| Some(&schema["additionalProperties"]).filter(|rest| rest.is_object()));
            check(
                field,
                known.unwrap_or_else(|| panic!("{at}.{name} is not in the schema")),
                &format!("{at}.{name}"),
            );
        }
    }
}

/// Checks an answer against what the document says about its path.
pub(super) fn conforms(reply: &Reply, method: &str, path: &str) {
    let responses = &document()["paths"][path][method]["responses"];
    let declared = responses.get(reply.status.to_string()).unwrap_or(&responses["default"]);
    let written = reply.header("content-type").split(';').next().unwrap();
    let content = declared["content"].get(written).unwrap_or_else(|| panic!("{path} answers {written}"));
    if let Some(schema) = content.get("schema") {
        check(&reply.json(), schema, path);
    }
}

/// The id of a session that a browser has opened.
async fn opened(daemon: &TestDaemon) -> String {
    Browser::logged_in(daemon).await;
    sessions(daemon).await[0]["id"].as_str().unwrap().to_owned()
}

/// Asks what an operator does to a Work that has ended, to a scope and to an Event; which of the interface that was.
async fn controls(daemon: &TestDaemon, event: &str, work: &str) -> Vec<(&'static str, &'static str)> {
    let mut seen = Vec::new();
    let reply = daemon.post(&format!("/v1/work/{work}/retry"), &json!({})).await;
    assert_eq!(reply.status, 409, "{}", reply.text());
    conforms(&reply, "post", "/v1/work/{id}/retry");
    seen.push(("post", "/v1/work/{id}/retry"));
    let reply = daemon.post(&format!("/v1/work/{work}/release"), &json!({})).await;
    assert_eq!(reply.status, 409, "{}", reply.text());
    conforms(&reply, "post", "/v1/work/{id}/release");
    seen.push(("post", "/v1/work/{id}/release"));
    for (verb, path) in [("pause", "/v1/scopes/{name}/pause"), ("resume", "/v1/scopes/{name}/resume")] {
        let reply = daemon.post(&format!("/v1/scopes/main/{verb}"), &json!({})).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        conforms(&reply, "post", path);
        seen.push(("post", path));
    }
    let replay = format!("/v1/events/{event}/replay");
    for status in [202, 200] {
        let reply = daemon.post(&replay, &json!({ "delivery_id": "replayed" })).await;
        assert_eq!(reply.status, status, "{}", reply.text());
        conforms(&reply, "post", "/v1/events/{id}/replay");
    }
    seen.push(("post", "/v1/events/{id}/replay"));
    seen
}

/// Gives the run of a Work each order there is.
async fn ordered(daemon: &TestDaemon, work: &str) -> [(&'static str, &'static str); 2] {
    let orders = [("inject", "/v1/work/{id}/inject"), ("interrupt", "/v1/work/{id}/interrupt")];
    for (order, path) in orders {
        let reply = daemon.post(&format!("/v1/work/{work}/{order}"), &json!({})).await;
        assert_eq!(reply.status, 202, "{order}: {}", reply.text());
        conforms(&reply, "post", path);
    }
    orders.map(|(_order, path)| ("post", path))
}

#[tokio::test]
async fn every_answer_of_a_session_is_as_the_document_says() {
    let daemon = TestDaemon::start().await;
    let build = json!({ "scope": "main", "type": "build.finished", "key": { "source": "a", "external_id": "b" }, "payload": { "x": 1 } });
    let emitted = daemon.post("/v1/events", &build).await;
    conforms(&emitted, "post", "/v1/events");
    let event = emitted.json()["event"].as_str().unwrap().to_owned();
    let runs = daemon.until("/v1/runs", |page| page["items"][0]["state"] == "completed").await;
    let run = runs["items"][0]["id"].as_str().unwrap().to_owned();
    let work = runs["items"][0]["work"].as_str().unwrap().to_owned();
    daemon.emit(&json!({ "scope": "team/off", "type": "a.b" })).await;
    daemon.emit(&json!({ "scope": "main", "type": "hang.please" })).await;
    let hanging = daemon.until("/v1/runs?state=running", |page| page["items"][0].is_object()).await;
    let hanging = hanging["items"][0]["work"].as_str().unwrap().to_owned();

    let mut seen = BTreeSet::from([("post", "/v1/events"), ("get", "/v1/stream")]);
    let ids = [("/v1/events/{id}", &event), ("/v1/work/{id}", &work), ("/v1/runs/{id}", &run)];
    for route in
        ROUTES.iter().filter(|route| route.method == hyper::Method::GET && route.path != "/v1/stream")
    {
        let id = ids
            .iter()
            .find(|(template, _id)| route.path.starts_with(template))
            .map_or("", |(_, id)| id.as_str());
        let path = route.path.replace("{id}", id).replace("{*path}", "out/report.html");
        let reply = daemon.get(&path).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        conforms(&reply, "get", &route.path.replace("{*", "{"));
        seen.insert(("get", route.path));
    }
    let explain = daemon.post("/v1/events/explain", &json!({ "event": event })).await;
    conforms(&explain, "post", "/v1/events/explain");
    conforms(&daemon.post("/v1/config/apply", &json!({})).await, "post", "/v1/config/apply");
    seen.extend(ordered(&daemon, &hanging).await);
    let cancel = format!("/v1/work/{hanging}/cancel");
    conforms(&daemon.post(&cancel, &json!({})).await, "post", "/v1/work/{id}/cancel");
    let again = format!("/v1/runs/{run}/again");
    let body = json!({ "delivery_id": "again" });
    for status in [202, 200] {
        let reply = daemon.post(&again, &body).await;
        assert_eq!(reply.status, status, "{}", reply.text());
        conforms(&reply, "post", "/v1/runs/{id}/again");
    }
    seen.insert(("post", "/v1/runs/{id}/again"));
    seen.extend(controls(&daemon, &event, &work).await);
    seen.extend([
        ("post", "/v1/events/explain"),
        ("post", "/v1/config/apply"),
        ("post", "/v1/work/{id}/cancel"),
    ]);
    conforms(&daemon.post("/v1/sessions/codes", &json!({})).await, "post", "/v1/sessions/codes");
    let session = opened(&daemon).await;
    conforms(&daemon.get("/v1/sessions").await, "get", "/v1/sessions");
    let one = format!("/v1/sessions/{session}");
    conforms(&daemon.unix("DELETE", &one, &[], b"").await, "delete", "/v1/sessions/{id}");
    conforms(&daemon.unix("DELETE", "/v1/sessions", &[], b"").await, "delete", "/v1/sessions");
    seen.extend([
        ("post", "/v1/sessions/codes"),
        ("delete", "/v1/sessions/{id}"),
        ("delete", "/v1/sessions"),
    ]);
    assert_eq!(seen.len(), ROUTES.len(), "the session asks everything");

    conforms(&daemon.get("/v1/events/ev_0").await, "get", "/v1/events/{id}");
    conforms(&daemon.post(&cancel, &json!({})).await, "post", "/v1/work/{id}/cancel");
    let bad = daemon.post("/v1/config/apply", &json!({ "config": "moon = 1" })).await;
    conforms(&bad, "post", "/v1/config/apply");
    daemon.running.stop().await.unwrap();
}
