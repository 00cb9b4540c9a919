//! Inheritance of budgets: a scope is under its own and those above it.
//!
//! A budget is a bound, so the same one declared below can only lower its limit, and none can be taken away. What
//! makes two budgets the same is what they limit: unit, whose use, over which time.

use super::limits::{self, BUDGETS_MAX};
use super::{Problem, ProblemCode};
use crate::budget::{Amount, Budget};

/// Adds the budgets that a scope declares to those that it inherits.
pub(super) fn apply(
    inherited: &mut Vec<Budget>,
    declared: &[Budget],
    path: &str,
    problems: &mut Vec<Problem>,
) {
    let above = inherited.clone();
    for (index, budget) in declared.iter().enumerate() {
        let at = format!("{path}[{index}]");
        check(&at, budget, problems);
        if declared[..index].iter().any(|earlier| earlier.key() == budget.key()) {
            let message = "an earlier one in this list limits the same; a unit has one budget per \
                           `per` and `window`";
            problems.push(Problem::new(at, ProblemCode::DuplicateName, message));
            continue;
        }
        if let Some(limit) = above.iter().find(|one| one.key() == budget.key()).map(|one| one.limit)
            && budget.limit > limit
        {
            let message = format!("must not be above the inherited limit of {limit}");
            problems.push(Problem::new(format!("{at}.limit"), ProblemCode::AboveCeiling, message));
        }
        match inherited.iter_mut().find(|one| one.key() == budget.key()) {
            Some(slot) => *slot = budget.clone(),
            None => inherited.push(budget.clone()),
        }
    }
    limits::count(path.to_owned(), inherited.len(), BUDGETS_MAX, problems);
}

fn check(path: &str, budget: &Budget, problems: &mut Vec<Problem>) {
    if budget.limit == Amount::ZERO || budget.limit > Amount::CONFIGURED_MAX {
        let message = format!("must be above 0 and at most {}", Amount::CONFIGURED_MAX);
        problems.push(Problem::new(format!("{path}.limit"), ProblemCode::OutOfBounds, message));
    }
    if !(1..=100).contains(&budget.warning_percent) {
        let message = "must be from 1 to 100";
        problems.push(Problem::new(format!("{path}.warning_percent"), ProblemCode::OutOfBounds, message));
    }
}

#[cfg(test)]
mod tests {
    use crate::budget::{Amount, Budget, Per, Window};
    use crate::config::{Configuration, Problem, ProblemCode, ScopeConfig, resolve};
    use crate::text::{ScopeName, Unit};

    fn budget(unit: &str, limit: i64) -> Budget {
        Budget {
            unit: Unit::known(unit),
            per: Per::Scope,
            window: Window::Day,
            limit: Amount::of_thousandths(limit),
            warning_percent: 80,
        }
    }

    fn scope(name: &str, parent: Option<&str>, budgets: Vec<Budget>) -> ScopeConfig {
        let scope = ScopeConfig::new(ScopeName::known(name), parent.map(ScopeName::known));
        ScopeConfig { budgets, ..scope }
    }

    fn found(scopes: Vec<ScopeConfig>) -> Vec<(String, ProblemCode)> {
        let problems: Vec<Problem> = resolve(&Configuration { scopes }).unwrap_err();
        problems.into_iter().map(|problem| (problem.path, problem.code)).collect()
    }

    #[test]
    fn a_budget_is_inherited_and_below_it_only_lowered() {
        let scopes = vec![
            scope("top", None, vec![budget("usd", 10), budget("tokens", 9)]),
            scope("low", Some("top"), vec![budget("usd", 4), budget("turns", 2)]),
        ];
        let scopes = resolve(&Configuration { scopes }).unwrap();
        let limits = |name| scopes[&ScopeName::known(name)].budgets.clone();
        assert_eq!(limits("top"), [budget("usd", 10), budget("tokens", 9)]);
        assert_eq!(limits("low"), [budget("usd", 4), budget("tokens", 9), budget("turns", 2)]);
        let raised = vec![
            scope("top", None, vec![budget("usd", 10)]),
            scope("low", Some("top"), vec![budget("usd", 11)]),
        ];
        assert_eq!(found(raised), [("scopes[1].budgets[0].limit".to_owned(), ProblemCode::AboveCeiling)]);
        let other = Budget { window: Window::Week, ..budget("usd", 11) };
        let apart = vec![scope("top", None, vec![budget("usd", 10)]), scope("low", Some("top"), vec![other])];
        assert!(resolve(&Configuration { scopes: apart }).is_ok(), "another window is another budget");
    }

    #[test]
    fn a_budget_has_bounds_and_is_declared_once() {
        let zero = Budget { warning_percent: 101, ..budget("usd", 0) };
        let at = |rest: &str| format!("scopes[0].budgets{rest}");
        assert_eq!(
            found(vec![scope("top", None, vec![zero])]),
            [
                (at("[0].limit"), ProblemCode::OutOfBounds),
                (at("[0].warning_percent"), ProblemCode::OutOfBounds),
            ]
        );
        let twice = vec![budget("usd", 1), budget("usd", 1)];
        assert_eq!(found(vec![scope("top", None, twice)]), [(at("[1]"), ProblemCode::DuplicateName)]);
        let many = (0..33).map(|number| budget(&format!("unit{number}"), 1)).collect();
        assert_eq!(found(vec![scope("top", None, many)]), [(at(""), ProblemCode::TooMany)]);
    }
}
