//! What an operator does to runs, Works, Events and scopes: each is asked for first, beside the same as a command.

use super::chromium::{Scripts, is_left_out};
use super::home::{Home, text, wait_for};
use super::site::Site;

/// What asks, on each page before an action.
const COMMAND: &str = "main .cli code";
const KEEP: &str = "main footer a.btn";
const DO: &str = "main footer .btn:not(a)";

/// A home with a job that listens to its inbox, and a scope whose Works may each begin one turn.
fn home() -> Home {
    let home = Home::usual();
    let listens = "echo listening; while :; do for file in \\\"$OS_INBOX_DIR\\\"/*.json; do \
                   if [ -e \\\"$file\\\" ]; then cat \\\"$file\\\"; mv \\\"$file\\\" \
                   \\\"$OS_INBOX_DIR/acknowledged/\\\"; exit 0; fi; done; sleep 0.02; done";
    let config = format!(
        "{}\n[[scopes.bindings]]\nname = \"listens\"\nexecutor = \"shell\"\n\
         config = {{ argv = [\"sh\", \"-c\", \"{listens}\"] }}\n\
         [[scopes.routes]]\nname = \"listens\"\nhandler = \"match\"\nbinding = \"listens\"\n\
         config = {{ types = [\"do.listen\"] }}\n\
         [[scopes]]\nname = \"thrift\"\n\
         [[scopes.budgets]]\nunit = \"turns\"\nper = \"work\"\nwindow = \"life\"\nlimit = 1\n\
         [[scopes.bindings]]\nname = \"hello\"\nexecutor = \"shell\"\n\
         config = {{ argv = [\"echo\", \"hello\"] }}\n\
         [[scopes.routes]]\nname = \"hello\"\nhandler = \"match\"\nbinding = \"hello\"\n\
         config = {{ types = [\"say.hello\"] }}\n",
        home.usual_config()
    );
    home.configure(&config);
    home
}

/// Goes through the question behind `open`: once to leave things as they are, and once to do it.
#[track_caller]
fn ask(site: &Site, path: &str, open: &str, question: &str, command: &str) {
    site.page.click(open);
    site.page.wait_for_text("h1", question);
    assert!(site.page.text(COMMAND).starts_with(command), "{}", site.page.text(COMMAND));
    site.page.click(KEEP);
    site.page.wait_for(
        "the page before",
        "return !document.querySelector('main footer .btn') && location.pathname === arguments[0]",
        &[path.split('?').next().unwrap().into()],
    );
    site.goto(path);
    site.page.click(open);
    site.page.wait_for_text("h1", question);
}

/// The Work of a run.
fn work_of(site: &Site, run: &str) -> String {
    text(&site.home.json(&["runs", "show", run]), "/work").to_owned()
}

fn until_run(site: &Site, run: &str, state: &str) {
    wait_for(state, || (site.home.json(&["runs", "show", run])["state"] == state).then_some(()));
}

/// Looks until the page says it; without scripts somebody has to load it again.
#[track_caller]
fn until_shown(site: &Site, scripts: Scripts, css: &str, words: &str) {
    if scripts == Scripts::On {
        return site.page.wait_for_text(css, words);
    }
    // A page that is loaded again before the answer to a form has come takes that form back.
    site.page.wait_for(css, "return document.querySelector(arguments[0])", &[css.into()]);
    wait_for(words, || {
        site.page.reload();
        site.page.text("main").contains(words).then_some(())
    });
    site.page.wait_for_text(css, words);
}

fn interrupts(scripts: Scripts) {
    if is_left_out() {
        return;
    }
    let site = Site::open(home(), scripts);
    let run = site.begin("do.slow", "1");
    until_run(&site, &run, "running");
    let work = work_of(&site, &run);
    let path = format!("/work/{work}");
    site.goto(&path);
    let open = ".page-head a[href$='/interrupt']";
    ask(&site, &path, open, "Interrupt the run of", &format!("open-conduit work interrupt {work}"));
    assert_eq!(site.home.json(&["runs", "show", &run])["state"], "running", "it was asked only");
    site.page.click(DO);
    until_shown(&site, scripts, "#work-runs", "Cancelled");
    until_shown(&site, scripts, "#work-next", "Its next input starts a run.");
    assert_eq!(site.page.count(open), 0, "nothing runs that could be interrupted");
    until_run(&site, &run, "cancelled");
    assert_eq!(site.home.json(&["work", "show", &work])["state"], "ready", "its Work stays");
    site.goto(&format!("/runs/{run}"));
    site.page.wait_for_text("#run-why", "It was interrupted for");
}

#[test]
fn a_run_is_interrupted_after_a_question() {
    interrupts(Scripts::On);
}

#[test]
fn a_run_is_interrupted_after_a_question_without_scripts() {
    interrupts(Scripts::Off);
}

fn injects(scripts: Scripts) {
    if is_left_out() {
        return;
    }
    let mut site = Site::open(home(), scripts);
    site.page.expect_in_console("/inject - Failed to load resource");
    let run = site.begin("do.listen", "1");
    until_run(&site, &run, "running");
    let work = work_of(&site, &run);
    let path = format!("/runs/{run}");
    site.goto(&path);
    site.page.click(".page-head a[href$='/inject']");
    site.page.wait_for_text("h1", "Inject into the run of");
    assert_eq!(site.page.text(COMMAND), format!("open-conduit work inject {work} TEXT"));
    site.page.fill("#f-type", "core.turn.ended");
    site.page.fill("#f-text", "It's <b>about</b> clock.ts");
    site.page.click(DO);
    site.page.wait_for_text("[role=alert]", "reserved_type");
    assert_eq!(site.page.text("#f-text"), "", "what was typed is a value and no markup");
    site.page.fill("#f-type", "review.asked");
    site.page.click(DO);
    until_shown(&site, scripts, "#work-runs", "Completed");
    until_run(&site, &run, "completed");
    let log = site.home.run(&["runs", "log", &run]).code(0).out;
    assert!(log.contains("It's <b>about</b> clock.ts"), "{log}");
    site.goto(&path);
    site.page.wait_for_text("#run-why", "While it ran it took in");
    site.page.wait_for_text("#run-inputs", "review.asked");
}

