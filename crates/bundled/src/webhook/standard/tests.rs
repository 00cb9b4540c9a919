//! Tests of Standard Webhooks: what is taken, and that everything else is refused alike.

use std::time::Duration;

use base64::Engine as _;
use extension::{HttpDelivery, Ingress, IngressDelivery, IngressEntry, IngressRefusal, Timestamp};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};

use super::BASE64;
use crate::sample::{KnownSecrets, block_on, request};
use crate::webhook::Webhook;

/// A request that somebody else signed.
struct Vector {
    secret: &'static str,
    id: &'static str,
    seconds: i64,
    body: &'static str,
    signature: &'static str,
}

/// Of the reference libraries of Standard Webhooks: the test of `sign` that all of them share.
const REFERENCE: Vector = Vector {
    secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
    seconds: 1_614_265_330,
    body: r#"{"test": 2432232314}"#,
    signature: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
};
/// Of the reference libraries: a signature that fits none of the above.
const OTHER: &str = "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc=";

impl Vector {
    /// The request, arriving when it was sent, with some headers replaced or, by an empty list, left out.
    fn request(&self, replaced: &[(&str, &[&str])]) -> HttpDelivery {
        let seconds = self.seconds.to_string();
        let mut headers = Vec::new();
        let own =
            [("webhook-id", self.id), ("webhook-timestamp", &seconds), ("webhook-signature", self.signature)];
        for (name, value) in own {
            match replaced.iter().find(|(known, _values)| *known == name) {
                Some((_name, values)) => headers.extend(values.iter().map(|value| (name, *value))),
                None => headers.push((name, value)),
            }
        }
        let mut request = request(&headers, self.body.as_bytes());
        request.received_at = Timestamp::from_micros(self.seconds * 1_000_000);
        request
    }

    fn secrets(&self) -> KnownSecrets {
        KnownSecrets::of("signing", self.secret)
    }
}

fn entry(standard: &Value, more: Value) -> IngressEntry {
    let mut config = json!({
        "namespace": "hook/sender", "type": "a.b", "verify": { "standard_webhooks": standard },
    });
    let Value::Object(more) = more else { panic!("an object") };
    config.as_object_mut().unwrap().extend(more);
    IngressEntry {
        name: "hook".parse().unwrap(),
        scope: "main".parse().unwrap(),
        secret_names: vec!["signing".to_owned(), "next".to_owned()],
        config,
    }
}

fn receive_by(
    entry: &IngressEntry,
    request: &HttpDelivery,
    secrets: &KnownSecrets,
) -> Result<Vec<IngressDelivery>, IngressRefusal> {
    block_on(Webhook.prepare(entry).unwrap().receive(request, secrets))
}

fn receive(
    standard: &Value,
    request: &HttpDelivery,
    secrets: &KnownSecrets,
) -> Result<IngressDelivery, IngressRefusal> {
    let deliveries = receive_by(&entry(standard, json!({})), request, secrets);
    deliveries.map(|mut deliveries| deliveries.remove(0))
}

fn one() -> Value {
    json!({ "secrets": ["signing"] })
}

fn key_of(bytes: usize) -> String {
    format!("whsec_{}", BASE64.encode(vec![7; bytes]))
}

fn signed(key: &[u8], bytes: &[u8]) -> String {
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(key).unwrap();
    mac.update(bytes);
    format!("v1,{}", BASE64.encode(mac.finalize().into_bytes()))
}

#[track_caller]
fn is_unauthorized(request: &HttpDelivery) {
    let refusal = receive(&one(), request, &REFERENCE.secrets()).unwrap_err();
    assert_eq!(refusal, IngressRefusal::Unauthorized);
}

#[test]
fn a_published_request_is_taken_under_its_id() {
    let delivery = receive(&one(), &REFERENCE.request(&[]), &REFERENCE.secrets()).unwrap();
    assert_eq!(delivery.delivery_id.as_str(), REFERENCE.id);
    assert_eq!(delivery.payload.as_bytes(), REFERENCE.body.as_bytes());
    assert_eq!(delivery.event_type.as_str(), "a.b");
}

#[test]
fn any_of_the_signatures_will_do_and_other_kinds_are_skipped() {
    let own = REFERENCE.signature;
    let public = own.replace("v1,", "v1a,");
    let later = own.replace("v1,", "v2,");
    for list in
        [format!("{OTHER} {later} {own} {OTHER}"), format!("{public} {own}"), format!("v1,*** v1 , x  {own}")]
    {
        let request = REFERENCE.request(&[("webhook-signature", &[list.as_str()])]);
        assert!(receive(&one(), &request, &REFERENCE.secrets()).is_ok(), "{list}");
    }
    let bare = own.trim_start_matches("v1,");
    for list in [OTHER, &public, &later, bare, "", "v1,", "v1", &own[..8], "v1,dawfeoifkpqwoekfpqoekf"] {
        is_unauthorized(&REFERENCE.request(&[("webhook-signature", &[list])]));
    }
}

