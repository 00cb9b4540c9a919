//! Budgets at work: what admits a turn, what its end adds, and what is published about that.
//!
//! *Reads* ledgers and reservations, and only where a budget looks at them: without one, no statement is added.
//! *Decides* in `domain::budget`. *Writes* the reservation with the claim, and the amounts with the outcome, in the
//! transaction of each, so that a turn is counted as often as it ended. *Afterwards* those that only waited for what
//! others had reserved come back. What a turn reports on its way is counted by [`crate::meter`].

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use domain::budget::{self, Admission, Amount, Budget, BudgetKey, Crossing, LedgerId, Per, Standing};
use domain::capacity::Blocker;
use domain::causal::Origin;
use domain::delivery::{self, AcceptFacts, CORE_SOURCE, Delivery};
use domain::event::Payload;
use domain::execution::Execution;
use domain::id::{EventId, ExecutionId, TimerId, WorkId};
use domain::outcome::Usage;
use domain::retry::Eligibility;
use domain::scope::EffectiveScope;
use domain::store::{Snapshot, StoreError, Tx};
use domain::text::{EventType, ScopeName, SourceName, Unit};
use domain::time::Timestamp;
use domain::timer::{Timer, TimerKind};
use domain::work::{Hold, HoldReason, Queue, Work};
use serde::Serialize;

use crate::announce;
use crate::generation::ActiveGeneration;
use crate::schedule;

/// What becomes of a Work that is about to start a turn.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It starts, with this much reserved.
    Admitted(BTreeMap<Unit, Amount>),
    /// It waits on this list until others give back what they reserved.
    Deferred(Blocker),
    /// It is held.
    Held(Hold),
}

/// What adding a turn's use did.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Charged {
    /// Whether the routing stage has something to do.
    pub(crate) announced: bool,
    /// Whether somebody who waited may start.
    pub(crate) ready: bool,
    /// How many thresholds were crossed.
    pub(crate) crossed: u64,
}

/// Ids for Events that may have to be published, and for timers. They are proposed before the transaction, which may run twice.
#[derive(Debug)]
pub(crate) struct Proposed<'p> {
    ids: std::iter::Copied<std::slice::Iter<'p, EventId>>,
}

impl<'p> Proposed<'p> {
    pub(crate) fn new(ids: &'p [EventId]) -> Self {
        Self { ids: ids.iter().copied() }
    }

    pub(crate) fn event(&mut self) -> EventId {
        self.ids.next().expect("as many ids are proposed as may be needed")
    }

    /// Ids of every kind come from one maker, which makes none twice.
    pub(crate) fn timer(&mut self) -> TimerId {
        TimerId::from_number(self.event().number())
    }
}

/// What is known of the use of a turn that ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Use<'a> {
    /// What its result says, and as much of it as was counted on the way.
    Reported { usage: &'a [Usage], metered: &'a BTreeMap<Unit, Amount> },
    /// That there was a turn: it was cut off, and what it had reported on the way has been counted.
    Counted,
}

/// Decides about a turn of `work`, and says where its budget is used up that it is.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn admit(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    scope: &EffectiveScope,
    work: &Work,
    proposed: &mut Proposed<'_>,
) -> Result<Verdict, StoreError> {
    if scope.budgets.is_empty() {
        return Ok(Verdict::Admitted(BTreeMap::new()));
    }
    let now = tx.now();
    let standings = standings(tx, &scope.budgets, (work.id, &scope.name), now)?;
    let is_first_turn = !matches!(work.eligibility, Eligibility::Woken { resumes: Some(_), .. });
    let mut estimates: BTreeMap<&Unit, Amount> = BTreeMap::new();
    for budget in &scope.budgets {
        if !estimates.contains_key(&budget.unit) {
            let recent = tx.recent_use(&work.kind, &budget.unit)?;
            estimates.insert(&budget.unit, budget::estimate(&budget.unit, is_first_turn, &recent));
        }
    }
    let estimate = |unit: &Unit| estimates.get(unit).copied().unwrap_or_default();
    Ok(match budget::admit(&standings, work.let_through, estimate) {
        Admission::Admitted(reserved) => Verdict::Admitted(reserved),
        Admission::Deferred(budget) => Verdict::Deferred(match budget.per {
            Per::All => Blocker::ReservedOverall,
            // Only one turn of a Work runs, so nothing but its scope can have reserved what it is short of.
            Per::Scope | Per::Work => Blocker::Reserved(scope.name.clone()),
        }),
        Admission::Held(full) => {
            // It was said when the ledger came to its limit, unless the limit came down to it.
            let ledger = full.budget.ledger(work.id, &scope.name, now);
            let about = About { work, execution: None, used: full.used };
            publish(tx, active, proposed.event(), (full.budget, &ledger, Crossing::Limit), &about)?;
            arm_lift(tx, work, full.budget, proposed.timer())?;
            let reason = full.budget.reason(full.used);
            Verdict::Held(Hold { because: HoldReason::Budget, reason, since: now })
        }
    })
}

