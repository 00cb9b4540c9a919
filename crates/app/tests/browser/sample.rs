//! A home in which what usually happens has happened: builds, a release that goes on, a failure, a duplicate.

use std::fmt::Write as _;

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
while [ ! -e GATE ]; do sleep 0.05; done",
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
    let mut config = "[daemon]\napi_listen = \"127.0.0.1:0\"\nwebhook_listen = \"127.0.0.1:0\"\n\n\
                      [[scopes]]\nname = \"harbor\"\n\n[scopes.settings]\nconcurrency = 4\n\n\
                      [[scopes]]\nname = \"harbor/web\"\nparent = \"harbor\"\n"
        .to_owned();
    for (name, event_type, script) in BINDINGS {
        let script = script.replace("GATE", &gate);
        write!(
            config,
            "\n[[scopes.bindings]]\nname = \"{name}\"\nexecutor = \"shell\"\n\
             config = {{ argv = [\"sh\", \"-c\", '''{script}'''] }}\n\
             [[scopes.routes]]\nname = \"{event_type}\"\nhandler = \"match\"\nbinding = \"{name}\"\n\
             config = {{ types = [\"{event_type}\"] }}\n"
        )
        .unwrap();
    }
    config
}

/// Lets things happen, and gives the pages that show them.
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
    let event = text(&pushed, "/event");
    let work = site.home.json(&["runs", "show", &running])["work"].as_str().unwrap().to_owned();
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
        Place::new("cancel", format!("/work/{work}/cancel")),
        Place::shown("config", "/config?scope=harbor%2Fweb"),
        Place::new("apply", "/config/apply"),
        Place::shown("health", "/health"),
        Place::new("settings", "/settings"),
        Place::new("not-found", "/runs/run_none"),
    ]
}
