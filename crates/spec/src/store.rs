//! Cases for the storage contract, `domain::store`: what every engine must do, in one text for all.
//!
//! Cases are grouped by the part of the contract they are about, one file each, and named flat, so that
//! `memory::NAME`, `sqlite::NAME` and `postgres::NAME` are the same promise on three engines. A case judges
//! by what the store answers. Within a body it passes errors on and looks at the answer of the request: an
//! engine that queues its writes learns of a conflict only after the call that caused it.

use std::future::Future;
use std::time::Duration;

use domain::store::Store;

mod access;
mod alias;
mod budget;
mod config;
mod credential;
mod durability;
mod event;
mod execution;
mod feed;
mod intent;
mod kv;
mod listing;
mod ownership;
mod pause;
mod retention;
mod route;
mod sample;
mod start;
mod succession;
mod timer;
mod together;
mod toolbelt;
mod transaction;
mod wait;
mod work;

pub use self::access::*;
pub use self::alias::*;
pub use self::budget::*;
pub use self::config::*;
pub use self::credential::*;
pub use self::durability::*;
pub use self::event::*;
pub use self::execution::*;
pub use self::feed::*;
pub use self::intent::*;
pub use self::kv::*;
pub use self::listing::*;
pub use self::ownership::*;
pub use self::pause::*;
pub use self::retention::*;
pub use self::route::*;
pub use self::start::*;
pub use self::succession::*;
pub use self::timer::*;
pub use self::toolbelt::*;
pub use self::transaction::*;
pub use self::wait::*;
pub use self::work::*;

/// A store under test. Each case gets one of its own, empty.
pub trait StoreDriver: Sync {
    /// The open store.
    fn store(&self) -> &Store;

    /// Moves the store's clock forward. The clock stands still otherwise, or runs at its own pace.
    fn advance(&self, by: Duration);
}

/// A store that outlives its process, for the cases about what does.
pub trait DurableDriver: StoreDriver + Send {
    /// Closes the store, if it is still open, and opens the same database again as a new life of the process.
    fn reopen(&mut self) -> impl Future<Output = ()> + Send;
}

