//! The moment between a held launch and its first effect: who speaks first decides, once.

use std::fs;
use std::time::Duration;

use extension::{AttemptHost, BoxFuture, Epoch, Executor, Outcome, PinError, Recovery, RunError};
use serde_json::{Value, json};

use super::fixture::{
    Granting, Home, Slow, daemon, executor, executor_with, kill, request, runs, segment, until,
};

fn touching(home: &Home) -> Value {
    json!({"argv": ["sh", "-c", "echo ran >> \"$0\"", home.file("marker")]})
}

fn verdict(home: &Home, epoch: i64) -> Option<String> {
    fs::read_to_string(home.segment(epoch).join("verdict")).ok()
}

#[tokio::test]
async fn nothing_runs_before_the_pin_is_granted() {
    let home = Home::new();
    let host = Slow::new();
    let config = touching(&home);
    let checking = async {
        let handle: Value = serde_json::from_slice(&host.handle().await).unwrap();
        let pid = |who: &str| i32::try_from(handle[who]["pid"].as_i64().unwrap()).unwrap();
        assert!(runs(pid("launcher")) && runs(pid("command")), "both are held");
        assert_eq!(verdict(&home, 1), None);
        assert!(!home.file("marker").exists());
        host.granted.notify_one();
    };
    let (result, ()) = tokio::join!(home.try_run(request(config), &host), checking);
    assert_eq!(result.unwrap().outcome, Outcome::Completed);
    assert_eq!(verdict(&home, 1).as_deref(), Some("start\n"));
    assert!(home.file("marker").exists());
}

/// A daemon that was suspended past its lease says "go" after another one has taken over.
#[tokio::test]
async fn a_late_go_meets_the_void_of_recovery() {
    let home = Home::new();
    let host = Slow::new();
    let config = touching(&home);
    let taking_over = async {
        let handle = host.handle().await;
        let next = home.restarted();
        let recovered = next.recover(segment(2, Some(handle), &config)).await;
        assert_eq!(recovered, Recovery::NothingStarted);
        assert_eq!(home.marked(), Vec::<i32>::new(), "what was held is gone");
        host.granted.notify_one();
        let mut again = request(config.clone());
        again.epoch = Epoch::from_number(2);
        next.run(again, &Granting::default()).await
    };
    let (late, second) = tokio::join!(home.try_run(request(config.clone()), &host), taking_over);
    assert_eq!(late, Err(RunError::Fenced));
    assert_eq!(second.unwrap().outcome, Outcome::Completed);
    assert_eq!(fs::read_to_string(home.file("marker")).unwrap(), "ran\n", "it ran once");
    assert_eq!(
        (verdict(&home, 1).as_deref(), verdict(&home, 2).as_deref()),
        (Some("void\n"), Some("start\n"))
    );
}

/// The same, but the held launcher is still there when "go" comes: `link` alone decides.
#[tokio::test]
async fn a_launcher_that_finds_void_stands_down() {
    let home = Home::new();
    let host = Slow::new();
    let config = touching(&home);
    let voiding = async {
        host.handle().await;
        fs::write(home.segment(1).join("verdict"), "void\n").unwrap();
        host.granted.notify_one();
    };
    let (late, ()) = tokio::join!(home.try_run(request(config), &host), voiding);
    assert_eq!(late, Err(RunError::Fenced));
    assert!(!home.file("marker").exists());
    assert_eq!(home.marked(), Vec::<i32>::new());
}

#[tokio::test]
async fn recovery_after_start_finds_the_segment_alive() {
    let home = Home::new();
    let ready = home.file("ready");
    let config = json!({"command": format!(": > {}; sleep 300", ready.display()), "stop_grace_seconds": 1});
    let handle = home.abandon(request(config.clone()), || ready.exists()).await;
    assert_eq!(verdict(&home, 1).as_deref(), Some("start\n"));
    let next = home.restarted();
    assert_eq!(next.recover(segment(2, Some(handle.clone()), &config)).await, Recovery::Alive);
    assert_eq!(verdict(&home, 1).as_deref(), Some("start\n"), "void came second and stood down");
    assert_eq!(next.stop(segment(2, Some(handle), &config)).await, extension::Stopped::Confirmed);
}

#[tokio::test]
async fn a_launch_that_was_stopped_while_held_never_begins() {
    let home = Home::new();
    let host = Slow::new();
    let config = touching(&home);
    let stopping = async {
        host.handle().await;
        let stopped = home.executor.stop(segment(1, None, &config)).await;
        assert_eq!(stopped, extension::Stopped::Confirmed);
        host.granted.notify_one();
    };
    let (late, ()) = tokio::join!(home.try_run(request(config.clone()), &host), stopping);
    assert_eq!(late, Err(RunError::Fenced));
    assert!(!home.file("marker").exists());
}

#[tokio::test]
async fn a_launcher_that_is_killed_while_it_holds_starts_nothing() {
    let home = Home::new();
    let host = Slow::new();
    let config = touching(&home);
    let killing = async {
        let handle: Value = serde_json::from_slice(&host.handle().await).unwrap();
        let pid = |who: &str| i32::try_from(handle[who]["pid"].as_i64().unwrap()).unwrap();
        kill(pid("launcher"), "KILL");
        until("the held command died with it", || !runs(pid("command"))).await;
        host.granted.notify_one();
    };
    let (lost, ()) = tokio::join!(home.try_run(request(config.clone()), &host), killing);
    assert!(matches!(lost, Err(RunError::Failed { code: "spawn_failed", .. })), "{lost:?}");
    assert!(!home.file("marker").exists());
    assert_eq!(verdict(&home, 1).as_deref(), Some("void\n"));
}

