//! `work release`.

use clap::Args;

use crate::api::wire::WorkBody;
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::client::Route;
use crate::view;

/// Let a Work go on that is held
///
/// `work show` and `doctor` say why it is held. What the hold kept back happens on your word.
#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    /// Its id, or the beginning of it
    #[arg(value_name = "WORK")]
    id: String,
}

pub(crate) async fn release(args: &ReleaseArgs, context: &Context) -> Result<Exit, Stop> {
    let route = Route::new(&["work", &args.id, "release"]);
    let work: WorkBody = context.client()?.order(&route).await?;
    let out = &context.out;
    if out.is_json() {
        out.object(&work)?;
    } else {
        out.sentence(&format!("{} is released. {}", work.id, view::work::mover(&work)))?;
    }
    Ok(Exit::DONE)
}
