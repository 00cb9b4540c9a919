//! `work list`.

use clap::Args;

use crate::api::wire::{Page, WorkBody};
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::cli::keyed::KeyArgs;
use crate::cli::output::Table;
use crate::cli::paging::{self, PagingArgs};
use crate::client::Route;
use crate::view::work::WorkRow;

/// List Works, newest first
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only of this scope
    #[arg(long, value_name = "SCOPE")]
    scope: Option<String>,
    /// Only of this kind
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Only in this state
    #[arg(long, value_parser = ["ready", "running", "waiting", "completed", "failed", "cancelled"])]
    state: Option<String>,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    paging: PagingArgs,
}

pub(crate) async fn list(args: &ListArgs, context: &Context) -> Result<Exit, Stop> {
    let route = Route::new(&["work"])
        .with_some("scope", args.scope.as_ref())
        .with_some("kind", args.kind.as_ref())
        .with_some("state", args.state.as_ref());
    let page: Page<WorkBody> = context.client()?.get(&args.paging.of(args.key.of(route))).await?;
    let nothing = "There is no such Work. An Event that a route matches makes one: try `open-conduit events emit --help`.";
    paging::print(context, &page, |works| table(works, context), nothing)?;
    Ok(Exit::DONE)
}

fn table(works: &[WorkBody], context: &Context) -> Table {
    let mut table = Table::new(&["work", "state", "created", "runs", "kind", "key"]);
    for work in works {
        let row = WorkRow::new(work, context.now);
        table.row([
            row.id.into(),
            row.look.word(),
            row.created.into(),
            row.runs.into(),
            row.kind.into(),
            row.keys.into(),
        ]);
    }
    table
}