#[test]
fn a_header_that_is_missing_doubled_or_not_as_signed_is_unauthorized() {
    let seconds = REFERENCE.seconds.to_string();
    for (name, own) in
        [("webhook-id", REFERENCE.id), ("webhook-timestamp", &seconds), ("webhook-signature", OTHER)]
    {
        is_unauthorized(&REFERENCE.request(&[(name, &[])]));
        is_unauthorized(&REFERENCE.request(&[(name, &[""])]));
        is_unauthorized(&REFERENCE.request(&[(name, &[own, own])]));
    }
    let own = REFERENCE.signature;
    is_unauthorized(&REFERENCE.request(&[("webhook-signature", &[own, OTHER])]));
    is_unauthorized(&REFERENCE.request(&[("webhook-id", &["msg_other"])]));
    let next = (REFERENCE.seconds + 1).to_string();
    for timestamp in [next.as_str(), "hello", "1614265330.0", "+1614265330", "-1", "99999999999999999999999"]
    {
        is_unauthorized(&REFERENCE.request(&[("webhook-timestamp", &[timestamp])]));
    }
    for (timestamp, taken) in [("0", true), ("+0", false), ("-0", false), ("0000000000000", false)] {
        let signature = signed(&[7; 24], format!("id.{timestamp}.1").as_bytes());
        let headers =
            [("webhook-id", "id"), ("webhook-timestamp", timestamp), ("webhook-signature", &signature)];
        let received = receive(&one(), &request(&headers, b"1"), &KnownSecrets::of("signing", &key_of(24)));
        assert_eq!(received.is_ok(), taken, "{timestamp} is signed as it is written");
    }
    let mut changed = REFERENCE.request(&[]);
    changed.body[9] ^= 1;
    is_unauthorized(&changed);
}

#[test]
fn a_full_stop_in_an_id_moves_nothing_from_the_body_to_the_time() {
    // `a` at 1 with the body `2.5` and `a.1` at 2 with the body `5` are the same bytes once they are joined.
    let signature = signed(&[7; 24], b"a.1.2.5");
    let secrets = KnownSecrets::of("signing", &key_of(24));
    let at = |id: &str, seconds: &str, body: &str| {
        let headers =
            [("webhook-id", id), ("webhook-timestamp", seconds), ("webhook-signature", signature.as_str())];
        receive(&one(), &request(&headers, body.as_bytes()), &secrets).map(drop)
    };
    assert_eq!(at("a", "1", "2.5"), Ok(()));
    assert_eq!(at("a.1", "2", "5"), Err(IngressRefusal::Unauthorized));
}

#[test]
fn the_time_may_be_as_far_off_as_is_set_and_no_further() {
    let arriving = |standard: &Value, off: i64| {
        let mut request = REFERENCE.request(&[]);
        request.received_at = Timestamp::from_micros(REFERENCE.seconds * 1_000_000 + off);
        receive(standard, &request, &REFERENCE.secrets()).map(drop)
    };
    let strict = json!({ "secrets": ["signing"], "tolerance_seconds": 1 });
    for (standard, seconds) in [(one(), 300), (strict, 1)] {
        for off in [seconds * 1_000_000, -seconds * 1_000_000] {
            assert_eq!(arriving(&standard, off), Ok(()), "{off}");
            let further = off + off.signum();
            assert_eq!(arriving(&standard, further), Err(IngressRefusal::Unauthorized), "{further}");
        }
    }
}

#[test]
fn while_secrets_change_either_may_sign() {
    let both = json!({ "secrets": ["next", "signing"] });
    let mut secrets = REFERENCE.secrets();
    let taken = |secrets: &KnownSecrets, standard: &Value| {
        receive(standard, &REFERENCE.request(&[]), secrets).map(drop)
    };
    assert_eq!(taken(&secrets, &both), Ok(()), "the other one cannot be read yet");
    secrets.add("next", &key_of(32));
    assert_eq!(taken(&secrets, &both), Ok(()));
    let gone = json!({ "secrets": ["next"] });
    assert_eq!(taken(&secrets, &gone), Err(IngressRefusal::Unauthorized));
}

