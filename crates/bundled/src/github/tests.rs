//! Tests of the `github` entry: authenticity, facts, forks and keys, on bodies made by hand.

mod forks;
mod pushes;

use extension::{HttpDelivery, Ingress, IngressDelivery, IngressEntry, IngressRefusal, PreparedIngress};
use serde_json::{Value, json};

use super::{BODY_BYTES_MAX, GitHub};
use crate::sample::{KnownSecrets, block_on, hex, mac, request};

const SECRET: &str = "It's a Secret to Everybody";
const HOME: u64 = 1;
const ELSEWHERE: u64 = 2;

fn prepare(config: Value) -> Result<Box<dyn PreparedIngress>, Vec<String>> {
    let entry = IngressEntry {
        name: "hub".parse().unwrap(),
        scope: "main".parse().unwrap(),
        secret_names: vec!["hook".to_owned()],
        config,
    };
    GitHub.prepare(&entry).map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

fn config() -> Value {
    json!({ "namespace": "github/acme", "webhook_secret": "hook" })
}

fn accepting() -> Value {
    json!({ "namespace": "github/acme", "webhook_secret": "hook", "forks": "accept" })
}

fn delivery(event: &str, content_type: &str, body: &[u8]) -> HttpDelivery {
    let signature = format!("sha256={}", hex(&mac(SECRET, body)));
    let headers = [
        ("content-type", content_type),
        ("x-github-event", event),
        ("x-github-delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958"),
        ("x-hub-signature", "sha1=0000000000000000000000000000000000000000"),
        ("x-hub-signature-256", signature.as_str()),
    ];
    request(&headers, body)
}

fn receive(config: Value, request: &HttpDelivery) -> Result<Vec<IngressDelivery>, IngressRefusal> {
    block_on(prepare(config).unwrap().receive(request, &KnownSecrets::of("hook", SECRET)))
}

fn bytes(event: &str, body: &[u8]) -> Result<IngressDelivery, IngressRefusal> {
    receive(config(), &delivery(event, "application/json", body)).map(|mut deliveries| deliveries.remove(0))
}

fn accept(event: &str, body: &Value) -> IngressDelivery {
    bytes(event, &serde_json::to_vec(body).unwrap()).unwrap()
}

fn facts(event: &str, body: &Value) -> Value {
    serde_json::from_slice(accept(event, body).payload.as_bytes()).unwrap()
}

fn external_id(event: &str, body: &Value) -> Option<String> {
    accept(event, body).key.map(|key| {
        assert_eq!(key.source.as_str(), "github/acme");
        key.external_id.as_str().to_owned()
    })
}

/// A repository's object. The one of [`HOME`] is ours.
fn repository(id: u64) -> Value {
    let owner = if id == HOME { "acme" } else { "stranger" };
    json!({ "id": id, "full_name": format!("{owner}/app"), "default_branch": "main", "private": false })
}

/// A body about our repository.
fn body(with: Value) -> Value {
    let mut body = json!({ "repository": repository(HOME), "sender": { "login": "octo" } });
    let Value::Object(with) = with else { panic!("an object") };
    body.as_object_mut().unwrap().extend(with);
    body
}

fn pull_request(head: &Value) -> Value {
    json!({
        "number": 7, "title": "Fix it", "state": "open", "merged": false, "draft": true,
        "user": { "login": "ann" }, "labels": [{ "name": "bug", "color": "f00" }],
        "head": { "ref": "fix", "sha": "aaa", "repo": head },
        "base": { "ref": "main", "sha": "bbb", "repo": repository(HOME) },
    })
}

#[test]
fn the_documented_vector_is_authentic_and_then_no_json() {
    let hello = delivery("ping", "application/json", b"Hello, World!");
    let written = hello.header("x-hub-signature-256").unwrap();
    assert_eq!(written, "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17");
    assert!(matches!(receive(config(), &hello), Err(IngressRefusal::Malformed(_))));
}

#[test]
fn a_missing_weak_or_wrong_signature_is_unauthorized() {
    let right = delivery("ping", "application/json", b"{}");
    assert_eq!(receive(config(), &right).unwrap().len(), 1);
    let without = |change: &dyn Fn(&mut HttpDelivery)| {
        let mut request = right.clone();
        change(&mut request);
        receive(config(), &request).unwrap_err()
    };
    let set = |value: &'static str| {
        without(&move |request: &mut HttpDelivery| {
            let header = request.headers.iter_mut().find(|(name, _value)| name == "x-hub-signature-256");
            header.unwrap().1 = value.as_bytes().to_vec();
        })
    };
    assert_eq!(
        without(&|request| request.headers.retain(|(name, _)| name != "x-hub-signature-256")),
        IngressRefusal::Unauthorized
    );
    assert_eq!(without(&|request| request.body.push(b' ')), IngressRefusal::Unauthorized);
    for value in ["", "sha256=", "sha1=00", "sha256=é"] {
        assert_eq!(set(value), IngressRefusal::Unauthorized, "{value}");
    }
    assert_eq!(without(&|request| request.path_tail = "x".to_owned()), IngressRefusal::NotFound);
    for secrets in [KnownSecrets::default(), KnownSecrets::of("hook", "")] {
        let refusal = block_on(prepare(config()).unwrap().receive(&right, &secrets)).unwrap_err();
        assert!(matches!(refusal, IngressRefusal::Unavailable(_)));
    }
}

