use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_assert_eq, proptest};
use serde_json::json;

use super::limits::{
    CONCURRENCY_MAX, READ_SCOPES_MAX, ROUTES_MAX, SCOPE_DEPTH_MAX, SCOPES_MAX, WRITE_SCOPES_MAX,
};
use super::{
    BindingConfig, Configuration, EntryConfig, Item, Problem, ProblemCode, RouteConfig, ScopeConfig, resolve,
};
use crate::retry::OwnRetry;
use crate::route::{ActivePolicy, Fallbacks};
use crate::scope::{EffectiveScope, SecretRef, Settings};
use crate::text::{BindingName, EntryName, ExecutorName, HandlerName, RouteName, ScopeName};

fn scope(name: &str, parent: Option<&str>) -> ScopeConfig {
    ScopeConfig::new(ScopeName::known(name), parent.map(ScopeName::known))
}

fn route(name: &str, binding: Option<&str>) -> super::RouteItem {
    route_marked(name, binding, 0)
}

fn route_marked(name: &str, binding: Option<&str>, mark: usize) -> super::RouteItem {
    Item::Define(RouteConfig {
        name: RouteName::known(name),
        handler: HandlerName::known("match"),
        binding: binding.map(BindingName::known),
        active_policy: ActivePolicy::Queue,
        fallbacks: Fallbacks::default(),
        config: json!({ "mark": mark }),
    })
}

fn binding(name: &str, mark: &str) -> super::BindingItem {
    binding_with(name, mark, None, &[])
}

fn binding_with(
    name: &str,
    mark: &str,
    timeout: Option<u32>,
    secrets: &[(&str, &str)],
) -> super::BindingItem {
    Item::Define(BindingConfig {
        name: BindingName::known(name),
        executor: ExecutorName::known("shell"),
        config: json!({ "mark": mark }),
        resource: None,
        timeout_seconds: timeout,
        inactivity_seconds: None,
        retry: None,
        credential: None,
        secrets: secrets
            .iter()
            .map(|(variable, name)| ((*variable).to_owned(), (*name).to_owned()))
            .collect(),
    })
}

fn entry(name: &str, secret_names: &[&str]) -> super::EntryItem {
    Item::Define(EntryConfig {
        name: EntryName::known(name),
        entry_type: "webhook".to_owned(),
        secret_names: secret_names.iter().map(|name| (*name).to_owned()).collect(),
        config: json!({ "names": secret_names }),
    })
}

fn secret(name: &str, reference: &str) -> (String, SecretRef) {
    (name.to_owned(), SecretRef(reference.to_owned()))
}

fn resolved(scopes: Vec<ScopeConfig>) -> BTreeMap<ScopeName, Arc<EffectiveScope>> {
    resolve(&Configuration { scopes }).expect("the configuration has no problem")
}

fn problems(scopes: Vec<ScopeConfig>) -> Vec<Problem> {
    resolve(&Configuration { scopes }).expect_err("the configuration has a problem")
}

#[track_caller]
fn refuses(scopes: Vec<ScopeConfig>, expected: &[(&str, ProblemCode)]) {
    let found = problems(scopes);
    let places: Vec<(&str, ProblemCode)> =
        found.iter().map(|problem| (problem.path.as_str(), problem.code)).collect();
    assert_eq!(places, expected, "{found:#?}");
}

fn route_names(scope: &EffectiveScope) -> Vec<&str> {
    scope.routes.iter().map(|route| route.name.as_str()).collect()
}

#[test]
fn resolve_gives_a_bare_scope_the_defaults() {
    let scopes = resolved(vec![scope("main", None)]);
    let main = &scopes[&ScopeName::known("main")];
    assert_eq!(main.settings, Settings::default());
    assert_eq!(main.lineage, [ScopeName::known("main")]);
    assert!(!main.disabled);
    assert!(resolved(Vec::new()).is_empty());
}

#[test]
fn resolve_keeps_a_replaced_route_in_its_slot_and_appends_new_ones() {
    let mut root = scope("root", None);
    root.bindings = vec![binding("old", "root"), binding("kept", "root")];
    root.routes = vec![route("a", Some("old")), route("b", Some("kept")), route("c", None)];
    let mut child = scope("child", Some("root"));
    child.bindings = vec![binding("new", "child")];
    child.routes = vec![route("d", None), route("a", Some("new")), Item::Disable(RouteName::known("c"))];
    let scopes = resolved(vec![child, root]);
    let child = &scopes[&ScopeName::known("child")];
    assert_eq!(route_names(child), ["a", "b", "d"]);
    assert_eq!(child.routes[0].binding, Some(BindingName::known("new")));
    assert_eq!(child.routes[0].declared_in, ScopeName::known("child"));
    assert_eq!(child.routes[1].declared_in, ScopeName::known("root"));
    assert_eq!(child.lineage, [ScopeName::known("root"), ScopeName::known("child")]);
    assert_eq!(route_names(&scopes[&ScopeName::known("root")]), ["a", "b", "c"]);
}

