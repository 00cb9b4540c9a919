//! The first page: what needs a person, what ran lately, and the list.

use serde_json::{Value, json};

use super::{ask, has, page, rows};
use crate::api::tests::TestDaemon;

/// Text that would be a page's undoing if it were not escaped, in each direction.
const HOSTILE: &str = "\"'><script>alert(1)</script>\u{202e}שלום";

#[track_caller]
fn lacks(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(!text.contains(part), "`{part}` is in {text}");
    }
}

fn keyed(key: &str) -> Value {
    json!({ "scope": "main", "type": "manual.work", "key": { "source": "hook/x", "external_id": key } })
}

async fn completed(daemon: &TestDaemon, number: usize) -> Vec<Value> {
    let page = daemon
        .until("/v1/runs?state=completed", |page| page["items"].as_array().unwrap().len() == number)
        .await;
    page["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn the_first_screen_of_a_newcomer_teaches_one_command() {
    let daemon = TestDaemon::start().await;
    let text = page(&daemon, "/").await;
    has(&text, &["<h1>Runs</h1>", "No runs yet", "open-conduit events emit --scope main", ">0 runs<"]);
    has(&text, &["<div id=\"needs\" data-live></div>", "Nothing ran in this time."]);
    lacks(&text, &["Needs you", "Daemon down", "class=\"badge\"", " style="]);
    let none = page(&daemon, "/?q=what").await;
    has(&none, &["No run matches", "value=\"what\"", "Show all runs"]);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_line_says_what_ran_why_and_how_it_went() {
    let daemon = TestDaemon::start().await;
    daemon.emit(&keyed(HOSTILE)).await;
    let run = completed(&daemon, 1).await.remove(0);
    let id = run["id"].as_str().unwrap();
    let text = page(&daemon, "/").await;
    has(
        &text,
        &[
            "Completed",
            &format!("href=\"/runs/{id}\""),
            "<bdi>&#34;&#39;&#62;&#60;script&#62;alert(1)&#60;/script&#62;\\u{202e}שלום",
            "hook/x · manual.work · attempt 1 · main",
            "manual.work",
            "operator · depth 0",
            ">done<",
            ">1 run<",
            "Attempt 1 completed, ",
        ],
    );
    lacks(&text, &["<script>alert", "\u{202e}", ">Cost<"]);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn what_is_active_stands_first_and_its_bar_goes_on() {
    let daemon = TestDaemon::start().await;
    daemon.emit(&json!({ "scope": "main", "type": "hang.please" })).await;
    daemon.emit(&keyed("later")).await;
    completed(&daemon, 1).await;
    let text = page(&daemon, "/?span=1h").await;
    let list = text.split("<tbody>").nth(1).unwrap();
    assert!(list.find("hang.please").unwrap() < list.find(">later<").unwrap());
    has(&text, &["Past hour", "Attempt 1 running since ", "data-since=", "1 running", "class=\"nowline\""]);
    has(&text, &["name=\"span\" value=\"1h\""]);
    has(&page(&daemon, "/?span=7d").await, &["Past 7 days"]);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn the_list_goes_on_is_narrowed_and_keeps_what_was_asked() {
    let daemon = TestDaemon::start().await;
    for number in 0..52 {
        daemon.emit(&keyed(&format!("k-{number}"))).await;
    }
    completed_all(&daemon).await;
    let first = page(&daemon, "/?trigger_source=core.manual&span=6h").await;
    assert_eq!(rows(&first), 50);
    has(
        &first,
        &[">50 runs, and older ones<", "Active first, then newest", "value=\"core.manual\" selected"],
    );
    has(&first, &["And 44 Works more, with runs in this time."]);
    has(&page(&daemon, "/").await, &["Past hour", "And 44 Works more, with runs in this time."]);
    let older =
        first.split("rel=\"next\" href=\"").nth(1).unwrap().split('"').next().unwrap().replace("&#38;", "&");
    assert!(older.starts_with("/?trigger_source=core%2Emanual&span=6h&cursor=r"), "{older}");
    let second = page(&daemon, &older).await;
    assert_eq!(rows(&second), 2);
    has(&second, &["Newest first, from an older one", ">Newest<"]);
    assert_eq!(rows(&page(&daemon, "/?q=K-51&state=completed&scope=main").await), 1);
    for wrong in ["/?span=2h", "/?state=lost", "/?cursor=x", "/?scope=Not+A+Scope"] {
        let reply = ask(&daemon, wrong).await;
        assert_eq!(
            (reply.status, reply.header("content-type")),
            (400, "text/html; charset=utf-8"),
            "{wrong}"
        );
    }
    daemon.running.stop().await.unwrap();
}

async fn completed_all(daemon: &TestDaemon) {
    daemon
        .until("/v1/runs?limit=100&state=completed", |page| page["items"].as_array().unwrap().len() == 52)
        .await;
}

#[tokio::test]
async fn what_waits_for_a_person_is_told_here_and_counted_everywhere() {
    let daemon = TestDaemon::start().await;
    let body = json!({ "scope": "team/off", "type": "a.b", "payload": { "secret": "pay-l0ad" } });
    let event = daemon.emit(&body).await["event"].as_str().unwrap().to_owned();
    daemon.until("/v1/needs", |needs| needs["lanes_count"] == 1).await;
    let text = page(&daemon, "/").await;
    has(
        &text,
        &[
            "Needs you",
            "a.b waits, and so does what follows it",
            &format!("href=\"/events/{event}\""),
            "It is routed once scope team/off takes Events again.",
            "Accepted <time",
            "1 needs you, 0 running",
        ],
    );
    lacks(&text, &["pay-l0ad"]);
    let badge = "<span class=\"badge\"><span class=\"sr\">, needs you: </span>1</span>";
    has(&text, &[badge]);
    has(&page(&daemon, "/events").await, &[badge]);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_downtime_is_a_band_and_a_line() {
    let daemon = TestDaemon::start().await;
    daemon.emit(&json!({ "scope": "main", "type": "hang.please" })).await;
    daemon.until("/v1/runs", |page| page["items"][0]["state"] == "running").await;
    let daemon = daemon.restart().await;
    daemon.until("/v1/status", |status| status["last_downtime"]["relaunched"] == 1).await;
    let text = page(&daemon, "/").await;
    has(
        &text,
        &[
            "class=\"band\"",
            "Daemon down <time",
            "stopped in order",
            "adopted 0, launched again 1, interrupted 0",
        ],
    );
    daemon.running.stop().await.unwrap();
}
