use super::{
    CallRefusal, Declared, Fingerprint, Operation, Presented, Progress, TokenDigest, may_cite, settled,
};
use crate::event::{Event, Key};
use crate::execution::{Execution, ExecutionState, Handle};
use crate::id::{Epoch, EventId, ExecutionId};
use crate::lease::{Fenced, LEASE};
use crate::machines::{NOW, OWNER, execution};
use crate::outcome::{Outcome, TurnResult};
use crate::text::{ExternalId, ScopeName, SourceName};
use crate::wait::Registration;

const DIGEST: TokenDigest = TokenDigest::new([1; 32]);

fn running() -> Execution {
    let claimed = execution();
    let grant = claimed.grant().unwrap();
    claimed.pin(grant, Handle::new(&b"p"[..]).unwrap(), NOW).unwrap().equip(Some(DIGEST))
}

fn token() -> Presented {
    Presented { execution: running().id, epoch: Epoch::FIRST, digest: DIGEST }
}

#[test]
fn a_token_is_good_for_its_attempt_and_epoch_alone() {
    let run = running();
    assert_eq!(run.admit(token(), NOW), Ok(()));
    let unknown = Err(CallRefusal::UnknownToken);
    let other = ExecutionId::from_number(99);
    assert_eq!(run.admit(Presented { execution: other, ..token() }, NOW), unknown);
    assert_eq!(run.admit(Presented { digest: TokenDigest::new([2; 32]), ..token() }, NOW), unknown);
    assert_eq!(run.admit(Presented { epoch: Epoch::from_number(2), ..token() }, NOW), unknown);
    assert_eq!(run.equip(None).admit(token(), NOW), unknown, "before what was started is recorded");
}

#[test]
fn a_token_dies_with_the_lease_and_with_the_epoch() {
    let run = running();
    let end = NOW.after(LEASE);
    assert_eq!(run.admit(token(), end), Err(Fenced::Expired.into()), "at that very moment");
    let taken = run.clone().recover(OWNER, end).unwrap();
    let current = Epoch::from_number(2);
    let stale = Err(Fenced::Epoch { presented: Epoch::FIRST, current }.into());
    assert_eq!(taken.admit(token(), end), stale);
    let renewed = Presented { epoch: current, ..token() };
    assert_eq!(taken.admit(renewed, end), Err(CallRefusal::UnknownToken), "it is to be replaced first");
    let adopted = taken.clone().adopt(taken.grant().unwrap(), end).unwrap().equip(Some(DIGEST));
    assert_eq!(adopted.admit(renewed, end), Ok(()));
    let ended = Err(Fenced::Ended.into());
    let recorded = run.clone().record(run.grant().unwrap(), Outcome::Completed, NOW).unwrap();
    assert_eq!(recorded.admit(token(), NOW), ended, "its turn is over");
    assert_eq!(run.cancel(NOW).unwrap().admit(token(), NOW), ended);
    let parked = Execution { outcome: Some(Outcome::Waiting), lease: None, ..running() }.park(NOW);
    assert_eq!(parked.state, ExecutionState::Parked);
    assert_eq!(parked.admit(token(), NOW), ended);
}

fn cause(scope: &str, source: Option<&str>) -> Event {
    let id = EventId::from_number(44);
    let run = running();
    let bounds = crate::causal::Bounds { max_depth: 32, per_minute: 128 };
    let key =
        source.map(|source| Key { source: SourceName::known(source), external_id: ExternalId::known("r1") });
    Event {
        id,
        sequence: run.trigger_sequence,
        source: SourceName::known("whoever"),
        delivery_id: crate::text::DeliveryId::known("d"),
        event_type: crate::text::EventType::known("report.made"),
        scope: ScopeName::known(scope),
        key,
        work: None,
        causation: crate::event::Causation::root(id, bounds),
        emitted_by: None,
        occurred_at: None,
        accepted_at: NOW,
    }
}

#[test]
fn only_a_cause_of_its_own_scope_and_namespaces_may_be_cited() {
    let (run, known) = (running(), [SourceName::known("reports")]);
    assert!(may_cite(&run, &cause("main", Some("reports")), &known));
    for (why, other) in [
        ("another scope", cause("other", Some("reports"))),
        ("another namespace", cause("main", Some("ci"))),
        ("no key", cause("main", None)),
    ] {
        assert!(!may_cite(&run, &other, &known), "{why}");
    }
    let trigger = Event { id: run.turn.cause, ..cause("other", None) };
    assert!(may_cite(&run, &trigger, &[]), "its own trigger needs no asking");
}

#[test]
fn what_is_cited_never_makes_a_chain_shorter() {
    use crate::causal::{Bounds, CausalRefusal};
    use crate::event::Causation;
    let at = |id: i64, depth: i64, max_depth: u32| {
        let bounds = Bounds { max_depth, per_minute: 9 };
        let causation = Causation { depth, bounds, ..Causation::root(EventId::from_number(id), bounds) };
        Event { id: EventId::from_number(id), causation, ..cause("main", None) }
    };
    let cited = Causation::cited(&at(1, 2, 32), &at(2, 7, 16)).unwrap();
    assert_eq!(
        (cited.depth, cited.root, cited.parent),
        (8, EventId::from_number(1), Some(EventId::from_number(1)))
    );
    assert_eq!(cited.bounds.max_depth, 32, "the chain's own bounds");
    assert_eq!(Causation::cited(&at(1, 9, 32), &at(2, 0, 32)).unwrap().depth, 10);
    for (cause, floor) in
        [(at(1, 0, 32), at(2, 4, 4)), (at(1, 4, 4), at(2, 0, 32)), (at(1, 4, 32), at(2, 0, 4))]
    {
        assert_eq!(Causation::cited(&cause, &floor), Err(CausalRefusal::Depth { depth: 4 }));
    }
}

#[test]
fn a_turn_that_ends_well_waits_for_what_it_declared() {
    let registration = |seconds| Registration { timeout_seconds: Some(seconds), ..Registration::default() };
    let declared = Declared { wait: Some(Box::new(registration(5))), ..Declared::default() };
    let of = |outcome| settled(TurnResult::of(outcome), &declared);
    for outcome in [Outcome::Completed, Outcome::Handoff] {
        assert_eq!(of(outcome), TurnResult::waiting(registration(5)));
    }
    assert_eq!(of(Outcome::Failed), TurnResult::of(Outcome::Failed));
    let own = TurnResult::waiting(registration(9));
    assert_eq!(settled(own.clone(), &declared), own, "what it says at its end is what it means");
}

#[test]
fn progress_has_bounds() {
    assert_eq!(Progress::new(" half\nway ", Some(100)).unwrap().text, "half way");
    for (text, percent) in [(" ", None), ("x", Some(101))] {
        assert_eq!(Progress::new(text, percent), Err(CallRefusal::Progress));
    }
    assert_eq!(Progress::new(&"x".repeat(600), None).unwrap().text.len(), 500);
}

#[test]
fn a_fingerprint_tells_one_request_from_another() {
    let of = |operation, parts: &[&[u8]]| Fingerprint::of(operation, parts);
    let one = of(Operation::Emit, &[b"ab", b"c"]);
    assert_eq!(one, of(Operation::Emit, &[b"ab", b"c"]));
    assert_ne!(one, of(Operation::Emit, &[b"a", b"bc"]));
    assert_ne!(one, of(Operation::Usage, &[b"ab", b"c"]));
}

#[test]
fn a_digest_is_not_shown() {
    assert_eq!(format!("{DIGEST:?}"), "TokenDigest");
}
