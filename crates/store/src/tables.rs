//! The tables, each with its statements, in one SQL text for both engines.
//!
//! Each file implements its part of the storage contract on [`crate::tx::Transaction`]. No rule stands in a
//! statement: a `WHERE` names the record and the revision or epoch it was read at, nothing more.

pub(crate) mod code;
pub(crate) mod list;
pub(crate) mod schema;
pub(crate) mod coordination;
mod event;
mod route;
mod work;
mod standing;
mod input;
mod execution;
mod timer;
mod recurrence;
mod intent;
mod wait;
mod alias;
mod budget;
mod toolbelt;
mod credential;
mod kv;
mod outline;
mod config;
mod pause;
mod retention;
mod succession;
mod access;
mod feed;
mod start;
#[cfg(test)]
mod plan;
