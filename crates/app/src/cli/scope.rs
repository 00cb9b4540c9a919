//! `scope`: the tree that owns routes, bindings and settings.

use clap::Subcommand;

use super::Context;
use super::exit::Exit;
use super::failure::Stop;

mod list;
mod pause;
mod resume;
mod show;

#[derive(Debug, Subcommand)]
pub(super) enum ScopeCommand {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Pause(pause::PauseArgs),
    Resume(resume::ResumeArgs),
}

pub(super) async fn run(command: ScopeCommand, context: &Context) -> Result<Exit, Stop> {
    match command {
        ScopeCommand::List(args) => list::list(&args, context).await,
        ScopeCommand::Show(args) => show::show(&args, context).await,
        ScopeCommand::Pause(args) => pause::pause(&args, context).await,
        ScopeCommand::Resume(args) => resume::resume(&args, context).await,
    }
}
