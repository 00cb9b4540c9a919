//! `jobs` and `import`: what can be asked and written without a daemon.

use serde_json::{Value, json};

use super::home::Home;

#[test]
fn next_prints_slots_and_names() {
    let home = Home::empty();
    let london = ["jobs", "next", "--cron", "30 1 * * *", "--time-zone", "Europe/London"];
    let from = ["--from", "2026-10-24T12:00:00Z", "--count", "3"];
    let words: Vec<&str> = london.into_iter().chain(from).collect();
    assert_eq!(
        home.json(&words),
        json!({
            "slots": ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"],
            "names": ["2026-10-25 01:30", "2026-10-25 01:30", "2026-10-26 01:30"]
        })
    );
    let text = home.run(&words).code(0).out;
    assert!(text.contains("2026-10-25T00:30:00Z  2026-10-25 01:30 Europe/London"), "{text}");

    let never = ["jobs", "next", "--cron", "0 0 31 2 *"];
    assert_eq!(home.json(&never), json!({ "slots": [], "names": [] }));
    assert!(home.run(&never).code(0).out.starts_with("It never fires"));
    assert_eq!(home.json(&["jobs", "next", "--cron", "* * * * *"])["slots"].as_array().unwrap().len(), 5);
}

#[test]
fn next_says_what_is_wrong_and_repeats_nothing() {
    let home = Home::empty();
    for (words, why) in [
        (vec!["--cron", "hunter2 * * * *"], "the minute must be"),
        (vec!["--cron", "TZ=hunter2 * * * * *"], "`time_zone`"),
        (vec!["--cron", "* * * * *", "--time-zone", "Hunter2/X"], "IANA"),
        (vec!["--cron", "* * * * *", "--from", "hunter2"], "RFC 3339"),
    ] {
        let words: Vec<&str> = ["jobs", "next"].into_iter().chain(words).collect();
        let ran = home.run(&words).code(2);
        assert!(ran.err.contains(why) && !ran.err.to_lowercase().contains("hunter2"), "{}", ran.err);
    }
}

const JOBS: &str = r#"
[[scopes]]
name = "main"

[[scopes.extensions]]
name = "jobs"
type = "schedule"

[scopes.extensions.config]
namespace = "schedule/main"
jobs = [
  { name = "post", on = { events = ["push"], branches = ["main"], paths = ["site/**"] } },
  { name = "red", on = { events = ["check_suite.completed"], branches = ["main"], conclusions = ["failure"] } },
]
"#;

fn push(name: &str, files: &[&str]) -> String {
    let commit = json!({ "added": [], "removed": [], "modified": files });
    json!({ "ref": name, "after": "abc", "created": false, "deleted": false, "commits": [commit] })
        .to_string()
}

fn matched(home: &Home, words: &[&str], payload: &str) -> Value {
    let file = home.file("payload.json", payload);
    let words: Vec<&str> =
        ["jobs", "match"].iter().chain(words).copied().chain(["--payload", file.to_str().unwrap()]).collect();
    home.json(&words)
}

