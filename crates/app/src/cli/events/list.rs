//! `events list`.

use clap::Args;

use crate::api::wire::{EventBody, Page};
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::cli::keyed::KeyArgs;
use crate::cli::output::Table;
use crate::cli::paging::{self, PagingArgs};
use crate::client::Route;
use crate::view::event::EventRow;

/// List Events, newest first, with what became of each
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only of this scope
    #[arg(long, value_name = "SCOPE")]
    scope: Option<String>,
    /// Only of this type
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// Only from this source
    #[arg(long, value_name = "SOURCE")]
    source: Option<String>,
    /// Only addressed to this Work
    #[arg(long, value_name = "WORK")]
    work: Option<String>,
    /// Only those that this became of
    #[arg(long, value_parser = ["routed", "unmatched", "dropped", "terminal", "quarantined"])]
    outcome: Option<String>,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    paging: PagingArgs,
}

pub(crate) async fn list(args: &ListArgs, context: &Context) -> Result<Exit, Stop> {
    let route = Route::new(&["events"])
        .with_some("scope", args.scope.as_ref())
        .with_some("type", args.event_type.as_ref())
        .with_some("source", args.source.as_ref())
        .with_some("work", args.work.as_ref())
        .with_some("outcome", args.outcome.as_ref());
    let page: Page<EventBody> = context.client()?.get(&args.paging.of(args.key.of(route))).await?;
    let nothing = "There is no such Event. `open-conduit events emit --help` tells how to send one.";
    paging::print(context, &page, |events| table(events, context), nothing)?;
    Ok(Exit::DONE)
}

fn table(events: &[EventBody], context: &Context) -> Table {
    let mut table = Table::new(&["event", "accepted", "type", "source", "result"]);
    for event in events {
        let row = EventRow::new(event, context.now);
        // Its type says only that somebody asked.
        let what = row.replay.unwrap_or(row.event_type);
        table.row([row.id.into(), row.accepted.into(), what.into(), row.source.into(), row.result]);
    }
    table
}
