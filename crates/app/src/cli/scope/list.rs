//! `scope list`.

use std::time::Duration;

use clap::Args;

use crate::api::types::{Page, ScopeBody};
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::cli::output::Table;
use crate::cli::paging;
use crate::client::Route;
use crate::view::{Word, time};

/// List the scopes of the configuration in force, with what each inherits
#[derive(Debug, Args)]
pub(crate) struct ListArgs {}

pub(crate) async fn list(_args: &ListArgs, context: &Context) -> Result<Exit, Stop> {
    let page: Page<ScopeBody> = context.client()?.get(&Route::new(&["scopes"])).await?;
    let nothing = "No scope is configured. Write one into the configuration file, then `open-conduit config apply`.";
    paging::print(context, &page, table, nothing)?;
    Ok(Exit::DONE)
}

fn table(scopes: &[ScopeBody]) -> Table {
    let mut table = Table::new(&["scope", "parent", "at once", "timeout", "routes", "bindings", "entries"]);
    for scope in scopes {
        let name = if scope.disabled { format!("{} (disabled)", scope.name) } else { scope.name.clone() };
        table.row([
            name.into(),
            Word::from(scope.parent.as_deref().unwrap_or("")),
            scope.concurrency.to_string().into(),
            time::span(Duration::from_secs(scope.timeout_seconds)).into(),
            scope.routes.join(", ").into(),
            scope.bindings.join(", ").into(),
            scope.entries.join(", ").into(),
        ]);
    }
    table
}