#[test]
fn resolve_replaces_bindings_and_entries_whole_and_binds_routes_where_they_are_evaluated() {
    let mut root = scope("root", None);
    root.bindings = vec![binding_with("run", "root", Some(60), &[])];
    root.routes = vec![route("go", Some("run"))];
    root.extensions = vec![entry("hooks", &[]), entry("gone", &[])];
    let mut child = scope("child", Some("root"));
    child.bindings = vec![binding("run", "child")];
    child.secrets = BTreeMap::from([secret("hook", "env:HOOK")]);
    child.extensions = vec![entry("hooks", &["hook"]), Item::Disable(EntryName::known("gone"))];
    let scopes = resolved(vec![root, child]);
    let child = &scopes[&ScopeName::known("child")];
    let run = &child.bindings[&BindingName::known("run")];
    assert_eq!((run.config.clone(), run.timeout_seconds), (json!({ "mark": "child" }), None));
    assert_eq!(child.routes[0].binding, Some(BindingName::known("run")));
    assert_eq!(child.extensions.len(), 1);
    let hooks = &child.extensions[&EntryName::known("hooks")];
    assert_eq!(hooks.declared_in, ScopeName::known("child"));
    assert_eq!(hooks.secrets, BTreeMap::from([secret("hook", "env:HOOK")]));
}

#[test]
fn resolve_inherits_settings_and_lets_zero_turn_off() {
    let mut root = scope("root", None);
    root.settings.timeout_seconds = Some(60);
    root.settings.inactivity_seconds = Some(30);
    root.settings.kept_finished_days = Some(7);
    root.settings.terminal_on_exhaustion = Some(true);
    let mut child = scope("child", Some("root"));
    child.settings.concurrency = Some(2);
    child.settings.inactivity_seconds = Some(0);
    child.settings.kept_finished_days = Some(0);
    let scopes = resolved(vec![root, child]);
    let settings = &scopes[&ScopeName::known("child")].settings;
    let expected =
        Settings { timeout_seconds: 60, concurrency: 2, terminal_on_exhaustion: true, ..Settings::default() };
    assert_eq!(*settings, expected);
    assert_eq!(scopes[&ScopeName::known("root")].settings.inactivity_seconds, Some(30));
}

#[test]
fn resolve_disables_everything_below_a_disabled_scope() {
    let mut middle = scope("middle", Some("root"));
    middle.disabled = true;
    let scopes = resolved(vec![scope("root", None), middle, scope("leaf", Some("middle"))]);
    let disabled: Vec<&str> =
        scopes.values().filter(|scope| scope.disabled).map(|scope| scope.name.as_str()).collect();
    assert_eq!(disabled, ["leaf", "middle"]);
}

#[test]
fn resolve_inherits_secrets_by_name_and_not_what_a_scope_may_read() {
    let mut root = scope("root", None);
    root.secrets = BTreeMap::from([secret("token", "env:ROOT"), secret("other", "file:other")]);
    root.bindings = vec![binding_with("run", "root", None, &[("TOKEN", "token")])];
    root.read_scopes = vec![ScopeName::known("child"), ScopeName::known("child")];
    root.write_scopes = vec![ScopeName::known("child")];
    let mut child = scope("child", Some("root"));
    child.secrets = BTreeMap::from([secret("token", "cmd:vault read token")]);
    child.extensions = vec![entry("hooks", &["token", "other"])];
    let scopes = resolved(vec![root, child]);
    let (root, child) = (&scopes[&ScopeName::known("root")], &scopes[&ScopeName::known("child")]);
    let run = BindingName::known("run");
    assert_eq!(root.bindings[&run].secrets["TOKEN"], SecretRef("env:ROOT".to_owned()));
    assert_eq!(child.bindings[&run].secrets["TOKEN"], SecretRef("cmd:vault read token".to_owned()));
    assert_eq!(child.extensions[&EntryName::known("hooks")].secrets.len(), 2);
    assert_eq!(root.read_scopes, [ScopeName::known("child")]);
    assert!(child.read_scopes.is_empty());
    // What a scope may write is its own too, and a right to read gives none.
    let name = ScopeName::known;
    assert!(root.may_write(&name("root")) && root.may_write(&name("child")));
    assert!(child.may_write(&name("child")) && !child.may_write(&name("root")));
}

