//! Routing by cases: each kind of match against each relation of keys, Works and scopes.

use super::{
    ActivePolicy, CheckpointOutcome, End, Fallback, Fallbacks, Line, Match, RouteEffect, RouteFacts,
    RouteRefusal, Routing, WhileActive, canonical, route,
};
use crate::causal::Bounds;
use crate::event::{Causation, Event, Key};
use crate::execution::Execution;
use crate::id::{EventId, ExecutionId, Sequence, WorkId};
use crate::intent::Controls;
use crate::machines::{LIVE, NOW, execution, work};
use crate::text::{Code, ConcurrencyKey, DeliveryId, EventType, ExternalId, ScopeName, SourceName, WorkKind};
use crate::work::{Lifecycle, Queue, Work, WorkState};

const PROPOSED: WorkId = WorkId::from_number(100);

fn key(external_id: &str) -> Key {
    Key { source: SourceName::known("hook/ci"), external_id: ExternalId::known(external_id) }
}

fn event(addressed: Option<i64>) -> Event {
    let id = EventId::from_number(1);
    Event {
        id,
        sequence: Sequence::FIRST,
        source: SourceName::known("hook/ci"),
        delivery_id: DeliveryId::known("d-1"),
        event_type: EventType::known("build.finished"),
        scope: ScopeName::known("main"),
        key: None,
        work: addressed.map(WorkId::from_number),
        causation: Causation::root(id, Bounds { max_depth: 32, per_minute: 128 }),
        emitted_by: None,
        occurred_at: None,
        accepted_at: NOW,
    }
}

fn numbered(number: i64, state: WorkState) -> Work {
    Work { id: WorkId::from_number(number), ..work(state, Queue::Idle) }
}

fn ready(number: i64) -> Work {
    numbered(number, WorkState::Ready)
}

fn running(number: i64) -> Work {
    numbered(number, WorkState::Running { execution: LIVE })
}

fn kind() -> WorkKind {
    WorkKind::known("manual.work")
}

fn attach(keys: &[&str]) -> Match {
    let keys = keys.iter().copied().map(key).collect();
    let lifecycle = Lifecycle::Standing;
    Match::Attach { keys, kind: kind(), lifecycle, concurrency: None, reopens: Vec::new() }
}

fn fresh(keys: &[&str]) -> Match {
    let keys = keys.iter().copied().map(key).collect();
    Match::Fresh { kind: kind(), lifecycle: Lifecycle::Once, keys, concurrency: None }
}

/// What a transaction reads when these keys are wanted and owned like this.
fn facts(owners: &[(&str, Option<i64>)], owner: Option<Work>) -> RouteFacts {
    let owners = owners.iter().map(|(id, owner)| (key(id), owner.map(WorkId::from_number))).collect();
    RouteFacts { owners, owner, proposed: Some(PROPOSED), ..RouteFacts::default() }
}

fn addressed(target: Work) -> RouteFacts {
    RouteFacts { addressed: Some(target), ..facts(&[], None) }
}

fn queue(event: &Event, wants: &Match, facts: &RouteFacts) -> Result<Routing, RouteRefusal> {
    route(event, wants, ActivePolicy::Queue.into(), true, facts, NOW)
}

#[track_caller]
fn check_enqueued(routing: &Routing, target: &Work, keys: &[&str]) {
    let attach = keys.iter().copied().map(key).collect();
    assert_eq!(
        (routing.outcome, routing.work, &routing.effect),
        (CheckpointOutcome::Routed, Some(target.id), &RouteEffect::Enqueue { work: target.clone(), attach })
    );
}

#[track_caller]
fn check_created(routing: &Routing, lifecycle: Lifecycle, keys: &[&str]) {
    let created = Work::create(PROPOSED, ScopeName::known("main"), kind(), lifecycle, NOW);
    let attach = keys.iter().copied().map(key).collect();
    assert_eq!(
        *routing,
        Routing {
            outcome: CheckpointOutcome::Routed,
            work: Some(PROPOSED),
            policy: None,
            order: None,
            because: None,
            effect: RouteEffect::Create { work: created, attach },
        }
    );
}