/// How the ledgers of some budgets stand for a Work.
///
/// # Errors
/// [`StoreError`].
pub fn standings<'b>(
    tx: &mut (impl Snapshot + ?Sized),
    budgets: &'b [Budget],
    (work, scope): (WorkId, &ScopeName),
    now: Timestamp,
) -> Result<Vec<Standing<'b>>, StoreError> {
    let mut standings = Vec::with_capacity(budgets.len());
    for budget in budgets {
        let used = tx.ledger(&budget.ledger(work, scope, now))?;
        let reserved = match budget.per {
            Per::Work => Amount::ZERO,
            Per::Scope => tx.reserved(&budget.unit, Some(scope))?,
            Per::All => tx.reserved(&budget.unit, None)?,
        };
        standings.push(Standing { budget, used, reserved });
    }
    Ok(standings)
}

/// Reserves for a turn that was claimed, and offers what is left to the next who waits for it.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn reserve(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    claimed: &Execution,
    reserved: &BTreeMap<Unit, Amount>,
) -> Result<(), StoreError> {
    for (unit, amount) in reserved {
        tx.reserve(claimed.id, &claimed.scope, unit, *amount)?;
    }
    if !reserved.is_empty() {
        offer(tx, active, &claimed.scope)?;
    }
    Ok(())
}

/// Brings back the first of those that wait for what others reserved. Each that starts or is held brings the next,
/// so that nobody is passed over, and so does one that
/// finds something else in its way or is cancelled.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn offer(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    scope: &ScopeName,
) -> Result<bool, StoreError> {
    if active.crossings_max() == 0 {
        return Ok(false);
    }
    let here = schedule::bring_back(tx, &Blocker::Reserved(scope.clone()), 1)?;
    Ok(schedule::bring_back(tx, &Blocker::ReservedOverall, 1)? || here)
}

/// Adds what a turn that ended has used, gives back what it had reserved, and publishes what was crossed.
///
/// # Errors
/// [`StoreError`] undoes the end of the turn with it.
pub(crate) fn charge(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    (work, execution): (&Work, &Execution),
    spent: Use<'_>,
    proposed: &mut Proposed<'_>,
) -> Result<Charged, StoreError> {
    let mut charged = Charged::default();
    if active.charged(&execution.scope).is_empty() {
        return Ok(charged);
    }
    let is_first_turn = execution.turn.number == 1;
    let (usage, metered) = match spent {
        Use::Reported { usage, metered } => (usage, Some(metered)),
        Use::Counted => (&[] as &[Usage], None),
    };
    let used = |unit: &Unit| budget::used(unit, is_first_turn, usage);
    let counted = |unit: &Unit| metered.and_then(|metered| metered.get(unit)).copied().unwrap_or_default();
    let added = add(tx, active, (work, execution), |unit| used(unit).less(counted(unit)), proposed)?;
    (charged.announced, charged.crossed) = (added.announced, added.crossings.len() as u64);
    if metered.is_some() {
        for unit in added.units {
            remember(tx, work, &unit, used(&unit))?;
        }
    }
    tx.release_reservation(execution.id)?;
    charged.ready = offer(tx, active, &execution.scope)?;
    Ok(charged)
}

