//! Why a run started, and what did not start one: read from the rows, bounded, nothing inferred.

use domain::credential::CredentialWait;
use domain::delivery::Redelivery;
use domain::event::{Event, Key};
use domain::execution::Execution;
use domain::id::{ExecutionId, Sequence, WaitId};
use domain::lane::{LaneBlock, LaneId};
use domain::outcome::TurnResult;
use domain::route::{Checkpoint, CheckpointOutcome};
use domain::store::{EventFilter, Snapshot, StoreError, WaitFilter};
use domain::time::Timestamp;
use domain::wait::{Wait, WaitState};
use domain::work::Work;

use crate::announce;

/// The longest chain that is followed. Depth is bounded far below this.
const CHAIN_MAX: usize = 64;
/// The most inputs and related Events that are listed.
const LISTED_MAX: u32 = 100;

/// An Event with what became of it.
#[derive(Debug, Clone)]
pub struct Link {
    /// The Event.
    pub event: Event,
    /// Its checkpoint; none while it waits to be routed.
    pub checkpoint: Option<Checkpoint>,
    /// How often its delivery came again.
    pub redelivery: Option<Redelivery>,
}

/// Why a run started.
#[derive(Debug, Clone)]
pub struct Why {
    /// The run.
    pub execution: Execution,
    /// Its Work.
    pub work: Work,
    /// The Work's keys.
    pub keys: Vec<Key>,
    /// The result it reported.
    pub result: Option<TurnResult>,
    /// From the first Event of the chain to the trigger.
    pub chain: Vec<Link>,
    /// Everything the run took in, in order of acceptance.
    pub inputs: Vec<Link>,
    /// Events about the same Work that had no effect, newest first.
    pub without_effect: Vec<Link>,
    /// Lanes of the Work that stand still.
    pub blocked: Vec<LaneBlock>,
    /// The Wait whose end let it, or its present turn, begin.
    pub woken: Option<Woken>,
    /// What it waits for, or what its end made its Work wait for, while that goes on.
    pub waits: Option<Wait>,
    /// The credentials that its start had to wait for, or its later turns.
    pub credentials: Vec<Spent>,
}

/// A start that had to wait for a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spent {
    /// What waited, and since when.
    pub wait: CredentialWait,
    /// Until when: it is over, or the credential is held that long. None when that is not known any more.
    pub until: Option<Timestamp>,
    /// Whether that start waits no longer.
    pub over: bool,
}

/// A Wait that has ended.
#[derive(Debug, Clone)]
pub struct Woken {
    /// The Wait.
    pub wait: Wait,
    /// The Event that ended it.
    pub winner: Event,
}

/// Reads why a run started. None when there is no such run.
///
/// # Errors
/// [`StoreError`] when the store fails.
pub fn why(tx: &mut dyn Snapshot, id: ExecutionId) -> Result<Option<Why>, StoreError> {
    let Some(execution) = tx.execution(id)? else { return Ok(None) };
    let Some(work) = tx.work(execution.work)? else {
        return Err(StoreError::Corrupt { table: "execution", reason: "names no work".to_owned() });
    };
    let keys = tx.keys_of(work.id)?;
    let mut inputs = Vec::new();
    for input in tx.inputs_of(id, Sequence::ZERO, LISTED_MAX)? {
        if let Some(event) = tx.event_at(input.sequence)? {
            inputs.push(link(tx, event)?);
        }
    }
    let mut chain = Vec::new();
    let mut next = Some(execution.trigger);
    while let Some(id) = next
        && chain.len() < CHAIN_MAX
    {
        let Some(event) = tx.event(id)? else { break };
        next = event.causation.parent;
        chain.push(link(tx, event)?);
    }
    chain.reverse();
    let without_effect = without_effect(tx, &work, &keys)?;
    let mut blocked: Vec<LaneBlock> = tx.lane_block(LaneId::of_work(work.id))?.into_iter().collect();
    for key in &keys {
        blocked.extend(tx.lane_block(LaneId::of_key(key))?);
    }
    let result = tx.turn_result(execution.id)?;
    let woken = woken(tx, &execution)?;
    let waits = tx.active_wait(work.id)?.filter(|wait| wait.execution == execution.id);
    let credentials = spent(tx, &execution)?;
    Ok(Some(Why {
        execution,
        work,
        keys,
        result,
        chain,
        inputs,
        without_effect,
        blocked,
        woken,
        waits,
        credentials,
    }))
}

