//! `jobs`: when scheduled jobs run, and what starts them. None of these needs a daemon.

use clap::Subcommand;

use super::Context;
use super::exit::Exit;
use super::failure::Stop;

mod declared;
mod matches;
mod next;

#[derive(Debug, Subcommand)]
pub(super) enum JobsCommand {
    Next(next::NextArgs),
    Match(matches::MatchArgs),
}

pub(super) fn run(command: JobsCommand, context: &Context) -> Result<Exit, Stop> {
    match command {
        JobsCommand::Next(args) => next::next(&args, context),
        JobsCommand::Match(args) => matches::matches(&args, context),
    }
}