/// Calls the macro `$each` with the name of every case that holds for every engine.
///
/// A case is `async fn NAME(driver: &impl StoreDriver)`.
#[macro_export]
macro_rules! for_each_store_case {
    ($each:ident) => {
        $each! {
            same_delivery_is_one_event
            same_delivery_twice_in_one_transaction_is_one_event
            other_source_is_another_delivery
            concurrent_duplicates_become_one_event
            sequence_order_is_commit_order
            event_reads_back_as_written
            payload_is_kept_byte_for_byte
            absent_event_reads_as_none
            redeliveries_are_counted
            derived_events_are_counted_per_root_and_minute
            a_full_minute_takes_no_more
            candidates_stand_in_acceptance_order
            event_is_routed_once
            checkpoint_of_an_event_outside_the_queue_is_refused
            later_event_may_be_routed_first
            checkpoint_reads_back_as_written
            parked_events_come_back_a_few_at_a_time
            parked_event_can_be_routed
            earlier_unrouted_looks_at_the_given_lanes
            lane_backlog_lists_parked_events_too
            event_without_a_lane_stands_alone
            unrouted_count_stops_at_its_limit
            lane_blocks_come_due_in_order
            lane_has_one_block
            absent_event_is_not_unrouted
            work_reads_back_as_written
            key_belongs_to_one_work_for_ever
            ended_work_keeps_its_keys
            keys_are_compared_by_bytes
            stale_revision_is_refused
            work_is_not_written_twice_from_one_reading
            runnable_works_stand_in_queue_order
            blocked_works_stand_in_one_list_per_reason
            works_of_a_full_scope_move_together
            exhausted_works_are_listed
            pending_inputs_stand_in_acceptance_order
            consuming_leaves_later_input_pending
            consumed_input_stays_where_it_is
            absent_input_reads_as_none
            execution_reads_back_as_written
            work_has_one_live_execution
            next_execution_follows_the_end_of_the_last
            stale_epoch_is_refused
            ended_execution_is_never_written
            expired_leases_are_listed_exclusive_and_ordered
            nothing_live_means_no_next_expiry
            renewed_lease_expires_later
            live_executions_are_counted_up_to_the_limit
            unsettled_executions_are_listed_until_they_end
            unstopped_executions_are_listed_until_they_stop
            turn_result_is_kept_once
            attempt_and_work_end_together
            timers_come_due_in_order
            timer_is_removed_once
            rearmed_timer_is_due_later
            timer_pages_neither_repeat_nor_skip
            intent_reads_back_as_written
            intents_come_due_in_order
            attempt_has_one_intent_for_an_event
            stale_intent_is_refused
            one_input_is_consumed_by_itself
            wait_reads_back_as_written
            work_has_one_active_wait
            wait_ends_once
            wait_list_filters_and_pages
            wait_timer_reads_back_as_written
            events_of_a_key_follow_a_sequence
            subscription_reads_back_as_written
            subscription_id_is_used_once
            subscriptions_on_a_key_that_are_behind_are_listed
            subscriptions_end_with_their_work
            events_follow_a_sequence
            parked_attempt_goes_on
            batch_of_a_turn_stands_apart
            result_of_a_later_turn_replaces_it
            held_works_are_listed
            ledgers_add_up_apart
            reservations_count_while_their_run_goes_on
            reports_of_use_count_once_while_their_run_goes_on
            recent_use_is_kept_by_kind_and_unit
            call_reads_back_as_written
            call_is_kept_once
            token_and_declaration_follow_their_attempt
            progress_is_replaced
            acknowledgements_stand_once_in_acceptance_order
            parents_and_children_are_found
            credential_holds_come_due_in_order
            credential_waits_end_once_by_attempt
            calls_go_a_page_at_a_time
            feed_tells_a_call_with_its_run
            ended_executions_are_followed_in_order
            content_is_released_once
            what_is_kept_of_a_work_comes_due_in_order
            record_is_replaced_under_its_key
            records_are_listed_by_their_keys
            no_generation_is_in_force_at_first
            newest_generation_is_in_force
            generation_number_is_taken_once
            a_pause_is_noted_once_and_taken_back_once
            what_is_in_force_tells_of_pauses
            a_line_of_successors_is_found_from_everywhere
            a_work_is_succeeded_once
            a_concurrency_key_is_held_by_what_runs_and_what_may_still_run
            two_works_of_one_concurrency_key_cannot_be_written_as_running
            replays_of_an_event_are_found
            token_is_found_by_its_digest
            revoked_token_is_gone
            digest_belongs_to_one_token
            session_reads_back_as_written
            session_is_seen_and_keeps_the_rest
            ended_session_is_gone
            session_digest_belongs_to_one_session
            feed_tells_each_transition_once
            feed_is_silent_about_what_shows_nothing
            feed_tells_each_checkpoint
            feed_resumes_after_any_row
            feed_is_pruned_by_age
            feed_tells_a_terminal_state
            feed_tells_what_keeps_a_work
            event_list_filters
            event_pages_neither_repeat_nor_skip
            work_list_filters
            work_pages_neither_repeat_nor_skip
            execution_list_filters
            execution_pages_neither_repeat_nor_skip
            live_and_ended_executions_are_listed_apart
            outlines_say_what_people_remember
            executions_that_ended_lately_are_listed
            quarantined_events_are_listed_by_time
            shortened_ids_find_their_range
            refusal_after_writes_leaves_nothing
            failed_request_does_not_disturb_its_batch
            ignored_refusal_is_undone_all_the_same
            own_error_after_a_refused_statement_is_undone
            panic_is_undone_and_answered
            panic_in_a_read_is_answered
            transaction_reads_its_own_writes
            last_sequence_counts_this_transaction
            claim_sees_an_acceptance_before_it
            acceptance_sees_a_claim_before_it
            high_priority_goes_first
            changes_are_visible_in_order
            read_never_sees_half_a_commit
            answered_write_is_visible_to_the_next_read
            admission_time_follows_the_clock
            abandoned_request_is_whole_or_absent
            starts_read_back_as_noted
            start_is_noted_once
            recovered_runs_are_counted_for_their_life
            ownership_reads_back_as_written
            refused_ownership_is_undone
            stale_tenure_is_refused
        }
    };
}

/// Calls the macro `$each` with the name of every case that holds for engines that keep a database.
///
/// A case is `async fn NAME(driver: &mut impl DurableDriver)`.
#[macro_export]
macro_rules! for_each_durability_case {
    ($each:ident) => {
        $each! {
            acknowledged_writes_outlive_the_process
            refused_writes_stay_absent
            sequences_are_never_used_again
            deduplication_outlives_the_process
            incarnations_are_never_used_again
            live_execution_outlives_the_process
            time_does_not_go_back_over_a_reopen
            closed_store_refuses_and_says_so
            ownership_epoch_outlives_the_process
        }
    };
}

#[cfg(test)]
mod tests;
