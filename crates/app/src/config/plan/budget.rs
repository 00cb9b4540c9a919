//! How the budgets of a scope differ, in words.

use super::{ChangeKind, Plan};
use crate::config::model::{Budget, Scope};

impl Plan {
    pub(super) fn budgets(&mut self, before: &Scope, after: &Scope) {
        let name = &after.name;
        for budget in &after.budgets {
            let (what, words) = match before.budgets.iter().find(|old| same(old, budget)) {
                Some(old) if old == budget => continue,
                Some(old) if old.limit == budget.limit => {
                    (ChangeKind::Changed, format!("warns at {}", warning(budget)))
                }
                Some(old) => {
                    (ChangeKind::Changed, format!("has a limit of {}, before of {}", budget.limit, old.limit))
                }
                None => (ChangeKind::Added, format!("is new, with a limit of {}", budget.limit)),
            };
            self.add(
                path(name, budget),
                what,
                format!("scope `{name}`: the budget of {} {words}", of(budget)),
            );
        }
        for gone in before.budgets.iter().filter(|old| !after.budgets.iter().any(|kept| same(old, kept))) {
            let sentence = format!("scope `{name}`: the budget of {} is removed", of(gone));
            self.add(path(name, gone), ChangeKind::Removed, sentence);
        }
    }
}

/// Whether both limit the same.
fn same(one: &Budget, other: &Budget) -> bool {
    (&one.unit, &one.per, &one.window) == (&other.unit, &other.per, &other.window)
}

fn path(scope: &str, budget: &Budget) -> String {
    format!("scopes.{scope}.budgets.{}.{}.{}", budget.unit, budget.per, budget.window)
}

/// What it limits, as everywhere.
fn of(budget: &Budget) -> String {
    let whose = match budget.per.as_str() {
        "all" => "over all scopes",
        "work" => "per Work",
        _scope => "per scope",
    };
    let how_long = match budget.window.as_str() {
        "life" => "for life",
        "week" => "a week",
        _day => "a day",
    };
    format!("{} {whose} {how_long}", budget.unit)
}

fn warning(budget: &Budget) -> String {
    budget
        .warning_percent
        .map_or_else(|| "the usual share".to_owned(), |percent| format!("{percent} percent"))
}
