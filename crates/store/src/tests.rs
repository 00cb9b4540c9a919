//! Tests of an open store: its files, its clock, and what a crash leaves.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::event::Payload;
use domain::id::Sequence;
use domain::store::{EventFilter, Priority, Store, StoreError};
use domain::time::{Clock, Timestamp};
use tempfile::TempDir;

use crate::samples::{accept, delivery_ids, event};
use crate::{Faults, Location, Options, Point, open};

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.db");
    (folder, path)
}

async fn stored(store: &Store) -> Vec<String> {
    let found = store.read("test", |snapshot| snapshot.events(&EventFilter::default(), 1000)).await;
    let found: Result<Vec<_>, StoreError> = found;
    delivery_ids(&found.unwrap())
}

async fn accepted(store: &Store, name: &'static str) -> Result<bool, StoreError> {
    store.transact("test", move |tx| accept(tx, name)).await
}

fn fact(store: &Store, name: &str) -> String {
    let facts = store.backend().facts();
    facts.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("{name}: {facts:?}")).1.clone()
}

#[tokio::test]
async fn a_file_is_opened_once_at_a_time() {
    let (_folder, path) = folder();
    let location = Location::Sqlite(path);
    let first = open(&location, Options::default()).await.unwrap();
    let second = open(&location, Options::default()).await;
    assert!(matches!(second, Err(StoreError::Locked)), "{second:?}");
    first.close().await.unwrap();
    open(&location, Options::default()).await.unwrap().close().await.unwrap();
}

#[tokio::test]
async fn a_store_that_is_dropped_lets_go_of_its_file() {
    let (_folder, path) = folder();
    let location = Location::Sqlite(path);
    let store = open(&location, Options::default()).await.unwrap();
    accepted(&store, "a").await.unwrap();
    drop(store);
    let again = open(&location, Options::default()).await.unwrap();
    assert_eq!(stored(&again).await, ["a"]);
}

#[tokio::test]
async fn pragmas_are_as_durability_needs_them() {
    let (_folder, path) = folder();
    let store = open(&Location::Sqlite(path), Options::default()).await.unwrap();
    for (name, value) in [
        ("engine", "sqlite"),
        ("journal_mode", "wal"),
        ("synchronous", "2"),
        ("page_size", "4096"),
        ("wal_autocheckpoint", "0"),
    ] {
        assert_eq!(fact(&store, name), value, "{name}");
    }
    assert!(store.exclusive());
    store.close().await.unwrap();
    let closed = accepted(&store, "a").await;
    assert!(matches!(closed, Err(StoreError::Closed)), "{closed:?}");
}

#[tokio::test]
async fn the_log_is_emptied_when_it_is_large() {
    let (_folder, path) = folder();
    let options = Options { inline: true, rehearse: false, ..Options::default() };
    let store = open(&Location::Sqlite(path.clone()), options).await.unwrap();
    for number in 0..80 {
        let answer: Result<bool, StoreError> = store
            .transact("test", move |tx| {
                let event = event(tx.next_sequence(), tx.now(), &format!("delivery-{number}"));
                tx.insert_event(&event, &Payload::stored(vec![b'1'; 1 << 20]))
            })
            .await;
        assert!(answer.unwrap());
    }
    let log: u64 = fact(&store, "wal_bytes").parse().unwrap();
    assert!(log < 64 << 20, "{log}");
    assert!(std::fs::metadata(&path).unwrap().len() > 60 << 20);
    store.close().await.unwrap();
}

/// Copies a database as a crash would leave it: whatever is in its files at this moment.
fn copy(from: &Path, to: &Path) {
    for suffix in ["", "-wal"] {
        let name = |path: &Path| PathBuf::from(format!("{}{suffix}", path.display()));
        if name(from).exists() {
            std::fs::copy(name(from), name(to)).unwrap();
        }
    }
}

