//! How large a configuration and its numbers may be, and the checks of those bounds.
//!
//! The bounds on settings keep a slip of the finger (a timeout in milliseconds) from becoming a behavior;
//! the bounds on counts keep one file from making every decision slow.

use std::ops::RangeInclusive;

use super::{BindingConfig, Ceilings, Item, Problem, ProblemCode, ScopeConfig, SettingsPatch};
use crate::scope::Settings;

/// The most scopes.
pub const SCOPES_MAX: usize = 1024;
/// The most scopes in one line of descent, the root included.
pub const SCOPE_DEPTH_MAX: usize = 16;
/// The most routes that may hold in one scope.
pub const ROUTES_MAX: usize = 256;
/// The most bindings that may hold in one scope.
pub const BINDINGS_MAX: usize = 256;
/// The most extension entries that may hold in one scope.
pub const ENTRIES_MAX: usize = 128;
/// The most secrets that may hold in one scope, or be selected by one entry or binding.
pub const SECRETS_MAX: usize = 256;
/// The most budgets that may hold in one scope.
pub const BUDGETS_MAX: usize = 32;
/// The most scopes one scope may read.
pub const READ_SCOPES_MAX: usize = 64;
/// Scopes that one scope may create Works in.
pub const WRITE_SCOPES_MAX: usize = 64;

/// Thirty days.
pub const TIMEOUT_SECONDS_MAX: u32 = 30 * 24 * 3600;
/// Thirty days.
pub const INACTIVITY_SECONDS_MAX: u32 = TIMEOUT_SECONDS_MAX;
/// The most attempts of one scope at once.
pub const CONCURRENCY_MAX: u32 = 10_000;
/// The most attempts of one Work that keep their content.
pub const KEPT_EXECUTIONS_MAX: u32 = 10_000;
/// A hundred years.
pub const KEPT_FINISHED_DAYS_MAX: u32 = 36_525;
/// The deepest chain that can be allowed.
pub const CAUSAL_DEPTH_MAX: u32 = 1024;
/// The most derived Events a minute that can be allowed.
pub const CAUSAL_PER_MINUTE_MAX: u32 = 100_000;
/// The most failures in a row that can be allowed.
pub const FAILURE_BUDGET_MAX: u32 = 100;

/// A setting that may have a ceiling: its name, and how to read it from each place.
pub(super) struct Bounded {
    pub(super) name: &'static str,
    most: u32,
    pub(super) declared: fn(&SettingsPatch) -> Option<u32>,
    pub(super) effective: fn(&Settings) -> u32,
    pub(super) ceiling: fn(&Ceilings) -> Option<u32>,
    pub(super) ceiling_mut: fn(&mut Ceilings) -> &mut Option<u32>,
}

macro_rules! bounded {
    ($($field:ident: $most:expr),+ $(,)?) => {
        &[$(Bounded {
            name: stringify!($field),
            most: $most,
            declared: |patch| patch.$field,
            effective: |settings| settings.$field,
            ceiling: |ceilings| ceilings.$field,
            ceiling_mut: |ceilings| &mut ceilings.$field,
        }),+]
    };
}

/// The settings that may have a ceiling.
pub(super) const BOUNDED: &[Bounded] = bounded![
    timeout_seconds: TIMEOUT_SECONDS_MAX,
    concurrency: CONCURRENCY_MAX,
    causal_max_depth: CAUSAL_DEPTH_MAX,
    causal_per_minute: CAUSAL_PER_MINUTE_MAX,
    failure_budget: FAILURE_BUDGET_MAX,
];

/// Checks every number and every list length that one scope declares.
pub(super) fn check(path: &str, scope: &ScopeConfig, problems: &mut Vec<Problem>) {
    for setting in BOUNDED {
        let bounds = 1..=setting.most;
        number(
            format!("{path}.settings.{}", setting.name),
            (setting.declared)(&scope.settings),
            &bounds,
            problems,
        );
        number(
            format!("{path}.ceilings.{}", setting.name),
            (setting.ceiling)(&scope.ceilings),
            &bounds,
            problems,
        );
    }
    let settings = &scope.settings;
    let unbounded = [
        ("inactivity_seconds", settings.inactivity_seconds, 0..=INACTIVITY_SECONDS_MAX),
        ("kept_executions", settings.kept_executions, 1..=KEPT_EXECUTIONS_MAX),
        ("kept_finished_days", settings.kept_finished_days, 0..=KEPT_FINISHED_DAYS_MAX),
    ];
    for (name, declared, bounds) in unbounded {
        number(format!("{path}.settings.{name}"), declared, &bounds, problems);
    }
    for (index, item) in scope.bindings.iter().enumerate() {
        if let Item::Define(BindingConfig { timeout_seconds, inactivity_seconds, retry, secrets, .. }) = item
        {
            let at = format!("{path}.bindings[{index}]");
            number(format!("{at}.timeout_seconds"), *timeout_seconds, &(1..=TIMEOUT_SECONDS_MAX), problems);
            let quiet = 0..=INACTIVITY_SECONDS_MAX;
            number(format!("{at}.inactivity_seconds"), *inactivity_seconds, &quiet, problems);
            let attempts = retry.map(|retry| retry.attempts);
            number(format!("{at}.retry.attempts"), attempts, &(1..=FAILURE_BUDGET_MAX), problems);
            count(format!("{at}.secrets"), secrets.len(), SECRETS_MAX, problems);
        }
    }
    for (index, item) in scope.extensions.iter().enumerate() {
        if let Item::Define(entry) = item {
            let at = format!("{path}.extensions[{index}].secret_names");
            count(at, entry.secret_names.len(), SECRETS_MAX, problems);
        }
    }
    count(format!("{path}.read_scopes"), scope.read_scopes.len(), READ_SCOPES_MAX, problems);
    count(format!("{path}.write_scopes"), scope.write_scopes.len(), WRITE_SCOPES_MAX, problems);
}

fn number(path: String, declared: Option<u32>, bounds: &RangeInclusive<u32>, problems: &mut Vec<Problem>) {
    if declared.is_some_and(|number| !bounds.contains(&number)) {
        let message = format!("must be from {} to {}", bounds.start(), bounds.end());
        problems.push(Problem::new(path, ProblemCode::OutOfBounds, message));
    }
}

/// Adds a problem when a list has more than `most` entries.
pub(super) fn count(path: String, length: usize, most: usize, problems: &mut Vec<Problem>) {
    if length > most {
        problems.push(Problem::new(path, ProblemCode::TooMany, format!("may have at most {most} entries")));
    }
}
