//! `runs watch`.

use clap::Args;

use crate::api::types::{ChangeBody, RunBody};
use crate::cli::Context;
use crate::cli::changes::Changes;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::client::Route;
use crate::view::change::ChangeRow;
use crate::view::{Word, run};

/// Print each state that runs enter; with a run, until it ends
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Its id, or the beginning of it; every run when left out
    #[arg(value_name = "RUN")]
    id: Option<String>,
}

pub(crate) async fn watch(args: &WatchArgs, context: &Context) -> Result<Exit, Stop> {
    let client = context.client()?;
    let mut changes = Changes::follow(&client, "run").await?;
    let Some(id) = &args.id else {
        loop {
            let change = changes.next().await?;
            if change.kind == "run" {
                print(&change, context)?;
            }
        }
    };
    let body: RunBody = client.get(&Route::new(&["runs", id])).await?;
    print(&now(&body), context)?;
    let mut exit = Exit::of_run(&body.state);
    while exit.is_none() {
        let change = changes.next().await?;
        // The change that led to the state above may still be on its way here.
        if change.kind == "run" && change.id == body.id && change.state.as_deref() != Some(&body.state) {
            print(&change, context)?;
            exit = change.state.as_deref().and_then(Exit::of_run);
        }
    }
    let body: RunBody = client.get(&Route::new(&["runs", &body.id])).await?;
    context.out.note(&run::ending(&body));
    Ok(exit.expect("the loop ends with the run"))
}

/// The state a run is in, as the change that led to it.
fn now(body: &RunBody) -> ChangeBody {
    let at = body.ended_at.as_ref().or(body.started_at.as_ref()).unwrap_or(&body.claimed_at);
    ChangeBody {
        at: at.clone(),
        kind: "run".to_owned(),
        id: body.id.clone(),
        state: Some(body.state.clone()),
        from: None,
        work: Some(body.work.clone()),
    }
}

fn print(change: &ChangeBody, context: &Context) -> Result<(), Stop> {
    if context.out.is_json() {
        return context.out.object(change);
    }
    let row = ChangeRow::new(change);
    context.out.words(&[Word::quiet(row.at), row.id.into(), row.state])
}
