//! The cases on the reference, in both orders of what begins at the same time; and on references that break a
//! rule, to see that a case notices.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Fault, Order, Reference};
use crate::cases::CASES;

macro_rules! on_the_reference {
    ($($case:ident)*) => { $(
        #[test]
        fn $case() {
            for order in [Order::Listed, Order::Reversed] {
                crate::cases::$case(&mut Reference::new(order));
            }
        }
    )* };
}

crate::for_each_runtime_case!(on_the_reference);

/// The case that notices each broken rule, and what it says.
const NOTICED_BY: [(Fault, &str, &str); Fault::ALL.len()] = [
    (Fault::DedupForgotten, "first_match_replay_and_drop_audit", "not the original Event"),
    (Fault::ClaimsTwice, "concurrent_correlations_and_attempts", "one attempt is live"),
    (Fault::OrderIsGlobal, "independent_work_progress", "another lane goes on"),
    (Fault::KeysAreStolen, "multi_key_attachment_conflict_and_order", "it stays unrouted"),
    (Fault::EndsAreRevived, "uncorrelated_and_terminal_successor", "what has ended takes nothing"),
    (Fault::OverridesAreAppended, "scope_route_inheritance", "the whole route is replaced"),
    (Fault::QueueIsInferred, "unsupported_policy_explicit_fallback", "not refused but Done: Configure"),
    (Fault::ContradictionIsResolved, "unmatched_and_contradictory_target", "not refused but Accepted"),
    (Fault::WakeIsSuppressed, "wait_event_registration_orders", "a match wakes it"),
    (Fault::DroppedHidesLater, "wait_event_registration_orders", "what stood behind it is news still"),
    (Fault::DeadlineWins, "wait_timeout_acceptance_tie", "what is accepted already wins"),
    (Fault::WatermarkIsInclusive, "wait_watermark_and_timeout_only", "what was observed is not used again"),
    (Fault::CancelKeepsWaits, "wait_cancel_orders", "a Wait ends with its Work"),
    (Fault::CancelKeepsTimers, "retry_cancel_orders", "what would fire is gone"),
    (Fault::AliasIsRenamed, "dependency_subscription_alias", "one alias for one Event"),
    (Fault::ConsumedWithoutProof, "completion_inject_orders", "only proof consumes"),
    (Fault::EpochIsSkipped, "lease_loss_adoption_and_stale_result", "not refused but Done: Report"),
    (Fault::ExpiryIsInclusive, "lease_loss_adoption_and_stale_result", "not refused but Done: Report"),
    (Fault::InputEndsBackoff, "retry_backoff_exhaustion_and_manual_event", "input does not end the wait"),
    (Fault::BoundsAreBypassed, "concurrent_chain_budget", "left: (12, 0)"),
    (Fault::CountersInMemory, "causal_depth_rate_replay_and_clock", "not refused but Accepted"),
];

/// What a case says of a broken reference; none when it does not notice.
fn complaint(fault: Fault, name: &str) -> Option<String> {
    let (_name, case) = CASES.iter().find(|(known, _case)| *known == name).expect("the case is there");
    let panic = catch_unwind(AssertUnwindSafe(|| case(&mut Reference::broken(fault)))).err()?;
    let text = panic.downcast_ref::<String>().cloned();
    Some(text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default())
}

#[test]
fn every_broken_rule_fails_its_case() {
    for (fault, name, says) in NOTICED_BY {
        let complaint = complaint(fault, name).unwrap_or_else(|| panic!("{name} passes with {fault:?}"));
        assert!(complaint.contains(says), "{name} fails for another reason than {fault:?}: {complaint}");
    }
}

#[test]
fn every_case_notices_some_broken_rule() {
    for (name, _case) in CASES {
        assert!(
            NOTICED_BY.iter().any(|(_fault, by, _says)| by == name),
            "nothing shows that {name} can fail"
        );
    }
    for fault in Fault::ALL {
        assert!(
            NOTICED_BY.iter().any(|(known, _by, _says)| *known == fault),
            "no case is named for {fault:?}"
        );
    }
}
