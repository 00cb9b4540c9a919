//! CloudEvents in both modes, as real requests with the events of the specification's own examples.

use serde_json::{Value, json};

use super::{CONFIG, Reply, TestDaemon};

const STRUCTURED: &str = "application/cloudevents+json; charset=UTF-8";

/// The examples of CloudEvents' JSON format, version 1.0.2, section 3.2. Where the first has "... base64 encoded
/// string ..." there is some base64 here.
const EXAMPLES: [&str; 4] = [
    r#"{
    "specversion" : "1.0",
    "type" : "com.example.someevent",
    "source" : "/mycontext",
    "id" : "A234-1234-1234",
    "time" : "2018-04-05T17:31:00Z",
    "comexampleextension1" : "value",
    "comexampleothervalue" : 5,
    "datacontenttype" : "application/vnd.apache.thrift.binary",
    "data_base64" : "AP/+AQ=="
}"#,
    r#"{
    "specversion" : "1.0",
    "type" : "com.example.someevent",
    "source" : "/mycontext",
    "id" : "B234-1234-1234",
    "time" : "2018-04-05T17:31:00Z",
    "comexampleextension1" : "value",
    "comexampleothervalue" : 5,
    "unsetextension": null,
    "datacontenttype" : "application/xml",
    "data" : "<much wow=\"xml\"/>"
}"#,
    r#"{
    "specversion" : "1.0",
    "type" : "com.example.someevent",
    "source" : "/mycontext",
    "subject": null,
    "id" : "C234-1234-1234",
    "time" : "2018-04-05T17:31:00Z",
    "comexampleextension1" : "value",
    "comexampleothervalue" : 5,
    "datacontenttype" : "application/json",
    "data" : {
        "appinfoA" : "abc",
        "appinfoB" : 123,
        "appinfoC" : true
    }
}"#,
    r#"{
    "specversion" : "1.0",
    "type" : "com.example.someevent",
    "source" : "/mycontext",
    "subject": null,
    "id" : "D234-1234-1234",
    "time" : "2018-04-05T17:31:00Z",
    "comexampleextension1" : "value",
    "comexampleothervalue" : 5,
    "data" : "I'm just a string"
}"#,
];