/// Adds what a turn that goes on reports of its use, and takes it off what the turn has reserved. Returns what was
/// crossed.
///
/// # Errors
/// [`StoreError`] undoes the report with it.
pub(crate) fn meter(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    (work, execution): (&Work, &Execution),
    amounts: &BTreeMap<Unit, Amount>,
    proposed: &mut Proposed<'_>,
) -> Result<Vec<Crossing>, StoreError> {
    let reported = |unit: &Unit| amounts.get(unit).copied().unwrap_or_default();
    let added = add(tx, active, (work, execution), reported, proposed)?;
    if !added.units.is_empty() {
        for (unit, reserved) in tx.reservation(execution.id)? {
            let left = reserved.less(reported(&unit));
            if left != reserved {
                tx.reserve(execution.id, &execution.scope, &unit, left)?;
            }
        }
    }
    Ok(added.crossings)
}

/// What adding to ledgers did.
#[derive(Debug, Default)]
struct Added {
    /// The units that budgets look at.
    units: Vec<Unit>,
    crossings: Vec<Crossing>,
    announced: bool,
}

/// Adds to every ledger that a budget looks at, and publishes what was crossed.
fn add(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    (work, execution): (&Work, &Execution),
    amount: impl Fn(&Unit) -> Amount,
    proposed: &mut Proposed<'_>,
) -> Result<Added, StoreError> {
    let (now, mut added) = (tx.now(), Added::default());
    let budgets = active.charged(&execution.scope);
    let mut ledgers: BTreeMap<BudgetKey, (LedgerId, Amount, Amount)> = BTreeMap::new();
    for budget in &budgets {
        if let Entry::Vacant(vacant) = ledgers.entry(budget.key()) {
            let (ledger, used) = (budget.ledger(work.id, &execution.scope, now), amount(&budget.unit));
            let before = if used == Amount::ZERO { Amount::ZERO } else { tx.add_to_ledger(&ledger, used)? };
            vacant.insert((ledger, before, before.plus(used)));
        }
        if !added.units.contains(&budget.unit) {
            added.units.push(budget.unit.clone());
        }
    }
    for budget in budgets {
        let (ledger, before, after) = &ledgers[&budget.key()];
        for crossing in budget.crossed(*before, *after) {
            let about = About { work, execution: Some(execution.id), used: *after };
            let said = publish(tx, active, proposed.event(), (budget, ledger, crossing), &about)?;
            added.announced |= said.announced;
            added.crossings.push(crossing);
        }
    }
    Ok(added)
}

/// The Event that says that a ledger is at its limit, published now unless it has been said.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn said(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    (work, execution): (&Work, ExecutionId),
    full: Standing<'_>,
    proposed: &mut Proposed<'_>,
) -> Result<EventId, StoreError> {
    let ledger = full.budget.ledger(work.id, &work.scope, tx.now());
    let about = About { work, execution: Some(execution), used: full.used };
    let said = publish(tx, active, proposed.event(), (full.budget, &ledger, Crossing::Limit), &about)?;
    Ok(said.event)
}

/// Has a Work that is held looked at again when the window of its budget is over; never for a life.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn arm_lift(
    tx: &mut dyn Tx,
    work: &Work,
    budget: &Budget,
    proposed: TimerId,
) -> Result<(), StoreError> {
    let now = tx.now();
    let Some(due_at) = budget.window.end(now) else { return Ok(()) };
    let (scope, kind) = (work.scope.clone(), TimerKind::BudgetWindow);
    tx.insert_timer(&Timer { id: proposed, kind, scope, work: work.id, armed_at: now, due_at })
}

/// Takes back what [`arm_lift`] armed: the hold is over.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn disarm_lift(tx: &mut dyn Tx, work: WorkId) -> Result<(), StoreError> {
    for timer in tx.timers_of(work, TIMERS_OF_A_WORK)? {
        if timer.kind == TimerKind::BudgetWindow {
            tx.delete_timer(timer.id)?;
        }
    }
    Ok(())
}

/// More than a Work has: one for its failure or its Wait, and one for its hold.
const TIMERS_OF_A_WORK: u32 = 8;

