//! Tests of the `match` handler, its expressions and its keys.

use std::time::Duration;

use extension::{
    ConcurrencyKey, End, EventType, Handler, HandlerError, Lifecycle, Match, PreparedRoute, WorkKind,
};
use serde_json::{Value, json};

use super::Matching;
use super::expression::{Answer, Expression, ITEMS_MAX, TEXT_BYTES_MAX};
use crate::sample::{Sample, block_on, key};

fn prepare(config: &Value) -> Box<dyn PreparedRoute> {
    Matching.prepare(config).unwrap()
}

fn decide(config: &Value, sample: &Sample) -> Result<Option<Match>, HandlerError> {
    block_on(prepare(config).decide(&sample.input()))
}

fn problems(config: &Value) -> Vec<String> {
    Matching.prepare(config).unwrap_err().iter().map(ToString::to_string).collect()
}

fn attach(source: &str, external_id: &str) -> Match {
    Match::Attach {
        keys: vec![key(source, external_id)],
        kind: WorkKind::known("match.keyed"),
        lifecycle: Lifecycle::Standing,
        concurrency: None,
        reopens: Vec::new(),
    }
}

#[test]
fn types_and_sources_take_names_and_families() {
    let takes = |types: &str, event_type: &str| {
        let sample = Sample::new("ci/main", event_type).key("k", "1");
        decide(&json!({ "types": [types] }), &sample).unwrap().is_some()
    };
    assert!(takes("build.done", "build.done"));
    assert!(takes("build.*", "build.done"));
    assert!(takes("build.*", "build.done.late"));
    assert!(takes("*", "build"));
    assert!(!takes("build.*", "build"));
    assert!(!takes("build.*", "builder.done"));
    assert!(!takes("build.done", "build.done.late"));

    let from = |source: &str| {
        let sample = Sample::new("ci/main", "build").key("k", "1");
        decide(&json!({ "sources": ["other", source] }), &sample).unwrap().is_some()
    };
    assert!(from("ci/*"));
    assert!(from("ci/main"));
    assert!(!from("ci"));
    assert!(!from("ci/mai"));
}

#[test]
fn a_wildcard_is_a_whole_last_word() {
    for bad in ["build*", "*.done", "a.*.b", "a.**", ".*", "**"] {
        assert_eq!(
            problems(&json!({ "types": [bad] })),
            ["`types[0]`: may have a `*` only as its whole last word"],
            "{bad}"
        );
    }
}

#[test]
fn announcements_are_taken_by_their_full_name_only() {
    let sample = Sample::new("core", "core.turn.ended").key("k", "1");
    assert_eq!(decide(&json!({ "types": ["*"] }), &sample), Ok(None));
    assert_eq!(decide(&json!({ "when": "true" }), &sample), Ok(None));
    let named = json!({ "types": ["core.turn.ended"] });
    assert_eq!(decide(&named, &sample), Ok(Some(attach("k", "1"))));
    assert!(prepare(&named).takes_announcement(&EventType::known("core.turn.ended")));
    assert!(!prepare(&named).takes_announcement(&EventType::known("core.work.created")));
    assert!(!prepare(&json!({ "types": ["*"] })).takes_announcement(&EventType::known("core.turn.ended")));
    assert!(problems(&json!({ "types": ["core.*"] }))[0].starts_with("`types[0]`: announcements"));
}

#[test]
fn when_reads_the_envelope_and_the_payload() {
    let sample = Sample::new("ci/main", "build.done").key("ci", "b/7").payload(
        json!({ "state": "failed", "tries": 3, "big": u64::MAX, "parts": [{ "ok": true }, { "ok": false }] }),
    );
    let holds = |when: &str| decide(&json!({ "when": when }), &sample).map(|wants| wants.is_some());
    for when in [
        "payload.state == 'failed' && payload.tries > 2",
        "event.type == 'build.done' && event.source == 'ci/main' && event.scope == 'main'",
        "event.key.external_id.startsWith('b/')",
        "event.accepted_at == '1970-01-01T00:00:00Z' && event.occurred_at == null",
        "event.work == null && event.depth == 0 && event.root == event.id",
        "payload.parts.exists(p, !p.ok)",
        "payload.parts.map(p, p.ok).filter(ok, ok).size() == 1",
        "payload.parts.exists_one(p, p.ok)",
        "payload.state.matches('^fail(ed|ure)$') && matches(payload.state, 'l')",
        "!has(payload.missing) && type(payload.tries) == int",
        "payload.big > 5u",
        "int('3') == payload.tries && string(payload.tries) == '3'",
    ] {
        assert_eq!(holds(when), Ok(true), "{when}");
    }
    assert_eq!(holds("payload.state == 'passed'"), Ok(false));
}

