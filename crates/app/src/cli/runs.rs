//! `runs`: each attempt at a Work.

use clap::Subcommand;

use super::Context;
use super::exit::Exit;
use super::failure::Stop;

pub(super) mod list;
mod show;
mod log;
mod watch;
mod why;
mod again;

#[derive(Debug, Subcommand)]
pub(super) enum RunsCommand {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Log(log::LogArgs),
    Watch(watch::WatchArgs),
    Why(why::WhyArgs),
    Again(again::AgainArgs),
}

pub(super) async fn run(command: RunsCommand, context: &Context) -> Result<Exit, Stop> {
    match command {
        RunsCommand::List(args) => list::list(&args, context).await,
        RunsCommand::Show(args) => show::show(&args, context).await,
        RunsCommand::Log(args) => log::log(&args, context).await,
        RunsCommand::Watch(args) => watch::watch(&args, context).await,
        RunsCommand::Why(args) => why::why(&args, context).await,
        RunsCommand::Again(args) => again::again(&args, context).await,
    }
}
