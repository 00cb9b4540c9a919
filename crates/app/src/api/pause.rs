//! Pausing and resuming scopes, and what is told of a pause beside the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::pause::Pause;
use domain::text::ScopeName;
use runtime::PauseError;

use super::failure::Failure;
use super::server::{Answer, Asked, json, read};
use super::wire::{PauseBody, PausedBody, ScopeLineBody};
use crate::daemon::Daemon;
use crate::error_code::ErrorCode;

/// Lets a scope start nothing more.
pub(crate) async fn pause(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    Ok(json(&stop_starts(daemon, asked.id()).await?))
}

/// Lets a scope start again.
pub(crate) async fn resume(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    Ok(json(&let_start(daemon, asked.id()).await?))
}

/// Pauses a scope. One that is paused stays as it is.
///
/// # Errors
/// `unknown_scope`, and what writing to the store answers.
pub(crate) async fn stop_starts(daemon: &Daemon, name: &str) -> Result<PausedBody, Failure> {
    let paused = daemon.runtime().pause_scope(name.parse()?).await?;
    if paused.changed {
        tracing::info!(scope = %paused.pause.scope, "an operator paused a scope");
    }
    Ok(PausedBody {
        scope: paused.pause.scope.to_string(),
        paused_by: Some(paused.pause.scope.to_string()),
        since: Some(paused.pause.since.to_string()),
        changed: paused.changed,
    })
}

/// Takes the pause of a scope back. One that is not paused stays as it is.
///
/// # Errors
/// `unknown_scope`, and what writing to the store answers.
pub(crate) async fn let_start(daemon: &Daemon, name: &str) -> Result<PausedBody, Failure> {
    let scope: ScopeName = name.parse()?;
    let resumed = daemon.runtime().resume_scope(scope.clone()).await?;
    if resumed.changed {
        tracing::info!(%scope, "an operator resumed a scope");
    }
    Ok(PausedBody {
        scope: scope.to_string(),
        paused_by: resumed.still_paused_by.map(|above| above.to_string()),
        since: None,
        changed: resumed.changed,
    })
}

/// Every pause that stands, by the name of its scope.
///
/// # Errors
/// What reading the store answers.
pub(crate) async fn standing(daemon: &Daemon) -> Result<Pauses, Failure> {
    let pauses = read(daemon, "pauses", |tx| Ok(tx.pauses()?)).await?;
    Ok(Pauses(pauses.into_iter().map(|pause| (pause.scope.to_string(), pause)).collect()))
}

/// The pauses that stand.
#[derive(Debug)]
pub(crate) struct Pauses(BTreeMap<String, Pause>);

impl Pauses {
    /// What pauses a scope, by the names of its lineage, root first.
    pub(crate) fn of<'a>(&self, mut lineage: impl Iterator<Item = &'a str>) -> Option<PauseBody> {
        lineage.find_map(|name| self.0.get(name)).map(PauseBody::from)
    }

    /// Says of each scope of a tree what pauses it.
    pub(crate) fn mark(&self, tree: &mut [ScopeLineBody]) {
        let mut above: Vec<Option<PauseBody>> = Vec::new();
        for line in tree {
            above.truncate(line.depth);
            let inherited = above.last().cloned().flatten();
            line.paused = inherited.or_else(|| self.of(std::iter::once(line.name.as_str())));
            above.push(line.paused.clone());
        }
    }
}

impl From<PauseError> for Failure {
    fn from(error: PauseError) -> Self {
        match error {
            PauseError::Store(store) => Self::from(store),
            PauseError::UnknownScope(_) => Self::new(ErrorCode::UnknownScope, error.to_string()),
        }
    }
}
