//! What waits for a person: what nothing else will move, and what went wrong in a way only a person can judge.

use std::sync::Arc;
use std::time::Duration;

use domain::capacity::Blocker;
use domain::credential::CredentialHold;
use domain::id::ExecutionId;
use domain::lane::LaneBlock;
use domain::retry::Eligibility;
use domain::route::Checkpoint;
use domain::store::{Snapshot, StoreError};
use domain::time::Timestamp;
use domain::work::{HoldReason, Work};

use super::failure::Failure;
use super::server::{Answer, json, read};
use super::wire::{ExhaustedBody, HeldBody, KeyBody, LeftBody, NeedsBody, QuarantinedBody, StuckBody};
use crate::daemon::Daemon;

/// How long a quarantined Event is told about.
const TOLD_FOR: Duration = Duration::from_hours(7 * 24);
/// Rows that are counted of each kind.
const COUNTED_MAX: u32 = 100;
/// Works that are counted for one reason.
const WORKS_MAX: u32 = 1000;
/// Rows that are named of each kind.
const NAMED_MAX: usize = 5;

/// Shows what waits for a person.
pub(crate) async fn show(daemon: &Arc<Daemon>) -> Answer {
    Ok(json(&find(daemon).await?))
}

/// What waits for a person.
///
/// # Errors
/// What reading the store answers.
pub(crate) async fn find(daemon: &Daemon) -> Result<NeedsBody, Failure> {
    read(daemon, "needs", |tx| Ok(needs(tx)?)).await
}

fn needs(tx: &mut dyn Snapshot) -> Result<NeedsBody, StoreError> {
    let mut body = NeedsBody { held: held(tx)?, ..NeedsBody::default() };
    let exhausted = tx.exhausted(COUNTED_MAX)?;
    body.exhausted_count = exhausted.len();
    for work in exhausted.iter().take(NAMED_MAX) {
        body.exhausted.push(failed_too_often(tx, work)?);
    }
    let lanes: Vec<LaneBlock> = tx.lane_blocks(COUNTED_MAX)?.into_iter().filter(stands_still).collect();
    body.lanes_count = lanes.len();
    for block in lanes.iter().take(NAMED_MAX) {
        if let Some(event) = tx.event(block.event)? {
            body.lanes.push(StuckBody::new(block, &event));
        }
    }
    let told_for = i64::try_from(TOLD_FOR.as_micros()).unwrap_or(i64::MAX);
    let since = Timestamp::from_micros(tx.now().as_micros().saturating_sub(told_for));
    let quarantined = tx.quarantined(since, COUNTED_MAX)?;
    body.quarantined_count = quarantined.len();
    for checkpoint in quarantined.iter().take(NAMED_MAX) {
        body.quarantined.push(set_aside(tx, checkpoint)?);
    }
    let unstopped = tx.unstopped(None, COUNTED_MAX)?;
    body.unstopped_count = unstopped.len();
    for run in unstopped.iter().take(NAMED_MAX) {
        body.unstopped.extend(left(tx, run.id, None, run.ended_at)?);
    }
    let now = tx.now();
    let stranded = tx.stranded(now, COUNTED_MAX)?;
    body.stranded_count = stranded.len();
    for run in stranded.into_iter().take(NAMED_MAX) {
        body.stranded.extend(left(tx, run.execution, Some(run.host), Some(run.since))?);
    }
    Ok(body)
}

fn failed_too_often(tx: &mut dyn Snapshot, work: &Work) -> Result<ExhaustedBody, StoreError> {
    Ok(ExhaustedBody {
        work: work.id.to_string(),
        keys: tx.keys_of(work.id)?.iter().map(KeyBody::from).collect(),
        failures: work.failures,
        run: work.eligibility.failed().map(|run| run.to_string()),
        because: match work.eligibility {
            Eligibility::Exhausted { because, .. } => because.as_str().to_owned(),
            Eligibility::Clear
            | Eligibility::Backoff { .. }
            | Eligibility::Due { .. }
            | Eligibility::Woken { .. }
            | Eligibility::Stopping { .. } => String::new(),
        },
        since: work.queued_at.to_string(),
    })
}

