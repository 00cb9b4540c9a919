//! From what is written to what it declares: text becomes names, and a list line a definition or a removal.
//!
//! Each place keeps its index, so that problems the domain finds later point into the file.

use std::time::Duration;

use domain::budget::{Amount, Budget, Per, WARNING_PERCENT, Window};
use domain::config::{
    BindingConfig, Ceilings, Configuration, EntryConfig, Item, RouteConfig, ScopeConfig, SettingsPatch,
};
use domain::intent::ErrorFallback;
use domain::retry::{HINT_MAX, OwnRetry};
use domain::route::{ActivePolicy, Fallback, Fallbacks};
use domain::scope::SecretRef;
use domain::text::TextError;

use super::model::{self, Model, or_empty};
use super::problem::{Problem, suggestion};

/// What a model declares about scopes.
///
/// # Errors
/// Every name that is not one, every key that a line lacks, and every policy that does not exist.
pub(crate) fn lower(model: &Model) -> Result<Configuration, Vec<Problem>> {
    let mut lowering = Lowering { problems: Vec::new() };
    let scopes = model
        .scopes
        .iter()
        .enumerate()
        .filter_map(|(index, scope)| lowering.scope(&format!("scopes[{index}]"), scope))
        .collect();
    if lowering.problems.is_empty() { Ok(Configuration { scopes }) } else { Err(lowering.problems) }
}

/// Lowers item by item. What it returns for something that is wrong does not matter: a problem is recorded, and
/// then the whole is refused.
struct Lowering {
    problems: Vec<Problem>,
}

impl Lowering {
    fn name<T: std::str::FromStr<Err = TextError>>(&mut self, path: String, text: &str) -> Option<T> {
        match text.parse() {
            Ok(name) => Some(name),
            Err(error) => {
                self.problems.push(Problem::new(path, "invalid_name", error.to_string()));
                None
            }
        }
    }

