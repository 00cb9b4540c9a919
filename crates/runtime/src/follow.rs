//! Following what other processes commit to the same database: what no hint of this process tells.

use std::time::Duration;

use domain::id::Generation;
use domain::store::StoreError;
use tokio_util::sync::CancellationToken;

use crate::node::Runtime;
use crate::own::jittered;
use crate::stage::{self, Chain};

/// Looks every so often until the end: for a configuration that was applied elsewhere, and on behalf of
/// everyone who follows the change feed.
pub(crate) async fn run(runtime: Runtime, every: Duration, end: CancellationToken) {
    loop {
        tokio::select! {
            biased;
            () = end.cancelled() => return,
            () = stage::pause(jittered(every)) => {}
        }
        if let Err(error) = runtime.follow_generation().await {
            tracing::warn!(error = %Chain(&error), "the configuration in force could not be looked at");
        }
        runtime.hints().committed();
    }
}

impl Runtime {
    /// Puts the newest stored generation in force, if another process has applied one since.
    ///
    /// # Errors
    /// [`StoreError`] when the store fails. A generation that cannot be used here is logged, and the one in
    /// force stays.
    pub async fn follow_generation(&self) -> Result<(), StoreError> {
        let newest = self.store().read("config", |tx| tx.current_generation_number()).await?;
        if newest.unwrap_or(Generation::from_number(0)) != self.generations().active().number {
            match self.generations().load(self.store()).await {
                // Whoever applied it may have died before it looked again at what waits.
                Ok(()) => self.reconsider().await?,
                Err(error) => {
                    tracing::warn!(error = %Chain(&error), "the newest generation cannot be used");
                }
            }
        }
        Ok(())
    }
}
