//! `events emit`.

use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::described::Described;
use super::outcome::{Awaited, Came, KINDS};
use crate::api::wire::{AcceptedBody, EmitBody, RunBody};
use crate::cli::Context;
use crate::cli::changes::Changes;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Stop};
use crate::client::{Client, Route};
use crate::error_code::ErrorCode;
use crate::view::run::took;
use crate::view::{event, time};

/// Send an Event
///
/// It is durable when this returns. The same delivery id can be sent again at any time: it is accepted once.
#[derive(Debug, Args)]
pub(crate) struct EmitArgs {
    /// The scope it is for
    #[arg(long, value_name = "SCOPE")]
    scope: String,
    /// What happened, such as `build.finished`
    #[arg(long = "type", value_name = "TYPE")]
    event_type: String,
    /// The name of this delivery; whoever sends again uses the same one [default: a fresh one]
    #[arg(long, value_name = "ID")]
    delivery_id: Option<String>,
    #[command(flatten)]
    described: Described,
    /// Wait until the run that takes it in has ended, and exit as that did
    #[arg(long)]
    wait: bool,
    /// How long to wait, in seconds
    #[arg(long, value_name = "SECONDS", requires = "wait")]
    timeout: Option<u64>,
}

/// What was sent, and with `--wait` what came of it.
#[derive(Debug, Serialize)]
struct Emitted<'a> {
    event: &'a str,
    sequence: i64,
    duplicate: bool,
    run: Option<&'a RunBody>,
}

pub(crate) async fn emit(args: &EmitArgs, context: &Context) -> Result<Exit, Stop> {
    let client = context.client()?;
    let body = EmitBody {
        scope: args.scope.clone(),
        event_type: args.event_type.clone(),
        delivery_id: args.delivery_id.clone(),
        key: args.described.key(),
        work: args.described.work.clone(),
        occurred_at: None,
        payload: args.described.payload()?,
    };
    if !args.wait {
        let accepted: AcceptedBody = client.post(&Route::new(&["events"]), &body).await?;
        print_accepted(&accepted, context)?;
        print_object(&accepted, None, context)?;
        return Ok(Exit::DONE);
    }
    let mut changes = Changes::follow(&client, KINDS).await?;
    let accepted: AcceptedBody = client.post(&Route::new(&["events"]), &body).await?;
    print_accepted(&accepted, context)?;
    let came = wait(args, &client, &accepted, &mut changes).await;
    let run = came.as_ref().ok().and_then(Came::run);
    print_object(&accepted, run, context)?;
    if let Some(run) = run {
        print_run(run, context)?;
    }
    came?.exit()
}

async fn wait(
    args: &EmitArgs,
    client: &Client,
    accepted: &AcceptedBody,
    changes: &mut Changes,
) -> Result<Came, Stop> {
    let mut awaited = Awaited::new(client, &accepted.event);
    let ended = awaited.ended(changes);
    let Some(seconds) = args.timeout else { return ended.await };
    match tokio::time::timeout(Duration::from_secs(seconds), ended).await {
        Ok(came) => came,
        Err(_elapsed) => {
            let detail =
                format!("{} led to no finished run within {seconds} seconds; it goes on", accepted.event);
            Err(Failure::new(Exit::TIMED_OUT, ErrorCode::WaitTimedOut, detail)
                .hint(format!("`open-conduit events show {}` tells where it is", accepted.event))
                .into())
        }
    }
}

fn print_accepted(accepted: &AcceptedBody, context: &Context) -> Result<(), Stop> {
    if context.out.is_json() {
        return Ok(());
    }
    context.out.line(event::acceptance(accepted))
}

fn print_object(accepted: &AcceptedBody, run: Option<&RunBody>, context: &Context) -> Result<(), Stop> {
    if !context.out.is_json() {
        return Ok(());
    }
    let AcceptedBody { event, sequence, duplicate } = accepted;
    context.out.object(&Emitted { event, sequence: *sequence, duplicate: *duplicate, run })
}

fn print_run(run: &RunBody, context: &Context) -> Result<(), Stop> {
    if context.out.is_json() {
        return Ok(());
    }
    let took = took(run, context.now).map(|took| format!(" in {}", time::span(took))).unwrap_or_default();
    let summary = run.summary.as_ref().map(|summary| format!(": {summary}")).unwrap_or_default();
    context.out.line(format!("{} {}{took}{summary}", run.id, run.state))
}
