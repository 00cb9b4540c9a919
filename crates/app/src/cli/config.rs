//! `config`: the file is what is proposed, a generation is what is in force.

use clap::Subcommand;

use crate::api::wire::PlanChangeBody;
use crate::view::{Tone, Word};

use super::Context;
use super::exit::Exit;
use super::failure::Stop;

pub(super) mod check;
mod apply;
pub(super) mod show;
mod plan;

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    Check(check::CheckArgs),
    Plan(plan::PlanArgs),
    Apply(apply::ApplyArgs),
    Show(show::ShowArgs),
}

pub(super) async fn run(command: ConfigCommand, context: &Context) -> Result<Exit, Stop> {
    match command {
        ConfigCommand::Check(args) => check::check(&args, context),
        ConfigCommand::Plan(args) => plan::plan(&args, context).await,
        ConfigCommand::Apply(args) => apply::apply(&args, context).await,
        ConfigCommand::Show(args) => show::show(&args, context).await,
    }
}

/// Prints what changes, and what waits for the next start.
fn print_changes(
    changes: &[PlanChangeBody],
    restart_required: &[String],
    context: &Context,
) -> Result<(), Stop> {
    for change in changes {
        let sign = match change.what.as_str() {
            "added" => Word::new("+", Tone::Good),
            "removed" => Word::new("-", Tone::Bad),
            _changed => Word::new("~", Tone::Active),
        };
        context.out.words(&[sign, change.sentence.as_str().into()])?;
    }
    if !restart_required.is_empty() {
        context.out.line("")?;
        context.out.heading("When the daemon starts again")?;
    }
    restart_required.iter().try_for_each(|sentence| context.out.sentence(sentence))
}
