//! Scheduled jobs as rules: when a job runs, what starts it, and what its runs tell.
//!
//! Nothing here waits, looks at a clock, reads a file or keeps anything. Times come in as arguments, and what has to
//! be stored comes back as values, so that every rule can be tested by calling a function. Whoever fires timers and
//! accepts Events asks these functions, outside a transaction and with what is stored, and applies the answer while
//! it still holds.

mod calendar;
pub mod zone;
pub mod cron;
pub mod slot;
pub mod timing;
pub mod glob;
pub mod job;
pub mod delivery;
pub mod trigger;
pub mod firing;
pub mod route;
pub mod ended;
pub mod recurrence;
pub mod crontab;
