//! Who may subscribe to what, what is translated, and what an alias carries.

use super::{SCAN_MAX, Subscribe, SubscribeFacts, SubscribeRefusal, Subscription, may_read};
use crate::causal::{Bounds, Origin};
use crate::event::{Causation, Event, Key};
use crate::id::{EventId, ExecutionId, Sequence, WaitId, WorkId};
use crate::scope::Settings;
use crate::text::{DeliveryId, EventType, ExternalId, ScopeName, SourceName, SubscriptionId, WorkKind};
use crate::time::Timestamp;
use crate::wait::{TERMS_MAX, Wait, WaitState};
use crate::work::{Lifecycle, Work};

const DEPENDENT: WorkId = WorkId::from_number(1);
const OWNER: WorkId = WorkId::from_number(2);
const NOW: Timestamp = Timestamp::from_micros(1_000_000_000);

const fn at(number: i64) -> Sequence {
    Sequence::from_number(number)
}

fn key(id: &str) -> Key {
    Key { source: SourceName::known("test"), external_id: ExternalId::known(id) }
}

fn scope(name: &str) -> ScopeName {
    ScopeName::known(name)
}

fn asked() -> Subscribe {
    Subscribe {
        id: SubscriptionId::known("s-1"),
        work: DEPENDENT,
        watched: key("theirs"),
        types: vec![EventType::known("build.finished")],
        own: key("mine"),
        becomes: EventType::known("test.alias"),
        after: at(10),
    }
}

fn facts() -> SubscribeFacts {
    SubscribeFacts {
        work: Some(Work::create(DEPENDENT, scope("main"), WorkKind::known("test"), Lifecycle::Once, NOW)),
        wait: Some(WaitId::from_number(9)),
        own: Some(DEPENDENT),
        watched: Some((OWNER, scope("main"))),
        known: None,
        last: at(20),
    }
}

fn installed() -> Subscription {
    asked().admit(facts(), &[], NOW).expect("it is a good subscription")
}

fn event(sequence: i64) -> Event {
    let id = EventId::from_number(sequence);
    Event {
        id,
        sequence: at(sequence),
        source: SourceName::known("ci"),
        delivery_id: DeliveryId::known(&format!("d-{sequence}")),
        event_type: EventType::known("build.finished"),
        scope: scope("main"),
        key: Some(key("theirs")),
        work: None,
        causation: Causation::root(id, Bounds::of(&Settings::default())),
        emitted_by: None,
        occurred_at: None,
        accepted_at: NOW,
    }
}

#[test]
fn an_installation_that_may_not_be_is_refused_for_its_reason() {
    let refusal = |asked: Subscribe, facts: SubscribeFacts| asked.admit(facts, &[], NOW).unwrap_err();
    let ended = facts().work.map(|work| work.cancel(NOW).expect("it can be cancelled"));
    let elsewhere = SubscribeFacts { watched: Some((OWNER, scope("other"))), ..facts() };
    let types = vec![EventType::known("a"); TERMS_MAX + 1];
    for (asked, facts, code) in [
        (asked(), SubscribeFacts { work: None, ..facts() }, "unknown_work"),
        (asked(), SubscribeFacts { work: ended, ..facts() }, "terminal_work"),
        (asked(), SubscribeFacts { own: Some(OWNER), ..facts() }, "foreign_key"),
        (asked(), SubscribeFacts { own: None, ..facts() }, "foreign_key"),
        (asked(), SubscribeFacts { watched: Some((DEPENDENT, scope("main"))), ..facts() }, "own_key"),
        (asked(), elsewhere.clone(), "not_authorized"),
        (Subscribe { becomes: EventType::known("core.turn.ended"), ..asked() }, facts(), "reserved_type"),
        (Subscribe { types, ..asked() }, facts(), "too_many_types"),
        (Subscribe { after: at(21), ..asked() }, facts(), "ahead"),
    ] {
        assert_eq!(refusal(asked, facts).code(), code);
    }
    let reads = [scope("other")];
    assert!(asked().admit(elsewhere, &reads, NOW).is_ok(), "the configuration allows it");
    assert!(asked().admit(SubscribeFacts { watched: None, ..facts() }, &[], NOW).is_ok(), "nobody's key yet");
    assert_eq!(SubscribeRefusal::Behind { after: at(1) }.code(), "behind");
    assert!(SubscribeRefusal::Behind { after: at(1) }.to_string().contains(&SCAN_MAX.to_string()));
}

