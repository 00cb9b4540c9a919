//! A daemon whose extension runs in a process of its own.

use super::super::home::{Home, Served, emit, text, wait_for};
use super::*;

/// Two routes: one by `match`, which runs outside, and one by `manual`, which does not.
fn home(extension: &str) -> Home {
    let home = Home::empty();
    home.configure(&config(extension));
    home
}

fn config(extension: &str) -> String {
    format!(
        "[daemon]\napi_listen = \"127.0.0.1:0\"\nwebhook_listen = \"127.0.0.1:0\"\n\n{extension}\n\
         [[scopes]]\nname = \"main\"\n\n\
         [[scopes.bindings]]\nname = \"do\"\nexecutor = \"shell\"\nconfig = {{ argv = [\"true\"] }}\n\n\
         [[scopes.routes]]\nname = \"outside\"\nhandler = \"match\"\nbinding = \"do\"\n\
         config = {{ types = [\"say.outside\"] }}\n\n\
         [[scopes.routes]]\nname = \"inside\"\nhandler = \"manual\"\nbinding = \"do\"\n"
    )
}

/// The pid of the extension's process, by what `doctor` says.
fn pid(home: &Home) -> Option<u32> {
    // It exits as what it found.
    let doctor: Value = serde_json::from_str(&home.run(&["doctor", "--json"]).out).unwrap();
    let checks = doctor["checks"].as_array().unwrap();
    let sentences = checks.iter().filter(|check| check["name"] == "extensions");
    let mut answering = sentences.filter_map(|check| check["sentence"].as_str()?.rsplit_once("process "));
    answering.next().map(|(_before, pid)| pid.parse().unwrap())
}

fn pid_after(home: &Home, before: Option<u32>) -> u32 {
    wait_for("the extension", || pid(home).filter(|pid| Some(*pid) != before))
}

/// Sends an Event to the route outside, and waits for its run.
fn completes(home: &Home, key: &str) {
    let sent = home.json(&[&emit("say.outside", key)[..], &["--wait"]].concat());
    assert_eq!(text(&sent, "/run/state"), "completed", "{sent}");
}

#[test]
fn a_killed_extension_is_started_again_and_what_it_held_is_routed() {
    let home = home("[[extensions]]\nname = \"match\"\n");
    let served: Served = home.serve();
    let first = pid_after(&home, None);
    assert!(command_line(first).contains("extension-run match"), "{}", command_line(first));
    completes(&home, "a");

    signal(first, Signal::STOP);
    let sent = home.json(&emit("say.outside", "b"));
    signal(first, Signal::KILL);
    let second = pid_after(&home, Some(first));
    assert_ne!(second, first);
    // What was held is routed by itself, long before the minute after which it would be looked at anyway.
    wait_for("the run", || {
        let runs = home.json(&["runs", "list"]);
        let runs = runs["items"].as_array().unwrap().iter();
        (runs.filter(|run| run["state"] == "completed").count() == 2).then_some(())
    });
    let shown = home.json(&["events", "show", text(&sent, "/event")]);
    assert_eq!(text(&shown, "/checkpoint/outcome"), "routed", "{shown}");
    // And the daemon never stopped.
    completes(&home, "c");
    drop(served);
}

#[test]
fn an_extension_ends_with_its_daemon() {
    let home = home("[[extensions]]\nname = \"match\"\n");
    let served = home.serve();
    let pid = pid_after(&home, None);
    // It is killed, and has no time for anything.
    drop(served);
    wait_for("the end of the extension", || (!command_line(pid).contains("extension-run")).then_some(()));
}

#[test]
fn an_apply_asks_the_extension_and_a_check_starts_nothing() {
    let home = home("");
    let _served = home.serve();
    let refused = config("[[extensions]]\nname = \"match\"\n").replace("\"say.outside\"", "\"Say\"");
    home.configure(&refused);
    let checked = home.json(&["config", "check"]);
    assert_eq!(checked["unasked"], 1, "{checked}");
    let problem = home.run(&["config", "apply", "--json"]).code(2).problem();
    let text = problem.to_string();
    assert!(text.contains("scopes[0].routes[0].config.types[0]"), "{text}");

    let missing = "[[extensions]]\nname = \"match\"\ncommand = [\"/nonexistent/program\"]\n";
    home.configure(&config(missing));
    home.json(&["config", "check"]);
    let text = home.run(&["config", "apply", "--json"]).code(2).problem().to_string();
    assert!(text.contains("extension_unavailable"), "{text}");
    assert_eq!(pid(&home), None, "what was tried is taken back");

    home.configure(&config("[[extensions]]\nname = \"match\"\n"));
    home.json(&["config", "apply"]);
    pid_after(&home, None);
    home.configure(&config(""));
    home.json(&["config", "apply"]);
    assert_eq!(pid(&home), None, "what is no longer declared has ended");
}

#[test]
fn an_extension_that_is_gone_holds_its_routes_and_not_the_start() {
    let home = home("[[extensions]]\nname = \"match\"\ncommand = [\"./extension\"]\n");
    std::fs::create_dir_all(home.path()).unwrap();
    let program = home.path().join("extension");
    let script = format!("#!/bin/sh\nexec {BINARY} extension-run match\n");
    std::fs::write(&program, script).unwrap();
    let open = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o700);
    std::fs::set_permissions(&program, open).unwrap();
    let served = home.serve();
    pid_after(&home, None);
    drop(served);
    let away = home.path().join("away");
    std::fs::rename(&program, &away).unwrap();
    let _served = home.serve();
    let explained = home.json(&["events", "explain", "--scope", "main", "--type", "say.outside"]);
    assert!(explained.to_string().contains("extension_unavailable"), "{explained}");
    assert!(explained.to_string().contains("\"held\""), "{explained}");
    let doctor = home.run(&["doctor", "--json"]);
    assert!(doctor.out.contains("extension `match` does not answer"), "{}{}", doctor.out, doctor.err);
    std::fs::rename(&away, &program).unwrap();
    pid_after(&home, None);
    completes(&home, "a");
}
