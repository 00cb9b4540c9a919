//! `runs list`.

use clap::Args;

use crate::api::wire::{Page, RunBody, RunPage};
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
    #[arg(
        long,
        value_parser = ["launching", "running", "parked", "completed", "handoff", "waiting", "failed", "cancelled"]
    )]
    state: Option<String>,
    /// Only triggered by an Event of this source, or of one below it
    #[arg(long, value_name = "SOURCE")]
    source: Option<String>,
    /// Only with this in a key, the trigger's type or source, or the summary; or with an id that begins like it
    #[arg(long, value_name = "TEXT")]
    query: Option<String>,
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
        .with_some("state", args.state.as_ref())
        .with_some("trigger_source", args.source.as_ref())
        .with_some("q", args.query.as_ref());
    let found: RunPage = context.client()?.get(&args.paging.of(args.key.of(route))).await?;
    if context.out.is_json() {
        context.out.object(&found)?;
        return Ok(Exit::DONE);
    }
    let page = Page { items: found.items, next: found.next };
    let nothing =
        "There is no such run. `open-conduit events list` shows what arrived and what became of it.";
    if let (Some(searched), Some(next), true) = (found.searched, &page.next, page.items.is_empty()) {
        let more = format!("No run among {searched} matches. Search older ones with --cursor {next}");
        context.out.sentence(&more)?;
        return Ok(Exit::DONE);
    }
    paging::print(context, &page, |runs| table(runs, context), nothing)?;
    if let Some(searched) = found.searched {
        context
            .out
            .note(&format!("The search looked at {searched} runs, and goes on with older ones there."));
    }
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
