//! `events`: what arrived, from where, and what became of it.

use clap::Subcommand;

use super::Context;
use super::exit::Exit;
use super::failure::Stop;

mod described;
pub(super) mod outcome;
mod emit;
mod list;
mod show;
mod tail;
mod explain;
mod replay;

#[derive(Debug, Subcommand)]
pub(super) enum EventsCommand {
    Emit(emit::EmitArgs),
    List(list::ListArgs),
    Show(show::ShowArgs),
    Tail(tail::TailArgs),
    Replay(replay::ReplayArgs),
    Explain(explain::ExplainArgs),
}

pub(super) async fn run(command: EventsCommand, context: &Context) -> Result<Exit, Stop> {
    match command {
        EventsCommand::Emit(args) => emit::emit(&args, context).await,
        EventsCommand::List(args) => list::list(&args, context).await,
        EventsCommand::Show(args) => show::show(&args, context).await,
        EventsCommand::Tail(args) => tail::tail(&args, context).await,
        EventsCommand::Replay(args) => replay::replay(&args, context).await,
        EventsCommand::Explain(args) => explain::explain(&args, context).await,
    }
}
