//! `runs again`.

use clap::Args;

use crate::api::wire::{AcceptedBody, AgainBody};
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::client::Route;
use crate::view::event;

/// Send what the trigger of an ended run said, as a new Event from you
///
/// Nothing is replayed: the new Event asks the routes of today. `events explain` tells what it would do.
#[derive(Debug, Args)]
pub(crate) struct AgainArgs {
    /// Its id, or the beginning of it
    #[arg(value_name = "RUN")]
    id: String,
    /// The name of the new Event's delivery; whoever sends again uses the same one [default: a fresh one]
    #[arg(long, value_name = "ID")]
    delivery_id: Option<String>,
}

pub(crate) async fn again(args: &AgainArgs, context: &Context) -> Result<Exit, Stop> {
    let body = AgainBody { delivery_id: args.delivery_id.clone() };
    let route = Route::new(&["runs", &args.id, "again"]);
    let accepted: AcceptedBody = context.client()?.post(&route, &body).await?;
    if context.out.is_json() {
        context.out.object(&accepted)?;
    } else {
        context.out.line(event::acceptance(&accepted))?;
    }
    Ok(Exit::DONE)
}
