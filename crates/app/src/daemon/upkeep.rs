//! What the daemon does by the clock: the change feed is cut, so that it stays as long as it is promised to be.

use std::sync::Arc;
use std::time::Duration;

use domain::feed::FEED_KEPT;
use domain::store::StoreError;
use domain::time::Timestamp;

use super::Daemon;
use crate::api::failure::Chain;

/// How often the feed is cut.
const EVERY: Duration = Duration::from_hours(1);
/// Rows that one transaction takes away.
const AT_ONCE: u32 = 1000;

/// Looks after the feed until the daemon stops.
pub(super) async fn run(daemon: Arc<Daemon>) {
    loop {
        if let Err(error) = cut(&daemon).await {
            tracing::warn!(error = %Chain(&error), "the change feed could not be cut");
        }
        if tokio::time::timeout(EVERY, daemon.stopping().cancelled()).await.is_ok() {
            return;
        }
    }
}

async fn cut(daemon: &Daemon) -> Result<(), StoreError> {
    let now = daemon.store().now();
    let kept = i64::try_from(FEED_KEPT.as_micros()).unwrap_or(i64::MAX);
    let before = Timestamp::from_micros(now.as_micros().saturating_sub(kept));
    while !daemon.stopping().is_cancelled() {
        let cut = daemon.store().transact("feed.cut", move |tx| tx.prune_feed(before, AT_ONCE)).await?;
        if cut < u64::from(AT_ONCE) {
            break;
        }
    }
    Ok(())
}
