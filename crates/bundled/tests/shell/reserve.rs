//! Launchers that wait for a turn: used when there is one, missed by nobody when there is not.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use extension::{Executor, Outcome};
use serde_json::{Value, json};

use super::fixture::{Granting, Home, daemon, executor, kill, request, runs, until};

/// The variable that tells a daemon of these tests where its runs lie.
const ROOT_VARIABLE: &str = "SHELL_TEST_RESERVE_ROOT";

/// The launchers that wait below a home, with the directories they wait in.
fn waiting(home: &Home) -> Vec<(i32, PathBuf)> {
    let root = fs::canonicalize(home.root()).unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let Ok(place) = fs::read_link(entry.path().join("cwd")) else { continue };
        let is_launcher = line.split(|byte| *byte == 0).nth(1) == Some(b"__launch");
        let is_ahead = place
            .strip_prefix(&root)
            .is_ok_and(|below| below.to_str().is_some_and(|below| below.starts_with(".ahead-")));
        if is_launcher && is_ahead {
            found.push((pid, place));
        }
    }
    found
}

/// What is made ahead and lies on the disk.
fn places(home: &Home) -> usize {
    let entries = fs::read_dir(home.root()).unwrap().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(".ahead-")).count()
}

/// The next launch of the one attempt.
async fn launch(home: &Home, epoch: i64) -> (Outcome, i32) {
    let host = Granting::default();
    let mut next = request(json!({"argv": ["sh", "-c", "pwd > \"$OS_OUTPUT_DIR/where\"; echo said"]}));
    next.epoch = extension::Epoch::from_number(epoch);
    let result = home.try_run(next, &host).await.unwrap();
    let handle: Value = serde_json::from_slice(&host.handle()).unwrap();
    (result.outcome, i32::try_from(handle["launcher"]["pid"].as_i64().unwrap()).unwrap())
}

#[tokio::test]
async fn a_turn_takes_a_launcher_that_waited_and_leaves_another() {
    let home = Home::new();
    assert_eq!(waiting(&home), Vec::new(), "nobody waits before the first turn");
    assert_eq!(launch(&home, 1).await.0, Outcome::Completed);
    for epoch in 2..4 {
        until("one waits", || waiting(&home).len() == 1).await;
        let waited = waiting(&home)[0].0;
        assert_eq!(launch(&home, epoch).await, (Outcome::Completed, waited));
        let where_it_was = fs::read_to_string(home.segment(epoch).join("out/where")).unwrap();
        assert_eq!(where_it_was.trim_end(), home.segment(epoch).join("work").to_str().unwrap());
        assert_eq!(fs::read_to_string(home.segment(epoch).join("output.log")).unwrap(), "said\n");
    }
}

#[tokio::test]
async fn a_waiting_launcher_that_is_killed_is_missed_by_nobody() {
    let home = Home::new();
    launch(&home, 1).await;
    until("one waits", || waiting(&home).len() == 1).await;
    let (pid, place) = waiting(&home)[0].clone();
    kill(pid, "KILL");
    until("it is gone", || !runs(pid)).await;
    assert_eq!(launch(&home, 2).await.0, Outcome::Completed);
    assert!(!place.exists(), "what it waited in is tidied up");
}

/// It looks alive when it is taken, and answers nothing.
#[tokio::test]
async fn a_launcher_that_dies_while_it_is_told_is_replaced_by_another() {
    let home = Home::new();
    launch(&home, 1).await;
    until("one waits", || waiting(&home).len() == 1).await;
    let (pid, _) = waiting(&home)[0];
    kill(pid, "STOP");
    let killing = async {
        until("it has been given its place", || home.segment(2).join("input.json").exists()).await;
        kill(pid, "KILL");
    };
    let ((outcome, launcher), ()) = tokio::join!(launch(&home, 2), killing);
    assert_eq!(outcome, Outcome::Completed);
    assert_ne!(launcher, pid);
}

#[tokio::test]
async fn a_place_that_somebody_tidied_up_is_made_again() {
    let home = Home::new();
    launch(&home, 1).await;
    until("one waits", || waiting(&home).len() == 1).await;
    let place = waiting(&home)[0].1.clone();
    // The launcher may still be writing into it.
    until("it is tidied up", || fs::remove_dir_all(&place).is_ok() || !place.exists()).await;
    assert_eq!(launch(&home, 2).await.0, Outcome::Completed);
}

#[tokio::test]
async fn a_place_made_ahead_never_takes_that_of_an_earlier_launch() {
    let home = Home::new();
    launch(&home, 1).await;
    until("one waits", || waiting(&home).len() == 1).await;
    let again = home.try_run(request(json!({"argv": ["true"]})), &Granting::default()).await;
    assert!(matches!(again, Err(extension::RunError::Failed { code: "spawn_failed", .. })), "{again:?}");
    assert!(home.segment(1).join("out/where").exists(), "the first launch is untouched");
}

#[tokio::test]
async fn nothing_that_waits_outlives_its_executor() {
    let mut home = Home::new();
    launch(&home, 1).await;
    until("one waits", || waiting(&home).len() == 1).await;
    assert_eq!(places(&home), 1);
    home.executor = std::sync::Arc::new(executor(&home.file("others")));
    until("it has ended", || waiting(&home).is_empty()).await;
    until("its place is gone", || places(&home) == 0).await;
}

#[tokio::test]
async fn a_launcher_that_nobody_needs_ends_by_itself() {
    let mut home = Home::new();
    home.executor = std::sync::Arc::new(executor(&home.root()).ahead_time_max(Duration::from_millis(300)));
    launch(&home, 1).await;
    until("one waits", || places(&home) == 1).await;
    until("it has given up", || waiting(&home).is_empty()).await;
    assert_eq!(launch(&home, 2).await.0, Outcome::Completed);
}

/// Not a test by itself: a daemon that runs one turn and then lives until it is killed.
#[tokio::test]
async fn daemon_that_has_run_a_turn() {
    let Ok(root) = std::env::var(ROOT_VARIABLE) else { return };
    let executor = executor(root.as_ref());
    executor.run(request(json!({"argv": ["true"]})), &Granting::default()).await.unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn nothing_that_waits_outlives_a_killed_daemon() {
    let home = Home::new();
    let root = home.root();
    let mut killed =
        daemon("shell::reserve::daemon_that_has_run_a_turn", &[(ROOT_VARIABLE, root.to_str().unwrap())]);
    until("one waits", || waiting(&home).len() == 1).await;
    killed.kill().unwrap();
    killed.wait().unwrap();
    until("it has ended", || waiting(&home).is_empty()).await;
    assert_eq!(places(&home), 1, "nobody was left to tidy up");
    let _next = home.restarted();
    assert_eq!(places(&home), 0, "the next daemon does");
}
