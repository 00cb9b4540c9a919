//! `os`: real jobs that make calls, and daemons that come and go meanwhile.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::home::{Home, text, wait_for};

/// A home with one more route, `do.tools`, whose job runs this script in a directory of the test.
fn home(script: &str) -> (Home, PathBuf) {
    let home = Home::usual();
    let told = home.file("told.d", "").with_extension("");
    fs::create_dir(&told).unwrap();
    let script = home.file("tools.sh", &format!("set -eu\ncd {}\n{script}", told.display()));
    home.configure(&format!(
        "{}\n[[scopes.bindings]]\nname = \"tools\"\nexecutor = \"shell\"\n\
         config = {{ argv = [\"sh\", \"{}\"] }}\n\
         [[scopes.routes]]\nname = \"tools\"\nhandler = \"match\"\nbinding = \"tools\"\n\
         config = {{ types = [\"do.tools\"] }}\n",
        home.usual_config(),
        script.display()
    ));
    (home, told)
}

/// A file that the job has written, whole.
fn told(directory: &Path, name: &str) -> String {
    let path = directory.join(name);
    wait_for(name, || fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n')))
}

#[track_caller]
fn told_json(directory: &Path, name: &str) -> Value {
    let text = told(directory, name);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

const EVERYTHING: &str = r#"
command -v os > where
os context > context
report="--type report.made --key-source test --key-external-id report --call once"
os emit $report --payload-json '{"n":1.50}' > first
os emit $report --payload-json '{"n":1.50}' > again
code=0; os emit $report > /dev/null 2> reused || code=$?; echo $code > reused_code
code=0; os emit --type core.retry.due 2> reserved || code=$?; echo $code > reserved_code
code=0; os emit 2> usage_error || code=$?; echo $code > usage_code
os child --key test child --binding hello --input-json '{"part":2}' > child
os progress "half way" --percent 50 > progress
os usage usd=0.25 tokens=1200 > usage_one
os usage usd=0.5 > usage_two
os wait --type go.on --timeout 3600 > wait
tr '\0' '\n' < /proc/$$/environ > environment
tr '\0' '\n' < /proc/$$/cmdline > words
stat -c %a "$OS_TOKEN_FILE" > mode
echo "$OS_TOKEN_FILE" > token_file
until os input list > input && grep -q '"event"' input; do sleep 0.05; done
event=$(ls "$OS_INBOX_DIR" | sed -n 's/.*-\(ev_.*\)\.json/\1/p')
os input ack "$event" > ack
ls "$OS_INBOX_DIR/acknowledged" > acknowledged
"#;

#[test]
fn a_job_makes_every_call() {
    let (home, directory) = home(EVERYTHING);
    let _served = home.serve();
    home.emit("do.tools", "1");
    told(&directory, "token_file");
    let runs = home.json(&["runs", "list", "--state", "running"]);
    let (run, work) = (text(&runs, "/items/0/id").to_owned(), text(&runs, "/items/0/work").to_owned());
    let shown = home.json(&["runs", "show", &run]);
    assert_eq!((text(&shown, "/progress/text"), &shown["progress"]["percent"]), ("half way", &50.into()));
    home.run(&["work", "inject", &work, "one more thing"]).code(0);
    let ack = told_json(&directory, "ack");
    assert!(told(&directory, "acknowledged").contains(text(&ack, "/event")), "its file is put aside");
    answers(&home, &directory, (&run, &work));
    effects(&home, &directory, (&run, &work));
    token_is_in_its_file_alone(&home, &directory);
}

/// What the job was answered, and with which exit codes.
fn answers(home: &Home, directory: &Path, (run, work): (&str, &str)) {
    assert_eq!(told(directory, "where").trim(), home.path().join("bin/os").to_str().unwrap());
    let context = told_json(directory, "context");
    assert_eq!((text(&context, "/run"), text(&context, "/work/id")), (run, work));
    assert_eq!(text(&context, "/trigger/type"), "do.tools");
    let (first, again) = (told_json(directory, "first"), told_json(directory, "again"));
    assert_eq!(first, again, "made again it answers the same");
    for (name, exit, code) in [("reused", "5", "call_reused"), ("reserved", "4", "reserved_type")] {
        assert_eq!(told(directory, &format!("{name}_code")).trim(), exit);
        assert_eq!(text(&told_json(directory, name), "/code"), code);
    }
    assert_eq!(told(directory, "usage_code").trim(), "2");
    assert_eq!(text(&told_json(directory, "usage_error"), "/code"), "usage");
}

/// What its calls did.
fn effects(home: &Home, directory: &Path, (run, work): (&str, &str)) {
    let reports = home.json(&["events", "list", "--type", "report.made"]);
    assert_eq!(reports["items"].as_array().unwrap().len(), 1);
    let from = (text(&reports, "/items/0/emitted_by"), text(&reports, "/items/0/source"));
    assert_eq!(from, (run, "core.run"));
    let child = told_json(directory, "child");
    let below = wait_for("the child's end", || {
        let below = home.json(&["work", "show", text(&child, "/work")]);
        (below["state"] == "completed").then_some(below)
    });
    assert_eq!((text(&below, "/parent"), text(&below, "/kind")), (work, "child.work"));
    let waiting = wait_for("the Wait", || {
        let work = home.json(&["work", "show", work]);
        (work["state"] == "waiting").then_some(work)
    });
    assert_eq!(waiting["wait"]["types"][0], "go.on");
    assert_eq!(waiting["children"][0], child["work"]);
    assert!(
        waiting["pending"].as_array().unwrap().is_empty(),
        "what was acknowledged is consumed: {waiting}"
    );
    let usage = told_json(directory, "usage_two");
    assert_eq!(
        (&usage["usage"][1]["thousandths"], &usage["warnings"]),
        (&750.into(), &serde_json::json!([])),
        "{usage}"
    );
    let ended = home.json(&["runs", "show", run]);
    assert_eq!(ended["state"], "waiting");
    let used = |unit: &str| {
        let usage = ended["usage"].as_array().cloned().unwrap_or_default();
        usage.into_iter().find(|one| one["unit"] == unit).map(|one| one["thousandths"].clone())
    };
    assert_eq!((used("usd"), used("tokens")), (Some(750.into()), Some(1_200_000.into())), "{ended}");
    let shown = home.run(&["runs", "show", run]).code(0).out;
    assert!(shown.contains("half way (50 %)"), "{shown}");
}

fn token_is_in_its_file_alone(home: &Home, directory: &Path) {
    assert_eq!(told(directory, "mode").trim(), "600");
    let token = fs::read_to_string(told(directory, "token_file").trim()).unwrap();
    for name in ["environment", "words", "context"] {
        assert!(!told(directory, name).contains(&token), "{name}");
    }
    for socket in ["conduit.sock", "os.sock"] {
        let (status, _body) = get(&home.path().join(socket), "/v1/context", &token);
        assert!(matches!(status, 401 | 403), "{socket}: the run has ended ({status})");
    }
}

/// A request as any program could make it.
fn get(socket: &Path, path: &str, token: &str) -> (u16, String) {
    let mut stream = UnixStream::connect(socket).unwrap();
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
}

#[test]
fn a_call_outlasts_a_daemon_that_was_killed() {
    let (home, directory) = home(
        "cp \"$OS_TOKEN_FILE\" before\necho >> before\nos progress begun > begun\n\
         while [ ! -e go ]; do sleep 0.02; done\n\
         echo >> calling\nos emit --type report.made --call one > made\n\
         os emit --type report.made --call one > again\ncp \"$OS_TOKEN_FILE\" after\necho >> after\n",
    );
    let served = home.serve();
    home.emit("do.tools", "1");
    told(&directory, "begun");
    served.kill();
    fs::write(directory.join("go"), "").unwrap();
    told(&directory, "calling");
    let _served = home.serve();
    let made = told_json(&directory, "made");
    assert_eq!(made, told_json(&directory, "again"));
    assert_ne!(told(&directory, "before"), told(&directory, "after"), "whoever adopts replaces the token");
    let run = wait_for("the end of the run", || {
        let runs = home.json(&["runs", "list", "--state", "completed"]);
        runs["items"][0].is_object().then(|| runs["items"][0].clone())
    });
    assert_eq!(run["attempt"], 1, "{run}");
    assert_eq!(home.json(&["events", "list", "--type", "report.made"])["items"].as_array().unwrap().len(), 1);
    let stale = told(&directory, "before");
    let (status, body) = get(&home.path().join("os.sock"), "/v1/context", stale.trim());
    assert!(status == 403 && body.contains("stale_epoch"), "{body}");
}

#[test]
fn outside_of_a_run_there_is_nobody_to_speak_for() {
    let home = Home::usual();
    let link = home.path().join("os");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_open-conduit"), &link).unwrap();
    let mut command = home.command(&["context"]);
    std::os::unix::process::CommandExt::arg0(&mut command, &link);
    let ran = command.output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
    let problem: Value = serde_json::from_slice(&ran.stderr).unwrap();
    assert_eq!(text(&problem, "/code"), "usage");
    assert_eq!(fs::metadata(home.path()).unwrap().permissions().mode() & 0o777, 0o700);
}