/// Works that wait for something other than room.
fn held(tx: &mut dyn Snapshot) -> Result<Vec<HeldBody>, StoreError> {
    let mut held = Vec::new();
    for (blocker, works) in tx.blockers(WORKS_MAX)? {
        let detail = match &blocker {
            // Room appears by itself, a wait ends by itself, and who failed too often, is held, or has yet to stop, is
            // told about apart.
            Blocker::ScopeFull(_)
            | Blocker::Concurrency(..)
            | Blocker::Asked(_)
            | Blocker::Reserved(_)
            | Blocker::ReservedOverall
            | Blocker::Backoff(_)
            | Blocker::Exhausted(_)
            | Blocker::Held(_)
            | Blocker::Stopping(_) => continue,
            Blocker::ScopeDisabled(_) | Blocker::ScopePaused(_) | Blocker::Unconfigured(_) => None,
            Blocker::Credential(name) => tx.credential_hold(name)?.map(|hold| used_up(&hold)),
        };
        let Some(first) = tx.blocked(&blocker, 1)?.first().copied() else { continue };
        let Some(work) = tx.work(first)? else { continue };
        held.push(HeldBody {
            reason: blocker.to_string(),
            because: None,
            detail,
            works,
            work: first.to_string(),
            keys: tx.keys_of(first)?.iter().map(KeyBody::from).collect(),
            since: work.queued_at.to_string(),
        });
    }
    let all = tx.held(WORKS_MAX)?;
    for because in HoldReason::ALL {
        let of_reason = all.iter().filter_map(|work| {
            work.hold.as_ref().filter(|hold| hold.because == because).map(|hold| (work, hold))
        });
        let (mut first, mut works) = (None, 0);
        for one in of_reason {
            first.get_or_insert(one);
            works += 1;
        }
        let Some((work, hold)) = first else { continue };
        held.push(HeldBody {
            reason: Blocker::Held(work.scope.clone()).to_string(),
            because: Some(because.as_str().to_owned()),
            detail: Some(hold.reason.clone()),
            works,
            work: work.id.to_string(),
            keys: tx.keys_of(work.id)?.iter().map(KeyBody::from).collect(),
            since: hold.since.to_string(),
        });
    }
    Ok(held)
}

/// Until when nothing starts by a credential, and who said so.
pub(super) fn used_up(hold: &CredentialHold) -> String {
    let CredentialHold { credential, until, reported_by, since: _ } = hold;
    format!("credential {credential} has met its usage limit, as {reported_by} said, until {until}")
}

/// Whether a lane's Event is at fault or its scope takes none. One that only waits for an earlier Event, or for
/// an answer that is on its way, goes on by itself.
fn stands_still(block: &LaneBlock) -> bool {
    !matches!(block.code.as_str(), "behind_earlier" | "asking" | "draining")
}

fn set_aside(tx: &mut dyn Snapshot, checkpoint: &Checkpoint) -> Result<QuarantinedBody, StoreError> {
    let event = tx.event(checkpoint.event)?;
    Ok(QuarantinedBody {
        event: checkpoint.event.to_string(),
        event_type: event.map(|event| event.event_type.to_string()).unwrap_or_default(),
        route: checkpoint.route.as_ref().map(ToString::to_string),
        code: checkpoint.code.as_ref().map(ToString::to_string),
        reason: checkpoint.reason.clone(),
        since: checkpoint.at.to_string(),
    })
}

fn left(
    tx: &mut dyn Snapshot,
    run: ExecutionId,
    host: Option<String>,
    since: Option<Timestamp>,
) -> Result<Option<LeftBody>, StoreError> {
    let Some(execution) = tx.execution(run)? else { return Ok(None) };
    Ok(Some(LeftBody {
        run: run.to_string(),
        work: execution.work.to_string(),
        keys: tx.keys_of(execution.work)?.iter().map(KeyBody::from).collect(),
        host,
        since: since.unwrap_or(execution.claimed_at).to_string(),
    }))
}
