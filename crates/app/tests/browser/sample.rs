//! A home in which what usually happens has happened: builds, a release that goes on, a failure, a duplicate.

use std::fmt::Write as _;

use serde_json::Value;

use super::home::{Home, text, wait_for};
use super::site::Site;

/// The scope's bindings, each with the type of Event that starts it.
const BINDINGS: &[(&str, &str, &str)] = &[
    (
        "tests",
        "push.received",
        r"printf '\033[90mworkspace\033[0m  worktree on branch \033[36magent/uploads\033[0m at 4be1c09\n'
printf '\033[34mshell\033[0m      npm test -- upload\n'
printf '\033[32m✓\033[0m queues a file \033[90m(12 ms)\033[0m\n\033[32m✓\033[0m resumes after a reload \033[90m(31 ms)\033[0m\n'
printf '\033[1;32m✓ 42 passed\033[0m\n'",
    ),
    (
        "deploy",
        "deploy.requested",
        r"printf '\033[34mshell\033[0m      ./deploy staging\n'
printf 'checking 3 hosts\n\033[32m✓\033[0m web-1\n\033[32m✓\033[0m web-2\n'
printf '\033[1;31m✗ web-3 does not answer\033[0m after 30 s\n' >&2
exit 3",
    ),
    (
        "release",
        "release.requested",
        r"printf '\033[34mshell\033[0m      ./release 2.4.0\n\033[32m✓\033[0m notes written\n\033[32m✓\033[0m 3 of 5 targets built\n'
while [ -d HOME_OF_IT ] && [ ! -e GATE ]; do sleep 0.05; done",
    ),
    (
        "await",
        "review.requested",
        r#"printf '{"status":"waiting","types":["review.given"],"timeout_seconds":86400}' > "$OS_OUTPUT_DIR/result.json""#,
    ),
];

/// A page to look at.
pub(super) struct Place {
    pub(super) name: &'static str,
    pub(super) path: String,
    /// Whether the documents show it.
    pub(super) has_picture: bool,
}

impl Place {
    fn new(name: &'static str, path: impl Into<String>) -> Self {
        Self { name, path: path.into(), has_picture: false }
    }

    /// A page that the documents show.
    fn shown(name: &'static str, path: impl Into<String>) -> Self {
        Self { has_picture: true, ..Self::new(name, path) }
    }
}

/// A home for [`fill`].
pub(super) fn home() -> Home {
    let home = Home::empty();
    home.configure(&config(&home));
    home
}

fn config(home: &Home) -> String {
    let gate = home.gate().display().to_string();
    // A run whose test is over, and its folder gone, must not go on for ever.
    let folder = home.path().display().to_string();
    let budget = "\n[[scopes.budgets]]\nunit = \"turns\"\nper = \"work\"\nwindow = \"day\"\nlimit = 2\n";
    let mut config = "[daemon]\napi_listen = \"127.0.0.1:0\"\nwebhook_listen = \"127.0.0.1:0\"\n\n\
                      [[scopes]]\nname = \"harbor\"\n\n[scopes.settings]\nconcurrency = 4\n\n\
                      [[scopes]]\nname = \"harbor/web\"\nparent = \"harbor\"\n"
        .to_owned();
    config.push_str(budget);
    for (name, event_type, script) in BINDINGS {
        let script = script.replace("GATE", &gate).replace("HOME_OF_IT", &folder);
        write!(
            config,
            "\n[[scopes.bindings]]\nname = \"{name}\"\nexecutor = \"shell\"\n\
             config = {{ argv = [\"sh\", \"-c\", '''{script}'''] }}\n\
             [[scopes.routes]]\nname = \"{event_type}\"\nhandler = \"match\"\nbinding = \"{name}\"\n\
             config = {{ types = [\"{event_type}\"] }}\n"
        )
        .unwrap();
    }
    config.push_str("\n[[scopes]]\nname = \"harbor/docs\"\nparent = \"harbor\"\n");
    config
}

