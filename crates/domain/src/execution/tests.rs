//! What the tables do not show of an Execution: exact boundaries, times, and what a recovery may do.

use std::time::Duration;

use super::{Execution, ExecutionState, Handle, RecoverRefusal};
use crate::id::{Attempt, Epoch, Incarnation};
use crate::lease::{Fenced, Grant, LEASE, Lease};
use crate::machines::{GRANT, NOW, OWNER, execution, handle};
use crate::outcome::Outcome;
use crate::time::Timestamp;

const OTHER: Incarnation = Incarnation::from_number(2);

fn lease_end() -> Timestamp {
    execution().lease.expect("the sample holds one").until
}

fn just_before(moment: Timestamp) -> Timestamp {
    Timestamp::from_micros(moment.as_micros() - 1)
}

/// The sample, recovered by another process when its lease was over.
fn recovered() -> (Execution, Grant) {
    let recovered = execution().recover(OTHER, lease_end()).unwrap();
    (recovered, Grant { owner: OTHER, epoch: Epoch::from_number(2) })
}

#[test]
fn authorize_holds_until_the_very_end_of_the_lease() {
    let live = execution();
    assert_eq!(live.authorize(GRANT, just_before(lease_end())), Ok(()));
    assert_eq!(live.authorize(GRANT, lease_end()), Err(Fenced::Expired));
}

#[test]
fn authorize_tells_a_takeover_from_a_lease_that_ran_out() {
    let (recovered, grant) = recovered();
    let now = lease_end();
    let stale = Fenced::Epoch { presented: Epoch::FIRST, current: grant.epoch };
    assert_eq!(recovered.authorize(GRANT, now), Err(stale));
    assert_eq!(recovered.authorize(Grant { owner: OWNER, ..grant }, now), Err(Fenced::Owner));
    assert_eq!(recovered.authorize(grant, now), Ok(()));
    let ahead = Grant { epoch: grant.epoch.next(), ..grant };
    let future = Fenced::Epoch { presented: ahead.epoch, current: grant.epoch };
    assert_eq!(recovered.authorize(ahead, now), Err(future), "an epoch of the future is no better");
    assert_eq!(recovered.cancel(now).unwrap().authorize(grant, now), Err(Fenced::Ended));
}

#[test]
fn renew_extends_from_now_and_cannot_revive() {
    let renewed = execution().renew(GRANT, NOW).unwrap();
    assert_eq!(renewed.lease, Some(Lease { owner: OWNER, until: NOW.after(LEASE) }));
    assert_eq!(execution().renew(GRANT, lease_end()), Err(Fenced::Expired));
}

#[test]
fn pin_starts_the_deadline() {
    let pinned = execution().pin(GRANT, handle(), NOW).unwrap();
    pinned.check();
    assert_eq!(pinned.state, ExecutionState::Running);
    assert_eq!(pinned.started_at, Some(NOW));
    assert_eq!(pinned.deadline_at, Some(NOW.after(Duration::from_mins(1))));
    assert_eq!(pinned.handle, Some(handle()));
}

#[test]
fn pin_again_keeps_the_first_deadline() {
    let first = execution().pin(GRANT, handle(), NOW).unwrap();
    let other = Handle::new(&b"pid 8"[..]).unwrap();
    let again = first.clone().pin(GRANT, other.clone(), NOW.after(Duration::from_secs(5))).unwrap();
    assert_eq!((again.started_at, again.deadline_at), (first.started_at, first.deadline_at));
    assert_eq!(again.handle, Some(other));
}

#[test]
fn record_releases_the_lease_and_with_it_all_authority() {
    let recorded = execution().record(GRANT, Outcome::Completed, NOW).unwrap();
    recorded.check();
    assert_eq!((recorded.state, recorded.lease), (ExecutionState::Running, None));
    assert_eq!(recorded.grant(), None);
    assert_eq!(recorded.authorize(GRANT, NOW), Err(Fenced::Expired));
    let again = recorded.record(GRANT, Outcome::Failed, NOW);
    assert_eq!(again, Err(Fenced::Expired), "the first outcome stands");
}

#[test]
fn settle_ends_in_the_state_of_the_outcome() {
    for (outcome, state) in [
        (Outcome::Completed, ExecutionState::Completed),
        (Outcome::Handoff, ExecutionState::Handoff),
        (Outcome::Failed, ExecutionState::Failed),
    ] {
        let ended = execution().record(GRANT, outcome, NOW).unwrap().settle(NOW).unwrap();
        ended.check();
        assert_eq!((ended.state, ended.ended_at, ended.unstopped), (state, Some(NOW), false));
    }
}

#[test]
#[should_panic(expected = "an outcome is recorded before it is settled")]
fn settle_wants_an_outcome() {
    let _ended = execution().settle(NOW);
}

#[test]
fn recover_waits_for_the_very_end_of_the_lease() {
    let early = execution().recover(OTHER, just_before(lease_end()));
    assert_eq!(early, Err(RecoverRefusal::Live));
    let own = execution().recover(OWNER, just_before(lease_end()));
    assert_eq!(own, Err(RecoverRefusal::Live), "its own holder cannot claim it again either");
    execution().recover(OTHER, lease_end()).unwrap().check();
}

#[test]
fn recover_raises_the_epoch_and_keeps_what_is_known() {
    let pinned = execution().pin(GRANT, handle(), NOW).unwrap();
    let over = pinned.lease.unwrap().until;
    let once = pinned.clone().recover(OTHER, over).unwrap();
    assert_eq!(
        once,
        Execution {
            epoch: Epoch::from_number(2),
            lease: Some(Lease::taken(OTHER, over)),
            recovering: true,
            ..pinned
        }
    );
    let twice = once.recover(OWNER, over.after(LEASE)).unwrap();
    assert_eq!((twice.epoch, twice.attempt), (Epoch::from_number(3), Attempt::FIRST));
}

