//! What the daemon measures of itself, and what it finds in its queues.

use serde_json::{Value, json};

use super::TestDaemon;

fn level<'d>(doctor: &'d Value, name: &str) -> Option<&'d str> {
    let checks = doctor["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name)?["level"].as_str()
}

#[tokio::test]
async fn the_daemon_measures_itself() {
    let daemon = TestDaemon::start().await;
    let doctor = daemon.get_json("/v1/doctor").await;
    for name in ["memory_bytes", "database_bytes", "disk_free_bytes", "disk_size_bytes"] {
        assert!(doctor["figures"][name].as_u64().unwrap() > 0, "{name}: {doctor}");
    }
    assert!(doctor["figures"]["wal_bytes"].is_u64(), "{doctor}");
    assert_eq!(level(&doctor, "log"), Some("ok"), "{doctor}");
    assert!(level(&doctor, "disk").is_some(), "{doctor}");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn the_daemon_tells_the_release_of_its_zone_data() {
    let daemon = TestDaemon::start().await;
    let release = daemon.get_json("/v1/status").await["zone_data"].clone();
    let release = release.as_str().unwrap();
    let (year, letter) = release.split_at(4);
    assert!(year.parse::<u32>().unwrap() >= 2025 && letter.len() == 1, "{release}");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn the_oldest_of_what_is_held_is_named_with_its_reason() {
    let daemon = TestDaemon::start().await;
    // The scope runs four at once.
    for _ in 0..6 {
        daemon.emit(&json!({ "scope": "main", "type": "hang.please" })).await;
    }
    let held = |status: &Value| status["blocked"][0]["works"] == 2;
    daemon.until("/v1/status", held).await;
    let works = daemon.get_json("/v1/work?state=ready").await;
    let oldest = works["items"].as_array().unwrap().last().unwrap()["id"].clone();
    let figures = daemon.get_json("/v1/doctor").await["figures"].clone();
    assert_eq!(figures["oldest_blocked"]["id"], oldest, "{figures}");
    assert_eq!(figures["oldest_blocked"]["reason"], "scope_full:main");
    assert_eq!(figures["oldest_runnable"], Value::Null);
    let doctor = daemon.get_json("/v1/doctor").await;
    let checks = doctor["checks"].as_array().unwrap().iter().filter(|check| check["name"] == "states");
    let told: Vec<&str> = checks.map(|check| check["sentence"].as_str().unwrap()).collect();
    assert!(told[0].starts_with("4 Works run, work_") && told[0].ends_with(": a run moves each"), "{told:?}");
    assert!(told[1].starts_with(&format!("2 Works are blocked, {}", oldest.as_str().unwrap())), "{told:?}");
    daemon.running.stop().await.unwrap();
}
