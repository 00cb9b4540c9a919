//! The arguments of every list, and what a list says below its rows.

use clap::Args;
use serde::Serialize;

use crate::api::wire::Page;
use crate::client::Route;

use super::Context;
use super::failure::Stop;
use super::output::Table;

/// Which part of a list to show.
#[derive(Debug, Args)]
pub(super) struct PagingArgs {
    /// How many rows to show, newest first
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: u32,
    /// Where to go on, as the end of the page before said
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

impl PagingArgs {
    pub(super) fn of(&self, route: Route) -> Route {
        route.with("limit", self.limit.to_string()).with_some("cursor", self.cursor.as_ref())
    }
}

/// Prints a page: as an object, as a table, or as what to do when there is nothing to show.
pub(super) fn print<T: Serialize>(
    context: &Context,
    page: &Page<T>,
    table: impl FnOnce(&[T]) -> Table,
    when_empty: &str,
) -> Result<(), Stop> {
    let out = &context.out;
    if out.is_json() {
        return out.object(page);
    }
    if page.items.is_empty() {
        return out.sentence(when_empty);
    }
    out.table(&table(&page.items))?;
    if let Some(next) = &page.next {
        out.note(&format!("\nThere are more: add --cursor {next}"));
    }
    Ok(())
}
