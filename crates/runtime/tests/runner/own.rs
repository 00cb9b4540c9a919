//! Several nodes on one PostgreSQL database: who runs the loops, and what only its own host may recover.

use std::sync::Arc;
use std::time::Duration;

use domain::delivery::Authority;
use domain::execution::ExecutionState;
use domain::id::EventId;
use domain::lease::LEASE;
use domain::ownership::{OWNERSHIP, OWNERSHIP_MARGIN, OWNERSHIP_RENEWAL};
use domain::route::{ActivePolicy, CheckpointOutcome};
use domain::store::{Store, StoreError, Stranded};
use extension::Recovery;
use runtime::own::Standing;
use runtime::{Progress, Runtime, Stage, StageError};
use serde_json::json;
use store::{Host, Location, Options};

use super::server::on_database;
use super::world::{Call, Double, HandClock, World, scope};

const MICROSECOND: Duration = Duration::from_micros(1);

fn just_before(end: Duration) -> Duration {
    end.saturating_sub(MICROSECOND)
}

async fn open(dsn: &str, host: &str, options: Options) -> Store {
    let host = Host { identity: host.to_owned(), label: format!("the {host}") };
    let options = Options { host: Some(host), ..options };
    store::open(&Location::Postgres(dsn.to_owned()), options).await.unwrap()
}

/// A node that is stepped by hand, at a host, by a clock.
async fn node(dsn: &str, host: &str, clock: &Arc<HandClock>, like: Option<&World>) -> World {
    let options =
        Options { clock: Arc::<HandClock>::clone(clock), own_time: true, inline: true, ..Options::default() };
    let store = open(dsn, host, options).await;
    let texts = like.map(World::texts).unwrap_or_default();
    World::over(store, Arc::clone(clock), Arc::<Double>::default(), texts).await
}

/// Two nodes at different hosts, each by a clock of its own. The first has the loops.
pub(super) async fn two_nodes(dsn: &str) -> (World, World) {
    let mut cellar = node(dsn, "cellar", &HandClock::new(), None).await;
    cellar.apply(scope(ActivePolicy::Queue, 16)).await;
    let attic = node(dsn, "attic", &HandClock::new(), Some(&cellar)).await;
    assert_eq!(cellar.runtime.claim_loops().await.unwrap(), Standing::Owner);
    assert!(matches!(attic.runtime.claim_loops().await.unwrap(), Standing::Other(_)));
    (cellar, attic)
}

async fn stranded(world: &World) -> Vec<Stranded> {
    world.runtime.store().read("test", |tx| tx.stranded(tx.now(), 9)).await.unwrap()
}

fn advance(worlds: [&World; 2], by: Duration) {
    for world in worlds {
        world.clock.advance(by);
    }
}

#[test]
fn one_of_two_nodes_routes_what_either_accepts() {
    on_database(async |dsn| {
        let (mut cellar, mut attic) = two_nodes(dsn).await;
        let here = cellar.deliver("d-1", "a").await;
        let there = attic.deliver("d-2", "b").await;
        attic.run().await;
        assert_eq!(attic.outcome(here).await, None);
        assert_eq!(attic.outcome(there).await, None);
        cellar.run().await;
        assert_eq!(attic.outcome(here).await, Some(CheckpointOutcome::Routed));
        assert_eq!(attic.outcome(there).await, Some(CheckpointOutcome::Routed));
        assert_eq!((cellar.executor.runs(), attic.executor.runs()), (2, 0));
    });
}

#[test]
fn a_dead_owners_loops_are_taken_over_when_its_lease_ends() {
    on_database(async |dsn| {
        let (mut cellar, mut attic) = two_nodes(dsn).await;
        let routed = cellar.deliver("d-1", "a").await;
        cellar.run().await;
        let left = cellar.deliver("d-2", "b").await;
        let before = attic.checkpoint(routed).await;
        drop(cellar);

        attic.clock.advance(just_before(OWNERSHIP));
        assert!(matches!(attic.runtime.claim_loops().await.unwrap(), Standing::Other(_)));
        attic.run().await;
        assert_eq!(attic.outcome(left).await, None, "the lease is live until its very end");

        attic.clock.advance(MICROSECOND);
        assert_eq!(attic.runtime.claim_loops().await.unwrap(), Standing::Owner);
        attic.run().await;
        assert_eq!(attic.outcome(left).await, Some(CheckpointOutcome::Routed));
        assert_eq!(attic.checkpoint(routed).await, before, "nothing is routed twice");
        assert_eq!(attic.executions().await.len(), 2);
        assert_eq!(attic.executor.runs(), 1);
    });
}

