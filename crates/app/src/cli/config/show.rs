//! `config show`.

use clap::Args;

use crate::api::wire::{ConfigBody, Page, ScopeBody};
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::cli::output::Table;
use crate::client::Route;
use crate::view::config::{Part, ScopeWords, SettingRow};
use crate::view::time;

type Columns = &'static [&'static str];

const SETTINGS: Columns = &["setting", "value", "where from", "note"];
const CEILINGS: Columns = &["ceiling", "value", "where from", "note"];

/// Show the configuration in force; secrets are references
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {}

pub(crate) async fn show(_args: &ShowArgs, context: &Context) -> Result<Exit, Stop> {
    let client = context.client()?;
    let body: ConfigBody = client.get(&Route::new(&["config"])).await?;
    let out = &context.out;
    if out.is_json() {
        out.object(&body)?;
        return Ok(Exit::DONE);
    }
    if body.config.is_none() {
        out.sentence("No configuration is in force. `open-conduit config apply` puts the file in force.")?;
        return Ok(Exit::DONE);
    }
    out.note(&format!(
        "Generation {}, applied at {}.",
        body.generation,
        body.applied_at.as_deref().map_or_else(|| "?".to_owned(), time::absolute)
    ));
    if body.edited {
        out.note("The file says something else. `open-conduit config plan` shows what.");
    }
    let mut cursor = None;
    let mut is_first = true;
    loop {
        let route = Route::new(&["scopes"]).with_some("cursor", cursor.as_deref());
        let page: Page<ScopeBody> = client.get(&route).await?;
        for scope in &page.items {
            if !is_first {
                out.line("")?;
            }
            is_first = false;
            print(&ScopeWords::new(scope), context)?;
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok(Exit::DONE);
        }
    }
}

/// Prints a scope in words.
///
/// # Errors
/// What writing to the terminal answers.
pub(crate) fn print(scope: &ScopeWords, context: &Context) -> Result<(), Stop> {
    let out = &context.out;
    out.heading(&format!("Scope {}", scope.name))?;
    out.sentence(&scope.place)?;
    if let Some(disabled) = &scope.disabled {
        out.sentence(disabled)?;
    }
    if let Some(paused) = &scope.paused {
        out.sentence(paused)?;
    }
    print_parts("route", &scope.routes, context)?;
    print_parts("binding", &scope.bindings, context)?;
    print_parts("entry", &scope.entries, context)?;
    if !scope.secrets.is_empty() {
        let name = |secret: &Part| match &secret.inherited {
            Some(from) => format!("{} (from {from})", secret.name),
            None => secret.name.clone(),
        };
        let names: Vec<String> = scope.secrets.iter().map(name).collect();
        out.line(format!("  secrets: {}", names.join(", ")))?;
    }
    if !scope.read_scopes.is_empty() {
        out.line(format!("  reads: {}", scope.read_scopes.join(", ")))?;
    }
    if !scope.write_scopes.is_empty() {
        out.line(format!("  creates Works in: {}", scope.write_scopes.join(", ")))?;
    }
    for (name, standing) in &scope.budgets {
        out.line(format!("  budget {name}: {standing}"))?;
    }
    for removed in &scope.removed {
        out.line(format!("  {removed}"))?;
    }
    out.line("")?;
    print_settings(SETTINGS, &scope.settings, context)?;
    if !scope.ceilings.is_empty() {
        out.line("")?;
        print_settings(CEILINGS, &scope.ceilings, context)?;
    }
    Ok(())
}

fn print_parts(noun: &str, parts: &[Part], context: &Context) -> Result<(), Stop> {
    for part in parts {
        let from = part.inherited.as_ref().map(|from| format!(", from {from}")).unwrap_or_default();
        context.out.line(format!("  {noun} {}{from}", part.name))?;
        part.sentences.iter().try_for_each(|sentence| context.out.line(format!("    {sentence}")))?;
    }
    Ok(())
}

fn print_settings(columns: Columns, rows: &[SettingRow], context: &Context) -> Result<(), Stop> {
    let mut table = Table::new(columns);
    for row in rows {
        table.row([
            row.name.as_str().into(),
            row.value.as_str().into(),
            row.origin.as_str().into(),
            row.note.into(),
        ]);
    }
    context.out.table(&table)
}
