//! `events tail`.

use clap::Args;

use crate::api::wire::EventBody;
use crate::cli::Context;
use crate::cli::changes::Changes;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::client::Route;
use crate::view::event::EventRow;
use crate::view::{Word, event, time};

/// Print Events as they are accepted, and again when they are routed, until interrupted
#[derive(Debug, Args)]
pub(crate) struct TailArgs {}

pub(crate) async fn tail(_args: &TailArgs, context: &Context) -> Result<Exit, Stop> {
    let client = context.client()?;
    let mut changes = Changes::follow(&client, "event,checkpoint").await?;
    context.out.note("Waiting for Events. Ctrl-C ends this.");
    loop {
        let change = changes.next().await?;
        let mut body: EventBody = client.get(&Route::new(&["events", &change.id])).await?;
        if change.kind == "event" {
            // It may have been routed since. That is the next change, and is printed in its turn.
            body.checkpoint = None;
        }
        if context.out.is_json() {
            context.out.object(&body)?;
            continue;
        }
        let row = EventRow::new(&body, context.now);
        let at = Word::quiet(time::of_day(&change.at));
        if change.kind == "event" {
            context.out.words(&[
                at,
                row.id.into(),
                row.replay.unwrap_or(row.event_type).into(),
                Word::from(format!("from {}", row.source)),
            ])?;
        } else {
            context.out.words(&[at, row.id.into(), row.result, event::fate(&body).into()])?;
        }
    }
}
