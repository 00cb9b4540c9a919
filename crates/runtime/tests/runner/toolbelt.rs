//! The toolbelt: what a running attempt's process may ask for, once for each call, and under its own token alone.

use domain::event::{Event, Payload};
use domain::execution::ExecutionState;
use domain::id::{EventId, ExecutionId, Sequence, WorkId};
use domain::lease::LEASE;
use domain::outcome::{Outcome, TurnResult, Usage};
use domain::route::{ActivePolicy, Fallbacks};
use domain::scope::EffectiveScope;
use domain::store::EventFilter;
use domain::text::{BindingName, CallId, EventType, ScopeName, SourceName, WorkKind};
use domain::toolbelt::{CALLS_MAX, Call, Fingerprint, Operation, Presented, Progress, RUN_SOURCE};
use domain::wait::Registration;
use domain::work::WorkState;
use extension::Recovery;
use runtime::toolbelt::{Awaited, Birth, Emission, Request, Watch};
use runtime::{Answered, CallError};
use serde_json::{Value, json};
use store::Location;

use super::engines::on_each_engine;
use super::inject::{ordering, states};
use super::world::{HandClock, World, key, open, scope};

fn id(text: &str) -> CallId {
    CallId::known(text)
}

fn emission(event_type: &str, key_id: Option<&str>) -> Emission {
    Emission {
        event_type: EventType::known(event_type),
        key: key_id.map(key),
        payload: Payload::new(&b"{\"n\":1}"[..]).unwrap(),
        cause: None,
        occurred_at: None,
    }
}

fn emit(event_type: &str, key_id: Option<&str>) -> Request {
    Request::Emit(emission(event_type, key_id))
}

fn answer(answered: &Answered) -> Value {
    serde_json::from_slice(&answered.answer).unwrap()
}

#[track_caller]
fn refused(answered: Result<Answered, CallError>) -> &'static str {
    answered.expect_err("it is refused").code()
}

/// A run of one attempt at the Work of a key, with its token.
async fn running(world: &mut World, key_id: &str) -> (WorkId, ExecutionId, Presented) {
    world.deliver(&format!("begin {key_id}"), key_id).await;
    world.run().await;
    let run = world.executions().await.last().unwrap().clone();
    (run.work, run.id, *world.executor.tokens(run.id).last().expect("it has a token"))
}

async fn all_events(world: &World) -> Vec<Event> {
    let filter = EventFilter::default();
    world.runtime.store().read("test", move |tx| tx.events(&filter, 500)).await.unwrap()
}

async fn charged(world: &World, root: EventId) -> i64 {
    let minute = domain::causal::minute_of(world.runtime.store().now());
    world.runtime.store().read("test", move |tx| tx.derived_in_minute(root, minute)).await.unwrap()
}

#[test]
fn a_token_opens_its_own_attempt_alone_and_dies_with_the_lease_and_the_epoch() {
    on_each_engine(&[scope(ActivePolicy::Queue, 16)], async |mut world: World| {
        let (work, run, token) = running(&mut world, "a").await;
        let (_other_work, other, others) = running(&mut world, "b").await;
        let context = world.runtime.context(token).await.unwrap();
        assert_eq!((context.execution.id, context.work.id), (run, work));
        assert_eq!(context.keys, [key("a")]);
        assert_eq!(context.inputs.len(), 1);
        let as_other = Presented { execution: other, ..token };
        assert_eq!(refused(world.runtime.call(as_other, id("x"), emit("a.b", None)).await), "unauthorized");
        let nobody = Presented { execution: ExecutionId::from_number(7), ..others };
        assert_eq!(world.runtime.context(nobody).await.unwrap_err().code(), "unauthorized");

        let before = all_events(&world).await.len();
        world.clock.advance(LEASE);
        assert_eq!(refused(world.runtime.call(token, id("x"), emit("a.b", None)).await), "lease_lost");
        world.executor.on_recover(Recovery::Alive);
        world.run().await;
        assert_eq!(refused(world.runtime.call(token, id("x"), emit("a.b", None)).await), "stale_epoch");
        let adopted = *world.executor.tokens(run).last().unwrap();
        assert_ne!(adopted, token, "what goes on was given another one");
        assert_eq!(all_events(&world).await.len(), before, "a refusal changes nothing");
        world.runtime.call(adopted, id("x"), emit("a.b", None)).await.unwrap();

        world.end(run, Outcome::Completed).await;
        assert_eq!(refused(world.runtime.call(adopted, id("y"), emit("a.b", None)).await), "run_ended");
        assert_eq!(world.runtime.context(adopted).await.unwrap_err().code(), "run_ended");
    });
}

