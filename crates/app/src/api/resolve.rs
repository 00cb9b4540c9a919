//! Shortened ids: the beginning of one is enough while it means one thing.

use domain::id::{EventId, ExecutionId, IdError, SessionId, WorkId};
use domain::store::{Snapshot, StoreError};

use super::failure::Failure;
use super::server::Refused;
use crate::auth::session::READ_MAX;

/// Ids that are named when a shortened one means several.
const CANDIDATES: u32 = 10;

fn resolve<T: Copy + ToString>(
    what: &str,
    range: Result<(T, T), IdError>,
    find: impl FnOnce(T, T) -> Result<Vec<T>, StoreError>,
) -> Result<T, Refused> {
    let nothing = || {
        Failure::not_found(format!("no {what} has an id that begins like that; write it as a list shows it"))
    };
    // What cannot be the beginning of an id is the beginning of none.
    let (low, high) = range.map_err(|_source| nothing())?;
    let found = find(low, high)?;
    match found.as_slice() {
        [] => Err(nothing().into()),
        [one] => Ok(*one),
        several => Err(Failure::ambiguous(what, several.iter().map(ToString::to_string).collect()).into()),
    }
}

/// The Event that a text means.
///
/// # Errors
/// `not_found` and `ambiguous_id`.
pub(crate) fn event(tx: &mut dyn Snapshot, text: &str) -> Result<EventId, Refused> {
    resolve("Event", EventId::range(text), |low, high| tx.event_ids(low, high, CANDIDATES))
}

/// The Work that a text means.
///
/// # Errors
/// `not_found` and `ambiguous_id`.
pub(crate) fn work(tx: &mut dyn Snapshot, text: &str) -> Result<WorkId, Refused> {
    resolve("Work", WorkId::range(text), |low, high| tx.work_ids(low, high, CANDIDATES))
}

/// The run that a text means.
///
/// # Errors
/// `not_found` and `ambiguous_id`.
pub(crate) fn run(tx: &mut dyn Snapshot, text: &str) -> Result<ExecutionId, Refused> {
    resolve("run", ExecutionId::range(text), |low, high| tx.execution_ids(low, high, CANDIDATES))
}

/// The session that a text means.
///
/// # Errors
/// `not_found` and `ambiguous_id`.
pub(crate) fn session(tx: &mut dyn Snapshot, text: &str) -> Result<SessionId, Refused> {
    resolve("session", SessionId::range(text), |low, high| {
        let ids = tx.sessions(READ_MAX)?.into_iter().map(|session| session.id);
        Ok(ids.filter(|id| (low..=high).contains(id)).take(CANDIDATES as usize).collect())
    })
}
