//! A run's page, its output, and running it again.

use serde_json::{Value, json};

use crate::api::tests::places;
use crate::api::tests::sessions::Browser;
use crate::api::tests::{CONFIG, TestDaemon};

/// The shared configuration with a binding whose runs fail, and with Works that a key finds.
fn config() -> String {
    CONFIG.replace(
        "[[scopes.routes]]\nname = \"hang\"",
        "[[scopes.bindings]]\nname = \"fails\"\nexecutor = \"fake\"\nconfig = { fail = true }\n\
         [[scopes.routes]]\nname = \"fails\"\nhandler = \"match\"\nbinding = \"fails\"\n\
         config = { types = [\"fail.please\"], work = \"fresh\", kind = \"test.fail\" }\n\
         [[scopes.routes]]\nname = \"hang\"",
    )
}

async fn daemon() -> TestDaemon {
    TestDaemon::start_with(&config()).await
}

/// The run of a type of Event, once it is in a state.
async fn run(daemon: &TestDaemon, body: &Value, state: &str) -> Value {
    let emitted = daemon.emit(body).await;
    let is_it = |run: &Value| run["trigger"]["event"] == emitted["event"] && run["state"] == state;
    let page = daemon.until("/v1/runs", |page| page["items"].as_array().unwrap().iter().any(is_it)).await;
    page["items"].as_array().unwrap().iter().find(|run| is_it(run)).unwrap().clone()
}

fn id(body: &Value) -> &str {
    body["id"].as_str().unwrap()
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing in {text}");
    }
}

#[track_caller]
fn lacks(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(!text.contains(part), "`{part}` stands in {text}");
    }
}

fn between<'t>(text: &'t str, before: &str, after: &str) -> &'t str {
    text.split(before).nth(1).unwrap().split(after).next().unwrap()
}

#[tokio::test]
async fn a_run_with_a_workspace_says_where_it_worked() {
    let placed = "name = \"fake\"\nexecutor = \"fake\"\n";
    let config = CONFIG.replace(placed, &format!("{placed}resource = {{ provider = \"places\" }}\n"));
    let daemon = TestDaemon::start_with(&config).await;
    let browser = Browser::logged_in(&daemon).await;
    let body = json!({ "scope": "main", "type": "build.finished", "delivery_id": "d-1" });
    let run = run(&daemon, &body, "completed").await;
    let facts = json!({ "kind": "places", "ref": "main", "dir": "/srv/place", "summary": places::SUMMARY });
    assert_eq!(run["workspace"], facts);
    let alone = daemon.get(&format!("/v1/runs/{}", id(&run))).await.json();
    assert_eq!((&alone["workspace"], &alone["directory"]), (&facts, &json!("/srv/place")));
    let page = browser.get(&daemon, &format!("/runs/{}", id(&run))).await.text();
    has(&page, &["<dt>Workspace</dt><dd>a place, &#60;b&#62;1&#60;/b&#62; commit behind</dd>", "/srv/place"]);
    let config = browser.get(&daemon, "/config").await.text();
    has(&config, &["does nothing in a place"]);
}

