//! What is seen of Works that wait: on the interface and on the page.

use serde_json::{Value, json};

use super::TestDaemon;
use super::document::conforms;
use super::sessions::Browser;

/// A scope whose runs wait, and whose chains end where `depth` says.
fn config(wait: &str, depth: u32) -> String {
    format!(
        r#"
[daemon]
api_listen = "127.0.0.1:0"
webhook_listen = "127.0.0.1:0"
[[scopes]]
name = "main"
[scopes.settings]
causal_max_depth = {depth}
[[scopes.bindings]]
name = "waits"
executor = "fake"
config = {{ wait = {wait} }}
[[scopes.routes]]
name = "waits"
handler = "match"
binding = "waits"
config = {{ types = ["wait.please", "note.added"], kind = "test.waits" }}
"#
    )
}

async fn emit(daemon: &TestDaemon, event_type: &str) {
    let key = json!({ "source": "ci", "external_id": "a" });
    daemon.emit(&json!({ "scope": "main", "type": event_type, "key": key })).await;
}

async fn until_state(daemon: &TestDaemon, state: &str) -> Value {
    let page = daemon.until("/v1/work", |page| page["items"][0]["state"] == state).await;
    page["items"][0].clone()
}

#[tokio::test]
async fn a_work_that_waits_says_for_what_and_what_it_has_seen() {
    let wait = r#"{ types = ["build.finished"], timeout_seconds = 86400 }"#;
    let daemon = TestDaemon::start_with(&config(wait, 32)).await;
    emit(&daemon, "wait.please").await;
    let work = until_state(&daemon, "waiting").await;
    let id = work["id"].as_str().unwrap();
    emit(&daemon, "note.added").await;
    let path = format!("/v1/work/{id}");
    let shown = daemon.until(&path, |work| work["pending"][0].is_string()).await;
    conforms(&daemon.get(&path).await, "get", "/v1/work/{id}");
    assert_eq!(shown["wait"]["types"], json!(["build.finished"]));
    assert_eq!(shown["wait"]["keys"], json!([{ "source": "ci", "external_id": "a" }]));
    assert_eq!(shown["last_run"]["state"], "waiting");

    let next = shown["next"].as_str().unwrap();
    assert!(next.starts_with("It waits for build.finished on key `ci a` until "), "{next}");
    assert!(next.ends_with("; seen and not matching: note.added."), "{next}");

    let waits = daemon.get("/v1/waits").await;
    conforms(&waits, "get", "/v1/waits");
    let items = waits.json()["items"].clone();
    assert_eq!((items.as_array().unwrap().len(), &items[0]), (1, &shown["wait"]));
    for (query, count) in [
        ("scope=main", 1),
        ("scope=other", 0),
        ("key_source=ci&key_external_id=a", 1),
        ("key_source=ci&key_external_id=b", 0),
        ("state=all", 1),
    ] {
        let page = daemon.get_json(&format!("/v1/waits?{query}")).await;
        assert_eq!(page["items"].as_array().unwrap().len(), count, "{query}");
    }
    assert_eq!(daemon.get_json(&format!("/v1/waits?work={id}")).await["items"], items);
    assert_eq!(daemon.get("/v1/waits?state=odd").await.status, 400);
    assert_eq!(daemon.get("/v1/timers?cursor=w1").await.status, 400);
    let timers = daemon.get("/v1/timers").await;
    conforms(&timers, "get", "/v1/timers");
    let timer = timers.json()["items"][0].clone();
    assert_eq!((&timer["kind"], &timer["wait"]), (&json!("wait_timeout"), &items[0]["id"]));
    assert_eq!(timer["due_at"], items[0]["timeout_at"]);
    let doctor = daemon.get_json("/v1/doctor").await;
    let works = doctor["checks"].as_array().unwrap().iter().find(|check| check["name"] == "movers");
    assert!(works.is_none_or(|check| check["level"] == "ok"), "{doctor}");

    let browser = Browser::logged_in(&daemon).await;
    let page = browser.get(&daemon, &format!("/work/{id}")).await.text();
    assert!(page.contains("It waits for build.finished on key"), "{page}");
    assert!(page.contains("seen and not matching: note.added"), "{page}");

    emit(&daemon, "build.finished").await;
    daemon.until("/v1/runs", |page| page["items"][0]["state"] == "completed").await;
    let past = daemon.get_json("/v1/waits?state=all").await["items"][0].clone();
    assert_eq!(past["state"], "woken");
    assert!(past["winner"].is_string() && past["ended_at"].is_string(), "{past}");
    assert_eq!(daemon.get_json("/v1/waits").await["items"], json!([]));
    assert_eq!(daemon.get_json("/v1/timers").await["items"], json!([]), "its timer is disarmed");
    assert_eq!(daemon.get_json(&path).await["wait"], Value::Null);

    let runs = daemon.get_json("/v1/runs").await["items"].clone();
    let [second, first] = [0, 1].map(|place| runs[place]["id"].as_str().unwrap().to_owned());
    let asked = daemon.get(&format!("/v1/runs/{second}/why")).await;
    conforms(&asked, "get", "/v1/runs/{id}/why");
    let why = asked.json();
    assert_eq!(why["woken"]["wait"], past);
    assert_eq!((&why["woken"]["by"], &why["woken"]["type"]), (&json!("fact"), &json!("build.finished")));
    let sentences = why["sentences"].to_string();
    assert!(sentences.contains(&format!("{first} had waited since ")), "{why}");
    assert!(sentences.contains(" for build.finished on key `ci a` until "), "{why}");
    let page = browser.get(&daemon, &format!("/runs/{second}")).await.text();
    assert!(page.contains("The end of a Wait") && page.contains("had waited since"), "{page}");
    let why = daemon.get_json(&format!("/v1/runs/{first}/why")).await;
    assert_eq!((&why["woken"], &why["waits"]), (&Value::Null, &Value::Null), "no Wait let it begin");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_work_whose_chain_is_used_up_is_held_until_it_is_released() {
    // The timeout stands at depth one, and what bridges from it would stand at two.
    let daemon = TestDaemon::start_with(&config("{ keys = [], timeout_seconds = 1 }", 1)).await;
    emit(&daemon, "wait.please").await;
    let page = daemon.until("/v1/work", |page| page["items"][0]["hold"].is_object()).await;
    let work = &page["items"][0];
    let id = work["id"].as_str().unwrap();
    assert_eq!(work["hold"]["because"], "wake_refused");
    assert!(work["hold"]["reason"].as_str().unwrap().contains("causal_max_depth"), "{work}");
    let needs = daemon.get("/v1/needs").await;
    conforms(&needs, "get", "/v1/needs");
    assert_eq!(needs.json()["held"][0]["reason"], "held:main");

    let browser = Browser::logged_in(&daemon).await;
    let page = browser.get(&daemon, &format!("/work/{id}")).await.text();
    assert!(page.contains("It is held:") && page.contains("Release…</a>"), "{page}");
    let released = browser.submit(&daemon, &format!("/work/{id}/release"), "").await;
    assert_eq!(released.status, 303, "{}", released.text());
    daemon.until("/v1/runs", |page| page["items"][0]["state"] == "completed").await;
    let again = daemon.post(&format!("/v1/work/{id}/release"), &json!({})).await;
    assert_eq!((again.status, again.code().as_str()), (409, "work_conflict"));
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_wait_says_what_it_is_told_of_another_works_key() {
    let daemon = TestDaemon::start_with(&config(r#"{ types = ["dependency.moved"] }"#, 32)).await;
    emit(&daemon, "wait.please").await;
    let work = until_state(&daemon, "waiting").await;
    let id = work["id"].as_str().unwrap();
    assert_eq!(work["wait"]["through"], json!([]));
    let key = |id: &str| domain::event::Key {
        source: domain::text::SourceName::known("ci"),
        external_id: domain::text::ExternalId::known(id),
    };
    let asked = domain::alias::Subscribe {
        id: domain::text::SubscriptionId::known("tracker/1"),
        work: id.parse().unwrap(),
        watched: key("o"),
        types: vec![domain::text::EventType::known("build.finished")],
        own: key("a"),
        becomes: domain::text::EventType::known("dependency.moved"),
        after: domain::id::Sequence::ZERO,
    };
    daemon.running.daemon().runtime().subscribe(asked).await.unwrap();
    let waits = daemon.get("/v1/waits").await;
    conforms(&waits, "get", "/v1/waits");
    let through = waits.json()["items"][0]["through"].clone();
    assert_eq!((&through[0]["id"], through.as_array().unwrap().len()), (&json!("tracker/1"), 1));
    assert_eq!(through[0]["watches"], json!({ "source": "ci", "external_id": "o" }));
    let shown = daemon.get_json(&format!("/v1/work/{id}")).await;
    assert_eq!(shown["wait"]["through"], through);
    let next = shown["next"].as_str().unwrap();
    assert!(next.ends_with("told of build.finished on key `ci o` (subscription `tracker/1`)."), "{next}");

    // The stage makes the alias by itself, and the next run says where it comes from.
    let theirs = json!({ "source": "ci", "external_id": "o" });
    daemon.emit(&json!({ "scope": "main", "type": "build.finished", "key": theirs })).await;
    daemon.until("/v1/runs", |page| page["items"].as_array().is_some_and(|runs| runs.len() > 1)).await;
    let run = daemon.get_json("/v1/runs").await["items"][0]["id"].clone();
    let why = daemon.get_json(&format!("/v1/runs/{}/why", run.as_str().unwrap())).await;
    let types: Vec<_> = why["chain"].as_array().unwrap().iter().map(|link| link["type"].clone()).collect();
    assert_eq!(types, [json!("build.finished"), json!("dependency.moved")]);
    daemon.running.stop().await.unwrap();
}
