//! `scope`: the tree that owns routes, bindings and settings.

use clap::Subcommand;

use super::Context;
use super::exit::Exit;
use super::failure::Stop;

mod list;

#[derive(Debug, Subcommand)]
pub(super) enum ScopeCommand {
    List(list::ListArgs),
}

pub(super) async fn run(command: ScopeCommand, context: &Context) -> Result<Exit, Stop> {
    match command {
        ScopeCommand::List(args) => list::list(&args, context).await,
    }
}
