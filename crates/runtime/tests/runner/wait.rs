//! Waits: a turn ends in one, one accepted Event ends it, and nothing does it twice.

use std::time::Duration;

use domain::causal::Origin;
use domain::delivery::{Authority, Delivery};
use domain::event::{Event, Payload};
use domain::execution::{Execution, ExecutionState};
use domain::id::{Epoch, EventId, ExecutionId, Sequence};
use domain::lease::Grant;
use domain::outcome::{Outcome, TurnResult};
use domain::retry::Eligibility;
use domain::route::{ActivePolicy, CheckpointOutcome};
use domain::store::{Snapshot, WaitFilter};
use domain::text::{DeliveryId, EventType, SourceName};
use domain::timer::TimerKind;
use domain::wait::{Registration, Wait, WaitState};
use domain::work::WorkState;
use runtime::explain::Subject;
use runtime::{Progress, Stage, why};
use serde_json::json;

use super::world::{Call, World, key, scope};

pub(super) const SECOND: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_micros(1);

/// A world in which the run of Work `k` goes, started by the Event `opens`.
pub(super) async fn running(resumes: bool) -> (World, Execution) {
    let mut world = World::with(scope(ActivePolicy::Queue, 16)).await;
    world.executor.can_resume(resumes);
    world.deliver("opens", "k").await;
    world.run().await;
    let run = world.executions().await[0].clone();
    (world, run)
}

pub(super) fn for_seconds(seconds: u64) -> Registration {
    Registration { timeout_seconds: Some(seconds), ..Registration::default() }
}

/// Nothing but its time.
fn timeout_only(seconds: u64) -> Registration {
    Registration { keys: Some(Vec::new()), ..for_seconds(seconds) }
}

pub(super) fn of_type(event_type: &str) -> Registration {
    Registration { types: vec![EventType::known(event_type)], ..Registration::default() }
}

pub(super) async fn say_type(world: &World, id: &str, event_type: &str) -> EventId {
    let delivery =
        Delivery { event_type: EventType::known(event_type), ..world.delivery(id, Some("k"), &json!({})) };
    world.accept(delivery).await.unwrap().event()
}

pub(super) fn winner(wait: &Wait) -> Option<EventId> {
    match wait.state {
        WaitState::Woken { winner, .. } => Some(winner),
        WaitState::Active | WaitState::Cancelled { .. } => None,
    }
}

/// What the newest turn was started with: by which attempt, and its inputs.
pub(super) fn last_start(world: &World) -> (ExecutionId, Vec<EventId>) {
    let calls = world.executor.calls();
    let mut starts = calls.into_iter().filter_map(|call| match call {
        Call::Run(id, inputs) | Call::Resume(id, _, inputs) => Some((id, inputs)),
        Call::Recover(..)
        | Call::Observe(_)
        | Call::Inject(..)
        | Call::Interrupt(_)
        | Call::Notice(..)
        | Call::Release(_)
        | Call::Stop(_) => None,
    });
    starts.next_back().expect("something was started")
}

/// The Wait was won by that Event, and the turn that follows goes on with it: the same attempt at a higher epoch
/// where it is resumed, else the next one.
async fn check_goes_on(world: &World, run: &Execution, resumes: bool, won: EventId, given: &[EventId]) {
    let wait = world.wait().await;
    assert_eq!(winner(&wait), Some(won), "{wait:?}");
    let executions = world.executions().await;
    let (next, started) = (executions.last().unwrap(), last_start(world));
    assert_eq!(started, (next.id, given.to_vec()));
    assert_eq!(next.state, ExecutionState::Running);
    if resumes {
        assert_eq!((executions.len(), next.id), (1, run.id));
        assert_eq!((next.epoch, next.trigger), (Epoch::FIRST.next(), run.trigger), "the trigger stays");
        assert_eq!(next.turn.resumed_by, Some(won));
        assert!(world.executor.calls().contains(&Call::Resume(run.id, won, given.to_vec())));
    } else {
        assert_eq!(executions.len(), 2);
        assert_eq!(executions[0].state, ExecutionState::Waiting);
        assert_eq!((next.attempt.number(), next.trigger), (2, won));
    }
    let bridge = world.events("core.wait.woken").await;
    assert_eq!(bridge.len(), 1, "it woke once");
    assert_eq!(bridge[0].causation.parent, Some(won));
    assert_eq!(next.turn.cause, bridge[0].id);
    assert!(world.runtime.store().read("test", |tx| tx.timers(None, 9)).await.unwrap().is_empty());
    // Why a run, or its present turn, began is a fact that is told.
    let (id, waited) = (next.id, run.id);
    let why = world.runtime.store().read("test", move |tx| why::why(tx, id)).await.unwrap().unwrap();
    let woken = why.woken.expect("the end of a Wait let it begin");
    assert_eq!((woken.wait.id, woken.wait.execution, woken.winner.id), (wait.id, waited, won));
    assert!(why.waits.is_none());
}

