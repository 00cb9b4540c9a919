//! `work cancel`.

use clap::Args;

use crate::api::wire::CancelledBody;
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::client::Route;

/// Cancel a Work for good, with the run that is at it
#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// Its id, or the beginning of it
    #[arg(value_name = "WORK")]
    id: String,
}

pub(crate) async fn cancel(args: &CancelArgs, context: &Context) -> Result<Exit, Stop> {
    let route = Route::new(&["work", &args.id, "cancel"]);
    let cancelled: CancelledBody = context.client()?.order(&route).await?;
    let out = &context.out;
    if out.is_json() {
        out.object(&cancelled)?;
    } else {
        let run = match &cancelled.run {
            Some(run) => format!("{run} is being stopped."),
            None => "No run was at it.".to_owned(),
        };
        out.sentence(&format!("{} is cancelled. {run}", cancelled.work))?;
    }
    Ok(Exit::DONE)
}
