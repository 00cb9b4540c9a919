//! `timers`: what will happen by time.

use clap::Subcommand;

use super::Context;
use super::exit::Exit;
use super::failure::Stop;

mod list;

#[derive(Debug, Subcommand)]
pub(super) enum TimersCommand {
    List(list::ListArgs),
}

pub(super) async fn run(command: TimersCommand, context: &Context) -> Result<Exit, Stop> {
    match command {
        TimersCommand::List(args) => list::list(&args, context).await,
    }
}
