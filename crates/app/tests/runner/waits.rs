//! `waits`, `timers`: a shell job that waits, and what ends it.

use super::home::{Home, text, wait_for};
use super::normal;

/// A job that waits for the end of a build the first time, and says what it was woken by the second time.
fn waiting(home: &Home) -> String {
    let script = "if grep -q build.finished \\\"$OS_INPUT_FILE\\\"; then echo it is built; else \
                  printf '{\\\"status\\\":\\\"waiting\\\",\\\"types\\\":[\\\"build.finished\\\"],\
                  \\\"timeout_seconds\\\":86400}' > \\\"$OS_OUTPUT_DIR/result.json\\\"; fi";
    format!(
        "{}\n[[scopes.bindings]]\nname = \"waits\"\nexecutor = \"shell\"\n\
         config = {{ argv = [\"sh\", \"-c\", \"{script}\"] }}\n\
         [[scopes.routes]]\nname = \"waits\"\nhandler = \"match\"\nbinding = \"waits\"\n\
         config = {{ types = [\"do.wait\", \"note.added\"] }}\n",
        home.usual_config()
    )
}

#[test]
fn a_job_waits_and_goes_on_with_what_it_waited_for() {
    let home = Home::usual();
    home.configure(&waiting(&home));
    let _served = home.serve();
    let ran = home.run(&["waits", "list"]).code(0);
    assert!(ran.out.starts_with("No Work waits."), "{}", ran.out);
    let ran = home.run(&["timers", "list"]).code(0);
    assert!(ran.out.starts_with("No timer is armed."), "{}", ran.out);

    home.emit("do.wait", "1");
    let work = wait_for("the Wait", || {
        let list = home.json(&["waits", "list"]);
        list["items"][0].is_object().then(|| text(&list["items"][0], "/work").to_owned())
    });
    home.emit("note.added", "1");
    wait_for("the input", || home.json(&["work", "show", &work])["pending"][0].is_string().then_some(()));
    let ran = home.run(&["work", "show", &work]).code(0);
    assert!(ran.out.contains("It waits for build.finished on key `"), "{}", ran.out);
    assert!(ran.out.contains("; seen and not matching: note.added."), "{}", ran.out);
    let ran = home.run(&["waits", "list"]).code(0);
    assert!(ran.out.contains("for build.finished on key"), "{}", ran.out);
    let ran = home.run(&["timers", "list"]).code(0);
    assert!(ran.out.contains("end wait_"), "{}", ran.out);
    let ran = home.run(&["work", "release", &work]).code(5);
    assert!(ran.err.contains("(work_conflict)"), "{}", ran.err);

    // No route takes it: it is the Wait that does.
    home.emit("build.finished", "1");
    wait_for("the second run", || {
        let list = home.json(&["runs", "list"]);
        (list["items"][0]["summary"] == "it is built").then_some(())
    });
    let ran = home.run(&["waits", "list", "--all"]).code(0);
    assert!(ran.out.contains("woken"), "{}", normal::text(&ran.out, &home));
    let runs = home.json(&["runs", "list", "--work", &work]);
    assert_eq!((&runs["items"][0]["attempt"], &runs["items"][1]["state"]), (&2.into(), &"waiting".into()));
}
