//! The extension protocol: handlers and ingress in a process of their own, over JSON-RPC 2.0 in lines.
//!
//! The contract is that of `extension`; this crate only carries it. [`guest`] serves any set of handlers and
//! ingresses over standard streams, [`host`] starts such a process, looks after it and stands in for what it
//! offers, so that the runtime sees no difference. [`wire`] is what travels, and the reference page is made from it.
//!
//! What happens in the other process stays there: a crash, a hang or nonsense ends that process, holds what it was to
//! answer, and it is started again after a growing pause.

pub mod wire;
mod convert;
mod line;
pub mod guest;
pub mod host;
pub mod stage;

pub use guest::Guest;
pub use host::{Declaration, Process, Refused, Standing};
