//! `config show`.

use clap::Args;

use crate::api::wire::ConfigBody;
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::client::Route;

/// Show the configuration in force; secrets are references
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {}

pub(crate) async fn show(_args: &ShowArgs, context: &Context) -> Result<Exit, Stop> {
    let body: ConfigBody = context.client()?.get(&Route::new(&["config"])).await?;
    let out = &context.out;
    if out.is_json() {
        out.object(&body)?;
        return Ok(Exit::DONE);
    }
    let Some(config) = &body.config else {
        out.sentence("No configuration is in force. `open-conduit config apply` puts the file in force.")?;
        return Ok(Exit::DONE);
    };
    out.note(&format!(
        "Generation {}, applied at {}.",
        body.generation,
        body.applied_at.as_deref().unwrap_or("?")
    ));
    if body.edited {
        out.note("The file says something else. `open-conduit config plan` shows what.");
    }
    let text = serde_json::to_string_pretty(config).expect("a configuration is JSON");
    text.lines().try_for_each(|line| out.line(line))?;
    Ok(Exit::DONE)
}