/// The bodies of the same examples in binary mode, with their media types.
const BODIES: [(&str, &[u8]); 4] = [
    ("application/vnd.apache.thrift.binary", b"\0\xff\xfe\x01"),
    ("application/xml", br#"<much wow="xml"/>"#),
    ("application/json", b"{\n  \"appinfoA\" : \"abc\",\n  \"appinfoB\" : 123,\n  \"appinfoC\" : true\n}\n"),
    ("application/json", br#""I'm just a string""#),
];

/// Sends with the token and nothing else that the test doesn't name.
async fn send(daemon: &TestDaemon, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
    let (host, bearer) = (daemon.api().to_string(), format!("Bearer {}", daemon.token));
    let all = [&[("Host", host.as_str()), ("Authorization", bearer.as_str())], headers].concat();
    daemon.tcp("POST", path, &all, body).await
}

async fn structured(daemon: &TestDaemon, path: &str, body: impl AsRef<[u8]>) -> Reply {
    send(daemon, path, &[("Content-Type", STRUCTURED)], body.as_ref()).await
}

/// An example in binary mode, under an id.
async fn binary(daemon: &TestDaemon, id: &str, (kind, body): (&str, &[u8])) -> Reply {
    let headers = [
        ("ce-specversion", "1.0"),
        ("ce-type", "com.example.someevent"),
        ("ce-source", "/mycontext"),
        ("ce-id", id),
        ("ce-time", "2018-04-05T17:31:00Z"),
        ("ce-comexampleextension1", "value"),
        ("ce-comexampleothervalue", "5"),
        ("Content-Type", kind),
    ];
    send(daemon, "/v1/events?scope=main", &headers, body).await
}

/// A CloudEvent with some members replaced, or left out by `null`.
fn event(with: &Value) -> Vec<u8> {
    let mut event =
        json!({ "specversion": "1.0", "type": "a.b", "source": "/s", "id": "1", "conduitscope": "main" });
    for (name, value) in with.as_object().unwrap() {
        event[name] = value.clone();
    }
    event.to_string().into_bytes()
}

#[track_caller]
fn accepted(reply: &Reply) -> String {
    assert_eq!(reply.status, 202, "{}", reply.text());
    reply.json()["event"].as_str().unwrap().to_owned()
}

#[track_caller]
fn refused(reply: &Reply, status: u16, code: &str) {
    assert_eq!((reply.status, reply.code().as_str()), (status, code), "{}", reply.text());
    assert!(!reply.text().contains("S3CRET"), "{}", reply.text());
}

async fn shown(daemon: &TestDaemon, id: &str) -> Value {
    daemon.get_json(&format!("/v1/events/{id}")).await
}

#[tokio::test]
async fn the_specifications_examples_are_durable_with_the_whole_event_as_payload() {
    let daemon = TestDaemon::start().await;
    let mut ids = Vec::new();
    for example in EXAMPLES {
        ids.push(accepted(&structured(&daemon, "/v1/events?scope=main", example).await));
    }
    let daemon = daemon.restart().await;
    for (id, example) in ids.iter().zip(EXAMPLES) {
        let written: Value = serde_json::from_str(example).unwrap();
        let text = daemon.get(&format!("/v1/events/{id}")).await.text();
        assert!(text.contains(example), "as it was written: {text}");
        let event: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(event["source"], "cloudevents:/mycontext");
        assert_eq!((&event["delivery_id"], &event["type"]), (&written["id"], &written["type"]));
        assert_eq!((&event["scope"], &event["occurred_at"]), (&json!("main"), &written["time"]));
        assert_eq!((&event["key"], &event["depth"]), (&Value::Null, &json!(0)));
    }
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn binary_mode_makes_the_same_payload() {
    let daemon = TestDaemon::start().await;
    for (example, body) in EXAMPLES.iter().zip(BODIES) {
        let mut expected: Value = serde_json::from_str(example).unwrap();
        expected.as_object_mut().unwrap().retain(|_name, value| !value.is_null());
        // A header has no number, and the type that is implied elsewhere is said here.
        expected["comexampleothervalue"] = json!("5");
        expected["datacontenttype"] = json!(body.0);
        let id = accepted(&binary(&daemon, expected["id"].as_str().unwrap(), body).await);
        let event = shown(&daemon, &id).await;
        assert_eq!(event["payload"], expected);
        assert_eq!(
            (&event["source"], &event["delivery_id"]),
            (&json!("cloudevents:/mycontext"), &expected["id"])
        );
        assert_eq!(event["occurred_at"], expected["time"]);
    }
    let json = accepted(&binary(&daemon, "1", ("application/vnd.x+json", b" { \"b\":1.0, \"a\":2 } ")).await);
    let text = daemon.get(&format!("/v1/events/{json}")).await.text();
    assert!(text.contains(r#""data":{ "b":1.0, "a":2 }"#), "as it was written: {text}");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn one_source_and_id_is_one_event_in_either_mode() {
    let daemon = TestDaemon::start().await;
    for (number, (example, body)) in EXAMPLES.iter().zip(BODIES).enumerate() {
        let id = serde_json::from_str::<Value>(example).unwrap()["id"].as_str().unwrap().to_owned();
        let sent = async |is_binary: bool| {
            if is_binary {
                binary(&daemon, &id, body).await
            } else {
                structured(&daemon, "/v1/events?scope=main", example).await
            }
        };
        let new = accepted(&sent(number % 2 == 0).await);
        let again = sent(number % 2 == 1).await;
        assert_eq!((again.status, &again.json()["event"]), (200, &json!(new)), "{}", again.text());
        assert_eq!(again.json()["duplicate"], true);
    }
    assert_eq!(daemon.count("/v1/events").await, EXAMPLES.len());

    let mut new = std::collections::BTreeSet::new();
    for source in ["/s", "/s/", "core.manual", "hook/builds", "https://example.com/a?b=%20#c"] {
        let id = accepted(&structured(&daemon, "/v1/events", event(&json!({ "source": source }))).await);
        assert_eq!(shown(&daemon, &id).await["source"], format!("cloudevents:{source}"));
        new.insert(id);
    }
    let manual = json!({ "scope": "main", "type": "a.b", "delivery_id": "1" });
    new.insert(daemon.emit(&manual).await["event"].as_str().unwrap().to_owned());
    assert_eq!(new.len(), 6, "the id counts within its source");
    let idempotent = [("Content-Type", STRUCTURED), ("Idempotency-Key", "other")];
    let again = send(&daemon, "/v1/events", &idempotent, &event(&json!({}))).await;
    assert_eq!(again.status, 200, "the CloudEvent's id goes before the header: {}", again.text());
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_subject_is_a_key_and_a_type_is_a_type() {
    let daemon = TestDaemon::start().await;
    let with = json!({ "subject": "larger-context", "type": "Microsoft.Storage.BlobCreated" });
    let id = accepted(&structured(&daemon, "/v1/events", event(&with)).await);
    let found = daemon.get_json("/v1/events?key_source=cloudevents:/s&key_external_id=larger-context").await;
    assert_eq!(found["items"][0]["id"], id);
    let event_shown = shown(&daemon, &id).await;
    assert_eq!(event_shown["type"], "microsoft.storage.blobcreated");
    assert_eq!(event_shown["payload"]["type"], "Microsoft.Storage.BlobCreated");

    let built = event(&json!({ "type": "build.finished", "id": "2" }));
    accepted(&structured(&daemon, "/v1/events", built).await);
    let runs = daemon.until("/v1/runs", |page| page["items"][0]["state"] == "completed").await;
    assert_eq!(runs["items"].as_array().unwrap().len(), 1, "it is routed like any other");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn the_scope_is_the_senders_the_addresss_or_the_only_one() {
    let daemon = TestDaemon::start().await;
    let none = json!({ "conduitscope": null });
    refused(&structured(&daemon, "/v1/events", event(&none)).await, 400, "bad_request");
    let off = structured(&daemon, "/v1/events?scope=team/off", event(&none)).await;
    assert_eq!(shown(&daemon, &accepted(&off)).await["scope"], "team/off");
    let agreed = structured(&daemon, "/v1/events?scope=main", event(&json!({ "id": "2" }))).await;
    assert_eq!(shown(&daemon, &accepted(&agreed)).await["scope"], "main");
    for (path, scope, status, code) in [
        ("/v1/events?scope=team/off", json!("main"), 400, "bad_request"),
        ("/v1/events", json!("moon"), 404, "unknown_scope"),
        ("/v1/events?scope=moon", json!(null), 404, "unknown_scope"),
        ("/v1/events", json!("Not A Name"), 400, "bad_request"),
        ("/v1/events", json!(7), 400, "bad_request"),
        ("/v1/events?scop=main", json!("main"), 400, "bad_request"),
    ] {
        let other = event(&json!({ "id": "3", "conduitscope": scope }));
        refused(&structured(&daemon, path, other).await, status, code);
    }
    let plain = daemon.post("/v1/events?scope=main", &json!({ "scope": "main", "type": "a.b" })).await;
    refused(&plain, 400, "bad_request");
    daemon.running.stop().await.unwrap();

    let (only, _rest) = CONFIG.split_once("[[scopes]]\nname = \"team/off\"").unwrap();
    let daemon = TestDaemon::start_with(only).await;
    let id = accepted(&structured(&daemon, "/v1/events", event(&none)).await);
    assert_eq!(shown(&daemon, &id).await["scope"], "main");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn what_is_no_cloud_event_is_refused_and_stores_nothing() {
    let daemon = TestDaemon::start().await;
    let long = "x".repeat(513);
    let cases = [
        (json!({ "specversion": null }), "bad_request"),
        (json!({ "id": null }), "bad_request"),
        (json!({ "source": null }), "bad_request"),
        (json!({ "type": null }), "bad_request"),
        (json!({ "id": "" }), "bad_request"),
        (json!({ "id": 1 }), "bad_request"),
        (json!({ "id": long }), "bad_request"),
        (json!({ "id": "S3CRET\n" }), "bad_request"),
        (json!({ "source": "" }), "bad_request"),
        (json!({ "source": "S3CRET of mine" }), "bad_request"),
        (json!({ "source": "x".repeat(189) }), "bad_request"),
        (json!({ "type": "1st" }), "bad_request"),
        (json!({ "type": "x".repeat(129) }), "bad_request"),
        (json!({ "subject": "" }), "bad_request"),
        (json!({ "subject": ["S3CRET"] }), "bad_request"),
        (json!({ "subject": long }), "bad_request"),
        (json!({ "time": "S3CRET" }), "bad_request"),
        (json!({ "time": 7 }), "bad_request"),
        (json!({ "dataschema": "" }), "bad_request"),
        (json!({ "datacontenttype": 1 }), "bad_request"),
        (json!({ "extension": { "S3CRET": 1 } }), "bad_request"),
        (json!({ "extension": 1.5 }), "bad_request"),
        (json!({ "S3CRET": "upper case" }), "bad_request"),
        (json!({ "data": 1, "data_base64": "" }), "bad_request"),
        (json!({ "data_base64": "S3CRET*" }), "bad_request"),
        (json!({ "data_base64": 1 }), "bad_request"),
        (json!({ "specversion": "0.3" }), "unsupported_specversion"),
        (json!({ "specversion": "1.1" }), "unsupported_specversion"),
    ];
    for (with, code) in cases {
        let reply = structured(&daemon, "/v1/events", event(&with)).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, code), "{with}: {}", reply.text());
        refused(&reply, 400, code);
    }
    for kind in ["core.retry.due", "CORE.turn.ended", "core"] {
        let reply = structured(&daemon, "/v1/events", event(&json!({ "type": kind }))).await;
        refused(&reply, 403, "reserved_type");
    }
    let nested = format!(
        "{{\"specversion\":\"1.0\",\"type\":\"a.b\",\"source\":\"/s\",\"id\":\"1\",\"data\":{}1{}}}",
        "[".repeat(120),
        "]".repeat(120)
    );
    let doubled: [&str; 3] = [
        r#"{"specversion":"1.0","type":"a.b","source":"/s","id":"1","id":"2"}"#,
        r#"{"specversion":"1.0","type":"a.b","source":"/s","id":"1","data":1,"data":2}"#,
        r#"{"specversion":"1.0","type":"a.b","source":"/s","id":"1","\u0069d":"2"}"#,
    ];
    for raw in [nested.as_str(), doubled[0], doubled[1], doubled[2], "[]", "{", "", "\"S3CRET\""] {
        refused(&structured(&daemon, "/v1/events?scope=main", raw).await, 400, "bad_request");
    }
    refused(&structured(&daemon, "/v1/events?scope=main", b"{\"id\":\"\xff\"}").await, 400, "bad_request");
    let large = event(&json!({ "data": "x".repeat(1 << 20) }));
    refused(&structured(&daemon, "/v1/events", large).await, 413, "payload_too_large");
    assert_eq!(daemon.count("/v1/events").await, 0);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn other_forms_of_cloud_events_are_named() {
    let daemon = TestDaemon::start().await;
    let batch = format!("[{}]", EXAMPLES.join(","));
    let typed = async |kind: &str| {
        send(&daemon, "/v1/events?scope=main", &[("Content-Type", kind)], batch.as_bytes()).await
    };
    let reply = typed("application/cloudevents-batch+json; charset=UTF-8").await;
    refused(&reply, 415, "unsupported_media_type");
    assert!(reply.text().contains("send each in a request of its own"), "{}", reply.text());
    for kind in ["application/cloudevents+xml", "application/cloudevents+avro", "application/cloudevents"] {
        refused(&typed(kind).await, 415, "unsupported_media_type");
    }
    refused(&typed("text/plain").await, 415, "unsupported_media_type");
    assert_eq!(daemon.count("/v1/events").await, 0);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn only_who_has_the_token_may_send_one() {
    let daemon = TestDaemon::start().await;
    let host = daemon.api().to_string();
    let body = event(&json!({}));
    let kind = ("Content-Type", STRUCTURED);
    let without = daemon.tcp("POST", "/v1/events", &[("Host", &host), kind], &body).await;
    refused(&without, 401, "unauthorized");
    let foreign = [kind, ("Origin", "https://evil.test")];
    refused(&send(&daemon, "/v1/events", &foreign, &body).await, 403, "foreign_origin");
    assert_eq!(daemon.count("/v1/events").await, 0);
    daemon.running.stop().await.unwrap();
}

/// The least that a CloudEvent in binary mode has, with more headers.
async fn headed(daemon: &TestDaemon, headers: &[(&str, &str)], body: &[u8]) -> Reply {
    let least =
        [("ce-specversion", "1.0"), ("ce-type", "a.b"), ("CE-Source", "/s"), ("ce-conduitscope", "main")];
    send(daemon, "/v1/events", &[&least, headers].concat(), body).await
}

#[tokio::test]
async fn headers_are_decoded_once_as_the_binding_says() {
    let daemon = TestDaemon::start().await;
    let cases: [(&str, &str); 7] = [
        // The example of CloudEvents' HTTP binding, version 1.0.2, section 3.1.3.2, with what it decodes to.
        ("Euro%20%E2%82%AC%20%F0%9F%98%80", "Euro € 😀"),
        ("euro%20%e2%82%ac", "euro €"),
        ("%41 b", "A b"),
        ("%2541", "%41"),
        (r#""a \"quoted\" \\ text""#, r#"a "quoted" \ text"#),
        (r#""quoted%20once""#, "quoted once"),
        ("50%", "50%"),
    ];
    for (number, (written, meant)) in cases.into_iter().enumerate() {
        let id = number.to_string();
        let reply =
            headed(&daemon, &[("ce-id", &id), ("ce-subject", written), ("ce-x1", written)], b"").await;
        let event = shown(&daemon, &accepted(&reply)).await;
        assert_eq!(event["key"], json!({ "source": "cloudevents:/s", "external_id": meant }));
        assert_eq!(event["payload"]["x1"], meant, "an extension is kept");
    }
    for (name, written) in [
        ("ce-subject", "%C0%A0"),
        ("ce-subject", "%ff"),
        ("ce-subject", "a%00b"),
        ("ce-subject", ""),
        ("ce-source", "/s"),
        ("ce-datacontenttype", "text/plain"),
        ("ce-data", "x"),
        ("ce-not-a-name", "x"),
        ("ce-", "x"),
        ("ce-time", "now"),
    ] {
        let reply = headed(&daemon, &[("ce-id", "other"), (name, written)], b"").await;
        refused(&reply, 400, "bad_request");
    }
    refused(&headed(&daemon, &[], b"").await, 400, "bad_request");
    let spaced = [("ce-specversion", "1.0"), ("ce-id", "1"), ("ce-type", "a.b"), ("ce-source", "/a%20b")];
    refused(&send(&daemon, "/v1/events?scope=main", &spaced, b"").await, 400, "bad_request");
    let json = ("Content-Type", "application/json");
    let unversioned = [json, ("ce-id", "1"), ("ce-type", "a.b"), ("ce-source", "/s")];
    let plain = br#"{"scope":"main","type":"a.b"}"#;
    refused(&send(&daemon, "/v1/events?scope=main", &unversioned, plain).await, 400, "bad_request");
    refused(&headed(&daemon, &[json, json, ("ce-id", "x")], b"1").await, 400, "bad_request");
    assert_eq!(daemon.count("/v1/events").await, 7);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn data_is_json_text_or_base64_by_its_media_type() {
    let daemon = TestDaemon::start().await;
    let cases: [(Option<&str>, &[u8], Value); 10] = [
        (Some("Application/JSON; charset=utf-8"), b" [1] ", json!({ "data": [1] })),
        (Some("text/json"), b"null", json!({ "data": null })),
        (Some("text/plain"), "ça \"va\"\n".as_bytes(), json!({ "data": "ça \"va\"\n" })),
        (Some("text/plain; charset=\"UTF-8\""), b"a", json!({ "data": "a" })),
        (Some("image/svg+xml"), b"<svg/>", json!({ "data": "<svg/>" })),
        (Some("text/plain"), b"\xe7", json!({ "data_base64": "5w==" })),
        (Some("text/plain; charset=utf-16"), b"a\0", json!({ "data_base64": "YQA=" })),
        (Some("application/octet-stream"), b"plain", json!({ "data_base64": "cGxhaW4=" })),
        (None, b"plain", json!({ "data_base64": "cGxhaW4=" })),
        (Some("application/json"), b"", json!({})),
    ];
    for (number, (kind, body, data)) in cases.into_iter().enumerate() {
        let id = number.to_string();
        let mut headers = vec![("ce-id", id.as_str())];
        headers.extend(kind.map(|kind| ("Content-Type", kind)));
        let payload =
            shown(&daemon, &accepted(&headed(&daemon, &headers, body).await)).await["payload"].clone();
        for name in ["data", "data_base64"] {
            assert_eq!(payload.get(name), data.get(name), "{kind:?} {body:?}");
        }
        assert_eq!(payload.get("datacontenttype").and_then(Value::as_str), kind);
    }
    let json = ("Content-Type", "application/json");
    for body in [&b"not json"[..], b"{} {}", b"\"\xff\"", "[".repeat(130).as_bytes()] {
        refused(&headed(&daemon, &[json, ("ce-id", "x")], body).await, 400, "bad_request");
    }
    let grows = vec![0; 900 << 10];
    let reply = headed(&daemon, &[("ce-id", "x")], &grows).await;
    refused(&reply, 413, "payload_too_large");
    assert_eq!(daemon.count("/v1/events").await, 10);
    daemon.running.stop().await.unwrap();
}