#[test]
fn resolve_refuses_a_bad_tree_once() {
    refuses(
        vec![scope("a", Some("gone")), scope("b", Some("a"))],
        &[("scopes[0].parent", ProblemCode::UnknownParent)],
    );
    refuses(
        vec![scope("a", Some("b")), scope("b", Some("a")), scope("tail", Some("a"))],
        &[("scopes[0].parent", ProblemCode::ParentCycle), ("scopes[1].parent", ProblemCode::ParentCycle)],
    );
    refuses(vec![scope("a", Some("a"))], &[("scopes[0].parent", ProblemCode::ParentCycle)]);
    refuses(vec![scope("a", None), scope("a", None)], &[("scopes[1].name", ProblemCode::DuplicateName)]);
}

#[test]
fn resolve_bounds_the_depth_of_the_tree() {
    let line = |length: usize| -> Vec<ScopeConfig> {
        (0..length)
            .map(|at| scope(&format!("s{at}"), at.checked_sub(1).map(|above| format!("s{above}")).as_deref()))
            .collect()
    };
    assert_eq!(resolved(line(SCOPE_DEPTH_MAX)).len(), SCOPE_DEPTH_MAX);
    let at = format!("scopes[{SCOPE_DEPTH_MAX}].parent");
    refuses(line(SCOPE_DEPTH_MAX + 3), &[(&at, ProblemCode::TooDeep)]);
}

#[test]
fn resolve_bounds_the_counts() {
    let mut wide = scope("a", None);
    wide.routes = (0..=ROUTES_MAX).map(|at| route(&format!("r{at}"), None)).collect();
    wide.read_scopes = vec![ScopeName::known("a"); READ_SCOPES_MAX + 1];
    wide.write_scopes = vec![ScopeName::known("a"); WRITE_SCOPES_MAX + 1];
    refuses(
        vec![wide],
        &[
            ("scopes[0].read_scopes", ProblemCode::TooMany),
            ("scopes[0].routes", ProblemCode::TooMany),
            ("scopes[0].write_scopes", ProblemCode::TooMany),
        ],
    );
    let many = (0..=SCOPES_MAX).map(|at| scope(&format!("s{at}"), None)).collect();
    refuses(many, &[("scopes", ProblemCode::TooMany)]);
}

#[test]
fn resolve_refuses_names_that_occur_twice_in_a_list() {
    let mut root = scope("root", None);
    root.routes = vec![route("a", None), Item::Disable(RouteName::known("a"))];
    root.bindings = vec![binding("b", "1"), binding("b", "2")];
    root.extensions = vec![entry("c", &[]), entry("c", &[])];
    refuses(
        vec![root],
        &[
            ("scopes[0].bindings[1].name", ProblemCode::DuplicateName),
            ("scopes[0].extensions[1].name", ProblemCode::DuplicateName),
            ("scopes[0].routes[1].name", ProblemCode::DuplicateName),
        ],
    );
}

#[test]
fn resolve_refuses_to_disable_what_is_not_inherited() {
    let mut root = scope("root", None);
    root.routes = vec![Item::Disable(RouteName::known("a"))];
    root.bindings = vec![Item::Disable(BindingName::known("b"))];
    root.extensions = vec![Item::Disable(EntryName::known("c"))];
    refuses(
        vec![root],
        &[
            ("scopes[0].bindings[0].name", ProblemCode::NothingToDisable),
            ("scopes[0].extensions[0].name", ProblemCode::NothingToDisable),
            ("scopes[0].routes[0].name", ProblemCode::NothingToDisable),
        ],
    );
}

#[test]
fn resolve_names_the_scope_and_the_route_that_lack_a_binding() {
    let mut root = scope("root", None);
    root.bindings = vec![binding("run", "root")];
    root.routes = vec![route("go", Some("run")), route("lost", Some("nowhere"))];
    let mut child = scope("child", Some("root"));
    child.bindings = vec![Item::Disable(BindingName::known("run"))];
    let found = problems(vec![root, child, scope("leaf", Some("child"))]);
    let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "scopes[0].routes[1].binding: scope `root` has no binding of the name that route `lost` runs",
            "scopes[1]: scope `child` has no binding of the name that route `go`, inherited from `root`, runs; \
             declare the binding or disable the route",
        ]
    );
}

