//! Reads: bodies on snapshots, run by whichever thread has a connection for them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use domain::store::{ReadBody, StoreError};
use domain::time::Timestamp;
use tokio::sync::oneshot;

use crate::db::Db;
use crate::engine::Reader;
use crate::message;
use crate::tx::{Handle, Place, Transaction};

/// A read on its way to a connection.
pub(crate) struct ReadRequest {
    pub(crate) label: &'static str,
    pub(crate) body: ReadBody,
    pub(crate) answer: oneshot::Sender<Result<(), StoreError>>,
}

/// Runs a body on a snapshot that is open.
fn run(
    label: &'static str,
    body: ReadBody,
    db: &mut dyn Db,
    host: i64,
    now: Timestamp,
) -> Result<(), StoreError> {
    let mut tx = Transaction::new(Handle::new(db, None), Place::of_read(host, now));
    match catch_unwind(AssertUnwindSafe(|| body(&mut tx))) {
        Ok(()) => tx.db.error().cloned().map_or(Ok(()), Err),
        Err(panic) => Err(StoreError::Panicked { label, message: message(&*panic) }),
    }
}

impl ReadRequest {
    /// Runs the read on a connection that sees what is committed and nothing else.
    pub(crate) fn run_on(self, db: &mut dyn Db, host: i64, now: Timestamp) {
        let result = run(self.label, self.body, db, host, now);
        // Nobody listens when the caller went away.
        self.answer.send(result).ok();
    }

    /// Runs the read in a snapshot of its own.
    pub(crate) fn run_in(self, reader: &mut impl Reader, host: i64, now: impl FnOnce() -> Timestamp) {
        let result = match reader.begin() {
            Ok(db) => run(self.label, self.body, db, host, now()),
            Err(error) => Err(error),
        };
        let ended = reader.end();
        self.answer.send(result.and(ended)).ok();
    }
}
