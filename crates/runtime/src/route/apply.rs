//! Applying answers: what was asked outside is revalidated here and written with its checkpoint.

use domain::decision::{Decision, Looked, Present};
use domain::event::{Event, Key};
use domain::id::{Generation, Sequence, WorkId};
use domain::input::Input;
use domain::lane::{self, BEHIND_PAUSE, HELD_PAUSE, LaneBlock, LaneId, QUARANTINE_TRIES};
use domain::route::{
    self, ActivePolicy, Checkpoint, CheckpointOutcome, Line, Match, RouteAnswer, RouteEffect, RouteFacts,
    RouteRefusal, Routing, WhileActive,
};
use domain::store::{Snapshot, StoreError, Tx};
use domain::text::{BindingName, Code, RouteName, ScopeName};
use domain::work::{Work, WorkState};

use crate::generation::ActiveGeneration;
use crate::order;
use crate::route::reopen::{lanes_of, newest_owner, succeed};
use crate::route::{Candidate, waited};
use crate::stage::BATCH;
use crate::wake::fact;

/// The most bytes of a handler's reason that are kept.
const REASON_BYTES_MAX: usize = 1000;

/// An Event with what the handlers said.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) candidate: Candidate,
    pub(crate) generation: Generation,
    pub(crate) verdict: Verdict,
}

/// What is to be done with an Event.
#[derive(Debug, Clone)]
pub(crate) enum Verdict {
    /// The routes answered.
    Decided(Decision<RouteAnswer>),
    /// The scope keeps it from being routed, and that is not its fault.
    Held { code: Code },
}

/// What a transaction did.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    pub(crate) outcomes: Vec<CheckpointOutcome>,
    pub(crate) blocked: u64,
    pub(crate) parked: u64,
    pub(crate) stale: u64,
    pub(crate) queued: bool,
    /// How many running attempts were ordered to do something.
    pub(crate) ordered: u64,
    /// The configuration in force, inside the transaction.
    pub(crate) generation: Option<Generation>,
    /// The last Event, when it did nothing for the owner of its key, which may wait for what stands behind it.
    passed_over: Option<Sequence>,
    crowded: bool,
    /// Whether no lane is blocked, so that none need be looked up.
    unblocked: bool,
    /// Whether any Work waits, once somebody has asked. No routing makes one wait.
    waited: Option<bool>,
}

impl Applied {
    /// The block of a lane, without asking when there is none at all.
    fn lane_block(&self, tx: &mut dyn Tx, lane: LaneId) -> Result<Option<LaneBlock>, StoreError> {
        if self.unblocked { Ok(None) } else { tx.lane_block(lane) }
    }

    /// Whether any Work waits at all, without which there is nothing to look for.
    pub(super) fn somebody_waits(&mut self, tx: &mut dyn Tx) -> Result<bool, StoreError> {
        if self.waited.is_none() {
            self.waited = Some(tx.count_waits(1)? > 0);
        }
        Ok(self.waited == Some(true))
    }

    /// Whether the last Event was passed over, asked once.
    pub(super) const fn take_passed_over(&mut self) -> bool {
        self.passed_over.take().is_some()
    }

    pub(super) fn add(&mut self, other: Self) {
        self.outcomes.extend(other.outcomes);
        self.blocked += other.blocked;
        self.parked += other.parked;
        self.stale += other.stale;
        self.queued |= other.queued;
        self.ordered += other.ordered;
        self.generation = other.generation.or(self.generation);
    }

    /// Whether anything changed, so that another step may find something else.
    pub(crate) fn moved(&self) -> bool {
        !self.outcomes.is_empty() || self.blocked > 0 || self.parked > 0
    }
}

/// A failure to route one Event: why, in a word and in words, and what it means for the next try.
struct Failure {
    code: Code,
    reason: String,
    weight: Weight,
}

/// What a failure means for the next try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// It is not the Event's fault, and does not count towards quarantine.
    None,
    /// It counts.
    Try,
    /// Another try would fail the same way, so there is none.
    Final,
}

