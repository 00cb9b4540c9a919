//! Pausing and resuming scopes.
//!
//! *Reads* whether the scope is there. *Decides* by `domain::pause`, which the scheduling stage asks at every start.
//! *Writes* or takes back the pause. *Afterwards* a pause needs nothing: the scheduler moves what is runnable to the
//! list of the scope, as it meets it. A resume brings back what stands on such a list, and what it did not get to
//! before a crash comes back with the next start of the daemon, as after an apply.

use std::collections::BTreeSet;

use domain::capacity::Blocker;
use domain::pause::{Pause, paused_by};
use domain::store::{Snapshot, StoreError};
use domain::text::ScopeName;
use thiserror::Error;

use crate::node::Runtime;

/// Why a scope was not paused or resumed. Nothing has changed.
#[derive(Debug, Error)]
pub enum PauseError {
    /// No scope is called that.
    #[error("no scope is called `{0}`; `open-conduit scope list` lists them")]
    UnknownScope(ScopeName),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What pausing a scope came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paused {
    /// The pause that stands.
    pub pause: Pause,
    /// Whether it is new; else an earlier one stood already.
    pub changed: bool,
}

/// What resuming a scope came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resumed {
    /// Whether it was paused.
    pub changed: bool,
    /// The scope above it that still pauses it.
    pub still_paused_by: Option<ScopeName>,
}

/// The scopes that are paused themselves.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn scopes(tx: &mut dyn Snapshot) -> Result<BTreeSet<ScopeName>, StoreError> {
    Ok(tx.pauses()?.into_iter().map(|pause| pause.scope).collect())
}

impl Runtime {
    /// Lets a scope, and everything below it, start nothing more. When this answers well, nothing of it starts.
    ///
    /// # Errors
    /// [`PauseError`]; then nothing has changed.
    pub async fn pause_scope(&self, scope: ScopeName) -> Result<Paused, PauseError> {
        if self.generations().active().scope(&scope).is_none() {
            return Err(PauseError::UnknownScope(scope));
        }
        let paused = self
            .store()
            .transact("scope_pause", move |tx| {
                let pause = Pause { scope: scope.clone(), since: tx.now() };
                let changed = tx.insert_pause(&pause)?;
                let standing = tx.pauses()?.into_iter().find(|standing| standing.scope == scope);
                Ok::<_, StoreError>(Paused { pause: standing.unwrap_or(pause), changed })
            })
            .await?;
        self.hints().committed();
        Ok(paused)
    }

    /// Takes a pause back and brings back what waited for that. A scope that left the configuration can be resumed,
    /// too.
    ///
    /// # Errors
    /// [`PauseError`]; then the scope stays paused, unless only the bringing back failed, which the next start does.
    pub async fn resume_scope(&self, scope: ScopeName) -> Result<Resumed, PauseError> {
        let is_known = self.generations().active().scope(&scope).is_some();
        let asked = scope.clone();
        let changed = self.store().transact("scope_resume", move |tx| tx.delete_pause(&asked)).await?;
        if !changed && !is_known {
            return Err(PauseError::UnknownScope(scope));
        }
        let read = |tx: &mut dyn Snapshot| Ok::<_, StoreError>((tx.blockers(u32::MAX)?, scopes(tx)?));
        let (blockers, paused) = self.store().read("scope_resume", read).await?;
        for (blocker, count) in blockers {
            if let Blocker::ScopePaused(waiting) = &blocker
                && !self.is_paused(waiting, &paused)
            {
                self.bring_back(&blocker, count).await?;
            }
        }
        self.hints().schedule.notify_one();
        self.hints().committed();
        let active = self.generations().active();
        let lineage = active.scope(&scope).map(|active| &active.scope.lineage);
        let still_paused_by = lineage.and_then(|lineage| paused_by(lineage, &paused)).cloned();
        Ok(Resumed { changed, still_paused_by })
    }

    /// Whether a scope is paused, by itself or from above. One that is not configured has nothing above it.
    pub(crate) fn is_paused(&self, scope: &ScopeName, paused: &BTreeSet<ScopeName>) -> bool {
        let active = self.generations().active();
        match active.scope(scope) {
            Some(active) => paused_by(&active.scope.lineage, paused).is_some(),
            None => paused.contains(scope),
        }
    }
}
