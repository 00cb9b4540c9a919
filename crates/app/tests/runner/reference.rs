//! The pages of the manual that are made from code are as the code would make them.

use super::home::{Home, repository};

#[track_caller]
fn is_current(page: &str, subject: &str) {
    let made = Home::empty().run(&["reference", subject]).code(0).out;
    let written = std::fs::read_to_string(repository(page)).unwrap_or_default();
    assert!(made == written, "{page} is not what the code says; write it again with `cargo xtask codegen`");
}

#[test]
fn the_page_of_the_command_line_is_current() {
    is_current("docs/reference/cli.md", "cli");
}

#[test]
fn the_schema_of_the_configuration_is_current() {
    is_current("docs/reference/conduit.schema.json", "config");
}

#[test]
fn schema_prints_a_schema() {
    let home = Home::empty();
    let printed: serde_json::Value = serde_json::from_str(&home.run(&["schema"]).code(0).out).unwrap();
    assert_eq!(printed, home.json(&["schema"]));
    assert_eq!(printed["title"], "Open Conduit configuration");
}
