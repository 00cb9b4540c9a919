//! Tests of the `webhook` entry: who may deliver, and what is read.

use extension::{HttpDelivery, Ingress, IngressDelivery, IngressEntry, IngressRefusal, PreparedIngress};
use serde_json::{Value, json};

use super::{BODY_BYTES_MAX, Webhook};
use crate::sample::{KnownSecrets, block_on, hex, key, mac, request};

const SECRET: &str = "a secret of the tests";

fn entry(config: Value) -> IngressEntry {
    IngressEntry {
        name: "hook".parse().unwrap(),
        scope: "main".parse().unwrap(),
        secret_names: vec!["signing".to_owned()],
        config,
    }
}

fn prepare(config: Value) -> Box<dyn PreparedIngress> {
    Webhook.prepare(&entry(config)).unwrap()
}

fn problems(config: Value) -> Vec<String> {
    Webhook.prepare(&entry(config)).unwrap_err().iter().map(ToString::to_string).collect()
}

fn signed(body: &[u8], headers: &[(&str, &str)]) -> HttpDelivery {
    let signature = format!("sha256={}", hex(&mac(SECRET, body)));
    let mut all = vec![("x-signature", signature.as_str())];
    all.extend_from_slice(headers);
    request(&all, body)
}

fn config(with: Value) -> Value {
    let mut config = json!({
        "namespace": "ci/main",
        "verify": { "hmac": { "header": "X-Signature", "secret": "signing", "prefix": "sha256=" } },
        "type": "ci.event",
    });
    let Value::Object(with) = with else { panic!("an object") };
    config.as_object_mut().unwrap().extend(with);
    config
}

fn receive(config: Value, request: &HttpDelivery) -> Result<Vec<IngressDelivery>, IngressRefusal> {
    block_on(prepare(config).receive(request, &KnownSecrets::of("signing", SECRET)))
}

fn one(config: Value, request: &HttpDelivery) -> IngressDelivery {
    receive(config, request).unwrap().remove(0)
}