#[track_caller]
fn check_without_effect(routing: &Routing, outcome: CheckpointOutcome, work: Option<i64>, code: &str) {
    assert_eq!(routing.outcome, outcome);
    assert_eq!(routing.work, work.map(WorkId::from_number));
    assert_eq!(routing.because.as_ref().map(|(code, _reason)| code.as_str()), Some(code));
    assert_eq!(routing.effect, RouteEffect::None);
}

#[test]
fn attach_creates_a_work_that_owns_the_keys_nobody_owns() {
    let routing = queue(&event(None), &attach(&["a", "b"]), &facts(&[("a", None), ("b", None)], None));
    check_created(&routing.unwrap(), Lifecycle::Standing, &["a", "b"]);
}

#[test]
fn attach_selects_the_owner_and_gives_it_the_keys_it_lacks() {
    let owned = facts(&[("a", None), ("b", Some(3)), ("c", Some(3))], Some(ready(3)));
    let routing = queue(&event(None), &attach(&["a", "b", "c"]), &owned);
    check_enqueued(&routing.unwrap(), &ready(3), &["a"]);
}

#[test]
fn attach_refuses_to_join_two_works() {
    let owned = facts(&[("a", Some(3)), ("b", None), ("c", Some(4))], None);
    let (first, second) = (WorkId::from_number(3), WorkId::from_number(4));
    let refused = queue(&event(None), &attach(&["a", "b", "c"]), &owned);
    assert_eq!(refused, Err(RouteRefusal::KeyConflict { first, second }));
    // An end frees no key: a conflict with an ended Work is one too, so no Work is even looked at.
    assert_eq!(refused.unwrap_err().code(), "key_conflict");
}

#[test]
fn attach_refuses_to_go_by_no_key() {
    assert_eq!(queue(&event(None), &attach(&[]), &facts(&[], None)), Err(RouteRefusal::NoKey));
}

#[test]
fn attach_gives_new_keys_to_the_addressed_work() {
    let known = RouteFacts { owners: vec![(key("a"), None)], ..addressed(ready(3)) };
    let routing = queue(&event(Some(3)), &attach(&["a"]), &known);
    check_enqueued(&routing.unwrap(), &ready(3), &["a"]);
}

#[test]
fn attach_refuses_keys_of_another_work_than_the_addressed_one() {
    let known = RouteFacts { addressed: Some(ready(3)), ..facts(&[("a", Some(4))], Some(ready(4))) };
    let refused = queue(&event(Some(3)), &attach(&["a"]), &known);
    assert_eq!(refused, Err(RouteRefusal::Contradiction { addressed: WorkId::from_number(3) }));
}

#[test]
fn addressed_selects_the_work_the_event_names() {
    let routing = queue(&event(Some(3)), &Match::Addressed, &addressed(ready(3)));
    check_enqueued(&routing.unwrap(), &ready(3), &[]);
    let refused = queue(&event(None), &Match::Addressed, &facts(&[], None));
    assert_eq!(refused, Err(RouteRefusal::NotAddressed));
}

#[test]
fn fresh_creates_a_work_with_or_without_keys() {
    let routing = queue(&event(None), &fresh(&[]), &facts(&[], None));
    check_created(&routing.unwrap(), Lifecycle::Once, &[]);
    let routing = queue(&event(None), &fresh(&["a"]), &facts(&[("a", None)], None));
    check_created(&routing.unwrap(), Lifecycle::Once, &["a"]);
}

#[test]
fn fresh_takes_no_owned_key() {
    let known = facts(&[("a", None), ("b", Some(3))], Some(ready(3)));
    let owner = WorkId::from_number(3);
    assert_eq!(queue(&event(None), &fresh(&["a", "b"]), &known), Err(RouteRefusal::KeyOwned { owner }));
}

#[test]
fn fresh_contradicts_an_address() {
    let refused = queue(&event(Some(3)), &fresh(&[]), &addressed(ready(3)));
    assert_eq!(refused, Err(RouteRefusal::Contradiction { addressed: WorkId::from_number(3) }));
}

