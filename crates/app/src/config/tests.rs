use std::collections::BTreeSet;

use domain::text::{BindingName, ScopeName};
use proptest::prelude::{ProptestConfig, any, proptest};
use serde_json::{Value, json};

use super::sample::Sample;
use super::{Format, Listeners, Loaded, Problem, STARTER, canonical, load, load_model, read, schema};

const SECRET: &str = "S3CRET-hunter2";

#[track_caller]
fn loaded(text: &str, format: Format) -> Loaded {
    load(text, format, &Sample::new()).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

#[track_caller]
fn problems(text: &str, format: Format) -> Vec<Problem> {
    let found = load(text, format, &Sample::new()).expect_err("the file has a problem");
    assert!(!format!("{found:?}").contains(SECRET), "{found:#?}");
    found
}

/// Loads TOML and compares what is shown of its problems.
#[track_caller]
fn shows(text: &str, expected: &[&str]) {
    let shown: Vec<String> = problems(text, Format::Toml).iter().map(ToString::to_string).collect();
    assert_eq!(shown, expected);
}

#[track_caller]
fn has_codes(text: &str, expected: &[(usize, &str, &str)]) {
    let found = problems(text, Format::Toml);
    let found: Vec<(usize, &str, &str)> = found
        .iter()
        .map(|problem| (problem.line.unwrap_or(0), problem.path.as_str(), problem.code))
        .collect();
    assert_eq!(found, expected);
}

/// The starter with its commented examples in force.
fn starter_with_examples() -> String {
    STARTER
        .lines()
        .map(|line| {
            let inner = line.strip_prefix("# ").unwrap_or(line);
            let key = inner.split(" = ").next().unwrap_or_default();
            let is_key = inner.contains(" = ") && key.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            if inner.starts_with('[') || is_key { inner } else { line }
        })
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn the_starter_is_valid() {
    let loaded = loaded(STARTER, Format::Toml);
    let main = &loaded.scopes[&ScopeName::known("main")];
    assert_eq!(main.routes[0].binding, Some(BindingName::known("hello")));
    assert_eq!(Listeners::of(&loaded.model.daemon).unwrap().api.port(), 7717);
}

#[test]
fn the_examples_in_the_starter_are_valid() {
    let text = starter_with_examples();
    let loaded = loaded(&text, Format::Toml);
    let main = &loaded.scopes[&ScopeName::known("main")];
    assert_eq!((main.routes.len(), main.extensions.len()), (2, 2), "{text}");
    assert_eq!(Listeners::of(&loaded.model.daemon).unwrap().public_hosts, ["hooks.example.com"]);
}

#[test]
fn an_empty_file_is_a_configuration_without_scopes() {
    assert!(loaded("", Format::Toml).scopes.is_empty());
    assert!(loaded("{\"$schema\": \"conduit.schema.json\"}", Format::Json).scopes.is_empty());
}

/// A scope in JSON, with a schedule entry and its route written as users write them.
const SCHEDULE: &str = r#"{
  // Comments and trailing commas are fine.
  "scopes": [{
    "name": "eng",
    "secrets": {"hook": "env:HOOK"},
    "settings": {"timeout_seconds": 1800},
    "bindings": [
      {"name": "nightly-cmd", "executor": "shell", "config": {"command": "make nightly"}, "timeout_seconds": 600,
       "resource": {"provider": "git", "config": {"checkout": "/srv/site", "mode": "fresh"}}},
    ],
    "extensions": [
      {"name": "jobs", "type": "schedule", "secret_names": ["hook"], "config": {
        "namespace": "schedule/eng", "scope": "eng", "webhook_secret": "hook",
        "jobs": [
          {"name": "nightly", "cron": "0 2 * * *", "time_zone": "Europe/Paris"},
          {"name": "warm", "at": ["06:45"]},
          {"name": "beat", "every_minutes": 15},
          {"name": "site", "on": {"events": ["push"], "branches": ["main"], "paths": ["docs/**", "!docs/draft/**"]}},
          {"name": "broken", "on": {"events": ["check_suite.completed"], "conclusions": ["failure"]}},
          {"name": "ping", "on": {"webhook": true}},
          {"name": "asked"}
        ]}},
    ],
    "routes": [
      {"name": "jobs-nightly", "handler": "schedule", "binding": "nightly-cmd", "active_policy": "queue",
       "config": {"jobs": ["nightly"]}},
    ],
  }],
}"#;

#[test]
fn schedule_entries_and_routes_load_as_they_are_written() {
    let (model, _lines) = read(SCHEDULE, Format::Json).unwrap();
    assert_eq!(model.scopes[0].extensions[0].config.as_ref().unwrap()["jobs"][6], json!({"name": "asked"}));
    let loaded = load_model(model, &Sample::new()).unwrap_or_else(|problems| panic!("{problems:#?}"));
    let eng = &loaded.scopes[&ScopeName::known("eng")];
    let resource = eng.bindings.values().next().unwrap().resource.as_ref().unwrap();
    assert_eq!(resource["config"]["mode"], json!("fresh"));
    assert_eq!(eng.routes[0].config, json!({"jobs": ["nightly"]}));
    assert_eq!(eng.extensions.values().next().unwrap().secrets.len(), 1);
}

#[test]
fn a_resource_is_asked_of_its_provider_with_the_nearest_name() {
    #[track_caller]
    fn refuses(resource: &str, path: &str, code: &str, words: &str) {
        let text = format!(
            "[[scopes]]\nname = \"a\"\n[[scopes.bindings]]\nname = \"b\"\nexecutor = \"shell\"\n\
             config = {{ command = \"true\" }}\nresource = {resource}"
        );
        let problems = match read(&text, Format::Toml) {
            Ok((model, _lines)) => load_model(model, &Sample::new()).unwrap_err(),
            Err(problems) => problems,
        };
        let [problem] = problems.as_slice() else { panic!("{problems:#?}") };
        assert_eq!((problem.path.as_str(), problem.code), (path, code), "{problem:?}");
        assert!(problem.message.contains(words), "{problem:?}");
    }
    let at = "scopes[0].bindings[0].resource";
    refuses("{ provider = \"gti\" }", &format!("{at}.provider"), "unknown_provider", "`git`");
    refuses("{ provider = \"git\", confg = {} }", &format!("{at}.confg"), "unknown_key", "`config`");
    refuses("{ config = {} }", at, "missing_key", "`provider`");
    let config = |more: &str| format!("{{ provider = \"git\", config = {{ checkout = \"/x\", {more} }} }}");
    refuses(&config("mode = \"fersh\""), &format!("{at}.config.mode"), "extension_config", "`fresh`");
    refuses(
        &config("mode = \"fresh\", retain = 1"),
        &format!("{at}.config.retain"),
        "extension_config",
        "`retain_failed_seconds`",
    );
}

#[test]
fn both_formats_mean_the_same() {
    let toml = r#"
        [daemon]
        webhook_listen = "off"
        [[scopes]]
        name = "a"
        ceilings = { concurrency = 4 }
        settings.concurrency = 2
        [[scopes.routes]]
        name = "r"
        handler = "schedule"
        config = { x = [1, 2.5, true, "s"], y = {} }
        [[scopes]]
        name = "b"
        parent = "a"
        disabled = true
        routes = [{ name = "r", disabled = true }]
    "#;
    let json = r#"{"scopes": [
        {"settings": {"concurrency": 2}, "name": "a", "ceilings": {"concurrency": 4}, "parent": null,
         "routes": [{"handler": "schedule", "config": {"y": {}, "x": [1, 2.5, true, "s"]}, "name": "r"}]},
        {"name": "b", "parent": "a", "disabled": true, "routes": [{"name": "r", "disabled": true}]}
        ], "daemon": {"webhook_listen": "off"}}"#;
    let (toml, json) = (loaded(toml, Format::Toml), loaded(json, Format::Json));
    assert_eq!(canonical::canonical(&toml.model), canonical::canonical(&json.model));
    assert_eq!(toml.scopes, json.scopes);
    assert_eq!(Listeners::of(&toml.model.daemon).unwrap(), Listeners::of(&json.model.daemon).unwrap());
}