#[test]
fn the_signature_is_over_the_bytes_and_not_their_meaning() {
    for text in [
        "{ \"b\":1,  \"a\":1.0, \"a\":2 }\n",
        r#"{"action":"created","action":"created","comment":{"body":"ok 😊 ç"}}"#,
        r#"{"action":"created","comment":{"body":"ok \ud83d\ude0a \u00e7"}}"#,
    ] {
        assert!(bytes("issue_comment", text.as_bytes()).is_ok(), "{text}");
    }
    assert_eq!(
        bytes("issue_comment", b"{\"comment\":{\"body\":\"\xff\"}}").unwrap_err(),
        IngressRefusal::Malformed("the body is not UTF-8".to_owned())
    );
    for text in ["", "[]", "null", "7", "{", "{} x"] {
        assert!(matches!(bytes("ping", text.as_bytes()), Err(IngressRefusal::Malformed(_))), "{text}");
    }
}

#[test]
fn a_form_is_read_like_json() {
    let form = b"payload=%7B%22action%22%3A%22opened+now%22%2C%22e%22%3A%22%F0%9F%98%8A%22%7D";
    let kind = "application/x-www-form-urlencoded; charset=utf-8";
    let delivered = receive(config(), &delivery("issues", kind, form)).unwrap().remove(0);
    let facts: Value = serde_json::from_slice(delivered.payload.as_bytes()).unwrap();
    assert_eq!(facts["action"], "opened now");
    for bad in [&b"payload=%7B%22a%22%3A%22%FF%22%7D"[..], b"other=%7B%7D", b"{}"] {
        let refusal = receive(config(), &delivery("issues", kind, bad)).unwrap_err();
        assert!(matches!(refusal, IngressRefusal::Malformed(_)), "{refusal:?}");
    }
}

#[test]
fn every_delivery_is_accepted_under_its_own_id() {
    for event in ["ping", "star", "an_event_of_2031"] {
        let delivery = accept(event, &body(json!({ "zen": "x" })));
        assert_eq!(delivery.delivery_id.as_str(), "72d3162e-cc78-11e3-81ab-4c9367dc0958");
        assert_eq!(delivery.event_type.as_str(), "github.delivery");
        assert_eq!((delivery.drop, delivery.key), (None, None));
        let facts: Value = serde_json::from_slice(delivery.payload.as_bytes()).unwrap();
        assert_eq!(facts["kind"], "github.delivery.v1");
        assert_eq!(facts["event"], event);
        assert_eq!(
            facts["repository"],
            json!({ "id": 1, "full_name": "acme/app", "default_branch": "main" })
        );
        assert_eq!(facts["sender"], "octo");
        assert_eq!(facts["subject"], Value::Null);
        assert_eq!(facts["files"], Value::Null);
    }
    for missing in ["x-github-event", "x-github-delivery"] {
        let mut request = delivery("ping", "application/json", b"{}");
        request.headers.retain(|(name, _value)| name != missing);
        assert!(matches!(receive(config(), &request), Err(IngressRefusal::Malformed(_))), "{missing}");
    }
    assert!(matches!(bytes("Not an event", b"{}"), Err(IngressRefusal::Malformed(_))));
}

#[test]
fn the_subject_of_a_pull_request_has_its_head_and_base() {
    let opened =
        body(json!({ "action": "opened", "number": 7, "pull_request": pull_request(&repository(HOME)) }));
    let facts = facts("pull_request", &opened);
    assert_eq!(facts["after"], "aaa");
    assert_eq!(
        facts["subject"],
        json!({
            "kind": "pull_request", "number": 7, "title": "Fix it", "labels": ["bug"], "state": "open",
            "author": "ann", "comment": null, "review": null,
            "head": { "ref": "fix", "sha": "aaa", "repo": "acme/app" },
            "base": { "ref": "main", "sha": "bbb", "repo": "acme/app" },
            "merged": false, "draft": true,
        })
    );
    let review = json!({ "id": 5, "state": "approved", "body": null, "user": { "login": "bob" } });
    let reviewed = body(json!({ "review": review, "pull_request": pull_request(&repository(HOME)) }));
    let facts = self::facts("pull_request_review", &reviewed);
    let expected = json!({ "id": 5, "author": "bob", "state": "approved", "text": "", "truncated": false });
    assert_eq!(facts["subject"]["review"], expected);
}