#[test]
fn a_call_that_is_made_again_answers_the_same_and_does_nothing_more() {
    on_each_engine(&[scope(ActivePolicy::Queue, 16)], async |mut world: World| {
        let (work, run, token) = running(&mut world, "a").await;
        let child = Birth {
            scope: None,
            kind: WorkKind::known("child.work"),
            binding: None,
            keys: vec![key("below")],
            input: Payload::null(),
        };
        let wait = Registration { timeout_seconds: Some(60), ..Registration::default() };
        let usage = vec![Usage { unit: "usd".to_owned(), thousandths: 250 }];
        let requests = [
            ("emit", emit("report.made", Some("r"))),
            ("child", Request::Child(child)),
            ("wait", Request::Wait(Awaited { registration: Some(wait), watch: Vec::new() })),
            ("usage", Request::Usage(usage.clone())),
            ("progress", Request::Progress(Progress::new("half", Some(50)).unwrap())),
        ];
        for (name, request) in requests {
            let first = world.runtime.call(token, id(name), request.clone()).await.unwrap();
            let (events, works) = (all_events(&world).await.len(), world.executions().await.len());
            let again = world.runtime.call(token, id(name), request).await.unwrap();
            assert_eq!(again.answer, first.answer, "{name}");
            assert_eq!((first.again, again.again), (false, true), "{name}");
            assert_eq!(all_events(&world).await.len(), events, "{name}");
            assert_eq!(world.executions().await.len(), works, "{name}");
        }
        let other = emit("report.made", Some("another"));
        assert_eq!(refused(world.runtime.call(token, id("emit"), other).await), "call_reused");
        let context = world.runtime.context(token).await.unwrap();
        assert_eq!(context.usage, usage, "it was added once");
        assert_eq!(context.progress.unwrap().percent, Some(50));
        let children = world.runtime.store().read("test", move |tx| tx.children_of(work, 9)).await.unwrap();
        assert_eq!(children.len(), 1);
        assert_eq!(children[0].execution, run);
        let made = world.runtime.store().read("test", move |tx| tx.calls_made(run)).await.unwrap();
        assert_eq!(made, 5);
    });
}

#[tokio::test]
async fn a_call_whose_answer_was_lost_in_a_crash_is_made_once() {
    let directory = tempfile::tempdir().unwrap();
    let location = Location::Sqlite(directory.path().join("conduit.db"));
    let clock = HandClock::new();
    let store = open(&location, &clock).await;
    let mut world = World::over(store, clock, std::sync::Arc::default(), std::sync::Arc::default()).await;
    world.apply(scope(ActivePolicy::Queue, 16)).await;
    let (_work, run, token) = running(&mut world, "a").await;
    let answered = world.runtime.call(token, id("once"), emit("report.made", Some("r"))).await.unwrap();
    // The process is gone with the answer, and what it had started goes on.
    let (clock, texts) = (std::sync::Arc::clone(&world.clock), world.texts());
    world.runtime.store().close().await.unwrap();
    let executor = std::sync::Arc::<super::world::Double>::default();
    executor.on_recover(Recovery::Alive);
    let store = open(&location, &clock).await;
    let mut world = World::over(store, clock, executor, texts).await;
    world.run().await;
    let stale = world.runtime.call(token, id("once"), emit("report.made", Some("r"))).await;
    assert_eq!(refused(stale), "stale_epoch");
    let adopted = *world.executor.tokens(run).last().expect("it was given the token of the new epoch");
    let again = world.runtime.call(adopted, id("once"), emit("report.made", Some("r"))).await.unwrap();
    assert_eq!((again.answer, again.again), (answered.answer, true));
    assert_eq!(world.events("report.made").await.len(), 1);
}

