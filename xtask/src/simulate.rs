//! `cargo xtask simulate`: the reference and the runtime side by side, for as many random programs as there is time
//! for.
//!
//! The check runs a fixed set of the same programs as tests; see `crates/runtime/tests/runner/specification`.

use std::path::PathBuf;

use crate::error::Error;
use crate::machine;

/// What is typed after `cargo xtask simulate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Run this many programs at most
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// Begin no program after this many minutes
    #[arg(long, value_name = "M", default_value_t = 5)]
    minutes: u64,
    /// The seed of the first program
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    from: u64,
    /// Go on until this many have failed
    #[arg(long, value_name = "N", default_value_t = 1)]
    failures: u64,
    /// Run the programs of this file, one in a line, in place of seeds
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
}

/// Builds and runs the simulator.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let mut command = machine::cargo();
    command.args(["bench", "--profile", "simulate", "--package", "runtime", "--bench", "simulate", "--"]);
    command.args(["--minutes", &arguments.minutes.to_string(), "--from", &arguments.from.to_string()]);
    command.args(["--failures", &arguments.failures.to_string()]);
    if let Some(seeds) = arguments.seeds {
        command.args(["--seeds", &seeds.to_string()]);
    }
    if let Some(file) = &arguments.replay {
        // Cargo runs a benchmark in its package's folder.
        let here = std::env::current_dir().map_err(machine::file_error("find", file))?;
        command.arg("--replay").arg(here.join(file));
    }
    machine::run(&mut command)
}
