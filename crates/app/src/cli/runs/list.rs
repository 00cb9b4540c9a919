//! `runs list`.

use clap::Args;

use crate::api::wire::{Page, RunBody};
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::cli::keyed::KeyArgs;
use crate::cli::output::Table;
use crate::cli::paging::{self, PagingArgs};
use crate::client::Route;
use crate::view::run::RunRow;

/// List runs, newest first
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only of this scope
    #[arg(long, value_name = "SCOPE")]
    scope: Option<String>,
    /// Only of Works of this kind
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Only of this Work
    #[arg(long, value_name = "WORK")]
    work: Option<String>,
    /// Only in this state
    #[arg(long, value_parser = ["launching", "running", "completed", "handoff", "failed", "cancelled"])]
    state: Option<String>,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    paging: PagingArgs,
}

pub(crate) async fn list(args: &ListArgs, context: &Context) -> Result<Exit, Stop> {
    let route = Route::new(&["runs"])
        .with_some("scope", args.scope.as_ref())
        .with_some("work_kind", args.kind.as_ref())
        .with_some("work", args.work.as_ref())
        .with_some("state", args.state.as_ref());
    let page: Page<RunBody> = context.client()?.get(&args.paging.of(args.key.of(route))).await?;
    let nothing =
        "There is no such run. `open-conduit events list` shows what arrived and what became of it.";
    paging::print(context, &page, |runs| table(runs, context), nothing)?;
    Ok(Exit::DONE)
}

/// Runs as rows.
pub(crate) fn table(runs: &[RunBody], context: &Context) -> Table {
    let mut table = Table::new(&["run", "state", "started", "took", "trigger", "key"]);
    for run in runs {
        let row = RunRow::new(run, context.now);
        table.row([
            row.id.into(),
            row.look.word(),
            row.started.into(),
            row.took.into(),
            row.trigger.into(),
            row.keys.into(),
        ]);
    }
    table
}
