//! How much a page weighs when there is much to show, or when what it shows was written to make it heavy.

use std::fmt::Write as _;

use serde_json::json;

use super::{ask, has, page, rows};
use crate::api::tests::{Reply, TestDaemon};
use crate::view::log::WEIGHT_MAX;

/// More bytes than lines are numbered behind.
const FAR: usize = 5 << 20;

/// The lines alone: what was reckoned is no less than what is sent.
#[track_caller]
fn is_light(part: &Reply) {
    assert!(part.text().contains("class=\"ll\""), "{}", part.text());
    assert!(part.body.len() <= WEIGHT_MAX, "{} bytes", part.body.len());
}

#[tokio::test]
async fn a_log_is_no_heavier_whatever_was_written() {
    let daemon = TestDaemon::start().await;
    daemon.emit(&json!({ "scope": "main", "type": "build.finished" })).await;
    let runs = daemon.until("/v1/runs?state=completed", |page| page["items"][0].is_object()).await;
    let run = format!("/runs/{}", runs["items"][0]["id"].as_str().unwrap());
    let log = format!("{run}/log");
    for piece in [
        "\n",
        "<\n",
        "\u{1b}[1;3;4;91m<\u{1b}[2;92m>\u{1b}[0m\n",
        "\u{1b}[1;3;4;95m<\u{1b}[2;92m>",
        "<&\"'>",
        "\u{202e}\n",
        "one line of a usual length, as a build writes very many of them\n",
        &format!("\u{1b}[31m{}\n", "<".repeat(5000)),
    ] {
        daemon.writes(piece.repeat((100 << 10) / piece.len()).as_bytes());
        page(&daemon, &run).await;
        page(&daemon, &log).await;
        for place in ["", "&from=0"] {
            is_light(&ask(&daemon, &format!("{log}?view=part{place}")).await);
        }
    }
    // So far behind the beginning, lines have no numbers.
    daemon.writes("\n".repeat(FAR).as_bytes());
    page(&daemon, &log).await;
    is_light(&ask(&daemon, &format!("{log}?view=part")).await);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_work_and_a_run_with_very_many_inputs_show_some_and_lead_to_the_rest() {
    let daemon = TestDaemon::start().await;
    // The scope is full, so that what arrives waits.
    for _ in 0..4 {
        daemon.emit(&json!({ "scope": "main", "type": "hang.please" })).await;
    }
    let is_full = |page: &serde_json::Value| page["items"].as_array().unwrap().len() == 4;
    let hanging = daemon.until("/v1/runs?state=running", is_full).await;
    let key = json!({ "source": "demo", "external_id": "k".repeat(200) });
    let kind = format!("very.{}.long", "long_".repeat(20));
    for _ in 0..150 {
        daemon.emit(&json!({ "scope": "main", "type": kind, "key": key })).await;
    }
    let waiting = |page: &serde_json::Value| page["items"][0]["state"] == "ready";
    let works = daemon.until("/v1/work?kind=manual.work", waiting).await;
    let work = works["items"][0]["id"].as_str().unwrap();
    let all_wait = |work: &serde_json::Value| work["pending"].as_array().unwrap().len() == 150;
    daemon.until(&format!("/v1/work/{work}"), all_wait).await;
    let rest = format!("among <a class=\"text\" href=\"/events?work={work}\">all Events of this Work</a>.");
    let text = page(&daemon, &format!("/work/{work}")).await;
    has(&text, &[">150, in order<", "And 100 more, ", &rest]);

    daemon.writes("\u{1b}[1;3;4;91m<\u{1b}[2;92m>\u{1b}[0m\n".repeat(10_000).as_bytes());
    for run in hanging["items"].as_array().unwrap() {
        daemon.post(&format!("/v1/work/{}/cancel", run["work"].as_str().unwrap()), &json!({})).await;
    }
    let path = format!("/v1/runs?work={work}&state=completed");
    let runs = daemon.until(&path, |page| page["items"][0].is_object()).await;
    let run = runs["items"][0]["id"].as_str().unwrap();
    let text = page(&daemon, &format!("/runs/{run}")).await;
    has(&text, &[" consumed", "And 80 more, ", &rest]);
    daemon.running.stop().await.unwrap();
}

/// A text of markup, which weighs most, as long as it may be.
fn heavy(bytes: usize) -> String {
    "<".repeat(bytes)
}

/// A configuration whose names are all as long as they may be, and whose runs wait or fail for a long reason.
fn hostile_config(scopes: usize) -> String {
    let name = |number: usize| format!("s{number}-{}", "n".repeat(128 - 6 - number.to_string().len()));
    let mut config = "[daemon]\napi_listen = \"127.0.0.1:0\"\nwebhook_listen = \"127.0.0.1:0\"\n".to_owned();
    for number in 0..scopes {
        let scope = name(number);
        let (kind, binding) = (format!("k{}", "k".repeat(62)), "b".repeat(128));
        write!(
            config,
            "[[scopes]]\nname = \"{scope}\"\n[scopes.settings]\nconcurrency = 200\n\
             [[scopes.bindings]]\nname = \"{binding}\"\nexecutor = \"fake\"\n\
             config = {{ wait = {{ types = [\"{0}\"] }} }}\n\
             [[scopes.routes]]\nname = \"{binding}\"\nhandler = \"match\"\nbinding = \"{binding}\"\n\
             config = {{ types = [\"wait.please\", \"{0}\"], kind = \"{kind}\" }}\n",
            event_type()
        )
        .unwrap();
    }
    config
}

fn event_type() -> String {
    format!("t.{}", "e".repeat(126))
}

/// More than a page of a list has.
const WORKS: usize = 55;

#[tokio::test]
async fn no_list_is_heavier_whatever_its_names_are() {
    let config = hostile_config(60);
    let daemon = TestDaemon::start_with(&config).await;
    let scope = config.split("name = \"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let keyed = async |event_type: &str| {
        for number in 0..WORKS {
            let id = format!("{}{number:04}", heavy(508));
            let key = json!({ "source": heavy(200), "external_id": id });
            let delivery = format!("{event_type}/{}{number:04}", heavy(300));
            let body = json!({ "scope": scope, "type": event_type, "key": key, "delivery_id": delivery });
            daemon.emit(&body).await;
        }
    };
    keyed("wait.please").await;
    let all = |page: &serde_json::Value| page["items"].as_array().unwrap().len() == WORKS;
    daemon.until("/v1/waits?limit=200", all).await;
    for path in ["/", "/?span=7d", "/work", "/work?state=waiting", "/events"] {
        assert_eq!(rows(&page(&daemon, path).await), 50, "{path}");
    }
    keyed(&event_type()).await;
    // And as many that fail for good: they have no key.
    for _ in 0..WORKS {
        daemon.emit(&json!({ "scope": scope, "type": event_type() })).await;
    }
    daemon.until("/v1/runs?state=completed&limit=200", all).await;
    daemon.until("/v1/events?outcome=quarantined&limit=200", all).await;
    for path in ["/", "/events", "/events?outcome=quarantined", "/work"] {
        assert_eq!(rows(&page(&daemon, path).await), 50, "{path}");
    }
    for path in ["/health", "/config", &format!("/config?scope={scope}"), "/settings"] {
        page(&daemon, path).await;
    }
    // What a row has no room for is whole where the row leads to.
    let runs = daemon.get_json("/v1/runs").await;
    let (run, work) = (&runs["items"][0]["id"], &runs["items"][0]["work"]);
    for path in [format!("/runs/{}", run.as_str().unwrap()), format!("/work/{}", work.as_str().unwrap())] {
        has(&page(&daemon, &path).await, &[&"&#60;".repeat(508)]);
    }
    daemon.running.stop().await.unwrap();
}
