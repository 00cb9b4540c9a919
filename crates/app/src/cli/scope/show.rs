//! `scope show`.

use clap::Args;

use crate::api::wire::{Page, ScopeBody};
use crate::cli::Context;
use crate::cli::config::show::print;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::client::Route;
use crate::view::config::ScopeWords;

/// Show what holds in a scope: routes, bindings, budgets and what is used of them, settings
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Its name
    #[arg(value_name = "SCOPE")]
    name: String,
}

pub(crate) async fn show(args: &ShowArgs, context: &Context) -> Result<Exit, Stop> {
    let route = Route::new(&["scopes"]).with("name", &args.name);
    let page: Page<ScopeBody> = context.client()?.get(&route).await?;
    for scope in &page.items {
        if context.out.is_json() {
            context.out.object(scope)?;
        } else {
            print(&ScopeWords::new(scope), context)?;
        }
    }
    Ok(Exit::DONE)
}
