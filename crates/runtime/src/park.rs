//! Parking: from a turn that ends in a Wait to a Work that waits.
//!
//! All of it is one transaction, the completing stage's: the Wait is registered, the attempt is parked or ends, its
//! lease is released, the timeout is armed, and what was accepted meanwhile is looked through. A turn that may not
//! wait for what it asked for has failed.

use domain::execution::Execution;
use domain::id::{Sequence, TimerId, WaitId};
use domain::outcome::{Outcome, TurnResult};
use domain::store::{EventFilter, StoreError, Tx};
use domain::succession;
use domain::timer::{Timer, TimerKind};
use domain::wait::{Registration, RegistrationFacts, Wait, WaitRefusal};
use domain::work::Work;

/// The code of a turn that failed because of what it asked to wait for.
pub const INVALID_WAIT: &str = "invalid_wait";

/// The Wait that a result registers; none when it does not wait.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn admit(
    tx: &mut dyn Tx,
    work: &Work,
    execution: &Execution,
    result: &TurnResult,
    (id, timer): (WaitId, TimerId),
) -> Result<Result<Option<Wait>, WaitRefusal>, StoreError> {
    match result.outcome {
        Outcome::Waiting => {}
        Outcome::Completed | Outcome::Handoff | Outcome::Failed => return Ok(Ok(None)),
    }
    let Some(registration) = result.wait.as_deref() else { return Ok(Err(WaitRefusal::Missing)) };
    let registration: &Registration = registration;
    let mut keys = tx.keys_of(work.id)?;
    if tx.succession_of(work.id)?.is_some() {
        // Events carry the plain keys of its line.
        keys.extend(succession::plain_keys(&keys));
    }
    // Sequences are given out for more than Events, so the newest Event is looked up.
    let newest = tx.events(&EventFilter::default(), 1)?;
    let facts = RegistrationFacts {
        id,
        timer,
        work: work.id,
        scope: work.scope.clone(),
        execution: execution.id,
        keys,
        consumed: tx.last_input_of(execution.id)?.unwrap_or(Sequence::ZERO),
        pending: tx.pending_inputs(work.id, 1)?.first().map(|input| input.sequence),
        last: newest.first().map_or(Sequence::ZERO, |event| event.sequence),
    };
    Ok(registration.admit(facts, tx.now()).map(Some))
}

/// What becomes of a result that asks for a Wait which is refused.
pub(crate) fn refused(result: &TurnResult, refusal: &WaitRefusal) -> TurnResult {
    TurnResult {
        outcome: Outcome::Failed,
        code: Some(INVALID_WAIT.to_owned()),
        summary: Some(refusal.to_string()),
        wait: None,
        ..result.clone()
    }
}

/// Writes a Wait and arms its timeout. True when there is one.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn register(tx: &mut dyn Tx, wait: &Wait) -> Result<bool, StoreError> {
    tx.insert_wait(wait)?;
    let Some(timeout) = wait.timeout else { return Ok(false) };
    tx.insert_timer(&Timer {
        id: timeout.timer,
        kind: TimerKind::Wait { wait: wait.id },
        scope: wait.scope.clone(),
        work: wait.work,
        armed_at: wait.registered_at,
        due_at: timeout.due_at,
    })?;
    Ok(true)
}
