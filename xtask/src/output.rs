//! The only place where the tools write to the terminal.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this module is the tools' output")]

use std::error::Error;

/// Prints one line of a tool's answer.
pub(crate) fn line(text: &str) {
    println!("{text}");
}

/// Prints the heading of a part that is about to run.
pub(crate) fn heading(text: &str) {
    println!("\n==> {text}");
}

/// Prints an error with its causes, joined by colons.
pub(crate) fn error(error: &dyn Error) {
    eprintln!("error: {}", chain(error));
}

/// An error and its causes as one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
