//! The extensions that come with the binary. They see only `extension`, as anyone else's would.

pub mod matching;
pub mod manual;
pub mod webhook;
pub mod github;
pub mod shell;
