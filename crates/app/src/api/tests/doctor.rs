//! What the daemon measures of itself, and what it finds in its queues.

use std::time::Duration;

use domain::event::{Causation, Event, Payload};
use domain::id::EventId;
use domain::lane::LaneId;
use domain::store::{StoreError, Unrouted};
use domain::text::{DeliveryId, EventType, ScopeName, SourceName};
use serde_json::{Value, json};

use super::TestDaemon;
use super::sessions::{Hand, start_by};

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
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn an_event_that_nothing_routes_is_found() {
    let clock = Hand::new();
    let daemon = start_by(&clock).await;
    clock.advance(Duration::from_mins(2));
    let id = EventId::from_number(7);
    // Nobody hints at what is written like this, so it stands still until a restart.
    daemon
        .running
        .daemon()
        .store()
        .transact("test", move |tx| {
            let event = Event {
                id,
                sequence: tx.next_sequence(),
                source: SourceName::known("test"),
                delivery_id: DeliveryId::known("d"),
                event_type: EventType::known("build.finished"),
                scope: ScopeName::known("main"),
                key: None,
                work: None,
                causation: Causation::root(id, domain::causal::Bounds { max_depth: 32, per_minute: 128 }),
                emitted_by: None,
                occurred_at: None,
                accepted_at: tx.now(),
            };
            tx.insert_event(&event, &Payload::null())?;
            tx.insert_unrouted(Unrouted { sequence: event.sequence, lane: LaneId::of_event(&event) })?;
            Ok::<_, StoreError>(())
        })
        .await
        .unwrap();
    let doctor = daemon.get_json("/v1/doctor").await;
    assert_eq!(doctor["figures"]["oldest_unrouted"]["id"], id.to_string(), "{doctor}");
    assert_eq!(level(&doctor, "routing"), Some("ok"), "it is new: {doctor}");
    clock.advance(Duration::from_secs(61));
    let doctor = daemon.get_json("/v1/doctor").await;
    assert_eq!(level(&doctor, "routing"), Some("warning"), "{doctor}");
    assert!(doctor.to_string().contains(&id.to_string()) && doctor["ok"] == true, "{doctor}");
    daemon.running.stop().await.unwrap();
}
