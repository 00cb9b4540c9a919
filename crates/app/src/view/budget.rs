//! Budgets in words.

use super::time;
use crate::api::wire::BudgetBody;

/// What it limits, such as `usd per scope a day`.
pub(crate) fn name(budget: &BudgetBody) -> String {
    let whose = match budget.per.as_str() {
        "work" => "per Work",
        "scope" => "per scope",
        "all" => "over all scopes",
        // A later daemon may know more words.
        other => other,
    };
    let how_long = match budget.window.as_str() {
        "life" => "for life",
        "day" => "a day",
        "week" => "a week",
        other => other,
    };
    format!("{} {whose} {how_long}", budget.unit)
}

/// Each with how it stands.
pub(crate) fn all(budgets: &[BudgetBody]) -> Vec<(String, String)> {
    budgets.iter().map(|budget| (name(budget), standing(budget))).collect()
}

/// How it stands, in a phrase.
pub(crate) fn standing(budget: &BudgetBody) -> String {
    let Some(used) = &budget.used else { return format!("{} at most", budget.limit) };
    let reserved = budget.reserved.as_deref().filter(|reserved| *reserved != "0");
    let reserved = reserved.map(|reserved| format!(", {reserved} reserved")).unwrap_or_default();
    let used_up = if budget.is_used_up { ", used up" } else { "" };
    let anew = budget.resets_at.as_ref().map(|at| format!("; counted anew from {}", time::absolute(at)));
    format!("{used} of {}{reserved}{used_up}{}", budget.limit, anew.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::{BudgetBody, name, standing};

    fn budget(used: Option<&str>) -> BudgetBody {
        BudgetBody {
            unit: "usd".to_owned(),
            per: "scope".to_owned(),
            window: "day".to_owned(),
            limit: "10".to_owned(),
            warning_percent: 80,
            used: used.map(str::to_owned),
            reserved: used.map(|_used| "0".to_owned()),
            resets_at: None,
            is_used_up: false,
        }
    }

    #[test]
    fn a_budget_is_said_with_what_is_left_of_it() {
        assert_eq!(name(&budget(None)), "usd per scope a day");
        assert_eq!(standing(&budget(None)), "10 at most");
        assert_eq!(standing(&budget(Some("2.5"))), "2.5 of 10");
        let reserved = BudgetBody { reserved: Some("3".to_owned()), ..budget(Some("2.5")) };
        assert_eq!(standing(&reserved), "2.5 of 10, 3 reserved");
        let full = BudgetBody { is_used_up: true, ..budget(Some("10")) };
        assert_eq!(standing(&full), "10 of 10, used up");
    }
}