#[test]
fn canonical_is_stable_and_reads_back() {
    for model in [loaded(STARTER, Format::Toml).model, read(SCHEDULE, Format::Json).unwrap().0] {
        let text = canonical::canonical(&model);
        let again = canonical::parse(&text.text).unwrap();
        assert_eq!(again, model);
        assert_eq!(canonical::canonical(&again), text);
        assert_eq!(text.digest.len(), 64);
    }
    let empty = canonical::canonical(&super::Model::default());
    assert_eq!(empty.text, "{}");
    assert_eq!(empty.digest, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
}

#[test]
fn unknown_keys_are_refused_with_the_nearest_name_and_all_at_once() {
    shows(
        "[demon]\n[[scopes]]\nname = 'a'\n[scopes.settings]\ntimeout_second = 1\n[[scopes.bindings]]\nname = \
         'b'\nexcutor = 'S3CRET-hunter2'\n[[scopes.routes]]\nname = 'r'\nzzz = 1\n'S3CRET-hunter2 x' = 1\n",
        &[
            "line 1: demon: unknown key `demon`; did you mean `daemon`?",
            "line 5: scopes[0].settings.timeout_second: unknown key `timeout_second`; did you mean `timeout_seconds`?",
            "line 8: scopes[0].bindings[0].excutor: unknown key `excutor`; did you mean `executor`?",
            "line 9: scopes[0].routes[0]: unknown key, not shown as it does not look like one; known are `name`, \
             `disabled`, `handler`, `binding`, `active_policy`, `fallback`, `on_error`, `config`",
            "line 11: scopes[0].routes[0].zzz: unknown key `zzz`; known are `name`, `disabled`, `handler`, \
             `binding`, `active_policy`, `fallback`, `on_error`, `config`",
        ],
    );
}

#[test]
fn wrong_types_and_missing_keys_are_refused() {
    shows(
        "[daemon]\nbehind_proxy = 'S3CRET-hunter2'\n[[scopes]]\nparent = 1\nread_scopes = ['a', \
         2]\nsecrets.hook = 3\nroutes = 'S3CRET-hunter2'\nsettings.timeout_seconds = 2.5\nsettings.concurrency = \
         -1\nsettings.kept_executions = 4294967296\n",
        &[
            "line 2: daemon.behind_proxy: expected true or false, found a text",
            "line 3: scopes[0]: the key `name` is missing",
            "line 4: scopes[0].parent: expected a text, found a number",
            "line 5: scopes[0].read_scopes[1]: expected a text, found a number",
            "line 6: scopes[0].secrets.hook: expected a text, found a number",
            "line 7: scopes[0].routes: expected a list, found a text",
            "line 8: scopes[0].settings.timeout_seconds: expected a whole number, found a number",
            "line 9: scopes[0].settings.concurrency: expected a whole number that is not negative and fits 32 bits",
            "line 10: scopes[0].settings.kept_executions: expected a whole number that is not negative and fits 32 \
             bits",
        ],
    );
}

#[test]
fn names_and_lines_that_lack_something_are_refused() {
    has_codes(
        "[[scopes]]\nname = 'S3CRET-hunter2'\nparent = 'Main'\n[[scopes.bindings]]\nname = \
         'b'\n[[scopes.routes]]\nname = 'R'\n[[scopes.extensions]]\nname = 'e'\n[[scopes.routes]]\nname = \
         'x'\ndisabled = true\nbinding = 'b'\n",
        &[
            (2, "scopes[0].name", "invalid_name"),
            (3, "scopes[0].parent", "invalid_name"),
            (4, "scopes[0].bindings[0]", "missing_key"),
            (6, "scopes[0].routes[0]", "missing_key"),
            (7, "scopes[0].routes[0].name", "invalid_name"),
            (8, "scopes[0].extensions[0]", "missing_key"),
            (10, "scopes[0].routes[1]", "disabled_with_keys"),
        ],
    );
}

/// A scope with a binding on `executor` and a route to it, with these lines.
fn routing(executor: &str, lines: &str) -> String {
    let binding = if executor == "shell" { "config = { command = 'true' }" } else { "" };
    format!(
        "[[scopes]]\nname = 'a'\n[[scopes.bindings]]\nname = 'b'\nexecutor = '{executor}'\n{binding}\n[[scopes.routes]]\n\
         name = 'r'\nhandler = 'manual'\nbinding = 'b'\n{lines}\n"
    )
}

#[test]
fn a_binding_s_own_retries_are_read_with_their_wait() {
    let text = |retry: &str| {
        format!(
            "[[scopes]]\nname = 'a'\n[[scopes.bindings]]\nname = 'b'\nexecutor = 'shell'\nconfig.command = 'true'\nretry = {retry}\n"
        )
    };
    for (backoff, seconds) in [("30s", 30), ("5m", 300), ("2h", 7200), ("7d", 7 * 24 * 3600)] {
        let loaded = loaded(&text(&format!("{{ attempts = 3, backoff = '{backoff}' }}")), Format::Toml);
        let scope = loaded.scopes.values().next().unwrap();
        let retry = scope.bindings.values().next().unwrap().retry.unwrap();
        assert_eq!((retry.attempts, retry.backoff.as_secs()), (3, seconds), "{backoff}");
    }
    let usual = loaded(&text("{ attempts = 2 }"), Format::Toml);
    let usual = usual.scopes.values().next().unwrap().bindings.values().next().unwrap().retry.unwrap();
    assert_eq!(usual.backoff.as_secs(), 300);
    for backoff in ["0s", "8d", "5", "m", "+5m", "5 m", "1.5h", "99999999999999999999s", "é"] {
        let found = problems(&text(&format!("{{ attempts = 3, backoff = '{backoff}' }}")), Format::Toml);
        assert_eq!(found[0].code, "invalid_duration", "{backoff}");
    }
}

#[test]
fn only_the_policies_that_exist_are_accepted() {
    for policy in ["coalesce", "S3CRET-hunter2", "injct", "Interrupt"] {
        let found = problems(&routing("shell", &format!("active_policy = '{policy}'")), Format::Toml);
        assert_eq!((found[0].code, found[0].line), ("unsupported_policy", Some(11)), "{policy}");
        assert!(found[0].message.contains("use `queue`"), "{policy}");
    }
    let near = problems(&routing("shell", "active_policy = 'injct'"), Format::Toml);
    assert!(near[0].message.contains("did you mean `inject`?"), "{}", near[0]);
    for policy in ["queue", "inject", "interrupt", "drop"] {
        load(&routing("shell", &format!("active_policy = '{policy}'")), Format::Toml, &Sample::new())
            .unwrap();
    }
}

#[test]
fn a_policy_that_the_executor_cannot_do_needs_an_explicit_fallback() {
    for policy in ["inject", "interrupt"] {
        let lines = format!("active_policy = '{policy}'");
        let found = problems(&routing("plain", &lines), Format::Toml);
        assert_eq!((found[0].code, found[0].line), ("unsupported_policy", Some(11)), "{found:?}");
        assert!(
            found[0].message.contains("set `fallback`") && found[0].message.contains("`shell`"),
            "{}",
            found[0]
        );
        for fallback in ["queue", "drop"] {
            let text = routing("plain", &format!("{lines}\nfallback = '{fallback}'"));
            load(&text, Format::Toml, &Sample::new()).unwrap();
        }
        let bare =
            format!("[[scopes]]\nname = 'a'\n[[scopes.routes]]\nname = 'r'\nhandler = 'manual'\n{lines}\n");
        assert!(problems(&bare, Format::Toml)[0].message.contains("give it a `binding`"));
    }
    // A route that is inherited runs the binding of its own scope.
    let inherited = format!(
        "{}[[scopes]]\nname = 'c'\nparent = 'a'\n[[scopes.bindings]]\nname = 'b'\nexecutor = 'plain'\n",
        routing("shell", "active_policy = 'inject'")
    );
    let found = problems(&inherited, Format::Toml);
    assert_eq!((found.len(), found[0].code), (1, "unsupported_policy"), "{found:?}");
    assert!(found[0].path.starts_with("scopes[1]"), "{}", found[0]);
}

#[test]
fn fallbacks_neither_go_in_a_circle_nor_stand_without_need() {
    for (lines, code) in [
        ("active_policy = 'inject'\nfallback = 'interrupt'", "fallback_cycle"),
        ("active_policy = 'interrupt'\nfallback = 'interrupt'", "fallback_cycle"),
        ("active_policy = 'inject'\non_error = 'inject'", "fallback_cycle"),
        ("active_policy = 'inject'\nfallback = 'S3CRET-hunter2'", "unsupported_fallback"),
        ("active_policy = 'inject'\non_error = 'drop'", "unsupported_fallback"),
        ("active_policy = 'queue'\nfallback = 'drop'", "needless_fallback"),
        ("on_error = 'queue'", "needless_fallback"),
    ] {
        let found = problems(&routing("shell", lines), Format::Toml);
        assert_eq!((found.len(), found[0].code), (1, code), "{lines}: {found:?}");
    }
    load(&routing("shell", "active_policy = 'inject'\non_error = 'queue'"), Format::Toml, &Sample::new())
        .unwrap();
}

#[test]
fn what_the_domain_refuses_has_its_line() {
    has_codes(
        "[[scopes]]\nname = 'a'\nparent = 'b'\nread_scopes = [\n  'a',\n  'c',\n]\n[scopes.secrets]\nhook = \
         'S3CRET-hunter2'\n",
        &[
            (3, "scopes[0].parent", "unknown_parent"),
            (6, "scopes[0].read_scopes[1]", "unknown_scope"),
            (9, "scopes[0].secrets.hook", "not_a_secret_ref"),
        ],
    );
}

#[test]
fn extensions_judge_their_own_part() {
    shows(
        "[[scopes]]\nname = 'a'\n[[scopes.bindings]]\nname = 'b'\nexecutor = 'shel'\n[[scopes.routes]]\nname = \
         'r'\nhandler = 'mach'\n[[scopes.extensions]]\nname = 'e'\ntype = 'webhok'\n[[scopes.extensions]]\nname = \
         'f'\ntype = 'schedule'\nconfig.namespace = ''\n[[scopes.routes]]\nname = 's'\nhandler = 'slack'\n",
        &[
            "line 5: scopes[0].bindings[0].executor: there is no executor of that name; did you mean `shell`?",
            "line 8: scopes[0].routes[0].handler: there is no handler of that name; did you mean `match`?",
            "line 11: scopes[0].extensions[0].type: there is no type of entry of that name; did you mean `webhook`?",
            "line 15: scopes[0].extensions[1].config.namespace: a source must not be empty",
            "line 18: scopes[0].routes[1].handler: there is no handler of that name; known are `match`, `manual`, \
             `schedule`",
        ],
    );
    let found = problems(
        "[[scopes]]\nname = 'a'\n[[scopes.bindings]]\nname = 'b'\nexecutor = 'shell'\nconfig.comand = \
         'S3CRET-hunter2'\n",
        Format::Toml,
    );
    assert!(found.iter().all(|problem| problem.code == "extension_config"), "{found:?}");
}

#[test]
fn a_namespace_belongs_to_one_entry_and_not_to_the_runtime() {
    let entry = |name: &str, namespace: &str| {
        format!(
            "[[scopes.extensions]]\nname = '{name}'\ntype = 'schedule'\nconfig.namespace = '{namespace}'\n"
        )
    };
    let text = format!(
        "[[scopes]]\nname = 'a'\n{}{}[[scopes]]\nname = 'b'\nparent = 'a'\n{}{}",
        entry("one", "s/one"),
        entry("two", "core.manual"),
        entry("three", "s/one"),
        entry("four", "cloudevents:/builds")
    );
    has_codes(
        &text,
        &[
            (7, "scopes[0].extensions[1]", "namespace_reserved"),
            (14, "scopes[1].extensions[0]", "namespace_taken"),
            (18, "scopes[1].extensions[1]", "namespace_reserved"),
        ],
    );
}

#[test]
fn an_inherited_entry_does_not_take_its_namespace_twice() {
    let text = "[[scopes]]\nname = 'a'\n[[scopes.extensions]]\nname = 'e'\ntype = 'schedule'\nconfig.namespace = \
                's/e'\n[[scopes]]\nname = 'b'\nparent = 'a'\n";
    assert_eq!(loaded(text, Format::Toml).scopes[&ScopeName::known("b")].extensions.len(), 1);
}

#[test]
fn the_schema_describes_every_key_and_allows_no_other() {
    let schema = schema::schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    let definitions = schema["$defs"].as_object().unwrap();
    let names: BTreeSet<&str> = definitions.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        BTreeSet::from([
            "Binding",
            "Budget",
            "Ceilings",
            "Daemon",
            "Entry",
            "Extension",
            "Resource",
            "Retry",
            "Route",
            "Scope",
            "Settings",
        ])
    );
    for table in definitions.values().chain([&schema]) {
        assert_eq!(table["additionalProperties"], false);
        assert!(table["description"].is_string());
        for (key, property) in table["properties"].as_object().unwrap() {
            assert!(property["description"].is_string() || property.get("$ref").is_some(), "{key}");
        }
    }
    assert_eq!(definitions["Settings"]["properties"]["timeout_seconds"]["maximum"], 2_592_000);
    assert_eq!(definitions["Scope"]["required"], json!(["name"]));
    let examples = super::source::parse(&starter_with_examples(), Format::Toml).unwrap();
    assert_eq!(schema::check(&examples.value), []);
}