/// Lets things happen, and gives the pages that show them.
#[expect(clippy::too_many_lines, reason = "a list, with a place for each page")]
pub(super) fn fill(site: &Site) -> Vec<Place> {
    let emit = |event_type: &str, key: &str, payload: &str| {
        let words = ["events", "emit", "--scope", "harbor/web", "--type", event_type, "--delivery-id"];
        let delivery = format!("{event_type}/{key}");
        let rest = [
            delivery.as_str(),
            "--key-source",
            "harbor",
            "--key-external-id",
            key,
            "--payload-json",
            payload,
        ];
        site.home.json(&[&words[..], &rest].concat())
    };
    let push =
        r#"{"branch": "main", "commit": "4be1c09", "author": "Ada", "files": ["src/upload/queue.ts"]}"#;
    for key in ["web#211", "web#212", "web#214"] {
        emit("push.received", key, push);
    }
    emit("deploy.requested", "web@staging", r#"{"host": "staging", "by": "Grace"}"#);
    emit("release.requested", "web@2.4.0", r#"{"version": "2.4.0"}"#);
    let pushed = emit("push.received", "web#214", push);
    assert_eq!(pushed["duplicate"], true, "a duplicate is looked at: {pushed}");
    emit("comment.created", "web#214", r#"{"text": "Leave clock.ts alone, please"}"#);
    site.home.configure(&config(&site.home).replace("concurrency = 4", "concurrency = 8"));

    let ended = |key: &str, state: &str| {
        let run = site.run_of("harbor", key);
        wait_for(state, || (site.home.json(&["runs", "show", &run])["state"] == state).then_some(()));
        run
    };
    let completed = ended("web#214", "completed");
    ended("web#211", "completed");
    ended("web#212", "completed");
    let failed = ended("web@staging", "failed");
    let running = ended("web@2.4.0", "running");
    emit("review.requested", "web#215", r#"{"of": "web#215"}"#);
    let waiting = work_until(site, "web#215", |work| work["state"] == "waiting");
    let held = hold(site);
    site.home.run(&["scope", "pause", "harbor/docs"]).code(0);
    let event = text(&pushed, "/event");
    let work_of = |run: &str| site.home.json(&["runs", "show", run])["work"].as_str().unwrap().to_owned();
    let (work, failed_work) = (work_of(&running), work_of(&failed));
    vec![
        Place::shown("runs", "/"),
        Place::new("runs-none", "/?q=nothing-like-it"),
        Place::new("run-completed", format!("/runs/{completed}")),
        Place::shown("run-failed", format!("/runs/{failed}")),
        Place::shown("run-running", format!("/runs/{running}")),
        Place::new("log", format!("/runs/{failed}/log")),
        Place::new("again", format!("/runs/{failed}/again")),
        Place::shown("events", "/events"),
        Place::shown("event", format!("/events/{event}")),
        Place::new("emit", format!("/events/new?event={event}")),
        Place::new("explain", format!("/events/explain?event={event}")),
        Place::new("works", "/work"),
        Place::shown("work", format!("/work/{work}")),
        Place::new("retry", format!("/work/{failed_work}/retry")),
        Place::new("cancel", format!("/work/{work}/cancel")),
        Place::new("interrupt", format!("/work/{work}/interrupt")),
        Place::new("inject", format!("/work/{work}/inject")),
        Place::new("work-waiting", format!("/work/{waiting}")),
        Place::shown("work-held", format!("/work/{held}")),
        Place::new("release", format!("/work/{held}/release")),
        Place::new("replay", format!("/events/{event}/replay")),
        Place::new("pause", "/scopes/harbor%2Fweb/pause"),
        Place::new("config-paused", "/config?scope=harbor%2Fdocs"),
        Place::new("resume", "/scopes/harbor%2Fdocs/resume"),
        Place::shown("config", "/config?scope=harbor%2Fweb"),
        Place::new("apply", "/config/apply"),
        Place::shown("health", "/health"),
        Place::new("settings", "/settings"),
        Place::new("not-found", "/runs/run_none"),
    ]
}

/// The Work of a key, once it is in this state.
fn work_until(site: &Site, key: &str, is_there: impl Fn(&Value) -> bool) -> String {
    let run = site.run_of("harbor", key);
    let work = text(&site.home.json(&["runs", "show", &run]), "/work").to_owned();
    wait_for("the Work", || is_there(&site.home.json(&["work", "show", &work])).then_some(()));
    work
}

/// Uses up the budget of a Work, and gives the Work.
fn hold(site: &Site) -> String {
    let key = "web#209";
    for number in 1..=3 {
        let delivery = format!("push.received/{key}/{number}");
        let words = ["events", "emit", "--scope", "harbor/web", "--type", "push.received", "--delivery-id"];
        let rest = [delivery.as_str(), "--key-source", "harbor", "--key-external-id", key];
        site.home.json(&[&words[..], &rest].concat());
        let settled = |work: &Value| work["queue"] == "idle" && work["attempts"] == number;
        work_until(site, key, |work| work["hold"].is_object() || settled(work));
    }
    work_until(site, key, |work| work["hold"].is_object())
}
