//! `scope list`.

use std::time::Duration;

use clap::Args;
use domain::config::resolve;
use domain::scope::EffectiveScope;
use serde::Serialize;

use crate::api::wire::{ConfigBody, Page, PauseBody, ScopeLineBody};
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Stop};
use crate::cli::output::Table;
use crate::cli::paging;
use crate::client::{ClientError, Route};
use crate::config::{Model, lower};
use crate::error_code::ErrorCode;
use crate::view::{Word, time};

/// List the scopes of the configuration in force, with what each inherits
#[derive(Debug, Args)]
pub(crate) struct ListArgs {}

/// A scope with everything it inherits.
#[derive(Debug, Serialize)]
struct ScopeBody {
    name: String,
    parent: Option<String>,
    disabled: bool,
    /// The pause that keeps it from starting anything.
    paused: Option<PauseBody>,
    concurrency: u32,
    timeout_seconds: u32,
    /// In the order in which they are asked.
    routes: Vec<String>,
    bindings: Vec<String>,
    /// Entries of extensions.
    entries: Vec<String>,
}

pub(crate) async fn list(_args: &ListArgs, context: &Context) -> Result<Exit, Stop> {
    let body: ConfigBody = context.client()?.get(&Route::new(&["config"])).await?;
    let model: Model = match body.config {
        Some(config) => serde_json::from_value(config).map_err(ClientError::Unknown)?,
        None => Model::default(),
    };
    // What is in force was valid when it was applied; only another version could see that differently.
    let scopes = lower::lower(&model).ok().and_then(|configuration| resolve(&configuration).ok());
    let scopes = scopes.ok_or_else(|| {
        let detail = "the configuration in force is not understood; the daemon may be of another version";
        Failure::new(Exit::FAILED, ErrorCode::UnexpectedAnswer, detail)
    })?;
    let page = Page { items: scopes.values().map(|scope| shown(scope, &body.tree)).collect(), next: None };
    let nothing =
        "No scope is configured. Write one into the configuration file, then `open-conduit config apply`.";
    paging::print(context, &page, table, nothing)?;
    Ok(Exit::DONE)
}

fn shown(scope: &EffectiveScope, tree: &[ScopeLineBody]) -> ScopeBody {
    let line = tree.iter().find(|line| line.name == scope.name.as_str());
    ScopeBody {
        name: scope.name.to_string(),
        parent: scope.lineage.iter().rev().nth(1).map(ToString::to_string),
        disabled: scope.disabled,
        paused: line.and_then(|line| line.paused.clone()),
        concurrency: scope.settings.concurrency,
        timeout_seconds: scope.settings.timeout_seconds,
        routes: scope.routes.iter().map(|route| route.name.to_string()).collect(),
        bindings: scope.bindings.keys().map(ToString::to_string).collect(),
        entries: scope.extensions.keys().map(ToString::to_string).collect(),
    }
}

fn table(scopes: &[ScopeBody]) -> Table {
    let mut table = Table::new(&["scope", "parent", "at once", "timeout", "routes", "bindings", "entries"]);
    for scope in scopes {
        let name = match (scope.disabled, &scope.paused) {
            (true, _) => format!("{} (disabled)", scope.name),
            (false, Some(pause)) if pause.scope == scope.name => format!("{} (paused)", scope.name),
            (false, Some(pause)) => format!("{} (paused by {})", scope.name, pause.scope),
            (false, None) => scope.name.clone(),
        };
        table.row([
            name.into(),
            Word::from(scope.parent.as_deref().unwrap_or("")),
            scope.concurrency.to_string().into(),
            time::span(Duration::from_secs(u64::from(scope.timeout_seconds))).into(),
            scope.routes.join(", ").into(),
            scope.bindings.join(", ").into(),
            scope.entries.join(", ").into(),
        ]);
    }
    table
}