#[tokio::test]
async fn what_a_run_emits_names_it_and_follows_from_its_trigger() {
    let mut world = World::new().await;
    let (_work, run, token) = running(&mut world, "a").await;
    let trigger = world.execution(run).await.trigger;
    let made = world.runtime.call(token, id("one"), emit("report.made", Some("r"))).await.unwrap();
    let event = world.events("report.made").await.remove(0);
    assert_eq!(answer(&made)["event"], event.id.to_string());
    assert_eq!((event.emitted_by, event.source.as_str()), (Some(run), RUN_SOURCE));
    assert_eq!((event.causation.parent, event.causation.root), (Some(trigger), trigger));
    assert_eq!((event.causation.depth, event.scope), (1, world.execution(run).await.scope));
    world.run().await;
    assert!(world.owner("r").await.is_some(), "it is routed as any Event is");
    for (name, request, code) in [
        ("core", emit("core.retry.due", None), "reserved_type"),
        (
            "source",
            Request::Emit(Emission {
                key: Some(domain::event::Key { source: SourceName::known("core.run"), ..key("x") }),
                ..emission("report.made", None)
            }),
            "reserved_source",
        ),
    ] {
        assert_eq!(refused(world.runtime.call(token, id(name), request).await), code);
    }
    assert_eq!(world.events("report.made").await.len(), 1);
}

#[tokio::test]
async fn what_a_run_emits_is_no_news_to_its_own_work_and_is_to_another() {
    let mut world = World::new().await;
    let (work, run, token) = running(&mut world, "a").await;
    let (_other, other_run, others) = running(&mut world, "b").await;
    world.runtime.call(token, id("own"), emit("report.made", Some("a"))).await.unwrap();
    world.run().await;
    let wait = Registration { types: vec![EventType::known("report.made")], ..Registration::default() };
    world.park(run, wait).await;
    assert!(matches!(world.work(work).await.state, WorkState::Waiting { .. }), "it said that itself");
    world.runtime.call(others, id("theirs"), emit("report.made", Some("a"))).await.unwrap();
    world.run().await;
    assert!(matches!(world.work(work).await.state, WorkState::Running { .. }), "another one said so");
    assert!(!world.execution(other_run).await.state.is_terminal());
}

fn cite(cause: EventId) -> Request {
    Request::Emit(Emission { cause: Some(cause), ..emission("fix.wanted", None) })
}

#[test]
fn a_cited_cause_is_eligible_or_refused_and_both_roots_are_charged() {
    on_each_engine(&[scope(ActivePolicy::Queue, 16)], async |mut world: World| {
        let report = world.deliver("a report", "elsewhere").await;
        let (_work, run, token) = running(&mut world, "a").await;
        let trigger = world.execution(run).await.trigger;
        world.runtime.call(token, id("cites"), cite(report)).await.unwrap();
        let fix = world.events("fix.wanted").await.remove(0);
        assert_eq!((fix.causation.parent, fix.causation.root), (Some(report), report));
        assert_eq!((fix.causation.depth, fix.emitted_by), (1, Some(run)));
        assert_eq!((charged(&world, report).await, charged(&world, trigger).await), (1, 1));
        // Its own trigger costs its own chain alone, and once.
        world.runtime.call(token, id("own"), cite(trigger)).await.unwrap();
        assert_eq!((charged(&world, report).await, charged(&world, trigger).await), (1, 2));

        let keyless = world.say("no key", None, &json!({})).await;
        assert_eq!(refused(world.runtime.call(token, id("keyless"), cite(keyless)).await), "foreign_cause");
        let mut foreign = world.delivery("foreign", Some("x"), &json!({}));
        foreign.key = Some(domain::event::Key { source: SourceName::known("ci"), ..key("x") });
        let foreign = world.accept(foreign).await.unwrap().event();
        assert_eq!(refused(world.runtime.call(token, id("foreign"), cite(foreign)).await), "foreign_cause");
        let absent = EventId::from_number(3);
        assert_eq!(refused(world.runtime.call(token, id("absent"), cite(absent)).await), "unknown_event");
        assert_eq!(world.events("fix.wanted").await.len(), 2);
    });
}

