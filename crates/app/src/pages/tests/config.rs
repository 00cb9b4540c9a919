//! The configuration in words, and applying the edited file.

use std::fmt::Write as _;

use super::{ask, has, page};
use crate::api::tests::sessions::Browser;
use crate::api::tests::{CONFIG, HOOK_SECRET, JOB_SECRET, Reply, TestDaemon, home_in};

const FORM: &str = "application/x-www-form-urlencoded";

/// Sends a form as the operator.
async fn submit(daemon: &TestDaemon, path: &str, kind: &str, form: &str) -> Reply {
    let (host, bearer) = (Browser::new(daemon).host, format!("Bearer {}", daemon.token));
    let headers = [("Host", host.as_str()), ("Authorization", &bearer), ("Content-Type", kind)];
    daemon.tcp("POST", path, &headers, form.as_bytes()).await
}

fn write(daemon: &TestDaemon, text: &str) {
    std::fs::write(daemon.home().root().join("conduit.toml"), text).unwrap();
}

/// The value of a hidden field.
fn hidden(text: &str, name: &str) -> String {
    let (_before, after) = text.split_once(&format!("name=\"{name}\" value=\"")).expect("the field is there");
    after.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn what_holds_is_told_in_words() {
    let daemon = TestDaemon::start().await;
    let text = page(&daemon, "/config").await;
    has(
        &text,
        &[
            "Generation 1, applied",
            "Takes build.finished.",
            "Leads to a new Work for each, of kind <code>test.build</code>.",
            "What reaches a Work while it runs waits for its next run.",
            "Binding <code>fake</code> does nothing, executor <code>fake</code>, 1 h at most.",
            "takes webhooks with a signature of the body, as Events of source <code>hook/builds</code>.",
            "It may read secret <code>hook</code>.",
            "4 runs<small>set here</small>",
            "1 h<small>default</small>",
            "off<small>default</small>",
            "href=\"/config?scope=team%2Foff\"",
            "<span class=\"tag\">disabled</span>",
        ],
    );
    has(
        &page(&daemon, "/config?scope=team%2Foff").await,
        &["It is disabled: Events are accepted and wait", "aria-current=\"page\">team/off"],
    );
    for (path, status) in
        [("/config?scope=nowhere", 404), ("/config?scope=%00", 404), ("/config?moon=1", 400)]
    {
        let reply = ask(&daemon, path).await;
        assert_eq!(reply.status, status, "{path}");
        assert!(reply.text().contains("<h1"), "{path}");
    }
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn what_is_inherited_and_taken_away_says_so() {
    let config = CONFIG.to_owned()
        + "\n[[scopes]]\nname = \"site\"\nparent = \"main\"\nread_scopes = [\"team/off\"]\nsettings = { timeout_seconds = 90 }\n\
           ceilings = { concurrency = 9 }\n[[scopes.routes]]\nname = \"hang\"\ndisabled = true\n";
    let daemon = TestDaemon::start_with(&config).await;
    let text = page(&daemon, "/config?scope=site").await;
    has(
        &text,
        &[
            "It inherits from <code>main</code> what it doesn",
            "built <span class=\"tag\">from main</span>",
            "executor <code>fake</code>, 1 min 30 s at most.",
            "4 runs<small>from main</small>",
            "1 min 30 s<small>set here</small>",
            "9 runs<small>set here</small>",
            "The inherited route <code>hang</code> is disabled here.",
            "What it takes belongs to scope <code>main</code>.",
            "Events of <code>team/off</code> may end its Waits.",
            "hook <span class=\"tag\">from main</span>",
            "<li class=\"d1\">",
        ],
    );
    assert!(!text.contains("Takes hang.please"), "it is taken away");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn no_page_holds_a_secret_or_where_it_is() {
    let config = CONFIG.replace(
        "name = \"fake\"\nexecutor = \"fake\"",
        "name = \"fake\"\nexecutor = \"fake\"\nsecrets = { TOKEN = \"hook\" }\nconfig = { env = { PLAIN = \"env-v4lue\" } }",
    );
    let daemon = TestDaemon::start_with(&config).await;
    let edited = config.replace("\"env-v4lue\"", "\"other-v4lue\"").replace("gone = \"env:NOT_THERE\"\n", "");
    let edited = edited.replace("[\"gone\"]", "[\"job\"]").replace("secret = \"gone\"", "secret = \"job\"");
    write(&daemon, &edited);
    let mut seen = String::new();
    for path in [
        "/config",
        "/config?scope=team/off",
        "/config/apply",
        "/health",
        "/settings",
        "/",
        "/v1/scopes",
        "/v1/doctor",
    ] {
        let reply = if path.starts_with("/v1") { daemon.get(path).await } else { ask(&daemon, path).await };
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        for hidden in [
            HOOK_SECRET,
            JOB_SECRET,
            "v4lue",
            "env:HOOK_SECRET",
            "HOOK_SECRET",
            "NOT_THERE",
            daemon.token.as_str(),
        ] {
            assert!(!reply.text().contains(hidden), "{path} holds {hidden}");
        }
        seen += &reply.text();
    }
    assert!(seen.contains("secret <code>hook</code> as <code>TOKEN</code>"), "its name is there");

    let wrong = CONFIG.replace("concurrency = 4", "concurrency = 0\nmoon = 'S3CRET-v4lue'");
    write(&daemon, &wrong);
    let text = page(&daemon, "/config").await;
    has(&text, &["Cannot be applied", "Line 11", "scopes[0].settings", "Generation 1 stays in force"]);
    assert!(!text.contains("v4lue"), "{text}");
    let none = ask(&daemon, "/config/apply").await;
    assert_eq!((none.status, none.header("location")), (303, "/config#file"));
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn an_apply_does_what_its_page_showed_or_nothing() {
    let daemon = TestDaemon::start().await;
    let same = ask(&daemon, "/config/apply").await;
    assert_eq!((same.status, same.header("location")), (303, "/config#file"), "there is nothing to apply");

    let first = CONFIG.replace("concurrency = 4", "concurrency = 5");
    write(&daemon, &first);
    has(
        &page(&daemon, "/config").await,
        &[
            "What the edited file would change",
            "Scope <code>main</code>: concurrency is now 5",
            "/config/apply",
        ],
    );
    let confirm = page(&daemon, "/config/apply").await;
    has(
        &confirm,
        &["concurrency is now 5", "open-conduit config apply", "Keep generation 1", "form method=\"post\""],
    );
    let form = format!("digest={}&generation={}", hidden(&confirm, "digest"), hidden(&confirm, "generation"));

    // What was edited meanwhile is not what was looked at.
    write(&daemon, &CONFIG.replace("concurrency = 4", "concurrency = 6"));
    let refused = submit(&daemon, "/config/apply", FORM, &form).await;
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert!(refused.text().contains("config_conflict"), "{}", refused.text());
    write(&daemon, &first);
    let later = form.replace("generation=1", "generation=2");
    assert_eq!(submit(&daemon, "/config/apply", FORM, &later).await.status, 409);
    for (kind, form, status) in [
        (FORM, "", 400),
        (FORM, "digest=x", 400),
        (FORM, "digest=x&generation=x", 400),
        (FORM, "digest=x&digest=y&generation=1", 400),
        (FORM, "digest=x&generation=1&moon=1", 400),
        ("application/json", "{}", 415),
    ] {
        assert_eq!(submit(&daemon, "/config/apply", kind, form).await.status, status, "{form}");
    }
    let large = format!("digest={}", "x".repeat(64 * 1024));
    assert_eq!(submit(&daemon, "/config/apply", FORM, &large).await.status, 413);
    assert_eq!(daemon.get_json("/v1/config").await["generation"], 1, "nothing was changed");

    let applied = submit(&daemon, "/config/apply", FORM, &form).await;
    assert_eq!((applied.status, applied.header("location")), (303, "/config"), "{}", applied.text());
    has(&page(&daemon, "/config").await, &["Generation 2, applied", "5 runs<small>set here</small>"]);
    let again = submit(&daemon, "/config/apply", FORM, &form).await;
    assert_eq!(again.status, 409, "the page is of a generation that is gone");
    assert_eq!(daemon.get_json("/v1/config").await["generation"], 2);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn what_waits_for_a_restart_says_so() {
    let daemon = TestDaemon::start().await;
    write(&daemon, &CONFIG.replace("webhook_listen = \"127.0.0.1:0\"", "webhook_listen = \"off\""));
    has(&page(&daemon, "/config").await, &["After a restart", "The webhook listener moves to off"]);
    has(&page(&daemon, "/config/apply").await, &["Only when the daemon starts again:"]);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn hostile_text_is_only_text() {
    let config = CONFIG.replace(
        "types = [\"build.finished\"], work",
        "when = \"event.type == '<script>alert(1)</script>\\u202e'\", work",
    );
    let daemon = TestDaemon::start_with(&config).await;
    let text = page(&daemon, "/config").await;
    has(&text, &["&#60;script&#62;alert(1)"]);
    assert!(!text.contains("<script>alert") && !text.contains('\u{202e}'), "{text}");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn without_a_configuration_the_page_teaches_to_write_one() {
    let directory = tempfile::tempdir().unwrap();
    home_in(directory.path()).create().unwrap();
    let daemon = TestDaemon::start_in(directory).await;
    let parts = ["Nothing is configured", "open-conduit config apply", "The home has no configuration file."];
    has(&page(&daemon, "/config").await, &parts);
    has(&page(&daemon, "/health").await, &["no configuration is in force"]);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn scopes_come_page_by_page_in_the_order_of_the_tree() {
    let mut config = CONFIG.to_owned();
    for name in ["b", "a/x", "a"] {
        let parent = if name == "a/x" { "a" } else { "main" };
        writeln!(config, "\n[[scopes]]\nname = \"{name}\"\nparent = \"{parent}\"").unwrap();
    }
    let daemon = TestDaemon::start_with(&config).await;
    let tree = daemon.get_json("/v1/config").await["tree"].clone();
    let lines: Vec<(&str, u64)> = tree
        .as_array()
        .unwrap()
        .iter()
        .map(|line| (line["name"].as_str().unwrap(), line["depth"].as_u64().unwrap()))
        .collect();
    assert_eq!(lines, [("main", 0), ("b", 1), ("a", 1), ("a/x", 2), ("team/off", 0)]);
    let mut names = Vec::new();
    let mut path = "/v1/scopes?limit=2".to_owned();
    loop {
        let page = daemon.get_json(&path).await;
        names.extend(
            page["items"].as_array().unwrap().iter().map(|scope| scope["name"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/scopes?limit=2&cursor={next}");
    }
    assert_eq!(names, ["main", "b", "a", "a/x", "team/off"]);
    assert_eq!(daemon.get_json("/v1/scopes?name=a").await["items"].as_array().unwrap().len(), 1);
    assert_eq!(daemon.get("/v1/scopes?name=nowhere").await.status, 404);
    daemon.running.stop().await.unwrap();
}
