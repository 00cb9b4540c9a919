//! `config plan`.

use clap::Args;

use super::print_changes;
use crate::api::wire::PlanBody;
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::client::Route;

/// Show what applying the file would change, and change nothing
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {}

pub(crate) async fn plan(_args: &PlanArgs, context: &Context) -> Result<Exit, Stop> {
    let plan: PlanBody = context.client()?.get(&Route::new(&["config", "plan"])).await?;
    let out = &context.out;
    if out.is_json() {
        out.object(&plan)?;
    } else if plan.changes.is_empty() {
        out.sentence(&format!("The file says what is in force, generation {}.", plan.generation))?;
    } else {
        print_changes(&plan.changes, &plan.restart_required, context)?;
        out.note("\n`open-conduit config apply` makes it so.");
    }
    Ok(Exit::DONE)
}
