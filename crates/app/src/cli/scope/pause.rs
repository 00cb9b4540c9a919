//! `scope pause`.

use clap::Args;

use crate::api::wire::PausedBody;
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::client::Route;

/// Let a scope start nothing more, until it is resumed
///
/// Everything else goes on: what runs ends, and Events are accepted, routed and queued. What descends from the scope is
/// paused with it. It lasts over restarts.
#[derive(Debug, Args)]
pub(crate) struct PauseArgs {
    /// Its name
    #[arg(value_name = "SCOPE")]
    name: String,
}

pub(crate) async fn pause(args: &PauseArgs, context: &Context) -> Result<Exit, Stop> {
    let route = Route::new(&["scopes", &args.name, "pause"]);
    let body: PausedBody = context.client()?.order(&route).await?;
    let out = &context.out;
    if out.is_json() {
        out.object(&body)?;
        return Ok(Exit::DONE);
    }
    let sentence = if body.changed {
        format!(
            "Scope `{}` is paused. `open-conduit scope resume {}` lets it start again.",
            body.scope, body.scope
        )
    } else {
        format!("Scope `{}` is paused already, since {}.", body.scope, body.since.as_deref().unwrap_or("?"))
    };
    out.sentence(&sentence)?;
    Ok(Exit::DONE)
}