impl Weight {
    const fn of(is_final: bool) -> Self {
        if is_final { Self::Final } else { Self::Try }
    }
}

/// Applies answers in the order of acceptance. When the queue is `crowded`, Events that have to wait for another
/// one are taken off it, so that those behind them are seen.
pub(super) fn apply(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    items: &[Item],
    crowded: bool,
) -> Result<Applied, StoreError> {
    let generation = tx.current_generation_number()?.unwrap_or(Generation::from_number(0));
    let unblocked = tx.lane_blocks(1)?.is_empty();
    let mut applied = Applied { generation: Some(generation), crowded, unblocked, ..Applied::default() };
    for item in items {
        let event = &item.candidate.event;
        if tx.unrouted(event.sequence)?.is_none() {
            continue;
        }
        if behind_block(tx, &item.candidate, &mut applied)? {
            continue;
        }
        match &item.verdict {
            Verdict::Held { code } => {
                if item.generation == generation {
                    let reason = format!("scope `{}` does not route now", event.scope);
                    let failure = Failure { code: code.clone(), reason, weight: Weight::None };
                    block(tx, item, failure, &mut applied)?;
                } else {
                    applied.stale += 1;
                }
            }
            Verdict::Decided(decision) => one(tx, active, item, decision, &mut applied)?,
        }
        waited::look_behind(tx, active, &item.candidate, &mut applied)?;
    }
    Ok(applied)
}

/// Whether the Event stands behind a blocked one of its lane. Then it leaves the list of candidates.
fn behind_block(tx: &mut dyn Tx, candidate: &Candidate, applied: &mut Applied) -> Result<bool, StoreError> {
    if candidate.lane == LaneId::NONE {
        return Ok(false);
    }
    let Some(block) = applied.lane_block(tx, candidate.lane)? else {
        return Ok(false);
    };
    if candidate.event.sequence <= block.head {
        return Ok(false);
    }
    tx.park_unrouted(candidate.event.sequence)?;
    applied.parked += 1;
    Ok(true)
}

fn one(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    item: &Item,
    decision: &Decision<RouteAnswer>,
    applied: &mut Applied,
) -> Result<(), StoreError> {
    let generation = applied.generation.expect("it was read at the start");
    let candidate = &item.candidate;
    let looked = decision.basis.work != Looked::Nowhere;
    let work = if looked { work_of(tx, &candidate.event)? } else { None };
    if looked && let Some(first) = earlier(tx, candidate, work.as_ref().map(|work| work.id))? {
        // What it saw of the Work is not what it will see in its turn.
        return behind_earlier(tx, item, first, applied);
    }
    let work = work.map(|work| (work.id, work.revision));
    let present = Present { now: tx.now(), generation, work, input_high: None };
    let Ok(answer) = decision.clone().revalidate(&present) else {
        // Something moved; the next step asks again.
        applied.stale += 1;
        return Ok(());
    };
    match answer {
        RouteAnswer::Unmatched => {
            if let Some(wait) = fact::waited_for(tx, &candidate.event)? {
                return waited::route(tx, active, item, &wait, applied);
            }
            let checkpoint = checkpoint(tx, &candidate.event, CheckpointOutcome::Unmatched, generation);
            off(tx, candidate, &checkpoint, applied)
        }
        RouteAnswer::Failed { code, reason, is_final, route: _ } => {
            let weight = if lane::counts(&code) { Weight::of(is_final) } else { Weight::None };
            block(tx, item, Failure { code, reason, weight }, applied)
        }
        RouteAnswer::Matched { route, binding, active: policy, wants } => {
            let matched = Matched { route, binding, active: policy, wants };
            match decide(tx, candidate, &matched)? {
                Decided::Earlier(first) => behind_earlier(tx, item, first, applied),
                Decided::Refused(refusal) => {
                    let code = Code::known(refusal.code());
                    let weight = Weight::of(refusal.is_final());
                    let failure = Failure { code, reason: refusal.to_string(), weight };
                    block(tx, item, failure, applied)
                }
                Decided::Routing(routing) => write(tx, active, candidate, (matched, *routing), applied),
            }
        }
    }
}

