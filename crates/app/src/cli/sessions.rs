//! `sessions`: the browsers that are logged in to the page.

use clap::Subcommand;

use super::Context;
use super::exit::Exit;
use super::failure::Stop;

mod list;
mod revoke;

#[derive(Debug, Subcommand)]
pub(super) enum SessionsCommand {
    List(list::ListArgs),
    Revoke(revoke::RevokeArgs),
}

pub(super) async fn run(command: SessionsCommand, context: &Context) -> Result<Exit, Stop> {
    match command {
        SessionsCommand::List(args) => list::list(&args, context).await,
        SessionsCommand::Revoke(args) => revoke::revoke(&args, context).await,
    }
}