#[test]
fn a_chain_that_is_full_refuses_what_cites_it_and_what_cites_away_from_it() {
    let mut declared = scope(ActivePolicy::Queue, 16);
    declared.settings.causal_per_minute = 2;
    on_each_engine(&[declared], async |mut world: World| {
        let report = world.deliver("a report", "elsewhere").await;
        let (_work, run, token) = running(&mut world, "a").await;
        let trigger = world.execution(run).await.trigger;
        for name in ["one", "two"] {
            world.runtime.call(token, id(name), emit("note.made", None)).await.unwrap();
        }
        // The trigger's chain is full, so a citation does not escape it, and costs the other one nothing.
        assert_eq!(refused(world.runtime.call(token, id("cites"), cite(report)).await), "rate_limit");
        assert_eq!((charged(&world, report).await, charged(&world, trigger).await), (0, 2));
        let rejections = world.rejections().await;
        assert_eq!(rejections.len(), 1);
        assert_eq!(
            (&rejections[0].1["code"], &rejections[0].1["parent"]),
            (&json!("rate_limit"), &json!(report.to_string()))
        );
        assert!(world.events("fix.wanted").await.is_empty());
        // A refusal is not kept as the answer: what has room later is accepted under the same id.
        world.clock.advance(std::time::Duration::from_mins(1));
        world.runtime.renew().await.unwrap_or(());
        let newest = *world.executor.tokens(run).last().unwrap();
        if world.runtime.context(newest).await.is_err() {
            world.executor.on_recover(Recovery::Alive);
            world.run().await;
        }
        let newest = *world.executor.tokens(run).last().unwrap();
        world.runtime.call(newest, id("cites"), cite(report)).await.unwrap();
        assert_eq!((charged(&world, report).await, charged(&world, trigger).await), (1, 1));
    });
}

#[tokio::test]
async fn a_turn_that_ends_well_waits_for_what_it_declared() {
    let mut world = World::new().await;
    let (work, run, token) = running(&mut world, "a").await;
    let wait = Registration { types: vec![EventType::known("test.happened")], ..Registration::default() };
    let awaited = |registration| Request::Wait(Awaited { registration, watch: Vec::new() });
    let foreign = Registration { keys: Some(vec![key("b")]), ..Registration::default() };
    assert_eq!(refused(world.runtime.call(token, id("bad"), awaited(Some(foreign))).await), "invalid_wait");
    let said = world.runtime.call(token, id("wait"), awaited(Some(wait.clone()))).await.unwrap();
    assert_eq!(answer(&said)["waits"], true);
    world.end(run, Outcome::Completed).await;
    assert_eq!(world.execution(run).await.state, ExecutionState::Waiting);
    assert_eq!(world.wait().await.types, wait.types);
    world.deliver("news", "a").await;
    world.run().await;
    let next = world.executions().await.last().unwrap().clone();
    assert_eq!((next.work, next.state), (work, ExecutionState::Running));
    // The next turn declares nothing, takes back what it declared, or fails: it doesn't wait.
    let token = *world.executor.tokens(next.id).last().unwrap();
    world.runtime.call(token, id("wait"), awaited(Some(wait))).await.unwrap();
    world.runtime.call(token, id("not"), awaited(None)).await.unwrap();
    world.end(next.id, Outcome::Completed).await;
    assert_eq!(world.execution(next.id).await.state, ExecutionState::Completed);
}

