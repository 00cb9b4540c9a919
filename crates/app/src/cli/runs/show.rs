//! `runs show`.

use clap::Args;

use crate::api::wire::RunBody;
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::client::Route;
use crate::view::run;

/// Show a run
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Its id, or the beginning of it
    #[arg(value_name = "RUN")]
    id: String,
}

pub(crate) async fn show(args: &ShowArgs, context: &Context) -> Result<Exit, Stop> {
    let body: RunBody = context.client()?.get(&Route::new(&["runs", &args.id])).await?;
    if context.out.is_json() {
        context.out.object(&body)?;
    } else {
        context.out.fields(&run::fields(&body, context.now))?;
    }
    Ok(Exit::DONE)
}
