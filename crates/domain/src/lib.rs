//! The rules of Open Conduit: what an Event, a Work and an Execution are, and what may happen to them.
//!
//! This crate is pure. It has no async runtime, no SQL, no clock, no randomness and no log, so every rule
//! in it can be tested by calling a function. Times and new ids are arguments; a decision returns the next
//! value of a record, which the caller writes. Its one future is the boxed one that [`store::Store`] hands
//! out, and that needs only `std`.
//!
//! The modules stand in the order an event travels. [`store`] is the storage contract: the only door
//! between these rules and a database.

pub mod text;
pub mod id;
pub mod time;
pub mod delivery;
pub mod event;
pub mod causal;
pub mod lane;
pub mod scope;
pub mod config;
pub mod decision;
pub mod route;
pub mod work;
pub mod succession;
pub mod input;
pub mod capacity;
pub mod pause;
pub mod lease;
pub mod ownership;
pub mod execution;
pub mod intent;
pub mod outcome;
pub mod budget;
pub mod retention;
pub mod credential;
pub mod retry;
pub mod timer;
pub mod recurrence;
pub mod wait;
pub mod alias;
pub mod toolbelt;
pub mod workspace;
pub mod replay;
pub mod feed;
pub mod session;
pub mod store;

#[cfg(test)]
mod machines;