#[tokio::test]
async fn a_command_is_not_held_for_ever() {
    let home = Home::new();
    let host = Slow::new();
    let executor = executor_with(&home.root(), Duration::from_millis(200));
    let waiting = async {
        host.handle().await;
        until("the launcher has given up", || home.marked().is_empty()).await;
        host.granted.notify_one();
    };
    let (lost, ()) = tokio::join!(executor.run(request(touching(&home)), &host), waiting);
    assert!(matches!(lost, Err(RunError::Failed { code: "spawn_failed", .. })), "{lost:?}");
    assert!(!home.file("marker").exists());
}

#[tokio::test]
async fn a_turn_that_is_dropped_while_held_starts_nothing() {
    let home = Home::new();
    let host = Slow::new();
    let config = touching(&home);
    let executor = home.restarted();
    tokio::select! {
        ended = executor.run(request(config.clone()), &host) => panic!("{ended:?}"),
        _handle = host.handle() => {}
    }
    until("the launcher has given up", || home.marked().is_empty()).await;
    assert!(!home.file("marker").exists());
    let recovered = home.restarted().recover(segment(2, None, &config)).await;
    assert_eq!(recovered, Recovery::NothingStarted);
}

#[tokio::test]
async fn nothing_was_started_where_nothing_is() {
    let home = Home::new();
    let recovered = home.executor.recover(segment(2, None, &touching(&home))).await;
    assert_eq!(recovered, Recovery::NothingStarted);
}

/// A database that was put back from a copy knows less than the disk does.
#[tokio::test]
async fn a_start_that_the_runtime_forgot_is_not_nothing() {
    let home = Home::new();
    let config = touching(&home);
    home.run(config.clone()).await;
    let recovered = home.executor.recover(segment(2, None, &config)).await;
    assert!(matches!(recovered, Recovery::NotAdoptable { stopped: true, .. }), "{recovered:?}");
}

/// Where the tests below keep their home, for the process that plays the daemon.
const ROOT_VARIABLE: &str = "SHELL_TEST_VERDICT_ROOT";

/// Writes down that it was asked, and never answers.
#[derive(Debug)]
struct Silent(std::path::PathBuf);

impl AttemptHost for Silent {
    fn pin(&self, handle: Vec<u8>) -> BoxFuture<'_, Result<(), PinError>> {
        fs::write(self.0.with_extension("new"), handle).unwrap();
        fs::rename(self.0.with_extension("new"), &self.0).unwrap();
        Box::pin(std::future::pending())
    }
}

/// Not a test by itself: a daemon that is killed between the start of a launcher and the record of it.
#[tokio::test]
async fn daemon_that_never_pins() {
    let Ok(root) = std::env::var(ROOT_VARIABLE) else { return };
    let root = std::path::PathBuf::from(root);
    let config = json!({"argv": ["touch", root.with_file_name("marker")]});
    let _ended = executor(&root).run(request(config), &Silent(root.with_file_name("asked"))).await;
}

/// Incident: SIGKILL between the start of the process and the record of its pid gave a second process.
#[tokio::test]
async fn a_daemon_that_is_killed_before_the_record_starts_nothing() {
    // Once the pin may have reached the store, and once it has not.
    for recorded in [false, true] {
        let home = Home::new();
        let root = home.root();
        let variables = [(ROOT_VARIABLE, root.to_str().unwrap())];
        let mut killed = daemon("shell::verdict::daemon_that_never_pins", &variables);
        until("the launch is held", || home.file("asked").exists()).await;
        let asked = fs::read(home.file("asked")).unwrap();
        killed.kill().unwrap();
        killed.wait().unwrap();
        until("the launcher has seen it", || home.marked().is_empty()).await;
        assert_eq!(verdict(&home, 1), None);
        let config = touching(&home);
        let next = home.restarted();
        let recovered = next.recover(segment(2, recorded.then_some(asked), &config)).await;
        assert_eq!(recovered, Recovery::NothingStarted);
        assert_eq!(verdict(&home, 1).as_deref(), Some("void\n"));
        assert!(!home.file("marker").exists());
        let mut again = request(config);
        again.epoch = Epoch::from_number(2);
        assert_eq!(next.run(again, &Granting::default()).await.unwrap().outcome, Outcome::Completed);
        assert_eq!(fs::read_to_string(home.file("marker")).unwrap(), "ran\n");
    }
}

/// A suspended daemon still owns its socket; what it held is ended by recovery, not by its patience.
#[tokio::test]
async fn a_suspended_daemon_loses_what_it_held() {
    let home = Home::new();
    let root = home.root();
    let variables = [(ROOT_VARIABLE, root.to_str().unwrap())];
    let mut suspended = daemon("shell::verdict::daemon_that_never_pins", &variables);
    until("the launch is held", || home.file("asked").exists()).await;
    kill(i32::try_from(suspended.id()).unwrap(), "STOP");
    assert!(!home.marked().is_empty());
    let recovered = home.restarted().recover(segment(2, None, &touching(&home))).await;
    assert_eq!(recovered, Recovery::NothingStarted);
    assert_eq!(home.marked(), Vec::<i32>::new());
    suspended.kill().unwrap();
    suspended.wait().unwrap();
}
