//! Ledgers of budgets, what running turns have reserved, and what turns of a kind usually use.

use std::collections::BTreeMap;

use crate::budget::{Amount, LedgerId};
use crate::id::{Epoch, ExecutionId};
use crate::store::StoreError;
use crate::text::{ReportId, ScopeName, Unit, WorkKind};

/// Reading ledgers.
pub trait BudgetReads {
    /// What has been used; nothing where the ledger has no row yet.
    fn ledger(&mut self, id: &LedgerId) -> Result<Amount, StoreError>;

    /// What running turns have reserved of a unit, in a scope or in all. A turn that is over reserves nothing,
    /// whatever rows it left.
    fn reserved(&mut self, unit: &Unit, scope: Option<&ScopeName>) -> Result<Amount, StoreError>;

    /// What an Execution's turn has reserved, by unit.
    fn reservation(&mut self, execution: ExecutionId) -> Result<BTreeMap<Unit, Amount>, StoreError>;

    /// What an Execution's turn has reported of its use while it went on, by unit, as long as no result holds it.
    fn metered(&mut self, execution: ExecutionId) -> Result<BTreeMap<Unit, Amount>, StoreError>;

    /// What the newest turns of a kind used of a unit, newest first; at most
    /// [`crate::budget::ESTIMATED_FROM`].
    fn recent_use(&mut self, kind: &WorkKind, unit: &Unit) -> Result<Vec<Amount>, StoreError>;
}

/// Writing ledgers.
pub trait BudgetWrites {
    /// Adds to a ledger. Returns what it had held before.
    fn add_to_ledger(&mut self, id: &LedgerId, amount: Amount) -> Result<Amount, StoreError>;

    /// Reserves for an Execution's turn, in place of what it had reserved of that unit.
    fn reserve(
        &mut self,
        execution: ExecutionId,
        scope: &ScopeName,
        unit: &Unit,
        amount: Amount,
    ) -> Result<(), StoreError>;

    /// Gives back what an Execution's turn had reserved. False when that was nothing.
    fn release_reservation(&mut self, execution: ExecutionId) -> Result<bool, StoreError>;

    /// Notes a report of a turn's use under its name, and counts it in [`crate::execution::Turn::reports`]. False
    /// when the turn has made it before.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the Execution is not at that epoch, or does not run.
    fn insert_report(&mut self, id: ExecutionId, epoch: Epoch, report: &ReportId)
    -> Result<bool, StoreError>;

    /// Writes what a turn has reported of a unit so far.
    fn put_metered(&mut self, execution: ExecutionId, unit: &Unit, amount: Amount) -> Result<(), StoreError>;

    /// Forgets the names of a turn's reports: it is over.
    fn forget_reports(&mut self, execution: ExecutionId) -> Result<(), StoreError>;

    /// Drops what a turn has reported: its result holds it.
    fn delete_metered(&mut self, execution: ExecutionId) -> Result<(), StoreError>;

    /// Writes what the newest turns of a kind used of a unit, newest first.
    fn put_recent_use(&mut self, kind: &WorkKind, unit: &Unit, recent: &[Amount]) -> Result<(), StoreError>;
}