#[tokio::test]
async fn wait_event_registration_orders() {
    for resumes in [false, true] {
        // The fact first: it is input of a Work that runs, and the registration finds it.
        let (mut world, run) = running(resumes).await;
        let early = world.deliver("fact", "k").await;
        world.run().await;
        let before = world.execution(run.id).await;
        world.executor.end(run.id, TurnResult::waiting(for_seconds(20)));
        world.settle_tasks().await;
        world.stages.complete.step().await.unwrap();
        let work = world.work(run.work).await;
        assert!(matches!(work.eligibility, Eligibility::Woken { .. }), "registered and woken in one");
        let grant = Grant { owner: before.lease.unwrap().owner, epoch: before.epoch };
        let rests = world.execution(run.id).await;
        assert!(rests.authorize(grant, world.runtime.store().now()).is_err(), "the old authority is gone");
        world.run().await;
        check_goes_on(&world, &run, resumes, early, &[early]).await;

        // The registration first.
        let (mut world, run) = running(resumes).await;
        world.park(run.id, for_seconds(20)).await;
        let waiting = world.work(run.work).await;
        assert_eq!(waiting.state, WorkState::Waiting { wait: world.wait().await.id });
        let rests = world.execution(run.id).await.state;
        assert_eq!(rests, if resumes { ExecutionState::Parked } else { ExecutionState::Waiting });
        assert_eq!(world.runtime.held().count(), 0, "nothing is renewed");
        let late = world.deliver("fact", "k").await;
        world.run().await;
        check_goes_on(&world, &run, resumes, late, &[late]).await;
        // Whatever comes again or after it is no second end.
        world.deliver("fact", "k").await;
        let after = world.deliver("another fact", "k").await;
        world.clock.advance(SECOND * 25);
        world.runtime.renew().await.unwrap();
        world.run().await;
        assert_eq!(world.pending(run.work).await, [after]);
        check_goes_on(&world, &run, resumes, late, &[late]).await;
    }
}

#[tokio::test]
async fn wait_timeout_acceptance_tie() {
    for resumes in [false, true] {
        // Accepted before the timeout, and not routed yet: at the very deadline it wins.
        let (mut world, run) = running(resumes).await;
        world.park(run.id, for_seconds(60)).await;
        world.clock.advance((SECOND * 60).saturating_sub(MOMENT));
        assert!(matches!(world.stages.wake.step().await.unwrap(), Progress::Idle { due_at: Some(_) }));
        let fact = world.deliver("fact", "k").await;
        world.clock.advance(MOMENT);
        assert_eq!(world.stages.wake.step().await.unwrap(), Progress::Advanced);
        assert!(world.events("core.wait.timeout").await.is_empty(), "an accepted match comes first");
        world.run().await;
        check_goes_on(&world, &run, resumes, fact, &[fact]).await;
        world.clock.advance(SECOND * 5);
        world.runtime.renew().await.unwrap();
        world.run().await;
        assert!(world.events("core.wait.timeout").await.is_empty());

        // The timeout is accepted first: what comes a moment later is input and no more.
        let (mut world, run) = running(resumes).await;
        world.park(run.id, for_seconds(60)).await;
        world.clock.advance(SECOND * 60);
        assert_eq!(world.stages.wake.step().await.unwrap(), Progress::Advanced);
        let late = world.deliver("fact", "k").await;
        world.run().await;
        let timeout = world.events("core.wait.timeout").await;
        assert_eq!(timeout.len(), 1);
        assert_eq!(timeout[0].delivery_id.as_str(), format!("wait/{}", world.wait().await.id));
        assert_eq!(timeout[0].causation.root, run.trigger, "it stays on the chain that armed it");
        check_goes_on(&world, &run, resumes, timeout[0].id, &[timeout[0].id, late]).await;
    }
}

