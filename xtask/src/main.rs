//! The workspace's own tools, run as `cargo xtask <command>`.
//!
//! Everything that checks or prepares this repository is here and in Rust, so that a newcomer, the
//! continuous integration and a maintainer all run the same thing. A command is one module and one line
//! in [`Command`].

mod bench;
mod check;
mod codegen;
mod component;
mod drill;
mod error;
mod machine;
mod metadata;
mod mutants;
mod output;
mod postgres;
mod readme;
mod screenshots;
mod simulate;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "Checks and tools of this workspace")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the whole check: format, structure, lints, build and tests
    Test(check::Arguments),
    /// Check the structure of the repository: sizes, crate edges, words, documents, licenses
    Tidy,
    /// Measure what it costs, beside what the machine can do
    Bench(bench::Arguments),
    /// Write the documents that are made from code
    Codegen(codegen::Arguments),
    /// Type what the README says, and compare what happens
    Readme,
    /// Take the pictures of the pages that the documents show
    Screenshots(screenshots::Arguments),
    /// Break rules on purpose, and see that tests notice
    Mutants(mutants::Arguments),
    /// Run random programs on the runtime and the reference, and compare everything after each command
    Simulate(simulate::Arguments),
    /// Kill, suspend, starve and double real daemons under load
    Drill(drill::Arguments),
    /// Be the job that drills let the daemon run
    #[command(hide = true)]
    DrillJob(drill::job::Arguments),
}

fn main() -> ExitCode {
    let ran = match Arguments::parse().command {
        Command::Test(arguments) => check::run(&arguments),
        Command::Tidy => tidy::run(),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Codegen(arguments) => codegen::run(&arguments),
        Command::Readme => readme::run(),
        Command::Screenshots(arguments) => screenshots::run(&arguments),
        Command::Mutants(arguments) => mutants::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Drill(arguments) => drill::run(&arguments),
        Command::DrillJob(arguments) => drill::job::run(&arguments),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(&error);
            ExitCode::FAILURE
        }
    }
}
