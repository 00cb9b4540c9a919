//! A job as the configuration file declares it, applied or not.

use std::path::Path;

use schedule::job::{ENTRY_TYPE, Entry, Job};
use serde_json::Value;

use crate::api::wire::ProblemItem;
use crate::cli::Context;
use crate::cli::config::check;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Stop};
use crate::config::model::{self, or_empty};
use crate::config::problem::suggestion;
use crate::config::{self, Problem};
use crate::error_code::ErrorCode;

/// What the file says of one job.
#[derive(Debug)]
pub(super) struct Declared {
    /// The job.
    pub(super) job: Job,
    /// Whether the scope's GitHub entries keep what may come from a fork from starting anything. Without such an
    /// entry nothing does.
    pub(super) ignores_forks: bool,
}

/// Finds a job by name, in one scope or in all.
///
/// # Errors
/// [`Stop`] when the file cannot be read, a `schedule` entry of it is not right, or there is not exactly one.
pub(super) fn find(
    name: &str,
    scope: Option<&str>,
    file: Option<&Path>,
    context: &Context,
) -> Result<Declared, Stop> {
    let file = check::read(file, context)?;
    let refuse = |problems: Vec<Problem>| {
        let detail = format!("{} is not right", file.path.display());
        let items: Vec<ProblemItem> = problems.into_iter().map(check::item).collect();
        Failure::new(Exit::USAGE, ErrorCode::InvalidConfig, detail).problems(items)
    };
    let (model, lines) = config::read(&file.text, file.format).map_err(&refuse)?;
    let mut problems = Vec::new();
    let mut found = Vec::new();
    let mut known = Vec::new();
    for (index, here) in model.scopes.iter().enumerate() {
        let path = format!("scopes[{index}]");
        let entries = entries(here, &path, &mut problems);
        if scope.is_some_and(|scope| scope != here.name) {
            continue;
        }
        for job in entries.into_iter().flat_map(|entry| entry.jobs) {
            known.push(job.name.to_string());
            if job.name.as_str() == name {
                found.push((here.name.clone(), Declared { job, ignores_forks: ignores_forks(here) }));
            }
        }
    }
    if !problems.is_empty() {
        return Err(refuse(lines.locate(problems)).into());
    }
    if found.len() > 1 {
        let mut failure =
            Failure::usage("several scopes or entries have a job of that name; name one with --scope");
        failure.problem.candidates = found.iter().map(|(scope, _declared)| scope.clone()).collect();
        return Err(failure.into());
    }
    let found = found.pop().map(|(_scope, declared)| declared);
    found.ok_or_else(|| {
        let near = suggestion(name, known.iter().map(String::as_str));
        let detail = format!("{} declares no job of that name{near}", file.path.display());
        Failure::new(Exit::NOT_FOUND, ErrorCode::NotFound, detail)
            .hint("jobs stand in an entry with `type = \"schedule\"`")
            .into()
    })
}

fn entries(scope: &model::Scope, path: &str, problems: &mut Vec<Problem>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (index, entry) in scope.extensions.iter().enumerate().filter(|(_index, entry)| !entry.disabled) {
        if entry.kind.as_deref() != Some(ENTRY_TYPE) {
            continue;
        }
        let Ok(name) = scope.name.parse() else { continue };
        match Entry::read(&or_empty(entry.config.as_ref()), &name, &entry.secret_names) {
            Ok(entry) => entries.push(entry),
            Err(found) => problems.extend(found.into_iter().map(|problem| {
                let path = format!("{path}.extensions[{index}].config.{}", problem.path);
                Problem::new(path, "extension_config", problem.message)
            })),
        }
    }
    entries
}

fn ignores_forks(scope: &model::Scope) -> bool {
    let of_github = |entry: &&model::Entry| !entry.disabled && entry.kind.as_deref() == Some("github");
    let accepts = |entry: &model::Entry| {
        let forks = entry.config.as_ref().and_then(|config| config.get("forks"));
        forks.and_then(Value::as_str) == Some("accept")
    };
    let mut entries = scope.extensions.iter().filter(of_github).peekable();
    entries.peek().is_some() && !entries.any(accepts)
}
