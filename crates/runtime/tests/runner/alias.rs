//! Aliases: what another Work's key sees becomes news of the Works that subscribed to it, once for each.

use std::sync::Arc;

use domain::alias::{SCAN_MAX, Subscribe, SubscribeRefusal, Subscription};
use domain::event::Event;
use domain::id::{EventId, Sequence, WorkId};
use domain::outcome::Outcome;
use domain::route::{ActivePolicy, CheckpointOutcome};
use domain::scope::EffectiveScope;
use domain::store::kv::ALIASES;
use domain::store::{EventFilter, KvRow};
use domain::text::{EventType, ScopeName, SubscriptionId};
use runtime::{Progress, Stage, SubscribeError};
use serde_json::{Value, json};

use super::wait::{of_type, running, winner};
use super::world::{World, key, rung, scope};

const ALIAS: &str = "test.alias";

fn asked(id: &str, work: WorkId, own: &str, watched: &str, after: Sequence) -> Subscribe {
    Subscribe {
        id: SubscriptionId::known(id),
        work,
        watched: key(watched),
        types: Vec::new(),
        own: key(own),
        becomes: EventType::known(ALIAS),
        after,
    }
}

fn refusal(answer: Result<Subscription, SubscribeError>) -> SubscribeRefusal {
    match answer {
        Err(SubscribeError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

async fn last(world: &World) -> Sequence {
    let newest = |tx: &mut dyn domain::store::Snapshot| tx.events(&EventFilter::default(), 1);
    world.runtime.store().read("test", newest).await.unwrap()[0].sequence
}

async fn id_of(world: &World, key_id: &str) -> WorkId {
    world.owner(key_id).await.expect("somebody owns it").id
}

async fn subscription(world: &World, id: &str) -> Option<Subscription> {
    let id = SubscriptionId::known(id);
    world.runtime.store().read("test", move |tx| tx.subscription(&id)).await.unwrap()
}

/// Aliases, oldest first.
async fn aliases(world: &World) -> Vec<Event> {
    let mut events = world.events(ALIAS).await;
    events.reverse();
    events
}

async fn payload(world: &World, event: &Event) -> Value {
    let sequence = event.sequence;
    let payload = world.runtime.store().read("test", move |tx| tx.payload(sequence)).await.unwrap();
    serde_json::from_slice(payload.unwrap().as_bytes()).unwrap()
}

/// Subscribes the Work of a key to another key, from now on.
async fn subscribe(world: &World, id: &str, own: &str, watched: &str) -> Subscription {
    let asked = asked(id, id_of(world, own).await, own, watched, last(world).await);
    world.runtime.subscribe(asked).await.unwrap()
}

/// A world with Works of these keys, none of which has begun.
async fn with_works(keys: &[&str]) -> World {
    let world = World::new().await;
    with(world, keys).await
}

async fn with(mut world: World, keys: &[&str]) -> World {
    for key_id in keys {
        world.deliver(&format!("opens {key_id}"), key_id).await;
    }
    world.stages_route_only().await;
    world
}

/// Another process over the same store, once this one has ended.
async fn restarted(world: World) -> World {
    let (store, clock, executor) =
        (world.runtime.store().clone(), Arc::clone(&world.clock), Arc::clone(&world.executor));
    let texts = world.texts();
    world.runtime.shutdown().await.unwrap();
    World::over(store, clock, executor, texts).await
}

async fn configure(world: &World, scopes: Vec<EffectiveScope>) {
    let text = format!("text {}", world.texts().lock().unwrap().len());
    let scopes = scopes.into_iter().map(|scope| (scope.name.clone(), Arc::new(scope))).collect();
    world.texts().lock().unwrap().insert(text.clone(), scopes);
    world.runtime.apply(text, String::new()).await.unwrap();
}

fn named(name: &str, reads: &[&str]) -> EffectiveScope {
    let name = ScopeName::known(name);
    EffectiveScope {
        name: name.clone(),
        lineage: vec![name],
        read_scopes: reads.iter().map(|name| ScopeName::known(name)).collect(),
        ..scope(ActivePolicy::Queue, 16)
    }
}

/// What comes first: the subscription, or that the news is routed or at least accepted.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Order {
    Subscribed,
    Routed,
    Accepted,
}

#[tokio::test]
async fn news_of_anothers_key_wakes_whoever_subscribed_in_either_order() {
    for order in [Order::Subscribed, Order::Routed, Order::Accepted] {
        let (mut world, run) = running(false).await;
        world.deliver("opens o", "o").await;
        world.run().await;
        let after = last(&world).await;
        let asked = asked("s-1", run.work, "k", "o", after);
        world.park(run.id, of_type(ALIAS)).await;
        let wait = world.wait().await;
        if order == Order::Subscribed {
            world.runtime.subscribe(asked.clone()).await.unwrap();
        }
        let news = world.say("news", Some("o"), &json!({ "secret": "theirs" })).await;
        if order == Order::Routed {
            world.run().await;
        }
        if order != Order::Subscribed {
            let installed = world.runtime.subscribe(asked).await.unwrap();
            assert_eq!(aliases(&world).await.len(), 1, "{order:?}: in the transaction that installs it");
            assert_eq!(installed.after, last_of_key(&world, "o").await);
        }
        world.run().await;
        let made = aliases(&world).await;
        assert_eq!(made.len(), 1, "{order:?}");
        assert_eq!((made[0].causation.parent, made[0].causation.root), (Some(news), news));
        assert_eq!((made[0].causation.depth, made[0].work), (1, Some(run.work)));
        assert_eq!((made[0].key.clone(), made[0].emitted_by), (Some(key("k")), None));
        let id = news.to_string();
        let minimal = json!({ "event": id, "type": "test.happened", "source": "test" });
        assert_eq!(payload(&world, &made[0]).await, minimal, "nothing of the original's payload");
        assert_eq!(winner(&world.wait().await), Some(made[0].id), "{order:?}");
        assert_eq!(subscription(&world, "s-1").await.unwrap().wait, Some(wait.id));
        // The key stays its owner's, and the news stays the owner's too.
        assert_ne!(id_of(&world, "o").await, run.work);
        let keys = world.runtime.store().read("test", move |tx| tx.keys_of(run.work)).await.unwrap();
        assert_eq!(keys, [key("k")]);
        assert_eq!(world.pending(id_of(&world, "o").await).await, [news]);
        // Why the next run started leads back to what happened to the other Work.
        let next = world.executions().await.last().unwrap().id;
        let why = world.runtime.store().read("test", move |tx| runtime::why::why(tx, next)).await.unwrap();
        let chain: Vec<EventId> = why.unwrap().chain.iter().map(|link| link.event.id).collect();
        assert_eq!(chain, [news, made[0].id]);
    }
}

async fn last_of_key(world: &World, key_id: &str) -> Sequence {
    let filter = EventFilter { key: Some(key(key_id)), ..EventFilter::default() };
    world.runtime.store().read("test", move |tx| tx.events(&filter, 1)).await.unwrap()[0].sequence
}

#[tokio::test]
async fn an_event_is_translated_once_whatever_is_repeated() {
    let mut world = with_works(&["k", "o"]).await;
    let first = subscribe(&world, "s-1", "k", "o").await;
    world.deliver("news", "o").await;
    world.run().await;
    assert_eq!(aliases(&world).await.len(), 1);
    let moved = subscription(&world, "s-1").await.unwrap();
    assert!(moved.after > first.after, "its checkpoint moved with the alias");
    // A delivery that comes again, an installation that comes again.
    world.deliver("news", "o").await;
    let again = asked("s-1", first.work, "k", "o", first.after);
    assert_eq!(world.runtime.subscribe(again.clone()).await.unwrap(), moved);
    world.run().await;
    assert_eq!(aliases(&world).await.len(), 1);
    // Even with every checkpoint lost, the alias is known by its identity.
    let lost = Subscription { after: first.after, ..moved.clone() };
    let lose = move |tx: &mut dyn domain::store::Tx| {
        tx.update_subscription(&lost)?;
        let row = KvRow { key: "observed".to_owned(), body: b"0".to_vec(), at: tx.now() };
        tx.put_kv(ALIASES, &row)
    };
    world.runtime.store().transact("test", lose).await.unwrap();
    let mut world = restarted(world).await;
    assert_eq!(world.stages.alias.step().await.unwrap(), Progress::Advanced);
    assert_eq!(aliases(&world).await.len(), 1);
    assert_eq!(subscription(&world, "s-1").await.unwrap().after, moved.after);
    let other = Subscribe { watched: key("p"), ..again.clone() };
    assert_eq!(refusal(world.runtime.subscribe(other).await), SubscribeRefusal::Taken);
    let id = SubscriptionId::known("s-1");
    assert!(world.runtime.unsubscribe(id.clone()).await.unwrap());
    assert!(!world.runtime.unsubscribe(id).await.unwrap(), "it ends once");
    world.deliver("more", "o").await;
    world.run().await;
    assert_eq!(aliases(&world).await.len(), 1, "what ended makes nothing");
    assert_eq!(refusal(world.runtime.subscribe(again).await), SubscribeRefusal::Over);
}

#[tokio::test]
async fn a_restart_between_an_event_and_its_alias_loses_nothing() {
    let mut world = with_works(&["k", "o"]).await;
    subscribe(&world, "s-1", "k", "o").await;
    let news = world.deliver("news", "o").await;
    world.stages_route_only().await;
    assert!(aliases(&world).await.is_empty());
    let mut world = restarted(world).await;
    world.run().await;
    let parents: Vec<_> = aliases(&world).await.iter().map(|alias| alias.causation.parent).collect();
    assert_eq!(parents, [Some(news)]);
    // Whatever nobody watches is passed over, and the place is kept now and then.
    let place = async |world: &World| {
        let row = world.runtime.store().read("test", |tx| tx.kv(ALIASES, "observed")).await.unwrap();
        serde_json::from_slice::<i64>(&row.unwrap().body).unwrap()
    };
    let before = place(&world).await;
    for number in 0..600 {
        world.deliver(&format!("noise {number}"), "x").await;
    }
    assert_eq!(world.stages.alias.step().await.unwrap(), Progress::Advanced);
    assert_eq!(place(&world).await, before, "it is not written for every page");
    while world.stages.alias.step().await.unwrap() == Progress::Advanced {}
    assert!(place(&world).await > before + 512);
    let behind = world.deliver("behind the noise", "o").await;
    world.stages.alias.step().await.unwrap();
    assert_eq!(aliases(&world).await.last().unwrap().causation.parent, Some(behind));
}

#[tokio::test]
async fn many_dependents_have_an_alias_each() {
    let keys: Vec<String> = (0..70).map(|number| format!("k{number}")).collect();
    let named: Vec<&str> = keys.iter().map(String::as_str).chain(["o"]).collect();
    let mut world = with_works(&named).await;
    for own in &keys {
        subscribe(&world, &format!("s/{own}"), own, "o").await;
    }
    world.deliver("news", "o").await;
    assert_eq!(world.stages.alias.step().await.unwrap(), Progress::Advanced);
    assert_eq!(aliases(&world).await.len(), 64, "a step is bounded");
    while world.stages.alias.step().await.unwrap() == Progress::Advanced {}
    let mut carried: Vec<_> = aliases(&world).await.into_iter().filter_map(|alias| alias.key).collect();
    carried.sort();
    carried.dedup();
    assert_eq!(carried.len(), 70, "one on a key of each");
}

#[tokio::test]
async fn a_scope_learns_only_of_scopes_that_it_may_read() {
    let world = World::new().await;
    let scopes = |reads: &[&str]| vec![named("main", &[]), named("other", reads), named("stranger", &[])];
    configure(&world, scopes(&["main"])).await;
    let mut world = with(world, &["o"]).await;
    for (key_id, name) in [("r", "other"), ("x", "stranger")] {
        let delivery = world.delivery(&format!("opens {key_id}"), Some(key_id), &json!({}));
        let scope = ScopeName::known(name);
        world.accept(domain::delivery::Delivery { scope, ..delivery }).await.unwrap();
    }
    world.stages_route_only().await;
    let stranger = asked("s-x", id_of(&world, "x").await, "x", "o", last(&world).await);
    let refused = refusal(world.runtime.subscribe(stranger).await);
    assert!(matches!(refused, SubscribeRefusal::NotAuthorized { .. }), "{refused:?}");
    assert!(refused.to_string().contains("`read_scopes` of `stranger`"), "{refused}");
    assert_eq!(subscription(&world, "s-x").await, None, "nothing has changed");
    subscribe(&world, "s-r", "r", "o").await;
    let told = world.deliver("told", "o").await;
    world.run().await;
    assert_eq!(aliases(&world).await[0].scope.as_str(), "other", "it is an Event of the reader's scope");
    // A right that is taken away holds for what is accepted and not translated yet.
    world.deliver("untold", "o").await;
    configure(&world, scopes(&[])).await;
    world.run().await;
    configure(&world, scopes(&["main"])).await;
    let again = world.deliver("told again", "o").await;
    world.run().await;
    let parents: Vec<_> = aliases(&world).await.iter().map(|alias| alias.causation.parent).collect();
    assert_eq!(parents, [Some(told), Some(again)]);
}

#[tokio::test]
async fn a_work_that_has_ended_learns_nothing() {
    let mut world = with_works(&["k", "o"]).await;
    world.say("opens c", Some("c"), &json!({ "once": true })).await;
    world.run().await;
    subscribe(&world, "s-k", "k", "o").await;
    subscribe(&world, "s-c", "c", "o").await;
    // Accepted before the end, and not yet translated.
    world.deliver("news", "o").await;
    world.runtime.cancel(id_of(&world, "k").await).await.unwrap();
    let work = id_of(&world, "c").await;
    let executions = world.executions().await;
    let run = executions.iter().find(|run| run.work == work).expect("it runs").id;
    world.executor.end(run, domain::outcome::TurnResult::of(Outcome::Completed));
    world.settle_tasks().await;
    world.stages.complete.step().await.unwrap();
    assert!(world.work(work).await.state.is_terminal());
    for id in ["s-k", "s-c"] {
        assert!(subscription(&world, id).await.unwrap().ended_at.is_some(), "{id} ended with its Work");
    }
    world.run().await;
    world.deliver("more news", "o").await;
    world.run().await;
    assert!(aliases(&world).await.is_empty());
    let late = asked("s-l", work, "c", "o", Sequence::ZERO);
    assert_eq!(refusal(world.runtime.subscribe(late).await), SubscribeRefusal::TerminalWork(work));
}

#[tokio::test]
async fn an_alias_that_its_chain_refuses_is_recorded_and_stops_there() {
    let mut declared = scope(ActivePolicy::Queue, 16);
    declared.settings.causal_max_depth = 1;
    let mut world = with(World::with(declared).await, &["a", "b"]).await;
    // Each learns of the other, so that news would go round for ever.
    subscribe(&world, "s-a", "a", "b").await;
    subscribe(&world, "s-b", "b", "a").await;
    world.deliver("news", "a").await;
    world.run().await;
    let made = aliases(&world).await;
    assert_eq!(made.iter().filter_map(|alias| alias.key.clone()).collect::<Vec<_>>(), [key("b")]);
    let rejections = world.rejections().await;
    let refused = format!("core.alias/s-a/{}", made[0].id);
    let (_key, body) = rejections.iter().find(|(key, _)| *key == refused).expect("it is recorded");
    assert_eq!((&body["code"], &body["parent"]), (&json!("depth_limit"), &json!(made[0].id)));
    assert!(subscription(&world, "s-a").await.unwrap().after >= made[0].sequence, "it is observed");
    world.deliver("other news", "b").await;
    world.run().await;
    assert_eq!(aliases(&world).await.len(), 2, "another chain has room of its own");
}

#[tokio::test]
async fn an_installation_looks_back_only_so_far() {
    let world = with_works(&["k", "o"]).await;
    for number in 0..SCAN_MAX {
        world.deliver(&format!("news {number}"), "o").await;
    }
    let work = id_of(&world, "k").await;
    let refused = refusal(world.runtime.subscribe(asked("s", work, "k", "o", Sequence::ZERO)).await);
    assert_eq!(refused, SubscribeRefusal::Behind { after: Sequence::ZERO });
    assert_eq!(subscription(&world, "s").await, None);
    assert!(aliases(&world).await.is_empty());
    let newest = last(&world).await;
    let first = world.runtime.store().read("test", |tx| tx.events_of_key(&key("o"), Sequence::ZERO, 1)).await;
    let after = first.unwrap()[0].sequence;
    let installed = world.runtime.subscribe(asked("s", work, "k", "o", after)).await.unwrap();
    assert_eq!(installed.after, newest, "all of them were looked at");
    assert_eq!(aliases(&world).await.len(), 200, "as many as a list shows");
}

#[tokio::test]
async fn nothing_is_rung_for_while_nobody_subscribes() {
    let mut world = with_works(&["k", "o"]).await;
    assert_eq!(world.stages.alias.step().await.unwrap(), Progress::Idle { due_at: None });
    let _before = rung(&world.runtime.hints().alias).await;
    world.deliver("unheard", "o").await;
    assert!(!rung(&world.runtime.hints().alias).await);
    subscribe(&world, "s-1", "k", "o").await;
    assert!(rung(&world.runtime.hints().alias).await);
    let heard = world.deliver("heard", "o").await;
    assert!(rung(&world.runtime.hints().alias).await);
    while world.stages.alias.step().await.unwrap() == Progress::Advanced {}
    assert!(rung(&world.runtime.hints().route).await, "an alias is to be routed");
    world.run().await;
    let alias = aliases(&world).await.remove(0);
    assert_eq!(alias.causation.parent, Some(heard));
    assert_eq!(world.outcome(alias.id).await, Some(CheckpointOutcome::Routed));
    // Others have gone on since: what a later subscription is not for is not looked at again.
    world.runtime.unsubscribe(SubscriptionId::known("s-1")).await.unwrap();
    world.deliver("between", "o").await;
    subscribe(&world, "s-2", "k", "o").await;
    while world.stages.alias.step().await.unwrap() == Progress::Advanced {}
    assert_eq!(aliases(&world).await.len(), 1);
}