#[test]
fn a_failing_expression_is_an_error_that_tells_no_value() {
    let sample = Sample::new("s", "t").key("k", "1").payload(json!({ "secret": "hunter2", "list": [1] }));
    for (when, words) in [
        ("payload.missing == 1", "missing"),
        ("payload.secret > 1", "types"),
        ("payload.secret + 1 == 2", "types"),
        ("payload[payload.secret] == 1", "missing"),
        ("payload.list[7] == 1", "outside"),
        ("1 / (size(payload.list) - 1) == 1", "no result"),
        ("int(payload.secret) == 1", "refused its arguments"),
    ] {
        let error = decide(&json!({ "when": when }), &sample).unwrap_err();
        assert_eq!(error.code.as_str(), "cel_error", "{when}");
        assert!(error.reason.contains(words), "{when}: {}", error.reason);
        assert!(!error.reason.contains("hunter2"), "{when}: {}", error.reason);
    }
    let error = decide(&json!({ "when": "payload.secret" }), &sample).unwrap_err();
    assert_eq!(error.code.as_str(), "cel_not_bool");
    assert!(!error.reason.contains("hunter2"));
}

#[test]
fn expressions_that_could_be_expensive_are_refused() {
    let list = format!("[{}].exists(x, x == 1)", "1,".repeat(ITEMS_MAX) + "1");
    let many = ["payload.a.all(x, true)"; 9].join(" && ");
    let deep = format!("payload{} == 1", ".a".repeat(60));
    let long = format!("payload.a == '{}'", "x".repeat(TEXT_BYTES_MAX));
    for (when, words) in [
        ("payload.a.all(x, x.all(y, y.all(z, z)))", "nests more than 2"),
        ("payload.a.exists(x, x.filter(y, y.exists(z, z)) == [])", "nests more than 2"),
        ("(payload.a + payload.a).all(x, x)", "made with `+`"),
        ("payload.a.map(x, x + x).all(y, y.all(z, z))", "made with `+`"),
        ("payload.?a.orValue(1) == 1", "is not a CEL expression"),
        ("payload.a.map(x, payload.a.map(y, x)) == []", "inside another"),
        ("payload.a.map(x, payload.a.filter(y, y == x)) == []", "inside another"),
        (list.as_str(), "more than 200 items"),
        (many.as_str(), "more than 8 comprehensions"),
        (deep.as_str(), "nested too deeply"),
        (long.as_str(), "longer than 4096 bytes"),
        ("payload.a.matches(payload.b)", "not written out"),
        ("payload.a.matches('(')", "no regular expression"),
        ("payload.a.matches('(a{900}){900}')", "too large"),
        ("paylod.a == 1", "unknown name"),
        ("payload.a.startWith('x')", "unknown function"),
        ("payload.a ==", "is not a CEL expression; see line 1"),
        ("", "is not a CEL expression"),
    ] {
        let found = problems(&json!({ "when": when }));
        assert!(found.len() == 1 && found[0].contains(words), "{when}: {found:?}");
        assert!(found[0].starts_with("`when`: "), "{found:?}");
    }
    assert!(Expression::compile("payload.a.map(x, x).all(y, y) && payload.b.filter(x, x) == []").is_ok());
    assert!(Expression::compile("payload.a.all(x, x.b.all(y, y + y == 2))").is_ok());
    assert!(Expression::compile("payload.a.exists(x, x.b.filter(y, y > 1).size() > 3)").is_ok());
    assert!(Expression::compile("payload.a.map(x, x.b.exists(y, y > 1)).size() > 3").is_ok());
}

#[test]
fn the_deepest_texts_are_refused_or_evaluated_on_an_ordinary_stack() {
    let room = |unit: &str| (TEXT_BYTES_MAX - 16) / unit.len();
    let chain = |unit: &str| format!("1{}", unit.repeat(room(unit)));
    let nested = |open: &str, close: &str| {
        let n = room(&format!("{open}{close}"));
        format!("{}1{}", open.repeat(n), close.repeat(n))
    };
    for text in [
        chain(".a"),
        chain("+1"),
        chain("<1"),
        chain("[1]"),
        chain(".f()"),
        nested("(", ")"),
        nested("[", "]"),
        nested("{1:", "}"),
        nested("f(", ")"),
        nested("!(", ")"),
        nested("1?", ":1"),
        "[".repeat(TEXT_BYTES_MAX),
    ] {
        assert!(Expression::compile(&text).is_err(), "{}", &text[..8]);
    }
    // The deepest that is taken, in each of its forms, ends as well.
    let sample = Sample::new("s", "t").payload(json!({ "a": 1 }));
    for text in [format!("1{} == 1", "+1".repeat(45)), format!("{}1{} == 1", "[".repeat(45), "]".repeat(45))]
    {
        let answer = Expression::compile(&text).unwrap().evaluate(&sample.input());
        assert_eq!(answer, Ok(Answer::Bool(false)), "{text}");
    }
}