#[tokio::test]
async fn wait_cancel_orders() {
    for resumes in [false, true] {
        // Cancelled first: the Wait, its timer and the parked attempt go with the Work.
        let (mut world, run) = running(resumes).await;
        world.park(run.id, for_seconds(60)).await;
        world.runtime.cancel(run.work).await.unwrap();
        let wait = world.wait().await;
        assert!(matches!(wait.state, WaitState::Cancelled { .. }), "{wait:?}");
        assert!(world.runtime.store().read("test", |tx| tx.timers(None, 9)).await.unwrap().is_empty());
        let ended = world.execution(run.id).await;
        let state = if resumes { ExecutionState::Cancelled } else { ExecutionState::Waiting };
        assert_eq!((ended.state, ended.unstopped), (state, false));
        let late = world.deliver("fact", "k").await;
        world.clock.advance(SECOND * 120);
        world.run().await;
        assert_eq!(world.outcome(late).await, Some(CheckpointOutcome::Terminal));
        assert!(world.events("core.wait.woken").await.is_empty());
        assert_eq!(world.wait().await, wait, "an end is not rewritten");

        // Woken first: that stays, and neither the parked attempt nor a next one goes on.
        let (mut world, run) = running(resumes).await;
        world.park(run.id, for_seconds(60)).await;
        let fact = world.deliver("fact", "k").await;
        world.stages_route_only().await;
        world.runtime.cancel(run.work).await.unwrap();
        world.run().await;
        assert_eq!(winner(&world.wait().await), Some(fact));
        assert_eq!((world.executor.calls().len(), world.executions().await.len()), (1, 1));
        assert_eq!(world.work(run.work).await.state, WorkState::Cancelled);
        assert!(world.execution(run.id).await.state.is_terminal());

        // Gone on first: what runs is fenced.
        let (mut world, run) = running(resumes).await;
        world.park(run.id, for_seconds(60)).await;
        world.deliver("fact", "k").await;
        world.run().await;
        let next = world.executions().await.last().unwrap().id;
        world.runtime.cancel(run.work).await.unwrap();
        world.executor.try_end(next, TurnResult::of(Outcome::Completed));
        world.settle_tasks().await;
        world.run().await;
        assert_eq!(world.execution(next).await.state, ExecutionState::Cancelled);
    }
}

#[tokio::test]
async fn wait_watermark_and_timeout_only() {
    for resumes in [false, true] {
        // What the run says that it has seen is not used again.
        let (mut world, run) = running(resumes).await;
        world.deliver("seen", "k").await;
        world.run().await;
        let seen =
            world.runtime.store().read("test", |tx| Ok::<_, domain::store::StoreError>(newest(tx))).await;
        let seen = seen.unwrap();
        world.park(run.id, Registration { after: Some(seen), ..for_seconds(60) }).await;
        assert_eq!(world.wait().await.after, seen);
        assert!(world.wait().await.state.is_active(), "it lies at the watermark");
        let fresh = world.deliver("fresh", "k").await;
        world.run().await;
        assert_eq!(winner(&world.wait().await), Some(fresh));

        // Only time ends this one.
        let (mut world, run) = running(resumes).await;
        world.park(run.id, timeout_only(60)).await;
        let other = world.deliver("no end", "k").await;
        world.run().await;
        assert!(world.wait().await.state.is_active());
        assert_eq!(world.pending(run.work).await, [other], "it queues");
        world.clock.advance((SECOND * 60).saturating_sub(MOMENT));
        world.run().await;
        assert!(world.wait().await.state.is_active(), "not a moment before");
        world.clock.advance(MOMENT);
        world.run().await;
        let timeout = world.events("core.wait.timeout").await[0].id;
        check_goes_on(&world, &run, resumes, timeout, &[other, timeout]).await;

        // The timeout was accepted, its timer is gone, and nobody has woken the Work yet.
        let (mut world, run) = running(resumes).await;
        world.park(run.id, for_seconds(60)).await;
        let timeout = accept_timeout(&world, &run).await;
        let late = world.deliver("late", "k").await;
        world.run().await;
        check_goes_on(&world, &run, resumes, timeout, &[timeout, late]).await;
    }
}

/// The newest accepted sequence.
fn newest(tx: &mut dyn Snapshot) -> Sequence {
    tx.events(&domain::store::EventFilter::default(), 1).unwrap()[0].sequence
}

/// Accepts the timeout of the newest Wait without what follows, as nothing here ever does.
async fn accept_timeout(world: &World, run: &Execution) -> EventId {
    let wait = world.wait().await;
    let event = Event {
        source: SourceName::known("core"),
        delivery_id: wait.timeout_delivery(),
        event_type: EventType::known("core.wait.timeout"),
        key: None,
        work: Some(run.work),
        id: world.runtime.store().ids(domain::id::IdMaker::event),
        ..world.events("test.happened").await[0].clone()
    };
    let id = event.id;
    let timer = wait.timeout.unwrap().timer;
    world
        .runtime
        .store()
        .transact("test", move |tx| {
            tx.delete_timer(timer)?;
            let event = Event { sequence: tx.next_sequence(), ..event.clone() };
            tx.insert_event(&event, &Payload::null())
        })
        .await
        .unwrap();
    id
}

