//! The specification's cases on the production runtime: in memory, in a file that is closed and opened again, and
//! on PostgreSQL.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use spec::cases::CASES;
use spec::driver::Driver;

use self::production::{Engine, Production};
use super::clock;
use super::server::on_database;

mod config;
mod copies;
mod differential;
mod mortal;
mod production;
mod program;
mod scripted;
mod snapshot;
mod told;

type Case = fn(&mut dyn Driver);

/// Cases that the runtime does not pass yet, with the first thing it lacks. A case leaves this list when it
/// passes, for then the list is wrong.
const LACKING: &[(&str, &str)] = &[];

macro_rules! passes {
    ($($case:ident)*) => {
        const PASSES: &[&str] = &[$(stringify!($case)),*];

        mod memory { $(
            #[test]
            fn $case() {
                super::in_memory(spec::cases::$case);
            }
        )* }

        mod sqlite { $(
            #[test]
            fn $case() {
                super::in_a_file(spec::cases::$case);
            }
        )* }

        mod postgres { $(
            #[test]
            fn $case() {
                super::on_a_server(spec::cases::$case);
            }
        )* }
    };
}

passes! {
    concurrent_correlations_and_attempts
    independent_work_progress
    first_match_replay_and_drop_audit
    uncorrelated_and_terminal_successor
    multi_key_attachment_conflict_and_order
    scope_route_inheritance
    unsupported_policy_explicit_fallback
    unmatched_and_contradictory_target
    dependency_subscription_alias
    wait_event_registration_orders
    wait_timeout_acceptance_tie
    wait_cancel_orders
    wait_watermark_and_timeout_only
    completion_inject_orders
    lease_loss_adoption_and_stale_result
    retry_backoff_exhaustion_and_manual_event
    retry_cancel_orders
    causal_depth_rate_replay_and_clock
    concurrent_chain_budget
}

fn in_memory(case: Case) {
    case(&mut Production::new(Engine::Memory));
}

fn in_a_file(case: Case) {
    let directory = tempfile::tempdir().unwrap();
    let mut driver = Production::new(Engine::Sqlite(directory.path().join("conduit.db")));
    case(&mut driver);
    let (reopened, copies) = driver.reopened();
    assert!(reopened > 1 && copies > 10, "{copies} copies, and it went on in {reopened}");
}

fn on_a_server(case: Case) {
    on_database(async |dsn| {
        // A driver has a runtime of its own, which needs a thread that is in none.
        let dsn = dsn.to_owned();
        let done = std::thread::spawn(move || case(&mut Production::new(Engine::Postgres(dsn)))).join();
        if let Err(panic) = done {
            resume_unwind(panic);
        }
    });
}

#[test]
fn every_case_passes_or_is_listed() {
    let mut named: Vec<&str> =
        PASSES.iter().copied().chain(LACKING.iter().map(|(case, _what)| *case)).collect();
    named.sort_unstable();
    let mut cases: Vec<&str> = CASES.iter().map(|(case, _run)| *case).collect();
    cases.sort_unstable();
    assert_eq!(named, cases);
}

#[test]
fn what_is_listed_does_not_pass_yet() {
    for (name, what) in LACKING {
        let (_name, case) = CASES.iter().find(|(known, _case)| known == name).expect("a case of that name");
        let panic = catch_unwind(AssertUnwindSafe(|| in_memory(*case)));
        let panic = panic.expect_err("a case that passes is not to be listed");
        let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
        assert!(text.contains(&format!("the driver lacks {what}:")), "{name} fails, but: {text}");
    }
}