/// Sets an Event aside while an earlier one of its Work, in another lane, cannot be routed.
pub(super) fn behind_earlier(
    tx: &mut dyn Tx,
    item: &Item,
    first: Sequence,
    applied: &mut Applied,
) -> Result<(), StoreError> {
    let Some(earlier) = tx.unrouted(first)? else { return Ok(()) };
    let standing = tx.lane_block(lane::block_lane(earlier.lane, first))?.is_some();
    if !standing && !applied.crowded {
        // It is only a little ahead; a later step finds it routed.
        return Ok(());
    }
    if !standing && earlier.lane == item.candidate.lane {
        return stand_behind(tx, item, first, applied);
    }
    let reason = "an earlier event of the same Work waits in another lane".to_owned();
    let failure = Failure { code: Code::known("behind_earlier"), reason, weight: Weight::None };
    block(tx, item, failure, applied)
}

/// Lets a lane stand behind an Event of it whose handler has yet to answer. That Event stays on the list of
/// candidates; once it is routed the lane is worked off.
fn stand_behind(
    tx: &mut dyn Tx,
    item: &Item,
    first: Sequence,
    applied: &mut Applied,
) -> Result<(), StoreError> {
    let Some(event) = tx.event_at(first)? else { return Ok(()) };
    let blocked_until = tx.now().after(HELD_PAUSE);
    tx.put_lane_block(&LaneBlock {
        lane: item.candidate.lane,
        head: first,
        event: event.id,
        blocked_until,
        tries: 0,
        code: Code::known("asking"),
        reason: "the handler of its first event has yet to answer".to_owned(),
    })?;
    tx.park_unrouted(item.candidate.event.sequence)?;
    applied.unblocked = false;
    applied.parked += 1;
    Ok(())
}

/// The Work an Event is addressed to or whose key it carries.
pub(crate) fn work_of(tx: &mut dyn Snapshot, event: &Event) -> Result<Option<Work>, StoreError> {
    let work = match (event.work, &event.key) {
        (Some(work), _) => Some(work),
        (None, Some(key)) => tx.key_owner(key)?,
        (None, None) => None,
    };
    match work {
        Some(work) => tx.work(work),
        None => Ok(None),
    }
}

/// Counts a bug of ours against the Event that brought it about.
pub(super) fn broke(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    item: &Item,
    error: &StoreError,
) -> Result<Applied, StoreError> {
    let mut applied = Applied::default();
    if tx.unrouted(item.candidate.event.sequence)?.is_some() {
        let reason = error.to_string();
        block(
            tx,
            item,
            Failure { code: Code::known(error.code()), reason, weight: Weight::Try },
            &mut applied,
        )?;
        waited::look_behind(tx, active, &item.candidate, &mut applied)?;
    }
    Ok(applied)
}

/// A route that matched, and what its handler wants.
pub(crate) struct Matched {
    pub(crate) route: RouteName,
    pub(crate) binding: Option<BindingName>,
    pub(crate) active: WhileActive,
    pub(crate) wants: Match,
}

/// What a match does to an Event, by the facts of one moment.
pub(crate) enum Decided {
    Routing(Box<Routing>),
    Refused(RouteRefusal),
    /// An earlier Event of the same Work is not routed yet.
    Earlier(Sequence),
}