#[test]
fn a_handler_s_drop_is_recorded_with_its_reason_and_needs_no_binding() {
    let wants = Match::Drop { code: Code::known("fork"), reason: "from a fork".to_owned() };
    for (known, work) in [
        (facts(&[], None), None),
        (addressed(ready(3)), Some(3)),
        (facts(&[("a", Some(4))], Some(running(4))), Some(4)),
    ] {
        let routing = route(&event(None), &wants, ActivePolicy::Queue.into(), false, &known, NOW).unwrap();
        check_without_effect(&routing, CheckpointOutcome::Dropped, work, "fork");
        assert_eq!(routing.because.map(|(_code, reason)| reason).as_deref(), Some("from a fork"));
    }
}

#[test]
fn a_late_event_of_an_ended_work_is_terminal_and_attaches_nothing() {
    for state in [WorkState::Completed, WorkState::Failed, WorkState::Cancelled] {
        let owned = facts(&[("a", Some(3)), ("b", None)], Some(numbered(3, state)));
        for has_binding in [true, false] {
            for policy in
                [ActivePolicy::Queue, ActivePolicy::Inject, ActivePolicy::Interrupt, ActivePolicy::Drop]
            {
                let wants = attach(&["a", "b"]);
                let routing = route(&event(None), &wants, policy.into(), has_binding, &owned, NOW).unwrap();
                check_without_effect(&routing, CheckpointOutcome::Terminal, Some(3), "terminal_work");
            }
        }
    }
}

#[test]
fn a_work_of_another_scope_is_out_of_reach_in_every_state() {
    let elsewhere = ScopeName::known("other");
    for state in [WorkState::Ready, WorkState::Running { execution: LIVE }, WorkState::Completed] {
        let target = Work { scope: elsewhere.clone(), ..numbered(3, state) };
        let refusal = RouteRefusal::CrossScope { work: target.id, scope: elsewhere.clone() };
        let owned = facts(&[("a", Some(3))], Some(target.clone()));
        assert_eq!(queue(&event(None), &attach(&["a"]), &owned), Err(refusal.clone()));
        assert_eq!(queue(&event(Some(3)), &Match::Addressed, &addressed(target)), Err(refusal));
    }
}

#[test]
fn the_drop_policy_holds_only_while_the_work_runs() {
    let drops = |target: Work| {
        let owned = facts(&[("a", Some(3)), ("b", None)], Some(target));
        route(&event(None), &attach(&["a", "b"]), ActivePolicy::Drop.into(), true, &owned, NOW).unwrap()
    };
    check_without_effect(&drops(running(3)), CheckpointOutcome::Dropped, Some(3), "active_drop");
    check_enqueued(&drops(ready(3)), &ready(3), &["b"]);
    let created = route(
        &event(None),
        &attach(&["a"]),
        ActivePolicy::Drop.into(),
        true,
        &facts(&[("a", None)], None),
        NOW,
    );
    check_created(&created.unwrap(), Lifecycle::Standing, &["a"]);
}

#[test]
fn the_queue_policy_queues_whether_the_work_runs_or_not() {
    for target in [ready(3), running(3)] {
        let owned = facts(&[("a", Some(3))], Some(target.clone()));
        check_enqueued(&queue(&event(None), &attach(&["a"]), &owned).unwrap(), &target, &[]);
    }
}

/// A running Work with an attempt whose executor has these controls, and what a route makes of an Event for it.
fn ordered(policy: ActivePolicy, fallbacks: Fallbacks, attempt: Execution) -> Routing {
    let owned = facts(&[("a", Some(3))], Some(running(3)));
    let known = RouteFacts { attempt: Some(attempt), ..owned };
    route(&event(None), &attach(&["a"]), WhileActive { policy, fallbacks }, true, &known, NOW).unwrap()
}

