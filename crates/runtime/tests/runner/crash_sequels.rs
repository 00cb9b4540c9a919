//! Crashes at every commit of what goes beyond one Work and one try: successors, replays, pauses and aliases.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::alias::Subscribe;
use domain::event::Event;
use domain::id::{EventId, WorkId};
use domain::outcome::Outcome;
use domain::route::ActivePolicy;
use domain::scope::EffectiveScope;
use domain::store::{EventFilter, WorkFilter};
use domain::text::{DeliveryId, EventType, SubscriptionId};
use domain::wait::Registration;
use serde_json::json;

use super::crash::{Crashes, at_every_commit};
use super::world::{World, key, route, scope, scope_name};

/// What a Work hears of another one's key, and by which subscription.
const ALIAS: &str = "test.alias";
const SUBSCRIPTION: &str = "s-1";
/// The key that is watched.
const WATCHED: &str = "o";

/// A scope whose one route goes on with a new Work where one has completed.
fn reopening() -> EffectiveScope {
    let mut declared = scope(ActivePolicy::Queue, 16);
    declared.routes = vec![route("told", ActivePolicy::Queue, &json!({ "reopens": ["completed"] }))];
    declared
}

async fn say(world: &mut World, crashes: &Crashes, id: &str, key_id: &str, once: bool) -> EventId {
    let event = world.say(id, Some(key_id), &json!({ "once": once })).await;
    crashes.acknowledge(event);
    world.run().await;
    event
}

/// Ends whatever runs, and what that starts.
async fn finish(world: &mut World) {
    loop {
        let runs = world.executions().await;
        let Some(next) = runs.iter().find(|run| run.state.is_going_on()) else { return };
        world.end(next.id, Outcome::Completed).await;
    }
}

async fn replay(world: &mut World, crashes: &Crashes, event: EventId, name: &str) {
    let accepted = world.runtime.replay(event, DeliveryId::known(name)).await.unwrap();
    crashes.acknowledge(accepted.event());
    world.run().await;
    finish(world).await;
}

/// A Work that ends and is succeeded twice, by news and by a replay of what began it.
async fn successors_and_replays(world: &mut World, crashes: &Crashes) {
    let first = say(world, crashes, "d-1", "a", true).await;
    finish(world).await;
    let second = say(world, crashes, "d-2", "a", true).await;
    finish(world).await;
    replay(world, crashes, first, "r-1").await;
    replay(world, crashes, second, "r-2").await;
    let generations = successors(world).await;
    assert_eq!(generations.len(), 3, "each of them happened");
}

/// A scope that is paused, hears news, and goes on.
async fn pauses(world: &mut World, crashes: &Crashes) {
    world.runtime.pause_scope(scope_name()).await.unwrap();
    crashes.pause(true);
    say(world, crashes, "p-1", "b", false).await;
    say(world, crashes, "p-2", "c", true).await;
    crashes.pause(false);
    world.runtime.resume_scope(scope_name()).await.unwrap();
    world.run().await;
    finish(world).await;
}

/// A Work that waits for what another one's key sees, before and after it has subscribed.
async fn aliases(world: &mut World, crashes: &Crashes) {
    say(world, crashes, "k-1", "k", false).await;
    let run = world.executions().await.pop().unwrap();
    let seen = say(world, crashes, "o-1", WATCHED, false).await;
    let after = world.runtime.store().read("test", move |tx| tx.event(seen)).await.unwrap().unwrap().sequence;
    say(world, crashes, "o-2", WATCHED, false).await;
    let asked = Subscribe {
        id: SubscriptionId::known(SUBSCRIPTION),
        work: run.work,
        watched: key(WATCHED),
        types: Vec::new(),
        own: key("k"),
        becomes: EventType::known(ALIAS),
        after,
    };
    world.runtime.subscribe(asked).await.unwrap();
    let types = vec![EventType::known(ALIAS)];
    let waits = Registration { types, timeout_seconds: Some(20), ..Registration::default() };
    world.park(run.id, waits).await;
    say(world, crashes, "o-3", WATCHED, false).await;
    world.clock.advance(Duration::from_secs(20));
    world.runtime.renew().await.unwrap();
    world.run().await;
    finish(world).await;
    assert_eq!(aliases_of(world).await.len(), 2, "each of them happened");
}

async fn sequels(world: &mut World, crashes: &Crashes) {
    successors_and_replays(world, crashes).await;
    pauses(world, crashes).await;
    aliases(world, crashes).await;
}

#[tokio::test]
async fn every_commit_of_a_sequel_may_be_the_last() {
    at_every_commit(reopening(), sequels, false).await;
}

#[tokio::test]
async fn every_commit_of_a_sequel_may_be_the_last_where_attempts_are_resumed() {
    at_every_commit(reopening(), sequels, true).await;
}

/// The successors, each with its predecessor.
async fn successors(world: &World) -> BTreeMap<WorkId, WorkId> {
    let read = |tx: &mut dyn domain::store::Snapshot| {
        let mut found = BTreeMap::new();
        for work in tx.works(&WorkFilter::default(), 200)? {
            found.extend(tx.succession_of(work.id)?.map(|place| (work.id, place.predecessor)));
        }
        Ok::<_, domain::store::StoreError>(found)
    };
    world.runtime.store().read("test", read).await.unwrap()
}

/// What the subscription made of the watched key's Events, by original.
async fn aliases_of(world: &World) -> Vec<(Option<EventId>, Event)> {
    let made = world.events(ALIAS).await;
    made.into_iter().map(|alias| (alias.causation.parent, alias)).collect()
}

/// What holds of successors and aliases, wherever a life was interrupted.
pub(super) async fn check(world: &World) {
    let successors = successors(world).await;
    let created = world.events("core.work.created").await;
    for (work, predecessor) in &successors {
        let told = created.iter().filter(|event| event.work == Some(*work)).count();
        assert_eq!(told, 1, "a successor and its announcement are one: {work}");
        let others = successors.values().filter(|other| *other == predecessor).count();
        assert_eq!(others, 1, "{predecessor} is succeeded once");
    }
    assert_eq!(created.len(), successors.len());

    let id = SubscriptionId::known(SUBSCRIPTION);
    let Some(subscription) =
        world.runtime.store().read("test", move |tx| tx.subscription(&id)).await.unwrap()
    else {
        return assert!(aliases_of(world).await.is_empty());
    };
    let filter = EventFilter { key: Some(key(WATCHED)), ..EventFilter::default() };
    let watched = world.runtime.store().read("test", move |tx| tx.events(&filter, 200)).await.unwrap();
    let made = aliases_of(world).await;
    for original in &watched {
        let count = made.iter().filter(|(parent, _alias)| *parent == Some(original.id)).count();
        let expected = usize::from(original.delivery_id.as_str() != "o-1");
        assert_eq!(count, expected, "{} becomes an alias once, or lies before the boundary", original.id);
        assert!(original.sequence <= subscription.after, "its checkpoint is behind what it has made");
    }
    assert_eq!(made.len(), watched.len() - 1);
}
