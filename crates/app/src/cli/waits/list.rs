//! `waits list`.

use clap::Args;

use crate::api::wire::{Page, WaitBody};
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::cli::keyed::KeyArgs;
use crate::cli::output::Table;
use crate::cli::paging::{self, PagingArgs};
use crate::client::Route;
use crate::view;

/// List what Works wait for, newest first
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Also those that have ended
    #[arg(long)]
    all: bool,
    /// Only of this scope
    #[arg(long, value_name = "SCOPE")]
    scope: Option<String>,
    /// Only of this Work
    #[arg(long, value_name = "WORK")]
    work: Option<String>,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    paging: PagingArgs,
}

pub(crate) async fn list(args: &ListArgs, context: &Context) -> Result<Exit, Stop> {
    let route = Route::new(&["waits"])
        .with_some("state", args.all.then_some("all"))
        .with_some("scope", args.scope.as_ref())
        .with_some("work", args.work.as_ref());
    let page: Page<WaitBody> = context.client()?.get(&args.paging.of(args.key.of(route))).await?;
    let nothing = "No Work waits. A run that ends with the status `waiting` makes its Work wait.";
    paging::print(context, &page, |waits| table(waits, context), nothing)?;
    Ok(Exit::DONE)
}

fn table(waits: &[WaitBody], context: &Context) -> Table {
    let mut table = Table::new(&["wait", "state", "since", "work", "waits"]);
    for wait in waits {
        table.row([
            wait.id.as_str().into(),
            wait.state.as_str().into(),
            view::time::ago(&wait.registered_at, context.now).into(),
            wait.work.as_str().into(),
            view::wait::goal(wait).into(),
        ]);
    }
    table
}
