//! What has to be done under the newest configuration, whichever process applied it.
//!
//! Where one process has the database alone, what is in force here is the newest. Elsewhere the transaction looks, and
//! begins again under what it found, so that a budget counts a turn wherever that ends.

use std::sync::Arc;

use domain::store::{Priority, StoreError, Tx};

use crate::budget::Proposed;
use crate::generation::{ActiveGeneration, Generations};
use crate::node::Runtime;

/// How often a transaction begins again. A generation that cannot be used here must not keep runs from ending, and
/// one that is applied every moment must not either.
const AGAIN_MAX: u32 = 3;

impl Runtime {
    /// Runs a body under the newest generation, with ids for what it may have to publish about `ledgers` times as many
    /// budgets as a turn can be under.
    ///
    /// # Errors
    /// Those of the body, and [`StoreError`].
    pub(crate) async fn under_newest<T, E>(
        &self,
        (priority, label): (Priority, &'static str),
        ledgers: usize,
        body: impl FnMut(&mut dyn Tx, &ActiveGeneration, &mut Proposed<'_>) -> Result<T, E>
        + Clone
        + Send
        + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let mut again = if self.store().exclusive() { 0 } else { AGAIN_MAX };
        loop {
            let active = self.generations().active();
            let crossings = self.propose_events(ledgers * active.crossings_max());
            let (looks, mut body, under) = (again > 0, body.clone(), Arc::clone(&active));
            let done = self.store().transact_at(priority, label, move |tx| {
                if looks && Generations::is_behind(tx, &under)? {
                    return Ok(None);
                }
                body(tx, &under, &mut Proposed::new(&crossings)).map(Some)
            });
            if let Some(done) = done.await? {
                return Ok(done);
            }
            again -= 1;
            self.follow_generation().await?;
        }
    }
}