#[test]
fn an_owner_that_slept_through_its_lease_is_refused_and_writes_nothing() {
    on_database(async |dsn| {
        let (mut cellar, mut attic) = two_nodes(dsn).await;
        let event = cellar.deliver("d-1", "a").await;
        // Only the other node's clock moves: this one does not know that it slept.
        attic.clock.advance(OWNERSHIP);
        assert_eq!(attic.runtime.claim_loops().await.unwrap(), Standing::Owner);
        assert!(cellar.runtime.owns_loops());

        let refused = cellar.stages.route.step().await;
        assert!(matches!(refused, Err(StageError::Store(StoreError::NotOwner(_)))), "{refused:?}");
        assert_eq!(attic.outcome(event).await, None);
        assert!(!cellar.runtime.owns_loops(), "it knows now");

        attic.stages_route_only().await;
        assert_eq!(attic.outcome(event).await, Some(CheckpointOutcome::Routed));
        assert_eq!(attic.executions().await, []);
        assert_eq!(cellar.stages.schedule.step().await.unwrap(), Progress::Idle { due_at: None });
        assert_eq!(cellar.executions().await, []);
        attic.run().await;
        assert_eq!((cellar.executor.runs(), attic.executor.runs()), (0, 1));
    });
}

#[test]
fn a_claim_of_an_owner_that_slept_is_refused_at_the_higher_epoch() {
    on_database(async |dsn| {
        let (mut cellar, attic) = two_nodes(dsn).await;
        cellar.deliver("d-1", "a").await;
        cellar.stages_route_only().await;
        attic.clock.advance(OWNERSHIP);
        attic.runtime.claim_loops().await.unwrap();
        let refused = cellar.stages.schedule.step().await;
        assert!(matches!(refused, Err(StageError::Store(StoreError::NotOwner(_)))), "{refused:?}");
        assert_eq!(attic.executions().await, []);
    });
}

#[test]
fn an_owner_stops_by_its_own_clock_before_its_lease_ends() {
    on_database(async |dsn| {
        let (mut cellar, attic) = two_nodes(dsn).await;
        let event = cellar.deliver("d-1", "a").await;
        advance([&cellar, &attic], just_before(OWNERSHIP.saturating_sub(OWNERSHIP_MARGIN)));
        assert!(cellar.runtime.owns_loops());
        advance([&cellar, &attic], MICROSECOND);
        assert!(!cellar.runtime.owns_loops());
        cellar.run().await;
        assert_eq!(cellar.outcome(event).await, None);
        assert!(matches!(attic.runtime.claim_loops().await.unwrap(), Standing::Other(_)));
        // A renewal that gets through after all finds the lease live.
        assert_eq!(cellar.runtime.claim_loops().await.unwrap(), Standing::Owner);
        cellar.run().await;
        assert_eq!(cellar.outcome(event).await, Some(CheckpointOutcome::Routed));
    });
}

#[test]
fn an_owner_that_renews_keeps_the_loops() {
    on_database(async |dsn| {
        let (cellar, attic) = two_nodes(dsn).await;
        for _ in 0..6 {
            advance([&cellar, &attic], OWNERSHIP_RENEWAL);
            assert_eq!(cellar.runtime.claim_loops().await.unwrap(), Standing::Owner);
            assert!(matches!(attic.runtime.claim_loops().await.unwrap(), Standing::Other(_)));
        }
    });
}

#[test]
fn a_shutdown_leaves_the_loops_to_whoever_asks_next() {
    on_database(async |dsn| {
        let (cellar, mut attic) = two_nodes(dsn).await;
        let event = cellar.deliver("d-1", "a").await;
        cellar.runtime.shutdown().await.unwrap();
        assert_eq!(attic.runtime.claim_loops().await.unwrap(), Standing::Owner);
        attic.run().await;
        assert_eq!(attic.outcome(event).await, Some(CheckpointOutcome::Routed));
    });
}

#[test]
fn an_attempt_of_a_host_that_is_gone_is_held() {
    on_database(async |dsn| {
        let (mut cellar, mut attic) = two_nodes(dsn).await;
        cellar.deliver("d-1", "a").await;
        cellar.run().await;
        let run = cellar.executions().await[0].clone();
        drop(cellar);
        attic.clock.advance(just_before(LEASE));
        assert_eq!(stranded(&attic).await, []);
        attic.clock.advance(MICROSECOND);
        attic.runtime.claim_loops().await.unwrap();
        // Whatever its executor would say: it is not asked.
        attic.executor.on_recover(Recovery::NothingStarted);
        attic.deliver("d-2", "a").await;
        attic.run().await;
        assert_eq!(attic.execution(run.id).await, run);
        assert_eq!(attic.executor.calls(), []);
        assert_eq!(attic.executions().await.len(), 1, "nothing takes its place");
        let since = run.lease.unwrap().until;
        let host = "the cellar".to_owned();
        assert_eq!(stranded(&attic).await, [Stranded { execution: run.id, host, since }]);
    });
}

