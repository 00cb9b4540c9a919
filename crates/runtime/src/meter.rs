//! Metering: what a running attempt reports of its use is counted at once, and a limit holds in the middle of its
//! turn.
//!
//! *Reads* the attempt, and the ledgers of its budgets. *Decides* in `domain::budget::meter`. *Writes* the report,
//! what it adds to the ledgers, and, where a limit is reached, the end of the attempt and the hold of its Work, in
//! one transaction, so that a report counts once whatever is repeated. *Afterwards* tells the attempt of a warning,
//! or has what it had started stopped.

use std::collections::BTreeMap;

use domain::budget::meter::{self, REPORTS_MAX, ReportRefusal};
use domain::budget::{Amount, Crossing, Standing};
use domain::execution::Execution;
use domain::id::{Epoch, EventId, ExecutionId};
use domain::lease::Fenced;
use domain::outcome::{TurnResult, Usage};
use domain::store::{Priority, StoreError, Tx};
use domain::text::{ReportId, Unit};
use domain::work::{Hold, HoldReason, Work};
use extension::Notice;
use thiserror::Error;

use crate::budget::{self, Proposed, Use};
use crate::caught::caught;
use crate::generation::ActiveGeneration;
use crate::node::Runtime;
use crate::schedule;

/// Why a report of use had no effect.
#[derive(Debug, Error)]
pub enum MeterError {
    /// There is no such attempt.
    #[error("no run {0} exists")]
    Unknown(ExecutionId),
    /// The attempt has ended, or goes on under another epoch.
    #[error("what the run reports does not count any more: {0}")]
    Fenced(#[from] Fenced),
    /// The report is not one.
    #[error(transparent)]
    Refused(#[from] ReportRefusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a report of use came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metered {
    /// Whether it had been made before, and so counted nothing.
    pub repeated: bool,
    /// The budgets that are past their warning, in words.
    pub warnings: Vec<String>,
    /// The budget whose limit is reached, in words. The attempt has ended by it and is being stopped.
    pub exceeded: Option<String>,
}

impl Runtime {
    /// Counts what a running attempt reports of its use, under the attempt's own name for the report. Where that
    /// takes a ledger to its limit, the attempt ends and its Work is held; a report that is repeated answers as
    /// things stand and counts nothing.
    ///
    /// # Errors
    /// [`MeterError`]; then nothing has changed.
    pub async fn report_usage(
        &self,
        id: ExecutionId,
        epoch: Epoch,
        report: ReportId,
        usage: &[Usage],
    ) -> Result<Metered, MeterError> {
        meter::check_name(&report)?;
        let amounts = meter::amounts(usage)?;
        let body = move |tx: &mut dyn Tx, active: &ActiveGeneration, proposed: &mut Proposed<'_>| {
            count(tx, active, (id, epoch), (&report, &amounts), proposed)
        };
        // What is reported may cross thresholds, and so may the turn that ends by it.
        let counted = self.under_newest((Priority::High, "meter"), LEDGERS_OF_A_REPORT, body).await?;
        Ok(self.reported(id, counted))
    }

    /// Does what a report that was counted leaves to do, once it is committed.
    pub(crate) fn reported(&self, id: ExecutionId, counted: Counted) -> Metered {
        let Counted { answer: metered, crossed } = counted;
        self.metrics().budget_crossings.inc_by(crossed.len() as u64);
        if !crossed.is_empty() {
            self.hints().route.notify_one();
        }
        if metered.exceeded.is_some() {
            tracing::info!(execution = %id, "a run was ended by its budget");
            self.held().lose(id);
            self.hints().recover.notify_one();
            self.hints().stop.notify_one();
            self.hints().wake.notify_one();
            self.hints().schedule.notify_one();
        } else if crossed.contains(&Crossing::Warning) {
            self.notify(id, Notice { code: "budget_warning", text: metered.warnings.join("; ") });
        }
        self.hints().committed();
        metered
    }

    /// Tells a running attempt something, once and for what it is worth: it may not listen, and nothing repeats it.
    fn notify(&self, id: ExecutionId, notice: Notice) {
        let runtime = self.clone();
        self.spawn(async move {
            let Ok(Some(execution)) = runtime.store().read("meter.read", move |tx| tx.execution(id)).await
            else {
                return;
            };
            if let Ok(equipment) = runtime.equip(&execution).await {
                let segment = Self::segment(&execution, &equipment);
                if caught(equipment.executor.notify(segment, notice)).await.is_err() {
                    tracing::error!(execution = %id, "an executor failed by a bug at taking a notice");
                }
            }
        });
    }
}

/// For how many times the budgets of a turn a report may have to publish something: what it crosses itself, what the
/// turn crosses that ends by it, and that end.
pub(crate) const LEDGERS_OF_A_REPORT: usize = 3;

/// What counting a report came to.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) answer: Metered,
    crossed: Vec<Crossing>,
}

/// Counts a report inside a transaction, for whoever has one open: the attempt and the epoch that it is made under, its
/// name and what it says. [`Runtime::reported`] does the rest after the commit.
///
/// # Errors
/// [`MeterError`]; then the transaction has to be undone.
pub(crate) fn count(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    attempt: (ExecutionId, Epoch),
    (report, amounts): (&ReportId, &BTreeMap<Unit, Amount>),
    proposed: &mut Proposed<'_>,
) -> Result<Counted, MeterError> {
    Step { active, report, amounts }.run(tx, attempt, proposed)
}

