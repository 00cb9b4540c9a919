//! Following what other daemons on the same database did: the configuration they applied, and the tokens and
//! sessions they made or revoked.

use std::sync::Arc;

use runtime::ApplyError;

use super::Daemon;
use super::start::LOOK_AGAIN;
use crate::api::failure::Chain;

/// Looks until the daemon stops.
pub(super) async fn run(daemon: Arc<Daemon>) {
    while tokio::time::timeout(LOOK_AGAIN, daemon.stopping().cancelled()).await.is_err() {
        if let Err(error) = look(&daemon).await {
            tracing::warn!(error = %Chain(&error), "what other daemons did could not be looked at");
        }
    }
}

/// Takes up what changed. The runtime has the newest generation in force before this daemon says so.
async fn look(daemon: &Daemon) -> Result<(), ApplyError> {
    daemon.tokens().load(daemon.store()).await?;
    daemon.sessions().load(daemon.store()).await?;
    let newest = daemon.store().read("config", |tx| tx.current_generation_number()).await?;
    if newest.is_some_and(|newest| newest.number() != daemon.applied().number) {
        let _one_at_a_time = daemon.applying.lock().await;
        // The runtime takes the newest one up once the handlers that it names are there.
        daemon.declare().await?;
    }
    if daemon.runtime().generations().active().number.number() != daemon.applied().number {
        let _one_at_a_time = daemon.applying.lock().await;
        daemon.remember().await?;
    }
    Ok(())
}