#[test]
fn recover_leaves_alone_what_is_known_or_over() {
    let recorded = execution().record(GRANT, Outcome::Failed, NOW).unwrap();
    assert_eq!(recorded.clone().recover(OTHER, lease_end()), Err(RecoverRefusal::Settling));
    let ended = recorded.settle(NOW).unwrap();
    assert_eq!(ended.recover(OTHER, lease_end()), Err(RecoverRefusal::Ended));
}

#[test]
fn adopt_goes_on_with_the_deadline_it_had() {
    let pinned = execution().pin(GRANT, handle(), NOW).unwrap();
    let over = pinned.lease.unwrap().until;
    let grant = Grant { owner: OTHER, epoch: Epoch::from_number(2) };
    let recovering = pinned.clone().recover(OTHER, over).unwrap();
    assert_eq!(
        recovering.clone().adopt(GRANT, over),
        Err(Fenced::Epoch { presented: GRANT.epoch, current: grant.epoch })
    );
    let adopted = recovering.adopt(grant, over).unwrap();
    adopted.check();
    assert!(!adopted.recovering);
    assert_eq!(
        (adopted.state, adopted.deadline_at, adopted.handle),
        (ExecutionState::Running, pinned.deadline_at, pinned.handle)
    );
}

#[test]
fn adopt_starts_the_deadline_of_what_was_never_pinned() {
    let (recovering, grant) = recovered();
    let adopted = recovering.adopt(grant, lease_end()).unwrap();
    assert_eq!(adopted.started_at, Some(lease_end()));
    assert_eq!(adopted.deadline_at, Some(lease_end().after(Duration::from_mins(1))));
}

#[test]
fn relaunch_is_the_same_attempt_with_nothing_started() {
    let pinned = execution().pin(GRANT, handle(), NOW).unwrap();
    let over = pinned.lease.unwrap().until;
    let grant = Grant { owner: OTHER, epoch: Epoch::from_number(2) };
    let relaunched = pinned.recover(OTHER, over).unwrap().relaunch(grant, over).unwrap();
    let fresh = Execution { epoch: grant.epoch, lease: Some(Lease::taken(OTHER, over)), ..execution() };
    assert_eq!(relaunched, fresh);
}

#[test]
fn cancel_needs_no_grant_and_tells_what_may_still_run() {
    let (recovering, _grant) = recovered();
    let recorded = execution().record(GRANT, Outcome::Completed, NOW).unwrap();
    for (live, unstopped) in [(execution(), true), (recovering, true), (recorded, false)] {
        let ended = live.cancel(NOW).unwrap();
        ended.check();
        assert_eq!((ended.state, ended.lease, ended.ended_at), (ExecutionState::Cancelled, None, Some(NOW)));
        assert_eq!(ended.unstopped, unstopped);
    }
}

#[test]
fn nothing_happens_after_the_end() {
    let ended = execution().cancel(NOW).unwrap();
    assert_eq!(ended.clone().cancel(NOW), Err(Fenced::Ended));
    assert_eq!(ended.clone().settle(NOW), Err(Fenced::Ended));
    assert_eq!(ended.clone().pin(GRANT, handle(), NOW), Err(Fenced::Ended));
    assert_eq!(ended.clone().renew(GRANT, NOW), Err(Fenced::Ended));
    assert_eq!(ended.clone().record(GRANT, Outcome::Completed, NOW), Err(Fenced::Ended));
    assert_eq!(ended.clone().adopt(GRANT, NOW), Err(Fenced::Ended));
    assert_eq!(ended.clone().relaunch(GRANT, NOW), Err(Fenced::Ended));
    assert_eq!(ended.recover(OTHER, Timestamp::MAX), Err(RecoverRefusal::Ended));
}

#[test]
fn a_handle_has_a_bound_and_keeps_its_bytes_to_itself() {
    let largest = Handle::new(vec![7; Handle::BYTES_MAX]).unwrap();
    assert_eq!(largest.as_bytes().len(), Handle::BYTES_MAX);
    assert_eq!(Handle::new(vec![7; Handle::BYTES_MAX + 1]), None);
    assert_eq!(format!("{largest:?}"), "Handle(16384 bytes)");
}

#[test]
#[should_panic(expected = "a lease until an outcome")]
fn check_wants_a_lease_while_nothing_is_known() {
    Execution { lease: None, ..execution() }.check();
}

#[test]
#[should_panic(expected = "a lease until an outcome")]
fn check_wants_the_lease_released_with_the_outcome() {
    Execution { outcome: Some(Outcome::Failed), ..execution() }.check();
}

#[test]
#[should_panic(expected = "an end releases the lease")]
fn check_wants_no_lease_after_the_end() {
    Execution { state: ExecutionState::Failed, ended_at: Some(NOW), ..execution() }.check();
}

#[test]
#[should_panic(expected = "an end has a time")]
fn check_wants_a_time_for_an_end() {
    Execution { state: ExecutionState::Failed, lease: None, ..execution() }.check();
}

#[test]
#[should_panic(expected = "only what ended can be left unstopped")]
fn check_wants_a_live_execution_unmarked() {
    Execution { unstopped: true, ..execution() }.check();
}

#[test]
#[should_panic(expected = "counters begin at one")]
fn check_wants_counters_from_one() {
    Execution { epoch: Epoch::from_number(0), ..execution() }.check();
}
