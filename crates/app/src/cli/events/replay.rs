//! `events replay`.

use clap::Args;

use crate::api::wire::{AcceptedBody, AgainBody};
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::client::Route;

/// Have an Event looked at again that was routed before
///
/// A new Event says what the old one said, and is routed by the configuration in force. What became of the old one
/// stays as it is. It is for what no route took, what was dropped or set aside, or what came too late.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Its id, or the beginning of it
    #[arg(value_name = "EVENT")]
    id: String,
    /// The name of the request; whoever asks again uses the same one [default: a fresh one]
    #[arg(long, value_name = "ID")]
    delivery_id: Option<String>,
}

pub(crate) async fn replay(args: &ReplayArgs, context: &Context) -> Result<Exit, Stop> {
    let body = AgainBody { delivery_id: args.delivery_id.clone() };
    let route = Route::new(&["events", &args.id, "replay"]);
    let accepted: AcceptedBody = context.client()?.post(&route, &body).await?;
    let out = &context.out;
    let event = &accepted.event;
    if out.is_json() {
        out.object(&accepted)?;
    } else if accepted.duplicate {
        out.sentence(&format!("That was asked for before, by {event}. Nothing new happened."))?;
    } else {
        out.sentence(&format!(
            "{event} repeats it. `open-conduit events show {event}` says what became of that."
        ))?;
    }
    Ok(Exit::DONE)
}