#[test]
fn match_says_whether_a_delivery_starts_a_job_and_why() {
    let home = Home::empty();
    home.configure(JOBS);
    let post = ["post", "--event", "push"];
    assert_eq!(
        matched(&home, &post, &push("refs/heads/main", &["a", "site/x"])),
        json!({ "match": true, "reason": "`site/x` changed, which `on.paths` names" })
    );
    let other = matched(&home, &post, &push("refs/heads/main", &["a"]));
    assert_eq!(other["reason"], "the one file that changed is none of `on.paths`");
    let branch = matched(&home, &post, &push("refs/heads/dev", &["site/x"]));
    assert_eq!(branch, json!({ "match": false, "reason": "`dev` is none of `on.branches`" }));
    let issue = matched(&home, &["post", "--event", "issues"], r#"{"action":"opened"}"#);
    assert_eq!(issue["reason"], "`issues.opened` is none of `on.events`");

    let ended =
        json!({ "conclusion": "failure", "head_sha": "abc", "head_branch": "main", "pull_requests": [] });
    let suite = json!({ "action": "completed", "check_suite": ended }).to_string();
    let red = ["red", "--event", "check_suite"];
    assert_eq!(matched(&home, &red, &suite)["match"], false, "a check names no branch that can be trusted");
    assert_eq!(matched(&home, &[red.as_slice(), &["--branch", "main"]].concat(), &suite)["match"], true);

    let ignoring = "\n[[scopes.extensions]]\nname = \"hub\"\ntype = \"github\"\n";
    home.configure(&format!("{JOBS}{ignoring}"));
    let answer = matched(&home, &[red.as_slice(), &["--branch", "main"]].concat(), &suite);
    assert!(answer["reason"].as_str().unwrap().contains("ignores forks"), "{answer}");
    assert_eq!(matched(&home, &post, &push("refs/heads/main", &["site/x"]))["match"], true);
}

#[test]
fn match_says_what_is_missing() {
    let home = Home::empty();
    home.configure(JOBS);
    let file = home.file("payload.json", "{}");
    let file = file.to_str().unwrap();
    let ran = home.run(&["jobs", "match", "pots", "--event", "push", "--payload", file]).code(3);
    assert!(ran.err.contains("did you mean `post`?"), "{}", ran.err);
    home.run(&["jobs", "match", "post", "--event", "PUSH", "--payload", file]).code(2);
    home.run(&["jobs", "match", "post", "--event", "push", "--payload", "nothing.json"]).code(2);
    home.configure(&JOBS.replace("site/**", "[site"));
    let ran = home.run(&["jobs", "match", "post", "--event", "push", "--payload", file, "--json"]).code(2);
    let problem = ran.problem();
    assert_eq!(problem["code"], "invalid_config");
    assert_eq!(problem["problems"][0]["path"], "scopes[0].extensions[0].config.jobs[0].on.paths[0]");
    let twice = format!("{JOBS}\n{}", JOBS.replace("name = \"main\"", "name = \"other\""));
    home.configure(&twice.replacen("schedule/main", "schedule/a", 1));
    home.run(&["jobs", "match", "post", "--event", "push", "--payload", file]).code(2);
    home.run(&["jobs", "match", "post", "--event", "push", "--payload", file, "--scope", "other"]).code(0);
}

#[test]
fn import_writes_what_it_can_and_says_what_it_cannot() {
    let home = Home::empty();
    let crontab = "MAILTO=me\n5 4 * * 7 /usr/bin/backup --all\n@reboot /usr/bin/up\n";
    let file = home.file("crontab", crontab);
    let words = ["import", "crontab", file.to_str().unwrap(), "--time-zone", "Europe/Berlin"];
    let ran = home.run(&words).code(0);
    assert!(ran.err.contains("Line 3 is not translated: `@reboot` is no time"), "{}", ran.err);
    assert!(
        ran.out.starts_with("# 1 job, read in Europe/Berlin where the crontab names no zone; 2 lines are")
    );
    assert!(ran.out.contains("# Line 1 is not translated"), "{}", ran.out);
    let config = format!("[[scopes]]\nname = \"main\"\n\n{}", ran.out);
    home.configure(&config);
    let payload = home.file("payload.json", "{}");
    let payload = payload.to_str().unwrap();
    let asked = home.json(&["jobs", "match", "backup", "--event", "push", "--payload", payload]);
    assert_eq!(asked["reason"], "the job has no `on.events`", "what was written is read again");

    let written = home.json(&words);
    let job = &written["extensions"][0]["config"]["jobs"][0];
    assert_eq!(*job, json!({ "name": "backup", "cron": "5 4 * * 0", "time_zone": "Europe/Berlin" }));
    assert_eq!(written["bindings"][0]["config"]["command"], "/usr/bin/backup --all");
    assert_eq!(written["untranslated"].as_array().unwrap().len(), 2);
    home.run(&["import", "crontab", "nothing"]).code(2);
    home.run(&["import", "crontab", file.to_str().unwrap(), "--time-zone", "Nowhere/X"]).code(2);
}