/// What a match would do now. It only reads.
pub(crate) fn decide(
    tx: &mut dyn Snapshot,
    candidate: &Candidate,
    matched: &Matched,
) -> Result<Decided, StoreError> {
    let event = &candidate.event;
    let mut facts = facts(tx, candidate, &matched.wants)?;
    let target = facts.addressed.as_ref().or(facts.owner.as_ref());
    if matched.active.policy.order().is_some()
        && let Some(WorkState::Running { execution }) = target.map(|work| work.state)
    {
        facts.attempt = tx.execution(execution)?;
    }
    let work = facts.addressed.as_ref().or(facts.owner.as_ref()).map(|work| work.id);
    if let Some(first) = earlier(tx, candidate, work)? {
        return Ok(Decided::Earlier(first));
    }
    let now = tx.now();
    let has_binding = matched.binding.is_some();
    Ok(match route::route(event, &matched.wants, matched.active, has_binding, &facts, now) {
        Ok(routing) => Decided::Routing(Box::new(routing)),
        Err(refusal) => Decided::Refused(refusal),
    })
}

fn facts(tx: &mut dyn Snapshot, candidate: &Candidate, wants: &Match) -> Result<RouteFacts, StoreError> {
    let keys = match wants {
        Match::Attach { keys, .. } | Match::Fresh { keys, .. } => route::canonical(keys.clone()),
        Match::Addressed | Match::Drop { .. } => Vec::new(),
    };
    let mut facts = RouteFacts { proposed: Some(candidate.proposed), ..RouteFacts::default() };
    if let Some(id) = route::addressee(&candidate.event, wants) {
        facts.addressed = tx.work(id)?;
    }
    if let Match::Drop { .. } = wants
        && facts.addressed.is_none()
    {
        // It has no effect on the Work, and is still about it.
        facts.owner = work_of(tx, &candidate.event)?;
    }
    let may_reopen = route::may_reopen(&candidate.event, wants);
    let mut owner = None;
    for key in keys {
        let (key, owned) = if may_reopen {
            newest_owner(tx, key)?
        } else {
            let owned = tx.key_owner(&key)?;
            (key, owned)
        };
        owner = owner.or(owned);
        facts.owners.push((key, owned));
    }
    if let Some(owner) = owner {
        facts.owner = tx.work(owner)?;
    }
    if let Some(owner) = facts.owner.as_ref().filter(|owner| may_reopen && owner.state.is_terminal()) {
        let place = tx.succession_of(owner.id)?;
        facts.line = Some(Line { place, keys: tx.keys_of(owner.id)? });
    }
    Ok(facts)
}

/// The first Event that must be routed before this one: of its lane, or of any lane of its Work.
pub(super) fn earlier(
    tx: &mut dyn Snapshot,
    candidate: &Candidate,
    work: Option<WorkId>,
) -> Result<Option<Sequence>, StoreError> {
    let mut lanes = Vec::with_capacity(4);
    if candidate.lane != LaneId::NONE {
        lanes.push(candidate.lane);
    }
    if let Some(work) = work {
        lanes.extend(lanes_of(tx, work)?);
    }
    lanes.sort_unstable();
    lanes.dedup();
    if lanes.is_empty() {
        return Ok(None);
    }
    tx.earlier_unrouted(&lanes, candidate.event.sequence)
}

