//! Stopping means the whole tree, however it was grown.

use std::fs;
use std::os::unix::fs::MetadataExt;

use extension::{Executor, Outcome, Stopped};
use serde_json::json;

use super::fixture::{Granting, Home, RUN, kill, request, runs, segment, until};

/// Grows processes that ignore TERM, left their group and session by a double fork, and cleared their
/// environment; then says so.
fn stubborn(ready: &std::path::Path) -> String {
    let loop_for_ever = "trap '' TERM; while :; do sleep 1; done";
    format!(
        "trap '' TERM; (setsid setsid sh -c \"{loop_for_ever}\" &) ; \
         (setsid env -i /bin/sh -c \"{loop_for_ever}\" &) ; sh -c \"{loop_for_ever}\" & \
         : > {}; wait; sleep 300",
        ready.display()
    )
}

/// Incident: a hung child that ignores TERM and double-forks outlived its deadline.
#[tokio::test]
async fn the_deadline_ends_the_whole_tree() {
    let home = Home::new();
    let config =
        json!({"command": stubborn(&home.file("ready")), "timeout_seconds": 1, "stop_grace_seconds": 1});
    let result = home.run(config).await;
    assert_eq!(result.outcome, Outcome::Failed);
    assert_eq!(result.code.as_deref(), Some("timeout"));
    assert_eq!(result.summary.as_deref(), Some("shell command timed out"));
    assert_eq!(home.marked(), Vec::<i32>::new());
}

#[tokio::test]
async fn a_command_may_clean_up_at_its_deadline() {
    let home = Home::new();
    let command = "trap 'echo cleaned; exit 0' TERM; while :; do sleep 0.05; done";
    let result = home.run(json!({"command": command, "timeout_seconds": 1})).await;
    assert_eq!((result.code.as_deref(), result.exit_status), (Some("timeout"), Some(0)));
    assert!(home.output().await.ends_with("cleaned\n"));
}

/// Most commands end so soon that their launcher starts nothing for the deadline; this one does not.
#[tokio::test]
async fn a_later_deadline_is_kept_as_well() {
    let home = Home::new();
    let result = home.run(json!({"command": "sleep 300", "timeout_seconds": 2})).await;
    assert_eq!(result.code.as_deref(), Some("timeout"));
    // The verdict was made before the command began, and its time with it.
    let begun = fs::metadata(home.segment(1).join("verdict")).unwrap();
    let begun = begun.ctime() * 1_000_000 + begun.ctime_nsec() / 1000;
    let status = fs::read_to_string(home.segment(1).join("status")).unwrap();
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert!(status["ended_at"].as_i64().unwrap() - begun >= 2_000_000, "begun {begun}, then {status}");
}

#[tokio::test]
async fn stop_ends_the_whole_tree() {
    let home = Home::new();
    let ready = home.file("ready");
    let config = json!({"command": stubborn(&ready), "stop_grace_seconds": 0});
    let host = Granting::default();
    let stopping = async {
        until("the tree has grown", || ready.exists() && home.marked().len() >= 4).await;
        let stopped = home.executor.stop(segment(1, Some(host.handle()), &config)).await;
        assert_eq!(home.marked(), Vec::<i32>::new());
        stopped
    };
    let (result, stopped) = tokio::join!(home.try_run(request(config.clone()), &host), stopping);
    assert_eq!(stopped, Stopped::Confirmed);
    let result = result.unwrap();
    assert_eq!((result.outcome, result.code.as_deref()), (Outcome::Failed, Some("signal")));
}

#[tokio::test]
async fn stop_lets_every_process_clean_up() {
    let home = Home::new();
    let ready = home.file("ready");
    let child = "trap 'sleep 0.3; echo child; exit' TERM; : > $READY; while :; do sleep 0.05; done";
    let command = format!(
        "trap 'echo parent; exit' TERM; READY={} sh -c '{}' & wait",
        ready.display(),
        child.replace('\'', "'\\''")
    );
    let config = json!({"command": command});
    let handle = home.abandon(request(config.clone()), || ready.exists()).await;
    assert_eq!(home.restarted().stop(segment(2, Some(handle), &config)).await, Stopped::Confirmed);
    let output = home.output().await;
    // Shells remark on the `sleep` that was ended with them.
    let said: Vec<&str> = output.lines().filter(|line| *line != "Terminated").collect();
    assert_eq!(said, ["parent", "child"]);
}

