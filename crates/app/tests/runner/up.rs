//! `up`: the first thing anyone sees.

use super::home::{Home, Served};
use super::normal;

#[test]
fn up_in_an_empty_home_reaches_a_finished_run() {
    let home = Home::empty();
    let mut up = Served::spawn(home.command(&["up"]));
    let said = up.text_until("Ctrl-C");
    insta::assert_snapshot!(normal::text(&said, &home));
    assert_eq!(home.json(&["runs", "list"])["items"][0]["state"], "completed");
    home.run(&["config", "check"]).code(0);

    // A second one finds the first.
    let ran = home.run(&["up"]).code(0);
    assert!(ran.out.starts_with("Open Conduit is up already in "), "{}", ran.out);
    let ran = home.run(&["serve"]).code(5);
    assert!(ran.err.contains("(already_running)"), "{}", ran.err);
    assert_eq!(up.interrupt(), 0);

    // Later it only starts.
    let mut up = Served::spawn(home.command(&["up", "--json"]));
    assert!(up.line()["first"].is_null());
    assert_eq!(home.json(&["events", "list", "--type", "say.hello"])["items"].as_array().unwrap().len(), 1);
    assert_eq!(up.interrupt(), 0);
}

#[test]
fn a_wrong_file_starts_nothing() {
    let home = Home::empty();
    home.configure("[[scopes]]\nname = \"main\"\n[[scopes.routes]]\nname = \"a\"\nhandler = \"mtach\"\n");
    let ran = home.run(&["serve"]).code(2);
    assert!(ran.err.contains("did you mean `match`?"), "{}", ran.err);
    home.run(&["status"]).code(10);
}