#[test]
fn inject_and_interrupt_order_the_running_attempt_and_queue_the_event() {
    for policy in [ActivePolicy::Inject, ActivePolicy::Interrupt] {
        let routing = ordered(policy, Fallbacks::default(), execution());
        check_enqueued(&routing, &running(3), &[]);
        assert_eq!((routing.policy, routing.order), (Some(policy), policy.order()));
        assert_eq!(routing.because, None);
        let idle = facts(&[("a", Some(3))], Some(ready(3)));
        let idle = route(&event(None), &attach(&["a"]), policy.into(), true, &idle, NOW).unwrap();
        assert_eq!((idle.policy, idle.order), (Some(policy), None), "no attempt, no order");
    }
}

#[test]
fn an_attempt_that_came_to_its_end_is_given_no_order() {
    let over = Execution { lease: None, outcome: Some(crate::outcome::Outcome::Completed), ..execution() };
    let routing = ordered(ActivePolicy::Inject, Fallbacks::default(), over);
    check_enqueued(&routing, &running(3), &[]);
    assert_eq!((routing.order, routing.because.unwrap().0.as_str()), (None, "run_over"));
}

#[test]
fn what_the_executor_cannot_do_falls_back_only_where_that_is_configured() {
    let cannot = || Execution { controls: Controls::NONE, ..execution() };
    for policy in [ActivePolicy::Inject, ActivePolicy::Interrupt] {
        let plain = ordered(policy, Fallbacks::default(), cannot());
        assert_eq!((plain.policy, plain.order), (Some(policy), policy.order()), "queue is never inferred");
        let queues = Fallbacks { unsupported: Some(Fallback::Queue), on_error: None };
        let queued = ordered(policy, queues, cannot());
        check_enqueued(&queued, &running(3), &[]);
        assert_eq!((queued.policy, queued.order), (Some(ActivePolicy::Queue), None));
        let (code, reason) = queued.because.unwrap();
        assert_eq!(code.as_str(), "fallback");
        assert!(reason.contains(policy.as_str()) && reason.contains("`shell`"), "{reason}");
        let drops = Fallbacks { unsupported: Some(Fallback::Drop), on_error: None };
        let dropped = ordered(policy, drops, cannot());
        check_without_effect(&dropped, CheckpointOutcome::Dropped, Some(3), "fallback");
        assert_eq!(dropped.policy, Some(ActivePolicy::Drop));
        assert_eq!(ordered(policy, queues, execution()).order, policy.order(), "it can, so it does");
    }
}

#[test]
fn a_route_without_a_binding_can_only_drop() {
    let bare = |addressed: Option<i64>, wants: &Match, facts: &RouteFacts| {
        route(&event(addressed), wants, ActivePolicy::Queue.into(), false, facts, NOW)
    };
    let refused = Err(RouteRefusal::NoBinding);
    assert_eq!(bare(None, &attach(&["a"]), &facts(&[("a", None)], None)), refused);
    assert_eq!(bare(None, &attach(&["a"]), &facts(&[("a", Some(3))], Some(ready(3)))), refused);
    assert_eq!(bare(None, &fresh(&[]), &facts(&[], None)), refused);
    assert_eq!(bare(Some(3), &Match::Addressed, &addressed(running(3))), refused);
}

#[test]
fn a_work_is_never_news_to_itself() {
    let own = Event {
        event_type: EventType::known("core.turn.ended"),
        emitted_by: Some(ExecutionId::from_number(9)),
        ..event(Some(3))
    };
    let routing = queue(&own, &Match::Addressed, &addressed(ready(3))).unwrap();
    check_without_effect(&routing, CheckpointOutcome::Dropped, Some(3), "own_news");
    // What the runtime publishes to a Work without an Execution of its own is input: a retry that is due.
    let due = Event { emitted_by: None, ..own };
    check_enqueued(&queue(&due, &Match::Addressed, &addressed(ready(3))).unwrap(), &ready(3), &[]);
}

