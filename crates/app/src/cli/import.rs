//! `import`: what other schedulers have, as configuration. No daemon is needed, and nothing is applied.

use clap::Subcommand;

use super::Context;
use super::exit::Exit;
use super::failure::Stop;

mod crontab;

#[derive(Debug, Subcommand)]
pub(super) enum ImportCommand {
    Crontab(crontab::CrontabArgs),
}

pub(super) fn run(command: ImportCommand, context: &Context) -> Result<Exit, Stop> {
    match command {
        ImportCommand::Crontab(args) => crontab::crontab(&args, context),
    }
}
