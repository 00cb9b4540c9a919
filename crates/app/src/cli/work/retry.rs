//! `work retry`.

use clap::Args;

use crate::api::wire::{AcceptedBody, AgainBody};
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::client::Route;

/// Start the next run of a Work that failed
///
/// It ends the wait after a failure, or revives a Work that failed too often, and begins the failure budget anew.
#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    /// Its id, or the beginning of it
    #[arg(value_name = "WORK")]
    id: String,
    /// The name of the request; whoever asks again uses the same one [default: a fresh one]
    #[arg(long, value_name = "ID")]
    delivery_id: Option<String>,
}

pub(crate) async fn retry(args: &RetryArgs, context: &Context) -> Result<Exit, Stop> {
    let body = AgainBody { delivery_id: args.delivery_id.clone() };
    let route = Route::new(&["work", &args.id, "retry"]);
    let accepted: AcceptedBody = context.client()?.post(&route, &body).await?;
    let out = &context.out;
    if out.is_json() {
        out.object(&accepted)?;
    } else if accepted.duplicate {
        out.sentence(&format!("That was asked for before, by {}. Nothing new happened.", accepted.event))?;
    } else {
        out.sentence(&format!("{} asks for its next run.", accepted.event))?;
    }
    Ok(Exit::DONE)
}
