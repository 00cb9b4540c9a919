//! A daemon stops, is killed, and starts again; the job does not notice.

use super::home::{Home, Served, text, wait_for};

/// Starts a slow run and gives its id once it has begun.
fn begun(home: &Home) -> String {
    home.emit("do.slow", "1");
    wait_for("the first output", || {
        let list = home.json(&["runs", "list", "--state", "running"]);
        let id = list["items"][0]["id"].as_str()?.to_owned();
        (home.run(&["runs", "log", &id]).out == "begun\n").then_some(id)
    })
}

fn ends_whole(home: &Home, id: &str) {
    home.open_gate();
    let run = wait_for("the end of the run", || {
        let run = home.json(&["runs", "show", id]);
        run["ended_at"].is_string().then_some(run)
    });
    assert_eq!((text(&run, "/state"), &run["attempt"]), ("completed", &1.into()));
    assert_eq!(home.run(&["runs", "log", id]).code(0).out, "begun\nended\n");
    assert_eq!(home.json(&["runs", "list"])["items"].as_array().unwrap().len(), 1);
}

#[test]
fn ctrl_c_leaves_a_job_running_and_the_next_start_adopts_it() {
    let home = Home::usual();
    let served = home.serve();
    let id = begun(&home);
    assert_eq!(served.interrupt(), 0);
    home.run(&["status"]).code(10);
    let _served = home.serve();
    ends_whole(&home, &id);
}

#[test]
fn a_job_that_ends_while_no_daemon_is_there_is_not_lost() {
    let home = Home::usual();
    let served = home.serve();
    let id = begun(&home);
    assert_eq!(served.interrupt(), 0);
    home.open_gate();
    let _served = home.serve();
    ends_whole(&home, &id);
}

#[test]
fn a_killed_daemon_is_missed_and_the_next_says_what_it_found() {
    let home = Home::usual();
    let served = home.serve();
    assert!(home.json(&["status"])["last_downtime"].is_null(), "nobody was there before");
    let id = begun(&home);
    served.kill();
    let _served = home.serve();
    let down = wait_for("the adoption", || {
        let down = home.json(&["status"])["last_downtime"].clone();
        (down["adopted"] == 1).then_some(down)
    });
    assert_eq!(
        (&down["stopped"], &down["relaunched"], &down["interrupted"]),
        (&false.into(), &0.into(), &0.into())
    );
    assert!(down["down_since"].is_string() && down["down_seconds"].is_number(), "{down}");
    let told = home.run(&["status"]).code(0).out;
    let line = told.lines().find(|line| line.starts_with("last downtime")).expect(&told);
    assert!(line.ends_with("not stopped in order: adopted 1, launched again 0, interrupted 0"), "{line}");
    ends_whole(&home, &id);
}

#[test]
fn a_daemon_that_stopped_in_order_is_told_from_one_that_was_killed() {
    let home = Home::usual();
    assert_eq!(home.serve().interrupt(), 0);
    let _served = home.serve();
    let down = home.json(&["status"])["last_downtime"].clone();
    assert_eq!((&down["stopped"], &down["adopted"]), (&true.into(), &0.into()), "{down}");
}

#[test]
fn without_a_tunnel_no_webhook_is_taken_and_everything_else_goes_on() {
    let home = Home::usual();
    let mut served = Served::spawn(home.command(&["serve", "--no-tunnel", "--json"]));
    let places = served.line();
    assert!(places["webhook_address"].is_null(), "{places}");
    assert!(home.json(&["status"])["webhook_address"].is_null());
    home.run(&super::home::emit("say.hello", "1")).code(0);
    assert_eq!(served.interrupt(), 0);
    let served = home.serve();
    assert!(served.places["webhook_address"].is_string(), "the next start listens again");
}
