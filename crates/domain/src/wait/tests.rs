//! What a Wait takes for news, how it begins, and which Event ends it.

use super::{
    Arbitration, Candidates, Registration, RegistrationFacts, Timeout, Wait, WaitRefusal, WaitState,
};
use crate::causal::Bounds;
use crate::event::{Causation, Event, Key};
use crate::id::{EventId, ExecutionId, Sequence, TimerId, WaitId, WorkId};
use crate::scope::Settings;
use crate::text::{DeliveryId, EventType, ExternalId, ScopeName, SourceName};
use crate::time::Timestamp;

const WORK: WorkId = WorkId::from_number(1);
const OTHER: WorkId = WorkId::from_number(2);
const RUN: ExecutionId = ExecutionId::from_number(5);
const NOW: Timestamp = Timestamp::from_micros(1_000_000_000);

const fn at(number: i64) -> Sequence {
    Sequence::from_number(number)
}

fn key(id: &str) -> Key {
    Key { source: SourceName::known("test"), external_id: ExternalId::known(id) }
}

fn event(sequence: i64, key_id: Option<&str>, event_type: &str) -> Event {
    let id = EventId::from_number(sequence);
    Event {
        id,
        sequence: at(sequence),
        source: SourceName::known("test"),
        delivery_id: DeliveryId::known(&format!("d-{sequence}")),
        event_type: EventType::known(event_type),
        scope: ScopeName::known("main"),
        key: key_id.map(key),
        work: None,
        causation: Causation::root(id, Bounds::of(&Settings::default())),
        emitted_by: None,
        occurred_at: None,
        accepted_at: NOW,
    }
}

fn facts() -> RegistrationFacts {
    RegistrationFacts {
        id: WaitId::from_number(9),
        timer: TimerId::from_number(8),
        work: WORK,
        scope: ScopeName::known("main"),
        execution: RUN,
        keys: vec![key("b"), key("a")],
        consumed: at(10),
        pending: None,
        last: at(20),
    }
}

fn registered(registration: &Registration) -> Wait {
    registration.admit(facts(), NOW).expect("it is a good registration")
}

fn build_of_a() -> Wait {
    registered(&Registration {
        keys: Some(vec![key("a")]),
        types: vec![EventType::known("build.finished"), EventType::known("build.failed")],
        timeout_seconds: Some(60),
        ..Registration::default()
    })
}

#[test]
fn a_wait_matches_news_of_its_keys_and_types_only() {
    let wait = build_of_a();
    let good = || event(11, Some("a"), "build.finished");
    assert!(wait.matches(&good()));
    assert!(wait.matches(&event(11, Some("a"), "build.failed")), "types are alternatives");
    for (why, other) in [
        ("at the watermark", event(10, Some("a"), "build.finished")),
        ("another key", event(11, Some("b"), "build.finished")),
        ("no key", event(11, None, "build.finished")),
        ("another type", event(11, Some("a"), "build.started")),
        ("addressed elsewhere", Event { work: Some(OTHER), ..good() }),
        ("its own emission", Event { work: Some(WORK), emitted_by: Some(RUN), ..good() }),
        (
            "an earlier attempt's",
            Event { work: Some(WORK), emitted_by: Some(ExecutionId::from_number(4)), ..good() },
        ),
        ("another scope", Event { scope: ScopeName::known("other"), ..good() }),
    ] {
        assert!(!wait.matches(&other), "{why}");
    }
    assert!(wait.matches(&Event { work: Some(WORK), ..good() }), "addressed to it");
    assert!(wait.matches(&Event { emitted_by: Some(RUN), ..good() }), "published about something else");
    let any = registered(&Registration::default());
    assert!(any.matches(&event(11, Some("b"), "whatever.happened")), "no type stands for any");
}

