//! `events`: sending, waiting for what comes of it, looking and explaining.

use std::fmt::Write as _;

use super::home::{Home, Served, emit, text, wait_for};
use super::normal;

fn waiting<'a>(event_type: &'a str, key: &'a str) -> Vec<&'a str> {
    let mut words = emit(event_type, key);
    words.push("--wait");
    words
}

#[test]
fn wait_exits_as_the_run_did() {
    let home = Home::usual();
    let _served = home.serve();
    let ran = home.run(&waiting("say.hello", "1")).code(0);
    insta::assert_snapshot!(normal::text(&ran.out, &home), @r"
    ev_1 accepted
    run_1 completed in [span]: hello
    ");
    let ran = home.run(&waiting("do.fail", "2")).code(1);
    insta::assert_snapshot!(normal::text(&ran.out, &home));
    let ran = home.run(&[&waiting("do.fail", "3")[..], &["--json"]].concat()).code(1);
    let object: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(object["run"]["exit_status"], 3);
}

#[test]
fn wait_stops_at_its_time_and_what_was_sent_goes_on() {
    let home = Home::usual();
    let _served = home.serve();
    let ran = home.run(&[&waiting("do.slow", "1")[..], &["--timeout", "1"]].concat()).code(7);
    assert!(ran.err.contains("(wait_timed_out)"), "{}", ran.err);
    home.open_gate();
    wait_for("the end of the run", || {
        (home.json(&["runs", "list"])["items"][0]["state"] == "completed").then_some(())
    });
}

#[test]
fn wait_ends_when_only_an_operator_can_go_on() {
    let home = Home::usual();
    let _served = home.serve();
    home.emit("do.slow", "1");
    wait_for("the run", || {
        home.json(&["runs", "list", "--state", "running"])["items"][0].is_object().then_some(())
    });
    let mut second = Served::spawn(home.command(&waiting("do.slow", "1")));
    assert!(second.text_line().ends_with(" accepted\n"));
    let routed = |event: &serde_json::Value| event["checkpoint"]["outcome"] == "routed";
    wait_for("the second checkpoint", || {
        let list = home.json(&["events", "list", "--type", "do.slow"]);
        list["items"].as_array().unwrap().iter().all(routed).then_some(())
    });
    home.configure(&home.usual_config().replace("\"slow\"", "\"other\""));
    home.run(&["config", "apply"]).code(0);
    home.open_gate();
    assert_eq!(second.end(), 6);
    let ran = home.run(&["work", "list"]).code(0);
    assert!(ran.out.contains("ready, blocked"), "{}", ran.out);
}

#[test]
fn wait_ends_when_the_scope_is_disabled() {
    let home = Home::usual();
    let _served = home.serve();
    home.configure(&home.usual_config().replacen("name = \"main\"", "name = \"main\"\ndisabled = true", 1));
    home.run(&["config", "apply"]).code(0);
    let ran = home.run(&waiting("say.hello", "1")).code(6);
    insta::assert_snapshot!(normal::text(&ran.err, &home));
}

#[test]
fn wait_says_when_nothing_comes_of_it() {
    let home = Home::usual();
    let _served = home.serve();
    let ran = home.run(&waiting("no.route", "1")).code(1);
    insta::assert_snapshot!(normal::text(&ran.err, &home), @r"
    error: no run came of ev_1. It changed nothing: no route of scope `main` matched it (generation 1) (no_run)

    hint: `open-conduit events explain` tells what each route says to such an Event
    ");
}

#[test]
fn a_delivery_is_accepted_once() {
    let home = Home::usual();
    let _served = home.serve();
    let words = [&waiting("say.hello", "1")[..], &["--delivery-id", "d-1"]].concat();
    let first = home.json(&words);
    let again = home.json(&words);
    assert_eq!(first["duplicate"], false);
    assert_eq!(again["duplicate"], true);
    assert_eq!(first["event"], again["event"]);
    assert_eq!(first["run"]["id"], again["run"]["id"]);
    assert_eq!(home.json(&["runs", "list"])["items"].as_array().unwrap().len(), 1);
    let ran = home.run(&words).code(0);
    assert!(ran.out.contains("Nothing new happened"), "{}", ran.out);
    let why = home.run(&["runs", "why", text(&first, "/run/id")]).code(0);
    insta::assert_snapshot!(normal::text(&why.out, &home));
}

#[test]
fn a_payload_comes_from_a_file_standard_input_or_the_command_line() {
    let home = Home::usual();
    let _served = home.serve();
    let file = home.file("payload.json", "{\"from\":\"file\"}");
    let payload = |object: &serde_json::Value| {
        home.json(&["events", "show", text(object, "/event")])["payload"].clone()
    };
    let words = emit("say.hello", "1");
    let sent = home.json(&[&words[..], &["--payload", file.to_str().unwrap()]].concat());
    assert_eq!(payload(&sent)["from"], "file");
    let sent = home.json(&[&words[..], &["--payload-json", "[1]"]].concat());
    assert_eq!(payload(&sent)[0], 1);
    let sent = home.run_with(&[&words[..], &["--payload", "-", "--json"]].concat(), "\"in\"").object();
    assert_eq!(payload(&sent), "in");

    let ran = home.run(&[&words[..], &["--payload-json", "hello"]].concat()).code(2);
    assert!(ran.err.contains("hint: a text alone needs quotes"), "{}", ran.err);
    let ran = home.run(&[&words[..], &["--payload", "nothing.json"]].concat()).code(2);
    assert!(ran.err.contains("in nothing.json:"), "{}", ran.err);
    let ran = home.run(&[&words[..], &["--payload", "{\"token\":\"hunter22\"}"]].concat()).code(2);
    assert!(!ran.err.contains("hunter22") && ran.err.contains("--payload-json"), "{}", ran.err);
}

#[test]
fn refusals_have_their_codes() {
    let home = Home::usual();
    let _served = home.serve();
    let mut said = String::new();
    for (arguments, code) in [
        ("events emit --scope mian --type say.hello", 3),
        ("events emit --scope main --type core.turn.ended", 4),
        ("events emit --scope main --type say.hello --work work_0000000000001", 3),
        ("events show ev_0000000000001", 3),
        ("events show run_0000000000001", 3),
        ("events list --cursor nonsense", 2),
    ] {
        let words: Vec<&str> = arguments.split(' ').collect();
        let ran = home.run(&words);
        writeln!(said, "$ open-conduit {arguments}\n{}{}", ran.err, ran.code).unwrap();
        assert_eq!(ran.code, code, "{said}");
    }
    insta::assert_snapshot!(normal::text(&said, &home));
}

#[test]
fn explain_tells_and_does_nothing() {
    let home = Home::usual();
    let _served = home.serve();
    let described = ["events", "explain", "--scope", "main", "--type", "say.hello", "--key-source", "a"];
    let described = [&described[..], &["--key-external-id", "b"]].concat();
    let ran = home.run(&described).code(0);
    assert!(ran.out.contains("`hello`"), "{}", ran.out);
    assert_eq!(home.json(&described)["outcome"], "routed");
    assert!(home.json(&["events", "list"])["items"].as_array().unwrap().is_empty());

    let proposed = home.file("proposed.toml", "[[scopes]]\nname = \"main\"\n");
    let asked = home.json(&[&described[..], &["--config", proposed.to_str().unwrap()]].concat());
    assert_eq!(asked["outcome"], "unmatched");
}

#[test]
fn tail_prints_what_arrives_and_what_became_of_it() {
    let home = Home::usual();
    let _served = home.serve();
    let mut tail = Served::spawn(home.command(&["events", "tail", "--json"]));
    // Whoever follows from now on sees what comes next; which Event that is, only trying tells.
    let sent = home.emit("say.hello", "1");
    let keeps_sending = std::thread::scope(|scope| {
        let line = scope.spawn(|| tail.line());
        wait_for("the first line", || {
            if line.is_finished() {
                return Some(());
            }
            home.emit("say.hello", "1");
            None
        });
        line.join().unwrap()
    });
    assert_eq!(keeps_sending["scope"], "main");
    drop(sent);
}

#[test]
fn an_empty_list_says_what_to_do() {
    let home = Home::usual();
    let _served = home.serve();
    for (noun, command) in [("events", "events emit"), ("work", "events emit"), ("runs", "events list")] {
        let ran = home.run(&[noun, "list"]).code(0);
        assert!(ran.out.contains(command), "{}", ran.out);
    }
}

#[test]
fn json_shapes() {
    let home = Home::usual();
    let _served = home.serve();
    let sent = home.json(&waiting("say.hello", "1"));
    let list = home.json(&["events", "list", "--type", "say.hello"]);
    let show = home.json(&["events", "show", text(&sent, "/event")]);
    let explain = home.json(&["events", "explain", text(&sent, "/event")]);
    let shapes = [
        ("events emit --wait", &sent),
        ("events list", &list),
        ("events show", &show),
        ("events explain", &explain),
    ]
    .map(|(name, object)| format!("{name}\n{}\n", normal::shape_text(object)));
    insta::assert_snapshot!(shapes.concat());
}