#[tokio::test]
async fn what_a_wait_is_not_for_queues_and_is_given_with_the_winner() {
    for resumes in [false, true] {
        let (mut world, run) = running(resumes).await;
        let queued = say_type(&world, "before", "test.other").await;
        world.run().await;
        world.park(run.id, of_type("build.finished")).await;
        let other = say_type(&world, "other", "test.other").await;
        world.run().await;
        assert!(world.wait().await.state.is_active());
        assert_eq!(world.executions().await.len(), 1, "input does not pass by a Wait");
        let fact = say_type(&world, "fact", "build.finished").await;
        world.run().await;
        check_goes_on(&world, &run, resumes, fact, &[queued, other, fact]).await;
        assert!(world.pending(run.work).await.is_empty());
    }
}

#[tokio::test]
async fn the_first_accepted_match_wins_across_keys() {
    for registered_first in [true, false] {
        let mut world = World::with(scope(ActivePolicy::Queue, 16)).await;
        world.executor.can_resume(true);
        world.say("opens", None, &json!({"keys": ["k", "l"]})).await;
        world.run().await;
        let run = world.executions().await[0].clone();
        if registered_first {
            world.park(run.id, for_seconds(20)).await;
        }
        let first = world.deliver("of l", "l").await;
        let second = world.deliver("of k", "k").await;
        world.run().await;
        if !registered_first {
            world.park(run.id, for_seconds(20)).await;
        }
        check_goes_on(&world, &run, true, first, &[first, second]).await;
    }
}

#[tokio::test]
async fn a_work_is_never_news_to_itself() {
    let (mut world, run) = running(true).await;
    world.park(run.id, for_seconds(60)).await;
    // Its turn's end carries no key; what its run emits may.
    let emitted = Delivery {
        work: Some(run.work),
        origin: Origin::Derived { parent: run.trigger, emitted_by: Some(run.id) },
        ..world.delivery("emitted", Some("k"), &json!({}))
    };
    let own = world.runtime.accept(emitted, Authority::Core).await.unwrap().event();
    world.run().await;
    assert!(world.wait().await.state.is_active());
    assert_eq!(world.pending(run.work).await, [own]);
    let other = world.deliver("fact", "k").await;
    world.run().await;
    assert_eq!(winner(&world.wait().await), Some(other));
}

#[tokio::test]
async fn an_event_that_no_route_matches_wakes_whoever_waits_for_it() {
    for registered_first in [true, false] {
        let mut declared = scope(ActivePolicy::Queue, 16);
        declared.routes =
            vec![super::world::route("told", ActivePolicy::Queue, &json!({"types": ["test.happened"]}))];
        let mut world = World::with(declared).await;
        world.executor.can_resume(true);
        world.deliver("opens", "k").await;
        world.run().await;
        let run = world.executions().await[0].clone();
        if registered_first {
            world.park(run.id, of_type("build.finished")).await;
        }
        if registered_first {
            let event_type = EventType::known("build.finished");
            let described = Delivery { event_type, ..world.delivery("said", Some("k"), &json!({})) };
            let subject = Subject::Described(Box::new(described));
            let active = world.runtime.generations().active();
            let fate = world.runtime.explain(&active, subject).await.unwrap().unwrap().fate;
            assert_eq!(fate.as_str(), "routed", "asking says so before: {fate:?}");
        }
        let other = say_type(&world, "other", "build.started").await;
        let fact = say_type(&world, "fact", "build.finished").await;
        world.run().await;
        if !registered_first {
            world.park(run.id, of_type("build.finished")).await;
        }
        check_goes_on(&world, &run, true, fact, &[fact]).await;
        assert_eq!(world.outcome(other).await, Some(CheckpointOutcome::Unmatched));
        let led = world.runtime.store().read("test", move |tx| {
            let event = tx.event(fact)?.expect("it was accepted");
            let link = why::link(tx, event)?;
            why::led_to(tx, &link)
        });
        assert_eq!(led.await.unwrap().run.map(|led| led.id), Some(run.id), "what it led to is told");
    }
}

#[tokio::test]
async fn what_was_dropped_wakes_nobody() {
    for registered_first in [true, false] {
        let (mut world, run) = running(false).await;
        if registered_first {
            world.park(run.id, for_seconds(60)).await;
        }
        let dropped = world.say("dropped", Some("k"), &json!({"drop": true})).await;
        world.run().await;
        if !registered_first {
            world.park(run.id, for_seconds(60)).await;
        }
        assert_eq!(world.outcome(dropped).await, Some(CheckpointOutcome::Dropped));
        assert!(world.wait().await.state.is_active());
    }
}

