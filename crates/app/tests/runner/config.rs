//! `config` and `scope`: from a file to a generation.

use std::fmt::Write as _;

use super::home::Home;
use super::normal;

#[test]
fn check_needs_no_daemon_and_shows_every_problem() {
    let home = Home::usual();
    let ran = home.run(&["config", "check"]).code(0);
    insta::assert_snapshot!(normal::text(&ran.out, &home), @"[home]/conduit.toml is right: 1 scope, 3 routes, 3 bindings, 0 entries.");
    assert_eq!(home.json(&["config", "check"])["routes"], 3);

    let wrong = home.usual_config().replacen("executor", "excutor", 1).replacen(
        "name = \"fail\"",
        "nme = \"fail\"",
        1,
    );
    let file = home.file("wrong.toml", &wrong);
    let ran = home.run(&["config", "check", file.to_str().unwrap()]).code(2);
    assert_eq!(ran.out, "");
    assert!(
        ran.err.contains("did you mean `executor`?") && ran.err.contains("did you mean `name`?"),
        "{}",
        ran.err
    );
    let problem = home.run(&["config", "check", file.to_str().unwrap(), "--json"]).code(2).problem();
    assert_eq!(problem["code"], "invalid_config");
    assert_eq!(problem["problems"][0]["line"], 10);
}

#[test]
fn check_says_where_a_file_is_missing() {
    let home = Home::empty();
    let ran = home.run(&["config", "check"]).code(3);
    assert!(ran.err.contains("open-conduit up"), "{}", ran.err);
    home.run(&["config", "check", "nothing.toml"]).code(3);
}

#[test]
fn an_edit_changes_nothing_before_it_is_applied() {
    let home = Home::usual();
    let _served = home.serve();
    assert_eq!(home.json(&["config", "show"])["generation"], 1);
    let ran = home.run(&["config", "plan"]).code(0);
    assert_eq!(ran.out, "The file says what is in force, generation 1.\n");

    home.configure(&home.usual_config().replacen(
        "name = \"main\"",
        "name = \"main\"\nsettings = { concurrency = 2 }",
        1,
    ));
    let plan = home.run(&["config", "plan"]).code(0);
    assert!(plan.out.starts_with(['+', '~']), "{}", plan.out);
    assert_eq!(home.json(&["scope", "list"])["items"][0]["concurrency"], 16);
    assert_eq!(home.json(&["status"])["config_edited"], true);

    let ran = home.run(&["config", "apply"]).code(0);
    assert!(ran.out.ends_with("Generation 2 is in force. Runs that go on keep theirs.\n"), "{}", ran.out);
    assert_eq!(home.json(&["scope", "list"])["items"][0]["concurrency"], 2);
    assert_eq!(home.json(&["config", "apply"])["changed"], false);

    home.configure("scopes = 3");
    let ran = home.run(&["config", "apply"]).code(2);
    assert!(ran.err.contains("config check"), "{}", ran.err);
    assert_eq!(home.json(&["config", "show"])["generation"], 2);
}

#[test]
fn json_shapes() {
    let home = Home::usual();
    let _served = home.serve();
    home.configure(&home.usual_config().replacen("\"main\"", "\"main\"\nsettings = { concurrency = 2 }", 1));
    let mut shapes = String::new();
    for command in ["config plan", "config apply", "config show", "scope list", "status", "doctor"] {
        let words: Vec<&str> = command.split(' ').collect();
        let mut object = home.json(&words);
        if command == "config show" {
            // The configuration's own shape is the schema's matter.
            object["config"] = "configuration".into();
        }
        writeln!(shapes, "{command}\n{}", normal::shape_text(&object)).unwrap();
    }
    insta::assert_snapshot!(shapes);
}
