//! `timers list`.

use clap::Args;

use crate::api::wire::{Page, TimerBody};
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::cli::output::Table;
use crate::cli::paging;
use crate::client::Route;
use crate::view;

/// List the timers to come, the next one first
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// How many rows to show
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: u32,
    /// Where to go on, as the end of the page before said
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

pub(crate) async fn list(args: &ListArgs, context: &Context) -> Result<Exit, Stop> {
    let route = Route::new(&["timers"])
        .with("limit", args.limit.to_string())
        .with_some("cursor", args.cursor.as_ref());
    let page: Page<TimerBody> = context.client()?.get(&route).await?;
    let nothing = "No timer is armed. A failed run that is tried again has one, and a Wait with a timeout.";
    paging::print(context, &page, |timers| table(timers, context), nothing)?;
    Ok(Exit::DONE)
}

fn table(timers: &[TimerBody], context: &Context) -> Table {
    let mut table = Table::new(&["timer", "due", "in", "work", "does"]);
    for timer in timers {
        table.row([
            timer.id.as_str().into(),
            view::time::absolute(&timer.due_at).into(),
            view::time::ago(&timer.due_at, context.now).into(),
            timer.work.as_str().into(),
            view::wait::timer(timer).into(),
        ]);
    }
    table
}