#[tokio::test]
async fn a_completed_run_says_why_it_started_and_what_it_left() {
    let daemon = daemon().await;
    let browser = Browser::logged_in(&daemon).await;
    let body = json!({
        "scope": "main", "type": "build.finished", "delivery_id": "d-1",
        "key": { "source": "demo", "external_id": "<script>alert(2)</script>" },
    });
    let run = run(&daemon, &body, "completed").await;
    daemon.emit(&body).await;
    let page = browser.get(&daemon, &format!("/runs/{}", id(&run))).await;
    assert_eq!(page.status, 200);
    let (text, event, work) = (page.text(), run["trigger"]["event"].as_str().unwrap(), &run["work"]);
    let (event, work) =
        (format!("href=\"/events/{event}\""), format!("href=\"/work/{}\"", work.as_str().unwrap()));
    has(
        &text,
        &[
            "Why this run started",
            "class=\"root\"",
            &event,
            &work,
            "Route built",
            "<b>Duplicate:</b>",
            "The same delivery came 1 more time",
            "It completed at <time",
            "build.finished",
            "Completed",
            "This run’s trigger",
            "generation 1",
            "executor fake",
            "Run again…",
            "runs why",
            "&#60;script&#62;alert(1)&#60;/script&#62;",
        ],
    );
    lacks(&text, &["<script>alert", "Cancel Work", "Jump to failure", "data-log-follow", "style="]);
    let file = format!("/v1/runs/{}/artifacts/out/report.html", id(&run));
    has(&text, &[&format!("href=\"{file}\""), "21 bytes"]);
    // The links lead somewhere with the same session.
    let reply = browser.get(&daemon, &file).await;
    assert_eq!(
        (reply.status, reply.header("content-disposition")),
        (200, "attachment; filename=\"report.html\"")
    );
    assert_eq!(reply.header("x-content-type-options"), "nosniff");
    assert_eq!(browser.get(&daemon, "/runs/run_zzzzzzzzzzzzz").await.status, 404);
    assert_eq!(browser.get(&daemon, &format!("/runs/{}?x=1", id(&run))).await.status, 400);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_page_and_the_command_line_tell_the_same_story() {
    let daemon = daemon().await;
    let browser = Browser::logged_in(&daemon).await;
    let run = run(&daemon, &json!({ "scope": "main", "type": "fail.please" }), "failed").await;
    let why = daemon.get_json(&format!("/v1/runs/{}/why", id(&run))).await;
    let text = browser.get(&daemon, &format!("/runs/{}", id(&run))).await.text();
    let said = why["sentences"].as_array().unwrap().iter().any(|line| {
        line.as_str().unwrap().contains("It failed at") && line.as_str().unwrap().contains("(`exit_status`)")
            || line.as_str().unwrap().contains(": `exit_status`")
    });
    assert!(said, "{why}");
    has(&text, &["It failed at <time", "<code>exit_status</code>", "<dt>Exit status</dt><dd>3</dd>"]);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_run_that_goes_on_can_be_cancelled_and_followed() {
    let daemon = daemon().await;
    let browser = Browser::logged_in(&daemon).await;
    let run = run(&daemon, &json!({ "scope": "main", "type": "hang.please" }), "running").await;
    let text = browser.get(&daemon, &format!("/runs/{}", id(&run))).await.text();
    has(
        &text,
        &["Running", "Cancel Work…", "data-log-follow", "data-state=\"live\"", " left</span>", "data-since="],
    );
    lacks(&text, &["Run again…"]);
    let path = format!("/work/{}/cancel", run["work"].as_str().unwrap());
    let ask = browser.get(&daemon, &path).await;
    let stopped = format!("<a href=\"/runs/{0}\">{0}</a> is stopped", id(&run));
    has(&ask.text(), &[&stopped, "<b>This ends it for good.</b>", "open-conduit work cancel", "Keep it"]);
    assert_eq!(
        daemon.get_json(&format!("/v1/runs/{}", id(&run))).await["state"],
        "running",
        "nothing is done by asking"
    );
    assert_eq!(browser.submit(&daemon, &path, "x=1").await.status, 400);
    let done = browser.submit(&daemon, &path, "").await;
    assert_eq!((done.status, done.header("location")), (303, path.strip_suffix("/cancel").unwrap()));
    assert_eq!(daemon.get_json(&format!("/v1/runs/{}", id(&run))).await["state"], "cancelled");
    assert_eq!(browser.submit(&daemon, &path, "").await.status, 409);
    let ended = browser.get(&daemon, &path).await;
    assert_eq!(ended.status, 409);
    has(&ended.text(), &["terminal_work"]);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn running_again_sends_a_new_event_once() {
    let daemon = daemon().await;
    let browser = Browser::logged_in(&daemon).await;
    let body = json!({
        "scope": "main", "type": "build.finished", "delivery_id": "d-1", "payload": { "b": 1.50, "a": "<b>" },
    });
    let run = run(&daemon, &body, "completed").await;
    let path = format!("/runs/{}/again", id(&run));
    let ask = browser.get(&daemon, &path).await.text();
    has(
        &ask,
        &[
            "A new Event is sent",
            "Route <code>built</code>",
            "It would make a new Work",
            "open-conduit runs again",
        ],
    );
    assert_eq!(daemon.count("/v1/events?type=build.finished").await, 1, "nothing is sent by asking");
    let delivery = between(&ask, "name=\"delivery_id\" value=\"", "\"");
    let form = format!("delivery_id={}", delivery.replace('/', "%2F"));
    let first = browser.submit(&daemon, &path, &form).await;
    let second = browser.submit(&daemon, &path, &form).await;
    assert_eq!((first.status, second.status), (303, 303), "{}", first.text());
    assert_eq!(first.header("location"), second.header("location"));
    let sent = daemon.get_json(&format!("/v1{}", first.header("location"))).await;
    assert_eq!((sent["source"].as_str(), sent["parent"].is_null()), (Some("core.manual"), true));
    assert_eq!(
        (sent["payload"].to_string(), &sent["delivery_id"]),
        (r#"{"b":1.5,"a":"<b>"}"#.to_owned(), &json!(delivery))
    );
    assert_eq!(daemon.count("/v1/events?type=build.finished").await, 2);
    // A form without the field, or with another, sends nothing.
    assert_eq!(browser.submit(&daemon, &path, "").await.status, 400);
    assert_eq!(browser.submit(&daemon, &path, "delivery_id=x&more=1").await.status, 400);
    assert_eq!(daemon.count("/v1/events?type=build.finished").await, 2);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn output_is_shown_as_text_whatever_it_holds() {
    let daemon = daemon().await;
    let browser = Browser::logged_in(&daemon).await;
    let run = run(&daemon, &json!({ "scope": "main", "type": "build.finished" }), "completed").await;
    let hostile =
        b"</span></div></pre><img src=x onerror=alert(1)>\n\x1b]8;;javascript:alert(1)\x07link\x1b]8;;\x07\n\
        \x1b]0;title\x07\x1b[31mred\x1b[0m\0\xff\n 1%\r 99%\n\"quoted' & more\n\x1b[35mlast";
    daemon.writes(&[&hostile[..], b"\n", &vec![b'x'; 1 << 20], b"\nend\n"].concat());
    let path = format!("/runs/{}/log", id(&run));
    let whole = browser.get(&daemon, &format!("{path}?from=0")).await;
    has(
        &whole.text(),
        &[
            "&#60;/span&#62;&#60;/div&#62;&#60;/pre&#62;&#60;img src=x onerror=alert(1)&#62;",
            "<span>link</span>",
            "<span class=\"a-red\">red</span>\u{2400}\u{fffd}",
            "<span> 99%</span>",
            "&#34;quoted&#39; &#38; more",
            "<span class=\"a-magenta\">last</span>",
            ">1</a>",
            "Lines 1 to 6",
            "Later output: ",
            "and",
        ],
    );
    lacks(&whole.text(), &["<img", "javascript:", "\x1b", "\0", "title</", " 1%"]);
    let part = browser.get(&daemon, &format!("{path}?view=part&from=0&bytes=40")).await;
    assert_eq!((part.status, part.header("content-type")), (200, "text/html; charset=utf-8"));
    assert_eq!((part.header("x-log-from"), part.header("x-log-next")), ("0", "40"));
    assert_eq!((part.header("x-run-state"), part.text().starts_with("<div class=\"ll\"")), ("ended", true));
    let end = browser.get(&daemon, &path).await.text();
    has(&end, &["<span>end</span>", "Earlier output: 1.0 MiB"]);
    let long = browser.get(&daemon, &format!("{path}?view=part&from={}", hostile.len() + 1)).await;
    has(&long.text(), &[" … and 45152 more characters, which the download has"]);
    assert_eq!(
        long.header("x-log-next"),
        (hostile.len() + 1 + (48 << 10)).to_string(),
        "it goes on inside the line"
    );
    for wrong in ["bytes=0", "bytes=999999", "from=-1", "from=1&to=2", "view=x", "from=x"] {
        assert_eq!(browser.get(&daemon, &format!("{path}?{wrong}")).await.status, 400, "{wrong}");
    }
    let raw = browser.get(&daemon, &format!("{path}/raw")).await;
    assert_eq!(raw.body.len(), hostile.len() + (1 << 20) + 6);
    assert_eq!(raw.header("content-disposition"), format!("attachment; filename=\"{}.log\"", id(&run)));
    assert_eq!(
        (raw.header("content-type"), raw.header("x-content-type-options")),
        ("application/octet-stream", "nosniff")
    );
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn pieces_of_output_lie_side_by_side() {
    let daemon = daemon().await;
    let browser = Browser::logged_in(&daemon).await;
    let run = run(&daemon, &json!({ "scope": "main", "type": "build.finished" }), "completed").await;
    let lines: Vec<String> = (1..=500).map(|number| format!("line {number}\n")).collect();
    daemon.writes(lines.concat().as_bytes());
    let path = format!("/runs/{}/log?view=part&bytes=900", id(&run));
    let shown = |text: &str| text.matches("<span>line ").count();
    let (mut count, mut to) = (0, String::new());
    loop {
        let query = if to.is_empty() { String::new() } else { format!("&to={to}") };
        let piece = browser.get(&daemon, &format!("{path}{query}")).await;
        count += shown(&piece.text());
        piece.header("x-log-from").clone_into(&mut to);
        if to == "0" {
            break;
        }
    }
    assert_eq!(count, 500, "backwards");
    let (mut count, mut from) = (0, "0".to_owned());
    loop {
        let piece = browser.get(&daemon, &format!("{path}&from={from}")).await;
        count += shown(&piece.text());
        piece.header("x-log-next").clone_into(&mut from);
        if piece.header("x-log-next") == piece.header("x-log-size") {
            break;
        }
    }
    assert_eq!(count, 500, "forwards");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn the_failure_is_marked_and_led_to() {
    let daemon = daemon().await;
    let browser = Browser::logged_in(&daemon).await;
    let failed = run(&daemon, &json!({ "scope": "main", "type": "fail.please" }), "failed").await;
    let completed = run(&daemon, &json!({ "scope": "main", "type": "build.finished" }), "completed").await;
    daemon.writes(b"fine\nerror: it broke\nthe rest\n");
    let text = browser.get(&daemon, &format!("/runs/{}", id(&failed))).await.text();
    has(&text, &["href=\"#b5\"", "class=\"ll hit\" id=\"b5\"", "Jump to failure"]);
    lacks(&text, &["class=\"ll hit\" id=\"b22\""]);
    lacks(
        &browser.get(&daemon, &format!("/runs/{}", id(&completed))).await.text(),
        &["Jump to failure", "ll hit"],
    );
    // One that stands before the last piece is on a page of its own.
    daemon.writes(&[b"fine\nerror: it broke\n", &b"more output\n".repeat(8000)[..]].concat());
    let text = browser.get(&daemon, &format!("/runs/{}", id(&failed))).await.text();
    let link = format!("/runs/{}/log?from=5", id(&failed));
    has(&text, &[&format!("href=\"{link}#b5\"")]);
    has(&browser.get(&daemon, &link).await.text(), &["class=\"ll hit\" id=\"b5\""]);
    daemon.writes(b"all is well\n");
    lacks(&browser.get(&daemon, &format!("/runs/{}", id(&failed))).await.text(), &["Jump to failure"]);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn nothing_is_shown_or_done_without_a_session() {
    let daemon = daemon().await;
    let run = run(&daemon, &json!({ "scope": "main", "type": "build.finished" }), "completed").await;
    let stranger = Browser::new(&daemon);
    for path in ["", "/log", "/log?view=part", "/log/raw", "/again"] {
        let reply = stranger.get(&daemon, &format!("/runs/{}{path}", id(&run))).await;
        assert!(matches!(reply.status, 303 | 401), "{path}: {}", reply.status);
        lacks(&reply.text(), &["alert(1)", "build.finished"]);
    }
    let (again, cancel) =
        (format!("/runs/{}/again", id(&run)), format!("/work/{}/cancel", run["work"].as_str().unwrap()));
    for path in [&again, &cancel] {
        let reply = stranger.submit(&daemon, path, "delivery_id=x").await;
        assert!(matches!(reply.status, 401 | 403), "{path}: {}", reply.status);
    }
    // A page of another site has the cookie sent along, and is refused all the same.
    let browser = Browser::logged_in(&daemon).await;
    let foreign = [
        ("Origin", "http://evil.test"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Content-Type", "application/x-www-form-urlencoded"),
    ];
    let reply = browser.ask(&daemon, ("POST", &again), &foreign, b"delivery_id=x").await;
    assert_eq!(reply.status, 403, "{}", reply.text());
    assert_eq!(daemon.count("/v1/events?type=build.finished").await, 1);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_failed_work_is_retried_by_its_button_once() {
    let daemon = daemon().await;
    let failed = run(&daemon, &json!({ "scope": "main", "type": "fail.please" }), "failed").await;
    let work = failed["work"].as_str().unwrap().to_owned();
    let body = daemon.get_json(&format!("/v1/work/{work}")).await;
    assert_eq!((body["failures"].as_i64(), body["retry"]["state"].as_str()), (Some(1), Some("backoff")));
    assert_eq!(body["retry"]["run"], failed["id"]);

    let browser = Browser::logged_in(&daemon).await;
    let path = format!("/work/{work}");
    let page = browser.get(&daemon, &path).await.text();
    has(&page, &["Ready, retrying", "It failed 1 time in a row and is tried again at", "/retry\""]);
    let page = browser.get(&daemon, &format!("{path}/retry")).await.text();
    let command = format!("open-conduit work retry {work}");
    has(&page, &["What happens", "It does not wait until", "counted anew", &command]);
    assert_eq!(daemon.count(&format!("/v1/runs?work={work}")).await, 1, "it was asked only");
    let request = page.split("name=\"delivery_id\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let form = format!("delivery_id={}", request.replace('/', "%2F"));
    for _twice in 0..2 {
        let reply = browser.submit(&daemon, &format!("{path}/retry"), &form).await;
        assert_eq!((reply.status, reply.header("location")), (303, path.as_str()));
    }
    let runs = format!("/v1/runs?work={work}&state=failed");
    daemon.until(&runs, |page| page["items"].as_array().unwrap().len() == 2).await;
    let again = daemon.get_json(&runs).await["items"][0].clone();
    assert_eq!((again["retry_of"].as_str(), again["attempt"].as_i64()), (failed["id"].as_str(), Some(2)));
    let why = daemon.get_json(&format!("/v1/runs/{}/why", id(&again))).await;
    assert_eq!(why["run"]["trigger"]["type"], "core.retry.requested");
    assert_eq!(daemon.get_json(&format!("/v1/work/{work}")).await["failures"], 1, "the budget began anew");
    daemon.running.stop().await.unwrap();
}
