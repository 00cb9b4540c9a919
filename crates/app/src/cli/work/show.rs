//! `work show`.

use clap::Args;

use crate::api::wire::{Page, RunBody, WorkBody};
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::cli::runs::list::table;
use crate::client::Route;
use crate::view::{order, work};

/// How many of a Work's runs are shown below it.
const RUNS_SHOWN: &str = "10";

/// Show a Work, its pending input and its newest runs
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Its id, or the beginning of it
    #[arg(value_name = "WORK")]
    id: String,
}

pub(crate) async fn show(args: &ShowArgs, context: &Context) -> Result<Exit, Stop> {
    let client = context.client()?;
    let body: WorkBody = client.get(&Route::new(&["work", &args.id])).await?;
    let out = &context.out;
    if out.is_json() {
        out.object(&body)?;
        return Ok(Exit::DONE);
    }
    let route = Route::new(&["runs"]).with("work", &body.id).with("limit", RUNS_SHOWN);
    let runs: Page<RunBody> = client.get(&route).await?;
    out.fields(&work::fields(&body, context.now))?;
    if !body.orders.is_empty() {
        out.line("")?;
        out.heading("Orders to its run")?;
        body.orders.iter().try_for_each(|order| out.line(order::sentence(order)))?;
    }
    let inputs = body.pending_inputs.unwrap_or_default();
    if !inputs.is_empty() {
        out.line("")?;
        out.heading("Pending input")?;
        inputs.iter().try_for_each(|input| out.line(work::input(input)))?;
    }
    if !runs.items.is_empty() {
        out.line("")?;
        out.heading("Runs")?;
        out.table(&table(&runs.items, context))?;
    }
    Ok(Exit::DONE)
}
