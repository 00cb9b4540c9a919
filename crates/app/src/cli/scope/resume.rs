//! `scope resume`.

use clap::Args;

use crate::api::wire::PausedBody;
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::client::Route;

/// Let a paused scope start again
///
/// What has waited for it starts as it has room, whatever waited longest first.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// Its name
    #[arg(value_name = "SCOPE")]
    name: String,
}

pub(crate) async fn resume(args: &ResumeArgs, context: &Context) -> Result<Exit, Stop> {
    let route = Route::new(&["scopes", &args.name, "resume"]);
    let body: PausedBody = context.client()?.order(&route).await?;
    let out = &context.out;
    if out.is_json() {
        out.object(&body)?;
        return Ok(Exit::DONE);
    }
    let sentence = match (&body.paused_by, body.changed) {
        (Some(above), _) => format!(
            "Scope `{}` is still paused, as `{above}` is. `open-conduit scope resume {above}` lets both start again.",
            body.scope
        ),
        (None, true) => format!("Scope `{}` starts again.", body.scope),
        (None, false) => format!("Scope `{}` is not paused. Nothing has changed.", body.scope),
    };
    out.sentence(&sentence)?;
    Ok(Exit::DONE)
}