#[test]
fn long_texts_are_clipped_between_characters() {
    let text = "é".repeat(200_000);
    let labels: Vec<Value> = (0..500).map(|n| json!({ "name": format!("l{n}") })).collect();
    let commented = body(json!({
        "issue": { "number": 3, "title": text, "labels": labels, "state": "open" },
        "comment": { "id": 9, "body": text, "user": { "login": "eve" } },
    }));
    let facts = facts("issue_comment", &commented);
    let subject = &facts["subject"];
    assert_eq!(subject["title"].as_str().unwrap().len(), 1024);
    assert_eq!(subject["labels"].as_array().unwrap().len(), 100);
    assert_eq!(subject["comment"]["text"].as_str().unwrap().len(), 64 << 10);
    assert_eq!(subject["comment"]["truncated"], true);
    assert_eq!(subject["comment"]["author"], "eve");
}

#[test]
fn a_finished_check_names_its_commit_and_no_ref() {
    for kind in ["check_suite", "check_run", "workflow_run", "workflow_job"] {
        let check = json!({ "head_branch": "main", "head_sha": "ccc", "conclusion": "timed_out" });
        let done = facts(kind, &body(json!({ "action": "completed", kind: check })));
        assert_eq!((&done["after"], &done["conclusion"]), (&json!("ccc"), &json!("timed_out")), "{kind}");
        assert_eq!(done["ref"], Value::Null, "{kind}");
        let begun = json!({ "head_branch": "main", "head_sha": "ccc", "conclusion": "success" });
        let begun = facts(kind, &body(json!({ "action": "requested", kind: begun })));
        assert_eq!((&begun["after"], &begun["conclusion"]), (&Value::Null, &Value::Null), "{kind}");
    }
    let status = facts("status", &body(json!({ "sha": "ddd", "state": "failure", "branches": [] })));
    assert_eq!(status["after"], "ddd");
}

#[test]
fn keys_are_what_a_delivery_is_about() {
    let pull = pull_request(&repository(HOME));
    let issue = json!({ "number": 3, "title": "t" });
    let of_pull = json!({ "number": 7, "pull_request": { "url": "u" } });
    let comment = json!({ "id": 1, "body": "b" });
    for (event, with, expected) in [
        ("pull_request", json!({ "pull_request": pull }), Some("acme/app/pull/7")),
        ("pull_request_review", json!({ "pull_request": pull, "review": {} }), Some("acme/app/pull/7")),
        (
            "pull_request_review_comment",
            json!({ "pull_request": pull, "comment": comment }),
            Some("acme/app/pull/7"),
        ),
        ("issue_comment", json!({ "issue": of_pull, "comment": comment }), Some("acme/app/pull/7")),
        ("issue_comment", json!({ "issue": issue, "comment": comment }), Some("acme/app/issue/3")),
        ("issues", json!({ "issue": issue }), Some("acme/app/issue/3")),
        ("push", json!({ "ref": "refs/heads/bugfix/master" }), Some("acme/app/ref/refs/heads/bugfix/master")),
        ("push", json!({ "ref": "x".repeat(600) }), None),
        ("create", json!({ "ref": "v1", "ref_type": "tag" }), None),
        ("release", json!({ "release": { "tag_name": "v1" } }), None),
        ("check_suite", json!({ "check_suite": {} }), None),
        ("star", json!({}), None),
    ] {
        assert_eq!(external_id(event, &body(with)).as_deref(), expected, "{event}");
    }
    assert_eq!(external_id("issues", &json!({ "issue": { "number": 3 } })), None);
}

#[test]
fn an_entry_without_a_secret_is_refused() {
    assert_eq!(
        prepare(json!({ "namespace": "github/acme" })).unwrap_err(),
        ["`webhook_secret`: is required"]
    );
    let found = prepare(json!({
        "namespace": "core", "webhook_secret": "hunter2", "forks": "hunter2", "fork": "hunter2",
    }))
    .unwrap_err();
    assert_eq!(found.len(), 4, "{found:#?}");
    assert!(found[0].ends_with("did you mean `forks`?"), "{found:#?}");
    assert!(!format!("{found:?}").contains("hunter2"), "{found:#?}");
    let entry = prepare(config()).unwrap();
    assert_eq!((entry.path_prefix(), entry.body_bytes_max()), ("github", BODY_BYTES_MAX));
    assert_eq!(entry.namespace().as_str(), "github/acme");
}
