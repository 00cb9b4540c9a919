//! Ledgers, what running turns have reserved, and what turns of a kind used lately.
//!
//! A reservation counts only while its Execution runs, so that nothing has to give it back: what a crash or an
//! applied configuration leaves behind is nothing to anybody.

use std::collections::BTreeMap;

use domain::budget::{Amount, ESTIMATED_FROM, LedgerId, Window};
use domain::id::{Epoch, ExecutionId};
use domain::store::{BudgetReads, BudgetWrites, StoreError};
use domain::text::{ReportId, ScopeName, Unit, WorkKind};

use crate::db::{Columns, Sql, int, text, time};
use crate::tx::Transaction;

static LEDGER: Sql = Sql::new(
    "read a ledger",
    "ledger",
    "SELECT used FROM ledger WHERE owner = $1 AND unit = $2 AND span = $3 AND start = $4",
);
static PUT_LEDGER: Sql = Sql::new(
    "add to a ledger",
    "ledger",
    "INSERT INTO ledger (owner, unit, span, start, used) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (owner, unit, span, start) DO UPDATE SET used = excluded.used",
);
static RESERVED: Sql = Sql::new(
    "add up what a scope has reserved",
    "reservation",
    "SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT)
     FROM reservation JOIN execution ON execution.id = reservation.execution
     WHERE reservation.unit = $1 AND reservation.scope = $2 AND execution.state < 3
        AND execution.outcome IS NULL",
);
static RESERVED_OVERALL: Sql = Sql::new(
    "add up what is reserved",
    "reservation",
    "SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT)
     FROM reservation JOIN execution ON execution.id = reservation.execution
     WHERE reservation.unit = $1 AND execution.state < 3 AND execution.outcome IS NULL",
);
static RESERVATION: Sql = Sql::new(
    "read what a run has reserved",
    "reservation",
    "SELECT unit, amount FROM reservation WHERE execution = $1 ORDER BY unit",
);
static RESERVE: Sql = Sql::new(
    "reserve for a run",
    "reservation",
    "INSERT INTO reservation (execution, unit, scope, amount) VALUES ($1, $2, $3, $4)
     ON CONFLICT (execution, unit) DO UPDATE SET amount = excluded.amount",
);
static RELEASE: Sql = Sql::new(
    "give back what a run has reserved",
    "reservation",
    "DELETE FROM reservation WHERE execution = $1",
);
static RECENT: Sql = Sql::new(
    "read what turns of a kind used",
    "recent_use",
    "SELECT amounts FROM recent_use WHERE kind = $1 AND unit = $2",
);
static PUT_RECENT: Sql = Sql::new(
    "note what a turn of a kind used",
    "recent_use",
    "INSERT INTO recent_use (kind, unit, amounts) VALUES ($1, $2, $3)
     ON CONFLICT (kind, unit) DO UPDATE SET amounts = excluded.amounts",
);

static METERED: Sql = Sql::new(
    "read what a run has reported of its use",
    "metered",
    "SELECT unit, amount FROM metered WHERE execution = $1 ORDER BY unit",
);
static METER: Sql = Sql::new(
    "add to what a run has reported of its use",
    "metered",
    "INSERT INTO metered (execution, unit, amount) VALUES ($1, $2, $3)
     ON CONFLICT (execution, unit) DO UPDATE SET amount = excluded.amount",
);
static UNMETER: Sql = Sql::new(
    "drop what a run has reported of its use",
    "metered",
    "DELETE FROM metered WHERE execution = $1",
);
static REPORT: Sql = Sql::new(
    "note a report of use",
    "usage_report",
    "INSERT INTO usage_report (execution, report) VALUES ($1, $2) ON CONFLICT (execution, report) DO NOTHING",
);
static COUNT_REPORT: Sql = Sql::new(
    "count a report of use",
    "execution",
    "UPDATE execution SET reports = reports + 1 WHERE id = $1 AND epoch = $2 AND state < 3",
);
static FORGET_REPORTS: Sql = Sql::new(
    "forget the names of a run's reports",
    "usage_report",
    "DELETE FROM usage_report WHERE execution = $1",
);

const fn span(window: Window) -> i64 {
    match window {
        Window::Life => 0,
        Window::Day => 1,
        Window::Week => 2,
    }
}

fn amount(columns: &mut Columns<'_>) -> Result<Amount, StoreError> {
    columns.int().map(Amount::of_thousandths)
}

fn recent(columns: &mut Columns<'_>) -> Result<Vec<Amount>, StoreError> {
    let stored: String = columns.text()?;
    let amounts = stored.split(',').filter(|part| !part.is_empty()).map(str::parse);
    let amounts: Result<Vec<i64>, _> = amounts.collect();
    let amounts = amounts.map_err(|_source| columns.corrupt("amounts that are none"))?;
    Ok(amounts.into_iter().map(Amount::of_thousandths).collect())
}

