//! `runs`: listing, showing, following and explaining.

use super::home::{Home, Served, emit, text, wait_for};
use super::normal;

#[test]
fn a_run_is_found_by_the_beginning_of_its_id() {
    let home = Home::usual();
    let _served = home.serve();
    let sent = home.json(&[&emit("say.hello", "1")[..], &["--wait"]].concat());
    let id = text(&sent, "/run/id");
    let ran = home.run(&["runs", "show", id]).code(0);
    insta::assert_snapshot!(normal::text(&ran.out, &home));
    assert_eq!(home.json(&["runs", "show", &id[.."run_".len() + 5]])["id"], id);
    let ran = home.run(&["runs", "show", "run_zzzz"]).code(3);
    assert!(ran.err.starts_with("error: "), "{}", ran.err);
    home.run(&["runs", "show", "run_0000000000001"]).code(3);
}

#[test]
fn list_has_a_line_for_each_run_and_filters() {
    let home = Home::usual();
    let _served = home.serve();
    home.json(&[&emit("say.hello", "1")[..], &["--wait"]].concat());
    home.run(&[&emit("do.fail", "2")[..], &["--wait"]].concat()).code(1);
    let ran = home.run(&["runs", "list"]).code(0);
    let words: Vec<Vec<&str>> = ran.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[0], ["RUN", "STATE", "STARTED", "TOOK", "TRIGGER", "KEY"]);
    assert_eq!((words[1][1], words[2][1]), ("failed", "completed"));
    assert!(ran.out.lines().all(|line| !line.ends_with(' ')));
    assert!(!ran.out.contains('\u{1b}'), "no color where nobody sees it");

    let failed = home.json(&["runs", "list", "--state", "failed"]);
    assert_eq!(failed["items"].as_array().unwrap().len(), 1);
    let keyed = home.json(&["runs", "list", "--key-source", "test", "--key-external-id", "1"]);
    assert_eq!(keyed["items"][0]["state"], "completed");

    let ran = home.run(&["runs", "list", "--limit", "1"]).code(0);
    let cursor = ran.err.trim().rsplit(' ').next().unwrap();
    let rest = home.json(&["runs", "list", "--limit", "1", "--cursor", cursor]);
    assert_eq!(rest["items"][0]["state"], "completed");
}

#[test]
fn log_prints_what_the_run_wrote() {
    let home = Home::usual();
    let _served = home.serve();
    let sent = home.json(&[&emit("say.hello", "1")[..], &["--wait"]].concat());
    let id = text(&sent, "/run/id");
    let directory = text(&home.json(&["runs", "show", id]), "/directory").to_owned();
    assert!(directory.contains(id) && std::path::Path::new(&directory).is_dir(), "{directory}");
    assert_eq!(home.run(&["runs", "log", id]).code(0).out, "hello\n");
    let piece = home.json(&["runs", "log", id]);
    assert_eq!((&piece["from"], &piece["text"]), (&0.into(), &"hello\n".into()));
}

#[test]
fn log_and_watch_follow_a_run_to_its_end() {
    let home = Home::usual();
    let _served = home.serve();
    home.emit("do.slow", "1");
    let id = wait_for("the run", || {
        let list = home.json(&["runs", "list", "--state", "running"]);
        list["items"][0]["id"].as_str().map(str::to_owned)
    });
    let mut log = Served::spawn(home.command(&["runs", "log", &id, "--follow"]));
    assert_eq!(log.text_line(), "begun\n");
    let mut watch = Served::spawn(home.command(&["runs", "watch", &id, "--json"]));
    assert_eq!(watch.line()["state"], "running");
    home.open_gate();
    assert_eq!(log.text_line(), "ended\n");
    assert_eq!(log.end(), 0);
    assert_eq!(watch.line()["state"], "completed");
    assert_eq!(watch.end(), 0);
}

#[test]
fn json_shapes() {
    let home = Home::usual();
    let _served = home.serve();
    let sent = home.json(&[&emit("say.hello", "1")[..], &["--wait"]].concat());
    let id = text(&sent, "/run/id");
    let list = home.json(&["runs", "list"]);
    let why = home.json(&["runs", "why", id]);
    let work = home.json(&["work", "show", text(&sent, "/run/work")]);
    let shapes = [("runs list", &list), ("runs why", &why), ("work show", &work)]
        .map(|(name, object)| format!("{name}\n{}\n", normal::shape_text(object)));
    insta::assert_snapshot!(shapes.concat());
}
