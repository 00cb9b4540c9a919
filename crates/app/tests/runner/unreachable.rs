//! Without a daemon every command that needs one says so, in the same way.

use super::home::Home;
use super::normal;

#[test]
fn every_command_says_how_to_start_a_daemon() {
    let home = Home::empty();
    for command in [
        "status",
        "doctor",
        "config plan",
        "config apply",
        "config show",
        "scope list",
        "events emit --scope main --type a.b",
        "events emit --scope main --type a.b --wait",
        "events list",
        "events show ev_1",
        "events tail",
        "events explain ev_1",
        "work list",
        "work show work_1",
        "work cancel work_1",
        "runs list",
        "runs show run_1",
        "runs log run_1",
        "runs watch",
        "runs why run_1",
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        let ran = home.run(&words).code(10);
        assert_eq!(ran.out, "", "{command}");
        assert_eq!(
            normal::text(&ran.err, &home),
            "error: no daemon answers in [home] (daemon_unreachable)\n\n\
             hint: start one with `open-conduit up`, or name another home with --home\n",
            "{command}"
        );
    }
}

#[test]
fn json_gets_a_problem() {
    let problem = Home::empty().run(&["runs", "list", "--json"]).code(10).problem();
    assert_eq!(problem["code"], "daemon_unreachable");
    assert_eq!(problem["status"], 503);
}

#[test]
fn what_a_dead_daemon_left_behind_does_not_matter() {
    let home = Home::usual();
    home.serve().kill();
    assert!(home.path().join("conduit.sock").exists());
    home.run(&["status"]).code(10);
    let served = home.serve();
    home.run(&["status"]).code(0);
    assert_eq!(served.interrupt(), 0);
}
