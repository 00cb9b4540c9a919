//! What is about PostgreSQL alone: several nodes on one database, and connections that are lost.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::event::{Causation, Event, Payload};
use domain::id::{EventId, Sequence};
use domain::store::{EventFilter, Store, StoreError, Tx};
use domain::text::{DeliveryId, EventType, ScopeName, SourceName};
use domain::time::Timestamp;
use store::{CommitFault, Faults, Location, Options, open};

use crate::server::{self, Database, connect};

/// Runs a test on a database of its own.
fn on_database(test: impl AsyncFnOnce(&Database)) {
    let Some(server) = server::named() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let database = server.create().await;
        test(&database).await;
        server.remove(&database).await;
    });
}

async fn node(database: &Database, options: Options) -> Store {
    open(&Location::Postgres(database.dsn.clone()), options).await.unwrap()
}

/// Accepts the Event of a delivery. Returns its sequence; none when it was accepted before.
async fn accept(store: &Store, delivery: &str) -> Result<Option<Sequence>, StoreError> {
    let id = store.ids(domain::id::IdMaker::event);
    let delivery = DeliveryId::known(delivery);
    store
        .transact("accept", move |tx| {
            let event = event(tx, id, delivery.clone());
            Ok(tx.insert_event(&event, &Payload::null())?.then_some(event.sequence))
        })
        .await
}

fn event(tx: &mut dyn Tx, id: EventId, delivery_id: DeliveryId) -> Event {
    Event {
        id,
        sequence: tx.next_sequence(),
        source: SourceName::known("test"),
        delivery_id,
        event_type: EventType::known("test.happened"),
        scope: ScopeName::known("main"),
        key: None,
        work: None,
        causation: Causation { parent: None, root: id, depth: 0 },
        emitted_by: None,
        occurred_at: None,
        accepted_at: tx.now(),
    }
}

async fn deliveries(store: &Store) -> BTreeSet<String> {
    let events: Result<Vec<Event>, StoreError> =
        store.read("list", |snapshot| snapshot.events(&EventFilter::default(), 1000)).await;
    events.unwrap().iter().map(|event| event.delivery_id.to_string()).collect()
}

/// Nodes on one database take turns: sequences are unique, and a delivery is accepted by one of them.
pub(crate) fn nodes_take_turns() {
    on_database(async |database| {
        let nodes = [node(database, Options::default()).await, node(database, Options::default()).await];
        assert_ne!(nodes[0].incarnation(), nodes[1].incarnation());
        assert!(!nodes[0].exclusive());
        let mut asked = Vec::new();
        for number in 0..60 {
            let store = nodes[number % 2].clone();
            // Each delivery comes to both.
            let delivery = format!("delivery-{}", number / 2);
            asked.push(
                tokio::runtime::Handle::current().spawn(async move { accept(&store, &delivery).await }),
            );
        }
        let mut sequences = BTreeSet::new();
        for answer in asked {
            if let Some(sequence) = answer.await.unwrap().unwrap() {
                assert!(sequences.insert(sequence), "{sequence} was given out twice");
            }
        }
        assert_eq!(sequences.len(), 30);
        assert_eq!(deliveries(&nodes[0]).await, deliveries(&nodes[1]).await);
        for node in nodes {
            node.close().await.unwrap();
        }
    });
}

/// A commit whose answer is lost is looked up: done once, whether it had happened or not.
pub(crate) fn lost_commit_is_looked_up() {
    on_database(async |database| {
        let faults = Arc::new(Faults::default());
        let store = node(database, Options { faults: Some(Arc::clone(&faults)), ..Options::default() }).await;
        for (fault, delivery) in [(CommitFault::After, "after"), (CommitFault::Before, "before")] {
            faults.fail_commit(fault);
            assert!(accept(&store, delivery).await.unwrap().is_some(), "{delivery}");
        }
        assert_eq!(deliveries(&store).await, ["after", "before"].map(str::to_owned).into());
        store.close().await.unwrap();
    });
}

/// A connection that was ended while nobody used it is made again.
pub(crate) fn ended_connections_are_made_again() {
    on_database(async |database| {
        let store = node(database, Options::default()).await;
        accept(&store, "one").await.unwrap();
        assert_eq!(deliveries(&store).await.len(), 1);
        let ended = connect(&database.dsn)
            .await
            .query(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE datname = current_database() AND application_name = 'open-conduit'",
                &[],
            )
            .await
            .unwrap();
        assert_eq!(ended.len(), 3);
        assert!(accept(&store, "two").await.unwrap().is_some());
        // Each of the readers finds out for itself.
        for _ in 0..4 {
            assert_eq!(deliveries(&store).await.len(), 2);
        }
        store.close().await.unwrap();
    });
}

/// Time is the database's.
pub(crate) fn time_is_the_databases() {
    on_database(async |database| {
        let store = node(database, Options::default()).await;
        let client = connect(&database.dsn).await;
        let theirs = async || {
            let text = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)";
            Timestamp::from_micros(client.query_one(text, &[]).await.unwrap().get(0))
        };
        let before = theirs().await;
        let ours: Result<Timestamp, StoreError> = store.transact("now", |tx| Ok(tx.now())).await;
        let after = theirs().await;
        let ours = ours.unwrap();
        assert!(before <= ours && ours <= after, "{before} {ours} {after}");
        store.close().await.unwrap();
    });
}

/// Without a runtime of their own to wait in, callers wait where they are.
pub(crate) fn inline_callers_wait() {
    on_database(async |database| {
        let store = node(database, Options { inline: true, ..Options::default() }).await;
        assert!(accept(&store, "one").await.unwrap().is_some());
        assert!(accept(&store, "one").await.unwrap().is_none());
        assert_eq!(deliveries(&store).await.len(), 1);
        store.close().await.unwrap();
    });
}
