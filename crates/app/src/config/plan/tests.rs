use super::super::sample::Sample;
use super::super::{Format, Model, STARTER, read};
use super::{ChangeKind, plan};

fn model(text: &str) -> Model {
    read(text, Format::Toml).unwrap().0
}

const BEFORE: &str = r#"
[[scopes]]
name = "eng"
settings.timeout_seconds = 60
settings.concurrency = 2
secrets.hook = "env:S3CRET_A"
secrets.gone = "env:S3CRET_B"
[[scopes.bindings]]
name = "test"
executor = "shell"
config = { command = "S3CRET" }
[[scopes.bindings]]
name = "build"
executor = "shell"
[[scopes.routes]]
name = "ci"
handler = "match"
binding = "test"
[[scopes.routes]]
name = "by-hand"
handler = "manual"
binding = "build"
[[scopes.extensions]]
name = "jobs"
type = "schedule"
config.namespace = "s/one"
[[scopes]]
name = "old"
"#;

const AFTER: &str = r#"
[daemon]
api_listen = "127.0.0.1:9000"
[[scopes]]
name = "eng"
disabled = true
settings.timeout_seconds = 600
ceilings.concurrency = 8
secrets.hook = "env:S3CRET_C"
read_scopes = ["child"]
[[scopes.bindings]]
name = "test"
executor = "shell"
config = { command = "S3CRET more" }
timeout_seconds = 30
[[scopes.bindings]]
name = "build"
executor = "shell"
[[scopes.routes]]
name = "by-hand"
handler = "manual"
binding = "build"
active_policy = "drop"
[[scopes.routes]]
name = "ci"
handler = "match"
binding = "build"
[[scopes.extensions]]
name = "jobs"
type = "schedule"
config.namespace = "s/two"
[[scopes]]
name = "child"
parent = "eng"
routes = [{ name = "ci", disabled = true }]
"#;

#[test]
fn plan_says_every_change_in_a_sentence() {
    let plan = plan(Some(&model(BEFORE)), &model(AFTER), &Sample::new());
    let sentences: Vec<&str> = plan.changes.iter().map(|change| change.sentence.as_str()).collect();
    assert_eq!(
        sentences,
        [
            "the API moves to 127.0.0.1:9000",
            "scope `eng` is now disabled",
            "scope `eng`: timeout_seconds is now 600",
            "scope `eng`: concurrency is now inherited",
            "scope `eng`: the ceiling of concurrency is now 8",
            "scope `eng` may read other scopes than before",
            "scope `eng`: secret `gone` is removed",
            "scope `eng`: secret `hook` is read from another place",
            "scope `eng`: binding `test` has another configuration",
            "scope `eng`: binding `test` now has a timeout of 30 s",
            "scope `eng`: route `by-hand` now has the policy drop",
            "scope `eng`: route `ci` now runs binding `build`",
            "scope `eng`: entry `jobs` has another configuration",
            "scope `eng`: routes are asked in another order",
            "scope `child` is new below `eng`",
            "scope `child`: route `ci` is disabled here",
            "scope `old` is removed",
        ]
    );
    assert_eq!(
        plan.restart_required,
        ["the API moves to 127.0.0.1:9000", "scope `eng`: entry `jobs` delivers in another namespace",]
    );
    assert_eq!(plan.changes[11].path, "scopes.eng.routes.ci");
    assert_eq!(plan.changes.last().unwrap().what, ChangeKind::Removed);
    assert!(!format!("{plan:?}").contains("S3CRET"));
}

#[test]
fn plan_says_what_becomes_of_budgets() {
    let budget = |unit: &str, rest: &str| {
        format!("[[scopes.budgets]]\nunit = '{unit}'\nper = 'scope'\nwindow = 'day'\n{rest}\n")
    };
    let scope = |budgets: [String; 3]| model(&format!("[[scopes]]\nname = 'eng'\n{}", budgets.concat()));
    let before =
        scope([budget("usd", "limit = 5"), budget("tokens", "limit = 9"), budget("turns", "limit = 1")]);
    let after = scope([
        budget("usd", "limit = 7.5"),
        budget("tokens", "limit = 9\nwarning_percent = 50"),
        budget("minutes", "limit = 60"),
    ]);
    let plan = plan(Some(&before), &after, &Sample::new());
    let sentences: Vec<&str> = plan.changes.iter().map(|change| change.sentence.as_str()).collect();
    assert_eq!(
        sentences,
        [
            "scope `eng`: the budget of usd per scope a day has a limit of 7.5, before of 5",
            "scope `eng`: the budget of tokens per scope a day warns at 50 percent",
            "scope `eng`: the budget of minutes per scope a day is new, with a limit of 60",
            "scope `eng`: the budget of turns per scope a day is removed",
        ]
    );
    assert_eq!(plan.changes[0].path, "scopes.eng.budgets.usd.scope.day");
}

#[test]
fn plan_of_the_same_configuration_is_empty() {
    for text in [BEFORE, AFTER, STARTER] {
        assert_eq!(plan(Some(&model(text)), &model(text), &Sample::new()), super::Plan::default());
    }
}

#[test]
fn plan_of_a_first_configuration_needs_no_restart() {
    let plan = plan(None, &model(AFTER), &Sample::new());
    assert!(plan.restart_required.is_empty());
    assert!(plan.changes.iter().any(|change| change.what == ChangeKind::Added));
}