#[tokio::test]
async fn a_failed_turn_does_not_wait_for_what_it_declared() {
    let mut world = World::new().await;
    let (work, run, token) = running(&mut world, "a").await;
    let registration = Some(Registration { timeout_seconds: Some(5), ..Registration::default() });
    let awaited = Request::Wait(Awaited { registration, watch: Vec::new() });
    world.runtime.call(token, id("wait"), awaited).await.unwrap();
    world.end(run, Outcome::Failed).await;
    assert_eq!(world.execution(run).await.state, ExecutionState::Failed);
    assert_eq!(world.work(work).await.state, WorkState::Ready);
}

#[tokio::test]
async fn a_wait_may_watch_what_belongs_to_another_work() {
    let mut world = World::new().await;
    let (_theirs, their_run, _their_token) = running(&mut world, "b").await;
    let (work, run, token) = running(&mut world, "a").await;
    let watch = Watch { key: key("b"), types: Vec::new(), becomes: EventType::known("other.moved") };
    let registration = Registration { types: vec![watch.becomes.clone()], ..Registration::default() };
    let awaited = Awaited { registration: Some(registration), watch: vec![watch] };
    world.runtime.call(token, id("one"), Request::Wait(awaited.clone())).await.unwrap();
    // Declared again by another call it is the same subscription.
    let said = world.runtime.call(token, id("two"), Request::Wait(awaited)).await.unwrap();
    assert_eq!(answer(&said)["subscriptions"].as_array().unwrap().len(), 1);
    world.end(run, Outcome::Completed).await;
    assert!(matches!(world.work(work).await.state, WorkState::Waiting { .. }));
    world.deliver("their news", "b").await;
    world.run().await;
    assert!(matches!(world.work(work).await.state, WorkState::Running { .. }));
    assert_eq!(world.events("other.moved").await.len(), 1);
    assert!(!world.execution(their_run).await.state.is_terminal(), "nothing of theirs has changed");
}

#[test]
fn acknowledged_input_is_part_of_the_result_s_proof() {
    on_each_engine(&[ordering(ActivePolicy::Inject, Fallbacks::default())], async |mut world: World| {
        let (work, run, token) = running(&mut world, "a").await;
        let trigger = world.execution(run).await.trigger;
        assert!(world.runtime.offered(token).await.unwrap().is_empty());
        let taken = world.deliver("d-2", "a").await;
        let left = world.deliver("d-3", "a").await;
        world.run().await;
        let offered = world.runtime.offered(token).await.unwrap();
        assert_eq!(offered.iter().map(|one| one.event.id).collect::<Vec<_>>(), [taken, left]);
        for other in [trigger, EventId::from_number(9)] {
            let code = refused(world.runtime.call(token, id("no"), Request::Acknowledge(other)).await);
            assert!(matches!(code, "not_injected" | "unknown_event"), "{code}");
        }
        world.runtime.call(token, id("ack"), Request::Acknowledge(taken)).await.unwrap();
        assert_eq!(world.pending(work).await, [taken, left], "only the result consumes");
        let offered = world.runtime.offered(token).await.unwrap();
        assert_eq!(offered.iter().map(|one| one.acknowledged).collect::<Vec<_>>(), [true, false]);
        world.end(run, Outcome::Completed).await;
        assert_eq!(states(&world, run).await, ["consumed", "accepted"]);
        let next = world.executions().await.last().unwrap().clone();
        assert_ne!(next.id, run);
        let given = move |tx: &mut dyn domain::store::Snapshot| tx.inputs_of(next.id, Sequence::ZERO, 9);
        let given = world.runtime.store().read("test", given).await.unwrap();
        assert_eq!(given.iter().map(|input| input.event).collect::<Vec<_>>(), [left]);
    });
}

