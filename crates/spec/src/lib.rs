//! The executable specification: what Open Conduit promises, as cases that any implementation can be put to.
//!
//! A case is a plain function over a driver. It acts through a public contract, asserts facts, and never asks
//! who stands behind the driver; so one text judges every engine, and a new engine is finished when the cases
//! pass on it. The crates that own an implementation run the cases by name from their `tests/runner.rs`, with
//! the list macros: [`for_each_store_case!`] and [`for_each_durability_case!`] for engines of storage,
//! [`for_each_runtime_case!`] for the whole runtime. The runtime's cases run on the [`reference`] too, and each
//! of them on a reference that breaks its rule, where it has to fail.
//!
//! # The wall
//!
//! The specification must not agree with the code by construction. So this crate sees ids, plain values,
//! records and the storage traits of `domain`, and what extension authors see of `extension`. It never
//! calls a transition or any other rule, never an engine, never the runtime. A record that a case needs is
//! written out as a literal in the case or in its samples, as the state it is meant to show.

pub mod cases;
pub mod differential;
pub mod driver;
pub mod invariant;
pub mod reference;
pub mod inject;
pub mod store;
