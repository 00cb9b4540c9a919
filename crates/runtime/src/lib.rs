//! The stages that move an Event to a result, in the order it travels.
//!
//! ```text
//!   accept ─► route ─► schedule ─► execute ─► complete ─► wake
//!                          ▲          │  ▲        │          │
//!                          ├──────────┼──┼────────┘          │
//!                          └──────────┼──┼───────────────────┘
//!                                     ▼  │
//!                                   recover
//! ```
//!
//! Each stage reads, decides and writes in one short transaction; the deciding is a function of `domain`.
//! *Dispatch* stands beside executing: it carries out what a routed Event orders the running attempt to do.
//! What touches the world happens outside, from a durable row, and may be repeated after a crash. A hint
//! from one stage to the next may be lost, doubled or late without harm: the rows are the truth.
//!
//! There is no SQL here and no HTTP.

pub mod accept;
pub mod route;
pub mod schedule;
pub mod execute;
pub mod dispatch;
pub mod complete;
pub mod park;
pub mod wake;
pub mod recur;
pub mod alias;
pub mod recover;
pub mod retain;
pub mod workspace;
pub mod control;
pub mod order;
pub mod pause;
pub mod replay;
pub mod announce;
pub mod toolbelt;
pub mod budget;
pub mod meter;
mod credential;
mod gate;
mod causal;
pub mod generation;
mod newest;
pub mod registry;
pub mod stage;
pub mod own;
mod follow;
pub mod hint;
pub mod held;
mod inherited;
pub mod metrics;

pub mod explain;
pub mod why;
mod caught;
mod node;

pub use accept::AcceptError;
pub use alias::SubscribeError;
pub use control::{Cancelled, ControlError};
pub use generation::{ActiveGeneration, ActiveRecurrences, ActiveRoute, ActiveScope, ApplyError, Scopes};
pub use meter::{MeterError, Metered};
pub use node::{Options, Runtime, Stages};
pub use order::{Message, Ordered};
pub use pause::{PauseError, Paused, Resumed};
pub use registry::{HandlerSource, Registry, SecretSource};
pub use replay::ReplayError;
pub use stage::{Progress, Stage, StageError};
pub use toolbelt::{Answered, CallError, NoTokens, TokenSource};
