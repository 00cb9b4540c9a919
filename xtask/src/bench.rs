//! `cargo xtask bench`: the benchmark, in a release build, with a PostgreSQL server of its own.
//!
//! It is not part of the check: a figure of a busy machine fails nobody. Its own goals are ratios to what the
//! machine can do in the same minute, so running it tells something anywhere.

use std::path::PathBuf;

use crate::component::{self, Component};
use crate::error::Error;
use crate::postgres::{self, Server};
use crate::{machine, metadata};

/// What is typed after `cargo xtask bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Install what is missing, as root
    #[arg(long)]
    install: bool,
    /// Leave a component out
    #[arg(long, value_name = "COMPONENT", value_delimiter = ',')]
    without: Vec<Component>,
    /// Write every figure to this file, as `{name, value, unit, limit, ratio, goal, ok, binds}`
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Run only these parts: accept, cycle, lone, wait, http, shell, page, start, postgres
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    only: Vec<String>,
    /// How long each rate is measured
    #[arg(long, value_name = "SECONDS", default_value_t = 4)]
    seconds: u64,
    /// Print what a cycle says to the store, statement by statement
    #[arg(long)]
    statements: bool,
    /// Where the databases are made; it must be on a disk
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
}

/// Builds and runs the benchmark.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let wants_server = arguments.only.is_empty() || arguments.only.iter().any(|part| part == "postgres");
    let with_server = wants_server && !arguments.without.contains(&Component::Postgres);
    let needed: &[Component] = if with_server { &[Component::Postgres] } else { &[] };
    let target = metadata::members()?.target_directory;
    component::provide(needed, arguments.install, &target)?;
    let server = with_server.then(Server::start).transpose()?;

    let mut command = machine::cargo();
    command.args(["bench", "--package", "open-conduit", "--bench", "conduit", "--"]);
    command.args(["--seconds", &arguments.seconds.to_string()]);
    for part in &arguments.only {
        command.args(["--only", part]);
    }
    if arguments.statements {
        command.arg("--statements");
    }
    if let Some(json) = &arguments.json {
        // Cargo runs a benchmark in its package's folder.
        let here = std::env::current_dir().map_err(machine::file_error("find", json))?;
        command.arg("--json").arg(here.join(json));
    }
    if let Some(directory) = &arguments.dir {
        command.arg("--dir").arg(directory);
    }
    match &server {
        Some(server) => command.env(postgres::VARIABLE, server.socket_url()),
        None => command.args(["--without", "postgres"]),
    };
    machine::run(&mut command)
}