/// Some programs take a second request for an order to give up their cleaning.
#[tokio::test]
async fn every_process_is_asked_once() {
    let home = Home::new();
    let ready = home.file("ready");
    let child = "n=0; trap 'n=$((n+1))' TERM; : > $READY; i=0; while [ $n = 0 ]; do sleep 0.05; done; \
                 while [ $i -lt 10 ]; do sleep 0.05; i=$((i+1)); done; echo asked $n times";
    let command = format!("READY={} sh -c '{}' & wait", ready.display(), child.replace('\'', "'\\''"));
    let config = json!({"command": command});
    let handle = home.abandon(request(config.clone()), || ready.exists()).await;
    assert_eq!(home.restarted().stop(segment(2, Some(handle), &config)).await, Stopped::Confirmed);
    assert!(home.output().await.contains("asked 1 times"), "{}", home.output().await);

    let config = json!({"command": command, "timeout_seconds": 1});
    let home = Home::new();
    assert_eq!(home.run(config).await.code.as_deref(), Some("timeout"));
    assert!(home.output().await.contains("asked 1 times"), "{}", home.output().await);
}

#[tokio::test]
async fn a_stopped_process_is_stopped_for_good() {
    let home = Home::new();
    let ready = home.file("ready");
    let command = format!(": > {}; kill -STOP $$", ready.display());
    let config = json!({"command": command, "stop_grace_seconds": 5});
    let handle = home.abandon(request(config.clone()), || ready.exists()).await;
    assert_eq!(home.restarted().stop(segment(2, Some(handle), &config)).await, Stopped::Confirmed);
    assert_eq!(home.marked(), Vec::<i32>::new());
}

#[tokio::test]
async fn stop_is_confirmed_for_what_has_ended_or_never_began() {
    let home = Home::new();
    let config = json!({"command": "true"});
    assert_eq!(home.executor.stop(segment(1, None, &config)).await, Stopped::Confirmed);
    let host = Granting::default();
    home.try_run(request(config.clone()), &host).await.unwrap();
    assert_eq!(home.executor.stop(segment(1, Some(host.handle()), &config)).await, Stopped::Confirmed);
    home.executor.release(RUN).await.unwrap();
    assert_eq!(home.executor.stop(segment(1, Some(host.handle()), &config)).await, Stopped::Confirmed);
}

#[tokio::test]
async fn what_a_command_leaves_running_ends_with_it() {
    let home = Home::new();
    let command = "setsid sleep 300 & (setsid env -i sleep 301 &); echo $! ; sleep 0.1";
    let result = home.run(json!({"command": command})).await;
    assert_eq!(result.outcome, Outcome::Completed);
    assert_eq!(home.marked(), Vec::<i32>::new());
    let left: i32 = result.summary.unwrap().parse().unwrap();
    assert!(!runs(left));
}

#[tokio::test]
async fn a_command_dies_with_its_launcher_and_so_does_what_it_started() {
    let home = Home::new();
    let pids = home.file("pids");
    let command = format!(
        "setsid sleep 300 & echo $$ $PPID $! > {p}.new; mv {p}.new {p}; sleep 300",
        p = pids.display()
    );
    let host = Granting::default();
    let killing = async {
        until("the command runs", || pids.exists()).await;
        let text = fs::read_to_string(&pids).unwrap();
        let pids: Vec<i32> = text.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
        kill(pids[1], "KILL");
        pids
    };
    let (result, pids) = tokio::join!(home.try_run(request(json!({"command": command})), &host), killing);
    let result = result.unwrap();
    assert_eq!((result.outcome, result.code.as_deref()), (Outcome::Failed, Some("interrupted")));
    assert!(pids.iter().all(|pid| !runs(*pid)), "{pids:?}");
}
