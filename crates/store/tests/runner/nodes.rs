//! What is about PostgreSQL alone: several nodes on one database, and connections that are lost.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use domain::causal::Bounds;
use domain::event::{Causation, Event, Payload};
use domain::execution::{Execution, ExecutionState, Turn};
use domain::id::{Attempt, Epoch, EventId, ExecutionId, Generation, Incarnation, Sequence, WorkId};
use domain::lease::Lease;
use domain::store::{EventFilter, Store, StoreError, Tx};
use domain::text::{BindingName, DeliveryId, EventType, ExecutorName, ScopeName, SourceName};
use domain::time::Timestamp;
use store::{CommitFault, Faults, Host, Location, Options, open};

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
        causation: Causation::root(id, Bounds { max_depth: 32, per_minute: 128 }),
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

/// Takes the loops, if they are free.
async fn claim(store: &Store) -> bool {
    let me = store.incarnation();
    let claimed: Result<bool, StoreError> = store
        .transact("claim", move |tx| {
            let claimed = tx.ownership().claim(me, tx.now());
            if let Ok(next) = claimed {
                tx.put_ownership(next);
            }
            Ok(claimed.is_ok())
        })
        .await;
    claimed.unwrap()
}

/// Whoever owns the loops is known to every node, and one that is not takes them only when they are free.
pub(crate) fn ownership_is_seen_by_every_node() {
    on_database(async |database| {
        let nodes = [node(database, Options::default()).await, node(database, Options::default()).await];
        assert!(claim(&nodes[0]).await);
        assert!(!claim(&nodes[1]).await);
        let released: Result<(), StoreError> = nodes[0]
            .transact("release", |tx| {
                let held = tx.ownership();
                tx.put_ownership(held.release(held.tenure().unwrap()));
                Ok(())
            })
            .await;
        released.unwrap();
        assert!(claim(&nodes[1]).await);
        assert!(!claim(&nodes[0]).await);
        for node in nodes {
            node.close().await.unwrap();
        }
    });
}

/// The host called `name`.
fn at_host(name: &str) -> Options {
    let host = Host { identity: name.to_owned(), label: format!("the {name}") };
    Options { host: Some(host), ..Options::default() }
}

/// A life that could not release the loops leaves them to the next on its host at once, and to nobody else.
pub(crate) fn dead_owner_leaves_its_host_the_loops() {
    on_database(async |database| {
        let cellar = node(database, at_host("cellar")).await;
        assert!(claim(&cellar).await);
        cellar.close().await.unwrap();
        let attic = node(database, at_host("attic")).await;
        let nameless = node(database, Options::default()).await;
        assert!(!claim(&attic).await && !claim(&nameless).await);
        let cellar = node(database, at_host("cellar")).await;
        assert!(claim(&cellar).await);
        for node in [cellar, attic, nameless] {
            node.close().await.unwrap();
        }
    });
}

/// What a node can look after, and the hosts of what it cannot.
async fn looked_after(store: &Store) -> (Vec<i64>, Vec<String>, Option<Timestamp>) {
    let found: Result<_, StoreError> = store
        .read("look", |snapshot| {
            let expired = snapshot.expired(Timestamp::MAX, 9)?;
            let stranded = snapshot.stranded(Timestamp::MAX, 9)?;
            Ok((
                expired.iter().map(|execution| execution.id.number()).collect(),
                stranded.into_iter().map(|stranded| stranded.host).collect(),
                snapshot.next_expiry()?,
            ))
        })
        .await;
    found.unwrap()
}

/// An attempt belongs to the host it was inserted on, whatever becomes of the process there.
pub(crate) fn executions_belong_to_their_host() {
    on_database(async |database| {
        let cellar = node(database, at_host("cellar")).await;
        let attic = node(database, at_host("attic")).await;
        let nameless = node(database, Options::default()).await;
        for (store, number) in [(&cellar, 1), (&nameless, 2)] {
            let until = Timestamp::from_micros(number * 1000);
            let written: Result<(), StoreError> =
                store.transact("start", move |tx| tx.insert_execution(&execution(number, until))).await;
            written.unwrap();
        }
        let end = Some(Timestamp::from_micros(1000));
        let stranded = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let unnamed = "a host without a name";
        assert_eq!(looked_after(&cellar).await, (vec![1], stranded(&[unnamed]), end));
        assert_eq!(looked_after(&attic).await, (vec![], stranded(&[unnamed, "the cellar"]), None));
        cellar.close().await.unwrap();
        nameless.close().await.unwrap();
        // A new life on the same host, and one on none.
        let cellar = node(database, at_host("cellar")).await;
        assert_eq!(looked_after(&cellar).await, (vec![1], stranded(&[unnamed]), end));
        let nameless = node(database, Options::default()).await;
        assert_eq!(looked_after(&nameless).await, (vec![], stranded(&[unnamed, "the cellar"]), None));
        for node in [cellar, attic, nameless] {
            node.close().await.unwrap();
        }
    });
}

/// A parked attempt belongs to nobody's care, and then to the host that goes on with it.
pub(crate) fn resumed_execution_belongs_to_the_host_that_resumes_it() {
    on_database(async |database| {
        let cellar = node(database, at_host("cellar")).await;
        let attic = node(database, at_host("attic")).await;
        let end = Timestamp::from_micros(1000);
        let live = execution(1, end);
        let parked = Execution {
            state: ExecutionState::Parked,
            lease: None,
            turn: Turn { used: Duration::from_secs(1), ..live.turn.clone() },
            ..live.clone()
        };
        let resumed = Execution {
            epoch: Epoch::FIRST.next(),
            turn: Turn { number: 2, resumed_by: Some(EventId::from_number(5)), ..parked.turn.clone() },
            ..live.clone()
        };
        let rests = parked.clone();
        let written: Result<(), StoreError> = cellar
            .transact("start", move |tx| {
                tx.insert_execution(&live)?;
                tx.update_execution(&rests, &live)
            })
            .await;
        written.unwrap();
        for store in [&cellar, &attic] {
            assert_eq!(looked_after(store).await, (vec![], vec![], None));
        }
        let written: Result<(), StoreError> =
            attic.transact("resume", move |tx| tx.update_execution(&resumed, &parked)).await;
        written.unwrap();
        assert_eq!(looked_after(&attic).await, (vec![1], vec![], Some(end)));
        assert_eq!(looked_after(&cellar).await, (vec![], vec!["the attic".to_owned()], None));
        for node in [cellar, attic] {
            node.close().await.unwrap();
        }
    });
}

fn execution(number: i64, until: Timestamp) -> Execution {
    Execution {
        id: ExecutionId::from_number(number),
        work: WorkId::from_number(number),
        scope: ScopeName::known("main"),
        attempt: Attempt::FIRST,
        state: ExecutionState::Launching,
        epoch: Epoch::FIRST,
        lease: Some(Lease { owner: Incarnation::FIRST, until }),
        recovering: false,
        trigger: EventId::from_number(number),
        trigger_sequence: Sequence::FIRST,
        retry_of: None,
        credential: None,
        content: domain::retention::Content::Kept,
        binding: BindingName::known("job"),
        executor: ExecutorName::known("shell"),
        generation: Generation::FIRST,
        timeout: Duration::from_mins(1),
        deadline_at: None,
        handle: None,
        turn: Turn::first(EventId::from_number(number)),
        outcome: None,
        claimed_at: Timestamp::EPOCH,
        started_at: None,
        ended_at: None,
        unstopped: false,
        controls: domain::intent::Controls::NONE,
        interrupted_by: None,
        toolbelt: domain::toolbelt::Toolbelt::default(),
        workspace: None,
    }
}