#[tokio::test]
async fn a_turn_that_may_not_wait_has_failed() {
    let foreign = Registration { keys: Some(vec![key("z")]), ..for_seconds(60) };
    let ahead = Registration { after: Some(Sequence::from_number(9999)), ..for_seconds(60) };
    let endless = Registration { keys: Some(Vec::new()), ..Registration::default() };
    let cases = [Some(foreign), Some(ahead), Some(endless), None];
    for registration in cases {
        let (mut world, run) = running(true).await;
        let wait = registration.map(Box::new);
        world.executor.end(run.id, TurnResult { wait, ..TurnResult::of(Outcome::Waiting) });
        world.settle_tasks().await;
        world.run().await;
        let id = run.id;
        let result = world.runtime.store().read("test", move |tx| tx.turn_result(id)).await.unwrap().unwrap();
        assert_eq!((result.outcome, result.code.as_deref()), (Outcome::Failed, Some("invalid_wait")));
        assert_eq!(world.execution(run.id).await.state, ExecutionState::Failed);
        assert_eq!(world.work(run.work).await.state, WorkState::Ready);
        let waits =
            world.runtime.store().read("test", |tx| tx.waits(&WaitFilter::default(), 9)).await.unwrap();
        assert!(waits.is_empty(), "a refusal leaves nothing");
    }
}

#[tokio::test]
async fn a_parked_attempt_takes_no_room() {
    for resumes in [false, true] {
        let mut world = World::with(scope(ActivePolicy::Queue, 1)).await;
        world.executor.can_resume(resumes);
        world.deliver("d-1", "a").await;
        world.deliver("d-2", "b").await;
        world.run().await;
        let first = world.executions().await[0].clone();
        world.park(first.id, for_seconds(60)).await;
        assert_eq!(world.executor.runs(), 2, "the next one has its room");
        // Woken, it waits for room like everybody.
        world.deliver("fact", "a").await;
        world.run().await;
        assert_eq!(world.executor.calls().len(), 2);
        let second = world.executions().await.iter().find(|run| run.work != first.work).unwrap().id;
        world.end(second, Outcome::Completed).await;
        assert_eq!(world.executor.calls().len(), 3);
    }
}

#[tokio::test]
async fn a_timer_that_outlived_its_wait_fires_into_nothing() {
    let (mut world, run) = running(true).await;
    world.park(run.id, for_seconds(20)).await;
    let timer = world.runtime.store().read("test", |tx| tx.timers(None, 1)).await.unwrap().remove(0);
    assert!(matches!(timer.kind, TimerKind::Wait { .. }));
    let fact = world.deliver("fact", "k").await;
    world.run().await;
    // As if it had been armed by a writer that did not know.
    world.runtime.store().transact("test", move |tx| tx.insert_timer(&timer)).await.unwrap();
    world.clock.advance(SECOND * 21);
    world.runtime.renew().await.unwrap();
    world.run().await;
    assert!(world.events("core.wait.timeout").await.is_empty());
    check_goes_on(&world, &run, true, fact, &[fact]).await;
}

#[tokio::test]
async fn a_wait_is_no_longer_than_its_timer_once_the_clock_stepped_back() {
    let (mut world, run) = running(true).await;
    world.park(run.id, for_seconds(60)).await;
    let timer = world.runtime.store().read("test", |tx| tx.timers(None, 1)).await.unwrap().remove(0);
    // As a restart moves it that finds an earlier time than the one it was armed at.
    let now = world.runtime.store().now();
    let moved = domain::timer::Timer { armed_at: now, due_at: now.after(SECOND * 10), ..timer };
    world.runtime.store().transact("test", move |tx| tx.rearm_timer(&moved)).await.unwrap();
    world.clock.advance(SECOND * 10);
    world.run().await;
    let timeout = world.events("core.wait.timeout").await[0].id;
    check_goes_on(&world, &run, true, timeout, &[timeout]).await;
}

#[tokio::test]
async fn an_operators_retry_does_not_pass_by_a_wait() {
    for resumes in [false, true] {
        let (mut world, run) = running(resumes).await;
        world.park(run.id, for_seconds(60)).await;
        world.runtime.retry(run.work, DeliveryId::known("retry-1")).await.unwrap_err();
        assert!(world.wait().await.state.is_active());
        assert_eq!(world.executions().await.len(), 1);
    }
}