#[test]
fn resolve_refuses_unknown_secrets_and_scopes() {
    let mut root = scope("root", None);
    root.bindings = vec![binding_with("run", "root", None, &[("TOKEN", "absent")])];
    root.extensions = vec![entry("hooks", &["absent"])];
    root.read_scopes = vec![ScopeName::known("absent")];
    root.write_scopes = vec![ScopeName::known("absent")];
    refuses(
        vec![root, scope("child", Some("root"))],
        &[
            ("scopes[0].bindings[0].secrets.TOKEN", ProblemCode::UnknownSecret),
            ("scopes[0].extensions[0].secret_names[0]", ProblemCode::UnknownSecret),
            ("scopes[0].read_scopes[0]", ProblemCode::UnknownScope),
            ("scopes[0].write_scopes[0]", ProblemCode::UnknownScope),
        ],
    );
}

#[test]
fn resolve_refuses_what_is_no_reference_and_never_repeats_it() {
    let mut root = scope("root", None);
    root.secrets = BTreeMap::from([
        secret("bare", "hunter2-S3CRET"),
        secret("empty", "env: "),
        secret("hunter2 S3CRET", "env:A"),
    ]);
    root.bindings =
        vec![binding_with("run", "root", None, &[("OS_TOKEN", "bare"), ("hunter2 S3CRET", "bare")])];
    let found = problems(vec![root]);
    assert!(!format!("{found:?}").contains("S3CRET"), "{found:?}");
    let places: Vec<(&str, ProblemCode)> =
        found.iter().map(|problem| (problem.path.as_str(), problem.code)).collect();
    assert_eq!(
        places,
        [
            ("scopes[0].bindings[0].secrets.OS_TOKEN", ProblemCode::InvalidName),
            ("scopes[0].bindings[0].secrets[1]", ProblemCode::InvalidName),
            ("scopes[0].secrets.bare", ProblemCode::NotASecretRef),
            ("scopes[0].secrets.empty", ProblemCode::NotASecretRef),
            ("scopes[0].secrets[2]", ProblemCode::InvalidName),
        ]
        .map(|(path, code)| (path, code))
    );
}

#[test]
fn resolve_refuses_numbers_outside_their_bounds() {
    let mut root = scope("root", None);
    root.settings.timeout_seconds = Some(0);
    root.settings.concurrency = Some(CONCURRENCY_MAX + 1);
    root.settings.kept_executions = Some(0);
    root.ceilings.failure_budget = Some(0);
    root.settings.failure_budget = Some(1);
    root.bindings = vec![binding_with("run", "root", Some(0), &[])];
    let found = problems(vec![root]);
    let bounds: Vec<&str> = found
        .iter()
        .filter(|problem| problem.code == ProblemCode::OutOfBounds)
        .map(|problem| problem.path.as_str())
        .collect();
    assert_eq!(
        bounds,
        [
            "scopes[0].bindings[0].timeout_seconds",
            "scopes[0].ceilings.failure_budget",
            "scopes[0].settings.concurrency",
            "scopes[0].settings.kept_executions",
            "scopes[0].settings.timeout_seconds",
        ]
    );
}

#[test]
fn resolve_holds_descendants_to_ceilings_and_reports_where_it_begins() {
    let mut root = scope("root", None);
    root.ceilings.concurrency = Some(16);
    root.ceilings.timeout_seconds = Some(3600);
    root.bindings = vec![binding_with("long", "root", Some(3600), &[])];
    let mut child = scope("child", Some("root"));
    child.settings.concurrency = Some(17);
    child.ceilings.timeout_seconds = Some(3601);
    let mut other = scope("other", Some("root"));
    other.ceilings.timeout_seconds = Some(600);
    let leaf = scope("leaf", Some("other"));
    refuses(
        vec![root, child, other, leaf],
        &[
            ("scopes[1].ceilings.timeout_seconds", ProblemCode::CeilingRaised),
            ("scopes[1].settings.concurrency", ProblemCode::AboveCeiling),
            ("scopes[2].ceilings.timeout_seconds", ProblemCode::AboveCeiling),
            ("scopes[2].ceilings.timeout_seconds", ProblemCode::AboveCeiling),
        ],
    );
}

