//! Starts of the daemon: since when none was there, and what became of the runs that the ones before had left.

use std::sync::Arc;

use domain::id::Incarnation;
use domain::store::{Snapshot, StartFilter, StoreError};

use super::failure::Failure;
use super::query::{self, Cursor, Query};
use super::server::{Answer, Asked, json, read};
use super::wire::{Page, StartBody};
use crate::daemon::Daemon;

/// Lists starts, newest first.
pub(crate) async fn list(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    Ok(json(&find(daemon, &asked.query).await?))
}

/// The starts that a query asks for, newest first, of every host on the database.
///
/// # Errors
/// `bad_request` when the query cannot be read, and what reading the store answers.
pub(crate) async fn find(daemon: &Daemon, query: &Query) -> Result<Page<StartBody>, Failure> {
    let limit = query.limit()?;
    let before = query.cursor(Cursor::Starts)?.map(Incarnation::from_number);
    read(daemon, "starts", move |tx| {
        let mut rows = tx.starts(&StartFilter { here: false, before }, limit + 1)?;
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let next = rows.last().filter(|_last| more);
        let next = next.map(|row| query::cursor(Cursor::Starts, row.incarnation.number()));
        Ok(Page { items: rows.iter().map(StartBody::from).collect(), next })
    })
    .await
}

/// The start of the daemon that runs here; none when there was no other before it.
pub(super) fn newest(tx: &mut dyn Snapshot) -> Result<Option<StartBody>, StoreError> {
    let rows = tx.starts(&StartFilter { here: true, before: None }, 1)?;
    Ok(rows.first().filter(|row| row.before.is_some()).map(StartBody::from))
}