impl BudgetReads for Transaction<'_> {
    fn ledger(&mut self, id: &LedgerId) -> Result<Amount, StoreError> {
        let owner = id.owner.to_string();
        let values = [text(&owner), text(id.unit.as_str()), int(span(id.window)), time(id.start)];
        Ok(self.db.one(&LEDGER, &values, amount)?.unwrap_or_default())
    }

    fn reserved(&mut self, unit: &Unit, scope: Option<&ScopeName>) -> Result<Amount, StoreError> {
        let unit = text(unit.as_str());
        let sum = match scope {
            Some(scope) => self.db.one(&RESERVED, &[unit, text(scope.as_str())], amount)?,
            None => self.db.one(&RESERVED_OVERALL, &[unit], amount)?,
        };
        Ok(sum.unwrap_or_default())
    }

    fn reservation(&mut self, execution: ExecutionId) -> Result<BTreeMap<Unit, Amount>, StoreError> {
        let rows = self.db.many(&RESERVATION, &[int(execution.number())], |columns| {
            Ok((columns.text()?, amount(columns)?))
        })?;
        Ok(rows.into_iter().collect())
    }

    fn metered(&mut self, execution: ExecutionId) -> Result<BTreeMap<Unit, Amount>, StoreError> {
        let rows = self
            .db
            .many(&METERED, &[int(execution.number())], |columns| Ok((columns.text()?, amount(columns)?)))?;
        Ok(rows.into_iter().collect())
    }

    fn recent_use(&mut self, kind: &WorkKind, unit: &Unit) -> Result<Vec<Amount>, StoreError> {
        let values = [text(kind.as_str()), text(unit.as_str())];
        Ok(self.db.one(&RECENT, &values, recent)?.unwrap_or_default())
    }
}

impl BudgetWrites for Transaction<'_> {
    fn add_to_ledger(&mut self, id: &LedgerId, amount: Amount) -> Result<Amount, StoreError> {
        let before = self.ledger(id)?;
        let owner = id.owner.to_string();
        let values = [
            text(&owner),
            text(id.unit.as_str()),
            int(span(id.window)),
            time(id.start),
            int(before.plus(amount).thousandths()),
        ];
        self.db.write(&PUT_LEDGER, &values, 1)?;
        Ok(before)
    }

    fn reserve(
        &mut self,
        execution: ExecutionId,
        scope: &ScopeName,
        unit: &Unit,
        amount: Amount,
    ) -> Result<(), StoreError> {
        let values =
            [int(execution.number()), text(unit.as_str()), text(scope.as_str()), int(amount.thousandths())];
        self.db.write(&RESERVE, &values, 1)
    }

    fn release_reservation(&mut self, execution: ExecutionId) -> Result<bool, StoreError> {
        Ok(self.db.count(&RELEASE, &[int(execution.number())])? > 0)
    }

    fn insert_report(
        &mut self,
        id: ExecutionId,
        epoch: Epoch,
        report: &ReportId,
    ) -> Result<bool, StoreError> {
        if self.db.count(&REPORT, &[int(id.number()), text(report.as_str())])? == 0 {
            return Ok(false);
        }
        self.db.write(&COUNT_REPORT, &[int(id.number()), int(epoch.number())], 1)?;
        Ok(true)
    }

    fn put_metered(&mut self, execution: ExecutionId, unit: &Unit, amount: Amount) -> Result<(), StoreError> {
        self.db.write(&METER, &[int(execution.number()), text(unit.as_str()), int(amount.thousandths())], 1)
    }

    fn forget_reports(&mut self, execution: ExecutionId) -> Result<(), StoreError> {
        self.db.count(&FORGET_REPORTS, &[int(execution.number())]).map(drop)
    }

    fn delete_metered(&mut self, execution: ExecutionId) -> Result<(), StoreError> {
        self.db.count(&UNMETER, &[int(execution.number())]).map(drop)
    }

    fn put_recent_use(&mut self, kind: &WorkKind, unit: &Unit, recent: &[Amount]) -> Result<(), StoreError> {
        let newest = recent.iter().take(ESTIMATED_FROM).map(|amount| amount.thousandths().to_string());
        let stored = newest.collect::<Vec<_>>().join(",");
        self.db.write(&PUT_RECENT, &[text(kind.as_str()), text(unit.as_str()), text(&stored)], 1)
    }
}

#[cfg(test)]
mod tests {
    use super::{RESERVED, RESERVED_OVERALL};
    use crate::tables::plan::assert_uses;

    #[test]
    fn reservations_are_added_up_without_the_history() {
        for sql in [&RESERVED, &RESERVED_OVERALL] {
            assert_uses(sql, "reservation_unit");
        }
    }
}
