//! `events explain`.

use std::path::PathBuf;

use clap::Args;

use super::described::Described;
use crate::api::wire::{ExplainBody, ExplanationBody};
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Stop};
use crate::client::Route;

/// Tell what an Event would do, without doing it
///
/// Either names an accepted Event or describes one, with the options of `events emit`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// An accepted Event, by its id or the beginning of it
    #[arg(value_name = "EVENT", conflicts_with_all = ["scope", "event_type", "source"])]
    id: Option<String>,
    /// The scope it would be for
    #[arg(long, value_name = "SCOPE", required_unless_present = "id")]
    scope: Option<String>,
    /// What would have happened
    #[arg(long = "type", value_name = "TYPE", required_unless_present = "id")]
    event_type: Option<String>,
    /// The source it would come from [default: core.manual, an operator]
    #[arg(long, value_name = "SOURCE")]
    source: Option<String>,
    #[command(flatten)]
    described: Described,
    /// Ask a proposed configuration file, not the generation in force
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(crate) async fn explain(args: &ExplainArgs, context: &Context) -> Result<Exit, Stop> {
    let (config, format) = match &args.config {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
            let is_json = path.extension().is_some_and(|extension| extension == "json");
            (Some(text), Some(if is_json { "json" } else { "toml" }.to_owned()))
        }
        None => (None, None),
    };
    let body = ExplainBody {
        event: args.id.clone(),
        scope: args.scope.clone(),
        event_type: args.event_type.clone(),
        source: args.source.clone(),
        key: args.described.key(),
        work: args.described.work.clone(),
        payload: args.described.payload()?,
        config,
        format,
    };
    let found: ExplanationBody = context.client()?.post(&Route::new(&["events", "explain"]), &body).await?;
    if context.out.is_json() {
        context.out.object(&found)?;
    } else {
        found.sentences.iter().try_for_each(|sentence| context.out.sentence(sentence))?;
    }
    Ok(Exit::DONE)
}
