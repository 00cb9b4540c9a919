//! `sessions list`.

use clap::Args;

use crate::api::wire::{Page, SessionBody};
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::cli::output::Table;
use crate::cli::paging;
use crate::client::Route;
use crate::view::time;

/// List the browsers that are logged in, oldest first
#[derive(Debug, Args)]
pub(crate) struct ListArgs {}

pub(crate) async fn list(_args: &ListArgs, context: &Context) -> Result<Exit, Stop> {
    let page: Page<SessionBody> = context.client()?.get(&Route::new(&["sessions"])).await?;
    let nothing = "No browser is logged in. `open-conduit open` prints a link that logs one in.";
    paging::print(context, &page, |sessions| table(sessions, context), nothing)?;
    Ok(Exit::DONE)
}

fn table(sessions: &[SessionBody], context: &Context) -> Table {
    let mut table = Table::new(&["session", "browser", "logged in", "last seen", "ends unless used"]);
    for session in sessions {
        table.row([
            session.id.as_str().into(),
            session.label.as_str().into(),
            time::ago(&session.created_at, context.now).into(),
            time::ago(&session.last_seen_at, context.now).into(),
            time::ago(&session.expires_at, context.now).into(),
        ]);
    }
    table
}
