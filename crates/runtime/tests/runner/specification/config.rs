//! Configurations of the cases, as the runtime has them.

use std::collections::BTreeMap;

use domain::config::{BindingConfig, Configuration, Item, RouteConfig, ScopeConfig, SettingsPatch, resolve};
use domain::route::{ActivePolicy, Fallback, Fallbacks};
use domain::text::HandlerName;
use runtime::Scopes;
use serde_json::json;
use spec::driver::{Answer, BindingText, RouteText, ScopeText};

use super::scripted::executor_name;

/// Resolves what a case configures, or says why not.
pub(super) fn scopes(texts: &[ScopeText]) -> Result<Scopes, Answer> {
    let scopes = texts.iter().map(scope).collect::<Result<_, _>>()?;
    resolve(&Configuration { scopes })
        .map_err(|problems| Answer::Refused(problems[0].code.as_str().to_owned()))
}

fn scope(text: &ScopeText) -> Result<ScopeConfig, Answer> {
    Ok(ScopeConfig {
        settings: SettingsPatch {
            concurrency: Some(text.concurrency),
            failure_budget: Some(text.failure_budget),
            terminal_on_exhaustion: Some(text.terminal_on_exhaustion),
            causal_max_depth: Some(text.causal_max_depth),
            causal_per_minute: Some(text.causal_per_minute),
            ..SettingsPatch::NONE
        },
        routes: text.routes.iter().map(route).collect::<Result<_, _>>()?,
        bindings: text.bindings.iter().map(binding).collect(),
        read_scopes: text.reads.clone(),
        ..ScopeConfig::new(text.name.clone(), text.parent.clone())
    })
}

fn route(text: &RouteText) -> Result<Item<domain::text::RouteName, RouteConfig>, Answer> {
    let unknown = |_word| Answer::Refused("unknown_policy".to_owned());
    let active_policy: ActivePolicy = serde_json::from_value(json!(text.policy)).map_err(unknown)?;
    let unsupported: Option<Fallback> = serde_json::from_value(json!(text.fallback)).map_err(unknown)?;
    Ok(Item::Define(RouteConfig {
        name: text.name.clone(),
        handler: HandlerName::known("told"),
        binding: Some(text.binding.clone()),
        active_policy,
        fallbacks: Fallbacks { unsupported, on_error: None },
        config: json!({ "name": text.name, "takes": text.takes, "drops": text.drops }),
    }))
}

fn binding(text: &BindingText) -> Item<domain::text::BindingName, BindingConfig> {
    Item::Define(BindingConfig {
        name: text.name.clone(),
        executor: executor_name(&text.can),
        config: json!({ "label": text.label }),
        resource: None,
        timeout_seconds: None,
        inactivity_seconds: None,
        credential: None,
        retry: None,
        secrets: BTreeMap::new(),
    })
}
