//! `runs why`.

use clap::Args;

use crate::api::wire::WhyBody;
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::client::Route;

/// Tell why a run started, and what else arrived for its Work without any effect
#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// Its id, or the beginning of it
    #[arg(value_name = "RUN")]
    id: String,
}

pub(crate) async fn why(args: &WhyArgs, context: &Context) -> Result<Exit, Stop> {
    let body: WhyBody = context.client()?.get(&Route::new(&["runs", &args.id, "why"])).await?;
    if context.out.is_json() {
        context.out.object(&body)?;
    } else {
        body.sentences.iter().try_for_each(|sentence| context.out.sentence(sentence))?;
    }
    Ok(Exit::DONE)
}
