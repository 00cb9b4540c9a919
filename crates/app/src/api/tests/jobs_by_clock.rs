//! Scheduled jobs on a clock in the test's hand: what runs, and what is only told.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::scope::SecretRef;
use domain::store::EventFilter;
use domain::text::EventType;
use domain::time::{Clock, Timestamp};
use extension::{BoxFuture, Secret, SecretError};
use runtime::{NoTokens, Progress, Runtime, SecretSource, Stage as _, Stages};
use serde_json::Value;
use store::Location;

use super::options;
use crate::config::{Format, load};

/// A clock that stands still until it is moved forward.
#[derive(Debug)]
struct HandClock(Mutex<(Timestamp, Duration)>);

impl HandClock {
    fn move_to(&self, at: Timestamp) {
        let mut now = self.0.lock().unwrap();
        let by = at.since(now.0);
        *now = (at, now.1 + by);
    }
}

impl Clock for HandClock {
    fn wall(&self) -> Timestamp {
        self.0.lock().unwrap().0
    }

    fn boot(&self) -> Duration {
        self.0.lock().unwrap().1
    }
}

/// Nobody asks it.
#[derive(Debug)]
struct NoSecrets;

impl SecretSource for NoSecrets {
    fn resolve<'a>(
        &'a self,
        _name: &'a str,
        _reference: &'a SecretRef,
    ) -> BoxFuture<'a, Result<Secret, SecretError>> {
        Box::pin(std::future::pending())
    }
}

/// A runtime with one job, that stands still.
struct World {
    clock: Arc<HandClock>,
    runtime: Runtime,
    stages: Stages,
    _directory: tempfile::TempDir,
}

impl World {
    /// A world that begins at a moment, with a job `report`.
    async fn with(job: &str, begins: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (all, _fake) = options(directory.path());
        let at = Timestamp::parse(begins).unwrap();
        let clock = Arc::new(HandClock(Mutex::new((at, Duration::from_secs(1000)))));
        let shared: Arc<dyn Clock> = Arc::<HandClock>::clone(&clock);
        let own = store::Options { clock: shared, inline: true, ..store::Options::default() };
        let store = store::open(&Location::Memory, own).await.unwrap();
        let registry = all.extensions.registry();
        let known = all.extensions;
        let runtime_options = runtime::Options {
            read_scopes: Arc::new(move |text| {
                let loaded = load(text, Format::Toml, &known).map_err(|problems| format!("{problems:?}"))?;
                Ok(loaded.scopes)
            }),
            secrets: Arc::new(NoSecrets),
            tokens: Arc::new(NoTokens),
            look_again: None,
        };
        let (runtime, stages) = Runtime::new(store, registry, runtime_options);
        runtime.prepare().await.unwrap();
        let text = format!(
            "[[scopes]]\nname = \"main\"\n[[scopes.extensions]]\nname = \"jobs\"\ntype = \"schedule\"\n\
             [scopes.extensions.config]\nnamespace = \"schedule/main\"\n\
             [[scopes.extensions.config.jobs]]\nname = \"report\"\n{job}\n"
        );
        runtime.apply(text, "digest".to_owned()).await.unwrap();
        let mut world = Self { clock, runtime, stages, _directory: directory };
        assert!(world.at(begins).await.is_empty(), "a new job waits");
        world
    }

    /// Goes on to a moment. The labels of everything that was published until then, oldest first.
    async fn at(&mut self, moment: &str) -> Vec<String> {
        self.clock.move_to(Timestamp::parse(moment).unwrap());
        while self.stages.recur.step().await.unwrap() == Progress::Advanced {}
        let event_type = Some(EventType::known("schedule.slot"));
        let filter = EventFilter { event_type, ..EventFilter::default() };
        let store = self.runtime.store();
        let events = store.read("test", move |tx| tx.events(&filter, 100)).await.unwrap();
        let mut labels = Vec::new();
        for event in events {
            let payload = store.read("test", move |tx| tx.payload(event.sequence)).await.unwrap().unwrap();
            let payload: Value = serde_json::from_slice(payload.as_bytes()).unwrap();
            labels.push((event.sequence, payload["label"].as_str().unwrap().to_owned()));
        }
        labels.sort();
        labels.into_iter().map(|(_sequence, label)| label).collect()
    }

    /// What the newest firing told.
    async fn told(&self) -> Value {
        let told = self.runtime.store().read("test", |tx| {
            let timer = tx.recurrences(None, 1)?.pop().expect("the job has a timer");
            tx.firings(timer.id, 1)
        });
        serde_json::from_slice(&told.await.unwrap().pop().expect("it fired").told).unwrap()
    }
}

#[tokio::test]
async fn a_slot_that_was_missed_runs_within_six_hours_and_is_told_afterwards() {
    let mut world = World::with("at = [\"09:30\"]", "2026-03-01T09:00:00Z").await;
    assert_eq!(world.at("2026-03-01T15:29:59Z").await, ["at 2026-03-01 09:30 UTC"]);
    assert_eq!(world.told().await["late_seconds"], 6 * 3600 - 1);
    let mut world = World::with("at = [\"09:30\"]", "2026-03-01T09:00:00Z").await;
    assert!(world.at("2026-03-01T15:30:00Z").await.is_empty(), "exactly six hours are too late");
    let told = world.told().await;
    assert_eq!((&told["ran"], &told["missed"][0]["reason"]), (&Value::Null, &"too_late".into()));
    assert_eq!(told["missed"][0]["first"], "2026-03-01 09:30 UTC");
    assert_eq!(world.at("2026-03-02T09:30:00Z").await, ["at 2026-03-02 09:30 UTC"], "and it goes on");
}

#[tokio::test]
async fn three_days_asleep_are_one_run_and_the_rest_is_told() {
    let mut world = World::with("at = [\"09:30\"]", "2026-03-01T09:00:00Z").await;
    assert_eq!(world.at("2026-03-04T10:00:00Z").await, ["at 2026-03-04 09:30 UTC"]);
    let told = world.told().await;
    assert_eq!((&told["missed"][0]["reason"], &told["missed"][0]["count"]), (&"older".into(), &3.into()));
}

#[tokio::test]
async fn a_time_that_the_clocks_repeat_runs_once_and_one_that_they_skip_not_at_all() {
    let job = "cron = \"30 1 * * *\"\ntime_zone = \"Europe/London\"";
    let mut world = World::with(job, "2026-10-24T12:00:00Z").await;
    let once = ["cron 2026-10-25 01:30 Europe/London"];
    assert_eq!(world.at("2026-10-25T00:30:00Z").await, once);
    assert_eq!(world.at("2026-10-25T01:30:00Z").await, once, "the second 01:30");
    assert_eq!(world.at("2026-10-26T01:30:00Z").await.len(), 2);
    let mut world = World::with(job, "2026-03-28T12:00:00Z").await;
    assert!(world.at("2026-03-29T23:59:00Z").await.is_empty(), "there is no 01:30 in that night");
    assert_eq!(world.at("2026-03-30T00:30:00Z").await, ["cron 2026-03-30 01:30 Europe/London"]);
}