#[test]
fn a_host_that_comes_back_recovers_its_own_without_owning_the_loops() {
    on_database(async |dsn| {
        let (mut cellar, attic) = two_nodes(dsn).await;
        cellar.deliver("d-1", "a").await;
        cellar.run().await;
        let run = cellar.executions().await[0].clone();
        drop(cellar);
        attic.clock.advance(OWNERSHIP);
        attic.runtime.claim_loops().await.unwrap();

        // The same host in a new life, long before the old one's leases end.
        let mut cellar = node(dsn, "cellar", &attic.clock, Some(&attic)).await;
        assert!(matches!(cellar.runtime.claim_loops().await.unwrap(), Standing::Other(_)));
        cellar.executor.on_recover(Recovery::Alive);
        cellar.run().await;
        let adopted = attic.execution(run.id).await;
        assert_eq!((adopted.epoch, adopted.state), (run.epoch.next(), ExecutionState::Running));
        assert_eq!(adopted.lease.unwrap().owner, cellar.runtime.store().incarnation());
        let asked = [Call::Recover(run.id, adopted.epoch.number()), Call::Observe(run.id)];
        assert_eq!(cellar.executor.calls(), asked);
        assert_eq!(attic.executor.calls(), []);
    });
}

#[test]
fn a_run_that_is_cancelled_elsewhere_is_stopped_where_it_runs() {
    on_database(async |dsn| {
        let (mut cellar, attic) = two_nodes(dsn).await;
        cellar.deliver("d-1", "a").await;
        cellar.run().await;
        let run = cellar.executions().await[0].clone();
        attic.runtime.cancel(run.work).await.unwrap();
        attic.runtime.stop_unstopped().await.unwrap();
        assert_eq!(attic.executor.calls(), [], "it would find nothing here, and take that for stopped");
        assert!(attic.execution(run.id).await.unstopped);
        cellar.runtime.stop_unstopped().await.unwrap();
        assert!(cellar.executor.calls().contains(&Call::Stop(run.id)));
        assert!(!attic.execution(run.id).await.unstopped);
        assert_eq!(cellar.runtime.held().count(), 0);
    });
}

#[test]
fn a_configuration_that_was_applied_elsewhere_is_taken_up() {
    on_database(async |dsn| {
        let (mut cellar, attic) = two_nodes(dsn).await;
        cellar.apply(scope(ActivePolicy::Queue, 3)).await;
        let newest = cellar.runtime.generations().active().number;
        assert_ne!(attic.runtime.generations().active().number, newest);
        attic.runtime.follow_generation().await.unwrap();
        assert_eq!(attic.runtime.generations().active().number, newest);
    });
}

/// Waits for a fact of the database.
async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    tokio::time::timeout(Duration::from_secs(20), async {
        while !holds().await {
            looks.tick().await;
        }
    })
    .await
    .expect("it happens before long");
}

/// A node whose loops run.
struct Started {
    runtime: Runtime,
    executor: Arc<Double>,
}

async fn start(dsn: &str, host: &str, like: &World) -> Started {
    let store = open(dsn, host, Options::default()).await;
    let again = Some(Duration::from_millis(50));
    let world = World::looking(store, HandClock::new(), Arc::default(), like.texts(), again).await;
    let World { runtime, stages, executor, .. } = world;
    runtime.start(stages);
    Started { runtime, executor }
}

/// The loops themselves, on real clocks: each Event is routed once, whoever runs them at the moment.
#[test]
fn loops_change_hands_and_nothing_is_routed_twice() {
    on_database(async |dsn| {
        // It looks on, and never claims.
        let mut looker = World::looking(
            open(dsn, "garden", Options::default()).await,
            HandClock::new(),
            Arc::default(),
            Arc::default(),
            None,
        )
        .await;
        looker.apply(scope(ActivePolicy::Queue, 64)).await;
        let (cellar, attic) = (start(dsn, "cellar", &looker).await, start(dsn, "attic", &looker).await);
        let say = async |to: &Started, id: &str| {
            let delivery = looker.delivery(id, None, &json!({"fresh": true}));
            to.runtime.accept(delivery, Authority::Ingress).await.unwrap().event()
        };
        let mut events = Vec::new();
        for number in 0..12 {
            let to = if number % 2 == 0 { &cellar } else { &attic };
            events.push(say(to, &format!("d-{number}")).await);
        }
        let routed = async |events: &[EventId]| {
            let mut all = true;
            for event in events {
                all &= looker.outcome(*event).await == Some(CheckpointOutcome::Routed);
            }
            all
        };
        until(async || routed(&events).await && cellar.executor.runs() + attic.executor.runs() == 12).await;
        let (owner, other) = if cellar.runtime.owns_loops() { (cellar, attic) } else { (attic, cellar) };
        assert!(owner.runtime.owns_loops() && !other.runtime.owns_loops());
        assert_eq!(other.executor.runs(), 0);
        owner.runtime.shutdown().await.unwrap();
        events.push(say(&other, "last").await);
        until(async || routed(&events).await && other.executor.runs() == 1).await;
        assert!(other.runtime.owns_loops());
        assert_eq!(looker.executions().await.len(), 13);
        other.runtime.shutdown().await.unwrap();
    });
}