#[test]
fn a_run_is_told_something_while_it_goes_on() {
    injects(Scripts::On);
}

#[test]
fn a_run_is_told_something_without_scripts() {
    injects(Scripts::Off);
}

fn releases(scripts: Scripts) {
    if is_left_out() {
        return;
    }
    let site = Site::open(home(), scripts);
    let emit = || {
        let words = ["events", "emit", "--scope", "thrift", "--type", "say.hello", "--key-source", "test"];
        site.home.json(&[&words[..], &["--key-external-id", "1"]].concat())
    };
    emit();
    let run = site.run_of("test", "1");
    until_run(&site, &run, "completed");
    let work = work_of(&site, &run);
    let path = format!("/work/{work}");
    emit();
    site.goto(&path);
    until_shown(&site, scripts, "#work-next", "It is held");
    site.page.wait_for_text("#work-facts", "turns per Work for life");
    site.page.wait_for_text("#work-facts", "1 of 1, used up");
    let open = ".page-head a[href$='/release']";
    ask(&site, &path, open, "Release Work", &format!("open-conduit work release {work}"));
    site.page.wait_for_text(".effects", "One more turn goes through");
    assert!(site.home.json(&["work", "show", &work])["hold"].is_object(), "it was asked only");
    site.page.click(DO);
    until_shown(&site, scripts, "#work-facts", "2 of 1, used up");
    until_shown(&site, scripts, "#work-runs tr[data-row]:first-child", "Completed");
    assert_eq!(site.page.count("#work-runs tr[data-row]"), 2, "one more turn, and no more than that");
    // The next input is held again, and a raised limit lifts that by itself.
    emit();
    until_shown(&site, scripts, "#work-next", "It is held");
    site.goto("/config?scope=thrift");
    site.page.wait_for_text("main", "turns per Work for life");
}

#[test]
fn what_a_budget_holds_is_seen_and_released_for_one_turn() {
    releases(Scripts::On);
}

#[test]
fn what_a_budget_holds_is_released_without_scripts() {
    releases(Scripts::Off);
}

fn pauses(scripts: Scripts) {
    if is_left_out() {
        return;
    }
    let site = Site::open(home(), scripts);
    let path = "/config?scope=main";
    site.goto(path);
    let open = ".section-head a[href$='/pause']";
    ask(&site, path, open, "Pause scope main?", "open-conduit scope pause main");
    assert_eq!(site.home.json(&["scope", "list"])["items"][0]["paused"], serde_json::Value::Null);
    site.page.click(DO);
    site.page.wait_for_text(".banner", "It is paused since");
    site.page.wait_for_text("nav.card", "paused");
    let sent = site.home.emit("say.hello", "1");
    let event = text(&sent, "/event");
    site.goto(&format!("/events/explain?event={event}"));
    site.page.click("main form .btn.primary");
    site.page.wait_for_text("main", "would wait as input");
    site.goto("/work");
    until_shown(&site, scripts, "main table", "Ready, blocked");
    site.goto(path);
    let open = ".banner a[href$='/resume']";
    ask(&site, path, open, "Resume scope main?", "open-conduit scope resume main");
    site.page.click(DO);
    site.page.wait_for_text(".section-head", "Pause…");
    until_run(&site, &site.run_of("test", "1"), "completed");
}

#[test]
fn a_scope_is_paused_and_resumed_after_questions() {
    pauses(Scripts::On);
}

#[test]
fn a_scope_is_paused_and_resumed_without_scripts() {
    pauses(Scripts::Off);
}

fn replays(scripts: Scripts) {
    if is_left_out() {
        return;
    }
    let site = Site::open(home(), scripts);
    let run = site.begin("say.hello", "1");
    until_run(&site, &run, "completed");
    let event = text(&site.home.json(&["runs", "show", &run]), "/trigger/event").to_owned();
    let path = format!("/events/{event}");
    site.goto(&path);
    let open = ".page-head a[href$='/replay']";
    ask(&site, &path, open, "Replay say.hello?", &format!("open-conduit events replay {event}"));
    site.page.wait_for_text(".effects", "It would be input of");
    site.page.click(DO);
    until_shown(&site, scripts, "#event-chain", "Attempt 2");
    site.page.wait_for_text("#event-chain", "It is a replay");
    let replays = site.home.json(&["events", "list", "--type", "core.replay.requested"]);
    assert_eq!(replays["items"].as_array().unwrap().len(), 1, "it was asked once and done once");
    site.goto("/events");
    site.page.wait_for_text("#events", &format!("replay of {event}"));
    let listed = site.home.run(&["events", "list"]).code(0).out;
    assert!(listed.contains(&format!("replay of {event}")), "{listed}");
}

#[test]
fn an_event_is_replayed_after_it_was_said_what_that_does() {
    replays(Scripts::On);
}

#[test]
fn an_event_is_replayed_without_scripts() {
    replays(Scripts::Off);
}