fn malformed(config: Value, request: &HttpDelivery) -> String {
    match receive(config, request) {
        Err(IngressRefusal::Malformed(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_signed_request_is_one_delivery_with_its_bytes() {
    let body = b"{ \"b\":1,  \"a\":1.0, \"a\":2, \"t\":\"\xf0\x9f\x98\x8a \\u00e7\" }\n";
    let delivery = one(config(json!({})), &signed(body, &[]));
    assert_eq!(delivery.payload.as_bytes(), body);
    assert_eq!(delivery.event_type.as_str(), "ci.event");
    assert_eq!(delivery.key, None);
    assert_eq!(delivery.drop, None);
    let prepared = prepare(config(json!({})));
    assert_eq!(prepared.namespace().as_str(), "ci/main");
    assert_eq!(prepared.path_prefix(), "hooks");
    assert_eq!(prepared.body_bytes_max(), BODY_BYTES_MAX);
}

#[test]
fn a_changed_byte_or_a_missing_signature_is_unauthorized() {
    let body = br#"{"a":1}"#;
    let mut changed = signed(body, &[]);
    changed.body[5] = b'2';
    let mac_text = hex(&mac(SECRET, body));
    let (upper, short) =
        (format!("sha256={}", mac_text.to_uppercase()), format!("sha256={}", &mac_text[..62]));
    for bad in [
        changed,
        request(&[], body),
        request(&[("x-signature", "")], body),
        request(&[("x-signature", "sha256=")], body),
        request(&[("x-signature", mac_text.as_str())], body),
        request(&[("x-signature", short.as_str())], body),
        request(&[("x-signature", "sha256=zz")], body),
    ] {
        assert_eq!(receive(config(json!({})), &bad).unwrap_err(), IngressRefusal::Unauthorized, "{bad:?}");
    }
    assert!(receive(config(json!({})), &request(&[("x-signature", upper.as_str())], body)).is_ok());
    let mut elsewhere = signed(body, &[]);
    elsewhere.path_tail = "more".to_owned();
    assert_eq!(receive(config(json!({})), &elsewhere).unwrap_err(), IngressRefusal::NotFound);
}

#[test]
fn a_signature_may_be_base64() {
    use base64::Engine as _;
    let config = config(json!({
        "verify": { "hmac": { "header": "sig", "secret": "signing", "encoding": "base64" } },
    }));
    let text = base64::engine::general_purpose::STANDARD.encode(mac(SECRET, b"{}"));
    assert!(receive(config.clone(), &request(&[("sig", text.as_str())], b"{}")).is_ok());
    assert_eq!(
        receive(config, &request(&[("sig", text.as_str())], b"[]")).unwrap_err(),
        IngressRefusal::Unauthorized
    );
}

#[test]
fn a_wrong_token_looks_like_nothing_at_all() {
    let config = config(json!({ "verify": { "token": { "secret": "signing" } } }));
    let at = |tail: &str| {
        let mut request = request(&[], b"{}");
        request.path_tail = tail.to_owned();
        receive(config.clone(), &request).map(|deliveries| deliveries.len())
    };
    assert_eq!(at(SECRET), Ok(1));
    for tail in ["", "a secret", &format!("{SECRET}/"), &format!("{SECRET}x")] {
        assert_eq!(at(tail), Err(IngressRefusal::NotFound), "{tail}");
    }
}

#[test]
fn without_its_secret_it_receives_nothing() {
    let prepared = prepare(config(json!({})));
    for secrets in [KnownSecrets::default(), KnownSecrets::of("signing", "")] {
        let refusal = block_on(prepared.receive(&signed(b"{}", &[]), &secrets)).unwrap_err();
        assert!(matches!(refusal, IngressRefusal::Unavailable(_)), "{refusal:?}");
    }
}

#[test]
fn what_is_not_json_is_malformed_only_once_it_is_authentic() {
    let all = config(json!({}));
    for body in [&b"not json"[..], b"", b"{\"a\":\"\xff\"}", b"{} {}"] {
        assert_eq!(malformed(all.clone(), &signed(body, &[])), "the payload is not JSON");
    }
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2)).into_bytes();
    assert!(receive(all.clone(), &signed(&text(BODY_BYTES_MAX), &[])).is_ok());
    assert!(malformed(all.clone(), &signed(&text(BODY_BYTES_MAX + 1), &[])).contains("larger than"));
    assert_eq!(receive(all, &request(&[], b"not json")).unwrap_err(), IngressRefusal::Unauthorized);
}

#[test]
fn a_delivery_has_the_senders_id_or_a_fresh_one() {
    let id = |with: Value, headers: &[(&str, &str)]| {
        one(config(with), &signed(br#"{"run":{"id":42}}"#, headers)).delivery_id.as_str().to_owned()
    };
    assert_eq!(id(json!({}), &[]), "fresh-1");
    assert_eq!(id(json!({}), &[("x-request-id", "r")]), "r");
    assert_eq!(id(json!({}), &[("x-request-id", "r"), ("idempotency-key", "i")]), "i");
    assert_eq!(id(json!({ "delivery_id": { "field": "/run/id" } }), &[("idempotency-key", "i")]), "42");
    assert_eq!(id(json!({ "delivery_id": { "header": "X-Id" } }), &[("x-id", "h")]), "h");
    let named = config(json!({ "delivery_id": { "header": "X-Id" } }));
    assert_eq!(malformed(named, &signed(b"{}", &[])), "the delivery's id is missing");
    assert!(malformed(config(json!({})), &signed(b"{}", &[("idempotency-key", "")])).contains("empty"));
}

#[test]
fn a_type_is_read_from_the_request() {
    let read = |kind: Value, headers: &[(&str, &str)]| {
        receive(config(json!({ "type": kind })), &signed(br#"{"kind":"Job Done"}"#, headers))
            .map(|mut deliveries| deliveries.remove(0).event_type.as_str().to_owned())
    };
    let header = json!({ "header": "X-Event", "prefix": "ci." });
    assert_eq!(read(header.clone(), &[("x-event", "push:tag")]), Ok("ci.push_tag".to_owned()));
    assert_eq!(read(json!({ "field": "/kind" }), &[]), Ok("job_done".to_owned()));
    assert!(matches!(read(header, &[]), Err(IngressRefusal::Malformed(_))));
    for core in ["core", "core.turn.ended", "CORE.x"] {
        let refusal = read(json!({ "header": "x-event" }), &[("x-event", core)]).unwrap_err();
        assert!(matches!(&refusal, IngressRefusal::Malformed(why) if why.contains("runtime")), "{refusal:?}");
    }
}

#[test]
fn a_key_is_read_from_the_body_where_it_has_one() {
    let keyed = config(json!({ "key": { "field": "/pull_request/number", "prefix": "pr/" } }));
    let found = |body: &str| one(keyed.clone(), &signed(body.as_bytes(), &[])).key;
    assert_eq!(found(r#"{"pull_request":{"number":7}}"#), Some(key("ci/main", "pr/7")));
    assert_eq!(found(r#"{"pull_request":{"number":"7a"}}"#), Some(key("ci/main", "pr/7a")));
    assert_eq!(found(r#"{"pull_request":{"number":null}}"#), None);
    assert_eq!(found(r#"{"issue":1}"#), None);
    for bad in [r#"{"pull_request":{"number":[]}}"#, r#"{"pull_request":{"number":"\n"}}"#] {
        assert!(!malformed(keyed.clone(), &signed(bad.as_bytes(), &[])).is_empty());
    }
}

#[test]
fn every_problem_is_named_and_no_value_repeated() {
    let found = problems(json!({
        "namespace": "core.hunter2", "verfy": {}, "type": "core.hunter2",
        "delivery_id": { "header": "hunter2", "field": "hunter2" }, "key": { "field": "hunter2", "prefx": "" },
    }));
    let paths: Vec<&str> = found.iter().map(|problem| problem.split('`').nth(1).unwrap()).collect();
    assert_eq!(
        paths,
        ["verfy", "namespace", "verify", "type", "delivery_id", "key.prefx", "key.field"],
        "{found:#?}"
    );
    assert!(!format!("{found:?}").contains("hunter2"), "{found:#?}");

    let both = json!({ "hmac": { "header": "a", "secret": "signing" }, "token": { "secret": "signing" } });
    for (verify, path) in [
        (json!({}), "verify"),
        (both, "verify"),
        (json!({ "token": { "secret": "other" } }), "verify.token.secret"),
        (json!({ "token": {} }), "verify.token.secret"),
        (json!({ "hmac": { "secret": "signing" } }), "verify.hmac.header"),
        (
            json!({ "hmac": { "header": "a", "secret": "signing", "encoding": "b64" } }),
            "verify.hmac.encoding",
        ),
    ] {
        let found = problems(config(json!({ "verify": verify })));
        assert!(found.len() == 1 && found[0].starts_with(&format!("`{path}`: ")), "{found:?}");
    }
    assert_eq!(problems(config(json!({ "type": { "field": "/a", "prefix": "core." } }))).len(), 1);
    assert_eq!(problems(config(json!({ "type": {} }))).len(), 1);
}