fn birth(keys: &[&str]) -> Birth {
    Birth {
        scope: None,
        kind: WorkKind::known("child.work"),
        binding: None,
        keys: keys.iter().map(|id| key(id)).collect(),
        input: Payload::new(&b"{\"part\":1.50}"[..]).unwrap(),
    }
}

#[test]
fn a_child_is_created_with_its_event_and_its_parent() {
    on_each_engine(&[scope(ActivePolicy::Queue, 16)], async |mut world: World| {
        let (work, run, token) = running(&mut world, "a").await;
        let trigger = world.execution(run).await.trigger;
        let made = world.runtime.call(token, id("child"), Request::Child(birth(&["c"]))).await.unwrap();
        let child = world.owner("c").await.expect("it has its key");
        assert_eq!(answer(&made)["work"], child.id.to_string());
        assert_eq!((child.scope, child.kind.as_str()), (world.work(work).await.scope, "child.work"));
        let created = world.events("core.work.created").await.remove(0);
        assert_eq!((created.work, created.emitted_by), (Some(child.id), Some(run)));
        assert_eq!((created.causation.parent, created.causation.root), (Some(trigger), trigger));
        let sequence = created.sequence;
        let body = world.runtime.store().read("test", move |tx| tx.payload(sequence)).await.unwrap().unwrap();
        let text = std::str::from_utf8(body.as_bytes()).unwrap().to_owned();
        assert!(text.ends_with(r#""input":{"part":1.50}}"#), "as it was written: {text}");
        assert!(text.contains(&format!(r#""parent":"{work}""#)), "{text}");
        let id_of_child = child.id;
        let parentage = world.runtime.store().read("test", move |tx| tx.parentage_of(id_of_child)).await;
        assert_eq!(parentage.unwrap().map(|parentage| parentage.parent), Some(work));
        world.run().await;
        let theirs = world.executions().await.into_iter().find(|one| one.work == child.id).unwrap();
        assert_eq!((theirs.trigger, theirs.binding.as_str()), (created.id, "double"));
        world.end(theirs.id, Outcome::Completed).await;
        assert_eq!(world.work(child.id).await.state, WorkState::Completed);
        assert!(!world.execution(run).await.state.is_terminal(), "the parent goes on");
    });
}

#[tokio::test]
async fn a_child_that_may_not_be_leaves_nothing() {
    let mut declared = scope(ActivePolicy::Queue, 16);
    declared.settings.causal_max_depth = 1;
    let mut world = World::with(declared).await;
    let (_work, _run, token) = running(&mut world, "a").await;
    let taken = world.runtime.call(token, id("taken"), Request::Child(birth(&["a"]))).await;
    assert_eq!(refused(taken), "key_conflict");
    let unknown = Birth { binding: Some(BindingName::known("nobody")), ..birth(&[]) };
    assert_eq!(
        refused(world.runtime.call(token, id("binding"), Request::Child(unknown)).await),
        "unknown_binding"
    );
    let many: Vec<String> = (0..17).map(|n| format!("k{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(
        refused(world.runtime.call(token, id("many"), Request::Child(birth(&many))).await),
        "invalid_call"
    );
    world.runtime.call(token, id("fits"), Request::Child(birth(&["c"]))).await.unwrap();
    world.run().await;
    let child = world.owner("c").await.unwrap().id;
    let below = world.executions().await.into_iter().find(|one| one.work == child).unwrap();
    let deeper = *world.executor.tokens(below.id).last().unwrap();
    let events = all_events(&world).await.len();
    assert_eq!(
        refused(world.runtime.call(deeper, id("deep"), Request::Child(birth(&["d"]))).await),
        "depth_limit"
    );
    assert!(world.owner("d").await.is_none());
    assert_eq!(all_events(&world).await.len(), events);
    assert_eq!(world.rejections().await.len(), 1, "but the record of it");
}

#[tokio::test]
async fn reported_usage_is_the_result_s_whatever_the_outcome() {
    let mut world = World::new().await;
    let usage = |unit: &str, thousandths| Usage { unit: unit.to_owned(), thousandths };
    let (_work, run, token) = running(&mut world, "a").await;
    for (name, amount) in [("one", 200), ("two", 300)] {
        world.runtime.call(token, id(name), Request::Usage(vec![usage("usd", amount)])).await.unwrap();
    }
    let bad = Request::Usage(vec![usage("usd", -1)]);
    assert_eq!(refused(world.runtime.call(token, id("bad"), bad).await), "invalid_call");
    let stated = TurnResult { usage: vec![usage("tokens", 7)], ..TurnResult::failed("exit_status", "no") };
    world.executor.end(run, stated);
    world.settle_tasks().await;
    world.run().await;
    let result = world.runtime.store().read("test", move |tx| tx.turn_result(run)).await.unwrap().unwrap();
    assert_eq!(result.usage, [usage("tokens", 7), usage("usd", 500)]);
}

#[tokio::test]
async fn a_run_makes_so_many_calls_and_no_more() {
    let mut world = World::new().await;
    let (_work, run, token) = running(&mut world, "a").await;
    let last = Call {
        execution: run,
        id: id("last"),
        number: CALLS_MAX,
        operation: Operation::Progress,
        request: Fingerprint::from_number(1),
        answer: b"{}".to_vec(),
        at: world.runtime.store().now(),
    };
    world.runtime.store().transact("test", move |tx| tx.insert_call(&last)).await.unwrap();
    let one_more = world.runtime.call(token, id("more"), emit("note.made", None)).await;
    assert_eq!(refused(one_more), "too_many_calls");
}

#[test]
fn a_child_in_another_scope_takes_the_right_to_write_there() {
    let elsewhere = |name: &'static str| {
        let name = ScopeName::known(name);
        EffectiveScope { name: name.clone(), lineage: vec![name], ..scope(ActivePolicy::Queue, 16) }
    };
    let mut own = scope(ActivePolicy::Queue, 16);
    own.write_scopes = vec![ScopeName::known("site")];
    own.read_scopes = vec![ScopeName::known("hr")];
    let scopes = [own, elsewhere("site"), elsewhere("hr")];
    on_each_engine(&scopes, async |mut world: World| {
        let (work, run, token) = running(&mut world, "a").await;
        let below = |name: &'static str, keys: &[&str]| {
            Request::Child(Birth { scope: Some(ScopeName::known(name)), ..birth(keys) })
        };
        let before = all_events(&world).await.len();
        for refused_scope in ["hr", "nowhere"] {
            let answered = world.runtime.call(token, id("hr"), below(refused_scope, &["c"])).await;
            assert_eq!(refused(answered), "scope_not_writable", "{refused_scope}");
        }
        assert_eq!(all_events(&world).await.len(), before, "a refusal changes nothing");
        world.runtime.call(token, id("site"), below("site", &["c"])).await.unwrap();
        let child = world.owner("c").await.unwrap();
        assert_eq!(child.scope, ScopeName::known("site"));
        let created = world.events("core.work.created").await.remove(0);
        assert_eq!((&created.scope, created.emitted_by), (&child.scope, Some(run)));
        let parent = world.runtime.store().read("test", move |tx| tx.parentage_of(child.id)).await.unwrap();
        assert_eq!(parent.map(|parentage| parentage.parent), Some(work));
        world.run().await;
        let theirs = world.executions().await.into_iter().find(|one| one.work == child.id).unwrap();
        assert_eq!(theirs.scope, child.scope);
        // The right goes no further: their runs may not write back.
        let token = *world.executor.tokens(theirs.id).last().unwrap();
        let back = world.runtime.call(token, id("back"), below("main", &[])).await;
        assert_eq!(refused(back), "scope_not_writable");
    });
}