#[test]
fn the_worst_case_that_is_taken_ends_soon() {
    let items: Vec<Value> = (0..1000).map(|n| json!({ "n": n })).collect();
    let sample = Sample::new("s", "t").payload(json!({ "a": items }));
    let pair = "payload.a.all(x, payload.a.all(y, x.n + y.n >= 0))";
    let four = [pair; 4].join(" && ");
    let expression = Expression::compile(&four).unwrap();
    let input = sample.input();
    #[expect(clippy::disallowed_methods, reason = "the bound is on real time")]
    let start = std::time::Instant::now();
    assert_eq!(expression.evaluate(&input), Ok(Answer::Bool(true)));
    let took = start.elapsed();
    println!("four times two nested comprehensions over {ITEMS_MAX} of 1000 items: {took:?}");
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn what_an_expression_sees_is_cut() {
    let items: Vec<u32> = (0..300).collect();
    let sample = Sample::new("s", "t").payload(json!({ "a": items, "s": "é".repeat(40_000) }));
    let answer = |text: &str| Expression::compile(text).unwrap().evaluate(&sample.input());
    assert_eq!(answer("size(payload.a)"), Ok(Answer::Text("200".to_owned())));
    assert_eq!(answer("size(payload.s)"), Ok(Answer::Text("32768".to_owned())));
}

#[test]
fn matches_looks_at_a_bounded_amount_of_text() {
    let items: Vec<u32> = (0..200).collect();
    let sample = Sample::new("s", "t").payload(json!({ "a": items, "s": "x".repeat(60_000) }));
    let all = "payload.a.all(i, payload.a.all(j, !payload.s.matches('y')))";
    let error = Expression::compile(all).unwrap().evaluate(&sample.input()).unwrap_err();
    assert!(error.reason.contains("too much text"), "{}", error.reason);
}

#[test]
fn a_key_is_made_from_the_event() {
    let config = json!({
        "types": ["build.*"],
        "key": { "source": "ci", "external_id": "pr/${payload.pr}/${ {'a': \"}\"}.a + payload.name }$" },
    });
    let sample = Sample::new("x", "build.done").payload(json!({ "pr": 7, "name": "n" }));
    assert_eq!(decide(&config, &sample), Ok(Some(attach("ci", "pr/7/}n$"))));

    for payload in [
        json!({ "pr": "", "name": "n" }),
        json!({ "pr": null, "name": "n" }),
        json!({ "pr": [], "name": "n" }),
    ] {
        let error = decide(&config, &sample.clone().payload(payload)).unwrap_err();
        assert_eq!(error.code.as_str(), "bad_key");
    }
    let long = json!({ "pr": "x".repeat(600), "name": "n" });
    assert_eq!(decide(&config, &sample.clone().payload(long)).unwrap_err().code.as_str(), "bad_key");
    let error = decide(&config, &sample.payload(json!({}))).unwrap_err();
    assert_eq!(error.code.as_str(), "cel_error");
}

#[test]
fn without_a_template_the_events_own_key_counts() {
    let sample = Sample::new("s", "t");
    let config = json!({ "types": ["t"] });
    assert_eq!(decide(&config, &sample).unwrap_err().code.as_str(), "no_key");
    assert_eq!(decide(&config, &sample.clone().key("a", "b")), Ok(Some(attach("a", "b"))));
    assert_eq!(decide(&config, &sample.clone().addressed()), Ok(Some(Match::Addressed)));
    let explicit = json!({ "types": ["t"], "key": "event" });
    assert_eq!(decide(&explicit, &sample.addressed()).unwrap_err().code.as_str(), "no_key");
}

#[test]
fn fresh_makes_work_that_ends() {
    let sample = Sample::new("s", "t").key("a", "b");
    let wanted = |kind: &str, keys| {
        let (kind, lifecycle) = (WorkKind::known(kind), Lifecycle::Once);
        Match::Fresh { kind, lifecycle, keys, concurrency: None }
    };
    let config = json!({ "types": ["t"], "work": "fresh" });
    assert_eq!(decide(&config, &sample), Ok(Some(wanted("match.fresh", vec![]))));
    assert_eq!(decide(&config, &sample.clone().addressed()), Ok(None));
    let config = json!({ "types": ["t"], "work": "fresh", "key": "event", "kind": "ci.run" });
    assert_eq!(decide(&config, &sample), Ok(Some(wanted("ci.run", vec![key("a", "b")]))));
}

#[test]
fn what_runs_alone_and_what_goes_on_after_an_end_is_said_by_the_route() {
    let sample = Sample::new("s", "t").key("a", "b").payload(json!({ "env": "live", "none": "" }));
    let config = json!({
        "types": ["t"], "concurrency": "deploy/${payload.env}", "reopen": ["completed", "cancelled"],
    });
    let wanted = Match::Attach {
        keys: vec![key("a", "b")],
        kind: WorkKind::known("match.keyed"),
        lifecycle: Lifecycle::Standing,
        concurrency: Some(ConcurrencyKey::known("deploy/live")),
        reopens: vec![End::Completed, End::Cancelled],
    };
    assert_eq!(decide(&config, &sample), Ok(Some(wanted)));
    assert_eq!(
        prepare(&config).leads_to(),
        "one standing Work per key, of kind `match.keyed`, one at a time under a concurrency key that it makes, and to \
         a new one when that is completed or cancelled"
    );
    let config = json!({ "types": ["t"], "work": "fresh", "concurrency": "deploy" });
    let Ok(Some(Match::Fresh { concurrency, .. })) = decide(&config, &sample) else { panic!("it is fresh") };
    assert_eq!(concurrency, Some(ConcurrencyKey::known("deploy")));
    let empty = json!({ "types": ["t"], "concurrency": "${payload.none}" });
    assert_eq!(decide(&empty, &sample).unwrap_err().code.as_str(), "bad_key");
    for (wrong, count) in [
        (json!({ "types": ["t"], "reopen": ["ready", "failed", "failed"] }), 2),
        (json!({ "types": ["t"], "work": "fresh", "reopen": ["failed"] }), 1),
        (json!({ "types": ["t"], "work": "addressed", "concurrency": "x", "reopen": ["failed"] }), 2),
        (json!({ "types": ["t"], "concurrency": "${" }), 1),
    ] {
        assert_eq!(problems(&wrong).len(), count, "{wrong}");
    }
}

#[test]
fn addressed_takes_only_what_is_addressed() {
    let config = json!({ "types": ["t"], "work": "addressed" });
    let sample = Sample::new("s", "t").key("a", "b");
    assert_eq!(decide(&config, &sample), Ok(None));
    assert_eq!(decide(&config, &sample.addressed()), Ok(Some(Match::Addressed)));
    let config = json!({ "types": ["t"], "work": "addressed", "key": "event", "kind": "x" });
    assert_eq!(problems(&config).len(), 2);
}

#[test]
fn every_problem_is_named_and_no_value_repeated() {
    let config = json!({
        "types": ["Hunter2"], "sources": 7, "wen": "hunter2", "when": "hunter2 ===", "work": "hunter2",
        "kind": "hunter 2", "key": { "source": "a\nhunter2", "external_id": "${hunter2}", "extra": 1 },
    });
    let found = problems(&config);
    let paths: Vec<&str> = found.iter().map(|problem| problem.split('`').nth(1).unwrap()).collect();
    assert_eq!(
        paths,
        ["wen", "types[0]", "sources", "when", "work", "kind", "key.extra", "key.external_id"],
        "{found:#?}"
    );
    assert!(found[0].ends_with("did you mean `when`?"));
    assert!(!format!("{found:?}").to_lowercase().contains("hunter"), "{found:#?}");
    assert_eq!(problems(&json!({})), ["must say what it takes, by `types`, `sources` or `when`"]);
    assert_eq!(
        problems(&json!({ "types": ["t"], "key": { "source": "a\nb", "external_id": "x" } })).len(),
        1
    );
    assert_eq!(
        problems(&json!({ "types": ["t"], "key": { "source": "a", "external_id": "x${1" } })).len(),
        1
    );
}

#[test]
fn it_describes_what_it_takes() {
    let route = prepare(&json!({ "types": ["a", "b.*"], "sources": ["s"], "when": "payload.x == 1" }));
    assert_eq!(route.describe(), "a, b.* from s when payload.x == 1");
    assert!(route.ignores_work());
}

#[test]
fn it_describes_what_work_it_leads_to() {
    let leads_to = |rest: &Value| {
        let mut config = json!({ "types": ["a"] });
        config.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        prepare(&config).leads_to()
    };
    assert_eq!(leads_to(&json!({})), "one standing Work per key, of kind `match.keyed`");
    assert_eq!(
        leads_to(&json!({ "key": { "source": "s", "external_id": "${payload.id}" }, "kind": "k" })),
        "one standing Work per key that it makes, of kind `k`"
    );
    assert_eq!(leads_to(&json!({ "work": "fresh" })), "a new Work for each, of kind `match.fresh`");
    assert_eq!(
        leads_to(&json!({ "work": "fresh", "key": "event", "kind": "k" })),
        "a new Work for each, of kind `k`, with a key"
    );
    assert_eq!(leads_to(&json!({ "work": "addressed" })), "the Work that it is addressed to");
}
