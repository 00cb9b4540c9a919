//! What can go wrong in a workspace tool, in one enum: each tool ends the same way, with one sentence.

use std::io;
use std::path::PathBuf;

/// Why a command of `cargo xtask` did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A program is not installed, or may not be started.
    #[error("cannot start `{program}`")]
    Start {
        program: String,
        #[source]
        source: io::Error,
    },
    /// A program ran and said no.
    #[error("`{command}` failed ({status})")]
    Exited { command: String, status: String },
    /// A file or directory could not be read or written.
    #[error("cannot {action} {}", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Cargo's description of the workspace is not what this tool knows how to read.
    #[error("cannot read the output of `cargo metadata`")]
    Metadata(#[source] serde_json::Error),
    /// A configuration file of the tools does not parse.
    #[error("cannot read {path}")]
    Settings {
        path: &'static str,
        #[source]
        source: toml::de::Error,
    },
    /// Tidy found something; the findings have been printed.
    #[error("tidy found {count} things to put right")]
    Untidy { count: usize },
    /// Documents that are made from code differ from it.
    #[error("out of date: {names}; write them again with `cargo xtask codegen`")]
    Outdated { names: String },
    /// What a document is made from is not what this tool knows how to read.
    #[error("cannot make a document from {what}: {reason}")]
    Document { what: String, reason: String },
    /// A document with commands to type is not what happens when they are typed.
    #[error("{0}")]
    Readme(String),
    /// Components of the check are missing; what to do has been printed.
    #[error("missing components: {names}")]
    Missing { names: String },
    /// A component could be provided, but not by this user.
    #[error("only root may do this; run as root: {command}")]
    NotRoot { command: String },
    /// The private PostgreSQL did not become ready.
    #[error("PostgreSQL did not start: {reason}")]
    Postgres { reason: String },
    /// A drill saw something that must not be, or could not be carried out.
    #[error("{0}")]
    Drill(String),
    /// Drills failed; the table of drills has been printed.
    #[error("failed drills: {names}")]
    Drills { names: String },
    /// Rules were broken and no test noticed, or a patch is out of date; what became of each has been printed.
    #[error("mutants that no test killed: {names}")]
    Mutants { names: String },
    /// Tests that are to notice a broken rule fail already where none is broken.
    #[error("tests that fail where nothing is broken: {names}")]
    Unbroken { names: String },
    /// No test took a picture.
    #[error(
        "no picture was taken: there are no tests {tests}; name the present ones in xtask/src/screenshots.rs"
    )]
    NoPictures { tests: &'static str },
    /// Parts of the check failed; the table of parts has been printed.
    #[error("failed: {names}")]
    Parts { names: String },
}