#[test]
fn a_secret_that_cannot_be_used_is_said_without_showing_it() {
    for bytes in [24, 64] {
        let refusal = receive(&one(), &REFERENCE.request(&[]), &KnownSecrets::of("signing", &key_of(bytes)));
        assert_eq!(refusal.unwrap_err(), IngressRefusal::Unauthorized, "{bytes}");
    }
    let unpadded = key_of(25);
    let unpadded = KnownSecrets::of("signing", unpadded.trim_end_matches('='));
    let refusal = receive(&one(), &REFERENCE.request(&[]), &unpadded).unwrap_err();
    assert_eq!(refusal, IngressRefusal::Unauthorized);
    let bare = REFERENCE.secret.trim_start_matches("whsec_");
    // Of an example in Svix's manual: 18 bytes.
    let short = "whsec_plJ3nmyCDGBKInavdOK15jsl";
    for secret in ["", bare, "whsec_", "whsec_hunter2!", "whpk_hunter2", short, &key_of(23), &key_of(65)] {
        let refusal = receive(&one(), &REFERENCE.request(&[]), &KnownSecrets::of("signing", secret));
        let Err(IngressRefusal::Unavailable(why)) = refusal else { panic!("{refusal:?}") };
        let shown = secret.trim_start_matches("whsec_");
        assert!(shown.is_empty() || !why.contains(shown), "{why}");
    }
    // Whoever shows nothing is told nothing about the entry.
    let nothing = request(&[], b"{}");
    let refusal = receive(&one(), &nothing, &KnownSecrets::default()).unwrap_err();
    assert_eq!(refusal, IngressRefusal::Unauthorized);
}

#[test]
fn only_its_own_path_is_served_and_only_what_is_authentic_is_read() {
    let mut elsewhere = REFERENCE.request(&[]);
    elsewhere.path_tail = "more".to_owned();
    let refusal = receive(&one(), &elsewhere, &REFERENCE.secrets()).unwrap_err();
    assert_eq!(refusal, IngressRefusal::NotFound);
    let mut not_json = REFERENCE.request(&[]);
    not_json.body = b"not json".to_vec();
    is_unauthorized(&not_json);
}

#[test]
fn the_type_is_the_bodys_unless_something_else_is_set() {
    let secrets = KnownSecrets::of("signing", &key_of(24));
    let mut entry = entry(&one(), json!({ "type": null }));
    let mut typed = |kind: Value, body: &str| {
        entry.config["type"] = kind;
        let signature = signed(&[7; 24], format!("id.0.{body}").as_bytes());
        let headers =
            [("webhook-id", "id"), ("webhook-timestamp", "0"), ("webhook-signature", signature.as_str())];
        let deliveries = receive_by(&entry, &request(&headers, body.as_bytes()), &secrets);
        deliveries.map(|deliveries| deliveries[0].event_type.to_string())
    };
    let body = r#"{"type":"User.Created","action":"made"}"#;
    assert_eq!(typed(Value::Null, body), Ok("user.created".to_owned()));
    let prefixed = json!({ "field": "/action", "prefix": "sender." });
    assert_eq!(typed(prefixed, body), Ok("sender.made".to_owned()));
    let missing = IngressRefusal::Malformed("the event's type is missing".to_owned());
    assert_eq!(typed(Value::Null, "{}"), Err(missing));
    assert!(matches!(typed(Value::Null, r#"{"type":"core.turn.ended"}"#), Err(IngressRefusal::Malformed(_))));
}

#[test]
fn every_problem_of_the_configuration_is_named() {
    let nine = vec!["signing"; 9];
    for (standard, path) in [
        (json!({}), "verify.standard_webhooks.secrets"),
        (json!({ "secrets": [] }), "verify.standard_webhooks.secrets"),
        (json!({ "secrets": "signing" }), "verify.standard_webhooks.secrets"),
        (json!({ "secrets": nine }), "verify.standard_webhooks.secrets"),
        (json!({ "secrets": ["signing", "hunter2"] }), "verify.standard_webhooks.secrets[1]"),
        (json!({ "secrets": ["signing"], "tolerance_seconds": 0 }), TOLERANCE),
        (json!({ "secrets": ["signing"], "tolerance_seconds": 3601 }), TOLERANCE),
        (json!({ "secrets": ["signing"], "tolerance_seconds": "5" }), TOLERANCE),
        (json!({ "secrets": ["signing"], "tolerance_seconds": 1.5 }), TOLERANCE),
        (json!({ "secrets": ["signing"], "tolerance": 5 }), "verify.standard_webhooks.tolerance"),
    ] {
        let found = Webhook.prepare(&entry(&standard, json!({}))).unwrap_err();
        assert!(found.len() == 1 && found[0].to_string().starts_with(&format!("`{path}`: ")), "{found:?}");
        assert!(!format!("{found:?}").contains("hunter2"), "{found:?}");
    }
    let named = entry(&one(), json!({ "delivery_id": { "header": "x-id" } }));
    let found = Webhook.prepare(&named).unwrap_err();
    assert!(found.len() == 1 && found[0].to_string().starts_with("`delivery_id`: "), "{found:?}");
    let hour = Duration::from_hours(1).as_secs();
    assert!(
        Webhook
            .prepare(&entry(&json!({ "secrets": ["next"], "tolerance_seconds": hour }), json!({})))
            .is_ok()
    );
}

/// Where the tolerance is set.
const TOLERANCE: &str = "verify.standard_webhooks.tolerance_seconds";
