//! `waits`: what Works wait for.

use clap::Subcommand;

use super::Context;
use super::exit::Exit;
use super::failure::Stop;

mod list;

#[derive(Debug, Subcommand)]
pub(super) enum WaitsCommand {
    List(list::ListArgs),
}

pub(super) async fn run(command: WaitsCommand, context: &Context) -> Result<Exit, Stop> {
    match command {
        WaitsCommand::List(args) => list::list(&args, context).await,
    }
}
