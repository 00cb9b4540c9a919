//! Reopening: which Work goes on with the keys of one that has ended, and what leads there.

use domain::delivery::AcceptRefusal;
use domain::event::{Event, Key};
use domain::id::{EventId, WorkId};
use domain::lane::LaneId;
use domain::store::{Snapshot, StoreError, Tx};
use domain::succession::{self, Succession};
use domain::work::Work;

use crate::announce::{self, Announced};
use crate::generation::ActiveGeneration;

/// The lanes of everything that leads to a Work: Events carry the plain keys of one that succeeds another.
pub(crate) fn lanes_of(tx: &mut dyn Snapshot, work: WorkId) -> Result<Vec<LaneId>, StoreError> {
    let keys = tx.keys_of(work)?;
    let mut lanes = vec![LaneId::of_work(work)];
    lanes.extend(keys.iter().map(LaneId::of_key));
    lanes.extend(succession::plain_keys(&keys).iter().map(LaneId::of_key));
    Ok(lanes)
}

/// Writes a successor and tells of it, unless the chain of the Event refuses that; then nothing is written but the
/// record of the refusal.
pub(super) fn succeed(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    (event, proposed): (&Event, EventId),
    work: &Work,
    place: &Succession,
) -> Result<Option<AcceptRefusal>, StoreError> {
    match announce::created(tx, active, proposed, work, (place, event))? {
        Announced::Refused(refusal) => Ok(Some(refusal)),
        Announced::Heard | Announced::Unheard => {
            tx.insert_work(work)?;
            tx.insert_succession(place)?;
            Ok(None)
        }
    }
}

/// A key as the newest generation of its line has it, with its owner. It is asked for only where a route reopens.
pub(super) fn newest_owner(tx: &mut dyn Snapshot, key: Key) -> Result<(Key, Option<WorkId>), StoreError> {
    let Some(owner) = tx.key_owner(&key)? else { return Ok((key, None)) };
    let Some(newest) = newest_after(tx, owner)? else { return Ok((key, Some(owner))) };
    match succession::qualified(&key, newest.generation) {
        Ok(qualified) => {
            let owner = tx.key_owner(&qualified)?;
            Ok((qualified, owner))
        }
        // A line whose keys became too long has ended.
        Err(_long) => Ok((key, Some(owner))),
    }
}

/// The newest Work of a line, when that is another one than `work` of the same line.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn newest_after(tx: &mut dyn Snapshot, work: WorkId) -> Result<Option<Succession>, StoreError> {
    let first = tx.succession_of(work)?.map_or(work, |place| place.first);
    Ok(tx.newest_of_line(first)?.filter(|newest| newest.work != work))
}
