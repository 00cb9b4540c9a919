//! `config apply`.

use clap::Args;

use super::print_changes;
use crate::api::wire::{AppliedBody, ApplyBody};
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::client::Route;

/// Put the file in force, as a new generation
#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {}

pub(crate) async fn apply(_args: &ApplyArgs, context: &Context) -> Result<Exit, Stop> {
    let applied: AppliedBody =
        context.client()?.post(&Route::new(&["config", "apply"]), &ApplyBody::default()).await?;
    let out = &context.out;
    if out.is_json() {
        out.object(&applied)?;
    } else if applied.changed {
        print_changes(&applied.changes, &applied.restart_required, context)?;
        out.line("")?;
        out.sentence(&format!(
            "Generation {} is in force. Runs that go on keep theirs.",
            applied.generation
        ))?;
    } else {
        out.sentence(&format!("The file says what is in force already, generation {}.", applied.generation))?;
    }
    Ok(Exit::DONE)
}