#[tokio::test]
async fn a_crash_leaves_what_was_committed_and_nothing_else() {
    let (folder, path) = folder();
    let faults = Arc::new(Faults::default());
    let options = Options { faults: Some(Arc::clone(&faults)), ..Options::default() };
    let store = open(&Location::Sqlite(path.clone()), options).await.unwrap();
    accepted(&store, "before").await.unwrap();
    let to = |point: Point| folder.path().join(format!("{point:?}.db"));
    let targets = [Point::Begin, Point::BeforeCommit, Point::AfterCommit].map(|point| (point, to(point)));
    let hit = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&hit);
    faults.at_points(move |point| {
        noted.lock().unwrap().push(point);
        let target = targets.iter().find(|(known, _)| *known == point).unwrap();
        copy(&path, &target.1);
    });
    accepted(&store, "after").await.unwrap();
    assert_eq!(*hit.lock().unwrap(), [Point::Begin, Point::BeforeCommit, Point::AfterCommit]);
    for (point, left) in [
        (Point::Begin, vec!["before"]),
        (Point::BeforeCommit, vec!["before"]),
        (Point::AfterCommit, vec!["before", "after"]),
    ] {
        let crashed = open(&Location::Sqlite(to(point)), Options::default()).await.unwrap();
        assert_eq!(stored(&crashed).await, left, "{point:?}");
        assert!(accepted(&crashed, "again").await.unwrap());
    }
}

#[tokio::test]
async fn sequences_follow_the_order_of_commits() {
    let (_folder, path) = folder();
    let store = open(&Location::Sqlite(path), Options::default()).await.unwrap();
    let requests = (0..200_u32).map(|number| {
        let store = store.clone();
        let name: &'static str = Box::leak(format!("delivery-{number}").into_boxed_str());
        tokio::runtime::Handle::current().spawn(async move {
            let priority = if number % 7 == 0 { Priority::High } else { Priority::Normal };
            let kept: Result<bool, StoreError> =
                store.transact_at(priority, "test", move |tx| accept(tx, name)).await;
            kept.unwrap()
        })
    });
    for request in requests.collect::<Vec<_>>() {
        assert!(request.await.unwrap());
    }
    let rows: Result<Vec<_>, StoreError> =
        store.read("test", |snapshot| snapshot.feed_after(Sequence::ZERO, 1000)).await;
    let rows = rows.unwrap();
    assert_eq!(rows.len(), 200);
    assert!(rows.windows(2).all(|pair| pair[0].sequence < pair[1].sequence && pair[0].at <= pair[1].at));
}

/// A clock that stands still at a wall time.
#[derive(Debug)]
pub(crate) struct Still(pub(crate) Timestamp);

impl Clock for Still {
    fn wall(&self) -> Timestamp {
        self.0
    }

    fn boot(&self) -> Duration {
        Duration::ZERO
    }
}

#[tokio::test]
async fn a_clock_that_stepped_back_far_is_accepted_and_told() {
    let (_folder, path) = folder();
    let at = async |seconds: i64| {
        let clock = Arc::new(Still(Timestamp::from_micros(seconds * 1_000_000)));
        let store =
            open(&Location::Sqlite(path.clone()), Options { clock, ..Options::default() }).await.unwrap();
        let now: Result<Timestamp, StoreError> = store
            .transact("test", move |tx| {
                tx.charge_root(domain::id::EventId::from_number(1), seconds, 128)?;
                Ok(tx.now())
            })
            .await;
        let told = store.backend().facts().iter().any(|(name, _)| *name == "clock_stepped_back_seconds");
        (now.unwrap().as_seconds(), told)
    };
    assert_eq!(at(1000).await, (1000, false));
    // A few seconds are clamped; more is what the world says now, from here on.
    assert_eq!(at(996).await, (1000, false));
    assert_eq!(at(500).await, (500, true));
    assert_eq!(at(501).await, (501, false));
}

#[tokio::test]
async fn inline_bodies_run_on_the_calling_thread() {
    let (_folder, path) = folder();
    for location in [Location::Memory, Location::Sqlite(path)] {
        let store = open(&location, Options { inline: true, ..Options::default() }).await.unwrap();
        let here = std::thread::current().id();
        let there: Result<_, StoreError> = store
            .transact("test", |tx| {
                accept(tx, "a")?;
                Ok(std::thread::current().id())
            })
            .await;
        assert_eq!(there.unwrap(), here);
        assert_eq!(stored(&store).await, ["a"]);
        store.close().await.unwrap();
    }
}