    fn required<'a>(&mut self, path: &str, key: &str, text: Option<&'a String>) -> Option<&'a str> {
        if text.is_none() {
            let message = format!("the key `{key}` is missing");
            self.problems.push(Problem::new(path, "missing_key", message));
        }
        text.map(String::as_str)
    }

    /// Whether a disabling line is nothing else. A definition with `disabled = true` would be ambiguous.
    fn is_only_disabled(&mut self, path: &str, is_bare: bool) -> bool {
        if !is_bare {
            let message = "a line with `disabled = true` takes an inherited one away and has only a name besides; \
                           remove the other keys, or the line";
            self.problems.push(Problem::new(path, "disabled_with_keys", message));
        }
        is_bare
    }

    fn scope(&mut self, path: &str, scope: &model::Scope) -> Option<ScopeConfig> {
        let name = self.name(format!("{path}.name"), &scope.name);
        let parent = scope.parent.as_ref().map(|text| self.name(format!("{path}.parent"), text));
        let bindings: Vec<_> = indexed(path, "bindings", &scope.bindings)
            .filter_map(|(at, binding)| self.binding(&at, binding))
            .collect();
        let routes: Vec<_> =
            indexed(path, "routes", &scope.routes).filter_map(|(at, route)| self.route(&at, route)).collect();
        let extensions: Vec<_> = indexed(path, "extensions", &scope.extensions)
            .filter_map(|(at, entry)| self.entry(&at, entry))
            .collect();
        let read_scopes: Vec<_> = indexed(path, "read_scopes", &scope.read_scopes)
            .filter_map(|(at, name)| self.name(at, name))
            .collect();
        let write_scopes: Vec<_> = indexed(path, "write_scopes", &scope.write_scopes)
            .filter_map(|(at, name)| self.name(at, name))
            .collect();
        let budgets: Vec<_> = indexed(path, "budgets", &scope.budgets)
            .filter_map(|(at, declared)| self.budget(&at, declared))
            .collect();
        let secrets = scope.secrets.iter().map(|(name, at)| (name.clone(), SecretRef(at.clone()))).collect();
        Some(ScopeConfig {
            name: name?,
            parent: parent.flatten(),
            disabled: scope.disabled,
            settings: settings(&scope.settings),
            ceilings: ceilings(&scope.ceilings),
            routes,
            bindings,
            extensions,
            secrets,
            read_scopes,
            write_scopes,
            budgets,
        })
    }

    fn binding(&mut self, path: &str, binding: &model::Binding) -> Option<domain::config::BindingItem> {
        let name = self.name(format!("{path}.name"), &binding.name);
        if binding.disabled {
            let bare = model::Binding { name: binding.name.clone(), disabled: true, ..Default::default() };
            return self.is_only_disabled(path, *binding == bare).then_some(Item::Disable(name?));
        }
        let executor = self.required(path, "executor", binding.executor.as_ref());
        let executor = executor.and_then(|text| self.name(format!("{path}.executor"), text));
        Some(Item::Define(BindingConfig {
            name: name?,
            executor: executor?,
            config: or_empty(binding.config.as_ref()),
            resource: binding.resource.as_ref().map(model::Resource::to_value),
            timeout_seconds: binding.timeout_seconds,
            inactivity_seconds: binding.inactivity_seconds,
            retry: binding.retry.as_ref().and_then(|retry| self.retry(path, retry)),
            credential: match &binding.credential {
                None => None,
                Some(text) => Some(self.name(format!("{path}.credential"), text)?),
            },
            secrets: binding.secrets.clone(),
        }))
    }

    // Spec: RET-14
    fn retry(&mut self, path: &str, retry: &model::Retry) -> Option<OwnRetry> {
        let backoff = match retry.backoff.as_deref() {
            None => Some(OwnRetry::BACKOFF),
            Some(text) => duration(text).filter(|time| !time.is_zero() && *time <= HINT_MAX),
        };
        if backoff.is_none() {
            let message = "is not a wait from a second to 7 days; write it as `30s`, `5m`, `2h` or `1d`";
            self.problems.push(Problem::new(format!("{path}.retry.backoff"), "invalid_duration", message));
        }
        Some(OwnRetry { attempts: retry.attempts, backoff: backoff? })
    }

    fn route(&mut self, path: &str, route: &model::Route) -> Option<domain::config::RouteItem> {
        let name = self.name(format!("{path}.name"), &route.name);
        if route.disabled {
            let bare = model::Route { name: route.name.clone(), disabled: true, ..Default::default() };
            return self.is_only_disabled(path, *route == bare).then_some(Item::Disable(name?));
        }
        let handler = self.required(path, "handler", route.handler.as_ref());
        let handler = handler.and_then(|text| self.name(format!("{path}.handler"), text));
        let binding = route.binding.as_ref().map(|text| self.name(format!("{path}.binding"), text));
        let active_policy = self.policy(path, route.active_policy.as_deref());
        let fallbacks = self.fallbacks(path, route, active_policy);
        Some(Item::Define(RouteConfig {
            name: name?,
            handler: handler?,
            binding: binding.flatten(),
            active_policy: active_policy?,
            fallbacks,
            config: or_empty(route.config.as_ref()),
        }))
    }

    fn entry(&mut self, path: &str, entry: &model::Entry) -> Option<domain::config::EntryItem> {
        let name = self.name(format!("{path}.name"), &entry.name);
        if entry.disabled {
            let bare = model::Entry { name: entry.name.clone(), disabled: true, ..Default::default() };
            return self.is_only_disabled(path, *entry == bare).then_some(Item::Disable(name?));
        }
        let entry_type = self.required(path, "type", entry.kind.as_ref());
        Some(Item::Define(EntryConfig {
            name: name?,
            entry_type: entry_type?.to_owned(),
            secret_names: entry.secret_names.clone(),
            config: or_empty(entry.config.as_ref()),
        }))
    }

    fn budget(&mut self, path: &str, declared: &model::Budget) -> Option<Budget> {
        let unit = self.name(format!("{path}.unit"), &declared.unit);
        let per = self.word(format!("{path}.per"), Per::of_word(&declared.per), "`work`, `scope` or `all`");
        let window = Window::of_word(&declared.window);
        let window = self.word(format!("{path}.window"), window, "`life`, `day` or `week`");
        // A number's own text, so that no binary fraction stands in between.
        let limit: Option<Amount> = declared.limit.to_string().parse().ok();
        let limit = self.word(format!("{path}.limit"), limit, "a number with at most three decimals");
        let warning_percent = declared.warning_percent.unwrap_or(WARNING_PERCENT);
        Some(Budget { unit: unit?, per: per?, window: window?, limit: limit?, warning_percent })
    }

    fn word<T>(&mut self, path: String, read: Option<T>, expected: &str) -> Option<T> {
        if read.is_none() {
            self.problems.push(Problem::new(path, "invalid_budget", format!("must be {expected}")));
        }
        read
    }

    // Spec: unsupported_policy_explicit_fallback
    fn policy(&mut self, path: &str, policy: Option<&str>) -> Option<ActivePolicy> {
        let Some(written) = policy else { return Some(ActivePolicy::Queue) };
        if let Some(known) = POLICIES.into_iter().find(|known| known.as_str() == written) {
            return Some(known);
        }
        let message = if written == "coalesce" {
            "there is no such policy: whatever `queue` holds goes to the next attempt together; use `queue`"
                .to_owned()
        } else {
            let hint = suggestion(written, POLICIES.map(ActivePolicy::as_str));
            format!("there is no such policy; use `queue`, `inject`, `interrupt` or `drop`{hint}")
        };
        self.problems.push(Problem::new(format!("{path}.active_policy"), "unsupported_policy", message));
        None
    }

    /// What takes a policy's place. Each is a policy that every executor can do, or they could go in a circle.
    fn fallbacks(&mut self, path: &str, route: &model::Route, policy: Option<ActivePolicy>) -> Fallbacks {
        let mut fallbacks = Fallbacks::default();
        for (key, written) in [("fallback", &route.fallback), ("on_error", &route.on_error)] {
            let Some(written) = written else { continue };
            let at = format!("{path}.{key}");
            if policy.is_some_and(|policy| policy.order().is_none()) {
                let message = format!("only `inject` and `interrupt` can need `{key}`; remove it");
                self.problems.push(Problem::new(at, "needless_fallback", message));
                continue;
            }
            match (key, written.as_str()) {
                ("fallback", "queue") => fallbacks.unsupported = Some(Fallback::Queue),
                ("fallback", "drop") => fallbacks.unsupported = Some(Fallback::Drop),
                ("on_error", "queue") => fallbacks.on_error = Some(ErrorFallback::Queue),
                (_, "inject" | "interrupt") => {
                    let message = "a fallback must not need one itself, or they go in a circle; use `queue`";
                    self.problems.push(Problem::new(at, "fallback_cycle", message));
                }
                ("on_error", "drop") => {
                    let message = "what is ordered of a run is its Work's input already and cannot be dropped; use \
                                   `queue`, or leave it out to try again";
                    self.problems.push(Problem::new(at, "unsupported_fallback", message));
                }
                (_, other) => {
                    let hint = suggestion(other, ["queue", "drop"]);
                    let known = if key == "fallback" { "`queue` or `drop`" } else { "`queue`" };
                    let message = format!("there is no such fallback; use {known}{hint}");
                    self.problems.push(Problem::new(at, "unsupported_fallback", message));
                }
            }
        }
        fallbacks
    }
}

