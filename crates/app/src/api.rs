//! The HTTP interface: its types, the server that answers, and the client that the command line uses.
//!
//! The types here are the public ones. No record of `domain` is serialized as it is, so a rule can change
//! without the wire changing, and the wire is one place to read.

pub(crate) mod types;
