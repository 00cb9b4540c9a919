//! `status`: whether the daemon runs, and what it has to do.

use clap::Args;

use crate::api::wire::StatusBody;
use crate::client::Route;
use crate::view::{Field, Tone, Word, count, downtime, health, time};

use super::Context;
use super::exit::Exit;
use super::failure::Stop;

/// Show whether the daemon runs, and what it has to do
#[derive(Debug, Args)]
pub(super) struct StatusArgs {}

pub(super) async fn status(_args: &StatusArgs, context: &Context) -> Result<Exit, Stop> {
    let status: StatusBody = context.client()?.get(&Route::new(&["status"])).await?;
    let out = &context.out;
    if out.is_json() {
        out.object(&status)?;
        return Ok(Exit::DONE);
    }
    out.fields(&fields(&status, context))?;
    if status.config_edited {
        out.line("")?;
        out.sentence(
            "The configuration file differs from what is in force. `open-conduit config plan` shows how.",
        )?;
    }
    if !status.blocked.is_empty() || !status.paused.is_empty() {
        out.line("")?;
    }
    health::blocked(&status).iter().try_for_each(|sentence| out.sentence(sentence))?;
    health::paused(&status).iter().try_for_each(|sentence| out.sentence(sentence))?;
    for lane in &status.lanes {
        out.sentence(&format!(
            "{} could not be routed after {}: {} The next try is {}.",
            lane.event,
            count(lane.tries, "try", "tries"),
            sentence(&lane.reason),
            time::ago(&lane.next_try_at, context.now),
        ))?;
    }
    Ok(Exit::DONE)
}

fn fields(status: &StatusBody, context: &Context) -> Vec<Field> {
    let up = Word::new(format!("up, started {}", time::ago(&status.started_at, context.now)), Tone::Good);
    let generation = match status.generation {
        0 => "none applied".to_owned(),
        number => format!("generation {number}"),
    };
    let mut fields = vec![
        Field::new("daemon", up),
        Field::new("version", status.version.as_str()),
        Field::new("home", status.home.as_str()),
        Field::new("API", format!("http://{}", status.api_address)),
        Field::new(
            "webhooks",
            status.webhook_address.as_ref().map_or("off".to_owned(), |at| format!("http://{at}")),
        ),
        Field::new("configuration", generation),
        Field::new("zone data", status.zone_data.as_str()),
        Field::new("running", count(i64::try_from(status.running).unwrap_or(i64::MAX), "run", "runs")),
        Field::new("queued", at_most(status.runnable, "Work", "Works")),
        Field::new("to route", at_most(status.unrouted, "Event", "Events")),
    ];
    if let Some(start) = &status.last_downtime
        && let Some(since) = &start.down_since
    {
        let text = format!(
            "{} to {}, {}: {}",
            time::absolute(since),
            time::absolute(&start.started_at),
            downtime::how(start),
            downtime::tally(start),
        );
        fields.push(Field::new("last downtime", text));
    }
    fields
}

/// A number that was counted up to a thousand.
fn at_most(number: u32, one: &str, more: &str) -> String {
    if number >= 1000 { format!("1000 {more} or more") } else { count(i64::from(number), one, more) }
}

fn sentence(reason: &str) -> String {
    format!("{}.", reason.trim_end_matches('.'))
}