#[test]
fn a_wait_begins_behind_what_was_seen_and_before_what_was_not() {
    let wait = registered(&Registration::default());
    assert_eq!((wait.after, wait.keys), (at(10), vec![key("a"), key("b")]), "all keys of the Work");
    let pending = RegistrationFacts { pending: Some(at(7)), ..facts() };
    let before = Registration::default().admit(pending, NOW).unwrap();
    assert_eq!(before.after, at(6), "a later input that was taken in does not hide an earlier one");
    let seen = |after| Registration { after: Some(at(after)), ..Registration::default() };
    assert_eq!(registered(&seen(15)).after, at(15));
    assert_eq!(registered(&seen(3)).after, at(10), "nothing moves it back");
    assert_eq!(registered(&seen(20)).after, at(20));
    let ahead = seen(21).admit(facts(), NOW);
    assert_eq!(ahead, Err(WaitRefusal::Ahead { after: at(21), last: at(20) }));
}

#[test]
fn a_registration_that_nothing_could_end_is_refused() {
    let refused = |registration: Registration| registration.admit(facts(), NOW).unwrap_err();
    let foreign = Registration { keys: Some(vec![key("z")]), ..Registration::default() };
    assert_eq!(refused(foreign), WaitRefusal::ForeignKey);
    let keyless = || Registration { keys: Some(Vec::new()), ..Registration::default() };
    assert_eq!(refused(keyless()), WaitRefusal::Endless);
    for seconds in [0, 400 * 24 * 3600 + 1] {
        let registration = Registration { timeout_seconds: Some(seconds), ..keyless() };
        assert_eq!(refused(registration), WaitRefusal::Timeout);
    }
    let types = vec![EventType::known("build.finished"); 65];
    assert_eq!(refused(Registration { types, ..Registration::default() }), WaitRefusal::TooMany);
    let timeout = registered(&Registration { timeout_seconds: Some(1), ..keyless() }).timeout;
    let due_at = Timestamp::from_micros(NOW.as_micros() + 1_000_000);
    assert_eq!(timeout, Some(Timeout { timer: TimerId::from_number(8), due_at }));
}

#[test]
fn the_lowest_accepted_sequence_ends_a_wait_and_a_clock_only_brings_its_timeout() {
    let wait = build_of_a();
    let due = wait.timeout.unwrap().due_at;
    let before = Timestamp::from_micros(due.as_micros() - 1);
    let decide = |matched: Option<i64>, timeout: Option<i64>, now| {
        wait.arbitrate(Candidates { matched: matched.map(at), timeout: timeout.map(at) }, now)
    };
    assert_eq!(decide(None, None, before), Arbitration::Goes);
    assert_eq!(decide(None, None, due), Arbitration::TimedOut);
    assert_eq!(decide(Some(12), None, due), Arbitration::Won(at(12)), "accepted first, even at the deadline");
    assert_eq!(decide(Some(13), Some(12), due), Arbitration::Won(at(12)), "the timeout was accepted first");
    assert_eq!(decide(Some(12), Some(13), due), Arbitration::Won(at(12)));
    assert_eq!(decide(None, Some(12), before), Arbitration::Won(at(12)));
    let endless = registered(&Registration::default());
    assert_eq!(endless.arbitrate(Candidates::default(), Timestamp::MAX), Arbitration::Goes);
}

#[test]
fn a_wait_ends_once() {
    let wait = build_of_a();
    let winner = event(11, Some("a"), "build.finished");
    let woken = wait.wake(&winner, NOW).unwrap();
    let state = WaitState::Woken { winner: winner.id, sequence: winner.sequence, at: NOW };
    assert_eq!(woken.state, state);
    let cancelled = wait.cancel(NOW).unwrap();
    for ended in [woken, cancelled] {
        assert_eq!(ended.wake(&winner, NOW), None);
        assert_eq!(ended.cancel(NOW), None);
        let accepted = Candidates { matched: Some(at(11)), timeout: Some(at(12)) };
        assert_eq!(ended.arbitrate(accepted, Timestamp::MAX), Arbitration::Goes);
    }
}

#[test]
fn a_timeout_is_recognized_by_its_identity_alone() {
    let wait = build_of_a();
    let source = SourceName::known("core");
    let timeout =
        Event { source, delivery_id: wait.timeout_delivery(), ..event(11, None, "core.wait.timeout") };
    assert!(wait.is_timed_out_by(&timeout));
    assert!(!wait.is_timed_out_by(&Event { source: SourceName::known("test"), ..timeout.clone() }));
    let other = Wait { id: WaitId::from_number(10), ..wait };
    assert!(!other.is_timed_out_by(&timeout));
}
