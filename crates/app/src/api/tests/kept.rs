//! What is told of content that is gone, of use that is reported, and of accounts that are used up.

use std::time::Duration;

use domain::credential::CredentialHold;
use domain::id::{Epoch, ExecutionId};
use domain::outcome::Usage;
use domain::text::{CredentialName, ReportId};
use serde_json::{Value, json};

use super::sessions::Browser;
use super::{CONFIG, TestDaemon};

/// The run of a type of Event, once it is in a state.
async fn run(daemon: &TestDaemon, event_type: &str, state: &str) -> String {
    daemon.emit(&json!({ "scope": "main", "type": event_type })).await;
    let page = daemon.until("/v1/runs", |page| page["items"][0]["state"] == state).await;
    page["items"][0]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_run_whose_content_was_released_says_so_and_keeps_its_history() {
    let daemon = TestDaemon::start().await;
    let id = run(&daemon, "build.finished", "completed").await;
    let run: ExecutionId = id.parse().unwrap();
    let path = format!("/v1/runs/{id}");
    assert_eq!(daemon.get_json(&path).await["retention"], "kept");
    let release = move |tx: &mut dyn domain::store::Tx| tx.release_content(run);
    assert!(daemon.running.daemon().store().transact("test", release).await.unwrap());
    let told = daemon.get_json(&path).await;
    assert_eq!((&told["retention"], &told["outcome"]), (&json!("released"), &json!("completed")));
    assert!(!told["artifacts"].as_array().unwrap().is_empty(), "what there was is still named");
    for gone in ["log", "artifacts/out/report.html"] {
        let reply = daemon.get(&format!("{path}/{gone}")).await;
        assert_eq!((reply.status, reply.code().as_str()), (410, "content_released"), "{gone}");
    }
    let browser = Browser::logged_in(&daemon).await;
    let page = browser.get(&daemon, &format!("/runs/{id}")).await.text();
    assert!(page.contains("were released"), "{page}");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_run_says_what_it_has_reported_of_its_use_while_it_goes_on() {
    let daemon = TestDaemon::start().await;
    let id = run(&daemon, "hang.please", "running").await;
    let usage = [Usage { unit: "tokens".to_owned(), thousandths: 1_500 }];
    let runtime = daemon.running.daemon().runtime();
    let reported = runtime.report_usage(id.parse().unwrap(), Epoch::FIRST, ReportId::known("r-1"), &usage);
    reported.await.unwrap();
    let told = daemon.get_json(&format!("/v1/runs/{id}")).await;
    assert_eq!(told["usage"], json!([{ "unit": "tokens", "thousandths": 1500 }]));
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn an_account_that_is_used_up_says_whom_it_holds_and_until_when() {
    let config =
        CONFIG.replacen("executor = \"fake\"", "executor = \"fake\"\ncredential = \"claude/team\"", 1);
    let daemon = TestDaemon::start_with(&config).await;
    let id = run(&daemon, "build.finished", "completed").await;
    assert_eq!(daemon.get_json(&format!("/v1/runs/{id}")).await["credential"], "claude/team");
    let reported_by: ExecutionId = id.parse().unwrap();
    let hold = move |tx: &mut dyn domain::store::Tx| {
        let since = tx.now();
        let until = since.after(Duration::from_hours(1));
        let credential = CredentialName::known("claude/team");
        tx.put_credential_hold(&CredentialHold { credential, until, since, reported_by })?;
        Ok::<_, domain::store::StoreError>(until)
    };
    let until = daemon.running.daemon().store().transact("test", hold).await.unwrap();
    daemon.emit(&json!({ "scope": "main", "type": "build.finished" })).await;
    let is_blocked = |page: &Value| page["items"][0]["blocked_by"] == "credential:claude/team";
    let works = daemon.until("/v1/work?state=ready", is_blocked).await;
    let needs = daemon.get_json("/v1/needs").await;
    let held = &needs["held"][0];
    assert_eq!((&held["reason"], &held["works"]), (&json!("credential:claude/team"), &json!(1)), "{needs}");
    assert_eq!(held["work"], works["items"][0]["id"]);
    let detail = held["detail"].as_str().unwrap();
    assert!(detail.contains(&until.to_string()) && detail.contains(&id), "{detail}");
    let scopes = daemon.get_json("/v1/scopes").await.to_string();
    assert!(scopes.contains("\"credential\":\"claude/team\""), "{scopes}");
    daemon.running.stop().await.unwrap();
}
