//! How the ledgers of budgets stand, for a Work and for a scope.

use domain::budget::{Amount, Budget, Per};
use domain::id::WorkId;
use domain::store::{Snapshot, StoreError};
use domain::text::ScopeName;
use domain::time::Timestamp;
use runtime::budget::standings;

use super::wire::BudgetBody;

/// The budgets that a Work is under.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn of_work(
    tx: &mut dyn Snapshot,
    budgets: &[Budget],
    work: (WorkId, &ScopeName),
) -> Result<Vec<BudgetBody>, StoreError> {
    let now = tx.now();
    let standings = standings(tx, budgets, work, now)?;
    Ok(standings.iter().map(|one| body(one.budget, Some((one.used, one.reserved)), now)).collect())
}

/// The budgets of a scope. Of one that each Work has by itself, only the limit is told.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn of_scope(
    tx: &mut dyn Snapshot,
    budgets: &[Budget],
    scope: &ScopeName,
) -> Result<Vec<BudgetBody>, StoreError> {
    let now = tx.now();
    let mut bodies = Vec::with_capacity(budgets.len());
    for budget in budgets {
        bodies.push(match budget.per {
            Per::Work => body(budget, None, now),
            Per::Scope | Per::All => {
                // Whose Work it is does not matter here.
                let nobody = (WorkId::from_number(0), scope);
                let standing = standings(tx, std::slice::from_ref(budget), nobody, now)?;
                let amounts = standing.first().map(|one| (one.used, one.reserved));
                body(budget, amounts, now)
            }
        });
    }
    Ok(bodies)
}

fn body(budget: &Budget, amounts: Option<(Amount, Amount)>, now: Timestamp) -> BudgetBody {
    BudgetBody {
        unit: budget.unit.to_string(),
        per: budget.per.as_str().to_owned(),
        window: budget.window.as_str().to_owned(),
        limit: budget.limit.to_string(),
        warning_percent: budget.warning_percent,
        used: amounts.map(|(used, _reserved)| used.to_string()),
        reserved: amounts.map(|(_used, reserved)| reserved.to_string()),
        resets_at: budget.window.end(now).map(|at| at.to_string()),
        is_used_up: amounts.is_some_and(|(used, _reserved)| used >= budget.limit),
    }
}
