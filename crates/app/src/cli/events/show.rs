//! `events show`.

use clap::Args;

use crate::api::wire::EventBody;
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::client::Route;
use crate::view::event;
use crate::view::payload::escaped;

/// Show an Event with its payload and what became of it
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Its id, or the beginning of it
    #[arg(value_name = "EVENT")]
    id: String,
}

pub(crate) async fn show(args: &ShowArgs, context: &Context) -> Result<Exit, Stop> {
    let body: EventBody = context.client()?.get(&Route::new(&["events", &args.id])).await?;
    let out = &context.out;
    if out.is_json() {
        out.object(&body)?;
        return Ok(Exit::DONE);
    }
    out.fields(&event::fields(&body, context.now))?;
    out.line("")?;
    out.sentence(&event::fate(&body))?;
    if let Some(repeats) = event::repeats(&body) {
        out.sentence(&repeats)?;
    }
    if let Some(payload) = body.payload.filter(|payload| !payload.is_null()) {
        out.line("")?;
        let text = escaped(&serde_json::to_string_pretty(&payload).expect("a payload is JSON"));
        text.lines().try_for_each(|line| out.line(line))?;
    }
    Ok(Exit::DONE)
}