#[test]
fn a_subscription_that_is_installed_again_goes_on_from_what_it_has_observed() {
    let known = installed().observed(at(15));
    let again = |asked: Subscribe, known: Subscription| {
        asked.admit(SubscribeFacts { known: Some(known), wait: None, ..facts() }, &[], NOW)
    };
    assert_eq!(again(asked(), known.clone()), Ok(known.clone()), "its checkpoint does not go back");
    let later = Subscribe { after: at(18), ..asked() };
    assert_eq!(again(later, known.clone()), Ok(known.clone().observed(at(18))));
    let other = Subscribe { becomes: EventType::known("other.alias"), ..asked() };
    assert_eq!(again(other, known.clone()), Err(SubscribeRefusal::Taken));
    let ended = known.end(NOW).expect("it goes on");
    assert_eq!(ended.end(NOW), None, "it ends once");
    assert_eq!(again(asked(), ended), Err(SubscribeRefusal::Over));
}

#[test]
fn a_subscription_matches_later_news_of_its_key_its_types_and_what_it_may_read() {
    let subscription = installed();
    let matches = |event: &Event| subscription.matches(event, &[]);
    assert!(matches(&event(11)));
    assert!(!matches(&event(10)), "observed");
    assert!(!matches(&Event { key: Some(key("mine")), ..event(11) }));
    assert!(!matches(&Event { key: None, ..event(11) }));
    assert!(!matches(&Event { event_type: EventType::known("build.started"), ..event(11) }));
    let any = Subscription { types: Vec::new(), ..subscription.clone() };
    assert!(any.matches(&Event { event_type: EventType::known("build.started"), ..event(11) }, &[]));
    let replay = Event { event_type: EventType::known("core.replay.requested"), ..event(11) };
    assert!(!any.matches(&replay, &[]), "it was told of the original");
    let foreign = Event { scope: scope("other"), ..event(11) };
    assert!(!matches(&foreign));
    assert!(subscription.matches(&foreign, &[scope("other")]));
    let own = Event { work: Some(DEPENDENT), emitted_by: Some(ExecutionId::from_number(5)), ..event(11) };
    assert!(!matches(&own), "a Work is never news to itself");
    let ended = subscription.end(NOW).unwrap();
    assert!(!ended.matches(&event(11), &[]));
    assert!(may_read(&scope("a"), &[], &scope("a")) && !may_read(&scope("a"), &[], &scope("b")));
}

#[test]
fn an_alias_is_caused_by_the_original_and_tells_nothing_of_its_payload() {
    let original = event(11);
    let alias = installed().translate(&original, EventId::from_number(99));
    assert_eq!(alias.origin, Origin::Derived { parent: original.id, emitted_by: None });
    assert_eq!((alias.work, alias.key, alias.scope), (Some(DEPENDENT), Some(key("mine")), scope("main")));
    assert_eq!(alias.event_type, EventType::known("test.alias"));
    assert!(alias.source.is_core(), "nobody can forge it");
    assert_eq!(alias.delivery_id.as_str(), format!("s-1/{}", original.id));
    let body: serde_json::Value = serde_json::from_slice(alias.payload.as_bytes()).unwrap();
    let id = original.id.to_string();
    assert_eq!(body, serde_json::json!({ "event": id, "type": "build.finished", "source": "ci" }));
    let longest = SubscriptionId::known(&"x".repeat(SubscriptionId::BYTES_MAX));
    let long = Subscription { id: longest, ..installed() };
    assert!(long.translate(&original, original.id).delivery_id.as_str().len() <= DeliveryId::BYTES_MAX);
}

#[test]
fn a_wait_is_fed_by_what_makes_an_event_that_it_is_for() {
    let wait = |types: &[&str], keys: &[&str]| Wait {
        id: WaitId::from_number(9),
        work: DEPENDENT,
        scope: scope("main"),
        execution: ExecutionId::from_number(5),
        keys: keys.iter().map(|id| key(id)).collect(),
        types: types.iter().map(|name| EventType::known(name)).collect(),
        after: at(10),
        timeout: None,
        registered_at: NOW,
        state: WaitState::Active,
    };
    let subscription = installed();
    assert!(
        subscription.feeds(&wait(&["test.alias"], &["mine"])) && subscription.feeds(&wait(&[], &["mine"]))
    );
    assert!(!subscription.feeds(&wait(&["build.finished"], &["mine"])));
    assert!(!subscription.feeds(&wait(&[], &["another"])));
    assert!(!subscription.feeds(&Wait { work: OWNER, ..wait(&[], &["mine"]) }));
    assert!(!subscription.end(NOW).unwrap().feeds(&wait(&[], &["mine"])));
}