#[test]
fn keys_have_one_order_and_no_repeats() {
    let other = Key { source: SourceName::known("hook/cd"), external_id: ExternalId::known("z") };
    let keys = canonical(vec![key("b"), key("a"), other.clone(), key("b"), key("A")]);
    assert_eq!(keys, [other, key("A"), key("a"), key("b")]);
    assert_eq!(canonical(Vec::new()), []);
}

#[test]
fn every_refusal_has_its_own_word() {
    let work = WorkId::from_number(3);
    let refusals = [
        RouteRefusal::KeyConflict { first: work, second: work },
        RouteRefusal::KeyOwned { owner: work },
        RouteRefusal::CrossScope { work, scope: ScopeName::known("other") },
        RouteRefusal::NotAddressed,
        RouteRefusal::Contradiction { addressed: work },
        RouteRefusal::NoKey,
        RouteRefusal::NoBinding,
    ];
    let mut words: Vec<_> = refusals.iter().map(RouteRefusal::code).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), refusals.len());
    assert!(words.iter().all(|word| Code::new(word).is_ok()));
}

/// What is wanted of a key whose Work has ended, by a route that reopens after these ends.
fn reopening(ended: WorkState, reopens: &[End]) -> Result<Routing, RouteRefusal> {
    let wants = Match::Attach {
        keys: vec![key("b"), key("c")],
        kind: kind(),
        lifecycle: Lifecycle::Standing,
        concurrency: Some(ConcurrencyKey::known("deploy")),
        reopens: reopens.to_vec(),
    };
    let owner = numbered(2, ended);
    let line = Some(Line { place: None, keys: vec![key("a"), key("b")] });
    let facts = RouteFacts { line, ..facts(&[("b", Some(2)), ("c", None)], Some(owner)) };
    queue(&event(None), &wants, &facts)
}

#[test]
fn a_successor_is_created_only_after_the_ends_that_are_named() {
    let ends = [WorkState::Completed, WorkState::Failed, WorkState::Cancelled];
    let named = [End::Completed, End::Failed, End::Cancelled];
    for (ended, end) in ends.into_iter().zip(named) {
        let others: Vec<End> = named.into_iter().filter(|other| *other != end).collect();
        let routing = reopening(ended, &others).unwrap();
        check_without_effect(&routing, CheckpointOutcome::Terminal, Some(2), "terminal_work");
        let routing = reopening(ended, &[end]).unwrap();
        assert_eq!((routing.outcome, routing.work), (CheckpointOutcome::Routed, Some(PROPOSED)));
        let RouteEffect::Succeed { work, place, attach } = routing.effect else { panic!("{routing:?}") };
        assert_eq!(attach, ["a/generation/2", "b/generation/2", "c/generation/2"].map(key), "all its keys");
        assert_eq!((place.predecessor, place.generation), (WorkId::from_number(2), 2));
        assert_eq!(work.concurrency, Some(ConcurrencyKey::known("deploy")));
    }
}

#[test]
fn a_successor_needs_a_binding_its_own_scope_and_keys_that_fit() {
    let wants = Match::Attach {
        keys: vec![key("k")],
        kind: kind(),
        lifecycle: Lifecycle::Once,
        concurrency: None,
        reopens: vec![End::Completed],
    };
    let line = |keys| Some(Line { place: None, keys });
    let owned = |keys, owner| RouteFacts { line: line(keys), ..facts(&[("k", Some(2))], Some(owner)) };
    let ended = numbered(2, WorkState::Completed);
    let unbound =
        route(&event(None), &wants, ActivePolicy::Queue.into(), false, &owned(vec![], ended.clone()), NOW);
    assert_eq!(unbound, Err(RouteRefusal::NoBinding));
    let elsewhere = Work { scope: ScopeName::known("other"), ..ended.clone() };
    let refused = queue(&event(None), &wants, &owned(vec![], elsewhere));
    assert!(matches!(refused, Err(RouteRefusal::CrossScope { .. })), "{refused:?}");
    let long = key(&"x".repeat(ExternalId::BYTES_MAX));
    let refused = queue(&event(None), &wants, &owned(vec![long], ended));
    assert_eq!(refused.unwrap_err().code(), "key_too_long");
}