#[test]
fn budgets_are_read_as_decimals_and_inherited() {
    let loaded = loaded(
        "[[scopes]]\nname = 'main'\n[[scopes.budgets]]\nunit = 'usd'\nper = 'scope'\nwindow = 'day'\nlimit = 2.5\n\
         [[scopes]]\nname = 'low'\nparent = 'main'\n[[scopes.budgets]]\nunit = 'usd'\nper = 'scope'\n\
         window = 'day'\nlimit = 1\nwarning_percent = 50\n",
        Format::Toml,
    );
    let of = |name| loaded.scopes[&ScopeName::known(name)].budgets[0].clone();
    assert_eq!((of("main").limit.thousandths(), of("main").warning_percent), (2500, 80));
    assert_eq!((of("low").limit.thousandths(), of("low").warning_percent), (1000, 50));
}

#[test]
fn a_budget_that_is_none_is_pointed_at() {
    let budget = |rest: &str| format!("[[scopes]]\nname = 'a'\n[[scopes.budgets]]\n{rest}");
    has_codes(
        &budget(
            "unit = 'S3CRET-hunter2'\nper = 'S3CRET-hunter2'\nwindow = 'S3CRET-hunter2'\nlimit = 0.12345\n",
        ),
        &[
            (4, "scopes[0].budgets[0].unit", "invalid_name"),
            (5, "scopes[0].budgets[0].per", "invalid_budget"),
            (6, "scopes[0].budgets[0].window", "invalid_budget"),
            (7, "scopes[0].budgets[0].limit", "invalid_budget"),
        ],
    );
    shows(
        &budget("unit = 'usd'\nper = 'work'\nwindow = 'life'\nlimit = -1\n"),
        &["line 7: scopes[0].budgets[0].limit: must be a number with at most three decimals"],
    );
    has_codes(
        &budget("unit = 'usd'\nper = 'work'\nwindow = 'life'\n"),
        &[(3, "scopes[0].budgets[0]", "missing_key")],
    );
}

/// Every place of a tree.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(members) => {
            for (key, inner) in members {
                places(inner, &format!("{at}/{key}"), found);
            }
        }
        Value::Array(elements) => {
            for (index, inner) in elements.iter().enumerate() {
                places(inner, &format!("{at}/{index}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn no_problem_ever_shows_a_value(place in any::<proptest::sample::Index>(), form in 0..4_usize) {
        let source = super::source::parse(&starter_with_examples(), Format::Toml).unwrap();
        let mut found = Vec::new();
        places(&source.value, "", &mut found);
        let mut value = source.value;
        let planted = match form {
            0 => json!(SECRET),
            1 => json!([SECRET]),
            2 => json!({ "name": SECRET }),
            _one_more_key => json!({ format!("{SECRET} x"): SECRET }),
        };
        let place: &String = place.get(&found);
        *value.pointer_mut(place).unwrap() = planted;
        if let Err(problems) = load(&value.to_string(), Format::Json, &Sample::new()) {
            let shown = format!("{problems:?}");
            assert!(!shown.contains("S3CRET"), "{shown}");
        }
    }
}
