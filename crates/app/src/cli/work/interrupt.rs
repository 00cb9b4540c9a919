//! `work interrupt`.

use clap::Args;

use crate::api::wire::{AgainBody, OrderedBody};
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::client::Route;

/// End the run of a Work, and keep the Work with its pending input
///
/// The next run starts once this one has stopped, if input is pending. It counts as no failure. It is refused where the
/// run's executor cannot do it.
#[derive(Debug, Args)]
pub(crate) struct InterruptArgs {
    /// Its id, or the beginning of it
    #[arg(value_name = "WORK")]
    id: String,
    /// The name of the order; whoever gives it again uses the same one [default: a fresh one]
    #[arg(long, value_name = "ID")]
    delivery_id: Option<String>,
}

pub(crate) async fn interrupt(args: &InterruptArgs, context: &Context) -> Result<Exit, Stop> {
    let body = AgainBody { delivery_id: args.delivery_id.clone() };
    let route = Route::new(&["work", &args.id, "interrupt"]);
    let ordered: OrderedBody = context.client()?.post(&route, &body).await?;
    let out = &context.out;
    if out.is_json() {
        out.object(&ordered)?;
    } else {
        out.sentence(&said(&ordered, "is interrupted. The Work stays"))?;
    }
    Ok(Exit::DONE)
}

/// What an order came to.
pub(super) fn said(ordered: &OrderedBody, came: &str) -> String {
    match &ordered.run {
        Some(run) => format!("{run} {came}; {} orders it.", ordered.event),
        None => format!("That was ordered before, by {}. Nothing new happened.", ordered.event),
    }
}