struct Step<'a> {
    active: &'a ActiveGeneration,
    report: &'a ReportId,
    amounts: &'a BTreeMap<Unit, Amount>,
}

impl Step<'_> {
    fn run(
        &self,
        tx: &mut dyn Tx,
        (id, epoch): (ExecutionId, Epoch),
        proposed: &mut Proposed<'_>,
    ) -> Result<Counted, MeterError> {
        let read = tx.execution(id)?.ok_or(MeterError::Unknown(id))?;
        read.authorize_call(epoch, tx.now())?;
        if read.turn.reports >= REPORTS_MAX {
            return Err(ReportRefusal::Exhausted.into());
        }
        let corrupt = || StoreError::Corrupt { table: "execution", reason: "names no work".to_owned() };
        let work = tx.work(read.work)?.ok_or_else(corrupt)?;
        let mut done = Counted::default();
        if tx.insert_report(id, epoch, self.report)? {
            let mut sums = tx.metered(id)?;
            for (unit, amount) in self.amounts {
                let sum = sums.entry(unit.clone()).or_default();
                *sum = sum.plus(*amount);
                tx.put_metered(id, unit, *sum)?;
            }
            done.crossed = budget::meter(tx, self.active, (&work, &read), self.amounts, proposed)?;
        } else {
            done.answer.repeated = true;
        }
        self.stand(tx, (&work, &read), proposed, &mut done)?;
        Ok(done)
    }

    /// Says how the budgets stand, and ends the attempt where one is used up.
    fn stand(
        &self,
        tx: &mut dyn Tx,
        (work, read): (&Work, &Execution),
        proposed: &mut Proposed<'_>,
        done: &mut Counted,
    ) -> Result<(), StoreError> {
        let Some(scope) = self.active.scope(&work.scope) else { return Ok(()) };
        let now = tx.now();
        let standings = budget::standings(tx, &scope.scope.budgets, (work.id, &work.scope), now)?;
        done.answer.warnings =
            standings.iter().filter(|one| one.is_past_warning()).map(Standing::words).collect();
        let Some(full) = meter::stops(&standings, read.turn.let_through) else { return Ok(()) };
        let reason = full.budget.reason(full.used);
        let event = budget::said(tx, self.active, (work, read.id), full, proposed)?;
        end(tx, self.active, (work, read), (event, &reason), proposed)?;
        budget::arm_lift(tx, work, full.budget, proposed.timer())?;
        done.answer.exceeded = Some(reason);
        Ok(())
    }
}

/// Ends an attempt in the middle of its turn by a budget, and holds its Work.
fn end(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    (work, read): (&Work, &Execution),
    (event, reason): (EventId, &str),
    proposed: &mut Proposed<'_>,
) -> Result<(), StoreError> {
    let now = tx.now();
    let ended = read.clone().interrupt(event, now).expect("what is authorized has not ended");
    let hold = Hold { because: HoldReason::Budget, reason: reason.to_owned(), since: now };
    let next = work.clone().stop_and_hold(read.id, read.trigger_sequence, hold, now);
    let next = next.expect("the live attempt is its Work's own");
    tx.update_execution(&ended, read)?;
    cut_off(tx, active, (work, read), proposed)?;
    tx.update_work(&next, work)?;
    schedule::room_freed(tx, &work.scope, 1)?;
    budget::offer(tx, active, &work.scope)?;
    Ok(())
}

/// Counts a turn that was cut off. What it had reported on the way counts already, and stays with the attempt, since
/// there will be no result to hold it.
///
/// # Errors
/// [`StoreError`] undoes the end of the turn with it.
pub(crate) fn cut_off(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    (work, read): (&Work, &Execution),
    proposed: &mut Proposed<'_>,
) -> Result<(), StoreError> {
    if read.turn.reports > 0 {
        tx.forget_reports(read.id)?;
    }
    budget::charge(tx, active, (work, read), Use::Counted, proposed).map(drop)
}

/// A result with what was reported on the way, which it then holds. What was reported is returned as well, for the
/// ledgers have it already.
///
/// # Errors
/// [`StoreError`] undoes the end of the turn with it.
pub(crate) fn settled(
    tx: &mut dyn Tx,
    read: &Execution,
    result: &mut TurnResult,
) -> Result<BTreeMap<Unit, Amount>, StoreError> {
    if read.turn.reports == 0 {
        return Ok(BTreeMap::new());
    }
    let metered = tx.metered(read.id)?;
    result.usage = meter::of_whole_turn(&result.usage, &metered);
    tx.delete_metered(read.id)?;
    tx.forget_reports(read.id)?;
    Ok(metered)
}

/// What an attempt has used so far that is in no result: of one that goes on, or was stopped.
///
/// # Errors
/// [`StoreError`].
pub fn so_far(
    tx: &mut (impl domain::store::Snapshot + ?Sized),
    execution: &Execution,
) -> Result<Vec<Usage>, StoreError> {
    if execution.turn.reports == 0 {
        return Ok(Vec::new());
    }
    Ok(meter::of_whole_turn(&[], &tx.metered(execution.id)?))
}
