//! An Event that no route matched and that a Work waits for; and what stood behind one that did nothing for it.

use domain::route::CheckpointOutcome;
use domain::store::{StoreError, Tx};
use domain::text::Code;
use domain::wait::Wait;

use super::apply::{Applied, Item, behind_earlier, checkpoint, earlier, off};
use crate::generation::ActiveGeneration;
use crate::route::Candidate;
use crate::wake::fact;

/// Routes an Event that no route matched to the Work that waits for it.
pub(super) fn route(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    item: &Item,
    wait: &Wait,
    applied: &mut Applied,
) -> Result<(), StoreError> {
    let candidate = &item.candidate;
    if let Some(first) = earlier(tx, candidate, Some(wait.work))? {
        return behind_earlier(tx, item, first, applied);
    }
    let generation = applied.generation.expect("it was read at the start");
    let mut checkpoint = checkpoint(tx, &candidate.event, CheckpointOutcome::Routed, generation);
    checkpoint.work = Some(wait.work);
    checkpoint.code = Some(Code::known(fact::WAITED_FOR));
    checkpoint.reason = Some(fact::waited_for_in_words());
    off(tx, candidate, &checkpoint, applied)?;
    fact::routed(tx, active, wait.id, &candidate.event, candidate.woken)?;
    applied.queued = true;
    Ok(())
}

/// Looks for what ends the Wait of the owner of an Event's key, when the Event has just left routing without doing so.
pub(super) fn look_behind(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    candidate: &Candidate,
    applied: &mut Applied,
) -> Result<(), StoreError> {
    if applied.take_passed_over() && applied.somebody_waits(tx)? {
        let woken = fact::passed_over(tx, active, &candidate.event, candidate.woken)?;
        applied.queued |= woken.ready;
    }
    Ok(())
}
