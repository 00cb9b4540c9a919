//! The HTTP interface: its types, the server that answers, and the client that the command line uses.
//!
//! The types here are the public ones. No record of `domain` is serialized as it is, so a rule can change
//! without the wire changing, and the wire is one place to read.
//!
//! A request passes `posture` (may it come in), `route` (what does it ask for), and then one of the modules
//! named after what they answer about. `failure` says what went wrong, in one form for all of them.

pub(crate) mod wire;

pub(crate) mod failure;
pub(crate) mod body;
pub(crate) mod posture;
pub(crate) mod route;
pub(crate) mod server;
pub(crate) mod query;
mod resolve;
pub(crate) mod events;
mod cloudevents;
pub(crate) mod explain;
pub(crate) mod work;
pub(crate) mod order;
pub(crate) mod waits;
mod budgets;
pub(crate) mod runs;
pub(crate) mod timeline;
pub(crate) mod needs;
pub(crate) mod starts;
pub(crate) mod stream;
pub(crate) mod config;
pub(crate) mod scopes;
pub(crate) mod pause;
pub(crate) mod replay;
pub(crate) mod doctor;
pub(crate) mod sessions;
mod metrics;
mod story;
mod openapi;

#[cfg(test)]
pub(crate) mod tests;