fn write(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    candidate: &Candidate,
    (matched, routing): (Matched, Routing),
    applied: &mut Applied,
) -> Result<(), StoreError> {
    let event = &candidate.event;
    let generation = applied.generation.expect("it was read at the start");
    let mut checkpoint = checkpoint(tx, event, routing.outcome, generation);
    checkpoint.route = Some(matched.route);
    checkpoint.policy = Some(routing.policy.unwrap_or(matched.active.policy));
    checkpoint.work = routing.work;
    if let Some((code, reason)) = routing.because {
        checkpoint.code = Some(code);
        checkpoint.reason = Some(reason);
    }
    let (work, attach, waits_for) = match routing.effect {
        RouteEffect::None => return pass_over(tx, candidate, &checkpoint, applied),
        RouteEffect::Create { work, attach } => {
            tx.insert_work(&work)?;
            (work.id, attach, None)
        }
        RouteEffect::Succeed { work, place, attach } => {
            if let Some(refusal) = succeed(tx, active, (event, candidate.woken), &work, &place)? {
                checkpoint.outcome = CheckpointOutcome::Terminal;
                checkpoint.work = Some(place.predecessor);
                checkpoint.code = Some(Code::known("successor_refused"));
                checkpoint.reason =
                    Some(format!("{} had ended, and a successor was refused: {refusal}", place.predecessor));
                return pass_over(tx, candidate, &checkpoint, applied);
            }
            (work.id, attach, None)
        }
        RouteEffect::Enqueue { work, attach } => {
            let (id, waits_for) = (work.id, work.state.waits_for());
            if let (Some(kind), WorkState::Running { execution }) = (routing.order, work.state) {
                let fallbacks = matched.active.fallbacks;
                order::commit(tx, execution, event, kind, fallbacks.on_error)?;
                applied.ordered += 1;
            }
            let next = work.clone().enqueue(tx.now()).expect("a terminal Work is not enqueued on");
            tx.update_work(&next, &work)?;
            (id, attach, waits_for)
        }
    };
    let binding = matched.binding.expect("a route without a binding has no effect");
    for key in &attach {
        tx.attach_key(key, work)?;
        join_backlog(tx, key, &event.scope, &checkpoint, &binding, applied)?;
    }
    let (sequence, id) = (event.sequence, event.id);
    tx.insert_input(&Input { work, sequence, event: id, binding, consumed_by: None })?;
    applied.queued = true;
    applied.passed_over = strays(event, &matched.wants).then_some(event.sequence);
    off(tx, candidate, &checkpoint, applied)?;
    if let Some(wait) = waits_for {
        fact::routed(tx, active, wait, event, candidate.woken)?;
    }
    Ok(())
}

/// As [`join_backlog`], for a Work that no route created.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn join_backlog_of(
    tx: &mut dyn Tx,
    key: &Key,
    by: &Checkpoint,
    (scope, binding): (&ScopeName, &BindingName),
) -> Result<(), StoreError> {
    join_backlog(tx, key, scope, by, binding, &mut Applied::default())
}

/// Earlier Events of a key that a Work just got join its backlog, each in its place.
fn join_backlog(
    tx: &mut dyn Tx,
    key: &Key,
    scope: &ScopeName,
    by: &Checkpoint,
    binding: &BindingName,
    applied: &mut Applied,
) -> Result<(), StoreError> {
    let lane = LaneId::of_key(key);
    // All of them: the Event that brings the key is input with this transaction, and may not overtake any.
    for sequence in tx.unrouted_in_lane(lane, by.sequence, u32::MAX)? {
        let Some(event) = tx.event_at(sequence)? else { continue };
        // A lane is a digest: another key may share it.
        if event.key.as_ref() != Some(key) || &event.scope != scope {
            continue;
        }
        let work = by.work.expect("a key is attached to a Work");
        let checkpoint = Checkpoint {
            sequence,
            event: event.id,
            // They wait for the next attempt, whatever the Event that brought the key does to this one.
            policy: by.policy.map(|_policy| ActivePolicy::Queue),
            code: Some(Code::known("joined_backlog")),
            reason: Some(format!("the Work got this event's key when {} was routed", by.event)),
            ..by.clone()
        };
        let binding = binding.clone();
        tx.insert_input(&Input { work, sequence, event: event.id, binding, consumed_by: None })?;
        tx.route_off(&checkpoint)?;
        applied.outcomes.push(checkpoint.outcome);
    }
    if applied.lane_block(tx, lane)?.is_some() {
        release_lane(tx, lane)?;
    }
    Ok(())
}

pub(super) fn checkpoint(
    tx: &dyn Tx,
    event: &Event,
    outcome: CheckpointOutcome,
    generation: Generation,
) -> Checkpoint {
    Checkpoint {
        sequence: event.sequence,
        event: event.id,
        outcome,
        route: None,
        policy: None,
        work: None,
        generation,
        code: None,
        reason: None,
        at: tx.now(),
    }
}

