//! `runs watch`.

use clap::Args;

use crate::api::wire::{ChangeBody, RunBody};
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
    let mut state = body.state;
    let exit = loop {
        if let Some(exit) = Exit::of_run(&state) {
            break exit;
        }
        let change = changes.next().await?;
        // Changes that led to the state above may still be on their way here.
        let is_next = change.kind == "run" && change.id == body.id && change.from.as_deref() == Some(&*state);
        if let Some(entered) = change.state.as_ref().filter(|_state| is_next) {
            print(&change, context)?;
            state.clone_from(entered);
        }
    };
    let body: RunBody = client.get(&Route::new(&["runs", &body.id])).await?;
    context.out.note(&run::ending(&body));
    Ok(exit)
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
