//! The whole help, and what is said about a command line that is wrong.

use std::fmt::Write as _;

use super::home::Home;

/// Every command, in the order of the help.
const COMMANDS: [&str; 27] = [
    "",
    "up",
    "open",
    "serve",
    "status",
    "doctor",
    "config",
    "config check",
    "config plan",
    "config apply",
    "config show",
    "scope",
    "scope list",
    "events",
    "events emit",
    "events list",
    "events show",
    "events tail",
    "events explain",
    "work",
    "work list",
    "work show",
    "work cancel",
    "runs",
    "runs list",
    "runs show",
    "runs log",
];
const MORE_COMMANDS: [&str; 8] = [
    "runs watch",
    "runs why",
    "sessions",
    "sessions list",
    "sessions revoke",
    "completions",
    "man",
    "schema",
];

#[test]
fn the_whole_help() {
    let home = Home::empty();
    let mut text = String::new();
    for command in COMMANDS.iter().chain(&MORE_COMMANDS) {
        let mut words: Vec<&str> = command.split_whitespace().collect();
        words.push("-h");
        let ran = home.run(&words).code(0);
        writeln!(text, "$ open-conduit {}\n{}", words.join(" "), ran.out).unwrap();
    }
    insta::assert_snapshot!(text);
}

#[test]
fn a_wrong_command_line_is_usage() {
    let home = Home::empty();
    let ran = home.run(&["runs", "lsit"]).code(2);
    assert!(ran.err.contains("list"), "{}", ran.err);
    assert_eq!(ran.out, "");
    let ran = home.run(&["events", "emit", "--scope", "main", "--type", "a.b", "--key-source", "x"]).code(2);
    assert!(ran.err.contains("--key-external-id"), "{}", ran.err);
    let ran = home.run(&["--json", "runs", "show"]).code(2);
    assert_eq!(ran.problem()["code"], "usage");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let home = Home::empty();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = home.command(&["schema"]).stdout(writer).status().unwrap();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_home_that_the_environment_names_is_not_asked_for() {
    let ran = Home::usual().run(&["work", "inject"]).code(2);
    assert!(ran.err.contains("Usage: open-conduit work inject <WORK> <TEXT>"), "{}", ran.err);
}
