//! Usage limits of credentials: what a run says about its account holds every start by it until the reset.
//!
//! *Reads* the hold of a credential where a binding names one, and nowhere else. *Decides* in `domain::credential`.
//! *Writes* the hold with the result that says so; a start that meets it moves its Work to that credential's list.
//! *Afterwards*, when the hold is over, the waking stage brings those on the list back, a few at a time, and forgets
//! the hold with the last of them.

use domain::capacity::Blocker;
use domain::credential::{self, CredentialHold, CredentialWait, UsageLimit};
use domain::execution::Execution;
use domain::ownership::Tenure;
use domain::store::{StoreError, Tx};
use domain::text::CredentialName;
use domain::work::Work;

use crate::node::Runtime;
use crate::stage::{self, BATCH, Chain};

/// Notes that an attempt has met the usage limit of its account. False where its binding named none.
///
/// # Errors
/// [`StoreError`] undoes the end of the turn with it.
pub(crate) fn met(tx: &mut dyn Tx, execution: &Execution, limit: UsageLimit) -> Result<bool, StoreError> {
    let Some(name) = &execution.credential else { return Ok(false) };
    let before = tx.credential_hold(name)?;
    let now = tx.now();
    tx.put_credential_hold(&credential::limited(before.as_ref(), name, limit, (execution.id, now)))?;
    Ok(true)
}

/// The list of whoever may not start by a credential now; none where it may be used.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn blocker(tx: &mut dyn Tx, name: Option<&CredentialName>) -> Result<Option<Blocker>, StoreError> {
    let Some(name) = name else { return Ok(None) };
    let now = tx.now();
    let live = tx.credential_hold(name)?.is_some_and(|hold| hold.is_live(now));
    Ok(live.then(|| Blocker::Credential(name.clone())))
}

/// Notes which start of a Work waits for a credential, so that it can be told afterwards.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn waits(
    tx: &mut dyn Tx,
    work: &Work,
    parked: Option<&Execution>,
    blocker: &Blocker,
) -> Result<(), StoreError> {
    let Blocker::Credential(credential) = blocker else { return Ok(()) };
    let (attempt, turn) =
        parked.map_or((work.attempts + 1, 1), |run| (run.attempt.number(), run.turn.number + 1));
    let (credential, since) = (credential.clone(), tx.now());
    tx.put_credential_wait(&CredentialWait { work: work.id, attempt, turn, credential, since, until: None })
}

/// Brings those back who waited for credentials that are free again. True when somebody came, or a hold is forgotten.
///
/// # Errors
/// [`StoreError`]; what was done stays done.
pub(crate) async fn free(
    runtime: &Runtime,
    tenure: Tenure,
    due: Vec<CredentialHold>,
) -> Result<bool, StoreError> {
    let mut moved = false;
    for hold in due {
        let name = hold.credential.clone();
        match runtime.transact_owned("credential", tenure, move |tx| free_one(tx, &hold)).await {
            Ok(changed) => moved |= changed,
            Err(error) if stage::is_of_an_item(&error) => {
                tracing::error!(credential = %name, error = %Chain(&error), "a credential cannot be let go");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(moved)
}

fn free_one(tx: &mut dyn Tx, due: &CredentialHold) -> Result<bool, StoreError> {
    let now = tx.now();
    // It may have met another limit since it was read.
    let Some(hold) = tx.credential_hold(&due.credential)?.filter(|hold| !hold.is_live(now)) else {
        return Ok(false);
    };
    let waiting = tx.blocked(&Blocker::Credential(hold.credential.clone()), BATCH)?;
    for id in &waiting {
        if let Some(work) = tx.work(*id)? {
            let next = work.clone().unblock();
            if next != work {
                tx.update_work(&next, &work)?;
                tx.end_credential_wait(&work, &hold.credential, now)?;
            }
        }
    }
    if waiting.len() < BATCH as usize {
        tx.delete_credential_hold(&hold.credential)?;
    }
    Ok(true)
}
