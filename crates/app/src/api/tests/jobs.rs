//! Scheduled jobs in a daemon: what is configured is armed, fires, and leads to the job's one Work.

use domain::text::ScopeName;
use schedule::crontab::{self, Form};
use schedule::zone::Zone;
use serde_json::{Value, json};

use super::{CONFIG, TestDaemon};
use crate::config::{Format, load};

/// One job that runs at once and each hour, one that waits for its time, and one that is started by hand.
const JOBS: &str = r#"
[daemon]
api_listen = "127.0.0.1:0"
webhook_listen = "off"

[[scopes]]
name = "main"
[[scopes.bindings]]
name = "fake"
executor = "fake"
[[scopes.routes]]
name = "jobs"
handler = "schedule"
binding = "fake"
[[scopes.routes]]
name = "manual"
handler = "manual"
binding = "fake"
[[scopes.extensions]]
name = "jobs"
type = "schedule"
[scopes.extensions.config]
namespace = "schedule/main"
[[scopes.extensions.config.jobs]]
name = "tick"
every_minutes = 60
[[scopes.extensions.config.jobs]]
name = "yearly"
cron = "0 0 1 1 *"
[[scopes.extensions.config.jobs]]
name = "by-hand"
"#;

/// Starts a job as an operator does.
async fn start_by_hand(daemon: &TestDaemon, job: &str) {
    let key = json!({ "source": "schedule/main", "external_id": format!("job/{job}") });
    daemon.emit(&json!({ "scope": "main", "type": "schedule.run", "key": key })).await;
}

fn completed(page: &Value) -> usize {
    let items = page["items"].as_array().unwrap();
    items.iter().filter(|run| run["state"] == "completed").count()
}

#[tokio::test]
async fn an_interval_runs_at_once_and_not_again_after_a_restart() {
    let daemon = TestDaemon::start_with(JOBS).await;
    daemon.until("/v1/runs", |page| completed(page) == 1).await;
    let events = daemon.get_json("/v1/events?type=schedule.slot").await;
    assert_eq!(events["items"].as_array().unwrap().len(), 1, "a job with a time waits for it");
    let daemon = daemon.restart().await;
    // The second run of its Work is the one by hand, so that there was no other between.
    start_by_hand(&daemon, "tick").await;
    let runs = daemon.until("/v1/runs", |page| completed(page) == 2).await;
    let works: Vec<&Value> = runs["items"].as_array().unwrap().iter().map(|run| &run["work"]).collect();
    assert_eq!(works[0], works[1], "a job has one Work");
    let slots = daemon.get_json("/v1/events?type=schedule.slot").await;
    assert_eq!(slots["items"].as_array().unwrap().len(), 1);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_job_that_is_started_by_hand_leads_to_its_own_work() {
    let daemon = TestDaemon::start_with(JOBS).await;
    start_by_hand(&daemon, "by-hand").await;
    daemon.until("/v1/runs", |page| completed(page) == 2).await;
    let kinds = daemon.get_json("/v1/work").await;
    let kinds: Vec<&Value> = kinds["items"].as_array().unwrap().iter().map(|work| &work["kind"]).collect();
    assert_eq!(kinds, ["schedule.job", "schedule.job"]);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn what_an_import_writes_is_a_configuration() {
    let imported = crontab::import("30 9 * * 1-5 /bin/true\n@hourly /bin/false\n", Form::User, &Zone::utc());
    let scope = ScopeName::known("main");
    let part = crontab::toml(&imported, &scope).replace("executor = \"shell\"", "executor = \"fake\"");
    let daemon = TestDaemon::start_with(CONFIG).await;
    let text = format!("[[scopes]]\nname = \"main\"\n{part}");
    let loaded = load(&text, Format::Toml, daemon.running.daemon().extensions());
    let problems = loaded.err().unwrap_or_default();
    assert!(problems.is_empty(), "{problems:?}\n{text}");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_plan_says_which_jobs_are_due_at_once() {
    let daemon = TestDaemon::start_with(JOBS).await;
    let plan = async |text: &str| {
        std::fs::write(daemon.home().root().join("conduit.toml"), text).unwrap();
        daemon.get_json("/v1/config/plan").await["changes"].to_string()
    };
    let due = "`tick` of entry `jobs` is due at once";
    let edited = plan(&JOBS.replace("every_minutes = 60", "every_minutes = 30")).await;
    assert!(edited.contains(due), "{edited}");
    let other = plan(&JOBS.replace("0 0 1 1 *", "0 0 2 1 *")).await;
    assert!(!other.contains("due at once"), "{other}");
    daemon.running.stop().await.unwrap();
}
