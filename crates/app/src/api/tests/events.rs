//! Accepting Events, listing them, and what they would do.

use serde_json::{Value, json};

use super::TestDaemon;

fn hello(more: &Value) -> Value {
    let mut body = json!({ "scope": "main", "type": "say.hello" });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

#[tokio::test]
async fn an_event_is_durable_when_it_is_answered_and_keeps_its_payload_as_written() {
    let daemon = TestDaemon::start().await;
    let written =
        br#"{"scope":"main","type":"say.hello","payload":{ "b":1, "a":1.0, "n":12345678901234567890123 }}"#;
    let reply = daemon.unix("POST", "/v1/events", &[], written).await;
    assert_eq!(reply.status, 202, "{}", reply.text());
    let id = reply.json()["event"].as_str().unwrap().to_owned();
    let daemon = daemon.restart().await;
    let text = daemon.get(&format!("/v1/events/{id}")).await.text();
    assert!(text.contains(r#""payload":{ "b":1, "a":1.0, "n":12345678901234567890123 }"#), "{text}");
    let event: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((event["source"].as_str(), event["depth"].as_i64()), (Some("core.manual"), Some(0)));
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn twenty_equal_posts_at_once_are_one_event() {
    let daemon = std::sync::Arc::new(TestDaemon::start().await);
    let mut posts = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let daemon = std::sync::Arc::clone(&daemon);
        let body = hello(&json!({ "type": "build.finished" })).to_string();
        posts.spawn(async move {
            daemon.unix("POST", "/v1/events", &[("Idempotency-Key", "once")], body.as_bytes()).await
        });
    }
    let replies = posts.join_all().await;
    let new = replies.iter().filter(|reply| reply.status == 202).count();
    let again = replies.iter().filter(|reply| reply.status == 200).count();
    assert_eq!((new, again), (1, 19));
    let ids: std::collections::BTreeSet<String> =
        replies.iter().map(|reply| reply.json()["event"].to_string()).collect();
    assert_eq!(ids.len(), 1);
    let runs = daemon.until("/v1/runs", |page| page["items"][0]["state"] == "completed").await;
    assert_eq!(runs["items"].as_array().unwrap().len(), 1);
    let event = daemon.get_json("/v1/events?type=build.finished").await;
    assert_eq!(event["items"][0]["redelivered"]["count"], 19);
    assert_eq!(event["items"][0]["delivery_id"], "once");
}

#[tokio::test]
async fn the_bodys_delivery_id_goes_before_the_header_and_without_either_each_is_new() {
    let daemon = TestDaemon::start().await;
    let body = hello(&json!({ "delivery_id": "mine" })).to_string();
    let reply = daemon.unix("POST", "/v1/events", &[("Idempotency-Key", "header")], body.as_bytes()).await;
    let event = daemon.get_json(&format!("/v1/events/{}", reply.json()["event"].as_str().unwrap())).await;
    assert_eq!(event["delivery_id"], "mine");
    let (one, other) = (daemon.emit(&hello(&json!({}))).await, daemon.emit(&hello(&json!({}))).await);
    assert_ne!(one["event"], other["event"]);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn refusals_have_codes_and_store_nothing() {
    let daemon = TestDaemon::start().await;
    let cases = [
        (hello(&json!({ "type": "core.retry.due" })), 403, "reserved_type"),
        (hello(&json!({ "scope": "moon" })), 404, "unknown_scope"),
        (hello(&json!({ "scope": "Not A Name" })), 400, "bad_request"),
        (hello(&json!({ "work": "work_7zzzzzzzzzzzz" })), 404, "not_found"),
        (hello(&json!({ "sope": "S3CRET" })), 400, "bad_request"),
        (hello(&json!({ "occurred_at": "S3CRET" })), 400, "bad_request"),
        (hello(&json!({ "source": "hook/builds" })), 400, "bad_request"),
        (hello(&json!({ "payload": "x".repeat(1 << 20) })), 413, "payload_too_large"),
        (json!([]), 400, "bad_request"),
    ];
    for (body, status, code) in cases {
        let reply = daemon.post("/v1/events", &body).await;
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{}", reply.text());
        let problem = reply.json();
        assert!(problem["type"].as_str().unwrap().ends_with(&format!("/{code}.md")));
        assert!(
            !problem["title"].as_str().unwrap().is_empty() && !problem["detail"].as_str().unwrap().is_empty()
        );
        assert!(!reply.text().contains("S3CRET"), "{}", reply.text());
    }
    let nested =
        format!(r#"{{"scope":"main","type":"a.b","payload":{}1{}}}"#, "[".repeat(121), "]".repeat(121));
    for raw in [nested.as_bytes(), b"{", b"\xff", b""] {
        let reply = daemon.unix("POST", "/v1/events", &[], raw).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"));
    }
    assert_eq!(daemon.count("/v1/events").await, 0);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn lists_page_by_cursor_without_a_row_twice_or_none() {
    let daemon = TestDaemon::start().await;
    let mut sent = Vec::new();
    for number in 0..7 {
        let accepted = daemon.emit(&hello(&json!({ "payload": number }))).await;
        sent.push(accepted["event"].as_str().unwrap().to_owned());
    }
    sent.reverse();
    let mut seen = Vec::new();
    let mut path = "/v1/events?limit=3&type=say.hello".to_owned();
    loop {
        let page = daemon.get_json(&path).await;
        seen.extend(
            page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()),
        );
        assert!(page["items"][0].get("payload").is_none(), "lists carry no payloads");
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/events?limit=3&type=say.hello&cursor={next}");
    }
    assert_eq!(seen, sent);
    for wrong in
        ["limit=0", "limit=201", "cursor=moon", "cursor=r1", "outcome=moon", "key_source=a", "unknown=1"]
    {
        let reply = daemon.get(&format!("/v1/events?{wrong}")).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"), "{wrong}");
    }
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn filters_narrow_and_ids_may_be_shortened() {
    let daemon = TestDaemon::start().await;
    let key = json!({ "source": "tickets", "external_id": "T-1" });
    let keyed = daemon.emit(&hello(&json!({ "key": key }))).await;
    daemon.emit(&hello(&json!({ "type": "nobody.cares" }))).await;
    daemon.until("/v1/events?outcome=routed", |page| page["items"].as_array().unwrap().len() == 1).await;
    daemon.until("/v1/runs", |page| page["items"][0]["state"] == "completed").await;
    let by_key = "key_source=tickets&key_external_id=T-1";
    assert_eq!(daemon.get_json(&format!("/v1/events?{by_key}")).await["items"][0]["id"], keyed["event"]);
    assert_eq!(daemon.count("/v1/events?outcome=unmatched&type=nobody.cares").await, 1);
    assert_eq!(daemon.count("/v1/events?source=hook/builds").await, 0);
    assert_eq!(daemon.count("/v1/events?scope=team/off").await, 0);
    let works = daemon.get_json(&format!("/v1/work?{by_key}")).await;
    let work = works["items"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(works["items"][0]["keys"][0]["external_id"], "T-1");
    assert_eq!(daemon.count(&format!("/v1/runs?{by_key}")).await, 1);
    assert_eq!(daemon.count("/v1/runs?key_source=tickets&key_external_id=T-2").await, 0);
    assert_eq!(daemon.count(&format!("/v1/runs?work={work}&state=completed&work_kind=manual.work")).await, 1);
    assert_eq!(daemon.count("/v1/runs?state=failed").await, 0);

    let short = &work[..work.len() - 1];
    let shortened = daemon.get(&format!("/v1/work/{short}")).await;
    assert_eq!(shortened.status, 200, "{}", shortened.text());
    let several = daemon.get(&format!("/v1/events/{}", &keyed["event"].as_str().unwrap()[..4])).await;
    assert_eq!((several.status, several.code().as_str()), (409, "ambiguous_id"));
    assert!(several.json()["candidates"].as_array().unwrap().len() >= 2);
    for nothing in ["/v1/events/ev_7zzzz", "/v1/events/moon", "/v1/work/ev_0", "/v1/runs/!"] {
        let reply = daemon.get(nothing).await;
        assert_eq!((reply.status, reply.code().as_str()), (404, "not_found"), "{nothing}");
    }
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn explain_says_what_would_happen_and_does_nothing() {
    let daemon = TestDaemon::start().await;
    let explain = async |body: Value| daemon.post("/v1/events/explain", &body).await;
    let matched = explain(json!({ "scope": "main", "type": "build.finished" })).await.json();
    assert_eq!((matched["outcome"].as_str(), matched["route"].as_str()), (Some("routed"), Some("built")));
    assert_eq!((matched["creates"].as_bool(), matched["work"].as_str()), (Some(true), None));
    assert_eq!(matched["asked"].as_array().unwrap().len(), 2);
    let unmatched = explain(json!({ "scope": "main", "type": "a.b", "source": "hook/x" })).await.json();
    assert_eq!(unmatched["outcome"], "unmatched");
    let held = explain(json!({ "scope": "team/off", "type": "a.b" })).await.json();
    assert_eq!((held["outcome"].as_str(), held["code"].as_str()), (Some("held"), Some("scope_disabled")));
    let proposed = r#"
        [[scopes]]
        name = "new"
        [[scopes.bindings]]
        name = "b"
        executor = "fake"
        [[scopes.routes]]
        name = "all"
        handler = "match"
        binding = "b"
        config = { types = ["*"], work = "fresh" }
    "#;
    let would = explain(json!({ "scope": "new", "type": "a.b", "config": proposed })).await.json();
    assert_eq!((would["outcome"].as_str(), would["generation"].is_null()), (Some("routed"), true), "{would}");
    let wrong = explain(json!({ "scope": "new", "type": "a.b", "config": "scopes = 1" })).await;
    assert_eq!((wrong.status, wrong.code().as_str()), (422, "invalid_config"));
    assert_eq!(explain(json!({ "scope": "moon", "type": "a.b" })).await.code(), "unknown_scope");
    assert_eq!(explain(json!({ "type": "a.b" })).await.code(), "bad_request");
    assert_eq!(daemon.count("/v1/events").await, 0);

    let accepted = daemon.emit(&hello(&json!({ "type": "hang.please" }))).await;
    daemon.until("/v1/events?outcome=routed", |page| page["items"].as_array().unwrap().len() == 1).await;
    let again = explain(json!({ "event": accepted["event"] })).await.json();
    assert_eq!(again["outcome"], "routed", "{again}");
    daemon.running.stop().await.unwrap();
}