/// A time as `30s`, `5m`, `2h` or `1d`.
fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        _other => return None,
    };
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.parse::<u64>().ok().filter(|_number| is_plain)?;
    Some(Duration::from_secs(number.checked_mul(seconds)?))
}
/// Every policy.
const POLICIES: [ActivePolicy; 4] =
    [ActivePolicy::Queue, ActivePolicy::Inject, ActivePolicy::Interrupt, ActivePolicy::Drop];

fn indexed<'a, T>(path: &str, list: &str, items: &'a [T]) -> impl Iterator<Item = (String, &'a T)> {
    let list = format!("{path}.{list}");
    items.iter().enumerate().map(move |(index, item)| (format!("{list}[{index}]"), item))
}

const fn settings(settings: &model::Settings) -> SettingsPatch {
    SettingsPatch {
        timeout_seconds: settings.timeout_seconds,
        inactivity_seconds: settings.inactivity_seconds,
        concurrency: settings.concurrency,
        kept_executions: settings.kept_executions,
        kept_finished_days: settings.kept_finished_days,
        causal_max_depth: settings.causal_max_depth,
        causal_per_minute: settings.causal_per_minute,
        failure_budget: settings.failure_budget,
        terminal_on_exhaustion: settings.terminal_on_exhaustion,
    }
}

const fn ceilings(ceilings: &model::Ceilings) -> Ceilings {
    Ceilings {
        timeout_seconds: ceilings.timeout_seconds,
        concurrency: ceilings.concurrency,
        causal_max_depth: ceilings.causal_max_depth,
        causal_per_minute: ceilings.causal_per_minute,
        failure_budget: ceilings.failure_budget,
    }
}
