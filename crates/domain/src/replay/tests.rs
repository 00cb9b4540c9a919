use super::{REPLAY_REQUESTED, ReplayRefusal, delivery, is_replay, seen};
use crate::causal::{Bounds, Origin};
use crate::delivery::{AcceptFacts, admit};
use crate::event::{Causation, Event, Key, Payload};
use crate::id::{EventId, ExecutionId, Sequence};
use crate::text::{DeliveryId, EventType, ExternalId, ScopeName, SourceName};
use crate::time::Timestamp;

const BOUNDS: Bounds = Bounds { max_depth: 3, per_minute: 9 };

fn event(event_type: &str) -> Event {
    let id = EventId::from_number(1);
    Event {
        id,
        sequence: Sequence::from_number(1),
        source: SourceName::known("hook/ci"),
        delivery_id: DeliveryId::known("d-1"),
        event_type: EventType::known(event_type),
        scope: ScopeName::known("main"),
        key: Some(Key { source: SourceName::known("ci"), external_id: ExternalId::known("7") }),
        work: None,
        causation: Causation::root(id, BOUNDS),
        emitted_by: None,
        occurred_at: Some(Timestamp::from_micros(5)),
        accepted_at: Timestamp::from_micros(6),
    }
}

fn replay_of(original: &Event) -> Event {
    let payload = Some(Payload::null());
    let delivery =
        delivery(original, true, payload, EventId::from_number(2), DeliveryId::known("again")).unwrap();
    let facts = AcceptFacts { parent: Some(original.clone()), ..AcceptFacts::new(BOUNDS) };
    admit(&delivery, &facts, Sequence::from_number(2), Timestamp::from_micros(9)).unwrap()
}

#[test]
fn a_replay_is_an_event_of_its_own_on_the_chain_of_the_one_it_repeats() {
    let original = event("build.finished");
    let replay = replay_of(&original);
    assert!(is_replay(&replay) && !is_replay(&original));
    assert_eq!((replay.event_type.as_str(), replay.source.as_str()), (REPLAY_REQUESTED, "core.manual"));
    assert_eq!((replay.causation.parent, replay.causation.depth), (Some(original.id), 1));
    assert_eq!(replay.causation.root, original.id);
    assert_eq!((&replay.key, &replay.scope), (&original.key, &original.scope));
}

#[test]
fn a_replay_is_seen_as_what_the_original_said() {
    let original = Event { emitted_by: Some(ExecutionId::from_number(4)), ..event("core.turn.ended") };
    let replay = replay_of(&original);
    assert!(!replay.is_announcement(), "nothing published it but an operator");
    let seen = seen(replay.clone(), &original);
    assert_eq!((&seen.event_type, &seen.source), (&original.event_type, &original.source));
    assert!(seen.is_announcement(), "and it is as little news to its own Work");
    assert_eq!((seen.id, seen.sequence, seen.causation), (replay.id, replay.sequence, replay.causation));
    assert_eq!(seen.delivery_id, replay.delivery_id);
}

#[test]
fn delivery_refuses_what_cannot_be_looked_at_again() {
    let asked = |event_type: &str, is_routed, payload: Option<Payload>| {
        let (id, name) = (EventId::from_number(2), DeliveryId::known("again"));
        delivery(&event(event_type), is_routed, payload, id, name).map(|delivery| delivery.origin)
    };
    let payload = || Some(Payload::null());
    let derived = Origin::Derived { parent: EventId::from_number(1), emitted_by: None };
    assert_eq!(asked("a.b", true, payload()), Ok(derived));
    assert_eq!(asked(REPLAY_REQUESTED, true, payload()), Ok(derived), "a replay may be replayed");
    assert_eq!(asked("a.b", false, payload()), Err(ReplayRefusal::Unrouted));
    assert_eq!(asked("a.b", true, None), Err(ReplayRefusal::Released));
    for control in ["core.retry.due", "core.retry.requested", "core.wait.timeout", "core.manual.interrupt"] {
        assert_eq!(asked(control, true, payload()), Err(ReplayRefusal::Control), "{control}");
    }
}
