//! `schema`: the configuration's JSON Schema, for editors.

use clap::Args;

use crate::config;

use super::Context;
use super::exit::Exit;
use super::failure::Stop;
use super::output;

/// Print the JSON Schema of the configuration, for editors
#[derive(Debug, Args)]
pub(super) struct SchemaArgs {}

pub(super) fn schema(_args: &SchemaArgs, context: &Context) -> Result<Exit, Stop> {
    let schema = config::schema::schema();
    if context.out.is_json() {
        context.out.object(&schema)?;
    } else {
        let mut text = serde_json::to_vec_pretty(&schema).expect("a schema is JSON");
        text.push(b'\n');
        output::bytes(&text)?;
    }
    Ok(Exit::DONE)
}
