use super::{AcceptFacts, AcceptRefusal, Authority, Delivery, admit, authorize};
use crate::causal::{Bounds, CausalRefusal, Origin};
use crate::event::{Key, Payload};
use crate::id::{EventId, ExecutionId, Sequence, WorkId};
use crate::text::{DeliveryId, EventType, ExternalId, ScopeName, SourceName, WorkKind};
use crate::time::Timestamp;
use crate::work::{Lifecycle, Work};

const NOW: Timestamp = Timestamp::from_micros(1_000_000);

const BOUNDS: Bounds = Bounds { max_depth: 2, per_minute: 128 };

fn nothing_known() -> AcceptFacts {
    AcceptFacts::new(BOUNDS)
}

fn delivery() -> Delivery {
    Delivery {
        id: EventId::from_number(10),
        source: SourceName::known("hook/ci"),
        delivery_id: DeliveryId::known("d-1"),
        event_type: EventType::known("build.finished"),
        scope: ScopeName::known("main"),
        key: None,
        work: None,
        occurred_at: None,
        payload: Payload::null(),
        origin: Origin::Root,
    }
}

fn work(number: i64, scope: &str) -> Work {
    Work::create(
        WorkId::from_number(number),
        ScopeName::known(scope),
        WorkKind::known("manual.work"),
        Lifecycle::Standing,
        NOW,
    )
}

#[track_caller]
fn check(delivery: &Delivery, facts: &AcceptFacts, expect: &Result<(), AcceptRefusal>) {
    let answer = admit(delivery, facts, Sequence::FIRST, NOW).map(|_event| ());
    assert_eq!(&answer, expect);
}

#[test]
fn admit_makes_a_root_of_a_root() {
    let event = admit(&delivery(), &nothing_known(), Sequence::from_number(5), NOW).unwrap();
    assert_eq!(event.causation.root, event.id);
    assert_eq!(event.causation.depth, 0);
    assert_eq!(event.causation.parent, None);
    assert_eq!(event.accepted_at, NOW);
}

#[test]
fn admit_keeps_the_chain_of_a_derived_delivery() {
    let root = admit(&delivery(), &nothing_known(), Sequence::FIRST, NOW).unwrap();
    let by = ExecutionId::from_number(77);
    let child = Delivery {
        id: EventId::from_number(11),
        origin: Origin::Derived { parent: root.id, emitted_by: Some(by) },
        ..delivery()
    };
    let facts = AcceptFacts { parent: Some(root.clone()), ..nothing_known() };
    let event = admit(&child, &facts, Sequence::FIRST, NOW).unwrap();
    assert_eq!(event.causation.root, root.id);
    assert_eq!(event.causation.parent, Some(root.id));
    assert_eq!(event.causation.depth, 1);
    assert_eq!(event.emitted_by, Some(by));
    check(&child, &nothing_known(), &Err(AcceptRefusal::UnknownParent(root.id)));
}

#[test]
fn a_chain_ends_at_the_depth_its_root_was_pinned_to() {
    let mut parent = admit(&delivery(), &nothing_known(), Sequence::FIRST, NOW).unwrap();
    let wider = Bounds { max_depth: 1024, per_minute: 100_000 };
    for depth in 1..=3 {
        let child = Delivery {
            id: EventId::from_number(10 + depth),
            origin: Origin::Derived { parent: parent.id, emitted_by: None },
            ..delivery()
        };
        // The scope that it is accepted in would allow more.
        let facts = AcceptFacts { parent: Some(parent.clone()), ..AcceptFacts::new(wider) };
        match admit(&child, &facts, Sequence::FIRST, NOW) {
            Ok(event) => {
                assert_eq!((event.causation.depth, event.causation.bounds), (depth, BOUNDS));
                parent = event;
            }
            Err(refusal) => {
                assert_eq!(depth, 3);
                assert_eq!(refusal, AcceptRefusal::Causal(CausalRefusal::Depth { depth: 2 }));
                assert_eq!(refusal.code(), "depth_limit");
            }
        }
    }
    assert_eq!(parent.causation.depth, 2);
}

#[test]
fn admit_refuses_identities_that_contradict() {
    let target = WorkId::from_number(3);
    let addressed = Delivery { work: Some(target), ..delivery() };
    check(&addressed, &nothing_known(), &Err(AcceptRefusal::UnknownWork(target)));

    let elsewhere = AcceptFacts { target: Some(work(3, "other")), ..nothing_known() };
    check(
        &addressed,
        &elsewhere,
        &Err(AcceptRefusal::ScopeMismatch { work: target, scope: ScopeName::known("other") }),
    );

    let here = AcceptFacts { target: Some(work(3, "main")), ..nothing_known() };
    check(&addressed, &here, &Ok(()));

    let key = Key { source: SourceName::known("hook/ci"), external_id: ExternalId::known("1") };
    let keyed = Delivery { key: Some(key), ..addressed };
    check(&keyed, &here, &Err(AcceptRefusal::KeyMismatch(target)));
    let other_owner = AcceptFacts { key_owner: Some(WorkId::from_number(4)), ..here.clone() };
    check(&keyed, &other_owner, &Err(AcceptRefusal::KeyMismatch(target)));
    check(&keyed, &AcceptFacts { key_owner: Some(target), ..here }, &Ok(()));
}

#[test]
fn authorize_keeps_the_runtime_s_names_to_the_runtime() {
    let of = |source: &str, event_type: &str, authority| {
        let delivery = Delivery {
            source: SourceName::known(source),
            event_type: EventType::known(event_type),
            ..delivery()
        };
        authorize(&delivery, authority)
    };
    for authority in [Authority::Operator, Authority::Ingress] {
        assert_eq!(of("hook/ci", "core.retry.due", authority), Err(AcceptRefusal::ReservedType));
        assert_eq!(of("core.timer", "x", authority), Err(AcceptRefusal::ReservedSource));
        assert_eq!(of("hook/ci", "x", authority), Ok(()));
    }
    assert_eq!(of("core.manual", "x", Authority::Operator), Ok(()));
    assert_eq!(of("core.manual", "x", Authority::Ingress), Err(AcceptRefusal::ReservedSource));
    assert_eq!(of("core", "core.turn.ended", Authority::Core), Ok(()));
}

#[test]
fn authorize_keeps_the_namespaces_of_cloud_events_from_entries() {
    let of = |authority| {
        let source = SourceName::of_cloud_event("/builds").unwrap();
        authorize(&Delivery { source, event_type: EventType::known("x"), ..delivery() }, authority)
    };
    assert_eq!(of(Authority::Operator), Ok(()));
    assert_eq!(of(Authority::Ingress), Err(AcceptRefusal::ReservedSource));
}
