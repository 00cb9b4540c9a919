//! Recording what was started, before it may begin.

use std::sync::Arc;

use domain::execution::Handle;
use domain::id::ExecutionId;
use domain::lease::{Fenced, Grant};
use domain::store::{Priority, StoreError};
use domain::toolbelt::TokenDigest;
use domain::workspace::Workspace;
use extension::{AttemptHost, BoxFuture, PinError};
use thiserror::Error;

use crate::node::Runtime;

/// The runtime, as one attempt's executor sees it.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) runtime: Runtime,
    pub(crate) execution: ExecutionId,
    pub(crate) grant: Grant,
    /// Where the attempt works, where its binding asks for a workspace.
    pub(crate) workspace: Option<Arc<Workspace>>,
    /// What is kept of the token that the attempt was given for this epoch.
    pub(crate) digest: Option<TokenDigest>,
}

/// A write under a grant did not happen.
#[derive(Debug, Error)]
pub(crate) enum GrantError {
    /// The grant has no authority.
    #[error(transparent)]
    Fenced(#[from] Fenced),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AttemptHost for Host {
    fn pin(&self, handle: Vec<u8>) -> BoxFuture<'_, Result<(), PinError>> {
        Box::pin(async move {
            let handle = Handle::new(handle).ok_or(PinError::TooLarge)?;
            let (id, grant, digest) = (self.execution, self.grant, self.digest);
            let workspace = self.workspace.clone();
            let pinned = self
                .runtime
                .store()
                .transact_at(Priority::High, "pin", move |tx| {
                    let read = tx.execution(id)?.ok_or(Fenced::Ended)?;
                    let next = read.clone().pin(grant, handle.clone(), tx.now())?.equip(digest);
                    let next = next.placed(workspace.clone());
                    Ok::<_, GrantError>(tx.update_execution(&next, &read)?)
                })
                .await;
            self.runtime.hints().committed();
            match pinned {
                Ok(()) => Ok(()),
                Err(GrantError::Fenced(_)) => Err(PinError::Fenced),
                Err(GrantError::Store(error)) => Err(PinError::Store(error.to_string())),
            }
        })
    }
}