/// What the starts of a run had to wait for: a look-up by key, which finds nothing for most.
fn spent(tx: &mut dyn Snapshot, execution: &Execution) -> Result<Vec<Spent>, StoreError> {
    let mut spent = Vec::new();
    for wait in tx.credential_waits(execution.work, execution.attempt.number(), LISTED_MAX)? {
        let over = wait.is_over(execution);
        let until = if over {
            wait.ended(execution)
        } else {
            tx.credential_hold(&wait.credential)?.map(|hold| hold.until)
        };
        spent.push(Spent { wait, until, over });
    }
    Ok(spent)
}

/// The Wait that ended and let a run, or its present turn, begin. None when something else did. It reads a bounded
/// number of the Waits that its Work had registered by then.
fn woken(tx: &mut dyn Snapshot, execution: &Execution) -> Result<Option<Woken>, StoreError> {
    let (began_with, until) = match execution.turn.resumed_by {
        Some(winner) => (winner, execution.ended_at.unwrap_or_else(|| tx.now())),
        None => (execution.trigger, execution.claimed_at),
    };
    let before = Some(WaitId::above(until));
    let filter = WaitFilter { work: Some(execution.work), before, ..WaitFilter::default() };
    let ended = tx.waits(&filter, LISTED_MAX)?.into_iter().find(|wait| match wait.state {
        WaitState::Woken { winner, .. } => winner == began_with,
        WaitState::Active | WaitState::Cancelled { .. } => false,
    });
    let Some(wait) = ended else { return Ok(None) };
    Ok(tx.event(began_with)?.map(|winner| Woken { wait, winner }))
}

/// An Event with what became of it.
///
/// # Errors
/// [`StoreError`] when the store fails.
pub fn link(tx: &mut dyn Snapshot, event: Event) -> Result<Link, StoreError> {
    let checkpoint = tx.checkpoint(event.sequence)?;
    let redelivery = tx.redelivery(event.sequence)?;
    Ok(Link { event, checkpoint, redelivery })
}

/// What an Event led to so far.
#[derive(Debug, Clone, Default)]
pub struct LedTo {
    /// The run that took it in.
    pub run: Option<Execution>,
    /// Whether its Work keeps it for a run to come.
    pub pending: bool,
    /// Events whose parent it is, oldest first.
    pub events: Vec<Event>,
}

/// What an Event led to so far: a handful of look-ups by key, however much there is of its Work.
///
/// # Errors
/// [`StoreError`] when the store fails.
pub fn led_to(tx: &mut dyn Snapshot, link: &Link) -> Result<LedTo, StoreError> {
    let mut led = LedTo { events: tx.replays_of(link.event.id, LISTED_MAX)?, ..LedTo::default() };
    let Some(checkpoint) = &link.checkpoint else { return Ok(led) };
    let reached = match (checkpoint.outcome, &link.event.key) {
        (CheckpointOutcome::Routed, _) => checkpoint.work,
        // No route took it, and a Work may have begun to wait for it afterwards.
        (CheckpointOutcome::Unmatched, Some(key)) => tx.key_owner(key)?,
        (CheckpointOutcome::Unmatched, None)
        | (CheckpointOutcome::Dropped | CheckpointOutcome::Terminal | CheckpointOutcome::Quarantined, _) => {
            None
        }
    };
    let Some(id) = reached else { return Ok(led) };
    let Some(input) = tx.input(id, link.event.sequence)? else { return Ok(led) };
    match input.consumed_by {
        Some(run) => led.run = tx.execution(run)?,
        None => led.pending = tx.work(id)?.is_some_and(|work| !work.state.is_terminal()),
    }
    // What else the runtime derives comes from the trigger of the run that it is about.
    if let Some(run) = led.run.as_ref().filter(|run| run.trigger == link.event.id) {
        led.events.extend(announce::of(tx, run)?);
        led.events.sort_by_key(|event| event.sequence);
    }
    Ok(led)
}

fn without_effect(tx: &mut dyn Snapshot, work: &Work, keys: &[Key]) -> Result<Vec<Link>, StoreError> {
    let mut filters: Vec<EventFilter> =
        keys.iter().map(|key| EventFilter { key: Some(key.clone()), ..EventFilter::default() }).collect();
    filters.push(EventFilter { work: Some(work.id), ..EventFilter::default() });
    let mut links: Vec<Link> = Vec::new();
    for filter in filters {
        for event in tx.events(&filter, LISTED_MAX)? {
            // What the runtime says about this Work is no news to it.
            if event.is_announcement() {
                continue;
            }
            let link = link(tx, event)?;
            let effect = link.checkpoint.as_ref().map(|checkpoint| checkpoint.outcome);
            if effect != Some(CheckpointOutcome::Routed) || link.redelivery.is_some() {
                links.push(link);
            }
        }
    }
    links.sort_by_key(|link| std::cmp::Reverse(link.event.sequence));
    links.dedup_by_key(|link| link.event.sequence);
    links.truncate(LISTED_MAX as usize);
    Ok(links)
}
