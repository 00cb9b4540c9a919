//! Budgets at work: what admits a turn, what its end adds, and what is published about that.
//!
//! *Reads* ledgers and reservations, and only where a budget looks at them: without one, no statement is added.
//! *Decides* in `domain::budget`. *Writes* the reservation with the claim, and the amounts with the outcome, in the
//! transaction of each, so that a turn is counted as often as it ended. *Afterwards* those that only waited for what
//! others had reserved come back.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use domain::budget::{self, Admission, Amount, Budget, BudgetKey, Crossing, LedgerId, Per, Standing};
use domain::capacity::Blocker;
use domain::causal::Origin;
use domain::delivery::{self, AcceptFacts, CORE_SOURCE, Delivery};
use domain::event::Payload;
use domain::execution::Execution;
use domain::id::{EventId, ExecutionId, WorkId};
use domain::outcome::Usage;
use domain::retry::Eligibility;
use domain::scope::EffectiveScope;
use domain::store::{Snapshot, StoreError, Tx};
use domain::text::{EventType, ScopeName, SourceName, Unit};
use domain::time::Timestamp;
use domain::work::{Hold, HoldReason, Work};
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

/// Ids for Events that may have to be published. They are proposed before the transaction, which may run twice.
#[derive(Debug)]
pub(crate) struct Proposed<'p> {
    ids: std::iter::Copied<std::slice::Iter<'p, EventId>>,
}

impl<'p> Proposed<'p> {
    pub(crate) fn new(ids: &'p [EventId]) -> Self {
        Self { ids: ids.iter().copied() }
    }

    fn take(&mut self) -> EventId {
        self.ids.next().expect("as many ids are proposed as thresholds can be crossed")
    }
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
            publish(tx, active, proposed.take(), (full.budget, &ledger, Crossing::Limit), &about)?;
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
/// `usage` is what its executor reported; none of a turn that was cancelled, of which only the turn counts.
///
/// # Errors
/// [`StoreError`] undoes the end of the turn with it.
pub(crate) fn charge(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    (work, execution): (&Work, &Execution),
    usage: Option<&[Usage]>,
    proposed: &mut Proposed<'_>,
) -> Result<Charged, StoreError> {
    let mut charged = Charged::default();
    let budgets = active.charged(&execution.scope);
    if budgets.is_empty() {
        return Ok(charged);
    }
    let (now, is_first_turn) = (tx.now(), execution.turn.number == 1);
    let mut ledgers: BTreeMap<BudgetKey, (LedgerId, Amount, Amount)> = BTreeMap::new();
    let mut units: BTreeMap<&Unit, Amount> = BTreeMap::new();
    for budget in &budgets {
        let used = budget::used(&budget.unit, is_first_turn, usage.unwrap_or_default());
        units.insert(&budget.unit, used);
        if let Entry::Vacant(vacant) = ledgers.entry(budget.key()) {
            let ledger = budget.ledger(work.id, &execution.scope, now);
            let before = if used == Amount::ZERO { Amount::ZERO } else { tx.add_to_ledger(&ledger, used)? };
            vacant.insert((ledger, before, before.plus(used)));
        }
    }
    if usage.is_some() {
        for (unit, used) in units {
            remember(tx, work, unit, used)?;
        }
    }
    for budget in budgets {
        let (ledger, before, after) = &ledgers[&budget.key()];
        for crossing in budget.crossed(*before, *after) {
            let about = About { work, execution: Some(execution.id), used: *after };
            charged.announced |= publish(tx, active, proposed.take(), (budget, ledger, crossing), &about)?;
            charged.crossed += 1;
        }
    }
    tx.release_reservation(execution.id)?;
    charged.ready = offer(tx, active, &execution.scope)?;
    Ok(charged)
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

/// Whether a Work that is held by a budget no longer would be, by the configuration in force. The stretch of time in
/// which it was held is the one that counts: only an operator begins another one for it.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn is_raised(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    work: &Work,
    hold: &Hold,
) -> Result<bool, StoreError> {
    // The budgets of a scope that is gone are not; what else keeps its Works is said by another list.
    let Some(scope) = active.scope(&work.scope) else { return Ok(true) };
    let standings = standings(tx, &scope.scope.budgets, (work.id, &work.scope), hold.since)?;
    Ok(standings.iter().all(|standing| standing.used < standing.budget.limit))
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

/// Publishes a crossing, once. It begins a chain, so that no chain's bounds can keep it from being said. True when
/// the routing stage has something to do about it.
///
/// # Errors
/// [`StoreError`].
fn publish(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    proposed: EventId,
    (budget, ledger, crossing): (&Budget, &LedgerId, Crossing),
    about: &About<'_>,
) -> Result<bool, StoreError> {
    let (source, delivery_id) = (SourceName::known(CORE_SOURCE), crossing.delivery(ledger, budget));
    if tx.event_of_delivery(&source, &delivery_id)?.is_some() {
        return Ok(false);
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
    if !tx.insert_event(&event, &delivery.payload)? {
        return Err(StoreError::Conflict { what: "a delivery that is both there and not" });
    }
    announce::leave(tx, active, &event)
}
