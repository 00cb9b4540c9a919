//! Pausing and resuming scopes, replaying Events: what an operator types and reads.

use super::home::{Home, emit, text, wait_for};

#[test]
fn a_scope_is_paused_over_a_restart_and_resumed() {
    let home = Home::usual();
    let served = home.serve();
    let ran = home.run(&["scope", "pause", "main"]).code(0);
    assert!(ran.out.contains("`main` is paused"), "{}", ran.out);
    assert!(home.run(&["scope", "pause", "main"]).code(0).out.contains("paused already, since"));
    home.emit("say.hello", "1");
    let work = wait_for("the Work", || {
        let list = home.json(&["work", "list"]);
        (list["items"][0]["queue"] == "blocked").then(|| list["items"][0].clone())
    });
    let shown = home.run(&["work", "show", text(&work, "/id")]).code(0);
    assert!(shown.out.contains("`scope resume` lets it"), "{}", shown.out);
    drop(served);
    let _served = home.serve();
    assert!(home.run(&["scope", "list"]).code(0).out.contains("main (paused)"));
    assert_eq!(home.json(&["scope", "list"])["items"][0]["paused"]["scope"], "main");
    assert!(home.run(&["status"]).code(0).out.contains("Scope `main` is paused since"));
    assert!(home.run(&["config", "show"]).code(0).out.contains("It is paused since"));
    let ran = home.run(&["scope", "resume", "main"]).code(0);
    assert!(ran.out.contains("starts again"), "{}", ran.out);
    assert!(home.run(&["scope", "resume", "main"]).code(0).out.contains("is not paused"));
    wait_for("the run", || {
        let list = home.json(&["runs", "list"]);
        (list["items"][0]["state"] == "completed").then_some(())
    });
    let ran = home.run(&["scope", "pause", "nowhere"]).code(3);
    assert!(ran.err.contains("scope list"), "{}", ran.err);
}

#[test]
fn an_event_is_replayed_once_per_request() {
    let home = Home::usual();
    let _served = home.serve();
    let sent = home.json(&[&emit("say.hello", "1")[..], &["--wait"]].concat());
    let event = text(&sent, "/event").to_owned();
    let replay = ["events", "replay", event.as_str(), "--delivery-id", "once"];
    let first = home.json(&replay);
    assert_eq!(
        (first["duplicate"].as_bool(), home.json(&replay)["event"].clone()),
        (Some(false), first["event"].clone())
    );
    assert!(home.run(&replay).code(0).out.contains("Nothing new happened."));
    let id = text(&first, "/event").to_owned();
    let shown = home.run(&["events", "show", &id]).code(0).out;
    assert!(shown.contains("core.replay.requested") && shown.contains(&event), "{shown}");
    let shown = home.run(&["events", "show", &event]).code(0).out;
    assert!(shown.contains(&id), "{shown}");
    let ran = home.run(&["events", "replay", &event]).code(0);
    assert!(ran.out.contains("repeats it"), "{}", ran.out);
    home.run(&["events", "replay", "ev_0000000000001"]).code(3);
}
