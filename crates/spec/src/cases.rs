//! The cases: each a rule, or a few that belong together, told over a [`Driver`](crate::driver::Driver).
//!
//! What begins at the same time is a list for `together`: an implementation may do it at once, and the reference
//! does it in both orders. So a case asserts what holds in every order, and no more.

mod alias;
mod causal;
mod inject;
mod lease;
mod ownership;
mod retry;
mod route;
mod wait;

pub use self::alias::*;
pub use self::causal::*;
pub use self::inject::*;
pub use self::lease::*;
pub use self::ownership::*;
pub use self::retry::*;
pub use self::route::*;
pub use self::wait::*;

/// A case, and what it is called.
pub type Case = (&'static str, fn(&mut dyn crate::driver::Driver));

/// Calls the macro `$each` with the name of every case.
///
/// A case is `fn NAME(driver: &mut dyn Driver)`.
#[macro_export]
macro_rules! for_each_runtime_case {
    ($each:ident) => {
        $each! {
            concurrent_correlations_and_attempts
            independent_work_progress
            first_match_replay_and_drop_audit
            multi_key_attachment_conflict_and_order
            uncorrelated_and_terminal_successor
            scope_route_inheritance
            unsupported_policy_explicit_fallback
            unmatched_and_contradictory_target
            wait_event_registration_orders
            wait_timeout_acceptance_tie
            wait_cancel_orders
            wait_watermark_and_timeout_only
            dependency_subscription_alias
            completion_inject_orders
            lease_loss_adoption_and_stale_result
            retry_backoff_exhaustion_and_manual_event
            retry_cancel_orders
            causal_depth_rate_replay_and_clock
            concurrent_chain_budget
        }
    };
}

macro_rules! list {
    ($($case:ident)*) => {
        /// Every case, by name.
        pub const CASES: &[Case] = &[$((stringify!($case), $case)),*];
    };
}

crate::for_each_runtime_case!(list);