#[test]
fn a_binding_says_itself_how_quiet_its_runs_may_be_and_how_often_they_are_tried() {
    let own = |attempts, inactivity_seconds| {
        let Item::Define(binding) = binding_with("own", "mark", None, &[]) else { panic!("it is defined") };
        let retry = Some(OwnRetry { attempts, backoff: OwnRetry::BACKOFF });
        Item::Define(BindingConfig { inactivity_seconds, retry, ..binding })
    };
    let mut root = scope("root", None);
    root.settings.inactivity_seconds = Some(60);
    root.bindings = vec![own(3, None), binding_with("loud", "mark", None, &[])];
    let mut child = scope("child", Some("root"));
    child.settings.inactivity_seconds = Some(90);
    let mut quiet = scope("quiet", Some("root"));
    quiet.bindings = vec![own(3, Some(0))];
    let resolved = resolved(vec![root.clone(), child, quiet]);
    let held = |scope: &str| resolved[&ScopeName::known(scope)].bindings[&BindingName::known("own")].clone();
    assert_eq!(held("root").inactivity_seconds, Some(60), "the scope's setting");
    assert_eq!(held("child").inactivity_seconds, Some(90), "of the scope that it is used in");
    assert_eq!(held("quiet").inactivity_seconds, None, "zero turns it off");
    assert_eq!(held("root").retry.map(|retry| retry.attempts), Some(3));

    root.ceilings.failure_budget = Some(2);
    refuses(
        vec![root.clone()],
        &[
            ("scopes[0].bindings[0].retry.attempts", ProblemCode::AboveCeiling),
            ("scopes[0].ceilings.failure_budget", ProblemCode::AboveCeiling),
        ],
    );
    root.settings.failure_budget = Some(2);
    root.bindings = vec![own(0, None)];
    refuses(vec![root], &[("scopes[0].bindings[0].retry.attempts", ProblemCode::OutOfBounds)]);
}

#[test]
fn resolve_allows_what_is_exactly_at_a_ceiling() {
    let mut root = scope("root", None);
    root.ceilings.concurrency = Some(16);
    let mut child = scope("child", Some("root"));
    child.ceilings.concurrency = Some(16);
    child.settings.concurrency = Some(16);
    let mut leaf = scope("leaf", Some("child"));
    leaf.settings.concurrency = Some(1);
    leaf.ceilings.concurrency = Some(4);
    assert_eq!(resolved(vec![root, child, leaf]).len(), 3);
}

/// What the routes of a line of scopes come to, computed the slow way: a list of names, edited in place.
fn slots(levels: &[Vec<(usize, bool)>]) -> Vec<(usize, usize)> {
    let mut slots: Vec<(usize, usize)> = Vec::new();
    for (level, items) in levels.iter().enumerate() {
        for &(name, defines) in items {
            let at = slots.iter().position(|(known, _level)| *known == name);
            match (defines, at) {
                (true, Some(at)) => slots[at].1 = level,
                (true, None) => slots.push((name, level)),
                (false, Some(at)) => drop(slots.remove(at)),
                (false, None) => {}
            }
        }
    }
    slots
}

/// A scope's routes: distinct names in some order, each defined or disabled.
fn level() -> impl Strategy<Value = Vec<(usize, bool)>> {
    (Just((0..6).collect::<Vec<usize>>()).prop_shuffle(), 0..=6_usize, any::<[bool; 6]>()).prop_map(
        |(names, take, defines)| {
            names.into_iter().take(take).map(|name| (name, defines[name])).collect::<Vec<(usize, bool)>>()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn routes_keep_the_slot_of_their_first_declaration(levels in proptest::collection::vec(level(), 1..5)) {
        let mut held = std::collections::BTreeSet::new();
        let mut scopes = Vec::new();
        for (at, items) in levels.iter().enumerate() {
            let above = at.checked_sub(1).map(|above| format!("s{above}"));
            let mut scope = scope(&format!("s{at}"), above.as_deref());
            for &(name, defines) in items {
                if defines {
                    held.insert(name);
                    scope.routes.push(route_marked(&format!("r{name}"), None, at));
                } else if held.remove(&name) {
                    scope.routes.push(Item::Disable(RouteName::known(&format!("r{name}"))));
                }
            }
            scopes.push(scope);
        }
        let resolved = resolved(scopes);
        for at in 0..levels.len() {
            let scope = &resolved[&ScopeName::known(&format!("s{at}"))];
            let expected: Vec<(String, String)> = slots(&levels[..=at])
                .into_iter()
                .map(|(name, level)| (format!("r{name}"), format!("s{level}")))
                .collect();
            let actual: Vec<(String, String)> = scope
                .routes
                .iter()
                .map(|route| (route.name.to_string(), route.declared_in.to_string()))
                .collect();
            prop_assert_eq!(actual, expected);
        }
    }
}
