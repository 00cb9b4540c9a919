//! `config check`: everything that is wrong with a file, without a daemon.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bundled::git::GitWorkspaces;
use bundled::shell::{ShellExecutor, ShellOptions};
use clap::Args;
use extension::{Executor, Handler, Ingress, Recurrence, WorkspaceProvider};
use serde::Serialize;

use crate::api::wire::ProblemItem;
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Stop};
use crate::config::{self, Format, Registered, outside};
use crate::daemon::extensions;
use crate::error_code::ErrorCode;
use crate::home::ConfigFile;
use crate::view::count;

/// Check the configuration file; no daemon is needed
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The file [default: conduit.toml or conduit.json in the home]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// What a check found when there is nothing wrong.
#[derive(Debug, Serialize)]
struct Checked {
    file: String,
    scopes: usize,
    bindings: usize,
    routes: usize,
    entries: usize,
    /// Routes and entries of extensions in processes of their own, which only `config apply` asks.
    unasked: usize,
}

pub(crate) fn check(args: &CheckArgs, context: &Context) -> Result<Exit, Stop> {
    let file = read(args.file.as_deref(), context)?;
    let bundled = Bundled::new(&file.path)?;
    let shown = file.path.display().to_string();
    let loaded = config::load(&file.text, file.format, &bundled).map_err(|problems| {
        let number = i64::try_from(problems.len()).unwrap_or(i64::MAX);
        let problems = problems.into_iter().map(item).collect();
        Failure::new(
            Exit::USAGE,
            ErrorCode::InvalidConfig,
            format!("{shown} has {}", count(number, "problem", "problems")),
        )
        .problems(problems)
    })?;
    let scopes = &loaded.model.scopes;
    let checked = Checked {
        file: shown,
        scopes: scopes.len(),
        bindings: scopes.iter().map(|scope| scope.bindings.len()).sum(),
        routes: scopes.iter().map(|scope| scope.routes.len()).sum(),
        entries: scopes.iter().map(|scope| scope.extensions.len()).sum(),
        unasked: outside::parts(&loaded.model),
    };
    if context.out.is_json() {
        context.out.object(&checked)?;
    } else {
        let number = |number: usize, one: &str, more: &str| {
            count(i64::try_from(number).unwrap_or(i64::MAX), one, more)
        };
        context.out.sentence(&format!(
            "{} is right: {}, {}, {}, {}.",
            checked.file,
            number(checked.scopes, "scope", "scopes"),
            number(checked.routes, "route", "routes"),
            number(checked.bindings, "binding", "bindings"),
            number(checked.entries, "entry", "entries"),
        ))?;
        if checked.unasked > 0 {
            context.out.sentence(&format!(
                "What stands under `config` of {} is for an extension in a process of its own; `open-conduit config \
                 apply` asks it.",
                number(checked.unasked, "route or entry", "routes and entries"),
            ))?;
        }
    }
    Ok(Exit::DONE)
}

/// Reads a configuration file: the one that is named, or the home's.
///
/// # Errors
/// [`Stop`] when there is none, or it cannot be read.
pub(crate) fn read(path: Option<&Path>, context: &Context) -> Result<ConfigFile, Stop> {
    let Some(path) = path else {
        let home = context.home()?;
        return home.config()?.ok_or_else(|| {
            let detail = format!("there is no conduit.toml or conduit.json in {}", home.root().display());
            let failure = Failure::new(Exit::NOT_FOUND, ErrorCode::NoConfigFile, detail);
            failure.hint("`open-conduit up` writes one to begin with, or name a file").into()
        });
    };
    let text = std::fs::read_to_string(path).map_err(|error| {
        let failure = Failure::new(
            Exit::NOT_FOUND,
            ErrorCode::NoConfigFile,
            format!("cannot read {}: {error}", path.display()),
        );
        failure.hint("name a file that is there, or none for the one in the home")
    })?;
    let is_json = path.extension().is_some_and(|extension| extension == "json");
    let format = if is_json { Format::Json } else { Format::Toml };
    Ok(ConfigFile { path: path.to_owned(), format, text })
}

/// A problem as an answer has it.
pub(crate) fn item(problem: config::Problem) -> ProblemItem {
    let config::Problem { path, line, code, message } = problem;
    ProblemItem { path, line, code: code.to_owned(), message }
}

/// The extensions in this binary, to ask whether their parts are right. Nothing is run by them.
struct Bundled {
    handlers: Vec<Arc<dyn Handler>>,
    executors: Vec<Arc<dyn Executor>>,
    ingresses: Vec<Arc<dyn Ingress>>,
    recurrences: Vec<Arc<dyn Recurrence>>,
    workspaces: Vec<Arc<dyn WorkspaceProvider>>,
}

impl Bundled {
    fn new(file: &Path) -> Result<Self, Stop> {
        // An executor wants a directory for its runs. This one will have none, so one that exists will do.
        let directory =
            file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let shell = ShellExecutor::new(
            directory,
            "/proc/self/exe".into(),
            ShellOptions { environment: Vec::new(), toolbelt: None },
        )
        .map_err(|error| {
            Failure::new(
                Exit::FAILED,
                ErrorCode::System,
                format!("cannot look at the shell executor: {error}"),
            )
        })?;
        Ok(Self {
            handlers: extensions::handlers(),
            executors: vec![Arc::new(shell)],
            ingresses: bundled::ingresses(),
            recurrences: extensions::recurrences(),
            // It makes nothing before a run asks for it.
            workspaces: vec![Arc::new(GitWorkspaces::new(directory, &[]))],
        })
    }
}

impl Registered for Bundled {
    fn handlers(&self) -> &[Arc<dyn Handler>] {
        &self.handlers
    }

    fn executors(&self) -> &[Arc<dyn Executor>] {
        &self.executors
    }

    fn ingresses(&self) -> &[Arc<dyn Ingress>] {
        &self.ingresses
    }

    fn recurrences(&self) -> &[Arc<dyn Recurrence>] {
        &self.recurrences
    }

    fn workspaces(&self) -> &[Arc<dyn WorkspaceProvider>] {
        &self.workspaces
    }
}
