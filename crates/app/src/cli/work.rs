//! `work`: what is to be done, and where it is.

use clap::Subcommand;

use super::Context;
use super::exit::Exit;
use super::failure::Stop;

mod list;
mod show;
mod cancel;
mod retry;
mod interrupt;
mod inject;
mod release;

#[derive(Debug, Subcommand)]
pub(super) enum WorkCommand {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Cancel(cancel::CancelArgs),
    Retry(retry::RetryArgs),
    Interrupt(interrupt::InterruptArgs),
    Inject(inject::InjectArgs),
    Release(release::ReleaseArgs),
}

pub(super) async fn run(command: WorkCommand, context: &Context) -> Result<Exit, Stop> {
    match command {
        WorkCommand::List(args) => list::list(&args, context).await,
        WorkCommand::Show(args) => show::show(&args, context).await,
        WorkCommand::Cancel(args) => cancel::cancel(&args, context).await,
        WorkCommand::Retry(args) => retry::retry(&args, context).await,
        WorkCommand::Interrupt(args) => interrupt::interrupt(&args, context).await,
        WorkCommand::Inject(args) => inject::inject(&args, context).await,
        WorkCommand::Release(args) => release::release(&args, context).await,
    }
}