/// Writes a checkpoint and lets the lane go on.
pub(super) fn off(
    tx: &mut dyn Tx,
    candidate: &Candidate,
    checkpoint: &Checkpoint,
    applied: &mut Applied,
) -> Result<(), StoreError> {
    tx.route_off(checkpoint)?;
    applied.outcomes.push(checkpoint.outcome);
    let lane = lane::block_lane(candidate.lane, candidate.event.sequence);
    if let Some(block) = applied.lane_block(tx, lane)?
        && candidate.event.sequence >= block.head
    {
        release_lane(tx, lane)?;
    }
    Ok(())
}

/// Writes the checkpoint of an Event that has no effect.
fn pass_over(
    tx: &mut dyn Tx,
    candidate: &Candidate,
    checkpoint: &Checkpoint,
    applied: &mut Applied,
) -> Result<(), StoreError> {
    applied.passed_over = Some(candidate.event.sequence);
    off(tx, candidate, checkpoint, applied)
}

/// Whether a match went by other keys than the Event's own, so that the owner of that has not seen it.
fn strays(event: &Event, wants: &Match) -> bool {
    match wants {
        Match::Attach { keys, .. } | Match::Fresh { keys, .. } => {
            event.key.as_ref().is_some_and(|key| !keys.contains(key))
        }
        Match::Addressed | Match::Drop { .. } => false,
    }
}

/// Lets the next part of a blocked lane's backlog back on the list. The block stays, without a reason, until
/// that part is routed, so that what arrives meanwhile lines up behind it.
fn release_lane(tx: &mut dyn Tx, lane: LaneId) -> Result<(), StoreError> {
    let part = tx.unrouted_in_lane(lane, Sequence::from_number(i64::MAX), BATCH)?;
    let Some(last) = part.last().copied() else {
        return tx.delete_lane_block(lane);
    };
    tx.unpark_lane(lane, BATCH)?;
    let Some(event) = tx.event_at(last)? else {
        return tx.delete_lane_block(lane);
    };
    // Its head is on the list of candidates, so it need not become due.
    let blocked_until = tx.now().after(HELD_PAUSE);
    tx.put_lane_block(&LaneBlock {
        lane,
        head: last,
        event: event.id,
        blocked_until,
        tries: 0,
        code: Code::known("draining"),
        reason: "the lane works off what waited while it was blocked".to_owned(),
    })
}

/// Blocks the lane at this Event, or sets the Event aside when it has failed often enough.
fn block(tx: &mut dyn Tx, item: &Item, failure: Failure, applied: &mut Applied) -> Result<(), StoreError> {
    // A handler's words go into a database, a log line and a page.
    let failure = Failure { reason: domain::text::plain(&failure.reason, REASON_BYTES_MAX), ..failure };
    let event = &item.candidate.event;
    let lane = lane::block_lane(item.candidate.lane, event.sequence);
    let before = tx.lane_block(lane)?.filter(|block| block.head == event.sequence);
    let before = before.map_or(0, |block| block.tries);
    let (tries, is_aside) = match failure.weight {
        Weight::None => (before, false),
        Weight::Try => (before + 1, before + 1 >= QUARANTINE_TRIES),
        Weight::Final => (before + 1, true),
    };
    if is_aside {
        let mut aside = checkpoint(tx, event, CheckpointOutcome::Quarantined, item.generation);
        aside.code = Some(failure.code);
        aside.reason = Some(failure.reason);
        return pass_over(tx, &item.candidate, &aside, applied);
    }
    let pause = match (failure.weight, failure.code.as_str()) {
        (Weight::Try | Weight::Final, _) => lane::retry_pause(tries),
        (Weight::None, "behind_earlier") => BEHIND_PAUSE,
        (Weight::None, _) => HELD_PAUSE,
    };
    let blocked_until = tx.now().after(pause);
    tx.put_lane_block(&LaneBlock {
        lane,
        head: event.sequence,
        event: event.id,
        blocked_until,
        tries,
        code: failure.code,
        reason: failure.reason,
    })?;
    tx.park_unrouted(event.sequence)?;
    applied.unblocked = false;
    applied.blocked += 1;
    Ok(())
}
