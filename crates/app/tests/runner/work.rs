//! `work`: listing, showing and cancelling.

use super::home::{Home, emit, text, wait_for};
use super::normal;

#[test]
fn show_tells_what_moves_it_next() {
    let home = Home::usual();
    let _served = home.serve();
    let sent = home.json(&[&emit("say.hello", "1")[..], &["--wait"]].concat());
    let work = text(&sent, "/run/work");
    let ran = home.run(&["work", "show", work]).code(0);
    let detail: Vec<&str> = ran.out.lines().take_while(|line| !line.is_empty()).collect();
    insta::assert_snapshot!(normal::text(&detail.join("\n"), &home));
    assert!(ran.out.contains("\nRuns\nRUN "), "{}", ran.out);
    let ran = home.run(&["work", "list", "--state", "completed"]).code(0);
    assert!(ran.out.starts_with("There is no such Work."), "{}", ran.out);
}

#[test]
fn cancel_ends_it_for_good_and_only_once() {
    let home = Home::usual();
    let _served = home.serve();
    home.emit("do.slow", "1");
    let run = wait_for("the run", || {
        let list = home.json(&["runs", "list", "--state", "running"]);
        list["items"][0].is_object().then(|| list["items"][0].clone())
    });
    let work = text(&run, "/work");
    let ran = home.run(&["work", "cancel", work]).code(0);
    insta::assert_snapshot!(normal::text(&ran.out, &home), @"work_1 is cancelled. run_1 is being stopped.");
    let ran = home.run(&["work", "cancel", work]).code(5);
    assert!(ran.err.contains("cancelled"), "{}", ran.err);
    assert_eq!(home.json(&["runs", "show", text(&run, "/id")])["state"], "cancelled");
    home.run(&["work", "cancel", "work_0000000000001"]).code(3);
}

#[test]
fn a_command_takes_in_what_it_is_given_and_is_interrupted_on_request() {
    let home = Home::usual();
    let _served = home.serve();
    home.emit("do.slow", "1");
    let run = wait_for("the run", || {
        let list = home.json(&["runs", "list", "--state", "running"]);
        list["items"][0].is_object().then(|| list["items"][0].clone())
    });
    let (work, id) = (text(&run, "/work"), text(&run, "/id"));
    let ran = home.run(&["work", "inject", work, "look again"]).code(0);
    insta::assert_snapshot!(normal::text(&ran.out, &home), @"run_1 is given it; ev_1 orders it.");
    wait_for("the order", || {
        let shown = home.json(&["runs", "show", id]);
        (shown["orders"][0]["state"] == "accepted").then_some(())
    });
    let ran = home.run(&["work", "show", work]).code(0);
    assert!(ran.out.contains("Orders to its run") && ran.out.contains("was given to it"), "{}", ran.out);
    home.run(&["work", "inject", work]).code(2);
    home.run(&["work", "inject", work, "--payload-json", "{"]).code(2);

    let order = ["work", "interrupt", work, "--delivery-id", "once"];
    let ran = home.run(&order).code(0);
    assert!(ran.out.contains("is interrupted. The Work stays"), "{}", ran.out);
    assert!(home.run(&order).code(0).out.contains("ordered before"));
    wait_for("the next run", || {
        let list = home.json(&["runs", "list", "--state", "running"]);
        (list["items"][0]["attempt"] == 2).then_some(())
    });
    let why = home.run(&["runs", "why", id]).code(0);
    assert!(why.out.contains("It was interrupted for"), "{}", why.out);
    home.run(&["work", "cancel", work]).code(0);
    let ran = home.run(&["work", "interrupt", work]).code(5);
    assert!(ran.err.contains("cancelled"), "{}", ran.err);
}