/// Ends the hold of a Work whose budgets hold it no longer, because a limit was raised, a budget is gone, or another
/// day or week has begun. One that is held by another budget now says so, and is looked at again in its turn. True
/// when it may start.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn look_again(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    work: &Work,
    proposed: TimerId,
) -> Result<bool, StoreError> {
    let Some(hold) = work.hold.as_ref().filter(|hold| hold.because == HoldReason::Budget) else {
        return Ok(false);
    };
    let now = tx.now();
    disarm_lift(tx, work.id)?;
    // The budgets of a scope that is gone are not; what else keeps its Works is said by another list.
    let budgets = active.scope(&work.scope).map(|scope| scope.scope.budgets.as_slice()).unwrap_or_default();
    let standings = standings(tx, budgets, (work.id, &work.scope), now)?;
    if let Some(full) = budget::full(&standings) {
        arm_lift(tx, work, full.budget, proposed)?;
        let reason = full.budget.reason(full.used);
        if reason != hold.reason {
            let next =
                work.clone().hold(Hold { reason, ..hold.clone() }).expect("what is held has not ended");
            tx.update_work(&next, work)?;
        }
        return Ok(false);
    }
    let next = work.clone().lift(HoldReason::Budget, now).expect("it is held by a budget");
    tx.update_work(&next, work)?;
    Ok(next.queue == Queue::Runnable)
}

/// Notes what a turn used, for the estimate of the next of its kind. What the runtime counts needs none.
fn remember(tx: &mut dyn Tx, work: &Work, unit: &Unit, used: Amount) -> Result<(), StoreError> {
    if matches!(unit.as_str(), budget::TURNS | budget::ATTEMPTS) {
        return Ok(());
    }
    let recent = tx.recent_use(&work.kind, unit)?;
    let remembered = budget::remembered(used, &recent);
    if remembered == recent { Ok(()) } else { tx.put_recent_use(&work.kind, unit, &remembered) }
}

/// Who used a budget up, and how much of it is used.
struct About<'a> {
    work: &'a Work,
    execution: Option<ExecutionId>,
    used: Amount,
}

/// The body of a `core.budget.warning` and of a `core.budget.exceeded` Event.
#[derive(Debug, Serialize)]
struct BudgetBody<'a> {
    work: WorkId,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution: Option<ExecutionId>,
    budget: String,
    unit: &'a str,
    per: &'static str,
    window: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    window_start: Option<String>,
    used: String,
    limit: String,
    used_thousandths: i64,
    limit_thousandths: i64,
    warning_percent: u32,
}

/// What was published.
struct Said {
    event: EventId,
    /// Whether the routing stage has something to do about it.
    announced: bool,
}

/// Publishes a crossing, once. It begins a chain, so that no chain's bounds can keep it from being said.
///
/// # Errors
/// [`StoreError`].
fn publish(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    proposed: EventId,
    (budget, ledger, crossing): (&Budget, &LedgerId, Crossing),
    about: &About<'_>,
) -> Result<Said, StoreError> {
    let (source, delivery_id) = (SourceName::known(CORE_SOURCE), crossing.delivery(ledger, budget));
    if let Some(known) = tx.event_of_delivery(&source, &delivery_id)? {
        return Ok(Said { event: known.id, announced: false });
    }
    let work = about.work;
    let body = BudgetBody {
        work: work.id,
        execution: about.execution,
        budget: budget.to_string(),
        unit: budget.unit.as_str(),
        per: budget.per.as_str(),
        window: budget.window.as_str(),
        window_start: (ledger.start > Timestamp::EPOCH).then(|| ledger.start.to_string()),
        used: about.used.to_string(),
        limit: budget.limit.to_string(),
        used_thousandths: about.used.thousandths(),
        limit_thousandths: budget.limit.thousandths(),
        warning_percent: budget.warning_percent,
    };
    let json = serde_json::to_vec(&body).expect("a struct of plain values is JSON");
    let delivery = Delivery {
        id: proposed,
        source,
        delivery_id,
        event_type: EventType::known(crossing.event_type()),
        scope: work.scope.clone(),
        key: None,
        work: Some(work.id),
        occurred_at: None,
        payload: Payload::stored(json),
        origin: Origin::Root,
    };
    let facts = AcceptFacts { target: Some(work.clone()), ..AcceptFacts::new(active.bounds(&work.scope)) };
    let (sequence, now) = (tx.next_sequence(), tx.now());
    let event = delivery::admit(&delivery, &facts, sequence, now)
        .expect("a root of the runtime that names a Work of its own scope");
    tx.insert_new_event(&event, &delivery.payload)?;
    Ok(Said { event: event.id, announced: announce::leave(tx, active, &event)? })
}
